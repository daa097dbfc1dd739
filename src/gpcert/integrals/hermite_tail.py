"""How far an average over one Gaussian is from its expansion about another, to all orders.

Proofs: docs/mathematics.md, statement 9.16.
"""

from __future__ import annotations

import math

from gpcert.arrays import Array, namespace
from gpcert.rounding import root, up

TERMS = 24
"""Degrees that are added up one by one; what lies beyond is geometric."""


def hermite_tail(mean: Array, spread: Array) -> Array:
    """Upper bound (B,) of the length, in the space of functions square integrable over N(0, I), of
    what the density of N(b, I + W) has beyond degree 2; `|b| <= mean`, `|W|_F <= spread`.

    Statement: with `h_k` the k-th moment of a scalar N(mean, spread), the part of degree k is at
    most `t_k = h_k / sqrt(k!)` long. So `F = E s(y)`, y of that law, is within `sigma` times this
    of `E s + D1.b + <D2, W + b b^T> / 2`, sigma the length of the part of s beyond degree 2.
    Reason: symmetrising a tensor does not lengthen it.
    `t_k = mean t_(k-1) / sqrt(k) + spread sqrt((k-1)/k) t_(k-2)`; from K on two steps shrink by
    `ratio = mean / sqrt(K) + spread`. Infinite where that is above 0.99.

    >>> import numpy as np
    >>> float(hermite_tail(np.array([0.1]), np.array([0.0]))[0]) < 1.01 * 0.1**3 / 6**0.5
    True
    """
    xp = namespace(mean)
    ratio = up(mean / math.sqrt(TERMS) + spread, 8)
    usable = ratio <= 0.99
    zero = xp.zeros_like(ratio)
    ratio, mean, spread = (xp.where(usable, x, zero) for x in (ratio, mean, spread))
    before, last, total = mean, (mean * mean + spread) / math.sqrt(2.0), zero
    for k in range(3, TERMS):
        step = mean * last / math.sqrt(k) + spread * math.sqrt((k - 1) / k) * before
        before, last = last, step
        total = total + step * step
    # beyond K: pairs of terms, each pair at most `ratio` times the largest of the one before
    beyond = 2.0 * (ratio * xp.maximum(before, last)) ** 2 / (1.0 - ratio * ratio)
    length = up(root(total + beyond), 16 * TERMS)
    return xp.where(usable, length, xp.full_like(length, math.inf))
