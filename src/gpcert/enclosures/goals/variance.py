"""Goal: the latent variance of one output, or its negative."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpcert.arrays import Array
from gpcert.attacks.functions import PlainFunction, variance_function
from gpcert.committee import Model
from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.goals.base import Goal, GoalBound

__all__ = ["VarianceGoal"]


@dataclass(frozen=True)
class VarianceGoal(Goal):
    """`sign * (scale^2 max(v_c(x), 0) + noise_c)`."""

    output: int
    sign: int

    needs_variance = True

    @property
    def known(self) -> tuple[float, float]:
        """A variance is not negative."""
        return (0.0, math.inf) if self.sign > 0 else (-math.inf, 0.0)

    def bound(self, evaluation: Evaluation, target: float | None) -> GoalBound:
        """From the range; the target is not needed, the levels converge by themselves."""
        del target
        enclosure = evaluation.variance(self.output)
        low, high = enclosure.range
        geometry = evaluation.expansion.geometry
        shape = enclosure.side(self.sign).minimum(steps=1)
        evaluation.local.report_derivatives(enclosure, relevant=True)
        lower = enclosure.units.signed(self.sign).below(low if self.sign > 0 else -high)
        return GoalBound(lower, geometry.unscaled(shape.point), geometry.split_scores())

    def ceiling(self, evaluation: Evaluation) -> Array:
        """Variance at the centre on the other side of its rounding error."""
        enclosure = evaluation.variance(self.output)
        low, high = enclosure.at_center
        return enclosure.units.signed(self.sign).above(high if self.sign > 0 else -low)

    def function(self, model: Model) -> PlainFunction:
        """The goal and its gradient in plain floating point."""
        return variance_function(model.members[0], self.output, self.sign)
