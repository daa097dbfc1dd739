"""Regression: the prediction is the latent mean; models that predict by a mean alone; targets that
went through an increasing function before the fit, whose prediction is its inverse of the latent
mean, as `predict` of such models returns it, the median of the target's law.

Proofs: docs/mathematics.md, statement 8.13.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from gpcert.functions import Curve, curve_from_config
from gpcert.likelihoods.base import (
    ResponseLikelihood,
    ScalarLikelihood,
    check_latent,
    check_segment,
    mean_lower,
)
from gpcert.numerics.arrays import Reals, namespace, to_numpy


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


@dataclass(frozen=True)
class CurveLink(ResponseLikelihood):
    """`F(mu, v) = h(mu)` for a function h that does not decrease (`gpcert.functions.Curve`).

    As quantiles go through h, it is the median of h(f). `with_variance=False` says that the model
    is a mean alone.

    >>> import numpy as np
    >>> from gpcert.functions import Exp
    >>> lower, upper = CurveLink(Curve((Exp(),))).enclose(np.array([1.0]), np.array([2.0]))
    >>> bool(lower[0] <= np.e <= upper[0]), bool(upper[0] - lower[0] < 1e-13)
    (True, True)
    """

    curve: Any = field(default_factory=Curve)
    with_variance: bool = True

    name: ClassVar[str] = "curve-link"
    by_variance: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not isinstance(self.curve, Curve):
            object.__setattr__(self, "curve", curve_from_config(self.curve))

    @property
    def has_variance(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.with_variance

    @property
    def range(self) -> tuple[float, float]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """That of the last function."""
        return self.curve.range

    def config(self) -> dict[str, Any]:
        return {"curve": self.curve.config(), "with_variance": self.with_variance}

    def value(self, mu: Reals, v: Reals) -> Reals:
        return self.curve(Gaussian().value(mu, v))

    def slopes(self, mu: Reals, v: Reals) -> tuple[Reals, Reals]:
        """`(h'(mu), 0)`."""
        xp = namespace(mu, v)
        mu = Gaussian().value(mu, v)
        slope = xp.asarray(self.curve.slope(to_numpy(mu)), device=mu.device)
        return slope, 0.0 * mu

    def enclose(self, mu: Reals, v: Reals) -> tuple[Reals, Reals]:
        mu, _ = check_latent(mu, v)
        return self.curve.below(mu), self.curve.above(mu)

    def line_minimum(self, alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """h of the least mean on the segment."""
        return self.curve.below(Gaussian().line_minimum(alpha, beta, v_low, v_high))

    def line_maximum(self, alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """h of the greatest mean on the segment."""
        return self.curve.above(Gaussian().line_maximum(alpha, beta, v_low, v_high))
