"""Optional libraries, imported by name: types are checked alike with and without them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gpcert.errors import MissingExtraError
from gpcert.extras import install_hint

GPFLOW = (
    "install it with: pip install gpflow, then pip install 'numpy>=2,<2.3' (see docs/models.md)"
)
"""It asks for a NumPy older than ours, though it runs with this one: there is no extra for it."""


def library(name: str) -> Any:
    """The module, or an error that names what to install.

    >>> library("math").pi > 3
    True
    """
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        how = GPFLOW if package == "gpflow" else install_hint(package)
        raise MissingExtraError(
            f"models of this kind need the package {package}, which cannot be imported ({error}); "
            f"{how}",
            name=package,
        ) from error
