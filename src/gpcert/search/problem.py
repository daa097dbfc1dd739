"""What a search is asked: goals over a region, how near the two ends of their minima must be, which
of them rounding keeps apart, how much the search may spend, and why it stopped.

Proofs: docs/mathematics.md, statement 14.2.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from gpcert.enclosures import Evaluation
from gpcert.enclosures.goals import Goal, GoalBound
from gpcert.errors import InputError, SoundnessError
from gpcert.model.committee import Model
from gpcert.numerics.arrays import Backend, Reals, Rows, number_array, to_numpy
from gpcert.numerics.rounding import given, up
from gpcert.regions import Region
from gpcert.utils.option_names import SECONDS
from gpcert.utils.processes import checkpoint, deadline

if TYPE_CHECKING:
    from gpcert.search.state import Leaves

SHRUNK, SLACK = 2.0**-8, 0.1
"""A part of the worst box, so much smaller, and the part of a gap that it must gain: else splitting
goes on to no purpose."""

ROUNDED = 0.5
"""Part of a gap that bounds at single points must leave, which is rounding and nothing else."""

MOVED = 0.02
"""Part of a gap by which the least value known may have fallen since the last look."""


@dataclass(frozen=True, eq=False)
class Tolerance:
    """Ends `lower <= upper` of a goal are near enough where `upper - lower` is at most the larger
    of `absolute` and `relative` times the goal's magnitude: what both ends prove of its distance
    from the nearest of its `zeros`.

    `absolute` is a number or one per goal (G,), `zeros` (G, k); by default 0 for each goal.

    >>> Tolerance(0.1, 0.01).needed(np.array([0.0, 1.0, 100.0])).round(2).tolist()
    [-0.1, 0.9, 99.01]
    """

    absolute: float | np.ndarray = 0.01
    relative: float = 0.0
    zeros: np.ndarray | None = None

    def __post_init__(self) -> None:
        for name, value in (("tol", self.absolute), ("rtol", self.relative)):
            if not np.all(np.isfinite(value) & (np.asarray(value) >= 0)):
                raise InputError(f"{name}: expected a number >= 0, got {value!r}")
        if self.relative >= 1:
            raise InputError(f"rtol: expected a number below 1, got {self.relative!r}")

    @staticmethod
    def of(given: Any) -> Tolerance:
        """A number, or one per goal (G,), is absolute; a tolerance is itself."""
        return given if isinstance(given, Tolerance) else Tolerance(given)

    def needed(self, upper: Reals) -> Reals:
        """(..., G): the least lower ends that are near enough to the upper ones (..., G).

        Above a zero z, `upper - lower <= relative (lower - z)` where `lower - z` is at least
        `(upper - z) / (1 + relative)`; below it, where it is at least `(upper - z)(1 + relative)`.
        """
        needed = upper - self.absolute
        if self.relative > 0:
            zeros = np.zeros((1, 1)) if self.zeros is None else self.zeros
            away, rate = upper[..., None] - zeros, 1.0 + self.relative
            each = zeros + np.where(away > 0, away / rate, away * rate)
            # at most 9 roundings of the parts, which may cancel
            each = each + 1e-15 * (np.abs(zeros) + np.abs(away))
            needed = np.minimum(needed, given(np.max(each, axis=-1)))
        return np.minimum(up(needed, 1), upper)


@dataclass(frozen=True, eq=False)
class Resolution:
    """Which goals cannot be bounded much better, as rounding is what is left: `reached`, of any
    shape; `seen` are the least values known when that was last looked at. Only the effort depends
    on it: bounds hold whenever a search ends.

    A box is bounded no better than what lies in it, but for rounding that differs. So two bounds
    tell what splitting would leave: those of a small box and of a point, which a search of many
    boxes comes near, and which none surpasses.
    """

    reached: np.ndarray
    seen: np.ndarray

    @staticmethod
    def unknown(shape: tuple[int, ...]) -> Resolution:
        """Before the first look."""
        return Resolution(np.zeros(shape, dtype=bool), np.full(shape, np.inf))

    @staticmethod
    def around(
        points: Rows, widths: Rows, low: Reals, high: Reals
    ) -> tuple[np.ndarray, np.ndarray]:
        """Corners of boxes about points (n, f) inside [low, high], `SHRUNK` of these widths; then
        those of the points alone: (2 n, f)."""
        half = 0.5 * SHRUNK * widths
        small = np.maximum(points - half, low), np.minimum(points + half, high)
        return np.concatenate([small[0], points]), np.concatenate([small[1], points])

    @np.errstate(invalid="ignore")
    def looked(
        self, lower: Reals, upper: Reals, small: Reals, point: Reals, left_open: Reals
    ) -> Resolution:
        """What is known now: both ends, the least bounds of small boxes and of points, infinite
        where none was asked for, and whether such a small box keeps its goal open."""
        gap = upper - small
        still = self.seen - upper <= MOVED * gap
        idle = lower >= small - SLACK * gap
        rounded = upper - point >= ROUNDED * (upper - lower)
        return Resolution(self.reached | (left_open & still & idle & rounded), upper.copy())


class StopReason(Enum):
    """Why a search ended; the value is a sentence for people."""

    CONVERGED = "the bounds are within the tolerance"
    DECIDED = "the property is decided"
    TIME = "the time budget is used up"
    BOXES = "the budget of boxes is used up"
    MEMORY = "the memory budget is used up"
    INTERRUPTED = "interrupted by the user"
    RESOLUTION = (
        "rounding is what is left of the gap: more time would not help, but a larger tolerance, "
        "more noise in the model (alpha), or a kernel of smaller variance might"
    )
    UNDECIDED_AT_X = "the decision at x itself lies within the error of its own enclosure"


@dataclass(frozen=True)
class Budget:
    """Limits of one search; None lifts a limit. Bounds stay valid whichever limit is met first.

    `seconds` of wall-clock time, number of `boxes` evaluated, and `memory` in bytes held by boxes
    that wait to be split, by the copy that replacing some of them makes, and by the batch being
    evaluated.

    The time is that of the whole call, from the conversion of the model on. It is looked at between
    the pieces of all long work (boxes, outputs, integrals, programs, steps of local search), so it
    is met within a tenth of it or a second; the first box gets half a second even where nothing is
    left. Longer can only be what cannot be taken apart: the conversion of a model, the proved norms
    and eigenvalues of its matrices when they are first needed (about `N^3` operations each: 0.1 s
    for 1000 points, a minute for 10,000), and a single program of `method="paper"`.

    >>> Budget(seconds=2.0).boxes is None
    True
    """

    seconds: float | None = SECONDS
    boxes: int | None = None
    memory: float | None = 2.0e9

    def __post_init__(self) -> None:
        for name in ("seconds", "boxes", "memory"):
            object.__setattr__(self, name, _limit(name, getattr(self, name)))
        if self.boxes is not None:
            if not float(self.boxes).is_integer():
                wanted = "a whole number or None"
                raise InputError(f"budget boxes: expected {wanted}, got {self.boxes!r}")
            object.__setattr__(self, "boxes", int(self.boxes))  # 1e6 is one way to write it

    def ends(self, start: float) -> float:
        """The moment at which the time is used up, counted from a start; infinite without limit.

        >>> Budget(seconds=2.0).ends(1.0)
        3.0
        """
        return math.inf if self.seconds is None else start + self.seconds


def _limit(name: str, given: Any) -> float | None:
    """A positive number, or None for no limit, which infinity is too."""
    if given is None:
        return None
    wanted = f"budget {name}: expected a positive number or None, got {given!r}"
    try:
        value = float(number_array(f"budget {name}", given, ndim=0))
    except InputError as error:
        raise InputError(f"{wanted} ({error})") from error
    if value <= 0:
        raise InputError(wanted)
    return None if math.isinf(value) else value


DEFAULT_BUDGET = Budget()
"""What every verb and every command may spend where nothing is said: 60 seconds."""


class Clock:
    """Time since the search began (or since `start`), against a budget and whatever deadline is
    already set where the clock is made."""

    def __init__(self, budget: Budget, start: float | None = None, before: float = 0.0) -> None:
        """`before` are seconds that the search had taken when it was saved."""
        self.budget = budget
        self.start = (time.perf_counter() if start is None else start) - before
        self.end = min(budget.ends(self.start), deadline())

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.start

    def exhausted(self, boxes: int, memory: float) -> StopReason | None:
        """The first limit that is met, if any."""
        budget = self.budget
        if time.perf_counter() >= self.end:
            return StopReason.TIME
        if budget.boxes is not None and boxes >= budget.boxes:
            return StopReason.BOXES
        if budget.memory is not None and memory >= budget.memory:
            return StopReason.MEMORY
        return None


def stop_if_interrupted(reason: StopReason | None) -> None:
    """Raise `KeyboardInterrupt` if that is what ended a search.

    One search catches the first Ctrl-C and returns the bounds it has. What runs several must not go
    on to the next: it calls this after it has put the result away.
    """
    if reason is StopReason.INTERRUPTED:
        raise KeyboardInterrupt


def bound_of(goal: Goal, evaluation: Evaluation, target: float | None) -> GoalBound:
    """The goal's bound over every cell of a batch; a `SoundnessError` where one is undefined."""
    checkpoint()
    bound = goal.bound(evaluation, target)
    if np.isnan(to_numpy(bound.lower)).any():
        raise SoundnessError("a bound is NaN; please report this model")
    return bound


