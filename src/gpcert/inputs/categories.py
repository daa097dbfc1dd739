"""Inputs that hold categories: their labels, and the numbers that stand for them.

`levels` are labels by the numbers of the inputs, `{3: ("blue", "red")}`. A category is written in
an input as a number: the label itself where all labels are numbers, else 0, 1, ... in their order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpcert.errors import InputError

Levels = Mapping[int, tuple[Any, ...]]


def checked_levels(levels: Any) -> dict[int, tuple[Any, ...]]:
    """Labels by input, in growing order: distinct, all text or all finite numbers.

    >>> checked_levels({2: [1, 3], 0: ["a", "b"]})
    {0: ('a', 'b'), 2: (1.0, 3.0)}
    """
    found: dict[int, tuple[Any, ...]] = {}
    items: Any = levels.items() if isinstance(levels, Mapping) else [(None, levels)]
    for j, labels in items:
        own = tuple(_plain(label) for label in labels) if _several(labels) else ()
        kinds = {type(label) for label in own}
        whole = isinstance(j, int) and not isinstance(j, bool) and j >= 0
        if not whole or len(kinds) != 1 or not kinds <= {str, float} or len(set(own)) < len(own):
            raise InputError(
                "levels: expected distinct labels by the number of a feature, all text or all "
                f"numbers, got {labels!r} for {j!r}"
            )
        found[j] = own
    return dict(sorted(found.items()))


def _several(labels: Any) -> bool:
    return isinstance(labels, Sequence | np.ndarray) and not isinstance(labels, str | bytes)


def _plain(label: Any) -> Any:
    """Text or a finite number; None, which is refused, for anything else."""
    if isinstance(label, str):
        return str(label)
    number = isinstance(label, int | float | np.number | np.bool_)
    return float(label) if number and math.isfinite(label) else None


OTHERS = "(any other)"
"""The label that stands for all text that is no category, where a model takes it."""


def with_others(labels: tuple[Any, ...]) -> tuple[Any, ...]:
    """Labels with one more for all other text; numbers as they are, as any of them might be meant.

    >>> with_others(("no", "yes"))
    ('no', 'yes', '(any other)')
    """
    return (*labels, OTHERS) if isinstance(labels[0], str) and OTHERS not in labels else labels


def codes_of(labels: Sequence[Any]) -> np.ndarray:
    """The numbers that stand for labels.

    >>> codes_of(("no", "yes")).tolist(), codes_of((1.0, 5.0)).tolist()
    ([0.0, 1.0], [1.0, 5.0])
    """
    text = isinstance(labels[0], str)
    return np.arange(len(labels), dtype=np.float64) if text else np.array(labels, dtype=np.float64)


def listed(labels: Sequence[Any]) -> str:
    """Labels in words."""
    shown = [label if isinstance(label, str) else f"{label:g}" for label in labels]
    return ", ".join(shown[:9]) + (", ..." if len(shown) > 9 else "")


def coded(name: str, values: Any, levels: Levels, called: Sequence[str] | None) -> Any:
    """A table (n, d), or one row (d,), with numbers for the categories that are given as text.

    `called` are the names of the inputs, if they have any.

    >>> coded("X", [["red", 2.0]], {0: ("blue", "red")}, None).tolist()
    [[1.0, 2.0]]
    """
    if not levels:
        return values
    table = np.array(values, dtype=object)
    rows = np.atleast_2d(table)  # a view
    if rows.ndim != 2 or rows.shape[1] <= max(levels):
        return values  # of another shape, which is refused as one
    for j, labels in levels.items():
        codes = dict(zip(labels, codes_of(labels).tolist(), strict=True))
        known = set(codes.values())
        for row in rows:
            value: Any = row[j]
            code: Any = codes.get(value, codes.get(OTHERS)) if isinstance(value, str) else value
            try:
                right = float(code) in known
            except (TypeError, ValueError):
                right = False
            if not right:
                column = f"feature {j}" if called is None else f"column {called[j]!r}"
                raise InputError(
                    f"{name}: expected one of the categories {listed(labels)} in {column}, got "
                    f"{value!r}"
                )
            row[j] = code
    return table
