"""A goal bounded by two methods: the better bound counts."""

from __future__ import annotations

from dataclasses import dataclass

from gpcert.arrays import Array, namespace
from gpcert.attacks.functions import PlainFunction
from gpcert.committee import Model
from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.goals.base import Goal, GoalBound


@dataclass(frozen=True, eq=False)
class BothGoals(Goal):
    """Two goals that are the same function of x, bounded differently.

    Both bounds hold, so the larger one does. Points and splits are those of the first.
    """

    first: Goal
    second: Goal

    @property
    def needs_variance(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether either does."""
        return self.first.needs_variance or self.second.needs_variance

    @property
    def cells_at_once(self) -> int | None:
        """The smaller batch."""
        sizes = [goal.cells_at_once for goal in (self.first, self.second)]
        return min((size for size in sizes if size is not None), default=None)

    @property
    def known(self) -> tuple[float, float]:
        """That of the first: both are the same function."""
        return self.first.known

    def bound(self, evaluation: Evaluation, target: float | None) -> GoalBound:
        """The larger of both lower bounds."""
        first, second = (goal.bound(evaluation, target) for goal in (self.first, self.second))
        lower = namespace(first.lower).maximum(first.lower, second.lower)
        return GoalBound(lower, first.point, first.scores)

    def ceiling(self, evaluation: Evaluation) -> Array:
        """That of the first: both are the same function."""
        return self.first.ceiling(evaluation)

    def function(self, model: Model) -> PlainFunction:
        """That of the first."""
        return self.first.function(model)
