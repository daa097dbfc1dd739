"""Goals: what a search minimises, one a file."""

from gpcert.enclosures.goals.band import BandGoal
from gpcert.enclosures.goals.base import Goal, GoalBound
from gpcert.enclosures.goals.deviation import DeviationGoal
from gpcert.enclosures.goals.mean import MeanGoal
from gpcert.enclosures.goals.probability import ProbabilityGoal
from gpcert.enclosures.goals.std import StdGoal
from gpcert.enclosures.goals.variance import VarianceGoal

__all__ = [
    "BandGoal",
    "DeviationGoal",
    "Goal",
    "GoalBound",
    "MeanGoal",
    "ProbabilityGoal",
    "StdGoal",
    "VarianceGoal",
]
