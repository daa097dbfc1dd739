"""scikit-learn's class probability: its own five-term replacement of the logistic function.

Proofs: docs/mathematics.md, statement 8.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from gpcert.likelihoods.erf_mixture import ErfMixture

LAMBDAS = (0.41, 0.4, 0.37, 0.44, 0.39)
COEFS = (-1854.8214151, 3516.89893646, 221.29346712, 128.12323805, -2010.49422654)


@dataclass(frozen=True)
class SklearnLogistic(ErfMixture):
    """What `GaussianProcessClassifier.predict_proba` returns for the positive class.

    `F(mu, v) = sum_i C_i Phi(mu / sqrt(1 / (2 L_i^2) + v))`, in real arithmetic on the constants
    LAMBDAS and COEFS of `sklearn/gaussian_process/_gpc.py` (Williams & Barber 1998, appendix A).
    The sum of the coefficients is `total` = 0.99999999000022, not 1: `F(0, v) = total / 2` is below
    1/2, and `predict`, which uses the sign of the latent mean, may differ from `F > 1/2`.

    Statement: the link `sum_i C_i Phi(sqrt(2) L_i x)` increases and its derivative is symmetric and
    unimodal, so that `monotone_minimum` applies. Reason: `sqrt(pi) link'' / (-2 x)` is a sum of
    exponentials of x^2 that the tests prove positive, as they do the bounds on link^(n).

    The coefficients cancel to one in 7700, so values are certain to about 1e-11 only.

    >>> import numpy as np
    >>> lower, upper = SklearnLogistic().enclose(np.array([0.0, 1.0]), np.array([2.0, 2.0]))
    >>> lower.round(6).tolist(), bool(np.all(upper - lower < 2e-11))
    ([0.5, 0.67506], True)
    """

    name: ClassVar[str] = "sklearn-logistic"
    total: ClassVar[float] = math.fsum(COEFS)
    total_error: ClassVar[float] = 2.0**-53  # fsum rounds once, to a number in [1/2, 1)
    link_bounds: ClassVar[tuple[float, float, float, float]] = (0.25, 0.0975, 0.1221, 0.1254)
    link_error: ClassVar[float] = 0.0  # the mixture is the model
    terms: ClassVar[tuple[tuple[float, float], ...]] = tuple(
        (float(1 / Fraction(scale) ** 2), weight)  # rounded once
        for scale, weight in zip(LAMBDAS, COEFS, strict=True)
    )
