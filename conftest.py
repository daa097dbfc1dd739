"""Shapes that annotations name are checked while tests run; which doctests are left out.

Doctests of an adapter's modules need its library; every other module must be importable.
"""

import gc
import sys
from collections.abc import Generator
from importlib.util import find_spec

import pytest

from tests.shapes import install

install()
gc.disable()  # while tests are collected: of what is made then, all stays

NEEDED = {
    "adapters/gpytorch_*": ("gpytorch", "torch"),
    "adapters/botorch_*": ("botorch", "gpytorch", "torch"),
    "adapters/gpflow_*": ("gpflow",),
    "adapters/gpy_*": ("GPy",),
    "adapters/jax_*": ("jax",),
    "adapters/gpjax_*": ("gpjax", "jax"),
    "adapters/tinygp_*": ("tinygp", "jax"),
}
"""Modules that cannot be imported without these libraries."""

collect_ignore_glob = [
    f"src/gpcert/{module}.py"
    for module, libraries in NEEDED.items()
    if any(find_spec(library) is None for library in libraries)
]


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A module whose import was given up, as for want of a library, is not kept half made.

    Python forgets such a module, pytest does not: whoever imported it next would find the names
    above the line that raised, and no others.
    """
    report = yield
    if not report.passed and isinstance(collector, pytest.Module):
        path = str(collector.path)
        for name in [n for n, m in sys.modules.items() if getattr(m, "__file__", None) == path]:
            del sys.modules[name]
    return report


def pytest_collection_finish() -> None:
    """From here on garbage is looked for, and not among the tests themselves."""
    gc.freeze()
    gc.enable()
