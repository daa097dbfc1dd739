"""Strict JSON: no NaN, no number beyond float64, no key twice, no nesting without end."""

from __future__ import annotations

import json
import math
from typing import Any

from gpcert.errors import InputError

DEEPEST = 200
"""Nesting of lists and objects: a kernel inside a kernel takes three levels, a record six."""


def from_json(text: str) -> Any:
    """The value of a JSON text, or an `InputError`.

    >>> from_json('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    """
    try:
        value = json.loads(text, parse_constant=_constant, object_pairs_hook=_pairs)
    except RecursionError as error:
        raise InputError(f"expected JSON nested at most {DEEPEST} deep") from error
    except ValueError as error:  # a JSONDecodeError, or an integer of thousands of digits
        raise InputError(f"expected JSON text ({error})") from error
    _check(value, DEEPEST)
    return value


def to_json(value: Any, *, indent: int | None = None) -> str:
    """The JSON text that `from_json` reads, floats exact; in ASCII, so that any console shows it.

    >>> to_json({"a": 0.1})
    '{"a": 0.1}'
    """
    _check(value, DEEPEST)
    return json.dumps(value, indent=indent, allow_nan=False)


def _check(value: Any, depth: int) -> None:
    if isinstance(value, dict | list | tuple):
        if depth == 0:
            raise InputError(f"expected JSON nested at most {DEEPEST} deep")
        if isinstance(value, dict) and not all(isinstance(key, str) for key in value):
            raise InputError(f"expected text as keys, got {list(value)!r}")
        for item in value.values() if isinstance(value, dict) else value:
            _check(item, depth - 1)
    elif isinstance(value, float):
        if not math.isfinite(value):  # a literal such as 1e999, or a number that was not spelled
            raise InputError(f"expected numbers of float64, got {value!r}")
    elif not (value is None or isinstance(value, str | int)):
        raise InputError(
            f"expected numbers, text, lists and tables of them, got {value!r} "
            f"({type(value).__name__}): files cannot hold it"
        )


def _constant(name: str) -> Any:
    raise InputError(f"expected finite numbers, got {name}")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"expected every name once, got {twice!r} twice")
    return found
