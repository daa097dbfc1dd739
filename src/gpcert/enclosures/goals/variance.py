"""Goal: the latent variance of one output, or its negative."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpcert.arrays import Array
from gpcert.attacks.functions import PlainFunction, variance_function
from gpcert.committee import Model
from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.goals.base import Goal, GoalBound
from gpcert.enclosures.goals.mean import affine_down
from gpcert.rounding import nonnegative

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
        """From `variance_range`; the target is not needed, the levels converge by themselves."""
        del target
        low, high = evaluation.variance_range(self.output)
        enclosure = evaluation.variance(self.output)
        model = enclosure.below if self.sign > 0 else enclosure.above
        geometry = evaluation.expansion.geometry
        shape = model.bound(geometry, steps=1)
        evaluation.local.report_derivatives(enclosure, relevant=True)
        lower = self._output_units(evaluation, low if self.sign > 0 else -high)
        if self.sign > 0:
            lower = nonnegative(lower)  # a variance is one
        return GoalBound(lower, geometry.unscaled(shape.point), geometry.split_scores())

    def ceiling(self, evaluation: Evaluation) -> Array:
        """Variance at the centre on the other side of its rounding error."""
        low, high = evaluation.variance_at_center(self.output)
        return -self._output_units(evaluation, -high if self.sign > 0 else low, flip=True)

    def function(self, model: Model) -> PlainFunction:
        """The goal and its gradient in plain floating point."""
        return variance_function(model.members[0], self.output, self.sign)

    def _output_units(self, evaluation: Evaluation, q: Array, flip: bool = False) -> Array:
        local, c = evaluation.local, self.output
        sign = -self.sign if flip else self.sign
        noise, scale2 = float(local.posterior.noise[c]), local.unit.variance_scale[c]
        return affine_down(sign * noise, scale2, q)
