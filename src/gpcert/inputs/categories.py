"""Categorical features: their labels, and the numbers that represent them.

`levels` maps the index of a feature to its labels, `{3: ("blue", "red")}`. A category is
represented by a number: by the label if all labels are numbers, else by 0, 1, ... in their order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpcert.errors import InputError

Levels = Mapping[int, tuple[Any, ...]]


def checked_levels(levels: Any) -> dict[int, tuple[Any, ...]]:
    """Labels by feature, ordered by index: distinct, all text or all finite numbers.

    >>> checked_levels({2: [1, 3], 0: ["a", "b"]})
    {0: ('a', 'b'), 2: (1.0, 3.0)}
    """
    checked: dict[int, tuple[Any, ...]] = {}
    items: Any = levels.items() if isinstance(levels, Mapping) else [(None, levels)]
    for j, labels in items:
        label_tuple = tuple(_plain(label) for label in labels) if _several(labels) else ()
        kinds = {type(label) for label in label_tuple}
        whole = isinstance(j, int) and not isinstance(j, bool) and j >= 0
        if (
            not whole
            or len(kinds) != 1
            or not kinds <= {str, float}
            or len(set(label_tuple)) < len(label_tuple)
        ):
            raise InputError(
                "levels: expected distinct labels by the number of a feature, all text or all "
                f"numbers, got {labels!r} for {j!r}"
            )
        checked[j] = label_tuple
    return dict(sorted(checked.items()))


def _several(labels: Any) -> bool:
    return isinstance(labels, Sequence | np.ndarray) and not isinstance(labels, str | bytes)


def _plain(label: Any) -> Any:
    """Text or a finite number; None, which is not a valid label, for anything else."""
    if isinstance(label, str):
        return str(label)
    number = isinstance(label, int | float | np.number | np.bool_)
    return float(label) if number and math.isfinite(label) else None


OTHERS = "(any other)"
"""The label for all text that is not a category, if the model supports unknown categories."""


def with_others(labels: tuple[Any, ...]) -> tuple[Any, ...]:
    """Labels with one more for all other text; numeric labels are unchanged.

    >>> with_others(("no", "yes"))
    ('no', 'yes', '(any other)')
    """
    return (*labels, OTHERS) if isinstance(labels[0], str) and OTHERS not in labels else labels


def codes_of(labels: Sequence[Any]) -> np.ndarray:
    """The numbers that represent the labels.

    >>> codes_of(("no", "yes")).tolist(), codes_of((1.0, 5.0)).tolist()
    ([0.0, 1.0], [1.0, 5.0])
    """
    text = isinstance(labels[0], str)
    return np.arange(len(labels), dtype=np.float64) if text else np.array(labels, dtype=np.float64)


def listed(labels: Sequence[Any]) -> str:
    """Labels as text, at most nine."""
    texts = [label if isinstance(label, str) else f"{label:g}" for label in labels]
    return ", ".join(texts[:9]) + (", ..." if len(texts) > 9 else "")


def coded(name: str, values: Any, levels: Levels, names: Sequence[str] | None) -> Any:
    """A table (n, d), or one row (d,), with categories given as text replaced by their numbers.

    `names` are the names of the features, if they have any.

    >>> coded("X", [["red", 2.0]], {0: ("blue", "red")}, None).tolist()
    [[1.0, 2.0]]
    """
    if not levels:
        return values
    table = np.array(values, dtype=object)
    rows = np.atleast_2d(table)  # a view
    if rows.ndim != 2 or rows.shape[1] <= max(levels):
        return values  # wrong shape: the caller raises the error
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
                column = f"feature {j}" if names is None else f"column {names[j]!r}"
                raise InputError(
                    f"{name}: expected one of the categories {listed(labels)} in {column}, got "
                    f"{value!r}"
                )
            row[j] = code
    return table
