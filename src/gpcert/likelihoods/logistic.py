"""The logistic likelihood, its integral replaced by a mixture with a proved uniform error.

Proofs: docs/mathematics.md, statement 8.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gpcert.arrays import Array, namespace
from gpcert.integrals.logistic_mixture import LOGISTIC_ERROR, LOGISTIC_TERMS
from gpcert.likelihoods.erf_mixture import ErfMixture


@dataclass(frozen=True)
class Logistic(ErfMixture):
    """`F(mu, v) = E sigma(f)`, `sigma(f) = 1 / (1 + exp(-f))`, for `f ~ N(mu, v)`.

    The closed form of `ErfMixture` on the terms of `gpcert.integrals.logistic_mixture` gives F to
    6e-14 for all mu and all v >= 0, with no quadrature.

    The derivatives, with `u = tanh(x / 2)`: `sigma' = (1 - u^2) / 4 <= 1/4`, `sigma'' =
    -u (1 - u^2) / 4` (at most `1 / (6 sqrt 3)`), `sigma''' = -(1 - u^2)(1 - 3 u^2) / 8` (at most
    1/8), `sigma'''' = u (1 - u^2)(2 - 3 u^2) / 4` (at most 0.1276839..., at
    `u^2 = 1/2 - sqrt(105) / 30`).

    >>> import numpy as np
    >>> lower, upper = Logistic().enclose(np.array([1.0]), np.array([2.0]))
    >>> round(float(lower[0]), 10), bool(upper[0] - lower[0] < 1e-12)
    (0.6750567023, True)
    """

    name: ClassVar[str] = "logistic"
    link_bounds: ClassVar[tuple[float, float, float, float]] = (0.25, 0.096226, 0.125, 0.127684)
    link_error: ClassVar[float] = LOGISTIC_ERROR
    terms: ClassVar[tuple[tuple[float, float], ...]] = LOGISTIC_TERMS

    def slopes(self, mu: Array, v: Array) -> tuple[Array, Array]:
        """Those of the mixture; `|F_v| <= F_mu / 2` is enforced, since `|sigma''| <= sigma'`.

        Far in the tail, where F_mu is below `link_error`, the mixture's ratio means nothing.
        """
        by_mu, by_variance = super().slopes(mu, v)
        return by_mu, namespace(by_mu).clip(by_variance, -0.5 * by_mu, 0.5 * by_mu)
