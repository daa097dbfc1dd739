"""McCormick's inequalities: the lines of a product from those of its factors.

With `L <= k <= H` for both factors, `(k1 - L1)(k2 - L2) >= 0` and `(H1 - k1)(H2 - k2) >= 0` give

    k1 k2 >= L2 k1 + L1 k2 - L1 L2,        k1 k2 >= H2 k1 + H1 k2 - H1 H2,

and each k on the right is replaced by the line under it where its coefficient is positive and by
the line over it where that is negative. Upper lines are those of `(-k1) k2`, negated. Reference:
McCormick 1976; Patane et al., Proposition "product", with the signs of Statement 12.2.
"""

from __future__ import annotations

import math

import numpy as np

from gpcert.arrays import Array, namespace
from gpcert.kernels.lines.affine_algebra import lower_combination, negated
from gpcert.kernels.lines.base import Affine, Enclosed
from gpcert.kernels.sizes import signed_times, times
from gpcert.rounding import nonnegative, up

__all__ = ["product_enclosed"]


def product_enclosed(first: Enclosed, second: Enclosed, values: tuple[Array, Array]) -> Enclosed:
    """What encloses k1 k2; `values` (B, N) of both at the centres choose among the lines."""
    v, w = values
    low, high = product_interval(first, second)
    under = _under(first, second, (v, w), low)
    opposite = _under(negated(first), second, (-v, w), -high)
    slopes = tuple((carrier, -slope) for carrier, slope in opposite.slopes)
    return Enclosed(low, high, under, Affine(-opposite.intercept, slopes))


def product_interval(first: Enclosed, second: Enclosed) -> tuple[Array, Array]:
    """Interval of the product: least and greatest of the products of the ends."""
    xp = namespace(first.low)
    corners = [
        signed_times(a, b) for a in (first.low, first.high) for b in (second.low, second.high)
    ]
    low = high = corners[0]
    for corner in corners[1:]:
        low, high = xp.minimum(low, corner), xp.maximum(high, corner)
    return -_raised(-low), _raised(high)


def _raised(x: Array) -> Array:
    """`up(x)`; infinite where x has overflown on either side."""
    xp = namespace(x)
    finite = xp.isfinite(x)
    return xp.where(finite, up(xp.where(finite, x, xp.zeros_like(x)), 1), xp.full_like(x, math.inf))


@np.errstate(over="ignore", invalid="ignore")
def _under(first: Enclosed, second: Enclosed, values: tuple[Array, Array], low: Array) -> Affine:
    """The better of both lower functions at the centre, a choice for each cell and point.

    There they lose `(v - L1)(w - L2)` and `(H1 - v)(H2 - w)`.
    """
    xp = namespace(low)
    v, w = values
    at_low = xp.isfinite(first.low) & xp.isfinite(second.low)
    at_high = xp.isfinite(first.high) & xp.isfinite(second.high)
    loss_low = times(nonnegative(v - first.low), nonnegative(w - second.low))
    loss_high = times(nonnegative(first.high - v), nonnegative(second.high - w))
    choice = at_low & ((loss_low <= loss_high) | ~at_high)
    usable = at_low | at_high
    none = xp.zeros_like(low)
    on_second = xp.where(usable, xp.where(choice, first.low, first.high), none)
    on_first = xp.where(usable, xp.where(choice, second.low, second.high), none)
    constant = xp.where(usable, -(on_first * on_second), xp.full_like(low, -math.inf))
    return lower_combination([(on_first, first), (on_second, second)], low, constant)
