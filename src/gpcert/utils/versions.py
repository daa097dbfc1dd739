"""Installed versions: that of gpcert, and a check that NumPy is new enough."""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib.util import find_spec

__all__ = ["check_numpy", "package_version"]

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
