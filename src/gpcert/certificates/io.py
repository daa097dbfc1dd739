"""Records as JSON files: exact floats, infinities spelled out, versions beside them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from gpcert.errors import InputError

__all__ = ["FORMAT", "load_record", "package_version", "read_record", "write_record"]

T = TypeVar("T")

FORMAT = "gpcert-record-1"


def package_version() -> str:
    """Installed version of gpcert."""
    try:
        return version("gpcert")
    except PackageNotFoundError:  # run from a source tree without an install
        return "unknown"


def write_record(path: str | Path, record: dict[str, Any]) -> None:
    """Write a record; floats survive exactly (shortest repr), infinities as text."""
    envelope = {"format": FORMAT, "gpcert": package_version(), "record": _spell(record)}
    Path(path).write_text(json.dumps(envelope, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def read_record(path: str | Path, kind: str) -> dict[str, Any]:
    """Read a record of the given kind."""
    try:
        envelope = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"{path}: expected a JSON record of gpcert ({error})") from error
    if not isinstance(envelope, dict) or envelope.get("format") != FORMAT:
        raise InputError(f"{path}: expected a record of format {FORMAT!r}")
    record = _unspell(envelope.get("record"))
    if not isinstance(record, dict):
        raise InputError(f"{path}: expected a record of fields, got {type(record).__name__}")
    if record.get("kind") != kind:
        raise InputError(f"{path}: expected a {kind}, got a {record.get('kind')}")
    return record


def load_record(path: str | Path, kind: str, build: Callable[[dict[str, Any]], T]) -> T:
    """Read a record of the given kind and build the object that wrote it."""
    record = read_record(path, kind)
    try:
        return build(record)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path}: its fields are not those of a {kind} ({error!r})") from error


def _spell(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _spell(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_spell(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(float(value))}  # NumPy's repr of its own floats is not a number
    if isinstance(value, np.generic):
        return _spell(value.item())
    return value


def _unspell(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"float"}:
            return float(value["float"])
        return {key: _unspell(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_unspell(item) for item in value]
    return value
