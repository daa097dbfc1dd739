"""Linear constraints as users give them, checked: by name, by number, as arrays and as matrices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from gpcert.errors import InputError
from gpcert.numerics.arrays import finite_array, number_array
from gpcert.numerics.rounding import U
from gpcert.regions.shapes import Box

RELATIONS = ("<=", ">=", "==", "in")


class Row(NamedTuple):
    """One constraint `low <= a.x <= high`, or an equation (`low == high` is meant)."""

    a: np.ndarray
    low: float
    high: float
    equation: bool

    def ends(self, size: float, d: int, slack: float | None) -> tuple[float, float]:
        """Both ends, an equation's with its slack; `size` bounds the terms."""
        if not self.equation:
            return self.low, self.high
        by = 4.0 * (d + 4) * U * (abs(self.low) + size) if slack is None else float(slack)
        if not (math.isfinite(by) and by >= 0.0):
            raise InputError(f"slack: expected a number >= 0, got {slack!r}")
        return self.low - by, self.high + by


def read_bounds(
    bounds: Any, names: Sequence[str] | None
) -> tuple[Annotated[np.ndarray, "d"], Annotated[np.ndarray, "d"], tuple[str, ...] | None]:
    """The ends (d,), (d,) of the box, and the features' names."""
    if isinstance(bounds, Mapping):
        if names is not None:
            raise InputError("names: are those of bounds; leave names= out")
        names, bounds = list(bounds), tuple(zip(*bounds.values(), strict=True))
    if isinstance(bounds, Box):
        bounds = (bounds.lower, bounds.upper)
    if isinstance(bounds, np.ndarray) or (isinstance(bounds, tuple | list) and len(bounds) == 2):
        box = Box(bounds) if isinstance(bounds, np.ndarray) else Box(*bounds)
    else:
        raise InputError(
            f"bounds: expected a Box, (lower, upper) or {{name: (low, high)}}, got {bounds!r}"
        )
    labels = None if names is None else tuple(map(str, names))
    if labels is not None and (len(labels) != box.dim or len(set(labels)) != box.dim):
        raise InputError(f"names: expected {box.dim} distinct names, got {labels}")
    return box.lower, box.upper, labels


def read_constraint(given: Any, d: int, names: tuple[str, ...] | None) -> Row:
    """A constraint from `(coefficients, relation, bound)`."""
    wanted = "constraint: expected (coefficients, relation, bound), as in ({'a': 1}, '<=', 1.0)"
    if not isinstance(given, tuple | list) or len(given) != 3 or given[1] not in RELATIONS:
        raise InputError(f"{wanted}, with a relation of {list(RELATIONS)}, got {given!r}")
    coefficients, relation, bound = given
    if isinstance(coefficients, Mapping):
        a = np.zeros(d)
        for label, value in coefficients.items():
            a[_place(label, d, names)] += float(finite_array(f"coefficient of {label!r}", value, 0))
    else:
        a = finite_array("coefficients", coefficients, 1)
        if a.shape != (d,):
            raise InputError(f"coefficients: expected {d} numbers, got shape {a.shape}")
    if relation == "in":
        low, high = (float(number_array("bound of a constraint", end, ndim=0)) for end in bound)
        if math.isnan(low) or math.isnan(high) or low > high:
            raise InputError(f"constraint: expected (low, high) with low <= high, got {bound!r}")
        return Row(a, low, high, False)
    return _row(a, relation, float(finite_array("bound of a constraint", bound, 0)))


def _row(a: np.ndarray, relation: str, bound: float) -> Row:
    low = -math.inf if relation == "<=" else bound
    high = math.inf if relation == ">=" else bound
    return Row(a, low, high, relation == "==")


def _place(label: Any, d: int, names: tuple[str, ...] | None) -> int:
    """The number of a feature by its name or number."""
    if isinstance(label, str):
        if names is None:
            raise InputError(f"constraint: {label!r} is a name; pass names=, or bounds by name")
        if label not in names:
            raise InputError(f"constraint: expected names out of {list(names)}, got {label!r}")
        return names.index(label)
    if isinstance(label, bool) or not isinstance(label, int | np.integer) or not 0 <= label < d:
        raise InputError(f"constraint: expected features 0 to {d - 1} or names, got {label!r}")
    return int(label)


def read_matrix(name: str, A: Any, b_name: str, b: Any, relation: str, d: int) -> list[Row]:
    """The rows of `A x <= b`, or of an equation."""
    if (A is None) != (b is None):
        raise InputError(f"{name}: expected {name} and {b_name} together, got one of them")
    if A is None:
        return []
    matrix, bounds = finite_array(name, A, 2), np.atleast_1d(finite_array(b_name, b))
    if matrix.shape != (len(bounds), d):
        raise InputError(
            f"{name}: expected shape ({len(bounds)}, {d}) beside {len(bounds)} bounds, got "
            f"{matrix.shape}"
        )
    return [_row(a, relation, float(end)) for a, end in zip(matrix, bounds, strict=True)]
