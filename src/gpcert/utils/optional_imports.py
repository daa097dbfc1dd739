"""Optional libraries, imported on demand; the error for a missing one names its extra. And
installed versions: that of gpcert, and a check that NumPy is new enough."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpcert.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame
else:  # types of libraries that may be missing: annotations name them, nothing else does
    Axes = Figure = DataFrame = Any
import os
import sys
from functools import cache
from importlib.util import find_spec

__all__ = [
    "Axes",
    "DataFrame",
    "Figure",
    "check_numpy",
    "install_hint",
    "optional",
    "package_version",
]

EXTRAS = {
    **dict.fromkeys(("clarabel", "highspy"), "paper"),
    **dict.fromkeys(("matplotlib", "pandas"), "plots"),
    **dict.fromkeys(("lime", "shap", "skimage"), "explain"),
    "flint": "check",
    **dict.fromkeys(("bokeh", "panel"), "explore"),
    **dict.fromkeys(("hypothesis", "mpmath", "pytest"), "testing"),
    **{"torch": "torch", "gpytorch": "gpytorch", "botorch": "botorch", "GPy": "gpy"},
    **{"gpjax": "gpjax", "tinygp": "tinygp", "optuna": "optuna", "skopt": "skopt"},
    "ax": "ax",
}
"""The extra of pyproject.toml that installs each package."""


def optional(module: str, purpose: str) -> Any:
    """The module, or an error that says what needs it and how to install it.

    >>> optional("math", "a square root").sqrt(4.0)
    2.0
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != package:
            raise  # the package is installed, but one of its dependencies is missing
        raise MissingExtraError(
            f"{purpose} needs {package}, which is not installed; {install_hint(package)}",
            name=package,
        ) from error


def library(module: str) -> Any:
    """A module of the library that a converted model comes from."""
    return optional(module, "a model of this kind")


def install_hint(package: str) -> str:
    """How to install a package, by its extra if it has one.

    >>> install_hint("pandas"), install_hint("jax")
    ("install it with: pip install 'gpcert[plots]'", 'install it with: pip install jax')
    """
    if package == "gpflow":  # requires an older NumPy than gpcert, but works with this one
        return (
            "install it with: pip install gpflow, then pip install 'numpy>=2.1,<2.3' (see "
            "docs/models.md)"
        )
    extra = EXTRAS.get(package)
    what = f"'gpcert[{extra}]'" if extra else package
    return f"install it with: pip install {what}"


NUMPY = (2, 1)
"""Oldest supported version, as in pyproject.toml: the first with the full array-API namespace."""


@cache
def package_version() -> str:
    """Installed version of gpcert."""
    from importlib.metadata import PackageNotFoundError, version  # as slow to import as NumPy

    try:
        return version("gpcert")
    except PackageNotFoundError:  # run from a source tree without an install
        return "unknown"


def check_numpy() -> None:
    """Raise an `ImportError` if NumPy is too old; this does not import NumPy."""
    version = _numpy_version()
    parts = version.split(".")[:2]
    if all(part.isdigit() for part in parts) and tuple(map(int, parts)) < NUMPY:
        least = ".".join(map(str, NUMPY))
        raise ImportError(
            f"gpcert: expected NumPy {least} or newer, found {version}; install it with: "
            f"pip install 'numpy>={least}'"
        )


def _numpy_version() -> str:
    """The version of the imported or importable NumPy; "unknown" if it cannot be determined."""
    if "numpy" in sys.modules:
        return str(getattr(sys.modules["numpy"], "__version__", "unknown"))
    spec = find_spec("numpy")
    if spec is not None and spec.origin is not None:
        path = os.path.join(os.path.dirname(spec.origin), "version.py")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as stream:
                for line in stream:
                    name, _, value = line.partition("=")
                    if name.strip() == "version":
                        return value.strip().strip("\"'")
    return "unknown"
