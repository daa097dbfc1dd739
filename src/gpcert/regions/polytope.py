"""Boxes with linear constraints: mixtures, budgets, orderings of features.

Proofs: docs/mathematics.md, statements 13.10 to 13.12.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
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
from gpcert.numerics.rounding import U, difference_down, difference_up, exact_dot
from gpcert.regions.base import Region
from gpcert.regions.cells import Cells
from gpcert.regions.linear_constraints import LinearConstraints
from gpcert.regions.shapes import Box, number_or_text

RELATIONS = ("<=", ">=", "==", "in")

ROUNDS = 10
"""Passes over the constraints that tighten the bounding box."""

STEPS = 30
"""Steps of hit-and-run between two random points."""

GRID_BITS = 26
"""Bits of points whose sums are to be exact."""

NEWTON_STEPS = 12
"""Steps of `_refined`."""

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
        low, high, labels = _read_bounds(bounds, names)
        d = len(low)
        rows = [_read_constraint(each, d, labels) for each in constraints]
        rows += _read_matrix("A", A, "b", b, "<=", d) + _read_matrix(
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
        self._set(center=_point_inside(self))

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
        return self.pulled_in(self._coarse(X))

    def _coarse(self, X: Inputs) -> Inputs:
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
            moved = self._coarse(self.constraints.repaired(moved, self.lower, self.upper, ones))
            held = np.asarray(self.contains(moved))
            points[out[held]] = moved[held]
            out = out[~held]
        points[out] = self.center
        return points

    def linear_minimizer(self, g: Any) -> Annotated[np.ndarray, "... d"]:
        """A point of the region that about minimises `g.x`, g (d,) or (n, d): a linear program of
        each row, whose solution is moved into the region."""
        rows, single = self._points(g, "g")
        x = np.stack([_refined(self, _solved(self, row)) for row in rows]) if len(rows) else rows
        x = self.project(x)
        return x[0] if single else x

    def sample(self, n: int, random_state: int | np.random.Generator | None = None) -> Inputs:
        """Return n random points (n, d) of the region, by hit-and-run walks (Smith, 1984)."""
        rng = np.random.default_rng(random_state)
        basis = _directions(self)
        x = np.tile(self.center, (n, 1))
        for _ in range(STEPS if basis.size else 0):
            along = rng.standard_normal((n, len(basis))) @ basis
            least, most = _chord(self, x, along)
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


class _Row(NamedTuple):
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


def _read_bounds(
    bounds: Any, names: Sequence[str] | None
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...] | None]:
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


def _read_constraint(given: Any, d: int, names: tuple[str, ...] | None) -> _Row:
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
        return _Row(a, low, high, False)
    return _row(a, relation, float(finite_array("bound of a constraint", bound, 0)))


def _row(a: np.ndarray, relation: str, bound: float) -> _Row:
    low = -math.inf if relation == "<=" else bound
    high = math.inf if relation == ">=" else bound
    return _Row(a, low, high, relation == "==")


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


def _read_matrix(name: str, A: Any, b_name: str, b: Any, relation: str, d: int) -> list[_Row]:
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


# ---- linear programs: what they return is checked, never trusted


def _program(region: Polytope, g: np.ndarray, margin: bool) -> Any:
    """SciPy's result of `min g.x` over the region; with `margin`, of the largest s <= 1 such that
    every constraint and bound that is no equation holds with s to spare (in its own size)."""
    from scipy.optimize import linprog

    A, low, high = region.A, region.low, region.high
    least, most = region.bounds if margin else (region.lower, region.upper)
    width = most - least
    spans = np.abs(A) @ width
    thin = (high - low) <= 1e-9 * spans
    one = (~thin)[:, None] * spans[:, None] if margin else np.zeros((len(A), 0))
    upper = np.isfinite(high)
    lower = np.isfinite(low)
    blocks = [np.hstack([A, one])[upper], np.hstack([-A, one])[lower]]
    ends = [high[upper], -low[lower]]
    cost, bounds = g, list(zip(least.tolist(), most.tolist(), strict=True))
    if margin:
        eye = np.eye(len(g))
        blocks += [np.hstack([eye, 0.5 * width[:, None]]), np.hstack([-eye, 0.5 * width[:, None]])]
        ends += [most, -least]
        cost, bounds = np.append(0.0 * g, -1.0), [*bounds, (None, 1.0)]
    return linprog(cost, np.concatenate(blocks), np.concatenate(ends), bounds=bounds)


def _solved(region: Polytope, g: np.ndarray) -> np.ndarray:
    """About where `g.x` is least; the centre where the program was not solved."""
    largest = float(np.max(np.abs(g), initial=0.0))
    if largest == 0.0 or not math.isfinite(largest):
        return region.center
    result = _program(region, g / largest, margin=False)
    return region.center if result.x is None else np.asarray(result.x)


def _point_inside(region: Polytope) -> np.ndarray:
    """A point that the region contains; an `InputError` with a proof where there is none.

    The proof: multipliers of a linear program for which the right side of Statement 13.10 with
    g = 0 is above 0.
    """
    middle = np.clip(0.5 * region.lower + 0.5 * region.upper, region.lower, region.upper)
    result = _program(region, np.zeros(region.dim), margin=True)
    start = middle if result.x is None else np.asarray(result.x)[: region.dim]
    ones = np.ones(region.dim)
    for point in (start, middle):
        near = region.constraints.repaired(point[None], region.lower, region.upper, ones)
        for each in (
            near[0],
            np.round(near[0], 12),
            _refined(region, point),
            region._coarse(near)[0],
        ):
            if bool(region.contains(each)):
                return each
    if _proved_empty(region, result):
        raise InputError(
            "the region is empty: no point of its bounds satisfies all constraints (proved by "
            "multipliers of the constraints whose sum excludes it)"
        )
    raise InputError(
        "the region may be empty: neither a point that satisfies all constraints exactly was "
        "found, nor a proof that there is none; of equations that no floats satisfy exactly, give "
        "a larger slack="
    )


def _refined(region: Polytope, x: np.ndarray) -> np.ndarray:
    """About the nearest point of the region to x, a solver's point that misses it by a little:
    Newton's steps onto the constraints that are tight there, away from their ends."""
    A, low, high = region.A, region.low, region.high
    span = np.abs(A) @ (region.upper - region.lower) + 1e-300
    margin = np.minimum(0.25 * (high - low), 1e-13 * span)
    movable = region.lower < region.upper
    x = np.clip(x, region.lower, region.upper)
    for _ in range(NEWTON_STEPS):
        if bool(region.contains(x)):
            break
        value = A @ x
        gap = np.clip(value, low + margin, high - margin) - value
        tight = (gap != 0) | (np.minimum(high - value, value - low) < 1e-6 * span)
        step = np.linalg.lstsq(A[tight][:, movable], gap[tight], rcond=1e-12)[0]
        moved = x.copy()
        moved[movable] += step
        outside = (moved < region.lower) | (moved > region.upper)
        x = np.clip(moved, region.lower, region.upper)
        movable = movable & ~outside if np.any(movable & ~outside) else movable
    return x


