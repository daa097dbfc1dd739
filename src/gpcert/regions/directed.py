"""Sums of two floats rounded in a chosen direction, on the host; both are the tightest floats."""

from __future__ import annotations

import numpy as np

__all__ = ["add_up", "add_down"]


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
