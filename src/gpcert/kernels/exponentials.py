"""Exponentials: remainders of the series, chords of the weight exp(rate |d|^2), and
the best lines under and over `factor e^t` on an interval.

Proofs: docs/mathematics.md, statements 4.5 and 12.1.
"""

from __future__ import annotations

import math

from gpcert.numerics.arrays import PerCell, Reals, namespace
from gpcert.numerics.compilation import fused
from gpcert.numerics.rounding import EXP_ULPS, U, up

LARGEST_EXPONENT = 200.0
"""Beyond |d|^2 = 200 the weighted expansion is useless (its tail exceeds e^100): all remainders
are reported as infinite, and weighted models of such cells are void. Squares of e^200 do not
overflow."""

LARGEST_EXPONENT_ERROR = 0.1
"""exp(e) - 1 <= 1.1 e holds up to here (convexity, and at 0.1)."""

# numbers, as torch compiles no calls of `math`
_FACTORIALS = tuple(float(math.factorial(k)) for k in range(20))


@fused
def exponential_tail(x: Reals, order: int) -> Reals:
    """Upper bound of `sum_{k > order} x^k / k!` for x >= 0; inf beyond `LARGEST_EXPONENT`.

    For x <= 1 four terms and the Lagrange remainder `x^4 (n+1)!/(n+5)! e^x`; else `e^x` less its
    Taylor polynomial, with the rounding of both added.

    >>> import numpy as np
    >>> float(exponential_tail(np.asarray(1.0), 1)) >= math.e - 2
    True
    """
    xp = namespace(x)
    n = order
    small = xp.minimum(x, xp.ones_like(x))
    inner = 1.0 + small / (n + 4) * (1.0 + small / (n + 5) * math.e)
    inner = 1.0 + small / (n + 2) * (1.0 + small / (n + 3) * inner)
    series = small ** (n + 1) / _FACTORIALS[n + 1] * inner
    large = xp.minimum(x, xp.full_like(x, LARGEST_EXPONENT))
    polynomial = sum(large**k / _FACTORIALS[k] for k in range(n + 1))
    whole = xp.exp(large)
    direct = (whole - polynomial) + whole * ((EXP_ULPS + 32) * U)
    result = xp.where(x <= 1.0, up(series, 24 + n), up(direct, 2))
    return xp.where(x <= LARGEST_EXPONENT, result, xp.full_like(x, math.inf))


@fused
def growth_chord(rate: float, rho2: PerCell) -> PerCell:
    """`(exp(rate rho2) - 1) / rho2`, rounded up: exp(rate r) - 1 <= chord * r for 0 <= r <= rho2.

    For rate <= 1 and rho2 <= LARGEST_EXPONENT; beyond, weighted models are void.

    Reason: exp is convex, so the chord lies above; at rho2 = 0 the limit is `rate`.
    """
    xp = namespace(rho2)
    x = xp.minimum(rate * rho2, xp.full_like(rho2, LARGEST_EXPONENT))
    safe = xp.where(x > 1e-8, x, xp.ones_like(x))
    # below 1e-8 the quotient expm1(x)/x is at most 1 + x
    quotient = xp.where(x > 1e-8, xp.expm1(safe) / safe, 1.0 + x)
    return up(rate * quotient, EXP_ULPS + 8)
