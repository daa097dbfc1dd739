"""Boxes, and balls in a p-norm on chosen features, inside a valid domain; their arguments, checked.

Proofs: docs/mathematics.md, statements 13.1 and 13.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from gpcert.errors import InputError
from gpcert.numerics.arrays import (
    Array,
    Inputs,
    PerCell,
    PerCellAndFeature,
    PerRow,
    PerVector,
    Rows,
    Vectors,
    finite_array,
    number_array,
)
from gpcert.numerics.rounding import add_down, add_up
from gpcert.regions.base import Region
from gpcert.regions.cells import Cells
from gpcert.regions.norm_ball import NormConstraint


class BoxOrBall(Region):
    """A box, for a p-ball intersected with a norm constraint.

    Invariant: the real region lies inside `[lower, upper]` and contains every float point of
    `[inner_lower, inner_upper]` that satisfies `norm_constraint`. Where `lower == upper` the
    feature is fixed and both equal `center`.
    """

    is_box_or_ball = True

    @property
    def bounds_cells(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.norm_constraint is not None

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

    def linear_minimizer(self, g: Any) -> Annotated[np.ndarray, "... d"]:
        """A point that minimises `g.x`, g (d,) or (n, d), up to rounding, and satisfies `contains`;
        of a box that is a corner, with `center` where g is 0, and exact."""
        rows, single = self._points(g, "g")
        x = np.where(rows > 0, self.lower, np.where(rows < 0, self.upper, self.center))
        ball, free = self.norm_constraint, self.free
        if ball is not None:
            x[:, free] = ball.least(rows[:, free], self.lower[free], self.upper[free])
        x = self.project(x)
        return x[0] if single else x

    @property
    def _constraint(self) -> Any:
        """What knows the cells: the norm constraint, or the box."""
        return super() if self.norm_constraint is None else self.norm_constraint

    def contract(self, cells: Cells) -> tuple[Cells, PerCell]:
        return self._constraint.contract(cells)

    def linear_minimum(self, cells: Cells, g: Vectors) -> PerVector:
        return self._constraint.linear_minimum(cells, g)

    def squared_norm_maximum(self, cells: Cells, weights: Array, unit: Array | None) -> PerCell:
        return self._constraint.squared_norm_maximum(cells, weights, unit)

    def cell_centers(self, cells: Cells) -> PerCellAndFeature:
        return self._constraint.cell_centers(cells)


@dataclass(frozen=True, eq=False, init=False)
class Box(BoxOrBall):
    """`{x : lower <= x <= upper}`; a feature with equal ends is fixed.

    `Box(bounds)` takes both as the rows of one array or tensor (2, d), as BoTorch has them.

    >>> box = Box([0.0, 2.0], [1.0, 2.0])
    >>> box.center, box.free
    (array([0.5, 2. ]), array([0]))
    >>> bool(box.contains([0.25, 2.0]))
    True
    >>> Box(np.array([[0.0, 2.0], [1.0, 2.0]])).upper
    array([1., 2.])
    """

    kind = "box"

    lower: np.ndarray
    upper: np.ndarray

    def __init__(self, lower: ArrayLike, upper: ArrayLike | None = None) -> None:
        if upper is None:
            lower, upper = _bounds(lower)
        low, high = finite_array("lower", lower, 1), finite_array("upper", upper, 1)
        if low.shape != high.shape or low.size == 0:
            wanted, got = "lower and upper of the same length >= 1", f"{low.shape} and {high.shape}"
            raise InputError(f"Box: expected {wanted}, got shapes {got}")
        crossed = np.flatnonzero(low > high)
        if crossed.size:
            j = int(crossed[0])
            raise InputError(
                f"Box: expected lower <= upper, got lower[{j}] = {low[j]} > "
                f"upper[{j}] = {high[j]} (and {crossed.size - 1} more); the box is empty"
            )
        # the halves avoid overflow; clipping undoes what their rounding may do
        middle = np.clip(0.5 * low + 0.5 * high, low, high)
        self._set(lower=low, upper=high, center=middle, inner_lower=low, inner_upper=high)

    def sample(self, n: int, random_state: int | np.random.Generator | None = None) -> Inputs:
        u = np.random.default_rng(random_state).random((n, self.dim))
        return self.project((1.0 - u) * self.lower + u * self.upper)

    def describe(self) -> dict[str, Any]:
        return {"kind": "box", "lower": self.lower.tolist(), "upper": self.upper.tolist()}


def _bounds(bounds: Any) -> tuple[np.ndarray, np.ndarray]:
    """The rows of bounds (2, d).

    Of lists of two pairs nobody knows whether a pair is a corner or the ends of a feature.
    """
    values = finite_array("bounds", bounds)
    wanted = "Box: expected lower and upper, or bounds of shape (2, d), rows lower and upper"
    if values.ndim == 2 and len(values) != 2 and values.shape[1] == 2:
        raise InputError(
            f"{wanted}, got shape {values.shape}; if its rows are features pass its .T"
        )
    if values.ndim != 2 or len(values) != 2:
        raise InputError(f"{wanted}, got shape {values.shape} and no upper")
    if values.shape == (2, 2) and isinstance(bounds, list | tuple):
        raise InputError(
            f"{wanted}, got two pairs, which may be two corners or the ends of two features; pass "
            "Box(lower, upper), or an array with these rows"
        )
    return values[0], values[1]


@dataclass(frozen=True, eq=False, init=False)
class Ball(BoxOrBall):
    """`{x : ||(x - center)_F||_p <= radius, x_j = center_j off F, low <= x <= high}`.

    With one radius r_j per feature, `||((x_j - center_j) / r_j)_j||_p <= 1` over the features of F
    with r_j > 0, and the others are fixed: for p = infinity the box `|x_j - center_j| <= r_j`.

    Args:
        center: the point in the middle, (d,).
        radius: a finite number >= 0, or one per feature, (d,).
        norm: p >= 1, or infinity (the default; also `"inf"`).
        features: the features F that may move (indices or a mask); all by default.
        domain: `(low, high)`, numbers or arrays (d,), the valid inputs; they may be infinite.

    >>> ball = Ball([0.0, 1.0, 0.5], 0.25, norm=2, features=[0, 1], domain=(0.0, 1.0))
    >>> ball.lower, ball.upper
    (array([0.  , 0.75, 0.5 ]), array([0.25, 1.  , 0.5 ]))
    >>> ball.contains([[0.1, 0.9, 0.5], [0.25, 0.75, 0.5]])
    array([ True, False])
    >>> Ball([0.0, 1.0, 0.5], [0.25, 0.0, 0.1]).lower
    array([-0.25,  1.  ,  0.4 ])
    """

    kind = "ball"

    center: np.ndarray
    radius: float | np.ndarray
    norm: float
    features: np.ndarray
    domain: tuple[np.ndarray, np.ndarray] | None

    def __init__(
        self,
        center: ArrayLike,
        radius: ArrayLike,
        norm: float | str = math.inf,
        features: ArrayLike | None = None,
        domain: Any = None,
    ) -> None:
        x0 = finite_array("center", center, 1)
        if x0.size == 0:
            raise InputError("center: expected at least one feature, got an empty array")
        r, p = check_radius(radius, x0.size), check_norm(norm)
        index, ends = check_features(features, x0.size), check_domain(domain, x0)
        reach = np.zeros_like(x0)
        reach[index] = np.broadcast_to(r, x0.shape)[index]
        low, high = ends if ends is not None else (-math.inf, math.inf)
        self._set(center=x0, radius=r, norm=p, features=index, domain=ends)
        # outer: every real point is inside; inner: every float point is in the region
        self._set(
            lower=np.maximum(add_down(x0, -reach), low),
            upper=np.minimum(add_up(x0, reach), high),
            inner_lower=np.maximum(add_up(x0, -reach), low),
            inner_upper=np.minimum(add_down(x0, reach), high),
        )
        if not np.all(np.isfinite(self.lower) & np.isfinite(self.upper)):
            raise InputError(f"radius: {r!r} around this center overflows; give a finite domain")

    @property
    def norm_constraint(self) -> NormConstraint | None:
        """The constraint in the free features; None where the box says as much.

        With one free feature, or p infinite, `||y||_p = max |y_j|`. Radii that are all the same
        number are that number.
        """
        return None if self.norm == math.inf or self.free.size < 2 else self._ball

    @cached_property
    def _ball(self) -> NormConstraint:
        radii = np.broadcast_to(self.radius, self.center.shape)[self.free]
        if np.all(radii == radii[0]):
            return NormConstraint(self.center[self.free], float(radii[0]), self.norm)
        return NormConstraint(self.center[self.free], 1.0, self.norm, radii)

    def sample(self, n: int, random_state: int | np.random.Generator | None = None) -> Inputs:
        """Return n points (n, d), uniform in the ball, then projected to the domain."""
        rng, p, shape = np.random.default_rng(random_state), self.norm, (n, self.free.size)
        powers = None if self.norm_constraint is None else rng.gamma(1.0 + 1.0 / p, size=shape)
        y = rng.uniform(-1.0, 1.0, shape)
        if powers is not None:
            y = into_ball(y, powers, rng.exponential(size=n), p)
        x = np.tile(self.center, (n, 1))
        x[:, self.free] += np.broadcast_to(self.radius, self.center.shape)[self.free] * y
        return self.project(x)

    def describe(self) -> dict[str, Any]:
        """`{"kind": "ball", "center", "radius", "norm", "features", "domain"}`."""
        every = self.features.size == self.dim
        domain = self.domain and [[number_or_text(v) for v in end.tolist()] for end in self.domain]
        return {
            "kind": "ball",
            "center": self.center.tolist(),
            "radius": np.asarray(self.radius).tolist(),
            "norm": number_or_text(self.norm),
            "features": None if every else self.features.tolist(),
            "domain": domain,
        }


def into_ball(v: Rows, powers: Rows, further: PerRow, p: float) -> Rows:
    """Uniform points (n, f) of the unit p-ball, from V uniform in [-1, 1], G of Gamma(1 + 1/p) and
    standard exponential E (n,).

    Reason: `y_j = V G^(1/p)` has a density ~ `exp(-|y|^p)`, and `y / (sum |y_j|^p + E)^(1/p)` is
    then uniform (Barthe, Guédon, Mendelson and Naor, *A probabilistic approach to the geometry of
    the l_p^n-ball*, 2005, theorem 1).
    """
    total = np.sum(np.abs(v) ** p * powers, axis=1) + further
    return v * powers ** (1.0 / p) / (total ** (1.0 / p))[:, None]


def check_norm(norm: float | str, name: str = "norm") -> float:
    """The exponent p in [1, inf] of a norm given as a number or `"inf"`."""
    try:
        p = float("nan" if isinstance(norm, bool | bytes) else norm)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name}: expected a number >= 1 or 'inf', got {norm!r}") from error
    if not p >= 1.0:
        raise InputError(f"{name}: expected p >= 1 (below, the ball is not convex), got {norm!r}")
    return p


def check_radius(radius: Any, dim: int, name: str = "radius") -> float | Annotated[np.ndarray, "d"]:
    """A finite radius >= 0, or one per feature: an array (dim,)."""
    values = finite_array(name, radius)
    if values.shape not in {(), (dim,)}:
        raise InputError(
            f"{name}: expected a number or {dim} numbers, one per feature (0 keeps a feature "
            f"fixed), got shape {values.shape}"
        )
    if np.any(values < 0):
        raise InputError(f"{name}: expected numbers >= 0, got {radius!r}")
    values.setflags(write=False)
    return values if values.ndim else float(values)


def check_features(features: Any, dim: int) -> Annotated[Array, "i"]:
    """Sorted indices of the features that may move, from indices, a mask, or None for all."""
    if features is None:
        return np.arange(dim)
    wanted = f"features: expected a list of integers or a mask of length {dim}, got "
    if isinstance(features, str | bytes):
        raise InputError(
            f"{wanted}{features!r}; names are understood by certify and the other verbs, which "
            "know the model's"
        )
    if np.ma.is_masked(features):
        raise InputError(f"{wanted}masked entries")
    try:
        given = np.asarray(features)
    except (TypeError, ValueError) as error:
        raise InputError(f"{wanted}{features!r}") from error
    if given.dtype == bool and given.shape == (dim,):
        return np.flatnonzero(given)
    if given.shape == (0,) and given.dtype != bool:
        return np.arange(0)
    if given.ndim != 1 or not np.issubdtype(given.dtype, np.integer):
        raise InputError(f"{wanted}{features!r}")
    bad = given[(given < 0) | (given >= dim)]
    if bad.size:
        raise InputError(f"features: expected indices in 0..{dim - 1}, got {int(bad[0])}")
    index = np.unique(given)
    if index.size != given.size:
        raise InputError("features: expected distinct indices, got some twice")
    return index


def check_ends(
    name: str, pair: Any, shape: tuple[int, ...]
) -> tuple[Annotated[np.ndarray, "..."], Annotated[np.ndarray, "..."]]:
    """(low, high), one number each or as many as the shape says; infinite ones are allowed."""
    try:
        low, high = (np.array(np.broadcast_to(number_array(name, end), shape)) for end in pair)
    except (TypeError, ValueError) as error:
        shaped = f"numbers or arrays of shape {shape}" if shape else "two numbers"
        raise InputError(
            f"{name}: expected (low, high), {shaped}, got {pair!r}; {error}"
        ) from error
    if np.any(low > high):
        raise InputError(f"{name}: expected low <= high, got {pair!r}")
    return low, high


def check_domain(
    domain: Any, center: np.ndarray
) -> tuple[Annotated[np.ndarray, "d"], Annotated[np.ndarray, "d"]] | None:
    """The ends (d,), (d,) of the valid inputs; the centre is inside."""
    if domain is None:
        return None
    low, high = check_ends("domain", domain, center.shape)
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
