"""phi(x, z_i) = |x - z_i|^2 (scaled): weighted sums are separable quadratics in x.

With u_i = z_i - c, `sum_i a_i phi(c + d, z_i) = sum a_i |u_i|^2 - 2 d.sum a_i u_i + |d|^2 sum a_i`,
whose minimum over a box is a closed form, feature by feature.

Proofs: docs/mathematics.md, statement 12.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpcert.arrays import Array, namespace
from gpcert.kernels.lines.base import Carrier
from gpcert.rounding import TINY, gamma, root, up


@dataclass(frozen=True, eq=False)
class QuadraticCarrier(Carrier):
    """Scaled points (N, f), centres (B, f) and half-widths (B, f) of the cells.

    Points and centres carry 3 roundings each; half-widths are upper bounds. `fixed` (N,) is the
    part of phi from the features that the region holds fixed, known up to the relative error
    `fixed_error`; `extents` (N,) bounds |z_i| + |c|; `largest` (B, N) bounds phi over each cell.
    `scale` (f,), one rounding, is what the frame's coordinates at `columns` are multiplied by; None
    where these are not known among the region's free features.
    """

    points: Array
    centers: Array
    half: Array
    fixed: Array
    fixed_error: float
    extents: Array
    largest: Array
    scale: Array
    columns: np.ndarray | None

    def minimum(self, coefficients: Array) -> Array:
        """In each feature at an end, or at `sum a u / sum a` where that is inside a convex one.

        Rounding: every sum is a dot product of at most 4N + 8f + 32 roundings of terms bounded by
        `|a_i| (extent_i^2 + fixed_i)`, `|a_i| |half|^2` and `|sum a u| half`.
        """
        xp = namespace(self.centers)
        N, f = self.points.shape
        a, c, half = coefficients, self.centers, self.half
        with np.errstate(over="ignore", invalid="ignore"):
            zeroth = xp.sum(a, axis=1)
            raw = a @ self.points
            first = raw - zeroth[:, None] * c
            square = a @ (xp.sum(self.points**2, axis=1) + self.fixed)
            square = square - xp.sum(c * (raw + first), axis=1)
            # min over |d| <= w of zeroth d^2 - 2 first d
            ends = zeroth[:, None] * half**2 - 2.0 * xp.abs(first) * half
            inside = xp.abs(first) < zeroth[:, None] * half
            safe = xp.where(inside, zeroth[:, None] + 0.0 * first, xp.ones_like(first))
            # first * (first / zeroth), not first^2 / zeroth: the square of 1e-160 would vanish
            minima = xp.where(inside, -first * (first / safe), ends)
            total = square + xp.sum(minima, axis=1)

            magnitudes = xp.abs(a)
            size = magnitudes @ (self.extents**2 + self.fixed)
            size = size + xp.sum(magnitudes, axis=1) * xp.sum(half**2, axis=1)
            size = size + xp.sum(xp.abs(first) * half, axis=1)
            size = size + (magnitudes @ self.extents) * root(xp.sum(half**2, axis=1))
            error = gamma(4 * N + 8 * f + 64) * 4.0 * size
            error = error + self.fixed_error * (magnitudes @ self.fixed)
            floor = TINY * xp.sum(magnitudes * (1.0 + self.extents) ** 2, axis=1)
            least = total - up(error + floor, 16)
        return xp.where(xp.isfinite(least), least, xp.full_like(least, -math.inf))

    def magnitude(self) -> Array:
        return self.largest
