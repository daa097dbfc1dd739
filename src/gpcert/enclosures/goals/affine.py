"""Affine functions below a goal, where they are known."""

from __future__ import annotations

from gpcert.enclosures.affine import Affine, has_affine, least_affine
from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.goals.base import Goal
from gpcert.enclosures.goals.member import MemberGoal
from gpcert.enclosures.goals.scalar import ScalarGoal


def affine_known(goal: Goal) -> bool:
    """Whether there are some: of means, variances and standard deviations."""
    own = goal.plain if isinstance(goal, MemberGoal) else goal
    return isinstance(own, ScalarGoal) and has_affine(own.quantity)


def affine_below(goal: Goal, evaluation: Evaluation) -> Affine:
    """An affine function below the goal on every cell."""
    if isinstance(goal, MemberGoal):
        return affine_below(goal.plain, evaluation.member(goal.index))
    assert isinstance(goal, ScalarGoal), "asked for where it is known"
    return least_affine(evaluation, goal.quantity)