def _proved_empty(region: Polytope, result: Any) -> bool:
    """Whether the multipliers of the program prove that the region has no point."""
    if result.x is None:
        return False
    marginals = np.asarray(result.ineqlin.marginals)
    upper, lower = np.isfinite(region.high), np.isfinite(region.low)
    y = np.zeros(len(region.A))
    y[upper] += marginals[: upper.sum()]
    y[lower] -= marginals[upper.sum() : upper.sum() + lower.sum()]
    units = np.eye(len(region.A))
    return any(_excess(region, each) > 0 for each in (y, *units, *-units))


def _excess(region: Polytope, y: np.ndarray) -> Fraction:
    """The right side of Statement 13.10 with g = 0 over all of the bounds, exactly; multipliers of
    infinite ends count as 0."""
    total = Fraction(0)
    y = np.where(np.isfinite(np.where(y > 0, region.low, region.high)), y, 0.0)
    for j, (low, high) in enumerate(zip(*region.bounds, strict=True)):
        slope = -exact_dot(region.A[:, j].tolist(), y.tolist())
        total += min(slope * Fraction(float(low)), slope * Fraction(float(high)))
    for weight, low, high in zip(
        y.tolist(), region.low.tolist(), region.high.tolist(), strict=True
    ):
        if weight:
            total += Fraction(weight) * Fraction(low if weight > 0 else high)
    return total


def _directions(region: Polytope) -> np.ndarray:
    """(k, d): a basis of the directions in which the region may have a width, in units of its
    box's widths."""
    width = region.upper - region.lower
    free = np.flatnonzero(width > 0)
    spans = np.abs(region.A) @ width
    thin = (region.high - region.low) <= 1e-9 * np.maximum(spans, 1e-300)
    rows = region.A[thin][:, free] * width[free]
    if len(free) == 0:
        return np.zeros((0, region.dim))
    _, sizes, right = (
        np.linalg.svd(rows, full_matrices=True)
        if len(rows)
        else (0, np.zeros(0), np.eye(len(free)))
    )
    rank = int(np.sum(sizes > 1e-12 * max(sizes.max(initial=0.0), 1e-300)))
    basis = np.zeros((len(free) - rank, region.dim))
    basis[:, free] = right[rank:] * width[free]
    return basis


def _chord(region: Polytope, x: Inputs, along: Inputs) -> tuple[np.ndarray, np.ndarray]:
    """Ends (n,), (n,) of the steps from x along directions that stay in the region, about."""
    A = np.concatenate([region.A, np.eye(region.dim)])
    low = np.concatenate([region.low, region.lower])
    high = np.concatenate([region.high, region.upper])
    value, slope = x @ A.T, along @ A.T
    flat = np.abs(slope) <= 1e-12 * (np.abs(along) @ np.abs(A).T)
    with np.errstate(all="ignore"):
        first, second = (low - value) / slope, (high - value) / slope
    least = np.where(flat, -np.inf, np.minimum(first, second)).max(axis=1)
    most = np.where(flat, np.inf, np.maximum(first, second)).min(axis=1)
    least, most = np.nan_to_num(least), np.nan_to_num(most)
    return np.minimum(least, 0.0), np.maximum(most, 0.0)
