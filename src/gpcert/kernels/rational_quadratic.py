"""k(x, y) = s^2 (1 + r^2 / (2 alpha))^-alpha,  r^2 = sum_j ((x_j - y_j) / l_j)^2.

Proofs: docs/mathematics.md, statements 2.8 and 16.7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from gpcert.kernels.parameters import Parameter, number
from gpcert.kernels.radial import RadialKernel
from gpcert.numerics.arrays import Array, Reals, namespace
from gpcert.numerics.rounding import EXP_ULPS, U, up

SMALLEST_ALPHA, LARGEST_ALPHA = 1e-9, 1e15
"""Beyond, r^2 / (2 alpha) and alpha log1p of it leave what float64 can hold."""

LARGEST_RATIO = 1e290
"""r^2 / (2 alpha) is cut here where only a limit is asked for."""


@dataclass(frozen=True, eq=False)
class RationalQuadratic(RadialKernel):
    """Rational quadratic kernel: a mixture of squared exponentials of many length-scales.

    With rho = |d|_L, by the spectral moments `E u^(2n)` of the mixture (Statement 2.8):

        b2 = s sqrt(3 (1 + 1/alpha)) rho^2,   b3 = s sqrt(15 (1 + 1/alpha)(1 + 2/alpha)) rho^3.

    With q = r^2 / (2 alpha): `F_n = (1 + 1/alpha) ... (1 + (n-1)/alpha) (1 + q)^(-alpha - n)` and
    `w_n = 2 (alpha + n) q / (1 + q)`, increasing.

    >>> import numpy as np
    >>> k = RationalQuadratic(1.0, alpha=0.5, variance=2.0)
    >>> float(k.value(np.zeros((1, 1)), np.full((1, 1), np.sqrt(3.0)))[0, 0])  # 2 (1 + 3)^-1/2
    1.0
    """

    length_scale: Any
    alpha: float
    variance: float = 1.0

    name: ClassVar[str] = "rational_quadratic"
    parameters: ClassVar[dict[str, Parameter]] = {
        **RadialKernel.parameters,
        "alpha": number(
            f"a number between {SMALLEST_ALPHA} and {LARGEST_ALPHA}",
            lambda alpha: SMALLEST_ALPHA <= alpha <= LARGEST_ALPHA,
        ),
    }
    zero_slack: ClassVar[float] = 0.0

    def _coefficient(self, n: int) -> float:
        return math.prod(1.0 + i / self.alpha for i in range(n))

    @cached_property
    def at_zero(self) -> tuple[float, float, float, float]:
        """The products of `1 + i / alpha`."""
        one, two, three = (float(up(self._coefficient(n), 2 * n)) for n in (1, 2, 3))
        return 1.0, one, two, three

    def _ratio(self, r: Array) -> Array:
        return r * r / (2.0 * self.alpha)

    def terms(self, r: Reals, *pairs: tuple[int, int]) -> list[Reals]:
        """By log1p and exp: for large alpha a power of 1 + q would lose its digits."""
        xp = namespace(r)
        q = self._ratio(r)
        value = xp.exp(-self.alpha * xp.log1p(q))
        # r^k / (1+q)^n by quotients that stay in range, one a factor
        slow = 1.0 / (1.0 + q)
        found = []
        for n, k in pairs:
            term = value * self._coefficient(n)
            for i in range(n):
                term = term * (slow * r if i < k else slow)
            for _ in range(n, k):
                term = term * r
            found.append(term)
        return found

    def growth(self, n: int, r: Reals) -> Reals:
        xp = namespace(r)
        q = self._ratio(r)
        q = xp.minimum(q, xp.full_like(q, LARGEST_RATIO))
        return 2.0 * (self.alpha + n) * (q / (1.0 + q))

    def steepness(self, n: int, low: Reals, high: Reals) -> Reals:
        """`(1 + n/alpha) r / (1 + q)`: numerator at high, denominator at low; or its maximum."""
        xp = namespace(low)
        best = math.sqrt(0.5 * self.alpha)  # r / (1 + q) is largest at q = 1
        slope = xp.minimum(high / (1.0 + self._ratio(low)), xp.full_like(high, best))
        return up((1.0 + n / self.alpha) * slope, 16)

    def roundings(self, r: Reals) -> Reals:
        """The exponent `alpha log1p(q)` carries EXP_ULPS + 6 roundings; then exp, 3 quotients."""
        xp = namespace(r)
        exponent = self.alpha * xp.log1p(self._ratio(r))
        exponent = xp.minimum(exponent, xp.full_like(exponent, 750.0))  # below: underflow
        return (EXP_ULPS + 8) * exponent + (EXP_ULPS + 40)

    def uniform_error(self, r: Reals, rate: float, shift: Reals) -> Reals | None:
        """Steepness at most `(1 + 2/alpha) m`, exponent `alpha log1p(q) <= r m`, where
        `m = min(r, sqrt(alpha / 2))`: for log1p(q) is below q and below sqrt(q).
        """
        xp = namespace(r)
        least = xp.minimum(r, xp.full_like(r, 1.01 * math.sqrt(0.5 * self.alpha)))
        slope = 1.2 * (1.0 + 2.0 / self.alpha)
        change = (slope * rate + (EXP_ULPS + 10) * U) * r + slope * shift
        return change * least + (EXP_ULPS + 44) * U
