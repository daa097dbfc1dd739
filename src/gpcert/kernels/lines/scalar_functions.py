"""Functions of one variable whose lines `gpcert.kernels.lines.scalar_lines` finds.

All a line needs to know of psi is the certified minimum of `psi(t) - slope t` over an interval: the
best intercept under psi for a given slope. Everything is elementwise over arrays.

Proofs: docs/mathematics.md, statement 12.1.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from gpcert.arrays import Array, namespace
from gpcert.rounding import ASIN_LOG_ULPS, EXP_ULPS, SIN_COS_ULPS, TINY, U, gamma

__all__ = ["CosineFunction", "ExponentialFunction", "PiecewiseConvex", "ScalarFunction"]

LARGEST_EXPONENT = 700.0
"""exp overflows beyond 709.78."""

MOST_HALVINGS = 64
"""Bisection steps for `psi' = slope`: an interval of floats needs no more than these."""


class ScalarFunction(ABC):
    """psi with finitely many flex points on every interval."""

    infimum: float
    """Lower bound of psi over the whole line, minus infinity where there is none."""

    @abstractmethod
    def value(self, t: Array) -> Array:
        """psi(t) in plain floating point."""

    @abstractmethod
    def derivative(self, t: Array) -> Array:
        """psi'(t) in plain floating point: only a choice of slope."""

    @abstractmethod
    def least(self, slope: Array, low: Array, high: Array) -> tuple[Array, Array]:
        """Certified lower bound of `min psi(t) - slope t` over [low, high], and a point near it.

        The slope is the real number that its float is.
        """

    @abstractmethod
    def negated(self) -> ScalarFunction:
        """-psi: a line over psi is minus a line under it."""

    @abstractmethod
    def next_flex(self, t: Array) -> Array:
        """The first flex point beyond t, infinity if there is none; plain floating point."""

    @abstractmethod
    def convex_at(self, t: Array) -> Array:
        """Whether psi is convex around t."""


