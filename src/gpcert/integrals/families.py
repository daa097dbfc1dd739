"""Distributions in standard form, with proved bounds of distribution function, density and the
density's slope.

Proofs: docs/mathematics.md, statement 22.1.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from gpcert.integrals.special import normal_cdf_bounds
from gpcert.numerics.arrays import Reals
from gpcert.numerics.rounding import (
    ASIN_LOG_ULPS,
    EXP_ULPS,
    POW_ULPS,
    TINY,
    U,
    down,
    nonnegative,
    up,
)

EDGES = np.errstate(divide="ignore", over="ignore", invalid="ignore")
"""At the ends of a support: what is infinite or no number says that nothing is known."""

Ends = tuple[Reals, Reals]
"""Proved lower and upper bounds."""


def outward(value: Reals, roundings: Reals) -> Ends:
    """Bounds of a number computed with so many relative roundings, as `down` and `up` have them."""
    slack = abs(value) * (4.0 * roundings * U) + TINY
    return value - slack, value + slack


def share(value: Reals, roundings: Reals) -> Ends:
    """The same of a number in [0, 1]."""
    low, high = outward(value, roundings)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def complement(ends: Ends) -> Ends:
    """Bounds of 1 less a share."""
    return np.clip(down(1.0 - ends[1], 1), 0.0, 1.0), np.clip(up(1.0 - ends[0], 1), 0.0, 1.0)


def positive(value: Reals, roundings: Reals) -> Ends:
    """The same of a number >= 0."""
    low, high = outward(value, roundings)
    return nonnegative(low), high


@EDGES
def product(first: Ends, second: Ends) -> Ends:
    """Bounds of the product of numbers in two intervals; infinite where nothing is known."""
    values = [a * b for a in first for b in second]
    low, high = down(np.minimum.reduce(values), 1), up(np.maximum.reduce(values), 1)
    low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    return low, high


def modulus(low: Reals, high: Reals, height: Reals) -> Ends:
    """Least and greatest |z| where z has its real part in [low, high] and its imaginary one in
    [-height, height]; not rounded outwards."""
    far = np.maximum(np.abs(low), np.abs(high))
    return np.maximum(np.maximum(low, -high), 0.0), np.hypot(far, height)


class Family(ABC):
    """A distribution in standard form, of a density that rises to `mode` and falls from there.

    `below` and `above` bound distribution function and its complement at floats y, `density` and
    `score`, the derivative of the density's logarithm, likewise. The score does not increase, if
    `falling`, else does not decrease.
    """

    low: float = -math.inf
    high: float = math.inf
    mode: float = 0.0
    falling: bool = True

    @abstractmethod
    def below(self, y: Reals) -> Ends:
        """Of P[Y <= y]."""

    @abstractmethod
    def above(self, y: Reals) -> Ends:
        """Of P[Y > y]."""

    @abstractmethod
    def density(self, y: Reals) -> Ends:
        """Of the density."""

    @abstractmethod
    def score(self, y: Reals) -> Ends:
        """Of the derivative of the density's logarithm."""

    @property
    def kinks(self) -> tuple[float, ...]:
        """Inner points where the density is not analytic."""
        return ()

    @abstractmethod
    def size(self, low: Reals, high: Reals, height: Reals) -> Reals:
        """At least |density|, continued analytically, over complex numbers with real part in
        [low, high] and imaginary part in [-height, height], up to a thousandth; infinite where it
        is not analytic."""

    @EDGES
    def density_range(self, low: Reals, high: Reals) -> Ends:
        """Of the density in [low, high]: least at an end, greatest there or at the mode."""
        first, last = self.density(low), self.density(high)
        top = up(self.density(np.full(1, self.mode))[1], 16)  # the mode is rounded itself
        slack = 64.0 * U * abs(self.mode)
        inside = (low <= self.mode + slack) & (high >= self.mode - slack)
        upper = np.where(inside, top, np.maximum(first[1], last[1]))
        return np.minimum(first[0], last[0]), upper

    def score_range(self, low: Reals, high: Reals) -> Ends:
        """Of the score in [low, high], which is monotone."""
        first, last = self.score(low), self.score(high)
        return (last[0], first[1]) if self.falling else (first[0], last[1])

    @EDGES
    def slope_range(self, low: Reals, high: Reals) -> Ends:
        """Of the density's derivative in [low, high]: density times score."""
        return product(self.density_range(low, high), self.score_range(low, high))


