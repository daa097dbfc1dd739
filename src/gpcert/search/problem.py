"""What a search is asked: goals over a region, and when it may stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from gpcert.arrays import Backend
from gpcert.committee import Model
from gpcert.enclosures.goals import Goal
from gpcert.errors import InputError
from gpcert.regions import Region
from gpcert.search.budget import Budget, StopReason


@dataclass(frozen=True, eq=False)
class SearchState:
    """What is known at some moment: `lower` and `upper` (G,) of the goals' minima, and the cost."""

    lower: np.ndarray
    upper: np.ndarray
    boxes: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Watch:
    """Who looks on: `start` is the moment (of `time.perf_counter`) from which a budget counts, by
    default that of `solve`; `report` is called with the bounds so far after every batch."""

    start: float | None = None
    report: Callable[[SearchState], None] | None = None


@dataclass(frozen=True, eq=False)
class Problem:
    """Minimise every goal over the region to within `tol`, or decide its `target`.

    With a target T, a goal is *proved* once its lower bound exceeds T, and *refuted* once a point
    with a value below T is known; it needs no tolerance.
    """

    posterior: Model
    region: Region
    goals: Sequence[Goal]
    tol: float = 0.01
    target: float | None = None
    budget: Budget = field(default_factory=Budget)
    backend: Backend = field(default_factory=Backend)
    random_state: int | None = 0
    watch: Watch = field(default_factory=Watch)

    def __post_init__(self) -> None:
        if self.region.dim != self.posterior.dim:
            raise InputError(
                f"region: expected {self.posterior.dim} features as in the model, "
                f"got {self.region.dim}"
            )
        if not (np.isfinite(self.tol) and self.tol >= 0):
            raise InputError(f"tol: expected a number >= 0, got {self.tol!r}")
        if self.target is not None and not np.isfinite(self.target):
            raise InputError(f"threshold: expected a finite number, got {self.target!r}")


@dataclass(frozen=True, eq=False)
class GoalResult:
    """Proved `lower <= min goal <= upper`, and the point of the region where upper is attained (or
    any, with an upper that holds everywhere, if the search ended before it knew a value)."""

    lower: float
    upper: float
    point: np.ndarray


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The goals' results, and what they cost."""

    goals: tuple[GoalResult, ...]
    reason: StopReason
    boxes: int
    seconds: float
