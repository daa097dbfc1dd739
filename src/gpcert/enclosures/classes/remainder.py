"""What the expansion of class probabilities in latent means and covariance leaves out.

Along the straight line from (a_0, V_0) to (a, V), `phi(s) = F` has, by `dF/dV = F''/2` (Price),

    phi^(k) = sum_i binomial(k, i) 2^-i D_(k+i)[da^(k-i), dV^i],

D_j the j-th derivative of F in a; |D_j[...]| is at most its norm times |da|^(k-i) times the nuclear
norm of dV to the i, in whatever metric.

Proofs: docs/mathematics.md, statements 10.3 and 10.4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpcert.arrays import Array, PerCell, namespace
from gpcert.rounding import nonnegative, up


def degree_bound(
    degree: int, norms: Sequence[Array | float], mean: Array, spread: Array
) -> PerCell:
    """Upper bound (B,) of `|phi^(k)| / k!` for k = `degree`; `norms[j - 1]` bounds |D_j|.

    Infinite where a norm is, whatever it meets.
    """
    xp = namespace(mean)
    total = xp.zeros_like(mean)
    for i in range(degree + 1):
        factor = math.comb(degree, i) * 0.5**i / math.factorial(degree)
        norm = norms[degree + i - 1] + xp.zeros_like(mean)
        known = xp.isfinite(norm)
        term = factor * xp.where(known, norm, xp.zeros_like(norm))
        term = term * mean ** (degree - i) * spread**i
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
        third, fourth = (bound + xp.zeros_like(mean) for bound in bounds[2:4])
        usable = xp.isfinite(third) & xp.isfinite(fourth)
        zero = xp.zeros_like(mean)
        third, fourth = xp.where(usable, third, zero), xp.where(usable, fourth, zero)
        rest = rest + 0.5 * (third * mean * spread + 0.25 * fourth * spread**2)
    rest = up(rest, 8)
    return xp.where(xp.isnan(rest), xp.full_like(rest, math.inf), rest)


def shrunk_bounds(bounds: Sequence[Array | float], operator: PerCell) -> list[PerCell]:
    """Bounds of |D_j| in the metric of V_0 for every covariance between V_0 and V on the line.

    `|V - V_0| <= operator V_0` gives `V_s >= (1 - operator) V_0`, and a Gaussian with covariance
    V_s is one with (1 - operator) V_0 plus an independent one: averages only shrink derivatives,
    and `|D_j| <= b_j (1 - operator)^(-j/2)`. Infinite where operator >= 1.
    """
    xp = namespace(operator)
    left = nonnegative(1.0 - up(operator, 2))
    usable = left > 1e-12
    safe = xp.where(usable, left, xp.ones_like(left))
    root = up(1.0 / xp.sqrt(safe), 4)
    infinite = xp.full_like(left, math.inf)
    return [xp.where(usable, up(b * root**j, 2 * j + 2), infinite) for j, b in enumerate(bounds, 1)]
