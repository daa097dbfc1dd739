"""The law of one input: a family, moved and scaled, with proved probabilities of intervals.

Bounds of functions of y are about every real in `[y_low, y_high]`, so the rounding of y is in them.

Proofs: docs/mathematics.md, statements 22.1 and 22.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpcert.integrals.families import EDGES, Ends, Family, outward, positive, product
from gpcert.numerics.arrays import Reals
from gpcert.numerics.rounding import U, down, up, up_float


@dataclass(frozen=True)
class Truncated(Family):
    """Y given that it lies in [low, high], ends of the base's own coordinate."""

    base: Family
    low: float
    high: float

    @property
    def mode(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return min(max(self.base.mode, self.low), self.high)

    @property
    def falling(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.base.falling

    @property
    def whole(self) -> Ends:
        """Of the base's probability of [low, high]."""
        low, high = np.array([self.low]), np.array([self.high])
        return interval_mass(self.base, (low, low), (high, high))

    def _part(self, low: Reals, high: Reals) -> Ends:
        low, high = (np.clip(end, self.low, self.high) for end in (low, high))
        return self._scaled(interval_mass(self.base, (low, low), (high, high)), 1.0)

    def _scaled(self, ends: Ends, cap: float) -> Ends:
        whole = self.whole
        least, most = down(ends[0] / whole[1], 2), up(ends[1] / whole[0], 2)
        return np.clip(least, 0.0, cap), np.clip(most, 0.0, cap)

    def below(self, y: Reals) -> Ends:
        return self._part(np.full_like(y, self.low), y)

    def above(self, y: Reals) -> Ends:
        return self._part(y, np.full_like(y, self.high))

    def density(self, y: Reals) -> Ends:
        return self._scaled(self.base.density(y), math.inf)

    def score(self, y: Reals) -> Ends:
        return self.base.score(y)

    def slope_range(self, low: Reals, high: Reals) -> Ends:
        whole = self.whole
        share = down(1.0 / whole[1], 2), up(1.0 / whole[0], 2)
        return product(self.base.slope_range(low, high), share)

    @property
    def kinks(self) -> tuple[float, ...]:
        return self.base.kinks

    def size(self, low: Reals, high: Reals, height: Reals) -> Reals:
        return self.base.size(low, high, height) / self.whole[0]


def interval_mass(family: Family, low: Ends, high: Ends) -> Ends:
    """Of P[low < Y <= high] for ends that lie in intervals: the better of differences of both
    tails, which keep their digits on either side."""
    below = [family.below(low[0])[0], family.below(low[1])[1]]
    below += [family.below(high[0])[0], family.below(high[1])[1]]
    above = [family.above(low[1])[0], family.above(low[0])[1]]
    above += [family.above(high[1])[0], family.above(high[0])[1]]
    least = np.maximum(down(below[2] - below[1], 1), down(above[0] - above[3], 1))
    most = np.minimum(up(below[3] - below[0], 1), up(above[1] - above[2], 1))
    return np.clip(least, 0.0, 1.0), np.clip(most, 0.0, 1.0)


@dataclass(frozen=True)
class Marginal:
    """The law of one input, `x = loc + scale Y`, scale > 0, in the reals.

    Where Y has a least or a greatest value, those of x are the floats `low` and `high`: loc and
    scale are then what takes Y's ends there, a few roundings from those given.
    """

    family: Family
    loc: float = 0.0
    scale: float = 1.0

    @cached_property
    def low(self) -> float:
        """The least value."""
        return self.loc + self.scale * self.family.low

    @cached_property
    def high(self) -> float:
        """The greatest value."""
        return self.loc + self.scale * self.family.high

    @cached_property
    def _moved(self) -> float:
        """How far Y's ends, rounded to floats of x, move y."""
        ends = [y for y in (self.family.low, self.family.high) if y != 0.0 and math.isfinite(y)]
        reach = abs(self.loc) + self.scale * max(map(abs, ends), default=0.0)
        return 8.0 * U * reach / self.scale if ends else 0.0

    @cached_property
    def _roundings(self) -> float:
        """Relative ones of the scale, which differs where both ends were rounded."""
        width = self.family.high - self.family.low
        return 2.0 + (4.0 * self._moved / (U * width) if math.isfinite(width) else 0.0)

    def _standard(self, x: Reals) -> Ends:
        y = (x - self.loc) / self.scale
        low, high = down(y, 2) - self._moved, up(y, 2) + self._moved
        first, last = self.family.low, self.family.high
        low, high = np.clip(low, first, last), np.clip(high, first, last)
        low = np.where(x >= self.high, last, low)
        return low, np.where(x <= self.low, first, high)

    def mass(self, low: Reals, high: Reals) -> Ends:
        """Of P[low < x <= high]."""
        return interval_mass(self.family, self._standard(low), self._standard(high))

    def outside(self, low: float, high: float) -> float:
        """At least P[x < low or x > high]."""
        first, last = (self._standard(np.array([end])) for end in (low, high))
        left = 0.0 if low <= self.low else float(self.family.below(first[1])[1][0])
        right = 0.0 if high >= self.high else float(self.family.above(last[0])[1][0])
        return up_float(left + right, 1) if left + right > 0 else 0.0

    @EDGES
    def density(self, low: Reals, high: Reals) -> Ends:
        """Of the density in [low, high]."""
        first, last = self._standard(low)[0], self._standard(high)[1]
        least, most = self.family.density_range(first, last)
        n = self._roundings
        return positive(least / self.scale, n)[0], outward(most / self.scale, n)[1]

    @EDGES
    def slope(self, low: Reals, high: Reals) -> Ends:
        """Of the density's derivative in [low, high]."""
        first, last = self._standard(low)[0], self._standard(high)[1]
        least, most = self.family.slope_range(first, last)
        square, n = self.scale * self.scale, 2.0 * self._roundings
        return outward(least / square, n)[0], outward(most / square, n)[1]

    @cached_property
    def kinks(self) -> tuple[tuple[float, float], ...]:
        """Intervals with the points where the density is not analytic."""
        slack = 16.0 * U * (abs(self.loc) + self.scale)
        places = [self.loc + self.scale * y for y in self.family.kinks]
        return tuple((x - slack, x + slack) for x in places)

    @EDGES
    def size(self, low: Reals, high: Reals, height: Reals) -> Reals:
        """At least |density|, continued analytically, where the real part is in [low, high] and the
        imaginary one in [-height, height]; infinite where it is not analytic."""
        first, last = (low - self.loc) / self.scale, (high - self.loc) / self.scale
        slack = 16.0 * U * (abs(self.loc) / self.scale + abs(first) + abs(last)) + self._moved
        tall = height / self.scale * (1.0 + 16.0 * U)
        value = self.family.size(first - slack, last + slack, tall) / self.scale
        return np.where(np.isnan(value), np.inf, 1.01 * value)
