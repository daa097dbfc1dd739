"""What the expansion of class probabilities in latent means and covariance leaves out.

Along the straight line from (a_0, V_0) to (a, V), `phi(s) = F` has, by `dF/dV = F''/2` (Price),
`phi^(k) = sum_i binomial(k, i) 2^-i D_(k+i)[da^(k-i), dV^i]`, D_j the j-th derivative of F in a, in
whatever metric. Or, to all orders at once (`orthogonal_rest`), what lies beyond the known degrees
in Hermite's polynomials of the reference's law.

Proofs: docs/mathematics.md, statements 9.16, 10.3, 10.4 and 10.12.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gpcert.enclosures.classes.jets import ClassJet, derivative_norm
from gpcert.enclosures.classes.metric import Sizes
from gpcert.numerics.arrays import Array, PerCell, namespace
from gpcert.numerics.rounding import EXP_ULPS, POW_ULPS, gamma, given, nonnegative, root, up


def degree_bound(
    degree: int, norms: Sequence[Array | float], mean: Array, spread: Array
) -> PerCell:
    """Upper bound (B,) of `|phi^(k)| / k!` for k = `degree`; `norms[j - 1]` bounds |D_j|.

    Infinite where a norm or a size is, whatever it meets.
    """
    xp = namespace(mean)
    total = xp.zeros_like(mean)
    for i in range(degree + 1):
        factor = math.comb(degree, i) * 0.5**i / math.factorial(degree)
        norm = norms[degree + i - 1] + xp.zeros_like(mean)
        with np.errstate(over="ignore", invalid="ignore"):
            term = factor * norm * mean ** (degree - i) * spread**i
        known = xp.isfinite(term)  # not so 0 times infinity, which is nothing that is known
        total = total + xp.where(known, term, xp.full_like(term, math.inf))
    return up(total, 8 * degree + 8)


def higher_degrees(
    known: Sequence[Array], bounds: Sequence[Array | float], mean: Array, spread: Array
) -> PerCell:
    """Upper bound (B,) of all degrees above 2, and of what of degree 2 is not expanded.

    `known` are norms at the reference, `bounds` hold along the whole line. Taylor: with k - 1 the
    last degree that is known at the reference, the rest is `sup |phi^(k)| / k!`. All of degree 2 is
    expanded where D_4 is known, else only D_2[da, da].
    """
    xp = namespace(mean)
    rest = degree_bound(3, bounds, mean, spread)
    if len(known) < 4:
        # (D3[da, dV] + D4[dV, dV] / 4) / 2; where a bound is infinite so is the rest above
        third, fourth = bounds[2:4]
        with np.errstate(over="ignore", invalid="ignore"):
            rest = rest + 0.5 * (third * mean * spread + 0.25 * fourth * spread**2)
    rest = up(rest, 8)
    return xp.where(xp.isnan(rest), xp.full_like(rest, math.inf), rest)


def shrunk_bounds(bounds: Sequence[Array | float], operator: PerCell) -> list[PerCell]:
    """Bounds of |D_j| in the metric of V_0 for every covariance between V_0 and V on the line,
    `b_j (1 - operator)^(-j/2)` where `|V - V_0| <= operator V_0` (Statement 10.4): averages only
    shrink derivatives. Infinite where operator >= 1."""
    xp = namespace(operator)
    left = nonnegative(1.0 - up(operator, 2))
    usable = left > 1e-12
    safe = xp.where(usable, left, xp.ones_like(left))
    root = up(1.0 / xp.sqrt(safe), 4)
    infinite = xp.full_like(left, math.inf)
    return [
        xp.where(usable, up(b * root**j, POW_ULPS + 2), infinite) for j, b in enumerate(bounds, 1)
    ]


def orthogonal_rest(jet: ClassJet, sizes: Sizes) -> PerCell:
    """Upper bound (B,) of what the expansion of the sum leaves on every cell: that of taylor_bound,
    all of second degree in da and dV where D_4 is known, else without D_3 and D_4.

    Statement: at most the known degrees 3, 4, ..., `jet.order` by their norms, and `unexplained`
    times `hermite_tail`, Cauchy-Schwarz between the sum's part beyond these and the density's
    (Statement 10.12). Needs `jet.square`; infinite where the law changes by more than about a
    standard deviation.
    """
    xp = namespace(sizes.mean)
    length = unexplained(jet)
    tail = hermite_tail(sizes.mean, sizes.frobenius, sizes.operator, jet.order)
    known = xp.isfinite(tail) & xp.isfinite(length)
    zero = xp.zeros_like(tail)
    rest = xp.where(known, tail, zero) * xp.where(known, length, zero)
    A, W = (xp.where(known, size, zero) for size in (sizes.mean, sizes.spread))
    for k in range(3, jet.order + 1):
        norm = derivative_norm(jet, k)
        # |D_k| sum_i A^(k - 2 i) W^i / ((k - 2 i)! i! 2^i), without what is expanded: k - i = 2,
        # where D_4 is known
        for i in range(k // 2 + 1):
            if k - i > 2 or jet.order < 4:
                share = math.factorial(k - 2 * i) * math.factorial(i) * 2**i
                rest = rest + norm * A ** (k - 2 * i) * W**i / share
    rest = up(rest, 8 * jet.order)
    return xp.where(known, rest, xp.full_like(rest, math.inf))


def unexplained(jet: ClassJet) -> PerCell:
    """Upper bound (B,) of the length of the sum s beyond the known degrees, over the reference's
    law: `sqrt(E s^2 - (E s)^2 - |D_1|^2 - |D_2|_F^2 / 2 - ...)`.

    The computed value and derivatives are off by at most `errors`: the Frobenius norm of a form of
    order k of n variables is at most `n^((k - 1) / 2)` times its spectral one.
    """
    assert jet.square is not None
    xp, n = namespace(jet.value), jet.derivatives[0].shape[1]
    left = rounding = jet.square
    for order in range(jet.order + 1):
        part = jet.value[:, None] if order == 0 else jet.derivatives[order - 1]
        part = xp.reshape(part, (part.shape[0], n**order))
        length = xp.sqrt(xp.sum(part * part, axis=1))
        off = up(n ** (0.5 * max(order - 1, 0)) * jet.errors[:, order], 8)
        least = nonnegative(length * (1.0 - gamma(n**order + 8)) - off)
        left = left - least * least * (1.0 - gamma(16)) / math.factorial(order)
        rounding = rounding + length * length
    return up(root(nonnegative(left + gamma(16 + jet.order) * rounding)), 8)


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
    `exp(sum_k c_k X^k)`, `c_k = operator^(k-1) mean^2 + [k even] operator^(k-2) spread^2 / k`.
    Reason: Mehler's formula for every eigenvalue of W, and exp has positive coefficients (Statement
    9.16). Infinite where the spectral norm is above `LARGEST`.

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
        x = given(xp.maximum(part * far, xp.ones_like(far)))
        left = 1.0 - s * x
        known = left >= 0.005  # which rounds in its 400th unit at most
        left = xp.where(known, left, xp.ones_like(left))
        y = xp.where(known, s * x, 0.0 * s)
        power = 0.5 * w2 * x * x / xp.sqrt(1.0 - y * y) + A2 * x / left
        value = xp.exp(up(xp.minimum(power, xp.full_like(power, 600.0)), 1024)) * x**-TERMS
        value = xp.where(known & (power <= 600.0), up(value, EXP_ULPS + POW_ULPS + 1), best)
        best = xp.minimum(best, value)
    return best
