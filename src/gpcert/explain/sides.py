"""Proved ranges over the one-sided intervals `[x, x + r e_j]` and `[x - r e_j, x]`.

For squared exponential kernels, the intervals of all points share batches; for any other kernel or
method, `gpcert.prediction_ranges` bounds one interval at a time.

Proofs: docs/mathematics.md, statement 15.1.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from threading import Event
from typing import Any, TypeVar

import joblib
import numpy as np

from gpcert.api import prediction_ranges
from gpcert.api.options import SearchSettings, read_jobs, search_options
from gpcert.api.range_questions import RangeQuestion
from gpcert.api.running import Line, check_alone, ranges_text
from gpcert.enclosures.evaluation import SectionModel, has_sections
from gpcert.enclosures.goals import Goal, QuantityGoal
from gpcert.model.committee import Model
from gpcert.numerics.rounding import down, up
from gpcert.regions import Ball
from gpcert.search import Budget, Progress, SearchState, StopReason
from gpcert.search.branch_and_bound import FIRST_BOX_SECONDS, solve_batch
from gpcert.search.problem import Tolerance
from gpcert.search.questions import (
    BatchProblem,
    BatchResult,
    FirstPoints,
    ManyBoxes,
    WithinTolerance,
    nothing_searched,
)
from gpcert.utils.processes import deadline, until

NUMBERS_PER_BATCH = 800_000
"""Intervals times model points of one chunk, the work of one thread; smaller chunks need more calls
per interval."""

T = TypeVar("T")


@dataclass(frozen=True)
class Effort:
    """The cost limits of a call: tolerance, search settings, threads, start time."""

    tol: np.ndarray
    """Tolerance of each end of a range, one per output."""
    settings: SearchSettings
    n_jobs: int | None
    options: Mapping[str, Any]
    """Search options in the form that verbs take."""
    start: float
    """Start time of the call."""

    @staticmethod
    def read(options: Mapping[str, Any], tol: np.ndarray, start: float) -> Effort:
        """From the options of a verb."""
        search = search_options(options)
        return Effort(tol, SearchSettings.read(search), read_jobs(options["n_jobs"]), search, start)

    def again(self, tol: np.ndarray, boxes: int) -> Effort:
        """The same with another tolerance and a smaller budget: `boxes` are used up."""
        budget = self.settings.budget
        left = None if budget.boxes is None else max(1, budget.boxes - boxes)
        settings = replace(self.settings, budget=replace(budget, boxes=left))
        return replace(self, tol=tol, settings=settings)

    @property
    def end(self) -> float:
        """End time of the call: threads do not see the deadline of the thread that starts them."""
        return min(self.settings.budget.ends(self.start), deadline())

    def share(self, part: int, total: int) -> Budget:
        """The budget of boxes for `part` of `total` questions; the time limit is `end`."""
        boxes = self.settings.budget.boxes
        box_limit = None if boxes is None else max(1, boxes * part // total)
        return replace(self.settings.budget, seconds=None, boxes=box_limit)


@dataclass(frozen=True, eq=False)
class Intervals:
    """Points X (P, d), the features (F,) that move by `radius`, (F,) or (P, F), inside a domain."""

    X: np.ndarray
    features: np.ndarray
    radius: np.ndarray
    domain: tuple[np.ndarray, np.ndarray] | None

    def lengths(self) -> tuple[np.ndarray, np.ndarray]:
        """(P, F, 2) each, upwards and downwards: outer and inner bounds of the real lengths.

        A length is the radius, unless the domain ends first: that difference is rounded. If it
        rounds to the radius, the real end may be closer by one rounding of t. The error bounds of
        scaled coordinates cover it: they count three roundings, of which t needs one.
        """
        free = np.broadcast_to(self.radius, (len(self.X), len(self.features)))
        outer = np.stack([free, free], axis=-1)
        inner = outer.copy()
        if self.domain is not None:
            x = self.X[:, self.features]
            for side, distance in enumerate(
                (self.domain[1][self.features] - x, x - self.domain[0][self.features])
            ):
                cut = distance < free
                more = np.where(distance > 0, up(distance, 1), 0.0)
                less = np.maximum(np.where(distance > 0, down(distance, 1), 0.0), 0.0)
                outer[..., side] = np.where(cut, np.minimum(more, free), free)
                inner[..., side] = np.where(cut, less, free)
        return outer, inner


@dataclass(frozen=True, eq=False)
class Sides:
    """Bounds of minimum and maximum, each (P, F, 2, C) for the sides (up, down) and outputs."""

    minimum_lower: np.ndarray
    minimum_upper: np.ndarray
    maximum_lower: np.ndarray
    maximum_upper: np.ndarray
    reason: StopReason
    boxes: int


def one_sided_ranges(
    question: RangeQuestion, model: Model, intervals: Intervals, effort: Effort, line: Line
) -> Sides:
    """The ranges of every searched output on both sides of every feature and point."""
    shape = (len(intervals.X), len(intervals.features), 2, question.searched)
    goals = [
        QuantityGoal(question.asked(c, sign)) for c in range(question.searched) for sign in (1, -1)
    ]
    if shape[1] == 0:
        results = [nothing_searched(goals, (0, 1), StopReason.CONVERGED)]
    elif effort.settings.method.name == "taylor" and has_sections(question.model):
        results = _by_sections(question, goals, intervals, effort, line)
    else:
        results = _by_regions(question, model, goals, intervals, effort, line)
    # goals come in pairs: each output, and its negative
    lower = np.reshape(np.concatenate([each.lower for each in results]), (*shape, 2))
    upper = np.reshape(np.concatenate([each.upper for each in results]), (*shape, 2))
    early = [each.reason for each in results if each.reason is not StopReason.CONVERGED]
    reason = next(iter(early), StopReason.CONVERGED)
    if StopReason.INTERRUPTED in early:
        reason = StopReason.INTERRUPTED
    boxes = sum(each.boxes for each in results)
    return Sides(lower[..., 0], upper[..., 0], -upper[..., 1], -lower[..., 1], reason, boxes)


def _by_sections(
    question: RangeQuestion, goals: Sequence[Goal], intervals: Intervals, effort: Effort, line: Line
) -> list[BatchResult]:
    variance = any(goal.needs_variance for goal in goals)
    parts = SectionModel.parts_of(question.model, effort.settings.backend, variance)
    P, F = len(intervals.X), len(intervals.features)
    rows = np.repeat(np.arange(P), 2 * F)
    features = np.tile(np.repeat(intervals.features, 2), P)
    outer, inner = (np.reshape(part, (-1, 1)) for part in intervals.lengths())
    upward = np.tile([True, False], P * F)[:, None]
    ends = [np.where(upward, 0.0, -outer), np.where(upward, outer, 0.0)]
    ends += [np.where(upward, 0.0, -inner), np.where(upward, inner, 0.0)]
    stop = WithinTolerance(Tolerance(np.repeat(effort.tol, 2)))

    def solved(chunk: slice, report: Callable[[SearchState], None]) -> BatchResult:
        sections = (rows[chunk], features[chunk]), outer[chunk, 0]
        family = SectionModel.on(parts, intervals.X, *sections, effort.settings.backend)
        return solve_batch(
            BatchProblem(
                family,
                goals,
                ManyBoxes(ends[0][chunk], ends[1][chunk], ends[2][chunk], ends[3][chunk]),
                stop,
                first_points=FirstPoints(np.zeros((len(rows[chunk]), 1)), rows[chunk]),
                first_seconds=FIRST_BOX_SECONDS,
                budget=effort.share(len(rows[chunk]), len(rows)),
                progress=Progress(report=report),
                model=question.model,
                about=(intervals.X, features[chunk]),
            )
        )

    def unsolved(chunk: slice, reason: StopReason) -> BatchResult:
        return nothing_searched(goals, (len(rows[chunk]), 1), reason)

    largest = max(len(member.points) for member in question.model.members)
    size = max(2, NUMBERS_PER_BATCH // largest)
    chunks = [slice(k, min(k + size, len(rows))) for k in range(0, len(rows), size)]
    return _all(chunks, solved, unsolved, effort, line)


def _all(
    pieces: Sequence[T],
    solved: Callable[[T, Callable[[SearchState], None]], BatchResult],
    unsolved: Callable[[T, StopReason], BatchResult],
    effort: Effort,
    line: Line,
) -> list[BatchResult]:
    """The results of all pieces, in order; `unsolved` after the time limit or Ctrl-C.

    Uses threads: the work is in matrix products and long arrays, which release the interpreter
    lock. Ctrl-C is raised in the main thread only; searches in other threads stop at their next
    progress report. The first piece always starts.
    """
    stopped, end = Event(), effort.end
    done: dict[int, BatchResult] = {}

    def report(state: SearchState) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt
        line.show(f"effects: {len(done)} of {len(pieces)} parts done; {ranges_text(state)}")

    def answer(index: int) -> BatchResult:
        if stopped.is_set():
            return unsolved(pieces[index], StopReason.INTERRUPTED)
        if index and time.perf_counter() >= end:
            return unsolved(pieces[index], StopReason.TIME)
        try:
            with until(end):
                result = solved(pieces[index], report)
        except KeyboardInterrupt:  # between two searches
            result = unsolved(pieces[index], StopReason.INTERRUPTED)
        if result.reason is StopReason.INTERRUPTED:
            stopped.set()
        done[index] = result
        line.show(f"effects: {len(done)} of {len(pieces)} parts done")
        return result

    effective: Any = joblib.effective_n_jobs  # accepts None, although its annotation does not
    jobs = min(effective(effort.n_jobs), len(pieces))
    if jobs == 1:
        return [answer(index) for index in range(len(pieces))]
    check_alone(effort.n_jobs)
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(answer, index) for index in range(len(pieces))]
        try:
            for _ in as_completed(futures):
                pass
        except KeyboardInterrupt:
            stopped.set()
        return [future.result() for future in futures]


def _by_regions(
    question: RangeQuestion,
    model: Model,
    goals: Sequence[Goal],
    intervals: Intervals,
    effort: Effort,
    line: Line,
) -> list[BatchResult]:
    balls = list(_balls(intervals))
    options: dict[str, Any] = {**effort.options, "budget": effort.share(1, len(balls) or 1)}
    options |= {"tol": float(effort.tol.min()), "progress": False}
    quantity: dict[str, Any] = {"quantity": question.given, "beta": question.beta}

    def solved(ball: Ball, _: Callable[[SearchState], None]) -> BatchResult:
        ranges = prediction_ranges(model, ball, **quantity, **options)
        searched = ranges[-question.searched :]  # of two classes the second
        lower = [end for r in searched for end in (r.minimum.lower, -r.maximum.upper)]
        upper = [end for r in searched for end in (r.minimum.upper, -r.maximum.lower)]
        first, points = ranges[0], np.full((1, len(goals), 1), np.nan)
        both = np.array([lower]), np.array([upper])
        return BatchResult(*both, points, first.reason, first.boxes, first.seconds)

    def unsolved(_: Ball, reason: StopReason) -> BatchResult:
        return nothing_searched(goals, (1, 1), reason)

    return _all(balls, solved, unsolved, effort, line)


def _balls(intervals: Intervals) -> Iterator[Ball]:
    d = intervals.X.shape[1]
    low, high = intervals.domain or (np.full(d, -np.inf), np.full(d, np.inf))
    shape = (len(intervals.X), len(intervals.features))
    for x, radii in zip(intervals.X, np.broadcast_to(intervals.radius, shape), strict=True):
        for feature, radius in zip(intervals.features, radii, strict=True):
            for side in (1, -1):
                ends = (low.copy(), high.copy())
                ends[0 if side > 0 else 1][feature] = x[feature]
                yield Ball(x, float(radius), features=[int(feature)], domain=ends)
