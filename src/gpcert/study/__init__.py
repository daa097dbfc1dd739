"""Studies: the paper's experiments, their data sets, and reports of results."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpcert.study import datasets as datasets
    from gpcert.study import experiments as experiments
    from gpcert.study import report as report
else:

    def __getattr__(name: str) -> Any:
        if name in {"datasets", "experiments", "report"}:
            return import_module(f"gpcert.study.{name}")
        raise AttributeError(f"module 'gpcert.study' has no attribute {name!r}")
