"""Optional libraries, imported when they are asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gpcert.errors import MissingExtraError

__all__ = ["extra_module"]


def extra_module(name: str, package: str, purpose: str) -> Any:
    """The module, or an error that says what needs it and how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError(
            f"{purpose} needs the package {package}, which is not installed; install it with: "
            "pip install 'gpcert[explain]'"
        ) from error
