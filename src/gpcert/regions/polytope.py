"""Boxes with linear constraints: mixtures, budgets, orderings of features. Constraints are given by
name, by number, as arrays or as matrices.

Proofs: docs/mathematics.md, statements 13.10 to 13.12.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np

from gpcert.errors import InputError
from gpcert.numerics.arrays import (
    Array,
    Inputs,
    PerCell,
    PerVector,
    Vectors,
    finite_array,
    number_array,
)
from gpcert.numerics.rounding import (
    TINY,
    U,
    difference_down,
    difference_up,
    down,
    exact_dot,
    gamma,
    up,
)
from gpcert.regions.base import Region
from gpcert.regions.cells import Cells
from gpcert.regions.linear_constraints import (
    LinearConstraints,
    chord,
    directions,
    minimizer,
    point_inside,
    refined,
)
from gpcert.regions.shapes import Box, number_or_text

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


ROUNDS = 10
"""Passes over the constraints that tighten the bounding box."""

STEPS = 30
"""Steps of hit-and-run between two random points."""

GRID_BITS = 26
"""Bits of points whose sums are to be exact."""

THIN = 2.0**-20
"""Half-widths of the box around the centre that a polytope with an interior holds, in its own."""

LARGEST = 1e290
"""Largest size of the terms of a constraint."""


@dataclass(frozen=True, eq=False, init=False)
class Polytope(Region):
    """`{x : lower <= x <= upper, every constraint holds}`, in real arithmetic.

    A constraint is `(coefficients, relation, bound)`: coefficients by feature, `{"a": 1, "b": 2}`
    by name or `{0: 1, 1: 2}` by number, or as an array (d,); the relation is "<=", ">=", "==" or
    "in", whose bound is a pair `(low, high)`. Matrices are given as `A x <= b`, `A_eq x == b_eq`.

    An equation of floats may have no solution in floats. So "==" stands for
    `|a.x - b| <= slack`, a part of the definition of the region: all that is proved holds for this
    slightly thicker set, and with it for the exact one, and every attained value and
    counter-example lies in it. By default the slack is `4 (d + 4) 2^-53 (|b| + sum |a_j| |x_j|)`
    for the largest |x_j| of the bounds, which is what rounding makes of such a sum.

    Args:
        bounds: a `Box`, a pair (lower, upper), or `{name: (low, high)}`, which names the features.
        constraints: any number of them.
        A, b, A_eq, b_eq: further constraints as matrices.
        names: the features' names, in order; needed where constraints use them and bounds do not.
        slack: half-width of equality constraints; 0 for exactly the floats that satisfy them.

    >>> mixture = Polytope(([0, 0, 0], [1, 1, 0.5]), ({0: 1, 1: 1, 2: 1}, "==", 1.0))
    >>> bool(mixture.contains([0.25, 0.25, 0.5])), bool(mixture.contains([0.25, 0.25, 0.25]))
    (True, False)
    >>> budget = Polytope({"a": (0, 1), "b": (0, 1)}, ({"a": 1, "b": 1}, "<=", 1.0))
    >>> budget.contains([[1.0, 0.0], [1.0, 2.0**-52]]).tolist()
    [True, False]
    >>> str(budget)
    'polytope in 2 of 2 features, 1 linear constraint'
    """

    kind = "polytope"
    bounds_cells = True

    lower: np.ndarray
    upper: np.ndarray
    bounds: tuple[np.ndarray, np.ndarray]
    A: np.ndarray
    low: np.ndarray
    high: np.ndarray
    names: tuple[str, ...] | None

    def __init__(
        self,
        bounds: Any,
        *constraints: tuple[Any, str, Any],
        A: Any = None,
        b: Any = None,
        A_eq: Any = None,
        b_eq: Any = None,
        names: Sequence[str] | None = None,
        slack: float | None = None,
    ) -> None:
        low, high, labels = read_bounds(bounds, names)
        d = len(low)
        rows = [read_constraint(each, d, labels) for each in constraints]
        rows += read_matrix("A", A, "b", b, "<=", d) + read_matrix(
            "A_eq", A_eq, "b_eq", b_eq, "==", d
        )
        matrix = np.stack([row.a for row in rows]) if rows else np.zeros((0, d))
        largest = np.maximum(np.abs(low), np.abs(high))
        with np.errstate(over="ignore"):
            sizes = np.abs(matrix) @ largest
        if not np.all(sizes < LARGEST):
            raise InputError(f"constraints: expected terms below {LARGEST}; rescale the features")
        ends = [row.ends(size, d, slack) for row, size in zip(rows, sizes.tolist(), strict=True)]
        least, most = np.array(ends, dtype=float).reshape(-1, 2).T
        whole = LinearConstraints(matrix, least, most)
        box = Box(low, high)
        self._set(bounds=(box.lower, box.upper), A=matrix, low=least.copy(), high=most.copy())
        self._set(names=labels)
        lower, upper, empty = whole.contract(low[None], high[None], ROUNDS)
        if bool(empty[0]):
            raise InputError(
                "the region is empty: its constraints exclude every point of its bounds "
                "(proved by the intervals of their terms)"
            )
        self._set(lower=lower[0], upper=upper[0])
        self._set(center=point_inside(self))

    @classmethod
    def from_record(cls, **fields: Any) -> Polytope:
        A, ends = fields["A"], zip(fields["low"], fields["high"], strict=True)
        rows = [(a, "in", pair) for a, pair in zip(A, ends, strict=True)]
        bounds = (fields["lower"], fields["upper"])
        return cls(bounds, *rows, names=fields.get("names"))

    def describe(self) -> dict[str, Any]:
        """`{"kind": "polytope", "lower", "upper", "A", "low", "high", "names"}`."""
        ends = {
            name: [number_or_text(v) for v in getattr(self, name).tolist()]
            for name in ("low", "high")
        }
        return {
            "kind": self.kind,
            "lower": self.bounds[0].tolist(),
            "upper": self.bounds[1].tolist(),
            "A": self.A.tolist(),
            **ends,
            "names": None if self.names is None else list(self.names),
        }

    def summary(self) -> str:
        count = len(self.A)
        return f"{super().summary()}, {count} linear constraint{'' if count == 1 else 's'}"

    def renamed(self, names: Sequence[str]) -> Polytope:
        """The same region with the features in this order."""
        if self.names is None or tuple(names) == self.names:
            return self
        if sorted(names) != sorted(self.names):
            raise InputError(f"region: expected the features {list(names)}, got {list(self.names)}")
        order = [self.names.index(name) for name in names]
        record = self.describe()
        for name in ("lower", "upper"):
            record[name] = [record[name][j] for j in order]
        record["A"] = [[row[j] for j in order] for row in record["A"]]
        record["low"], record["high"] = self.low.tolist(), self.high.tolist()
        return Polytope.from_record(**{**record, "names": list(names)})

    # ---- points

    @cached_property
    def has_interior(self) -> bool:
        """Whether a box around the centre, `THIN` times as wide as the region, is proved to lie in
        it; never where a constraint is an equation."""
        half = THIN * (self.upper - self.lower)
        low, high = self.bounds
        inside = (down(self.center - low, 1) >= half) & (down(high - self.center, 1) >= half)
        size = np.abs(self.A) @ (np.abs(self.center) + half)
        reach = np.abs(self.A) @ half + up(gamma(self.dim + 8) * size + TINY, self.dim + 8)
        value, reach = self.A @ self.center, up(reach, self.dim + 8)
        least, most = np.clip(self.low, -1e300, None), np.clip(self.high, None, 1e300)
        held = (down(most - value, 2) >= reach) & (down(value - least, 2) >= reach)
        moved = np.any(self.A[:, self.free] != 0, axis=1)
        return bool(np.all(inside[self.free]) and np.all(held[moved]))

    @property
    def constraints(self) -> LinearConstraints:
        """All of them, on all features."""
        return LinearConstraints(self.A, self.low, self.high)

    def contains(self, X: Any) -> Annotated[Array, "..."]:
        """Whether each row of X (n, d), or the point X (d,), lies in the region: exactly."""
        points, single = self._points(X)
        low, high = self.bounds
        inside = np.all((points >= low) & (points <= high), axis=1)
        inside[inside] = self.constraints.holds(points[inside])
        return inside[0] if single else inside

    def project(self, X: Any) -> Annotated[np.ndarray, "... d"]:
        """Points of the region near X, not the nearest ones: moved along the constraints that they
        violate, then towards the centre."""
        points, single = self._points(X)
        points = self.restored(points, np.ones(self.dim))
        return points[0] if single else points

    def restored(self, X: Inputs, movable: np.ndarray) -> Inputs:
        """Points of the region near X (n, d) that differ from it where `movable` (d,) is 1, as far
        as there are any; the others are drawn to the centre."""
        X = self.constraints.repaired(X, self.lower, self.upper, movable)
        return self.pulled_in(self.coarse(X))

    def coarse(self, X: Inputs) -> Inputs:
        """Points X (n, d) as they are or, where the region does not contain them, on a grid, on
        which sums of few coefficients are exact."""
        out = ~np.asarray(self.contains(X))
        if not out.any():
            return X
        _, exponents = np.frexp(np.maximum(np.abs(self.lower), np.abs(self.upper)).max(initial=1.0))
        step = 2.0 ** float(exponents - GRID_BITS)
        rounded = np.clip(np.rint(X[out] / step) * step, self.lower, self.upper)
        X = X.copy()
        every = np.ones(self.dim)
        X[out] = self.constraints.repaired(rounded, self.lower, self.upper, every, spread=0)
        return X

    def pulled_in(self, points: Inputs) -> Annotated[np.ndarray, "n d"]:
        out = np.flatnonzero(~np.asarray(self.contains(points)))
        points = points.copy()
        for part in (1.0 - 2.0**-44, 1.0 - 2.0**-30, 0.999, 0.9, 0.5, 0.0):
            if len(out) == 0:
                break
            moved = self.center + part * (points[out] - self.center)
            ones = np.ones(self.dim)
            moved = self.coarse(self.constraints.repaired(moved, self.lower, self.upper, ones))
            held = np.asarray(self.contains(moved))
            points[out[held]] = moved[held]
            out = out[~held]
        points[out] = self.center
        return points

    def linear_minimizer(self, g: Any) -> Annotated[np.ndarray, "... d"]:
        """A point of the region that about minimises `g.x`, g (d,) or (n, d): a linear program of
        each row, whose solution is moved into the region."""
        rows, single = self._points(g, "g")
        x = np.stack([refined(self, minimizer(self, row)) for row in rows]) if len(rows) else rows
        x = self.project(x)
        return x[0] if single else x

    def sample(self, n: int, random_state: int | np.random.Generator | None = None) -> Inputs:
        """Return n random points (n, d) of the region, by hit-and-run walks (Smith, 1984)."""
        rng = np.random.default_rng(random_state)
        basis = directions(self)
        x = np.tile(self.center, (n, 1))
        for _ in range(STEPS if basis.size else 0):
            along = rng.standard_normal((n, len(basis))) @ basis
            least, most = chord(self, x, along)
            x = x + rng.uniform(least, most)[:, None] * along
        return self.project(x)

    # ---- cells

    @cached_property
    def _free_constraints(self) -> LinearConstraints:
        """The constraints on the free features, the others at their values: ends outwards."""
        fixed, free = self.fixed, self.free
        at = [exact_dot(a[fixed].tolist(), self.center[fixed].tolist()) for a in self.A]
        pairs = list(zip(self.low.tolist(), self.high.tolist(), at, strict=True))
        low = np.array([difference_down(low, by) for low, _, by in pairs])
        high = np.array([difference_up(high, by) for _, high, by in pairs])
        return LinearConstraints(self.A[:, free], low, high)

    def contract(self, cells: Cells) -> tuple[Cells, PerCell]:
        """See `LinearConstraints.contract`."""
        lower, upper, empty = self._free_constraints.contract(cells.lower, cells.upper)
        return cells.with_ends(lower, upper), empty

    def linear_minimum(self, cells: Cells, g: Vectors) -> PerVector:
        """See `LinearConstraints.linear_minimum`."""
        if len(self.A) == 0 or len(self.free) == 0:
            return super().linear_minimum(cells, g)
        return self._free_constraints.linear_minimum(cells, g)
