"""Goals: what a search minimises, one kind a file."""

from gpcert.enclosures.goals.base import Goal, GoalBound
from gpcert.enclosures.goals.deviation import DeviationGoal
from gpcert.enclosures.goals.scalar import ScalarGoal

__all__ = ["DeviationGoal", "Goal", "GoalBound", "ScalarGoal"]
