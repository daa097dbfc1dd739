"""The slope of a latent mean along a direction, as what a verb may be asked for; slopes of standard
deviations and probabilities, as what is searched."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from gpcert.errors import InputError
from gpcert.quantities.differentiable import Differentiable
from gpcert.quantities.output import Quantity

SLOPES_OF = ("mean", "probability", "std", "variance")
"""What a slope may be of."""


@dataclass(frozen=True)
class Slope(Quantity):
    """The partial derivative in a `feature`, its name or number, or the derivative along a
    `direction`, one number per feature, `of` the latent "mean", or of the "probability" of the
    second of two classes, the "std" or the "variance".

    The verbs answer for the model of the slopes: `prediction_range`, `prediction_ranges`,
    `maximize`, `certify` with a threshold, `bound_boxes`; `output=` names the output.

    >>> Slope("age")
    Slope(feature='age', direction=None, of='mean')
    """

    feature: Any = None
    direction: tuple[float, ...] | None = None
    of: str = "mean"

    @property
    def by_variance(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether it is of more than the mean."""
        return self.of != "mean"

    def __post_init__(self) -> None:
        if (self.feature is None) == (self.direction is None):
            raise InputError(
                "Slope: expected either a feature (its name or number) or a direction (one number "
                f"per feature), got feature={self.feature!r} and direction={self.direction!r}"
            )
        if self.of not in SLOPES_OF:
            raise InputError(f"Slope: expected of= one of {SLOPES_OF}, got {self.of!r}")
        if self.direction is not None:
            object.__setattr__(self, "direction", tuple(float(u) for u in self.direction))

    @property
    def negative(self) -> Quantity:
        """Of a direction the other way."""
        if self.direction is None:
            return super().negative
        return Slope(direction=tuple(-u for u in self.direction), of=self.of)


@dataclass(frozen=True)
class PredictionSlope(Quantity):
    """`sum_j w_j D_j G(mu, V)` of a function of the latent mean and variance, of a model
    `slopes_beside`: output `base` is the latent function, `base + 1 + j` its mean's slope along the
    j-th direction."""

    function: Differentiable
    weights: tuple[float, ...] = (1.0,)
    base: int = 0

    @property
    def negative(self) -> PredictionSlope:
        """With the other signs."""
        return replace(self, weights=tuple(-w for w in self.weights))


@dataclass(frozen=True)
class PredictionSteepness(Quantity):
    """`-|(D_j G)_j|_p` over `directions` of them; the model as of a `PredictionSlope`."""

    function: Differentiable
    directions: int
    norm: float
    base: int = 0

    @property
    def known(self) -> tuple[float, float]:
        """A norm is not negative."""
        return -math.inf, 0.0