def _smallest(candidates: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """The smallest of several (bound, place)."""
    bound, place = candidates[0]
    xp = namespace(bound)
    for other, where in candidates[1:]:
        better = other < bound
        bound, place = xp.where(better, other, bound), xp.where(better, where, place)
    return bound, place


@dataclass(frozen=True)
class CosineFunction(ScalarFunction):
    """`sign cos(t)`, sign = 1 or -1.

    >>> import numpy as np
    >>> zero, six = np.asarray(0.0), np.asarray(6.0)
    >>> bound, place = CosineFunction().least(zero, zero, six)
    >>> bool(bound <= -1.0), round(float(place), 6)
    (True, 3.141593)
    """

    sign: float = 1.0
    infimum: float = -1.0

    def value(self, t: Array) -> Array:
        """`sign cos t`."""
        return self.sign * namespace(t).cos(t)

    def derivative(self, t: Array) -> Array:
        """`-sign sin t`."""
        return -self.sign * namespace(t).sin(t)

    def negated(self) -> CosineFunction:
        """The other sign."""
        return CosineFunction(-self.sign)

    def next_flex(self, t: Array) -> Array:
        """The odd multiple of pi/2 beyond t."""
        xp = namespace(t)
        flex = (xp.floor(t / math.pi - 0.5) + 1.5) * math.pi
        return xp.where(flex > t, flex, flex + math.pi)

    def convex_at(self, t: Array) -> Array:
        """Where psi is negative."""
        return self.value(t) < 0

    def least(self, slope: Array, low: Array, high: Array) -> tuple[Array, Array]:
        """At an end, or at a local minimum: `t = asin(slope) + 2 pi k` (sign -1), + pi (sign 1).

        All local minima lie on a line of slope `-slope`, so only the last (the first, for a slope
        < 0) matters; its value is `-sqrt(1 - slope^2) - slope t`. A minimum that may be just
        outside by rounding is counted as inside, which only lowers the bound.
        """
        xp = namespace(low)
        one = xp.ones_like(low)
        slope = slope + xp.zeros_like(low)
        b = xp.maximum(xp.minimum(slope, one), -one)
        base = xp.asin(b) + (math.pi if self.sign > 0 else 0.0)
        slack = (32.0 * U) * (xp.abs(low) + xp.abs(high) + 16.0)
        turn = 2.0 * math.pi
        last = xp.floor((high + slack - base) / turn)
        first = xp.ceil((low - slack - base) / turn)
        inside = (last >= first) & (xp.abs(slope) <= 1.0)
        place = base + turn * xp.where(slope >= 0, last, first)
        within = -xp.sqrt((1.0 - b) * (1.0 + b)) - slope * place
        rounding = (ASIN_LOG_ULPS + 8) * 2.0 * U
        within = within - rounding * (1.0 + xp.abs(slope) * (xp.abs(place) + 8.0))
        found = [(xp.where(inside, within, one * math.inf), place)]
        for end in (low, high):
            size = 1.0 + 2.0 * xp.abs(slope * end)
            bound = (self.value(end) - slope * end) - gamma(SIN_COS_ULPS + 4) * size
            found.append((bound, end))
        bound, place = _smallest(found)
        return bound, xp.minimum(xp.maximum(place, low), high)


@dataclass(frozen=True)
class ExponentialFunction(ScalarFunction):
    """`sign exp(t)`, sign = 1 or -1: convex or concave everywhere.

    >>> import numpy as np
    >>> bound, place = ExponentialFunction().least(*np.asarray([1.0, -1.0, 3.0]))
    >>> bool(bound <= 1.0), float(place)
    (True, 0.0)
    """

    sign: float = 1.0

    @property
    def infimum(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """exp is positive, -exp unbounded."""
        return 0.0 if self.sign > 0 else -math.inf

    def value(self, t: Array) -> Array:
        """`sign exp t`, the argument kept below overflow."""
        xp = namespace(t)
        return self.sign * xp.exp(xp.minimum(t, xp.full_like(t, LARGEST_EXPONENT)))

    def derivative(self, t: Array) -> Array:
        """`sign exp t`."""
        return self.value(t)

    def negated(self) -> ExponentialFunction:
        """The other sign."""
        return ExponentialFunction(-self.sign)

    def next_flex(self, t: Array) -> Array:
        """None."""
        return t * 0.0 + math.inf

    def convex_at(self, t: Array) -> Array:
        """By the sign."""
        return (0.0 * t == 0.0) & (self.sign > 0)

    @np.errstate(over="ignore")
    def least(self, slope: Array, low: Array, high: Array) -> tuple[Array, Array]:
        """At an end; for exp with a slope > 0 also at `t = log slope`: `slope (1 - log slope)`.

        That is the minimum over the whole line, so it is a bound wherever it is used.
        """
        xp = namespace(low)
        slope = slope + xp.zeros_like(low)
        infinite = low * 0.0 + math.inf
        found = []
        for end in (low, high):
            bound = self.value(end) - slope * end
            size = xp.abs(self.value(end)) + 2.0 * xp.abs(slope * end)
            bound = bound - gamma(EXP_ULPS + 4) * size - TINY
            if self.sign < 0:  # of exp the capped value is a lower bound, of -exp nothing is known
                bound = xp.where(end > LARGEST_EXPONENT, -infinite, bound)
            found.append((bound, end))
        if self.sign > 0:
            positive = slope > 0
            safe = xp.where(positive, slope, xp.ones_like(slope))
            place = xp.log(safe)
            within = safe * (1.0 - place)
            size = safe * (1.0 + xp.abs(place))
            within = within - gamma(ASIN_LOG_ULPS + 8) * size - TINY
            slack = (32.0 * U) * (1.0 + xp.abs(low) + xp.abs(high))
            inside = positive & (place > low - slack) & (place < high + slack)
            found.append((xp.where(inside, within, infinite), place))
        bound, place = _smallest(found)
        return bound, xp.minimum(xp.maximum(place, low), high)


@dataclass(frozen=True)
class PiecewiseConvex(ScalarFunction):
    """`sign psi(t)` for a psi given with its derivative and its flex points.

    psi is convex before the first flex point if `starts_convex`, and changes at each of them. The
    caller names two errors, over the intervals that will be asked for: of the computed value (and
    of moving psi to a function whose flex points are exactly these floats), and of the derivative.

    >>> import numpy as np
    >>> cube = PiecewiseConvex(lambda t: t**3, lambda t: 3 * t**2, (0.0,), False, 1e-13, 1e-13)
    >>> bound, place = cube.least(*np.asarray([3.0, -1.0, 2.0]))
    >>> round(float(bound), 9), round(float(place), 6)
    (-2.0, 1.0)
    """

    function: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    flexes: tuple[float, ...]
    starts_convex: bool
    value_error: float
    slope_error: float
    infimum: float = -math.inf
    supremum: float = math.inf
    sign: float = 1.0

    def value(self, t: Array) -> Array:
        """`sign psi(t)`."""
        return self.sign * self.function(t)

    def derivative(self, t: Array) -> Array:
        """`sign psi'(t)`."""
        return self.sign * self.slope(t)

    def negated(self) -> PiecewiseConvex:
        """The other sign, convex where this one is concave."""
        return replace(self, sign=-self.sign, infimum=-self.supremum, supremum=-self.infimum)

    def next_flex(self, t: Array) -> Array:
        """The first of the flex points beyond t."""
        xp = namespace(t)
        found = t * 0.0 + math.inf
        for flex in reversed(self.flexes):
            found = xp.where(t < flex, xp.full_like(t, flex), found)
        return found

    def convex_at(self, t: Array) -> Array:
        """By the number of flex points before t."""
        xp = namespace(t)
        convex = xp.full_like(t, 1.0 if self.starts_convex == (self.sign > 0) else -1.0)
        for flex in self.flexes:
            convex = xp.where(t > flex, -convex, convex)
        return convex > 0

    def least(self, slope: Array, low: Array, high: Array) -> tuple[Array, Array]:
        """Concave pieces at their ends; convex ones where `psi' = slope`, with a tangent."""
        xp = namespace(low)
        slope = slope + xp.zeros_like(low)
        found = [(self._at(slope, low), low), (self._at(slope, high), high)]
        convex = self.starts_convex == (self.sign > 0)
        edges = (-math.inf, *self.flexes, math.inf)
        for left, right in pairwise(edges):
            a = xp.minimum(xp.maximum(low, xp.full_like(low, left)), high)
            b = xp.maximum(xp.minimum(high, xp.full_like(high, right)), low)
            present = (low < right) & (high > left)
            if convex:
                bound, place = self._convex_piece(slope, a, b)
                found.append((xp.where(present, bound, bound * 0.0 + math.inf), place))
            else:
                for end in (a, b):
                    found.append((self._at(slope, end), end))
            convex = not convex
        return _smallest(found)

    def _at(self, slope: Array, t: Array) -> Array:
        """Certified `psi(t) - slope t` at one point."""
        xp = namespace(t)
        value = self.value(t)
        rounding = gamma(4) * (xp.abs(value) + 2.0 * xp.abs(slope * t)) + TINY
        return (value - slope * t) - (rounding + self.value_error)

    def _convex_piece(self, slope: Array, a: Array, b: Array) -> tuple[Array, Array]:
        """`psi(t) - slope t >= psi(x) - slope x + (psi'(x) - slope)(t - x)` on a convex piece."""
        xp = namespace(a)
        left, right = a, b
        for _ in range(MOST_HALVINGS):
            middle = 0.5 * (left + right)
            rising = self.derivative(middle) > slope
            left, right = xp.where(rising, left, middle), xp.where(rising, middle, right)
        x = 0.5 * (left + right)
        tilt = self.derivative(x) - slope
        tilt_error = self.slope_error + gamma(2) * xp.abs(tilt)
        zero = xp.zeros_like(x)
        ahead = xp.maximum(tilt_error - tilt, zero) * (b - x)
        behind = xp.maximum(tilt_error + tilt, zero) * (x - a)
        return self._at(slope, x) - xp.maximum(ahead, behind) * (1.0 + gamma(8)), x
