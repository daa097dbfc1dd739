"""The largest value of a function of one variable over any range, from a table.

Proofs: docs/mathematics.md, statement 3.7.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gpcert.arrays import Array, Reals, namespace

STEPS = 4096
"""Intervals that cover [0, infinity): equal steps of `r / (1 + r)`."""


@dataclass(frozen=True, eq=False)
class RangeMaximum:
    """`over(low, high)` is at least the function's supremum over [low, high].

    Level l of the table holds, at i, the largest of the bounds of the intervals i, ..., i + 2^l - 1
    (a sparse table): two of them cover any range, so a query is two look-ups.

    >>> bounds = RangeMaximum.of(lambda low, high: np.exp(-low))
    >>> float(np.exp(-1.0)) <= float(bounds.over(np.asarray([1.0]), np.asarray([5.0]))[0]) < 0.3685
    True
    """

    table: np.ndarray
    """(levels * STEPS,) flat."""
    level_of: np.ndarray
    """(STEPS + 1,): the largest l with `2^l <= length`."""

    @staticmethod
    def of(bound: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> RangeMaximum:
        """From `bound(low, high)`, upper bounds of the function over the intervals of the grid."""
        steps = np.arange(STEPS + 1) / STEPS
        with np.errstate(divide="ignore"):
            ends = steps / (1.0 - steps)
        levels = [np.asarray(bound(ends[:-1], ends[1:]))]
        width = 1
        while 2 * width <= STEPS:
            last = levels[-1]
            later = np.concatenate([last[width:], np.full(width, -np.inf)])
            levels.append(np.maximum(last, later))
            width *= 2
        level_of = np.floor(np.log2(np.maximum(np.arange(STEPS + 1), 1))).astype(np.int64)
        return RangeMaximum(np.concatenate(levels), level_of)

    def over(self, low: Reals, high: Reals) -> Reals:
        """Upper bounds over [low, high], 0 <= low <= high: the intervals that meet it, and one more
        on either side for the rounding of the interval's number."""
        xp = namespace(low)
        first, last = (self._number(at) for at in (low, high))
        first = xp.where(first > 0, first - 1, first)
        last = xp.where(last < STEPS - 1, last + 1, last)
        table = xp.asarray(self.table, device=low.device)
        level = xp.asarray(self.level_of, device=low.device)[last - first + 1]
        row = level * STEPS
        ends = last + 1 - 2**level
        return xp.maximum(table[row + first], table[row + ends])

    def _number(self, at: Array) -> Array:
        """Which interval holds a point, in plain floating point: off by one at most."""
        xp = namespace(at)
        some = xp.minimum(at, xp.full_like(at, 1e15))
        number = xp.astype(xp.floor(STEPS * (some / (1.0 + some))), xp.int64)
        return xp.where(number < STEPS, number, xp.full_like(number, STEPS - 1))