@dataclass(frozen=True)
class Normal(Family):
    """Of density `exp(-y^2 / 2) / sqrt(2 pi)`."""

    def below(self, y: Reals) -> Ends:
        return normal_cdf_bounds(y)

    def above(self, y: Reals) -> Ends:
        return normal_cdf_bounds(-y)

    def density(self, y: Reals) -> Ends:
        cut = np.clip(y, -100.0, 100.0)
        value = np.exp(-0.5 * cut * cut) * (1.0 / math.sqrt(2.0 * math.pi))
        error = value * ((EXP_ULPS + 8.0 + cut * cut) * (1.01 * U)) + TINY
        return nonnegative(value - error), value + error

    def score(self, y: Reals) -> Ends:
        return -y, -y

    @EDGES
    def size(self, low: Reals, high: Reals, height: Reals) -> Reals:
        near = np.maximum(np.maximum(low, -high), 0.0)
        return np.exp(0.5 * (height * height - near * near)) * (1.0 / math.sqrt(2.0 * math.pi))


@dataclass(frozen=True)
class Uniform(Family):
    """On [0, 1]."""

    low = 0.0
    high = 1.0

    def below(self, y: Reals) -> Ends:
        inside = np.clip(y, 0.0, 1.0)
        return inside, inside

    def above(self, y: Reals) -> Ends:
        return complement(self.below(y))

    def density(self, y: Reals) -> Ends:
        return np.ones_like(y), np.ones_like(y)

    def score(self, y: Reals) -> Ends:
        return np.zeros_like(y), np.zeros_like(y)

    def size(self, low: Reals, high: Reals, height: Reals) -> Reals:
        return np.ones_like(low)


@dataclass(frozen=True)
class Exponential(Family):
    """Of density `exp(-y)`, y >= 0."""

    low = 0.0

    def below(self, y: Reals) -> Ends:
        return share(-np.expm1(-nonnegative(y)), EXP_ULPS)

    def above(self, y: Reals) -> Ends:
        return share(np.exp(-nonnegative(y)), EXP_ULPS)

    def density(self, y: Reals) -> Ends:
        return self.above(y)

    def score(self, y: Reals) -> Ends:
        return -np.ones_like(y), -np.ones_like(y)

    @EDGES
    def size(self, low: Reals, high: Reals, height: Reals) -> Reals:
        return np.exp(-low)


@dataclass(frozen=True)
class Triangular(Family):
    """On [0, 1], its density greatest at `mode`."""

    mode: float = 0.5
    low = 0.0
    high = 1.0

    def _ends(self, y: Reals) -> tuple[Ends, Ends, Reals]:
        """`y^2 / mode` and `(1 - y)^2 / (1 - mode)`, each valid on its side of the mode, and which
        side it is."""
        y, c = np.clip(y, 0.0, 1.0), self.mode
        left = share(y * y / (c or 1.0), 4)
        right = share((1.0 - y) * (1.0 - y) / ((1.0 - c) or 1.0), 8)
        return left, right, (y <= c) & (c > 0)

    def below(self, y: Reals) -> Ends:
        left, right, rises = self._ends(y)
        rest = complement(right)
        return np.where(rises, left[0], rest[0]), np.where(rises, left[1], rest[1])

    def above(self, y: Reals) -> Ends:
        left, right, rises = self._ends(y)
        rest = complement(left)
        return np.where(rises, rest[0], right[0]), np.where(rises, rest[1], right[1])

    def density(self, y: Reals) -> Ends:
        c = self.mode
        left = 2.0 * y / c if c > 0 else np.full_like(y, 2.0)
        right = 2.0 * (1.0 - y) / (1.0 - c) if c < 1 else np.full_like(y, 2.0)
        return positive(np.minimum(nonnegative(left), nonnegative(right)), 4)

    def score(self, y: Reals) -> Ends:
        raise NotImplementedError  # its slopes are known

    def slope_range(self, low: Reals, high: Reals) -> Ends:
        c = self.mode
        rise = positive(np.float64(2.0 / c if c > 0 else 0.0), 2)
        fall = positive(np.float64(2.0 / (1.0 - c) if c < 1 else 0.0), 3)
        return np.where(high <= c, rise[0], -fall[1]), np.where(low >= c, -fall[0], rise[1])

    @property
    def kinks(self) -> tuple[float, ...]:
        return (self.mode,) if 0 < self.mode < 1 else ()

    def size(self, low: Reals, high: Reals, height: Reals) -> Reals:
        c, sizes = self.mode, []
        if c > 0:
            sizes.append(2.0 * modulus(low, high, height)[1] / c)
        if c < 1:
            sizes.append(2.0 * modulus(1.0 - high, 1.0 - low, height)[1] / (1.0 - c))
        return np.maximum.reduce(sizes)


