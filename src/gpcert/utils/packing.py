"""Records of arrays as plain JSON and a list of arrays, without code; and a hash of any of them."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from gpcert.errors import InputError


class Kind(NamedTuple):
    """How values of a class are taken apart and made again."""

    cls: type
    parts: Callable[[Any], list[Any]]
    make: Callable[..., Any]

    @staticmethod
    def of(record: type) -> Kind:
        """Of a dataclass, or a named tuple."""
        if is_dataclass(record):
            names = [field.name for field in fields(record)]
            return Kind(record, lambda value: [getattr(value, name) for name in names], record)
        return Kind(record, list, record)


Kinds = Mapping[str, Kind]


def packed(value: Any, arrays: list[np.ndarray], kinds: Kinds) -> Any:
    """The value as JSON, in which an array is its place among `arrays`, where it is added.

    >>> arrays = []
    >>> text = packed({"a": (np.inf, np.zeros(2))}, arrays, {})
    >>> unpacked(text, arrays, {})
    {'a': (inf, array([0., 0.]))}
    """
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):  # exact, and infinities too
        return {"float": value.hex()}

    def each(parts: Any) -> list[Any]:
        return [packed(part, arrays, kinds) for part in parts]

    for name, kind in kinds.items():
        if isinstance(value, kind.cls):
            return {name: each(kind.parts(value))}
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if type(value) in {tuple, list, dict}:
        inside = [each(p) for p in value.items()] if isinstance(value, dict) else each(value)
        return {type(value).__name__: inside}
    raise InputError(f"files hold no {type(value).__name__}")


def unpacked(value: Any, arrays: list[np.ndarray], kinds: Kinds) -> Any:
    """The value that was `packed`."""
    if not isinstance(value, dict):
        return value
    ((name, inside),) = value.items()
    if name == "float":
        return float.fromhex(inside)
    if name == "array":
        return arrays[inside]
    if name == "dict":
        return {unpacked(k, arrays, kinds): unpacked(v, arrays, kinds) for k, v in inside}
    parts = [unpacked(part, arrays, kinds) for part in inside]
    if name in {"tuple", "list"}:
        return tuple(parts) if name == "tuple" else parts
    return kinds[name].make(*parts)


def digest(*values: Any) -> str:
    """A SHA-256 of values and all that is in them: the same in every process.

    Models count by their fingerprints, objects of other classes by class and attributes.

    >>> digest(1.0, [2]) == digest(1.0, [2]), digest(1.0) == digest(1)
    (True, False)
    """
    hashed = hashlib.sha256()
    _add(hashed.update, list(values))
    return hashed.hexdigest()


def _add(update: Callable[[bytes], None], value: Any) -> None:
    if hasattr(value, "to_numpy") and hasattr(value, "index"):  # a frame, or a row of one
        value = [list(getattr(value, "columns", value.index)), value.to_numpy().tolist()]
    update(f"{type(value).__module__}.{type(value).__qualname__}:".encode())
    inside = _inside(value)
    if isinstance(inside, bytes):
        update(f"{len(inside)};".encode() + inside)
        return
    update(f"{len(inside)}(".encode())
    for part in inside:
        _add(update, part)


def _inside(value: Any) -> bytes | list[Any]:
    """What tells a value from others of its class."""
    known: Any = getattr(value, "fingerprint", None)
    if isinstance(known, str):
        inside: bytes | list[Any] = known.encode()
    elif isinstance(value, np.ndarray) and value.dtype.kind != "O":
        inside = f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).tobytes()
    elif isinstance(value, Enum):
        inside = value.name.encode()
    elif isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        cells = [cell.cell_contents for cell in getattr(value, "__closure__", None) or ()]
        inside = [value.__module__, value.__qualname__, getattr(value, "__self__", None), *cells]
    elif isinstance(value, Mapping):
        inside = [part for pair in value.items() for part in pair]
    elif isinstance(value, tuple | list | np.ndarray):
        inside = list(value)
    elif isinstance(value, set | frozenset):
        inside = sorted(value, key=repr)
    elif is_dataclass(value):
        inside = [getattr(value, field.name) for field in fields(value)]
    elif getattr(value, "__dict__", None):
        inside = _attributes(value)
    else:
        inside = repr(value).encode()
    return inside


def _attributes(value: Any) -> list[Any]:
    """Names and values, but for what is derived from others."""
    derived, cls = functools.cached_property, type(value)
    names = [name for name in vars(value) if not isinstance(getattr(cls, name, None), derived)]
    return [part for name in sorted(names) for part in (name, vars(value)[name])]
