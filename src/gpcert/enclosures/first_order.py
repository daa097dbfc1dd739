"""Lower bounds of a mean from its first order alone: cheap, and often enough for a sign.

Proofs: docs/mathematics.md, statement 5.6.
"""

from __future__ import annotations

import math

from gpcert.arrays import Array, namespace
from gpcert.enclosures.local_quadratic import LevelBound
from gpcert.kernels.expansions.base import LinearModel
from gpcert.kernels.expansions.geometry import Geometry
from gpcert.kernels.exponentials import LARGEST_EXPONENT, growth_chord
from gpcert.rounding import EXP_ULPS, U, down, gamma, up

__all__ = ["first_order_bound"]


def first_order_bound(
    model: LinearModel, sign: int, geometry: Geometry, rate: float, level: Array
) -> LevelBound:
    """Certified lower bound of `q = sign f` over the cells, by testing `q >= level`.

    Statement: with `M <= min [omega (q - level)]` on the cell, `q >= level + M` where M < 0, else
    `q >= level + M exp(-rate rho2)`; and
    `M = sign value - level + min sign gradient.d - remainder - max(level, 0) chord rho2` serves.
    Reason: `1 <= omega = exp(rate |d|^2) <= 1 + chord |d|^2`, so that `-level omega` is at least
    `-level - max(level, 0) chord rho2`; the rest is `LinearModel`, and `q - level` is the bracket
    over omega. Any finite level is valid. -inf where the weight is too large to be formed.
    """
    xp = namespace(model.value)
    gradient = sign * model.gradient
    linear = geometry.cells.linear_minimum(geometry.unscaled_gradient(gradient))
    slopes = xp.sum(xp.abs(gradient) * geometry.half, axis=1)
    lost = up(model.remainder + model.errors[:, 0] + geometry.rho * model.errors[:, 1], 6)
    positive = xp.where(level > 0, level, xp.zeros_like(level))
    lost = up(lost + up(positive * growth_chord(rate, geometry.rho2) * geometry.rho2, 4), 2)
    size = xp.abs(model.value) + xp.abs(level) + slopes + lost
    margin = ((sign * model.value - level) + linear) - lost - gamma(16) * size
    x = xp.minimum(rate * geometry.rho2, xp.full_like(level, LARGEST_EXPONENT))
    shrunk = margin * xp.exp(-up(x, 2)) * (1.0 - 2 * (EXP_ULPS + 4) * U)
    lower = down(level + xp.where(margin > 0, shrunk, margin), 2)
    formed = (rate * geometry.rho2 < LARGEST_EXPONENT) & ~xp.isnan(lower)
    lower = xp.where(formed, lower, xp.full_like(lower, -math.inf))
    return LevelBound(lower, xp.where(gradient > 0, -geometry.half, geometry.half))
