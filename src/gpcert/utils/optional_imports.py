"""Optional libraries, imported on demand; the error for a missing one names its extra."""

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

__all__ = ["Axes", "Figure", "DataFrame", "optional", "install_hint"]

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
