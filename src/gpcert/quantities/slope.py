"""The slope of a latent mean along a direction, as what a verb may be asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpcert.errors import InputError
from gpcert.quantities.output import Quantity


@dataclass(frozen=True)
class Slope(Quantity):
    """The partial derivative of the mean in a `feature`, its name or number, or its derivative
    along a `direction`, one number per feature.

    The verbs answer for the model of the slopes: `prediction_range`, `prediction_ranges`,
    `maximize`, `certify` with a threshold, `bound_boxes`; `output=` names the output.

    >>> Slope("age")
    Slope(feature='age', direction=None)
    """

    feature: Any = None
    direction: tuple[float, ...] | None = None

    by_variance = False

    def __post_init__(self) -> None:
        if (self.feature is None) == (self.direction is None):
            raise InputError(
                "Slope: expected either a feature (its name or number) or a direction (one number "
                f"per feature), got feature={self.feature!r} and direction={self.direction!r}"
            )
        if self.direction is not None:
            object.__setattr__(self, "direction", tuple(float(u) for u in self.direction))

    @property
    def negative(self) -> Quantity:
        """Of a direction the other way."""
        if self.direction is None:
            return super().negative
        return Slope(direction=tuple(-u for u in self.direction))
