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

from gpcert.certificates.text import Interval, cut
from gpcert.errors import InputError
from gpcert.regions import region_from_dict
from gpcert.utils.archive import from_json, to_json

T = TypeVar("T")

ADDED: Mapping[str, Any] = {"added": True}
"""Metadata of a field with a default that files of the same format may be without."""

UNSAVED: Mapping[str, Any] = {"saved": False}
"""Metadata of a field with a default that JSON files do not hold."""

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


def like(kind: type[T], other: Any, **fields: Any) -> T:
    """A record with the fields that another one has, where these do not say otherwise."""
    names = [name for name, _ in _codecs(kind) if hasattr(other, name)]
    return kind(**{name: getattr(other, name) for name in names} | fields)


@cache
def _added(cls: Any) -> frozenset[str]:
    return frozenset(field.name for field in dataclasses.fields(cls) if field.metadata == ADDED)


def _read(name: str, codec: Codec, value: Any) -> Any:
    try:
        return codec.read(value)
    except (InputError, OverflowError) as error:
        reason = "" if not str(error) else f" ({error})"
        got = cut(repr(value), 80)
        raise InputError(f"{name}: expected {codec.expected}, got {got}{reason}") from error


@cache
def _codecs(cls: Any) -> tuple[tuple[str, Codec], ...]:
    types = typing.get_type_hints(cls)
    if hasattr(cls, "row_kind"):  # of a table
        types["rows"] = tuple[cls.row_kind, ...]
    # what all answers of searches share comes last
    saved = [field for field in dataclasses.fields(cls) if field.metadata != UNSAVED]
    ordered = sorted(saved, key=lambda field: bool(field.kw_only))
    return tuple((field.name, codec_of(types[field.name])) for field in ordered)


def codec_of(kind: Any) -> Codec:
    """How values of an annotated type are written and read."""
    if isinstance(kind, type) and issubclass(kind, Enum):
        names = kind.__members__
        read = _where(lambda value: isinstance(value, str) and value in names, names.get)
        return Codec(lambda value: value.name, read, f"one of {', '.join(names)}")
    if hasattr(kind, "from_dict"):
        return Codec(lambda value: value.to_dict(), kind.from_dict, f"a {kind.kind}")
    if isinstance(kind, type) and dataclasses.is_dataclass(kind) and kind is not Interval:
        read = _where(dict, lambda value: decode(kind, value))
        return Codec(encode, read, "a record of its own fields")
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
    infinite = isinstance(value, str) and value in {"inf", "-inf"}
    if isinstance(value, bool) or not (infinite or isinstance(value, int | float)):
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
    named = isinstance(value, str) and value in {"inf", "-inf"}
    infinite = isinstance(value, float | np.floating) and math.isinf(value)
    return float(value) if named or infinite else label(value)


def _written(value: Any) -> float | str:
    plain = float(value)
    if math.isnan(plain):
        raise InputError("a record with NaN is not written: it would be no bound")
    return plain if math.isfinite(plain) else str(plain)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(f"expected text, got {value!r}")
    return str(value)  # of an enumeration of texts, its text


def _where(
    good: Callable[[Any], bool] | type, made: Callable[[Any], Any] = lambda value: value
) -> Callable[[Any], Any]:
    """A reader of what is good, or of exactly this type; the codec says what was expected."""

    def read(value: Any) -> Any:
        if not (type(value) is good if isinstance(good, type) else good(value)):
            raise InputError("")
        return made(value)

    return read


def _interval(value: Any) -> Interval:
    """Two numbers of which the first is not the larger."""
    lower, upper = map(number, value)
    return _where(lambda ends: ends.lower <= ends.upper)(Interval(lower, upper))


def _list(item: Codec) -> Codec:
    def items(value: list[Any]) -> tuple[Any, ...]:
        parts = []
        for index, each in enumerate(value):
            try:
                parts.append(item.read(each))
            except InputError as error:
                raise InputError(f"item {index}: {error}" if str(error) else "") from error
        return tuple(parts)

    expected = f"a list, each item {item.expected}"
    return Codec(lambda value: list(map(item.write, value)), _where(list, items), expected)


def _nested(value: Any) -> Any:
    """Numbers in lists of lists, from an array."""
    return [_nested(each) for each in value] if np.ndim(value) else _written(value)


def _array(value: list[Any]) -> np.ndarray:
    """An array of numbers, infinities included, from lists of lists of equal lengths."""

    def read(part: Any) -> Any:
        return [read(each) for each in part] if isinstance(part, list) else number(part)

    try:
        return np.array(read(value), dtype=np.float64)
    except (ValueError, RecursionError) as error:
        raise InputError(f"lists of unequal lengths, {error}") from error


def _point(value: list[Any]) -> np.ndarray:
    point = np.array([number(item) for item in value], dtype=np.float64)
    return _where(lambda point: bool(point.size and np.all(np.isfinite(point))))(point)


def _or_none(codec: Codec, expected: str) -> Codec:
    write, read = (
        lambda value, each=each: None if value is None else each(value)
        for each in (codec.write, codec.read)
    )
    return Codec(write, read, expected)


_COUNT = Codec(
    operator.index, _where(lambda value: type(value) is int and value >= 0), "a whole number >= 0"
)
_NUMBER = Codec(_written, number, 'a number, "inf" or "-inf"')
_TEXT = Codec(_text, _where(str), "text")
_POINT = Codec(lambda point: np.asarray(point, dtype=float).tolist(), _where(list, _point), "")

_PLAIN: dict[Any, Codec] = {
    bool: Codec(bool, _where(bool), "true or false"),
    int: _COUNT,
    float: _NUMBER,
    float | None: _or_none(_NUMBER, 'a number, "inf", "-inf" or null'),
    int | None: _or_none(_COUNT, "a whole number >= 0, or null"),
    str: _TEXT,
    Any: Codec(label, label, "a label (text, number, truth value) or null"),
    Interval: Codec(
        lambda value: [_written(value.lower), _written(value.upper)],
        _where(lambda value: isinstance(value, list) and len(value) == 2, _interval),
        "[lower, upper] with lower <= upper",
    ),
    np.ndarray | None: _or_none(_POINT, "a list of finite numbers, or null"),
    np.ndarray: Codec(
        _nested, _where(list, _array), "lists (of lists) of numbers, of equal lengths"
    ),
    Cell: Codec(
        lambda value: str(value) if value in {math.inf, -math.inf} else label(value),
        cell,
        'a number, "inf" or "-inf", text, true or false, or null',
    ),
    # of a region that can be built again; {} where none is given
    dict[str, Any]: Codec(
        dict,
        _where(dict, lambda value: region_from_dict(value).describe() if value else {}),
        "the description of a region",
    ),
    Mapping[str, Any]: Codec(
        lambda value: from_json(to_json(value)), _where(dict), "names and values"
    ),
    dict[str, str]: Codec(
        dict,
        _where(dict, lambda texts: {name: _TEXT.read(text) for name, text in texts.items()}),
        "names and texts",
    ),
}
