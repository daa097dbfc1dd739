"""Optional libraries, imported by name: types are checked alike with and without them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gpcert.errors import MissingExtraError

INSTALL = {
    "torch": "pip install 'gpcert[torch]'",
    "gpytorch": "pip install 'gpcert[gpytorch]'",
    "botorch": "pip install 'gpcert[botorch]'",
    "GPy": "pip install 'gpcert[gpy]'",
    "gpflow": "pip install gpflow, then pip install 'numpy>=2,<2.3' (see docs/models.md)",
    "gpjax": "pip install gpjax",
    "tinygp": "pip install tinygp",
}
"""How a library is installed whose models are taken."""


def library(name: str) -> Any:
    """The module, or an error that names what to install.

    >>> library("math").pi > 3
    True
    """
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        how = INSTALL.get(package, f"pip install {package}")
        raise MissingExtraError(
            f"models of this kind need the package {package}, which cannot be imported ({error}); "
            f"install it with: {how}",
            name=package,
        ) from error
