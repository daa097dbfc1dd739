"""Regression: the prediction is the latent mean; models that predict by a mean alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from gpcert.functions import Curve
from gpcert.likelihoods.base import ScalarLikelihood, check_latent, check_segment, mean_lower
from gpcert.numerics.arrays import Reals, namespace


@dataclass(frozen=True)
class Gaussian(ScalarLikelihood):
    """`F(mu, v) = mu`, whatever the variance and the observation noise.

    >>> import numpy as np
    >>> one = np.array([1.0])
    >>> round(float(Gaussian().line_minimum(3.0 * one, -one, 0.0 * one, 2.0 * one)[0]), 12)
    1.0
    """

    name: ClassVar[str] = "gaussian"
    curve: ClassVar[Curve | None] = Curve()  # pyright: ignore[reportIncompatibleVariableOverride]

    advice: str = field(default="", repr=False, compare=False)

    def value(self, mu: Reals, v: Reals) -> Reals:
        mu, _ = namespace(mu, v).broadcast_arrays(mu, v)
        return mu

    def slopes(self, mu: Reals, v: Reals) -> tuple[Reals, Reals]:
        xp = namespace(mu, v)
        mu, _ = xp.broadcast_arrays(mu, v)
        return xp.ones_like(mu), xp.zeros_like(mu)

    def enclose(self, mu: Reals, v: Reals) -> tuple[Reals, Reals]:
        """`(mu, mu)`: exact."""
        mu, _ = check_latent(mu, v)
        return mu, mu

    def line_minimum(self, alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """The smaller end of the segment, rounded down: an affine function is least at an end."""
        alpha, beta, v_low, v_high = check_segment(alpha, beta, v_low, v_high)
        xp = namespace(alpha)
        return xp.minimum(mean_lower(alpha, beta, v_low), mean_lower(alpha, beta, v_high))

    def line_maximum(self, alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """The larger end of the segment, rounded up: the negated minimum of `-F`."""
        return -self.line_minimum(-alpha, -beta, v_low, v_high)


@dataclass(frozen=True)
class MeanOnly(Gaussian):
    """Regression by a function of a kernel's space, `F = mu`; nothing is known of its error.

    >>> MeanOnly().has_variance
    False
    """

    name: ClassVar[str] = "mean_only"
    has_variance: ClassVar[bool] = False


@dataclass(frozen=True)
class SignOnly(MeanOnly):
    """Two classes by the sign of the mean, as `decision_function` has it: the second where it is
    positive. There are no probabilities.

    >>> SignOnly().classifies, SignOnly().symmetric
    (True, True)
    """

    name: ClassVar[str] = "sign_only"
    curve: ClassVar[Curve | None] = None  # pyright: ignore[reportIncompatibleVariableOverride]
    classifies: ClassVar[bool] = True
    symmetric: ClassVar[bool] = True
