"""The logistic likelihood, its integral replaced by a mixture with a proved uniform error.

Proofs: docs/mathematics.md, statement 8.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gpcert.arrays import Array, namespace
from gpcert.likelihoods.mixture import ErfMixture

__all__ = ["Logistic"]


@dataclass(frozen=True)
class Logistic(ErfMixture):
    """`F(mu, v) = E sigma(f)`, `sigma(f) = 1 / (1 + exp(-f))`, for `f ~ N(mu, v)`.

    Statement: `|sigma(x) - (1 + sum_i c_i erf(x / sqrt d_i)) / 2| <= 6e-14` for all real x, so the
    closed form of `ErfMixture` gives F to 6e-14 for all mu and all v >= 0, with no quadrature.
    Reason: the logistic law is a scale mixture of normal laws (Andrews & Mallows 1974), cut here to
    18 geometrically spaced scales, weights by least squares in 40 digits. How the terms were found
    does not matter: the tests prove the bound for these floats in interval arithmetic, with Taylor
    models on [0, 64] and monotonicity beyond.
    Reference: Monahan & Stefanski 1992, "Normal scale mixture approximations to F*(z) and
    computation of the logistic-normal integral", with eight terms.

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
    link_error: ClassVar[float] = 6e-14
    terms: ClassVar[tuple[tuple[float, float], ...]] = (
        (0.4802, 7.258174699161886e-08),
        (0.64604299, 8.966297604672217e-06),
        (0.86916191, 0.00028670757380946986),
        (1.1693377, 0.0033356229649710075),
        (1.5731829, 0.018253512160855478),
        (2.116501, 0.056796939702864174),
        (2.8474608, 0.11549028690278278),
        (3.8308665, 0.16969118540295663),
        (5.1539034, 0.19315999576600415),
        (6.9338676, 0.17770176330757229),
        (9.3285643, 0.13385043113554723),
        (12.550299, 0.08074491277953792),
        (16.8847, 0.036769518524959764),
        (22.716039, 0.01151345876635843),
        (30.561303, 0.0021789539199839787),
        (41.116026, 0.00020948966625837002),
        (55.315953, 8.089184387837072e-06),
        (74.42, 9.3361792929912e-08),
    )

    def slopes(self, mu: Array, v: Array) -> tuple[Array, Array]:
        """Those of the mixture; `|F_v| <= F_mu / 2` is enforced, since `|sigma''| <= sigma'`.

        Far in the tail, where F_mu is below `link_error`, the mixture's ratio means nothing.
        """
        by_mu, by_variance = super().slopes(mu, v)
        return by_mu, namespace(by_mu).clip(by_variance, -0.5 * by_mu, 0.5 * by_mu)
