"""k(x, y) = s F_0(r): the shape of a radial kernel, and how it falls with the scaled distance r.

With `F_n = (-1/r d/dr)^n F_0` and u the scaled difference of x and y,

    D_d k = -s F_1 (u.d),             D_d^2 k = s (F_2 (u.d)^2 - F_1 |d|^2),
    D_d^3 k = s (3 F_2 (u.d) |d|^2 - F_3 (u.d)^3).

All profiles here are scale mixtures of Gaussians, F_0 is completely monotone in r^2 (Schoenberg),
so every F_n is positive and decreasing. The *growth* `w_n = r^2 F_(n+1) / F_n` is increasing in r
for each of them (shown where it is given), and that alone makes the rest provable:

    d log(F_n r^k) / d log r = k - w_n      F_n r^k rises up to w_n = k and falls beyond,
    d log w_n / d log r = 2 + w_n - w_(n+1) >= 0,   so   w_(n+1) <= w_n + 2.

Proofs: docs/mathematics.md, statements 2.3, 2.5, 2.6 and 3.1.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from gpcert.arrays import Array, namespace
from gpcert.kernels.nodes.positive_series import PositiveSeries
from gpcert.rounding import EXP_ULPS, U

__all__ = ["GaussianProfile", "PEAK_SLACK", "RadialProfile", "infinite_beyond_zero", "power"]

PEAK_SLACK = 1e-10
"""Relative: what a peak found in floating point may miss of the maximum. At the point found,
`|w_n - k| <= 1e-12`, and between it and the peak the logarithm changes at most that fast."""


class RadialProfile(ABC):
    """F_0 with F_0(0) = 1. Frozen records, so that peaks are found once."""

    negligible: float
    """Beyond this r all F_n r^k, k <= n <= 5, are below TINY / 1e20, computed ones too."""

    @property
    @abstractmethod
    def at_zero(self) -> tuple[float, float, float, float]:
        """F_n(0), rounded up; infinite where k is not 2n times differentiable.

        `E u^(2n) = 1, 1, 3, 15 times F_n(0) |d|^(2n)` for the spectral variable u = w.d.
        """

    @abstractmethod
    def terms(self, r: Array, *pairs: tuple[int, int]) -> list[Array]:
        """`F_n(r) r^k` for the pairs (n, k), in plain floating point; may be infinite at r = 0."""

    @abstractmethod
    def growth(self, n: int, r: Array) -> Array:
        """`w_n(r)`, n <= 3, for 0 <= r <= 1e140; relative rounding like that of `terms`."""

    @abstractmethod
    def steepness(self, n: int, low: Array, high: Array) -> Array:
        """Upper bound of `w_n / r = -d log F_n / dr` on [low, high]; may be infinite."""

    @abstractmethod
    def roundings(self, r: Array) -> Array:
        """Relative error of `terms` at the exact r, in units of U, where they do not underflow."""

    def uniform_error(self, r: Array, rate: float, shift: Array) -> Array | None:
        """One relative error of F_0, F_1 and F_2 where r is known up to `rate r + shift`.

        A shortcut for what `steepness` and `roundings` give, in few passes over the numbers; valid
        where it is at most 0.1, for shifts up to 1e-8. None where the F_n are not so regular.
        """
        del r, rate, shift
        return None

    @abstractmethod
    def squared_remainders(self, rho2: Array) -> tuple[Array, Array, Array]:
        """Upper bounds of R_n^2, n = 0, 1, 2, over displacements of squared length <= rho2.

        R0^2 = 2 - 2 F_0,   R1^2 = 2 - 2 F_0 - 2 rho2 F_1 + F_1(0) rho2,
        R2^2 = 2 - 2 F_0 - rho2 F_1 - rho2^2 F_2 + (3/4) F_2(0) rho2^2,
        all increasing in rho2 (Statement 2.5); infinite where the feature map is not that smooth.
        """

    @cached_property
    def _peaks(self) -> dict[tuple[int, int], float]:
        return {}

    def peak(self, n: int, k: int) -> float:
        """Where `F_n r^k` is largest, `w_n = k`: bisection in log r; 0 if it only falls."""
        if (n, k) not in self._peaks:
            low, high = -140.0, 140.0
            for _ in range(200):
                middle = 0.5 * (low + high)
                at = np.asarray([10.0**middle])
                low, high = (middle, high) if self.growth(n, at)[0] < k else (low, middle)
            found = 10.0**low
            self._peaks[n, k] = found if found > 1e-139 else 0.0
        return self._peaks[n, k]


@lru_cache(maxsize=1)
def _gaussian_series() -> tuple[PositiveSeries, PositiveSeries, PositiveSeries]:
    """R_n^2 as functions of x = rho2 / 2."""
    rows = (([2], [2]), ([2, 2], [2, 4]), ([2, 0, 3], [2, 2, 4]))
    one, two, three = (
        PositiveSeries(tuple(map(Fraction, g)), tuple(map(Fraction, h))) for g, h in rows
    )
    return one, two, three


@dataclass(frozen=True)
class GaussianProfile(RadialProfile):
    """F_n = exp(-r^2 / 2) for all n; w_n = r^2."""

    negligible = 46.0

    @property
    def at_zero(self) -> tuple[float, float, float, float]:
        """All one."""
        return 1.0, 1.0, 1.0, 1.0

    def terms(self, r: Array, *pairs: tuple[int, int]) -> list[Array]:
        """One exponential for all."""
        xp = namespace(r)
        most = xp.minimum(r, xp.full_like(r, 60.0))  # r^k exp(-r^2/2) is 0 from 40 on
        value = xp.exp(-0.5 * most * most)
        return [value * power(most, k) if k else value for _, k in pairs]

    def growth(self, n: int, r: Array) -> Array:
        """r^2."""
        return r * r

    def steepness(self, n: int, low: Array, high: Array) -> Array:
        """r."""
        return high

    def roundings(self, r: Array) -> Array:
        """The exponent is at most `negligible^2 / 2` and carries two roundings; exp, powers."""
        xp = namespace(r)
        most = xp.minimum(r, xp.full_like(r, self.negligible))
        return 2.0 * most * most + (EXP_ULPS + 10)

    def uniform_error(self, r: Array, rate: float, shift: Array) -> Array | None:
        """`(r + e) e` for the error e of r, and `roundings`; r beyond `negligible` is cut."""
        xp = namespace(r)
        most = xp.minimum(r, xp.full_like(r, self.negligible))
        return most * ((1.2 * rate + 2.2 * U) * most + 1.2 * shift) + (EXP_ULPS + 14) * U

    def squared_remainders(self, rho2: Array) -> tuple[Array, Array, Array]:
        """With x = rho2 / 2: `2 - 2e^-x`, `2 + 2x - e^-x (2 + 4x)`, `2 + 3x^2 - e^-x (...)`."""
        zeroth, first, second = (series.at(0.5 * rho2) for series in _gaussian_series())
        return zeroth, first, second


def power(x: Array, k: int) -> Array:
    """`x^k` for k >= 1 by products: a library's power is ten times slower."""
    result = x
    for _ in range(k - 1):
        result = result * x
    return result


def infinite_beyond_zero(rho2: Array) -> Array:
    """Infinite for every displacement but none: a derivative that does not exist."""
    xp = namespace(rho2)
    return xp.where(rho2 > 0, xp.full_like(rho2, math.inf), xp.zeros_like(rho2))
