"""Norms, sums and products rounded in a chosen direction.

The p-norm of a vector is bounded from above and from below whatever the rounding; sums and products
of two floats, on the host, are the tightest floats.

Statement 13.4: with `M = max |x_j|` and `S = sum (|x_j| / M)^p` the computed `M S^(1/p)` is within
a factor `1 +- c U` of `||x||_p`, `c = n + 2 POW_ULPS + 40`, and `up`/`down` step over that. Reason:
powers and root are off by POW_ULPS each, the sum by n, the rest by less than 40 (Higham, *Accuracy
and Stability of Numerical Algorithms*, 2nd ed., section 3.1); scaling by M keeps the powers from
overflowing, and what underflows is below `2^-1022` while S >= 1.

Proofs: docs/mathematics.md, statements 13.2, 13.4 and 13.6.
"""

from __future__ import annotations

import math

import numpy as np

from gpcert.arrays import Array, PerVector, Reals, Vectors, namespace
from gpcert.rounding import U

POW_ULPS = 16
"""Assumed: |fl(a^b) - a^b| <= POW_ULPS * U * a^b; glibc, NumPy, SLEEF and CUDA keep within 4."""

SMALLEST = 2.0**-1068
"""More than gradual underflow takes of the last product, `M S^(1/p)`; not TINY, which would widen
balls of radius 1e-298: all else is relative here."""

LARGE = 1e308
"""Stands for an overflowed norm where a lower bound is asked for."""


def dual_exponent(p: float) -> float:
    """`q = p / (p - 1)` with `1/p + 1/q = 1`, rounded down (exact for p = 1, 2 and infinity).

    Reason for the direction: `||g||_q` decreases in q, so a smaller q keeps an upper bound.

    >>> dual_exponent(2.0), dual_exponent(1.0), dual_exponent(math.inf)
    (2.0, inf, 1.0)
    """
    if p == 1.0:
        return math.inf
    if p == 2.0:
        return 2.0
    if p == math.inf:
        return 1.0
    return max(1.0, p / (p - 1.0) * (1.0 - 8 * U))  # three roundings; the real q is above 1


def norm(x: Vectors, p: float) -> PerVector:
    """`||x||_p` along the last axis (not empty), in plain floating point."""
    xp = namespace(x)
    a = xp.abs(x)
    if p == 1.0:
        return xp.sum(a, axis=-1)
    largest = xp.max(a, axis=-1)
    if p == math.inf:
        return largest
    safe = xp.where(largest > 0, largest, xp.ones_like(largest))
    t = a / safe[..., None]
    if p == 2.0:
        return largest * xp.sqrt(xp.sum(t * t, axis=-1))
    return largest * xp.sum(t**p, axis=-1) ** (1.0 / p)


def _roundings(x: Array) -> int:
    return int(x.shape[-1]) + 2 * POW_ULPS + 40


def norm_upper(x: Vectors, p: float, roundings: int = 0) -> PerVector:
    """A number >= `||x||_p`, where x itself carries so many relative roundings; 0 for x = 0."""
    xp = namespace(x)
    value = norm(x, p)
    some = xp.max(xp.abs(x), axis=-1) > 0
    slack = value * (4.0 * (_roundings(x) + roundings) * U) + SMALLEST
    return xp.where(some, value + slack, xp.zeros_like(value))


def norm_lower(x: Vectors, p: float, roundings: int = 0) -> PerVector:
    """A number in `[0, ||x||_p]`, where x itself carries so many relative roundings."""
    xp = namespace(x)
    value = xp.clip(norm(x, p), 0.0, LARGE)  # infinity minus its own slack would be NaN
    slack = value * (4.0 * (_roundings(x) + roundings) * U) + SMALLEST
    return xp.clip(value - slack, 0.0, None)


def _two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`(s, e)` with `s = fl(a + b)` and `s + e = a + b` in real arithmetic, barring overflow.

    Reason: Knuth's TwoSum (TAOCP vol. 2, 4.2.2, theorem B); sums never lose digits to underflow.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        s = a + b
        rest = s - a
        return s, (a - (s - rest)) + (b - rest)


def add_up(a: Reals, b: Reals) -> Reals:
    """The smallest float >= a + b (infinity where that overflows).

    >>> bool(add_up(np.float64(1.0), np.float64(1e-300)) > 1.0)
    True
    """
    s, e = _two_sum(a, b)
    return np.where(e > 0, np.nextafter(s, np.inf), s)


def add_down(a: Reals, b: Reals) -> Reals:
    """The largest float <= a + b (minus infinity where that overflows)."""
    return -add_up(-a, -b)


def product_up(a: Reals, b: Reals) -> Reals:
    """A float >= a b for a, b >= 0: the smallest one, but for products near the ends of float64.

    Reason: Dekker's TwoProduct (Numer. Math. 18, 1971): with halves of 26 bits all partial products
    are exact, so the sign of the error of `fl(a b)` is known; where a half may overflow or a
    partial product underflow, one step up is taken whatever it is. Zero is exact.

    >>> float(product_up(np.float64(0.25), np.float64(3.0)))
    0.75
    >>> from fractions import Fraction
    >>> Fraction(float(product_up(np.float64(0.1), np.float64(3.0)))) >= Fraction(0.1) * 3
    True
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        p = a * b
        (ah, al), (bh, bl) = _halves(a), _halves(b)
        error = ((ah * bh - p) + ah * bl + al * bh) + al * bl
    plain = (a < 2.0**990) & (b < 2.0**990) & (p > 2.0**-960) & (p < 2.0**1020)
    above = np.where(plain, error > 0, (a > 0) & (b > 0))
    return np.where(above, np.nextafter(p, np.inf), p)


def _halves(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`high + low = a`, 26 bits each (Veltkamp's split)."""
    c = (2.0**27 + 1.0) * a
    high = c - (c - a)
    return high, a - high
