"""k(x, y) = s F_0(r): the shape of a radial kernel, and how it falls with the scaled distance r.

With `F_n = (-1/r d/dr)^n F_0` and u the scaled difference of x and y,

    D_d k = -s F_1 (u.d),             D_d^2 k = s (F_2 (u.d)^2 - F_1 |d|^2),
    D_d^3 k = s (3 F_2 (u.d) |d|^2 - F_3 (u.d)^3).

All profiles are scale mixtures of Gaussians, F_0 is completely monotone in r^2 (Schoenberg),
so every F_n is positive and decreasing. The *growth* `w_n = r^2 F_(n+1) / F_n` is increasing in r
for each of them (shown where it is given), and that alone makes the rest provable:

    d log(F_n r^k) / d log r = k - w_n      F_n r^k rises up to w_n = k and falls beyond,
    d log w_n / d log r = 2 + w_n - w_(n+1) >= 0,   so   w_(n+1) <= w_n + 2.

Proofs: docs/mathematics.md, statements 2.3, 2.5 and 3.1.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np

from gpcert.arrays import PerCell, Reals, namespace
from gpcert.rounding import U, gamma, nonnegative, up

PEAK_SLACK = 1e-10
"""Relative: what a peak found in floating point may miss of the maximum. At the point found,
`|w_n - k| <= 1e-12`, and between it and the peak the logarithm changes at most that fast."""


class RadialProfile(ABC):
    """F_0 with F_0(0) = 1, completely monotone in r^2, whose w_n increase.

    `shape`, `ratio` and `roundings` say it all for a kernel that is smooth at 0; what else stands
    here follows from them. A profile whose F_n are infinite at 0 gives `at_zero`, `terms`, `growth`
    and `steepness` itself, and one that knows closed forms may. Hashed by identity, so that peaks
    are found once.
    """

    negligible: ClassVar[float] = math.inf
    """Beyond this r all F_n r^k, k <= n <= 5, are below TINY / 1e20, computed ones too."""

    zero_slack: ClassVar[float] = 340.0
    """F_1(0) is above its true value by at most so many U: 64 roundings of a ratio and the 264 that
    `up` adds for 66; 0 where it is the true value within a few."""

    def shape(self, r: Reals) -> Reals:
        """F_0(r), in plain floating point."""
        raise NotImplementedError(f"{type(self).__name__}: expected `shape`, or `terms`")

    def ratio(self, n: int, r: Reals) -> Reals:
        """`F_(n+1) / F_n`, n <= 4, finite, for 0 <= r <= 1e140; at most 64 roundings each."""
        raise NotImplementedError(f"{type(self).__name__}: expected `ratio`, or `terms`")

    @abstractmethod
    def roundings(self, r: Reals) -> Reals:
        """Relative error of `terms` at the exact r, in units of U, where they do not underflow."""

    @cached_property
    def at_zero(self) -> tuple[float, float, float, float]:
        """F_n(0), rounded up; infinite where k is not 2n times differentiable.

        `E u^(2n) = 1, 1, 3, 15 times F_n(0) |d|^(2n)` for the spectral variable u = w.d.
        """
        found = [1.0]
        for n in range(3):
            found.append(float(up(found[-1] * self.ratio(n, np.zeros(1))[0], 66)))
        return found[0], found[1], found[2], found[3]

    def terms(self, r: Reals, *pairs: tuple[int, int]) -> list[Reals]:
        """`F_n(r) r^k` for the pairs (n, k), in plain floating point; may be infinite at r = 0."""
        ratios = [self.ratio(n, r) for n in range(max(n for n, _ in pairs))]
        value, found = self.shape(r), []
        for n, k in pairs:
            term = value
            for i in range(max(n, k)):  # one factor of r with each ratio stays in range
                factor = ratios[i] if i < n else r
                term = term * (factor * r if i < min(n, k) else factor)
            found.append(term)
        return found

    def weighted(
        self, r: Annotated[np.ndarray, "B N"], a: np.ndarray, highest: int
    ) -> list[np.ndarray]:
        """`a F_n(r)`, n = 0, ..., highest, new arrays, for weights a that broadcast; not a number
        where a is 0 and F_n infinite. Rounded like `terms`, and once more."""
        return [a * term for term in self.terms(r, *((n, 0) for n in range(highest + 1)))]

    def at_squares(self, r2: Reals, a: float) -> Reals:
        """`a F_0(sqrt(r2))`, a new array; without the root where none is needed."""
        return self.weighted(np.sqrt(r2), np.asarray(a), 0)[0]

    def growth(self, n: int, r: Reals) -> Reals:
        """`w_n(r)`, n <= 3, for 0 <= r <= 1e140; relative rounding like that of `terms`."""
        return r * (r * self.ratio(n, r))

    def steepness(self, n: int, low: Reals, high: Reals) -> Reals:
        """Upper bound of `w_n / r = -d log F_n / dr` on [low, high]; may be infinite.

        `r F_(n+1) / F_n <= high ratio(low)`, as the ratio falls (Statement 3.1).
        """
        return up(high * self.ratio(n, low), 66)

    def uniform_error(self, r: Reals, rate: float, shift: Reals) -> Reals | None:
        """One relative error of F_0, F_1 and F_2 where r is known up to `rate r + shift`.

        A shortcut for what `steepness` and `roundings` give, in few passes over the numbers; valid
        where it is at most 0.1, for shifts up to 1e-8. It does not fall with r. None where the F_n
        are not so regular.
        """
        del r, rate, shift
        return None

    def squared_remainders(self, rho2: PerCell) -> tuple[PerCell, ...]:
        """Upper bounds of R_n^2, n = 0, 1, 2, over displacements of squared length <= rho2.

        R0^2 = 2 - 2 F_0,   R1^2 = 2 - 2 F_0 - 2 rho2 F_1 + F_1(0) rho2,
        R2^2 = 2 - 2 F_0 - rho2 F_1 - rho2^2 F_2 + (3/4) F_2(0) rho2^2,
        all increasing in rho2 (Statement 2.5); infinite where the feature map is not that smooth.
        Here at a float r >= rho, the rounding of what cancels added in full; where little is left
        of it, the b_n are the better bounds.
        """
        xp = namespace(rho2)
        with np.errstate(over="ignore"):
            r = up(xp.sqrt(rho2), 2)
            zeroth, first, second = self.terms(r, (0, 0), (1, 2), (2, 4))
            wrong = U * (self.roundings(r) + 16.0)
            found = []
            rising = (0.0, self.at_zero[1] * r * r, 0.75 * self.at_zero[2] * (r * r) * (r * r))
            falling = (2.0 * zeroth, 2.0 * (zeroth + first), 2.0 * zeroth + first + second)
            for more, less in zip(rising, falling, strict=True):
                total = 2.0 + more
                found.append(up((total - less) + wrong * less + gamma(8) * total, 4))
        zero = xp.zeros_like(rho2)
        one, two, three = (xp.where(rho2 > 0, nonnegative(part), zero) for part in found)
        return one, two, three

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


def power(x: Reals, k: int) -> Reals:
    """`x^k` for k >= 1 by products: a library's power is ten times slower."""
    result = x
    for _ in range(k - 1):
        result = result * x
    return result


def infinite_beyond_zero(rho2: PerCell) -> PerCell:
    """Infinite for every displacement but none: a derivative that does not exist."""
    xp = namespace(rho2)
    return xp.where(rho2 > 0, xp.full_like(rho2, math.inf), xp.zeros_like(rho2))
