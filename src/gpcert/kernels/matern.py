"""Matern kernels of half-integer smoothness nu = p + 1/2: e^-t times a polynomial of degree p.

Proofs: docs/mathematics.md, statements 2.7, 3.1 and 16.7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np

from gpcert.kernels.nodes.radial_profiles import (
    PositiveSeries,
    all_at,
    horner,
    infinite_beyond_zero,
    power,
    reverse_bessel,
)
from gpcert.kernels.parameters import Parameter, number
from gpcert.kernels.radial import RadialKernel
from gpcert.numerics.arrays import Array, PerCell, Reals, namespace
from gpcert.numerics.pairs import EXP_ERROR, Pair, exp_minus, root
from gpcert.numerics.rounding import EXP_ULPS, U, up

MAX_SMOOTH = 10
"""Largest p. Beyond it a Matern kernel is a squared exponential for all practical purposes."""

LARGEST_T = 800.0
"""There F_n r^k is below 2^-1075 for k <= n <= 5 and p <= 10: beyond, everything counts as zero."""


@lru_cache(maxsize=16)
def remainder_series(p: int) -> tuple[PositiveSeries, ...]:
    """R_n^2 for n <= min(p, 2) as functions of t: `g - e^-t h`, see `squared_remainders`.

    `rho2^n F_n = t^(2n) e^-t theta_(p-n) / theta_p(0)`, `F_1(0) rho2 = t^2 / (2 (nu - 1))`,
    `F_2(0) rho2^2 = t^4 / (4 (nu - 1)(nu - 2))`.
    """
    nu, scale = Fraction(2 * p + 1, 2), Fraction(1, reverse_bessel(p)[0])

    def polynomial(*parts: tuple[int, int]) -> tuple[Fraction, ...]:
        """`sum of factor t^(2n) theta_(p-n) / theta_p(0)` over (factor, n)."""
        total = [Fraction(0)] * (p + 3)
        for factor, n in parts:
            for i, c in enumerate(reverse_bessel(p - n)):
                total[i + 2 * n] += factor * c * scale
        return tuple(total)

    rows: list[tuple[tuple[Any, ...], tuple[tuple[int, int], ...]]] = [((2,), ((2, 0),))]
    if p >= 1:
        rows.append(((2, 0, 1 / (2 * (nu - 1))), ((2, 0), (2, 1))))
    if p >= 2:
        quartic = Fraction(3, 4) / (4 * (nu - 1) * (nu - 2))
        rows.append(((2, 0, 0, 0, quartic), ((2, 0), (1, 1), (1, 2))))
    return tuple(PositiveSeries(tuple(map(Fraction, g)), polynomial(*h)) for g, h in rows)


def _quotient(a: Array, b: Array) -> Array:
    """a / b for b >= 0, infinite where b is 0."""
    xp = namespace(a)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if bool(xp.all(b > 0)):
            return a / b
        safe = xp.where(b > 0, b, xp.ones_like(b))
        return xp.where(b > 0, a / safe, xp.full_like(a, math.inf))


def _theta(m: int) -> list[float]:
    return [float(c) for c in reverse_bessel(m)]


@lru_cache(maxsize=128)
def _coefficients(p: int, n: int) -> tuple[float, ...]:
    """Of `(2 nu)^n theta / theta_p(0)`, see `Matern.weighted`, lowest first."""
    polynomial = (
        reverse_bessel(p - n) if n <= p else (0,) * (n - p) + reverse_bessel(n - p - 1)[::-1]
    )
    return tuple(float(Fraction((2 * p + 1) ** n * c, reverse_bessel(p)[0])) for c in polynomial)


@dataclass(frozen=True, eq=False)
class Matern(RadialKernel):
    """Matern kernel: `phi` has p derivatives in the mean-square sense, nu = p + 1/2.

        k = s^2 e^-t p!/(2p)! sum_i (p+i)! / (i! (p-i)!) (2t)^(p-i),   t = sqrt(2 nu) r.

    Its spectral density is a multivariate t with 2 nu degrees of freedom, so with rho = |d|_L

        b1^2 = s^2 nu / (nu - 1) rho^2,   b2^2 = 3 s^2 nu^2 / ((nu - 1)(nu - 2)) rho^4,
        b3^2 = 15 s^2 nu^3 / ((nu - 1)(nu - 2)(nu - 3)) rho^6,   where these are positive.

    With t = sqrt(2 nu) r and the reverse Bessel polynomials theta (`reverse_bessel`):

        F_n = (2 nu)^n e^-t / theta_p(0) * { theta_(p-n)(t)           n <= p
                                           { theta_m(t) / t^(2m+1)    n = p + 1 + m.

        w_n = t^2 theta_(p-n-1) / theta_(p-n)  (n < p),   t  (n = p),   theta_(m+1) / theta_m,

    all increasing (Statement 3.1; tested exactly for every theta in use).

    >>> k = Matern(2.0, nu=0.5, variance=3.0)
    >>> bool(np.isclose(k.value(np.zeros((1, 1)), np.ones((1, 1)))[0, 0], 3.0 * np.exp(-0.5)))
    True
    """

    length_scale: Any
    nu: float
    variance: float = 1.0

    name: ClassVar[str] = "matern"
    parameters: ClassVar[dict[str, Parameter]] = {
        **RadialKernel.parameters,
        "nu": number(
            f"0.5, 1.5, 2.5, ..., {MAX_SMOOTH + 0.5}",
            lambda nu: nu - 0.5 in range(MAX_SMOOTH + 1),
            "; the limit of large nu is SquaredExponential",
        ),
    }
    zero_slack: ClassVar[float] = 0.0

    @property
    def p(self) -> int:
        """How often the features can be differentiated."""
        return round(self.nu - 0.5)

    @property
    def _rate(self) -> float:
        return math.sqrt(2.0 * self.p + 1.0)

    @property
    def negligible(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """t = 800."""
        return LARGEST_T / self._rate

    @cached_property
    def at_zero(self) -> tuple[float, float, float, float]:
        """`nu^n / ((nu - 1) ... (nu - n))`, finite for n <= p."""
        nu = Fraction(2 * self.p + 1, 2)
        values, value = [], Fraction(1)
        for n in range(1, 4):
            value = value * nu / (nu - n)
            values.append(float(up(float(value), 2)) if n <= self.p else math.inf)
        one, two, three = values
        return 1.0, one, two, three

    @property
    def fifth_jump(self) -> float:
        """For p = 2 the fifth derivative is `5^(5/2) e^-t (-t^2 + 7t - 8) / 3`, largest at 0."""
        return float(up(5.0**2.5 * 8.0 / 3.0, 8)) if self.p == 2 else math.inf

    def _scaled(self, r: Array) -> Array:
        xp = namespace(r)
        t = self._rate * r
        return xp.minimum(t, xp.full_like(t, LARGEST_T))

    def terms(self, r: Reals, *pairs: tuple[int, int]) -> list[Reals]:
        """`(2 nu)^(n - k/2) e^-t t^(k - 2m - 1) theta_m(t) / theta_p(0)`; positive sums only."""
        xp = namespace(r)
        p, t = self.p, self._scaled(r)
        value = xp.exp(-t)  # meets the polynomial first: the quotient may be subnormal
        products = []
        for n, k in pairs:
            m, exponent = (p - n, k) if n <= p else (n - p - 1, k - 2 * (n - p) + 1)
            term = horner(_theta(m), t) * value
            term *= self._rate ** (2 * n - k) / _theta(p)[0]
            if exponent > 0:
                term *= power(t, exponent)
            elif exponent < 0:
                term = _quotient(term, power(t, -exponent))
            products.append(term)
        return products

    @np.errstate(divide="ignore", invalid="ignore", over="ignore")
    def weighted(
        self, r: Annotated[np.ndarray, "B N"], a: np.ndarray, highest: int
    ) -> list[np.ndarray]:
        """One exponential and one division for all: `theta_m(t) / t^(2m+1)` is a polynomial in
        `q = 1 / t` with the coefficients of theta_m, which are positive, from q^(m+1) on."""
        p, terms = self.p, []
        t = self._rate * r
        np.minimum(t, LARGEST_T, out=t)
        value = np.exp(-t)
        value *= a
        q = 1.0 / t if highest > p else t
        for n in range(highest + 1):
            term = horner(_coefficients(p, n), t if n <= p else q)
            term *= value
            terms.append(term)
        return terms

    def pair_at_squares(self, r2: Pair) -> tuple[Pair, float] | None:
        """Positive sums; the root and Horner's rule err by far less than exp."""
        t, theta = root(r2 * Pair.of(2.0 * self.p + 1.0)), reverse_bessel(self.p)
        *others, value = (Pair.of(Fraction(c, theta[0])) for c in theta)
        for coefficient in reversed(others):
            value = value * t + coefficient
        return value * exp_minus(t), 2.0 * EXP_ERROR

    def growth(self, n: int, r: Reals) -> Reals:
        """A quotient of reverse Bessel polynomials; beyond t = 1e10 it grows like t."""
        xp = namespace(r)
        t = self._rate * r
        most = xp.minimum(t, xp.full_like(t, 1e10))  # keeps t^11 finite; growth beyond adds t
        if n == self.p:
            return t
        if n < self.p:
            m = self.p - n
            ratio = most * (most * horner(_theta(m - 1), most) / horner(_theta(m), most))
        else:
            m = n - self.p - 1
            ratio = horner(_theta(m + 1), most) / horner(_theta(m), most)
        return ratio + (t - most)

    def steepness(self, n: int, low: Reals, high: Reals) -> Reals:
        """`sqrt(2 nu)` times `K_(a-1) / K_a <= 1` (n <= p), or at most `1 + (2m + 1) / t`."""
        xp = namespace(low)
        if n <= self.p:
            return xp.full_like(low, float(up(self._rate, 2)))
        m = n - self.p - 1
        there = low > 0
        safe = xp.where(there, low, xp.ones_like(low))
        with np.errstate(over="ignore"):
            slope = up(self._rate + (2 * m + 1) / safe, 8)
        return xp.where(there, slope, xp.full_like(low, math.inf))

    def roundings(self, r: Reals) -> Reals:
        """t carries two roundings: 2 t in e^-t, 2 a power; Horner's rule 2 a degree."""
        return 3.0 * self._scaled(r) + float(EXP_ULPS + 6 * self.p + 60)

    def uniform_error(self, r: Reals, rate: float, shift: Reals) -> Reals | None:
        """For p >= 2 the steepness of F_0, F_1, F_2 is at most sqrt(2 nu) everywhere."""
        if self.p < 2:
            return None
        xp = namespace(r)
        most = xp.minimum(r, xp.full_like(r, self.negligible))
        slope = 1.1 * self._rate
        evaluation = U * float(EXP_ULPS + 6 * self.p + 64)
        return (slope * rate + 3.3 * U * self._rate) * most + (slope * shift + evaluation)

    def squared_remainders(self, rho2: PerCell) -> tuple[PerCell, ...]:
        """See `remainder_series`; of order n only for p >= n."""
        xp = namespace(rho2)
        t = xp.where(rho2 > 0, up(self._rate * xp.sqrt(rho2), 4), xp.zeros_like(rho2))
        remainders = all_at(remainder_series(self.p), t)
        remainders += [infinite_beyond_zero(rho2)] * (3 - len(remainders))
        return tuple(remainders)
