"""Search: branch and bound over batches of boxes."""

from gpcert.numerics.arrays import keep_freed_memory
from gpcert.search.branch_and_bound import solve
from gpcert.search.checkpoints import Checkpoint
from gpcert.search.problem import (
    DEFAULT_BUDGET,
    Budget,
    GoalResult,
    Problem,
    Progress,
    SearchResult,
    SearchState,
    StopReason,
    stop_if_interrupted,
)

keep_freed_memory()

__all__ = [
    "DEFAULT_BUDGET",
    "Budget",
    "Checkpoint",
    "GoalResult",
    "Problem",
    "SearchResult",
    "SearchState",
    "StopReason",
    "Progress",
    "solve",
    "stop_if_interrupted",
]
