"""Sums and products of floats rounded in a chosen direction, on the host: the tightest floats."""

from __future__ import annotations

import numpy as np

__all__ = ["add_up", "add_down", "product_up"]


def _two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`(s, e)` with `s = fl(a + b)` and `s + e = a + b` in real arithmetic, barring overflow.

    Reason: Knuth's TwoSum (TAOCP vol. 2, 4.2.2, theorem B); sums never lose digits to underflow.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        s = a + b
        rest = s - a
        return s, (a - (s - rest)) + (b - rest)


def add_up(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The smallest float >= a + b (infinity where that overflows).

    >>> bool(add_up(np.float64(1.0), np.float64(1e-300)) > 1.0)
    True
    """
    s, e = _two_sum(a, b)
    return np.where(e > 0, np.nextafter(s, np.inf), s)


def add_down(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The largest float <= a + b (minus infinity where that overflows)."""
    return -add_up(-a, -b)


def product_up(a: np.ndarray, b: np.ndarray) -> np.ndarray:
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
