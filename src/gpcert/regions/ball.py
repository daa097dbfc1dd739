"""A ball in a p-norm, on chosen features, inside a valid domain.

Proofs: docs/mathematics.md, statements 13.1 and 13.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from gpcert.arrays import Inputs, finite_array
from gpcert.errors import InputError
from gpcert.regions.base import (
    NormConstraint,
    Region,
    check_domain,
    check_features,
    check_norm,
    check_radius,
    number_or_text,
)
from gpcert.regions.norms import add_down, add_up


@dataclass(frozen=True, eq=False, init=False)
class Ball(Region):
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

    center: np.ndarray
    radius: float | np.ndarray
    norm: float
    features: np.ndarray
    domain: tuple[np.ndarray, np.ndarray] | None
    lower: np.ndarray = field(repr=False)
    upper: np.ndarray = field(repr=False)
    inner_lower: np.ndarray = field(repr=False)
    inner_upper: np.ndarray = field(repr=False)

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
        bounds = {
            "center": x0,
            "features": index,
            # outer: every real point is inside; inner: every float point is in the region
            "lower": np.maximum(add_down(x0, -reach), low),
            "upper": np.minimum(add_up(x0, reach), high),
            "inner_lower": np.maximum(add_up(x0, -reach), low),
            "inner_upper": np.minimum(add_down(x0, reach), high),
        }
        if not np.all(np.isfinite(bounds["lower"]) & np.isfinite(bounds["upper"])):
            raise InputError(f"radius: {r!r} around this center overflows; give a finite domain")
        for name, value in bounds.items():
            value.setflags(write=False)
            object.__setattr__(self, name, value)
        for name, value in (("radius", r), ("norm", p), ("domain", ends)):
            object.__setattr__(self, name, value)

    @property
    def norm_constraint(self) -> NormConstraint | None:
        """The constraint in the free features; None where the box says as much.

        With one free feature, or p infinite, `||y||_p = max |y_j|`. Radii that are all the same
        number are that number.
        """
        if self.norm == math.inf or self.free.size < 2:
            return None
        return self._ball

    @cached_property
    def _ball(self) -> NormConstraint:
        radii = np.broadcast_to(self.radius, self.center.shape)[self.free]
        if np.all(radii == radii[0]):
            return NormConstraint(self.center[self.free], float(radii[0]), self.norm)
        return NormConstraint(self.center[self.free], 1.0, self.norm, radii)

    def sample(self, n: int, random_state: int | np.random.Generator | None = None) -> Inputs:
        """Return n points (n, d), uniform in the ball, then projected to the domain.

        Reason: with `y_j` of density ~ `exp(-|y|^p)` and E standard exponential,
        `y / (sum |y_j|^p + E)^(1/p)` is uniform in the unit p-ball (Barthe, Guédon, Mendelson and
        Naor, *A probabilistic approach to the geometry of the l_p^n-ball*, 2005, theorem 1), and
        `|y_j| = V G^(1/p)`, V uniform and G of Gamma(1 + 1/p), has that density.
        """
        rng = np.random.default_rng(random_state)
        x = np.tile(self.center, (n, 1))
        k = self.free.size
        if self.norm == math.inf or k < 2:
            y = rng.uniform(-1.0, 1.0, (n, k))
        else:
            p = self.norm
            powers = rng.gamma(1.0 + 1.0 / p, size=(n, k))
            v = rng.uniform(-1.0, 1.0, (n, k))
            total = np.sum(np.abs(v) ** p * powers, axis=1) + rng.exponential(size=n)
            y = v * powers ** (1.0 / p) / (total ** (1.0 / p))[:, None]
        x[:, self.free] += np.broadcast_to(self.radius, self.center.shape)[self.free] * y
        return self.project(x)

    def linear_minimizer(self, g: Any) -> Annotated[np.ndarray, "... d"]:
        """A point that minimises `g.x` over ball and domain, up to rounding.

        >>> Ball([0.0, 0.0], 5.0, norm=1).linear_minimizer([1.0, -2.0])
        array([0., 5.])
        """
        rows, single = self._points(g, "g")
        free, slopes = self.free, rows[:, self.free]
        x = np.tile(self.center, (rows.shape[0], 1))
        ball = self.norm_constraint
        if ball is None:
            x = np.where(rows > 0, self.lower, np.where(rows < 0, self.upper, x))
        else:
            x[:, free] = ball.least(slopes, self.lower[free], self.upper[free])
        x = self.project(x)
        return x[0] if single else x

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

    def _norm_holds(self, points: np.ndarray) -> np.ndarray:
        """The norm, rounded up, is at most the radius, or at most one feature moved."""
        ball = self.norm_constraint
        if ball is None:
            return np.ones(points.shape[0], dtype=bool)
        return ball.holds(points[:, self.free])

    def _shrink(self, points: np.ndarray) -> np.ndarray:
        """Drawn towards the centre until the norm is proved."""
        ball = self.norm_constraint
        if ball is not None:
            points[:, self.free] = ball.drawn_in(points[:, self.free])
        return points
