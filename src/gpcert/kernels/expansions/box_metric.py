"""Lengths in which a box looks like a ball to the points of a sum of exponentials.

A form `T[d, ..., d]` of degree n with T = sum_i a_i u_i^(x n) is at most
`|T'|_F |d'|^n`, d'_j = delta_j d_j and T' made of u'_ij = u_ij / delta_j, for any delta > 0: the
form is the same. On a box |d_j| <= w_j, features along which the points hardly differ (the margin
of an image) count in |d| but not in T: small delta_j there take them out of both.

Proofs: docs/mathematics.md, statement 4.8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from gpcert.arrays import Array, PerCell, PerCellAndFeature, PerCellAndPoint, namespace
from gpcert.rounding import TINY, root, up

Box = tuple[Array, Array]
"""Half-widths (B, f) of cells, and (B,) bounds of |d|."""

LEAST_SQUARE = 2.0**-8
"""Smallest delta^2 beside the largest, 1: what is left of a feature in |d'|^2; errors of the
coefficients grow with 1 / delta^n."""

WORTHWHILE = 0.9
"""The metric is taken where it shortens linear forms, about, to this part: the share of higher
degrees in the norm is not known in it."""


@dataclass(frozen=True, eq=False)
class BoxMetric:
    """`delta` (B, f) in (0, 1], `rho` (B,) >= |d'| on each cell, `plain` (B,): delta is 1."""

    delta: Array
    rho: PerCell
    plain: Array

    def lengths(self, sizes: Annotated[Array, "B N f"]) -> PerCellAndPoint:
        """Upper bounds (B, N) of |u'_i|, for `sizes` (B, N, f) of the coordinates u_ij."""
        xp = namespace(sizes)
        parts = sizes / self.delta[:, None, :]
        return up(root(xp.sum(parts * parts, axis=2)), sizes.shape[2] + 12)

    @property
    def growth(self) -> PerCell:
        """(B,): the largest 1 / delta_j."""
        return 1.0 / namespace(self.delta).min(self.delta, axis=1)


def box_metric(magnitudes: Array, points: Array, half: PerCellAndFeature, rho: Array) -> BoxMetric:
    """Of cells with half-widths `half` (B, f) and |d| <= rho, for |a_i| (B, N), u_i (B, N, f).

    With b_j^2 = sum_i |a_i| u_ij^2 the bound of a linear form, `sqrt(sum b_j^2 / delta_j^2) |d'|`,
    is least for delta_j^2 w_j in proportion to b_j. Any choice is valid.
    """
    xp = namespace(points)
    b2 = (magnitudes[:, None, :] @ points**2)[:, 0, :]
    moves = half > 0
    wanted = xp.sqrt(b2) / xp.where(moves, half, xp.ones_like(half))
    wanted = xp.where(moves, wanted, xp.zeros_like(half))
    largest = xp.max(wanted, axis=1, keepdims=True)
    square = wanted / xp.where(largest > TINY, largest, xp.ones_like(largest))
    square = xp.clip(square, LEAST_SQUARE, 1.0)
    square = xp.where(moves & (largest > TINY), square, xp.ones_like(square))
    delta = xp.sqrt(square)
    short = up(root(xp.sum((delta * half) ** 2, axis=1)), half.shape[1] + 8)
    before, after = xp.sum(b2, axis=1) * rho**2, xp.sum(b2 / square, axis=1) * short**2
    plain = ~(after < WORTHWHILE**2 * before)
    delta = xp.where(plain[:, None], xp.ones_like(delta), delta)
    return BoxMetric(delta, xp.where(plain, rho, xp.minimum(short, rho)), plain)
