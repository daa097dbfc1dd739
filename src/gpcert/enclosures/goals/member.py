"""Goals made of goals: one of several posteriors' own, and one bounded by two methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpcert.arrays import Array, namespace
from gpcert.attacks.functions import PlainFunction
from gpcert.committee import Model
from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.goals.base import Goal, GoalBound


@dataclass(frozen=True, eq=False)
class MemberGoal(Goal):
    """The goal `plain`, asked of one member alone: its bounds are those of that posterior."""

    index: int
    plain: Goal

    @property
    def needs_variance(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """That of the plain goal."""
        return self.plain.needs_variance

    @property
    def cells_at_once(self) -> int | None:
        """That of the plain goal."""
        return self.plain.cells_at_once

    @property
    def known(self) -> tuple[float, float]:
        """That of the plain goal."""
        return self.plain.known

    def bound(self, evaluation: Evaluation, target: float | None) -> GoalBound:
        """On the same cells as the member sees them."""
        return self.plain.bound(evaluation.member(self.index), target)

    def ceiling(self, evaluation: Evaluation) -> Array:
        """At the same centres."""
        return self.plain.ceiling(evaluation.member(self.index))

    def function(self, model: Model) -> PlainFunction:
        """That of the member."""
        return self.plain.function(model.members[self.index])


def output_goal(members: int, kind: Callable[[int, int], Goal], output: int, sign: int) -> Goal:
    """`kind(output, sign)` of a posterior; of separate outputs, each a member, that of the member.

    >>> from gpcert.enclosures.goals import ScalarGoal
    >>> from gpcert.quantities import Mean
    >>> output_goal(3, lambda c, sign: ScalarGoal(Mean(c, sign)), 2, -1).index
    2
    """
    return kind(output, sign) if members == 1 else MemberGoal(output, kind(0, sign))


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
