"""Goal: the standard deviation of one output, or its negative.

Proofs: docs/mathematics.md, statement 7.6.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpcert.arrays import Array, namespace
from gpcert.attacks.functions import PlainFunction, std_function
from gpcert.committee import Model
from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.goals.base import Goal, GoalBound
from gpcert.enclosures.goals.variance import VarianceGoal
from gpcert.rounding import down, nonnegative, up

__all__ = ["StdGoal"]


@dataclass(frozen=True)
class StdGoal(Goal):
    """`sign * sqrt(V_c(x))`, V the variance of `VarianceGoal`: noise included where it has some."""

    output: int
    sign: int

    needs_variance = True

    @property
    def known(self) -> tuple[float, float]:
        """A standard deviation is not negative."""
        return self.variance.known

    @property
    def variance(self) -> VarianceGoal:
        """The goal under the root."""
        return VarianceGoal(self.output, self.sign)

    def bound(self, evaluation: Evaluation, target: float | None) -> GoalBound:
        """The root of the variance's bound: the root increases, so nothing is lost."""
        del target
        found = self.variance.bound(evaluation, None)
        return GoalBound(self.rooted(found.lower, -1), found.point, found.scores)

    def ceiling(self, evaluation: Evaluation) -> Array:
        """The root of the variance's."""
        return self.rooted(self.variance.ceiling(evaluation), 1)

    def function(self, model: Model) -> PlainFunction:
        """The goal and its gradient in plain floating point."""
        return std_function(model.members[0], self.output, self.sign)

    def rooted(self, bound: Array, side: int) -> Array:
        """A bound of `sign * sqrt(V)` from one of `sign * V`, from below (side = -1) or above.

        Statement: if `V <= W` then `sqrt(V) <= sqrt(max(W, 0))`, and likewise from below.
        Reason: V >= 0 and the root increases; it is correctly rounded, one outward step covers it.
        """
        xp = namespace(bound)
        root = xp.sqrt(nonnegative(self.sign * bound))
        rounded = up(root, 1) if side * self.sign > 0 else nonnegative(down(root, 1))
        return self.sign * rounded
