"""How the fields of a record are written, and what is checked when they are read.

The annotation of a field says all: `Interval`, `float`, an enumeration, `np.ndarray | None` for a
point, `np.ndarray` for an array of numbers, `tuple[X, ...]`, `int | None`, a dataclass of such
fields, ... A record is read by the same table as it is written, so a new field needs no code here.
Infinities are the texts "inf" and "-inf", in every field of numbers; NaN is refused.
"""

from __future__ import annotations

import dataclasses
import math
import operator
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any, TypeVar

import numpy as np

from gpcert.certificates.status import Interval
from gpcert.errors import InputError
from gpcert.json_text import from_json, to_json
from gpcert.regions.records import region_from_dict

T = TypeVar("T")

ADDED: Mapping[str, Any] = {"added": True}
"""Metadata of a field with a default that files of the same format may be without."""

Cell = str | int | float | bool | None
"""What a table holds; infinities too, which files spell as everywhere."""


@dataclasses.dataclass(frozen=True)
class Codec:
    """`write` makes plain JSON of a value; `read` is its inverse and raises an `InputError`."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]
    expected: str


def encode(record: Any) -> dict[str, Any]:
    """The fields of a record as plain numbers and text."""
    return {name: codec.write(getattr(record, name)) for name, codec in _codecs(type(record))}


def decode(cls: type[T], fields: Mapping[str, Any]) -> T:
    """The record that `encode` wrote; every field must be there but those `ADDED`, and no other."""
    known = dict(_codecs(cls))
    missing, unknown = known.keys() - fields.keys(), sorted(fields.keys() - known.keys())
    missing -= _added(cls)
    if missing or unknown:
        raise InputError(f"expected its fields; missing {sorted(missing)}, unknown {unknown[:9]}")
    return cls(**{name: _read(name, known[name], value) for name, value in fields.items()})


@cache
def _added(cls: Any) -> frozenset[str]:
    return frozenset(field.name for field in dataclasses.fields(cls) if field.metadata == ADDED)


def _read(name: str, codec: Codec, value: Any) -> Any:
    try:
        return codec.read(value)
    except (InputError, OverflowError) as error:
        shown = repr(value)
        shown = shown if len(shown) <= 80 else shown[:77] + "..."
        reason = "" if not str(error) else f" ({error})"
        raise InputError(f"{name}: expected {codec.expected}, got {shown}{reason}") from error


@cache
def _codecs(cls: type) -> tuple[tuple[str, Codec], ...]:
    types = typing.get_type_hints(cls)
    return tuple((field.name, codec_of(types[field.name])) for field in dataclasses.fields(cls))


def codec_of(kind: Any) -> Codec:
    """How values of an annotated type are written and read."""
    if isinstance(kind, type) and issubclass(kind, Enum):
        return Codec(
            lambda value: value.name, _member(kind), f"one of {', '.join(kind.__members__)}"
        )
    if kind is Interval:
        return _INTERVAL
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return Codec(encode, lambda value: _fields(kind, value), "a record of its own fields")
    if typing.get_origin(kind) is tuple:
        return _list(codec_of(typing.get_args(kind)[0]))
    if kind not in _PLAIN:
        raise InputError(f"records hold no fields of type {kind!r}")
    return _PLAIN[kind]


def number(value: Any) -> float:
    """A float64 from JSON, infinities by name.

    >>> number(1), number("-inf")
    (1.0, -inf)
    """
    if isinstance(value, str) and value in {"inf", "-inf"}:
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError("")
    return float(value)


def label(value: Any) -> Any:
    """A label, or None: text, a finite number or a truth value.

    >>> label("red"), label(np.int64(3))
    ('red', 3)
    """
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and not math.isfinite(plain):
        raise InputError(f"label: expected a finite number, got {plain!r}")
    if not (plain is None or isinstance(plain, str | int | float)):
        raise InputError(
            f"label: expected text, a number or a truth value, got {plain!r}; files hold no others"
        )
    return plain


def cell(value: Any) -> Cell:
    """A cell of a table: as a label, or an infinity, by name or not.

    >>> cell("red"), cell("inf"), cell(np.float64(-np.inf))
    ('red', inf, -inf)
    """
    if isinstance(value, str) and value in {"inf", "-inf"}:
        return float(value)
    if isinstance(value, float | np.floating) and math.isinf(value):
        return float(value)
    return label(value)


def _written(value: Any) -> float | str:
    found = float(value)
    if math.isnan(found):
        raise InputError("a record with NaN is not written: it would be no bound")
    return found if math.isfinite(found) else str(found)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(f"expected text, got {value!r}")
    return str(value)  # of an enumeration of texts, its text


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError("")
    return value


def _of(kind: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise InputError("")
        return value

    return read


def _member(kind: type[Enum]) -> Callable[[Any], Enum]:
    def read(value: Any) -> Enum:
        if not isinstance(value, str) or value not in kind.__members__:
            raise InputError("")
        return kind[value]

    return read


def _interval(value: Any) -> Interval:
    """Two numbers of which the first is not the larger."""
    if not isinstance(value, list) or len(value) != 2:
        raise InputError("")
    lower, upper = map(number, value)
    if not lower <= upper:
        raise InputError("")
    return Interval(lower, upper)


_INTERVAL = Codec(
    lambda value: [_written(value.lower), _written(value.upper)],
    _interval,
    "[lower, upper] with lower <= upper",
)


def _fields(kind: type[T], value: Any) -> T:
    if not isinstance(value, dict):
        raise InputError("")
    return decode(kind, value)


def _list(item: Codec) -> Codec:
    def read(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise InputError("")
        return tuple(map(item.read, value))

    return Codec(
        lambda value: [item.write(each) for each in value],
        read,
        f"a list, each item {item.expected}",
    )


def _nested(value: Any) -> Any:
    """Numbers in lists of lists, from an array."""
    return [_nested(each) for each in value] if np.ndim(value) else _written(value)


def _array(value: Any) -> np.ndarray:
    """An array of numbers, infinities included, from lists of lists of equal lengths."""

    def read(part: Any) -> Any:
        return [read(each) for each in part] if isinstance(part, list) else number(part)

    if not isinstance(value, list):
        raise InputError("")
    try:
        return np.array(read(value), dtype=np.float64)
    except (ValueError, RecursionError) as error:
        raise InputError(f"lists of unequal lengths, {error}") from error


def _point(value: Any) -> np.ndarray | None:
    if value is None:
        return None
    if not isinstance(value, list):
        raise InputError("")
    found = np.array([number(item) for item in value], dtype=np.float64)
    if found.size == 0 or not np.all(np.isfinite(found)):
        raise InputError("")
    return found


def _region(value: Any) -> dict[str, Any]:
    """The description of a region that can be built again; {} where none is given."""
    if not isinstance(value, dict):
        raise InputError("")
    return region_from_dict(value).describe() if value else {}


def _table(value: Any) -> dict[str, Any]:
    """Any JSON values, by name."""
    if not isinstance(value, dict):
        raise InputError("")
    return value


def _texts(value: Any) -> dict[str, str]:
    return {name: _of(str)(text) for name, text in _table(value).items()}


_PLAIN: dict[Any, Codec] = {
    bool: Codec(bool, _of(bool), "true or false"),
    int: Codec(operator.index, _count, "a whole number >= 0"),
    float: Codec(_written, number, 'a number, "inf" or "-inf"'),
    float | None: Codec(
        lambda value: None if value is None else _written(value),
        lambda value: None if value is None else number(value),
        'a number, "inf", "-inf" or null',
    ),
    int | None: Codec(
        lambda value: None if value is None else operator.index(value),
        lambda value: None if value is None else _count(value),
        "a whole number >= 0, or null",
    ),
    str: Codec(_text, _of(str), "text"),
    Any: Codec(label, label, "a label (text, number, truth value) or null"),
    np.ndarray | None: Codec(
        lambda point: None if point is None else np.asarray(point, dtype=np.float64).tolist(),
        _point,
        "a list of finite numbers, or null",
    ),
    np.ndarray: Codec(_nested, _array, "lists (of lists) of numbers, of equal lengths"),
    Cell: Codec(
        lambda value: str(value) if value in {math.inf, -math.inf} else label(value),
        cell,
        'a number, "inf" or "-inf", text, true or false, or null',
    ),
    dict[str, Any]: Codec(dict, _region, "the description of a region"),
    Mapping[str, Any]: Codec(lambda value: from_json(to_json(value)), _table, "names and values"),
    dict[str, str]: Codec(dict, _texts, "names and texts"),
}
