"""How far an average over one Gaussian is from its expansion about another, to all orders.

Proofs: docs/mathematics.md, statement 9.16.
"""

from __future__ import annotations

import math

from gpcert.arrays import Array, PerCell, namespace
from gpcert.rounding import EXP_ULPS, root, up

TERMS = 32
"""Degrees that are added up one by one; what lies beyond is bounded by the whole further out."""

LARGEST = 0.99
"""Spectral norm beyond which nothing is said."""

RADII = (0.98, 0.9, 0.8, 0.6, 0.4, 0.2)
"""Where the whole is looked at, as parts of the radius of convergence: the least bound counts."""


def hermite_tail(mean: Array, spread: Array, operator: Array, degree: int = 2) -> PerCell:
    """Upper bound (B,) of the length, in the space of functions square integrable over N(0, I), of
    what the density of N(b, I + W) has beyond a `degree` of 2 or more (below `TERMS`);
    `|b| <= mean`, `|W|_F <= spread`, `|W|_2 <= operator`.

    Statement: the squared length of degree k is at most `e_k`, the coefficients of
    `exp(sum_k c_k X^k)`, `c_k = operator^(k-1) mean^2 + [k even] operator^(k-2) spread^2 / k`. So
    `F = E s(y)`, y of that law, is within `sigma` times this of its expansion to that degree, for
    2 `E s + D1.b + <D2, W + b b^T> / 2`, sigma the length of the part of s beyond it.
    Reason: Mehler's formula for every eigenvalue of W, and exp has positive coefficients. Infinite
    where the spectral norm is above `LARGEST`.

    >>> import numpy as np
    >>> length, none = np.array([0.1]), np.array([0.0])
    >>> float(hermite_tail(length, none, none)[0]) < 1.01 * 0.1**3 / 6**0.5
    True
    """
    xp = namespace(mean)
    operator = xp.minimum(operator, spread)
    usable = (operator <= LARGEST) & (mean <= 1e3) & (spread <= 1e3)
    zero = xp.zeros_like(mean)
    A2, s, w2 = (xp.where(usable, x, zero) for x in (mean * mean, operator, spread * spread))
    # e_k = sum_j j c_j e_(k-j) / k, all terms positive: sums of s^(j-1) e_(k-j), of j times that,
    # and of s^(j-2) e_(k-j) for even j, each from the one before
    plain, rising, last = zero, zero, xp.ones_like(zero)
    even, other, before = zero, zero, zero
    total = _beyond(A2, s, w2)
    for k in range(1, TERMS):
        plain = last + s * plain
        rising = plain + s * rising
        even, other = before + s * s * other, even
        before, last = last, (A2 * rising + w2 * even) / k
        if k > degree:
            total = total + last
    length = up(root(total), 16 * TERMS)
    return xp.where(usable, length, xp.full_like(length, math.inf))


def _beyond(A2: Array, s: Array, w2: Array) -> Array:
    """About an upper bound (B,) of all `e_k`, k >= TERMS: `x^-TERMS` times the sum at any x >= 1
    with `s x < 1`, in which `-log(1 - y) <= y / sqrt(1 - y)`; the caller counts the roundings."""
    xp = namespace(A2)
    reach = xp.maximum(xp.maximum(s, w2**0.5 / 3.0), A2 / 8.0)
    far = 1.0 / xp.maximum(reach, xp.full_like(reach, 2.0**-30))
    best = xp.full_like(A2, math.inf)
    for part in RADII:
        x = xp.maximum(part * far, xp.ones_like(far))
        left = 1.0 - s * x
        known = left >= 0.005  # which rounds in its 400th unit at most
        left = xp.where(known, left, xp.ones_like(left))
        y = xp.where(known, s * x, 0.0 * s)
        power = 0.5 * w2 * x * x / xp.sqrt(1.0 - y * y) + A2 * x / left
        value = xp.exp(up(xp.minimum(power, xp.full_like(power, 600.0)), 1024)) * x**-TERMS
        value = xp.where(known & (power <= 600.0), up(value, 2 * TERMS + EXP_ULPS), best)
        best = xp.minimum(best, value)
    return best
