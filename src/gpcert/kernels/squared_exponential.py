"""k(x, y) = s^2 exp(-|x - y|^2_L / 2),  |d|^2_L = sum_j d_j^2 / l_j^2.

Proofs: docs/mathematics.md, statement 2.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np

from gpcert.kernels.base import GradientProduct
from gpcert.kernels.expansions.capabilities import SectionKernel
from gpcert.kernels.expansions.squared_exponential import LocalSquaredExponential
from gpcert.kernels.expansions.squared_exponential_sections import Sections
from gpcert.kernels.nodes.radial_profiles import PositiveSeries, all_at, power
from gpcert.kernels.radial import RadialKernel
from gpcert.numerics.arrays import Backend, Inputs, PerCell, Points, Reals, namespace
from gpcert.numerics.pairs import EXP_ERROR, Pair, exp_minus
from gpcert.numerics.rounding import EXP_ULPS, U, gamma
from gpcert.regions import Region


@lru_cache(maxsize=1)
def remainder_series() -> tuple[PositiveSeries, ...]:
    """R_n^2 as functions of x = rho2 / 2."""
    rows = (([2], [2]), ([2, 2], [2, 4]), ([2, 0, 3], [2, 2, 4]))
    return tuple(PositiveSeries(tuple(map(Fraction, g)), tuple(map(Fraction, h))) for g, h in rows)


@dataclass(frozen=True, eq=False)
class SquaredExponential(RadialKernel, SectionKernel):
    """Squared exponential (RBF) kernel with a length-scale per feature (ARD) and a variance s^2.

    With rho = |d|_L and e = exp(-rho^2/2):

        R0^2 = 2 s^2 (1 - e),   R1^2 = s^2 (2 - 2e - 2 rho^2 e + rho^2),
        b2 = s sqrt(3) rho^2,   b3 = s sqrt(15) rho^3.

    Reason: by Bochner, phi(x) = s exp(i w.x) with w Gaussian, so u = w.d ~ N(0, rho^2) and
    R1^2 = s^2 E|e^{iu} - 1 - iu|^2, b_n^2 = s^2 E u^{2n} (Statement 2.6). All F_n are F_0, and
    w_n = r^2.

    >>> k = SquaredExponential([1.0, 2.0], variance=4.0)
    >>> float(k.value(np.zeros((1, 2)), np.array([[1.0, 2.0]]))[0, 0])  # 4 exp(-1)
    1.4715177646857693
    """

    length_scale: Any
    variance: float = 1.0

    name: ClassVar[str] = "squared_exponential"
    self_similar: ClassVar[bool] = True
    negligible: ClassVar[float] = 46.0
    zero_slack: ClassVar[float] = 0.0

    @cached_property
    def at_zero(self) -> tuple[float, float, float, float]:
        return 1.0, 1.0, 1.0, 1.0

    def terms(self, r: Reals, *pairs: tuple[int, int]) -> list[Reals]:
        xp = namespace(r)
        most = xp.minimum(r, xp.full_like(r, 60.0))  # r^k exp(-r^2/2) is 0 from 40 on
        value = xp.exp(-0.5 * most * most)
        return [value * power(most, k) if k else value for _, k in pairs]

    def at_squares(self, r2: Reals, a: float) -> Reals:
        values = np.minimum(r2, 3600.0)  # r <= 60, as in `terms`
        values *= -0.5
        np.exp(values, out=values)
        values *= a
        return values

    def errors_at_squares(self, r2: Reals, roundings: int) -> Reals:
        """The exponent is a half of the square, exp and the product with `a` are the rest
        (Statement 16.6)."""
        exponent = 0.5 * np.minimum(r2, 3600.0)
        return (1.01 * gamma(roundings)) * exponent + gamma(EXP_ULPS + 2)

    def pair_at_squares(self, r2: Pair) -> tuple[Pair, float] | None:
        return exp_minus(Pair(0.5 * r2.high, 0.5 * r2.low)), EXP_ERROR

    def growth(self, n: int, r: Reals) -> Reals:
        return r * r

    def steepness(self, n: int, low: Reals, high: Reals) -> Reals:
        return high

    def roundings(self, r: Reals) -> Reals:
        """The exponent is at most `negligible^2 / 2` and carries two roundings; exp, powers."""
        xp = namespace(r)
        most = xp.minimum(r, xp.full_like(r, self.negligible))
        return 2.0 * most * most + (EXP_ULPS + 10)

    def uniform_error(self, r: Reals, rate: float, shift: Reals) -> Reals | None:
        """`(r + e) e` for the error e of r, and `roundings`; r beyond `negligible` is cut."""
        xp = namespace(r)
        most = xp.minimum(r, xp.full_like(r, self.negligible))
        return most * ((1.2 * rate + 2.2 * U) * most + 1.2 * shift) + (EXP_ULPS + 14) * U

    def squared_remainders(self, rho2: PerCell) -> tuple[PerCell, ...]:
        """With x = rho2 / 2: `2 - 2e^-x`, `2 + 2x - e^-x (2 + 4x)`, `2 + 3x^2 - e^-x (...)`."""
        return tuple(all_at(remainder_series(), 0.5 * rho2))

    def value(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        """Matrix `k(x_i, y_j)` in plain floating point; no root is needed here."""
        return self.variance * np.exp(-0.5 * self._distances(X, Y, squared=True))

    def with_gradient(
        self, X: Inputs, Y: Points
    ) -> tuple[Annotated[np.ndarray, "n N"], GradientProduct]:
        """From the values: the derivative is `k (y - x) / l^2`."""
        values = self.value(X, Y)
        return values, lambda C: self._gradient_product(X, Y, C * values)

    def localize(self, points: Points, region: Region, backend: Backend) -> LocalSquaredExponential:
        """A weighted, orthogonal expansion of its own."""
        lengths = self.typical_lengths(points.shape[1])
        return LocalSquaredExponential.build(points, lengths, self.variance, region, backend)

    def sections(
        self,
        points: Points,
        X: Inputs,
        sections: tuple[np.ndarray, np.ndarray],
        extent: np.ndarray,
    ) -> Sections:
        seen = (self.typical_lengths(points.shape[1]), self.variance)
        return Sections.build(seen, points, X, sections, extent)
