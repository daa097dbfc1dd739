"""Links smoothed by a Gaussian: certified minima along a line from curvature bounds.

Proofs: docs/mathematics.md, statements 8.1 and 8.4.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from gpcert.arrays import Array, PerCell, Reals, namespace
from gpcert.likelihoods.base import BinaryLikelihood
from gpcert.likelihoods.segments import check_segment, mean_lower, monotone_minimum
from gpcert.rounding import TINY, down, nonnegative, up

PIECES = 8
"""Pieces a segment is cut into; the slack of a bend falls with its square."""

NEGLIGIBLE_BEND = 1e-6
"""Bends below which a segment is not cut: its bound loses at most a quarter of this probability."""

SMOOTHING_BOUNDS = (0.39895, 0.24198, 0.39895, 0.5506)
"""`e_n >= sup |phi^(n-1)|`, n = 1..4 (Statement 8.1)."""


class SmoothedLink(BinaryLikelihood):
    """`F(mu, v) = E link(mu + sqrt(v) t)` for a smooth link that rises from 0 to `total` <= 1.

    The link's derivative must be symmetric and unimodal (see `monotone_minimum`).
    """

    link_bounds: ClassVar[tuple[float, float, float, float]]
    """`c_n >= sup |link^(n)|`, n = 1..4."""

    def derivative_bound(self, order: int, v: Reals) -> Reals:
        """Upper bound of `|d^n F / dmu^n|` at variances >= v, for n = `order` in 1..4.

        Statement 8.1: `|F_n| <= min(c_n, e_n v^(-n/2))`, as the derivatives may go to the link or
        all but one to the normal density.
        """
        xp = namespace(v)
        # e_n > c_n at v = 1, so cutting v at 1 changes nothing and avoids the overflow of v^-2
        shrink = 1.0 / xp.clip(v, 1.0, None)
        power = xp.sqrt(shrink) if order % 2 else xp.ones_like(shrink)
        for _ in range(order // 2):
            power = power * shrink
        bound = up(SMOOTHING_BOUNDS[order - 1] * power, 6)
        return xp.clip(bound, None, self.link_bounds[order - 1])

    def line_minimum(self, alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """The better of the curvature bound, on `PIECES` pieces where the segment bends visibly,
        and the monotone bound.

        Statement: let `G(v) = F(alpha + beta v, v)`. If `G'' <= K` on a piece of length h, with
        values A <= B at its ends in some order, then there `G >= A - max(P - (B - A), 0)^2 / (4 P)`
        with `P = K h^2 / 2`; at worst `A - K h^2 / 8`.
        Reason: G minus its chord is >= `-P t (1 - t)`, t in [0, 1]; lower bounds may stand for A
        and B. `G'' = beta^2 F_2 + beta F_3 + F_4 / 4` (Statement 8.4).
        """
        segments = check_segment(alpha, beta, v_low, v_high)
        xp = namespace(segments[0])
        shape = segments[0].shape
        alpha, beta, v_low, v_high = (xp.reshape(part, (-1,)) for part in segments)
        found, bends = self._chord_minimum(alpha, beta, xp.stack([v_low, v_high], axis=-1))
        bent = bends > NEGLIGIBLE_BEND
        if bool(xp.any(bent)):
            some = tuple(part[bent] for part in (alpha, beta, v_low, v_high))
            found[bent], _ = self._chord_minimum(some[0], some[1], split_segment(*some[2:]))
        found = xp.maximum(found, monotone_minimum(self, alpha, beta, v_low, v_high))
        return nonnegative(xp.reshape(found, shape))

    def _chord_minimum(self, alpha: Array, beta: Array, v: Array) -> tuple[Array, Array]:
        """(n,) the bound of `line_minimum` from pieces between the points v (n, k), and the largest
        of their bends P."""
        xp = namespace(v)
        mean = mean_lower(alpha[:, None], beta[:, None], v)
        ends, _ = self.enclose(mean, v)
        first, second = ends[..., :-1], ends[..., 1:]
        half_bend = self._half_bend(beta[:, None], v, mean)
        gap = nonnegative(half_bend - down(abs(second - first)))
        # gap <= half_bend (1 + U), so the quotient cannot overflow; roundings: 2 in the gap, twice,
        # and 3 here. TINY keeps 0 / 0 away where the piece is a point.
        loss = up(gap * (gap / (4.0 * half_bend + TINY)), 8)
        pieces = down(xp.minimum(first, second) - up(loss))
        return xp.min(pieces, axis=-1), xp.max(half_bend, axis=-1)

    def _half_bend(self, beta: Array, v: Array, mean: Array) -> Array:
        """Upper bound of `P = K h^2 / 2` on every piece between neighbours along the last axis."""
        xp = namespace(v)
        start = xp.minimum(v[..., :-1], v[..., 1:])
        length = abs(v[..., 1:] - v[..., :-1])
        # F_2 <= 0 where mu >= 0 (see `monotone_minimum`): that term then only helps
        positive = (mean[..., :-1] >= 0.0) & (mean[..., 1:] >= 0.0)
        second = self.derivative_bound(2, start)
        second = xp.where(positive, xp.zeros_like(second), second)
        size = abs(beta)
        curvature = size * size * second + size * self.derivative_bound(3, start)
        curvature = curvature + 0.25 * self.derivative_bound(4, start)
        return up(0.5 * curvature * length * length, 12)


def split_segment(v_low: PerCell, v_high: PerCell) -> Annotated[Array, "B pieces"]:
    """Points from v_low to v_high along a new last axis, `PIECES + 1`, geometric in `1 + v`.

    The curvature falls with v, so longer pieces at larger v balance the losses. Any points between
    exact ends are sound: the pieces between neighbours cover the segment whatever their order.

    >>> import numpy as np
    >>> split_segment(np.array([0.0]), np.array([255.0])).round(6).tolist()
    [[0.0, 1.0, 3.0, 7.0, 15.0, 31.0, 63.0, 127.0, 255.0]]
    """
    xp = namespace(v_low, v_high)
    length = v_high - v_low
    # below 1e-9 the points are equally spaced to within rounding, and 0 / 0 is kept away
    ratio = xp.clip(xp.log1p(length / (1.0 + v_low)), 1e-9, None)
    inner = [
        xp.clip(v_low + length * (xp.expm1(ratio * (k / PIECES)) / xp.expm1(ratio)), v_low, v_high)
        for k in range(1, PIECES)
    ]
    return xp.stack([v_low, *inner, v_high], axis=-1)
