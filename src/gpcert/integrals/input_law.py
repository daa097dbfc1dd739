"""Independent inputs: probabilities of boxes and moments over them, proved. The law of one input is
a family, moved and scaled, with proved probabilities of intervals.

Bounds of functions of y are about every real in `[y_low, y_high]`, so the rounding of y is in them.

Proofs: docs/mathematics.md, statements 22.1, 22.2 and 22.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, NamedTuple

import numpy as np

from gpcert.integrals.families import EDGES, Ends, Family, outward, positive, product
from gpcert.numerics.arrays import PerCell, PerCellAndFeature, Reals, Rows
from gpcert.numerics.rounding import TINY, U, down, up, up_float


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


Corner = Annotated[np.ndarray, "f"]

PIECES = 16
"""Parts of an interval whose moments are added up."""


class Moments(NamedTuple):
    """Given that x lies in a cell: `E d_j` and `E d_j^2` for d = x - c, c the cell's rounded middle
    `center`, and bounds of their errors, all (B, f); `half`, at least |d|."""

    center: PerCellAndFeature
    half: PerCellAndFeature
    first: PerCellAndFeature
    first_error: PerCellAndFeature
    second: PerCellAndFeature
    second_error: PerCellAndFeature


@dataclass(frozen=True, eq=False)
class InputLaw:
    """The law of inputs with independent coordinates."""

    marginals: tuple[Marginal, ...]

    def masses(self, low: Rows, high: Rows) -> tuple[PerCell, PerCell]:
        """Proved bounds of the probabilities of boxes."""
        lower = upper = np.ones(len(low))
        for j, marginal in enumerate(self.marginals):
            least, most = marginal.mass(low[:, j], high[:, j])
            lower, upper = down(lower * least, 1), up(upper * most, 1)
        return np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)

    def outside(self, low: Corner, high: Corner) -> float:
        """At least the probability of all that lies outside a box."""
        ends = zip(self.marginals, low.tolist(), high.tolist(), strict=True)
        total = sum(marginal.outside(a, b) for marginal, a, b in ends)
        return min(1.0, up_float(total, len(self.marginals))) if total else 0.0

    def moments(self, low: Rows, high: Rows) -> Moments:
        """Those of every cell; intervals that several cells share are looked at once."""
        columns = []
        for j, marginal in enumerate(self.marginals):
            pairs = np.stack([low[:, j], high[:, j]], axis=1)
            distinct, place = np.unique(pairs, axis=0, return_inverse=True)
            moments = _interval_moments(marginal, distinct[:, 0], distinct[:, 1])
            columns.append([each[place.reshape(-1)] for each in moments])
        return Moments(*(np.stack(each, axis=1) for each in zip(*columns, strict=True)))


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _interval_moments(
    marginal: Marginal, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, ...]:
    """The `Moments` of one input over intervals (n,).

    Over a piece with middle m, half-width w and z = x - m, `p(m + z) = p(m) + s z` with s in the
    range of the slope, so `int z p` lies in `2/3 w^3` times that range, and `int z^2 p` within
    `w^4 / 2` times the largest slope of `2/3 w^3 p(m)`; both at most w and w^2 times the mass.
    """
    center = 0.5 * low + 0.5 * high
    half = np.maximum(high - center, center - low) * (1.0 + 4.0 * U)
    parts = np.linspace(0.0, 1.0, PIECES + 1)
    edges = low[:, None] * (1.0 - parts) + high[:, None] * parts
    edges = np.clip(edges, low[:, None], high[:, None])
    edges[:, 0], edges[:, -1] = low, high
    first, last = edges[:, :-1], edges[:, 1:]
    middle = 0.5 * first + 0.5 * last
    w = np.maximum(last - middle, middle - first) * (1.0 + 4.0 * U)
    mass, slope = marginal.mass(first, last), marginal.slope(first, last)
    density = marginal.density(middle, middle)
    cube = up(2.0 / 3.0 * w**3, 4)
    # w is a little more than the true half-widths: the density outside the piece is not needed,
    # as the odd part of the integral is over the true piece, one end of which may be nearer
    uneven = up(8.0 * U * (abs(middle) + w) * w * (density[1] + w * _largest(slope)), 4)
    one = product((down(cube, 8), cube), slope)
    one = down(one[0] - uneven, 2), up(one[1] + uneven, 2)
    bend = up(0.5 * w**4 * _largest(slope), 6)
    two = down(down(cube, 8) * density[0] - bend - uneven * w, 8), up(cube * density[1] + bend, 4)
    most = up(w * mass[1], 1), up(w * w * mass[1], 2)
    one = np.fmax(one[0], -most[0]), np.fmin(one[1], most[0])
    two = np.fmax(two[0], 0.0), np.fmin(two[1], most[1])
    away = middle - center[:, None]
    value, error = _middle(mass)
    one_value, one_error = _middle(one)
    two_value, two_error = _middle(two)
    size = abs(away)
    total, total_error = value.sum(axis=1), _total(error, value)
    terms = one_value + away * value
    m1, e1 = terms.sum(axis=1), _total(one_error + size * error, abs(one_value) + size * value)
    terms = two_value + 2.0 * away * one_value + away * away * value
    errors = two_error + 2.0 * size * one_error + size * size * error
    m2 = terms.sum(axis=1)
    e2 = _total(errors, two_value + 2.0 * size * abs(one_value) + size * size * value)
    # conditional on the cell: where its own mass may be 0 only the cell itself is known
    usable = total > 4.0 * total_error
    safe = np.where(usable, total, 1.0)
    mean, mean_error = m1 / safe, up((e1 + abs(m1 / safe) * total_error) / safe * 2.0, 8)
    square, square_error = m2 / safe, up((e2 + abs(m2 / safe) * total_error) / safe * 2.0, 8)
    mean_error = mean_error + 4.0 * U * abs(mean)
    square_error = square_error + 4.0 * U * abs(square)
    known = usable & np.isfinite(mean_error) & (mean_error <= half)
    mean, mean_error = np.where(known, mean, 0.0), np.where(known, mean_error, half)
    known = usable & np.isfinite(square_error) & (square_error <= half * half)
    middle_square = 0.5 * half * half
    square = np.where(known, square, middle_square)
    square_error = np.where(known, square_error, up(middle_square, 4))
    return center, half, mean, mean_error, square, square_error


def _largest(ends: Ends) -> np.ndarray:
    return np.maximum(abs(ends[0]), abs(ends[1]))


def _middle(ends: Ends) -> tuple[np.ndarray, np.ndarray]:
    """The middle of intervals, and at least how far their ends are from it."""
    value = 0.5 * ends[0] + 0.5 * ends[1]
    return value, up(np.maximum(ends[1] - value, value - ends[0]), 2)


def _total(errors: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """At least the error of a sum over pieces, whose terms have so many roundings and sizes."""
    n = 2 * PIECES + 24
    return up(errors.sum(axis=1) + (4.0 * n * U) * sizes.sum(axis=1) + PIECES * TINY, n)
