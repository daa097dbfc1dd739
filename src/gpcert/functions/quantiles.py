"""Piecewise linear functions, with jumps, and quantiles of the normal law.

Proofs: docs/mathematics.md, statements 18.3 and 18.4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import array_api_compat
import numpy as np
from scipy import special

from gpcert.errors import InputError
from gpcert.functions.base import Increasing
from gpcert.integrals.special import normal_cdf, normal_cdf_bounds, normal_pdf
from gpcert.numerics.arrays import Array, Reals, finite_array, namespace
from gpcert.numerics.rounding import TINY, gamma

STEPS = 2.0 ** np.arange(-46, 4, 3)
"""Distances from an approximate quantile that are tried, until one is proved."""


@dataclass(frozen=True)
class Piecewise(Increasing):
    """Linear between the knots (x_i, y_i), both nondecreasing, constant outside. At two equal x_i
    it jumps, and is there the middle of the jump; at three it is there the second y_i.

    >>> steps = Piecewise((0.0, 1.0, 1.0, 2.0), (0.0, 1.0, 3.0, 3.0))
    >>> steps.value(np.array([0.5, 1.0, 9.0])).tolist()
    [0.5, 2.0, 3.0]
    """

    x: tuple[float, ...]
    y: tuple[float, ...]

    name: ClassVar[str] = "piecewise"

    def __post_init__(self) -> None:
        x, y = (finite_array("Piecewise: knots", part, 1) for part in (self.x, self.y))
        if len(x) < 1 or len(x) != len(y) or np.any(np.diff(x) < 0) or np.any(np.diff(y) < 0):
            raise InputError(
                "Piecewise: expected knots x and values y of one length, neither decreasing, got "
                f"{len(x)} and {len(y)} numbers"
            )
        if np.any(x[3:] == x[:-3]):
            raise InputError("Piecewise: expected at most three knots at one place, got more")
        object.__setattr__(self, "x", tuple(x.tolist()))
        object.__setattr__(self, "y", tuple(y.tolist()))

    @cached_property
    def _knots(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array(self.x), np.array(self.y)

    def value(self, x: Reals) -> Reals:
        left, right = self._sides(x)
        return 0.5 * left[0] + 0.5 * right[0]

    def slope(self, x: np.ndarray) -> np.ndarray:
        _, _, rise, run = self._sides(x)[1]
        return np.where(run > 0, rise / np.where(run > 0, run, 1.0), 0.0)

    def inverse(self, y: np.ndarray) -> np.ndarray:
        x = np.interp(y, self._knots[1], self._knots[0])
        beside = 1e-9 * (self.x[-1] - self.x[0])  # the ends may be those of jumps
        return np.where(y <= self.y[0], x - beside, np.where(y >= self.y[-1], x + beside, x))

    def ends(self, low: Array, high: Array) -> tuple[Array, Array]:
        """The linear part by the size of its terms, within the ends of its piece."""
        first, last = (self._bounds(x) for x in (low, high))
        return first[0], last[1]

    def _bounds(self, x: Array) -> tuple[Array, Array]:
        xp = namespace(x)
        lows, highs = [], []
        for value, start, rise, _ in self._sides(x):
            error = gamma(16) * (abs(start) + rise) + TINY
            lows.append(xp.maximum(value - error, start))
            highs.append(xp.minimum(value + error, start + (rise + gamma(4) * (rise + abs(start)))))
        error = gamma(4) * (abs(lows[0]) + abs(highs[1])) + TINY
        same = (lows[0] == lows[1]) & (highs[0] == highs[1])
        low = xp.where(same, lows[0], 0.5 * lows[0] + 0.5 * lows[1] - error)
        high = xp.where(same, highs[0], 0.5 * highs[0] + 0.5 * highs[1] + error)
        return low, high

    def _sides(self, x: Any) -> list[tuple[Any, Any, Any, Any]]:
        """From the left and from the right: the value, where its piece starts, its rise and run."""
        xp = namespace(x)
        kx, ky = (xp.asarray(part, device=array_api_compat.device(x)) for part in self._knots)
        last, sides = len(self.x) - 1, []
        for side in ("left", "right"):
            after = xp.searchsorted(kx, x, side=side)
            i, j = (after - 1).clip(0, last), after.clip(0, last)
            start, rise, run = ky[i], ky[j] - ky[i], kx[j] - kx[i]
            part = xp.where(run > 0, (x - kx[i]) / xp.where(run > 0, run, run + 1.0), 0.0 * x)
            sides.append((start + part.clip(0.0, 1.0) * rise, start, rise, run, after))
        before = sides[0][4]
        told, zero = sides[1][4] - before == 3, 0.0 * x
        here = ky[(before + 1).clip(0, last)]
        return [
            tuple(
                xp.where(told, known, part)
                for known, part in zip((here, here, zero, zero), each[:4], strict=True)
            )
            for each in sides
        ]


@dataclass(frozen=True)
class NormalQuantile(Increasing):
    """The z with Phi(z) = p, within [-limit, limit].

    >>> NormalQuantile(5.0).value(np.array([0.0, 0.5, 1.0])).tolist()
    [-5.0, 0.0, 5.0]
    """

    limit: float

    name: ClassVar[str] = "normal-quantile"
    domain: ClassVar[tuple[float, float]] = (0.0, 1.0)  # pyright: ignore

    def __post_init__(self) -> None:
        if not 0.0 < self.limit <= 30.0:
            raise InputError(f"NormalQuantile: expected a limit in (0, 30], got {self.limit!r}")

    def value(self, x: Reals) -> Reals:
        xp = namespace(x)
        z = self._of_tail(xp.minimum(x, 1.0 - x))  # 1 - x is exact from 1/2 on
        return xp.where(x > 0.5, -z, z)

    def _of_tail(self, p: Reals) -> Reals:
        """The quantile of p <= 1/2."""
        xp = namespace(p)
        inverse = xp.special.ndtri if array_api_compat.is_torch_array(p) else special.ndtri
        return inverse(p).clip(-self.limit, 0.0)

    def slope(self, x: np.ndarray) -> np.ndarray:
        z = self.value(x)
        return np.where(np.abs(z) < self.limit, 1.0 / normal_pdf(z), 0.0)

    def inverse(self, y: np.ndarray) -> np.ndarray:
        clipped = np.abs(y) >= (1.0 - 1e-9) * self.limit
        return np.where(clipped, (y > 0).astype(np.float64), special.ndtr(y))

    def ends(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Statement 18.4: what certified values of Phi show, at the first distance that does."""
        return -self._above(1.0 - low, low), self._above(high, 1.0 - high)

    def _above(self, p: Array, rest: Array) -> Array:
        """A number >= the quantile of p, exact where `rest`, about 1 - p, is from 1/2 on; else that
        is exact. z is one if `Phi(z) >= p`, or if `Phi(-z) <= rest`.
        """
        xp = namespace(p)
        z, best = self._of_tail(xp.where(rest < 0.5, rest, p)), xp.full_like(p, self.limit)
        z = xp.where(rest < 0.5, -z, z)
        for step in STEPS[::-1]:
            tried = z + float(step)
            held = xp.where(
                rest >= 0.5,
                normal_cdf_bounds(tried)[0] >= p,
                normal_cdf_bounds(-tried)[1] <= rest,
            )
            best = xp.where(held, tried, best)
        return best.clip(-self.limit, self.limit)


@dataclass(frozen=True)
class NormalCdf(Increasing):
    """`Phi(x)`.

    >>> NormalCdf().value(np.array([0.0])).tolist()
    [0.5]
    """

    name: ClassVar[str] = "normal-cdf"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def value(self, x: Reals) -> Reals:
        return normal_cdf(x)

    def slope(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(normal_pdf(x))

    def inverse(self, y: np.ndarray) -> np.ndarray:
        return special.ndtri(y)

    def ends(self, low: Array, high: Array) -> tuple[Array, Array]:
        return normal_cdf_bounds(low)[0], normal_cdf_bounds(high)[1]


def normal_quantile_bounds(p: float) -> tuple[float, float]:
    """Certified ends of the z with Phi(z) = p, for 0 < p < 1.

    >>> low, high = normal_quantile_bounds(0.975)
    >>> low <= 1.959963984540054 <= high, high - low < 1e-11
    (True, True)
    """
    if not (isinstance(p, int | float) and 1e-190 < p < 1.0 and math.isfinite(p)):
        raise InputError(f"level: expected a probability between 0 and 1, got {p!r}")
    ends = NormalQuantile(30.0).ends(np.array([float(p)]), np.array([float(p)]))
    return float(ends[0][0]), float(ends[1][0])
