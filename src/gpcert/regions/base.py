"""What every region of inputs can do, and the checks of its words: norm, radius, features, domain.

Proofs: docs/mathematics.md, statement 13.5.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np

from gpcert.arrays import (
    Array,
    Backend,
    Inputs,
    PerRow,
    Rows,
    backend_from_name,
    finite_array,
    number_array,
)
from gpcert.errors import InputError
from gpcert.regions.cells import Cells
from gpcert.regions.intersection import multiplier, response
from gpcert.regions.norms import POW_ULPS, dual_exponent, norm, norm_upper
from gpcert.rounding import U


class NormConstraint(NamedTuple):
    """`||(x_free - center) / unit||_p <= radius`, p finite, two free features or more, radius > 0.

    Of many points x, `center` is (f,) or, where each has a ball of its own, (n, f).
    `unit` (f,) is positive, one number per free feature, and then the radius is 1 (what underflows
    in a quotient or a product with a unit is then far below it); None stands for units of 1.
    """

    center: Any
    radius: float
    p: float
    unit: np.ndarray | None = None

    def holds(self, x: Rows) -> PerRow:
        """(n,) whether x (n, f) is proved to lie in the ball, or has moved in one feature at most.

        Of one moved feature the inner interval is the exact answer. The two further roundings
        are those of `x - x0`, and there are two of a quotient. Where there are units the radius is
        1: quotients that underflow lose `f 2^-1074` together, less than `norm_upper` adds to a
        norm above 1/2, and a smaller one leaves room for it.
        """
        y = x - self.center
        alone = np.count_nonzero(y, axis=1) <= 1
        if self.unit is None:
            return alone | (norm_upper(y, self.p, 2) <= self.radius)
        with np.errstate(over="ignore", invalid="ignore"):
            return alone | (norm_upper(y / self.unit, self.p, 4) <= self.radius)

    def drawn_in(self, x: Rows) -> Rows:
        """Points x (n, f) with `x - x0` scaled until the norm is proved; the centre itself is the
        last resort.

        Points of a box that holds the centre stay in it, as it is convex; each sum `x0 + y` is
        stepped towards x0 where its rounding moved it outwards.
        """
        x, x0 = x.copy(), np.broadcast_to(self.center, x.shape)
        slack = 8.0 * (x.shape[1] + 2 * POW_ULPS + 48) * U  # twice what norm_upper adds
        for _ in range(12):
            out = ~self.holds(x)
            if not np.any(out):
                return x
            y = x[out] - x0[out]
            size = norm(y if self.unit is None else y / self.unit, self.p)
            y *= np.minimum(1.0, self.radius / size)[:, None] * (1.0 - slack)
            moved = x0[out] + y
            outwards = np.abs(moved - x0[out]) > np.abs(y)
            x[out] = np.where(outwards, np.nextafter(moved, x0[out]), moved)
            slack *= 4.0
        return np.where(self.holds(x)[:, None], x, x0)

    def least(self, g: Rows, low: np.ndarray, high: np.ndarray) -> Rows:
        """About the points (n, f) of the balls, between `low` and `high` around their centres, that
        minimise `g.x`.

        Reason: for p = 1 spend the radius on the largest `|g_j|` first (a fractional knapsack);
        else the minimiser of the Lagrangian at the multiplier where the norm is the radius.
        """
        # in the coordinates y = (x - center) / radii the slopes are g * radii
        radii = self.radius if self.unit is None else self.unit
        with np.errstate(over="ignore"):
            a, b = (low - self.center) / radii, (high - self.center) / radii
            slopes = g if self.unit is None else _scaled_slopes(g, self.unit)
        return self.center + radii * unit_minimizer(slopes, a, b, self.p)


def _scaled_slopes(g: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """`g * unit` up to a factor per row, which keeps the largest product from overflowing."""
    largest = np.max(np.abs(g), axis=1, keepdims=True)
    return g / np.where(largest > 0, largest, 1.0) * (unit / unit.max())


def unit_minimizer(g: Rows, a: np.ndarray, b: np.ndarray, p: float) -> Rows:
    """Minimiser of `g.y` over `a <= y <= b`, `||y||_p <= 1`, where a <= 0 <= b; each (f,) or as
    g (n, f)."""
    if p == 1.0:
        cap = np.minimum(np.where(g > 0, -a, b), 1.0) * (g != 0)
        order = np.argsort(-np.abs(g), axis=1, kind="stable")
        spent = np.cumsum(np.take_along_axis(cap, order, axis=1), axis=1)
        before = np.empty_like(spent)
        np.put_along_axis(before, order, spent, axis=1)
        return -np.sign(g) * np.clip(1.0 - (before - cap), 0.0, cap)
    size = norm(g, dual_exponent(p))
    unit = g / np.where(size > 0, size, 1.0)[:, None]
    low = np.broadcast_to(np.maximum(a, -1.0), g.shape)
    high = np.broadcast_to(np.minimum(b, 1.0), g.shape)
    with np.errstate(over="ignore"):  # a step to infinity is clipped
        return response(unit, multiplier(unit, low, high, p), low, high, p)


class Region(ABC):
    """A compact set of inputs: a box, for a p-ball intersected with a norm constraint.

    Invariant: the real region lies inside `[lower, upper]` and contains every float point of
    `[inner_lower, inner_upper]` that satisfies `norm_constraint`. Where `lower == upper` the
    feature is fixed and both equal `center`. Regions are frozen records of host arrays.
    """

    center: np.ndarray
    """A point of the region, (d,)."""
    lower: np.ndarray
    """Outer bounding box, lower end, (d,)."""
    upper: np.ndarray
    """Outer bounding box, upper end, (d,)."""
    inner_lower: np.ndarray
    """Smallest floats that satisfy the interval constraints, (d,)."""
    inner_upper: np.ndarray
    """Largest floats that satisfy the interval constraints, (d,)."""

    @property
    def dim(self) -> int:
        """Number of features, d."""
        return int(self.center.shape[0])

    @cached_property
    def free(self) -> Annotated[Array, "i"]:
        """Indices of the features that may move."""
        return np.flatnonzero(self.lower < self.upper)

    @cached_property
    def fixed(self) -> Annotated[Array, "i"]:
        """Indices of the features that keep their value in `center`."""
        return np.flatnonzero(self.lower >= self.upper)

    @property
    def norm_constraint(self) -> NormConstraint | None:
        """The norm constraint that the bounding box does not already express, if any."""
        return None

    def contains(self, X: Any) -> Annotated[Array, "..."]:
        """Whether each row of X (n, d), or the point X (d,), is proved to lie in the region.

        The comparison with the inner interval is exact; a norm is rounded up before it is compared,
        so a point within some 100 ulp of a p-ball's sphere may be answered False.
        """
        points, single = self._points(X)
        inside = np.all((points >= self.inner_lower) & (points <= self.inner_upper), axis=1)
        inside &= self._norm_holds(points)
        return inside[0] if single else inside

    def project(self, X: Any) -> Annotated[np.ndarray, "... d"]:
        """Points of the region near X: X clipped to the box, then drawn towards `center`.

        Every returned point satisfies `contains`. Nearest in the l_2 sense for a box and for an
        l_2-ball inside its domain; otherwise near, but not the nearest.
        """
        points, single = self._points(X)
        points = np.clip(points, self.inner_lower, self.inner_upper)
        points = self._shrink(points)
        return points[0] if single else points

    @abstractmethod
    def sample(self, n: int, random_state: int | np.random.Generator | None = None) -> Inputs:
        """Return n random points (n, d) that satisfy `contains`."""

    @abstractmethod
    def linear_minimizer(self, g: Any) -> Annotated[np.ndarray, "... d"]:
        """A point that minimises `g.x` approximately and satisfies `contains`; g (d,) or (n, d)."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """A record that JSON can hold and `region_from_dict` turns back into the region."""

    def root(self, backend: str | Backend = "numpy") -> Cells:
        """The bounding box as one cell in the free coordinates, on a backend.

        >>> from gpcert.regions import Box
        >>> Box([0, 5, 1], [1, 5, 3]).root().upper
        array([[1., 3.]])
        """
        place = backend_from_name(backend)
        lower, upper = self.lower[self.free], self.upper[self.free]
        return Cells(self, place.asarray(lower[None, :]), place.asarray(upper[None, :]))

    def _norm_holds(self, points: np.ndarray) -> np.ndarray:
        """Whether the norm constraint is proved at points of the inner box."""
        return np.ones(points.shape[0], dtype=bool)

    def _shrink(self, points: np.ndarray) -> np.ndarray:
        """Points of the inner box drawn towards the centre until the norm constraint is proved."""
        return points

    def _points(self, X: Any, name: str = "X") -> tuple[np.ndarray, bool]:
        """X as rows (n, d), and whether it was a single point."""
        points = finite_array(name, X)
        single = points.ndim == 1
        rows = points[None, :] if single else points
        if rows.ndim != 2 or rows.shape[1] != self.dim:
            raise InputError(
                f"{name}: expected shape ({self.dim},) or (n, {self.dim}), got {points.shape}"
            )
        return rows, single


def check_norm(norm: float | str, name: str = "norm") -> float:
    """The exponent p in [1, inf] of a norm given as a number or `"inf"`."""
    try:
        p = float("nan" if isinstance(norm, bool | bytes) else norm)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name}: expected a number >= 1 or 'inf', got {norm!r}") from error
    if not p >= 1.0:
        raise InputError(f"{name}: expected p >= 1 (below, the ball is not convex), got {norm!r}")
    return p


def check_radius(radius: Any, dim: int) -> float | Annotated[np.ndarray, "d"]:
    """A finite radius >= 0, or one per feature: an array (dim,)."""
    values = finite_array("radius", radius)
    if values.shape not in {(), (dim,)}:
        raise InputError(
            f"radius: expected a number or {dim} numbers, one per feature (0 keeps a feature "
            f"fixed), got shape {values.shape}"
        )
    if np.any(values < 0):
        raise InputError(f"radius: expected numbers >= 0, got {radius!r}")
    if values.ndim == 0:
        return float(values)
    values.setflags(write=False)
    return values


def check_features(features: Any, dim: int) -> Annotated[Array, "i"]:
    """Sorted indices of the features that may move, from indices, a mask, or None for all."""
    if features is None:
        return np.arange(dim)
    if isinstance(features, str | bytes):
        raise InputError(
            f"features: expected a list of numbers or a mask, got {features!r}; names are "
            "understood by certify and the other verbs, which know the model's"
        )
    if np.ma.is_masked(features):
        raise InputError("features: expected a list of integers or a mask, got masked entries")
    try:
        given = np.asarray(features)
    except (TypeError, ValueError) as error:
        raise InputError(f"features: expected a list of integers, got {features!r}") from error
    if given.dtype == bool:
        if given.shape != (dim,):
            raise InputError(f"features: expected a mask of shape ({dim},), got {given.shape}")
        return np.flatnonzero(given)
    if given.shape == (0,):
        return np.arange(0)
    if given.ndim != 1 or not np.issubdtype(given.dtype, np.integer):
        raise InputError(
            f"features: expected a list of integers or a mask of length {dim}, got {features!r}"
        )
    bad = given[(given < 0) | (given >= dim)]
    if bad.size:
        raise InputError(f"features: expected indices in 0..{dim - 1}, got {int(bad[0])}")
    index = np.unique(given)
    if index.size != given.size:
        raise InputError("features: expected distinct indices, got some twice")
    return index


def check_domain(
    domain: Any, center: np.ndarray
) -> tuple[Annotated[np.ndarray, "d"], Annotated[np.ndarray, "d"]] | None:
    """The ends (d,), (d,) of the valid inputs; infinite ends are allowed, the centre is inside."""
    if domain is None:
        return None
    try:
        low, high = (
            np.array(np.broadcast_to(number_array("domain", end), center.shape)) for end in domain
        )
    except (TypeError, ValueError) as error:
        raise InputError(
            f"domain: expected (low, high), numbers or arrays of shape {center.shape}, got "
            f"{domain!r}; {error}"
        ) from error
    if np.any(np.isnan(low)) or np.any(np.isnan(high)):
        raise InputError("domain: expected numbers, got NaN; use -inf or inf for an open side")
    for side, excess in (("below", low - center), ("above", center - high)):
        if np.any(excess > 0):
            j = int(np.argmax(excess))
            raise InputError(
                f"center: expected inside the domain [{low[j]}, {high[j]}], got "
                f"center[{j}] = {center[j]}, {side} it by {excess[j]}; "
                "move the point or widen the domain"
            )
    return low, high


def number_or_text(value: float) -> float | str:
    """The number, or its name where JSON has none for it.

    >>> number_or_text(2.5), number_or_text(-math.inf)
    (2.5, '-inf')
    """
    return value if math.isfinite(value) else str(value)
