"""Goals: what a search minimises, and how every kind of quantity is bounded."""

from gpcert.enclosures.goals import (  # noqa: F401  (they register)
    joint_means,
    pair_votes,
    prediction_slopes,
)
from gpcert.enclosures.goals.compound import deviation_around, deviations_at
from gpcert.enclosures.goals.goal import Goal, GoalBound, QuantityGoal

__all__ = ["Goal", "GoalBound", "QuantityGoal", "deviation_around", "deviations_at"]
