"""Shapes that annotations name are checked while tests run; which doctests are left out.

Doctests of an adapter's modules need its library; every other module must be importable.
"""

from importlib.util import find_spec

from tests.shapes import install

install()

collect_ignore_glob = [
    f"src/gpcert/adapters/{library.lower()}_*.py"
    for library in ("torch", "gpytorch", "botorch", "gpflow", "GPy", "jax", "gpjax", "tinygp")
    if find_spec(library) is None
]
