"""Numbers as unevaluated sums of two floats, `high + low` with |low| at most 2^-52 |high|: about
twice as many digits, by operations whose rounding errors are floats themselves.

Each function says what its result errs by; products and powers must stay within 1e-200 to 1e200.
NumPy only, where no product is contracted with a sum.

Proofs: docs/mathematics.md, statements 16.13 and 16.14.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from gpcert.numerics.arrays import Reals
from gpcert.numerics.rounding import halves, two_product, two_sum

PAIR_ERROR = 2.0**-98
"""Relative, of a product, quotient or root; of a sum in parts of |a| + |b|."""

EXP_ERROR = 2.0**-66
"""Relative, of `exp_minus`; twice that, absolute, of `log1p`."""

LARGEST_EXPONENT = 64
"""`exp_minus` goes so far: e^-64 is 1.6e-28."""

STEPS = 256
"""Entries of the table of e^-t for t in [0, 1]."""


@dataclass(frozen=True, eq=False)
class Pair:
    """high + low, arrays of one shape or numbers."""

    high: Reals
    low: Reals

    def __mul__(self, other: Pair) -> Pair:
        """The product."""
        p, e = two_product(self.high, other.high)
        return _renewed(p, e + (self.high * other.low + self.low * other.high))

    def __add__(self, other: Pair) -> Pair:
        """The sum."""
        s, e = two_sum(self.high, other.high)
        return _renewed(s, e + (self.low + other.low))

    @staticmethod
    def of(number: float | Fraction) -> Pair:
        """The nearest pair."""
        high = float(number)
        return Pair(np.float64(high), np.float64(Fraction(number) - Fraction(high)))


def _renewed(high: Reals, low: Reals) -> Pair:
    """The same sum for |low| <= |high|, low then at most a half unit of high (Dekker 1971)."""
    s = high + low
    return Pair(s, low - (s - high))


def root(square: Pair) -> Pair:
    """The square root; 0 of 0."""
    x = np.sqrt(square.high)
    p, e = two_product(x, x)
    safe = np.where(x > 0, x, 1.0)
    return _renewed(x, (((square.high - p) - e) + square.low) / (2.0 * safe))


def exp_minus(t: Pair) -> Pair:
    """e^-t for t >= 0, not a number beyond `LARGEST_EXPONENT`.

    `t = n / STEPS - s`, |s| <= 2^-9: the table's entry times `1 + s + (e^s - 1 - s)`, whose last
    part is so small that plain floats do. The table's first parts and those of s have 26 digits, so
    that their products are exact.
    """
    first, second = _table()
    inside = t.high <= LARGEST_EXPONENT
    high = np.where(inside, t.high, np.nan)
    n = np.where(inside, np.rint(STEPS * t.high), 0.0)
    s, rest = two_sum(n * (1.0 / STEPS) - high, -t.low)
    inner = 1.0 / 6.0 + s * (1.0 / 24.0 + s * (1.0 / 120.0 + s * (1.0 / 720.0)))
    more = rest + (s * s) * (0.5 + s * inner)
    index = n.astype(np.intp)
    T, R = first[index], second[index]
    long, short = halves(s)
    p = T * long
    small = T * short + (T * more + (R + R * (s + more)))
    whole = _renewed(T, p)
    return _renewed(whole.high, whole.low + small)


@lru_cache(maxsize=1)
def _table() -> tuple[np.ndarray, np.ndarray]:
    """e^(-n / STEPS) as 26 digits and the rest, to 2^-78 of it: powers in whole numbers."""
    bits, steps = 320, STEPS
    one = 1 << bits
    power = sum((-1) ** k * (one // (steps**k * math.factorial(k))) for k in range(40))
    values, value = [], one
    for _ in range(LARGEST_EXPONENT * steps + 1):
        values.append(value)
        value = value * power >> bits
    high = np.array([value / one for value in values])  # correctly rounded
    mantissas, exponents = np.frexp(high)
    whole = zip(np.ldexp(mantissas, 53).tolist(), exponents.tolist(), strict=True)
    parts = [int(m) << (bits - 53 + e) for m, e in whole]
    low = np.array([(value - part) / one for value, part in zip(values, parts, strict=True)])
    first, rest = halves(high)
    return first, rest + low


def log1p(q: Pair) -> Pair:
    """log(1 + q) for q >= 0, not a number beyond `LARGEST_EXPONENT`: one step of Newton's method,
    `y + log(1 + z)` with `1 + z = (1 + q) e^-y`."""
    y = np.log1p(q.high)
    one = Pair(np.float64(1.0), np.float64(0.0))
    product = (one + q) * exp_minus(Pair(y, np.zeros_like(y)))
    z = (product.high - 1.0) + product.low
    return _renewed(y, z - 0.5 * (z * z))