@dataclass(frozen=True)
class Logistic(Family):
    """Of distribution function `1 / (1 + exp(-y))`."""

    def below(self, y: Reals) -> Ends:
        small = np.exp(-abs(y))
        return share(np.where(y < 0, small, 1.0) / (1.0 + small), 2 * EXP_ULPS + 4)

    def above(self, y: Reals) -> Ends:
        return self.below(-y)

    def density(self, y: Reals) -> Ends:
        small = np.exp(-abs(y))
        return positive(small / (1.0 + small) ** 2, 3 * EXP_ULPS + 8)

    def score(self, y: Reals) -> Ends:
        low, high = self.below(y)
        return down(1.0 - 2.0 * high, 1), up(1.0 - 2.0 * low, 1)

    @EDGES
    def size(self, low: Reals, high: Reals, height: Reals) -> Reals:
        """By `|1 + cosh z| = cosh x + cos y`."""
        near = np.maximum(np.maximum(low, -high), 0.0)
        value = 0.5 / (np.cosh(near) + np.cos(height))
        return np.where(height < 3.0, value, np.inf)


@dataclass(frozen=True)
class Gumbel(Family):
    """Of distribution function `exp(-exp(-y))`."""

    def _inner(self, y: Reals) -> Ends:
        return positive(np.exp(-np.clip(y, -700.0, None)), EXP_ULPS)

    def below(self, y: Reals) -> Ends:
        low, high = self._inner(y)
        return share(np.exp(-high), EXP_ULPS)[0], share(np.exp(-low), EXP_ULPS)[1]

    def above(self, y: Reals) -> Ends:
        low, high = self._inner(y)
        return share(-np.expm1(-low), EXP_ULPS)[0], share(-np.expm1(-high), EXP_ULPS)[1]

    def density(self, y: Reals) -> Ends:
        inner, whole = self._inner(y), self.below(y)
        return nonnegative(down(inner[0] * whole[0], 1)), up(inner[1] * whole[1], 1)

    def score(self, y: Reals) -> Ends:
        low, high = self._inner(y)
        return down(low - 1.0, 1), up(high - 1.0, 1)

    @EDGES
    def size(self, low: Reals, high: Reals, height: Reals) -> Reals:
        """`exp(-x - c e^-x)`, c the least cosine, greatest at `x = log c`."""
        c = np.cos(height)
        x = np.clip(np.log(c), low, high)
        return np.where(height < 1.5, np.exp(-x - c * np.exp(-x)), np.inf)


