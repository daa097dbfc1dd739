"""What every region of inputs can do.

Proofs: docs/mathematics.md, statement 13.5.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np

from gpcert.errors import InputError
from gpcert.numerics.arrays import (
    Array,
    Backend,
    Inputs,
    PerRow,
    Rows,
    backend_from_name,
    finite_array,
)
from gpcert.numerics.rounding import POW_ULPS, U, dual_exponent, norm, norm_upper
from gpcert.regions.cells import Cells
from gpcert.regions.intersection import multiplier, response


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
        with np.errstate(over="ignore", invalid="ignore"):
            plain = self.unit is None
            size = norm_upper(y, self.p, 2) if plain else norm_upper(y / self.unit, self.p, 4)
        return (np.count_nonzero(y, axis=1) <= 1) | (size <= self.radius)

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
            slopes = g
            if self.unit is not None:  # up to a factor per row: the largest must not overflow
                largest = np.max(np.abs(g), axis=1, keepdims=True)
                slopes = g / np.where(largest > 0, largest, 1.0) * (self.unit / self.unit.max())
        return self.center + radii * unit_minimizer(slopes, a, b, self.p)


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
        ball = self.norm_constraint
        if ball is not None:
            inside &= ball.holds(points[:, self.free])
        return inside[0] if single else inside

    def project(self, X: Any) -> Annotated[np.ndarray, "... d"]:
        """Points of the region near X: X clipped to the box, then drawn towards `center`.

        Every returned point satisfies `contains`. Nearest in the l_2 sense for a box and for an
        l_2-ball inside its domain; otherwise near, but not the nearest.
        """
        points, single = self._points(X)
        points = np.clip(points, self.inner_lower, self.inner_upper)
        ball = self.norm_constraint
        if ball is not None:
            points[:, self.free] = ball.drawn_in(points[:, self.free])
        return points[0] if single else points

    @abstractmethod
    def sample(self, n: int, random_state: int | np.random.Generator | None = None) -> Inputs:
        """Return n random points (n, d) that satisfy `contains`."""

    def linear_minimizer(self, g: Any) -> Annotated[np.ndarray, "... d"]:
        """A point that minimises `g.x`, g (d,) or (n, d), up to rounding, and satisfies `contains`;
        of a box that is a corner, with `center` where g is 0, and exact.

        >>> from gpcert.regions import Ball, Box
        >>> Box([0, 0, 0], [1, 1, 1]).linear_minimizer([1.0, -1.0, 0.0])
        array([0. , 1. , 0.5])
        >>> Ball([0.0, 0.0], 5.0, norm=1).linear_minimizer([1.0, -2.0])
        array([0., 5.])
        """
        rows, single = self._points(g, "g")
        x = np.where(rows > 0, self.lower, np.where(rows < 0, self.upper, self.center))
        ball, free = self.norm_constraint, self.free
        if ball is not None:
            x[:, free] = ball.least(rows[:, free], self.lower[free], self.upper[free])
        x = self.project(x)
        return x[0] if single else x

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """A record that JSON can hold and `region_from_dict` turns back into the region."""

    def root(self, backend: str | Backend = "numpy") -> Cells:
        """The bounding box as one cell in the free coordinates, on a backend.

        >>> from gpcert.regions import Box
        >>> Box([0, 5, 1], [1, 5, 3]).root().upper
        array([[1., 3.]])
        """
        ends = (end[None, self.free] for end in (self.lower, self.upper))
        return Cells(self, *map(backend_from_name(backend).asarray, ends))

    def _set(self, **fields: Any) -> None:
        """Fields of the frozen record; arrays can only be read."""
        for name, value in fields.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)

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
