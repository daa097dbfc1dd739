"""Shapes that annotations name are checked while tests run; which doctests are left out.

Doctests of an adapter's modules need its library; every other module must be importable.
"""

import gc
from importlib.util import find_spec

from tests.shapes import install

install()
gc.disable()  # while tests are collected: of what is made then, all stays

collect_ignore_glob = [
    f"src/gpcert/adapters/{library.lower()}_*.py"
    for library in ("torch", "gpytorch", "botorch", "gpflow", "GPy", "jax", "gpjax", "tinygp")
    if find_spec(library) is None
]


def pytest_collection_finish() -> None:
    """From here on garbage is looked for, and not among the tests themselves."""
    gc.freeze()
    gc.enable()