@dataclass(frozen=True)
class Weibull(Family):
    """Of distribution function `1 - exp(-y^shape)`, y >= 0."""

    shape: float = 1.0
    low = 0.0

    @property
    def falling(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.shape >= 1

    @property
    def mode(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        c = self.shape
        return ((c - 1.0) / c) ** (1.0 / c) if c > 1 else 0.0

    @EDGES
    def _power(self, y: Reals, exponent: float) -> Ends:
        """Of `y^exponent`, whose exponent may have one rounding of its own."""
        y = nonnegative(y)
        value = y**exponent
        moved = abs(np.log(np.where(y > 0, y, 1.0))) * abs(exponent)
        return positive(value, POW_ULPS + 4.0 + 4.0 * moved)

    @EDGES
    def below(self, y: Reals) -> Ends:
        low, high = self._power(y, self.shape)
        return share(-np.expm1(-low), EXP_ULPS)[0], share(-np.expm1(-high), EXP_ULPS)[1]

    @EDGES
    def above(self, y: Reals) -> Ends:
        low, high = self._power(y, self.shape)
        return share(np.exp(-high), EXP_ULPS)[0], share(np.exp(-low), EXP_ULPS)[1]

    @EDGES
    def density(self, y: Reals) -> Ends:
        power, tail = self._power(y, self.shape - 1.0), self.above(y)
        low = nonnegative(down(self.shape * power[0] * tail[0], 3))
        high = up(self.shape * power[1] * tail[1], 3)
        return np.where(np.isnan(low), 0.0, low), np.where(np.isnan(high), np.inf, high)

    @EDGES
    def score(self, y: Reals) -> Ends:
        power = self._power(y, self.shape - 1.0)
        first = (self.shape - 1.0) / nonnegative(y)
        first = np.where(np.isnan(first), 0.0, first)  # an exponential at 0
        low = down(down(first, 2) - up(self.shape * power[1], 2), 1)
        high = up(up(first, 2) - down(self.shape * power[0], 2), 1)
        return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)

    @EDGES
    def size(self, low: Reals, high: Reals, height: Reals) -> Reals:
        c, (near, far) = self.shape, modulus(low, high, height)
        turn = c * np.arctan2(height, low)
        value = c * np.maximum(near ** (c - 1.0), far ** (c - 1.0))
        value = value * np.exp(-(near**c) * np.cos(turn))
        return np.where((low > 0) & (turn < 1.5), value, np.inf)


@dataclass(frozen=True)
class Lognormal(Family):
    """Of `exp(sigma Z)`, Z normal."""

    sigma: float = 1.0
    low = 0.0

    @property
    def mode(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return math.exp(-self.sigma * self.sigma)

    @EDGES
    def _normal(self, y: Reals) -> Ends:
        """Of `log(y) / sigma`."""
        value = np.log(nonnegative(y)) / self.sigma
        finite = np.isfinite(value)
        safe = np.where(finite, value, 0.0)
        low, high = down(safe, ASIN_LOG_ULPS + 2), up(safe, ASIN_LOG_ULPS + 2)
        return np.where(finite, low, value), np.where(finite, high, value)

    @EDGES
    def below(self, y: Reals) -> Ends:
        low, high = self._normal(y)
        return normal_cdf_bounds(low)[0], normal_cdf_bounds(high)[1]

    @EDGES
    def above(self, y: Reals) -> Ends:
        low, high = self._normal(y)
        return normal_cdf_bounds(-high)[0], normal_cdf_bounds(-low)[1]

    @EDGES
    def density(self, y: Reals) -> Ends:
        low, high = self._normal(y)
        least, most = Normal().density_range(low, high)
        least, most = (end / (nonnegative(y) * self.sigma) for end in (least, most))
        least, most = nonnegative(down(least, 3)), up(most, 3)
        return np.where(np.isnan(least), 0.0, least), np.where(np.isnan(most), np.inf, most)

    @EDGES
    def score(self, y: Reals) -> Ends:
        """Of `-(1 + log(y) / sigma^2) / y`."""
        low, high = self._normal(y)
        ends = [
            move(move(1.0 + move(z / self.sigma, 2), 1) / nonnegative(y), 2)
            for z, move in ((high, up), (low, down))
        ]
        least, most = -ends[0], -ends[1]
        # the quotient was moved from a number of either sign: once more by its size
        least, most = down(least, 8), up(most, 8)
        return np.where(np.isnan(least), -np.inf, least), np.where(np.isnan(most), np.inf, most)

    @EDGES
    def score_range(self, low: Reals, high: Reals) -> Ends:
        """It falls to `-exp(sigma^2 - 1) / sigma^2` at `exp(1 - sigma^2)`, and rises from there."""
        first, last = self.score(low), self.score(high)
        turn = math.exp(1.0 - self.sigma**2)
        bottom = -up(np.exp(np.float64(self.sigma**2 - 1.0)) / self.sigma**2, 64)
        slack = 64.0 * U * turn * (1.0 + self.sigma**2)
        inside = (low <= turn + slack) & (high >= turn - slack)
        least = np.minimum(first[0], last[0])
        return np.where(inside, np.minimum(least, bottom), least), np.maximum(first[1], last[1])

    @EDGES
    def size(self, low: Reals, high: Reals, height: Reals) -> Reals:
        near, far = modulus(low, high, height)
        logs = np.log(near), np.log(far)
        least = np.maximum(np.maximum(logs[0], -logs[1]), 0.0)
        turn = np.arctan2(height, low)
        value = np.exp(0.5 * (turn * turn - least * least) / self.sigma**2)
        value = value / (near * self.sigma * math.sqrt(2.0 * math.pi))
        return np.where(low > 0, value, np.inf)


@dataclass(frozen=True)
class Reflected(Family):
    """Of -Y."""

    base: Family

    @property
    def low(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return -self.base.high

    @property
    def high(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return -self.base.low

    @property
    def mode(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return -self.base.mode

    @property
    def falling(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.base.falling

    def below(self, y: Reals) -> Ends:
        return self.base.above(-y)

    def above(self, y: Reals) -> Ends:
        return self.base.below(-y)

    def density(self, y: Reals) -> Ends:
        return self.base.density(-y)

    def score(self, y: Reals) -> Ends:
        low, high = self.base.score(-y)
        return -high, -low

    def slope_range(self, low: Reals, high: Reals) -> Ends:
        least, most = self.base.slope_range(-high, -low)
        return -most, -least

    @property
    def kinks(self) -> tuple[float, ...]:
        return tuple(-y for y in self.base.kinks)

    def size(self, low: Reals, high: Reals, height: Reals) -> Reals:
        return self.base.size(-high, -low, height)
