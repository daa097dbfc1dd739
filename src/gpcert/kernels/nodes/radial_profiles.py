"""k(x, y) = s F_0(r): the shape of a radial kernel, and how it falls with the scaled distance r.

With `F_n = (-1/r d/dr)^n F_0` and u the scaled difference of x and y,

    D_d k = -s F_1 (u.d),             D_d^2 k = s (F_2 (u.d)^2 - F_1 |d|^2),
    D_d^3 k = s (3 F_2 (u.d) |d|^2 - F_3 (u.d)^3).

All profiles are scale mixtures of Gaussians, F_0 is completely monotone in r^2 (Schoenberg),
so every F_n is positive and decreasing. The *growth* `w_n = r^2 F_(n+1) / F_n` is increasing in r
for each of them (shown where it is given), and that alone makes the rest provable:

    d log(F_n r^k) / d log r = k - w_n      F_n r^k rises up to w_n = k and falls beyond,
    d log w_n / d log r = 2 + w_n - w_(n+1) >= 0,   so   w_(n+1) <= w_n + 2.

Proofs: docs/mathematics.md, statements 2.3, 2.5, 2.14 and 3.1.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Annotated, ClassVar

import numpy as np

from gpcert.numerics.arrays import PerCell, Reals, namespace
from gpcert.numerics.pairs import Pair
from gpcert.numerics.rounding import EXP_ULPS, U, gamma, nonnegative, up

PEAK_SLACK = 1e-10
"""Relative: what a peak found in floating point may miss of the maximum. At the point found,
`|w_n - k| <= 1e-12`, and between it and the peak the logarithm changes at most that fast."""


SMALL_CHANGE = 0.1
"""`e^x - 1 <= 1.06 x` for x up to here."""


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

    self_similar: ClassVar[bool] = False
    """Whether all F_n are F_0."""

    @property
    def fifth_jump(self) -> float:
        """At least the fifth derivative of F_0 and the third of F_1 in r, where F_3(0) is infinite
        and F_2(0) is not; else infinite (Statement 19.2)."""
        return math.inf

    def shape(self, r: Reals) -> Reals:
        """F_0(r), in plain floating point."""
        raise NotImplementedError(f"{type(self).__name__}: expected `shape`, or `terms`")

    def ratio(self, n: int, r: Reals) -> Reals:
        """`F_(n+1) / F_n`, n <= 5, finite, for 0 <= r <= 1e140; at most 64 roundings each."""
        raise NotImplementedError(f"{type(self).__name__}: expected `ratio`, or `terms`")

    @abstractmethod
    def roundings(self, r: Reals) -> Reals:
        """Relative error of `terms` at the exact r, in units of U, where they do not underflow."""

    @cached_property
    def at_zero(self) -> tuple[float, float, float, float]:
        """F_n(0), rounded up; infinite where k is not 2n times differentiable.

        `E u^(2n) = 1, 1, 3, 15 times F_n(0) |d|^(2n)` for the spectral variable u = w.d.
        """
        values = [1.0]
        for n in range(3):
            values.append(float(up(values[-1] * self.ratio(n, np.zeros(1))[0], 66)))
        return values[0], values[1], values[2], values[3]

    def terms(self, r: Reals, *pairs: tuple[int, int]) -> list[Reals]:
        """`F_n(r) r^k` for the pairs (n, k), in plain floating point; may be infinite at r = 0."""
        ratios = [self.ratio(n, r) for n in range(max(n for n, _ in pairs))]
        value, products = self.shape(r), []
        for n, k in pairs:
            term = value
            for i in range(max(n, k)):  # one factor of r with each ratio stays in range
                factor = ratios[i] if i < n else r
                term = term * (factor * r if i < min(n, k) else factor)
            products.append(term)
        return products

    def weighted(
        self, r: Annotated[np.ndarray, "B N"], a: np.ndarray, highest: int
    ) -> list[np.ndarray]:
        """`a F_n(r)`, n = 0, ..., highest, new arrays, for weights a that broadcast; not a number
        where a is 0 and F_n infinite. Rounded like `terms`, and once more."""
        return [a * term for term in self.terms(r, *((n, 0) for n in range(highest + 1)))]

    def at_squares(self, r2: Reals, a: float) -> Reals:
        """`a F_0(sqrt(r2))`, a new array; without the root where none is needed."""
        return self.weighted(np.sqrt(r2), np.asarray(a), 0)[0]

    def errors_at_squares(self, r2: Reals, roundings: int) -> Reals:
        """Relative errors of `at_squares` where the squares carry so many relative roundings; may
        be infinite. The root carries one more, of its own (Statement 16.7)."""
        r = np.sqrt(r2)
        return self.relative_errors(0, (r, r), gamma(roundings + 1) * r)

    def pair_at_squares(self, r2: Pair) -> tuple[Pair, float] | None:
        """F_0 as pairs and their relative error, not a number where that is too small; None where
        nobody has said how."""
        del r2
        return None

    def growth(self, n: int, r: Reals) -> Reals:
        """`w_n(r)`, n <= 5, for 0 <= r <= 1e140; relative rounding like that of `terms`."""
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

    def relative_errors(self, n: int, ends: tuple[Reals, Reals], error: Reals) -> Reals:
        """`|fl(F_n(r)) - F_n(r')| <= this * fl(F_n(r))` for every r between two ends and
        `|r - r'| <= error`; may be infinite.

        Reason: log F_n changes by at most `steepness * error`, then the evaluation's own rounding.
        Far out both are below TINY, and 0 is returned.
        """
        xp = namespace(error)
        low, high = nonnegative(ends[0] - 1.0001 * error), ends[1] + 1.0001 * error
        change = xp.where(error == 0, xp.zeros_like(low), self.steepness(n, low, high)) * error
        known = xp.where(change <= SMALL_CHANGE, change, xp.zeros_like(change))
        relative = 1.1 * known + (1.1 * U) * self.roundings(ends[1])
        relative = xp.where(change <= SMALL_CHANGE, relative, xp.full_like(relative, math.inf))
        return xp.where(low > self.negligible, xp.zeros_like(relative), relative)

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
            remainders = []
            rising = (0.0, self.at_zero[1] * r * r, 0.75 * self.at_zero[2] * (r * r) * (r * r))
            falling = (2.0 * zeroth, 2.0 * (zeroth + first), 2.0 * zeroth + first + second)
            for more, less in zip(rising, falling, strict=True):
                total = 2.0 + more
                remainders.append(up((total - less) + wrong * less + gamma(8) * total, 4))
        zero = xp.zeros_like(rho2)
        return tuple(xp.where(rho2 > 0, nonnegative(part), zero) for part in remainders)

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
            place = 10.0**low
            self._peaks[n, k] = place if place > 1e-139 else 0.0
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


TERMS = 30
"""Powers of x that are summed for x <= 1: the rest is below 1e-25 of the first term."""

STEP = 5
"""Powers of x that are formed; the others are products of x^STEP and one of them."""

LARGEST_EXPONENT = 700.0
"""Beyond, e^-x h(x) >= 0 is dropped: g(x) alone is an upper bound."""


@lru_cache(maxsize=64)
def reverse_bessel(m: int) -> tuple[int, ...]:
    """Coefficients, lowest first, of theta_m: `theta_m = (2m - 1) theta_(m-1) + x^2 theta_(m-2)`.

    `x^(m + 1/2) K_(m + 1/2)(x) = sqrt(pi / 2) e^-x theta_m(x)`.

    >>> reverse_bessel(3)
    (15, 15, 6, 1)
    """
    before, here = [1], [1, 1]
    if m == 0:
        return (1,)
    for n in range(2, m + 1):
        following = [(2 * n - 1) * c for c in here] + [0]
        for i, c in enumerate(before):
            following[i + 2] += c
        before, here = here, following
    return tuple(here)


@dataclass(frozen=True, eq=False)
class PositiveSeries:
    """Upper bounds of `g(x) - e^-x h(x)`, x >= 0; coefficients g, h >= 0, lowest first: squared
    remainders of feature maps, whose terms cancel near 0.

    `e^-x (g e^x - h)` is a sum of positive terms (Statement 2.14): all Taylor coefficients
    `sum_j g_j / (i-j)! - h_i` are >= 0, which is checked exactly (beyond the degree of h there is
    nothing to check).
    """

    g: tuple[Fraction, ...]
    h: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if min(*self._taylor, *self.g, *self.h) < 0:
            raise ValueError("PositiveSeries: a coefficient is negative")

    @cached_property
    def _taylor(self) -> list[Fraction]:
        """Coefficients of `g e^x - h`."""
        coefficients = []
        for i in range(max(TERMS, len(self.h))):
            parts = (c / math.factorial(i - j) for j, c in enumerate(self.g[: i + 1]))
            coefficients.append(sum(parts, Fraction(0)) - (self.h[i] if i < len(self.h) else 0))
        return coefficients

    @cached_property
    def _floats(self) -> tuple[list[float], list[float]]:
        """g and h, one rounding each."""
        return [float(c) for c in self.g], [float(c) for c in self.h]


@lru_cache(maxsize=64)
def _table(family: tuple[PositiveSeries, ...]) -> np.ndarray:
    """(STEP, TERMS / STEP * n): the coefficients of `g e^x - h`, powers below STEP in the rows."""
    table = np.array([[float(c) for c in series._taylor[:TERMS]] for series in family])
    return table.reshape(len(family), TERMS // STEP, STEP).transpose(2, 1, 0).reshape(STEP, -1)


def all_at(family: tuple[PositiveSeries, ...], x: PerCell) -> list[PerCell]:
    """Upper bounds of several series; zero stays zero.

    x <= 1: sums of products of positive numbers, so only relative rounding, at most 3 a term, and
    the rest of the series is below 1e-25 of the sum (Statement 2.14). Above 1 the terms cancel
    mildly; their rounding is added in full.
    """
    xp = namespace(x)
    small, large = (xp.minimum(x, xp.full_like(x, end)) for end in (1.0, LARGEST_EXPONENT))
    powers = [xp.ones_like(x), small]
    for _ in range(STEP - 1):
        powers.append(powers[-1] * small)
    table = xp.asarray(_table(family), device=x.device)
    parts = xp.reshape(xp.stack(powers[:STEP], axis=1) @ table, (len(x), -1, len(family)))
    total, step = parts[:, -1, :], powers[STEP][:, None]
    for place in range(parts.shape[1] - 2, -1, -1):
        total = total * step + parts[:, place, :]
    near = up(total * xp.exp(-small)[:, None], 3 * TERMS + EXP_ULPS)
    fall, bounds = xp.exp(-large), []
    for number, series in enumerate(family):
        with np.errstate(over="ignore"):
            growth = horner(series._floats[0], x)
        decay = fall * horner(series._floats[1], large)
        decay = xp.where(x <= LARGEST_EXPONENT, decay, xp.zeros_like(decay))
        roundings = 2.0 * (EXP_ULPS + 2 * (len(series.g) + len(series.h)) + 8) * U
        # the rounded exponent -x is exact: only exp, the polynomials and their difference round
        direct = up((growth - decay) + roundings * (growth + decay), 4)
        best = xp.where(x <= 1.0, near[:, number], direct)
        bounds.append(xp.where(x > 0, best, xp.zeros_like(x)))
    return bounds


def horner(coefficients: Sequence[float], x: Reals) -> Reals:
    """A polynomial, lowest coefficient first, in a new array."""
    if len(coefficients) == 1:
        return namespace(x).full_like(x, coefficients[0])
    total = coefficients[-1] * x
    for place, c in enumerate(coefficients[-2::-1]):
        if place:
            total *= x
        if c:
            total += c
    return total
