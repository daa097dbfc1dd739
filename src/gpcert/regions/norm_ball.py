"""The part of a box that lies in a p-norm ball: membership, projection, and bounds over cells.

Proofs: docs/mathematics.md, statements 13.2 to 13.5.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpcert.numerics.arrays import (
    Array,
    PerCell,
    PerCellAndFeature,
    PerRow,
    PerVector,
    Rows,
    Vectors,
    namespace,
)
from gpcert.numerics.rounding import (
    POW_ULPS,
    TINY,
    U,
    dual_exponent,
    nonnegative,
    norm,
    norm_lower,
    norm_upper,
    up,
)
from gpcert.regions import intersection
from gpcert.regions.cells import Cells, box_maximum
from gpcert.regions.intersection import BoxAndBall, multiplier, response


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

    # ---- bounds over cells

    def cell_centers(self, cells: Cells) -> PerCellAndFeature:
        """The midpoints; but where the ball is smaller than a cell, the cell's point nearest to the
        ball's centre: all of the region is then close to it (a domain that cuts off one side would
        otherwise move the midpoint away)."""
        xp = namespace(cells.lower)
        f = cells.lower.shape[1]
        reach = self.radius * f ** max(0.0, 0.5 - 1.0 / self.p)  # of the ball, in the l_2 norm
        widths = cells.widths if self.unit is None else cells.widths / cells.placed(self.unit)
        # one ratio above 1 decides: larger ones are cut before they could overflow
        ratio = 0.5 * xp.minimum(widths, xp.full_like(widths, 4.0 * reach)) / reach
        large = xp.sum(ratio**2, axis=-1) > 1.0
        nearest = cells.clipped(cells.placed(self.center))
        return xp.where(large[:, None], nearest, cells.middle)

    def linear_minimum(self, cells: Cells, g: Vectors) -> PerVector:
        """Certified lower bound of `min g.(x - c)` over the part of each cell in the ball, by the
        dual of `gpcert.regions.intersection`: no gap, by strong duality, where the cell meets the
        ball's interior. It is searched, to a relative 1e-13 in its multiplier, only where neither
        constraint alone decides."""
        both, batched = self._box_and_ball(cells), g.ndim == 3
        xp = namespace(g)
        f = g.shape[-1]

        def rows(a: Array) -> Array:
            return xp.reshape(xp.broadcast_to(a[:, None, :] if batched else a, g.shape), (-1, f))

        flat = both._replace(low=rows(both.low), high=rows(both.high), offset=rows(both.offset))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            best = intersection.ball_minimum(xp.reshape(g, (-1, f)), flat)
        return xp.reshape(best, g.shape[:-1])

    def squared_norm_maximum(self, cells: Cells, weights: Array, unit: Array | None) -> PerCell:
        """The least of the bounds of `gpcert.regions.intersection`: box, split at the best
        threshold (p <= 2) or at theta = weights (p > 2), triangle inequality; the latter two in the
        smallest unit, a ball having one for all features."""
        xp, w = namespace(cells.lower), weights
        best = box_maximum(w, cells.half if unit is None else cells.half / unit)
        both = self._box_and_ball(cells)
        with np.errstate(over="ignore", invalid="ignore"):
            if unit is not None and len(unit):
                least = xp.min(unit)
                w = xp.where(w > 0, up(w * (least / unit) ** 2, 1), w)
                both = both.in_lengths_of(least)
                if both.unit is not None and bool(xp.any(both.unit < TINY)):
                    return best  # units that underflow would no longer be those of the ball
            plain = xp.broadcast_to(w, cells.half.shape)
            theta = intersection.threshold(w, both) if both.p <= 2.0 else plain
            split = intersection.split_maximum(w, theta, both)
            for other in (split, intersection.triangle_maximum(w, both)):
                best = xp.where(other < best, other, best)  # an overflow to NaN improves nothing
        return nonnegative(best)  # a cell that misses the ball may have less than nothing

    def contract(self, cells: Cells) -> tuple[Cells, PerCell]:
        """The cells as they are, and which are proved to miss the ball.

        Reason: the distance of the ball's centre from the cell, `||max(l - x0, x0 - u, 0)||_p`
        (over the units, where there are some), rounded down, is above the radius. The differences
        carry one rounding each, the quotients another; with units the radius is 1, and what
        underflows in the quotients, `f 2^-1074`, is far below what `norm_lower` takes off a norm
        above 1.
        """
        xp = namespace(cells.lower)
        x0 = cells.placed(self.center)
        gap = xp.clip(xp.maximum(cells.lower - x0, x0 - cells.upper), 0.0, None)
        if self.unit is not None:
            return cells, norm_lower(gap / cells.placed(self.unit), self.p, 4) > self.radius
        return cells, norm_lower(gap, self.p, 2) > self.radius

    def _box_and_ball(self, cells: Cells) -> BoxAndBall:
        # differences of floats are off by at most a factor 1 + U: see `Cells.half`
        low = (cells.lower - cells.center) * (1.0 + 4.0 * U)
        high = (cells.upper - cells.center) * (1.0 + 4.0 * U)
        offset = cells.placed(self.center) - cells.center
        unit = None if self.unit is None else cells.placed(self.unit)
        return BoxAndBall(low, high, offset, self.radius, self.p, unit)


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