def check_bounds(lower: Reals, upper: Reals) -> None:
    """A proved lower bound above an attained value is a defect, never an answer."""
    if np.isnan(lower).any() or np.isnan(upper).any() or np.any(lower > upper):
        raise SoundnessError(
            f"crossed or undefined bounds: lower {lower}, attained {upper}; "
            "this is a defect of gpcert or an overflow in the model: please report it"
        )


@dataclass(frozen=True, eq=False)
class SearchState:
    """What is known at some moment: `lower` and `upper` (G,) of the goals' minima, and the cost."""

    lower: np.ndarray
    upper: np.ndarray
    boxes: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Progress:
    """Start time and progress callback: `start` is the moment (of `time.perf_counter`) from which a
    budget counts, by default that of `solve`; `report` is called with the bounds so far before
    every batch and at the end."""

    start: float | None = None
    report: Callable[[SearchState], None] | None = None


@dataclass(frozen=True, eq=False)
class Problem:
    """Minimise every goal over the region to within `tol` (a number, one per goal or a
    `Tolerance`), or decide its `target`.

    With a target T, a goal is *proved* once its lower bound exceeds T, and *refuted* once a point
    with a value below T is known; it needs no tolerance. With `record`, the result has the boxes
    with which the search ended, `SearchResult.leaves`; they count towards the budget's memory.
    """

    model: Model
    region: Region
    goals: Sequence[Goal]
    tol: float | np.ndarray | Tolerance = 0.01
    target: float | None = None
    budget: Budget = field(default_factory=Budget)
    backend: Backend = field(default_factory=Backend)
    random_state: int | None = 0
    progress: Progress = field(default_factory=Progress)
    record: bool = False
    n_jobs: int | None = 1
    """Processes of joblib's that search, once it has lasted a moment; None: what
    `joblib.parallel_config` says."""

    def __post_init__(self) -> None:
        if self.region.dim != self.model.dim:
            raise InputError(
                f"region: expected {self.model.dim} features as in the model, got {self.region.dim}"
            )
        object.__setattr__(self, "tol", Tolerance.of(self.tol))
        if self.target is not None and not np.isfinite(self.target):
            raise InputError(f"threshold: expected a finite number, got {self.target!r}")


@dataclass(frozen=True, eq=False)
class GoalResult:
    """Proved `lower <= min goal <= upper`, and the point of the region where upper is attained (or
    any, with an upper that holds everywhere, if the search ended before it knew a value; None if
    there was no search)."""

    lower: float
    upper: float
    point: np.ndarray | None


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The goals' results, and what they cost; `leaves` are the boxes with which the search ended,
    if they were recorded (`Problem.record`)."""

    goals: tuple[GoalResult, ...]
    reason: StopReason
    boxes: int
    seconds: float
    leaves: Leaves | None = None
