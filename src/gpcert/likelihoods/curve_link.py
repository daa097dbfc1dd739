"""Targets that went through an increasing function before the fit: the prediction is its inverse
of the latent mean, as `predict` of such models returns it, the median of the target's law.

Proofs: docs/mathematics.md, statement 8.13.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from gpcert.functions import Curve, curve_from_config
from gpcert.likelihoods.base import ResponseLikelihood, check_latent
from gpcert.likelihoods.gaussian import Gaussian
from gpcert.numerics.arrays import Reals, namespace, to_numpy


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
