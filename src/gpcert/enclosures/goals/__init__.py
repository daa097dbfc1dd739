"""Goals: what a search minimises, and how every kind of quantity is bounded."""

from gpcert.enclosures.goals import joint_means, pair_votes  # noqa: F401  (they register)
from gpcert.enclosures.goals.compound import deviation_around, deviations_at
from gpcert.enclosures.goals.goal import Goal, GoalBound, QuantityGoal

__all__ = ["Goal", "GoalBound", "QuantityGoal", "deviation_around", "deviations_at"]
