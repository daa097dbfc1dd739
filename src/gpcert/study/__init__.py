"""Studies: the paper's experiments, their data sets, and reports of results."""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name in {"datasets", "experiments", "report"}:
        return import_module(f"gpcert.study.{name}")
    raise AttributeError(f"module 'gpcert.study' has no attribute {name!r}")
