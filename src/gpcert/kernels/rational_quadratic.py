"""k(x, y) = s^2 (1 + r^2 / (2 alpha))^-alpha,  r^2 = sum_j ((x_j - y_j) / l_j)^2.

Proofs: docs/mathematics.md, statements 2.8 and 16.7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from gpcert.kernels.parameters import Parameter, number
from gpcert.kernels.radial import RadialKernel
from gpcert.numerics.arrays import Reals, namespace
from gpcert.numerics.pairs import EXP_ERROR, Pair, exp_minus, log1p
from gpcert.numerics.rounding import EXP_ULPS, U, up

SMALLEST_ALPHA, LARGEST_ALPHA = 1e-9, 1e15
"""Beyond, r^2 / (2 alpha) and alpha log1p of it leave what float64 can hold."""


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

    @cached_property
    def at_zero(self) -> tuple[float, float, float, float]:
        """The products of `1 + i / alpha`."""
        factors = [1.0 + i / self.alpha for i in range(3)]
        one, two, three = (float(up(math.prod(factors[:n]), 2 * n)) for n in (1, 2, 3))
        return 1.0, one, two, three

    def _q(self, r: Reals) -> Reals:
        return r * r / (2.0 * self.alpha)

    def shape(self, r: Reals) -> Reals:
        """By log1p and exp: for large alpha a power of 1 + q would lose its digits."""
        xp = namespace(r)
        return xp.exp(-self.alpha * xp.log1p(self._q(r)))

    def pair_at_squares(self, r2: Pair) -> tuple[Pair, float] | None:
        """The error of the logarithm meets alpha."""
        logarithm = log1p(r2 * Pair.of(1 / (2 * Fraction(self.alpha))))
        return exp_minus(logarithm * Pair.of(self.alpha)), 3.0 * (1.0 + self.alpha) * EXP_ERROR

    def ratio(self, n: int, r: Reals) -> Reals:
        return (1.0 + n / self.alpha) / (1.0 + self._q(r))

    def roundings(self, r: Reals) -> Reals:
        """The exponent `alpha log1p(q)` carries EXP_ULPS + 6 roundings; then exp, and seven of each
        ratio, five at most, and of powers."""
        xp = namespace(r)
        exponent = self.alpha * xp.log1p(self._q(r))
        exponent = xp.minimum(exponent, xp.full_like(exponent, 750.0))  # below: underflow
        return (EXP_ULPS + 8) * exponent + (EXP_ULPS + 56)

    def uniform_error(self, r: Reals, rate: float, shift: Reals) -> Reals | None:
        """Steepness at most `(1 + 2/alpha) m`, exponent `alpha log1p(q) <= r m`, where
        `m = min(r, sqrt(alpha / 2))`: for log1p(q) is below q and below sqrt(q).
        """
        xp = namespace(r)
        least = xp.minimum(r, xp.full_like(r, 1.01 * math.sqrt(0.5 * self.alpha)))
        slope = 1.2 * (1.0 + 2.0 / self.alpha)
        change = (slope * rate + (EXP_ULPS + 10) * U) * r + slope * shift
        return change * least + (EXP_ULPS + 44) * U
