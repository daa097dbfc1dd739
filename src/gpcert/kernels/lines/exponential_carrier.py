"""The carrier of the exponential tilt: the kernel itself, one exponential for all points.

Proofs: docs/mathematics.md, statement 12.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpcert.arrays import Array, namespace
from gpcert.kernels.lines.base import Carrier
from gpcert.rounding import EXP_ULPS, TINY, down, gamma, up


@dataclass(frozen=True, eq=False)
class ExponentialCarrier(Carrier):
    """`phi(x, z_i) = value_bi e^s`, the same s for all points, `|s| <= spread_b`.

    `values` (B, N) > 0 are known up to `errors` (B, N), `largest` (B, N) bounds phi.
    """

    values: Array
    errors: Array
    largest: Array
    spread: Array

    def magnitude(self) -> Array:
        return self.largest

    @np.errstate(over="ignore", invalid="ignore")
    def minimum(self, coefficients: Array) -> Array:
        """`A e^s`, `A = sum_i a_i value_i`, is monotone: least at s = -u for A >= 0, else at u."""
        xp = namespace(coefficients)
        N = coefficients.shape[1]
        sizes = xp.abs(coefficients)
        total = xp.sum(coefficients * self.values, axis=1)
        unknown = xp.where(sizes > 0, sizes * self.errors, xp.zeros_like(sizes))
        error = xp.sum(unknown, axis=1) + gamma(N + 4) * xp.sum(sizes * self.values, axis=1)
        least = total - up(error, N + 8)
        grown = up(xp.exp(self.spread), EXP_ULPS + 2)
        shrunk = down(xp.exp(-self.spread), EXP_ULPS + 2)
        shrunk = xp.where(shrunk > 0, shrunk, xp.zeros_like(shrunk))
        bound = xp.where(least >= 0, down(least * shrunk, 2), down(least * grown, 2)) - TINY
        return xp.where(xp.isfinite(bound), bound, xp.full_like(bound, -math.inf))
