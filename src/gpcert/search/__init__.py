"""Search: branch and bound over batches of boxes."""

from gpcert.search.branch_and_bound import solve
from gpcert.search.budget import DEFAULT_BUDGET, Budget, StopReason, stop_if_interrupted
from gpcert.search.problem import GoalResult, Problem, SearchResult, SearchState, Watch

__all__ = [
    "DEFAULT_BUDGET",
    "Budget",
    "GoalResult",
    "Problem",
    "SearchResult",
    "SearchState",
    "StopReason",
    "Watch",
    "solve",
    "stop_if_interrupted",
]
