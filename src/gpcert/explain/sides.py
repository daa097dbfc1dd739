"""Proved ranges over the one-sided intervals `[x, x + r e_j]` and `[x - r e_j, x]`.

For squared exponentials all intervals of all points share batches; any
other kernel or method is asked interval by interval through `gpcert.prediction_ranges`.

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
from gpcert.api.running import Line, ranges_text
from gpcert.enclosures.evaluation import SectionModel, has_sections
from gpcert.enclosures.goals import Goal, QuantityGoal
from gpcert.model.committee import Model
from gpcert.numerics.deadline import deadline, until
from gpcert.numerics.rounding import down, up
from gpcert.regions import Ball
from gpcert.search import Budget, Progress, SearchState, StopReason
from gpcert.search.branch_and_bound import FIRST_BOX_SECONDS, solve_batch
from gpcert.search.questions import (
    BatchProblem,
    BatchResult,
    FirstPoints,
    ManyBoxes,
    WithinTolerance,
    nothing_searched,
)
from gpcert.search.tolerance import Tolerance

NUMBERS_PER_BATCH = 800_000
"""Lines times points of one chunk, the work of one thread: fewer cost more calls per line."""

T = TypeVar("T")


@dataclass(frozen=True)
class Effort:
    """How hard to try."""

    tol: np.ndarray
    """Of every end, one per output."""
    means: SearchSettings
    n_jobs: int | None
    words: Mapping[str, Any]
    """How a search is done, for another verb."""
    start: float
    """The moment from which the time counts."""

    @staticmethod
    def read(words: Mapping[str, Any], tol: np.ndarray, start: float) -> Effort:
        """From the words of a verb."""
        found = search_options(words)
        return Effort(tol, SearchSettings.read(found), read_jobs(words["n_jobs"]), found, start)

    def again(self, tol: np.ndarray, boxes: int) -> Effort:
        """With another tolerance, and so many boxes less."""
        budget = self.means.budget
        left = None if budget.boxes is None else max(1, budget.boxes - boxes)
        means = replace(self.means, budget=replace(budget, boxes=left))
        return replace(self, tol=tol, means=means)

    @property
    def end(self) -> float:
        """When all must end: threads do not see the deadline of the one that starts them."""
        return min(self.means.budget.ends(self.start), deadline())

    def share(self, part: int, whole: int) -> Budget:
        """The boxes for so many of all questions; time is left to `end`."""
        boxes = self.means.budget.boxes
        own = None if boxes is None else max(1, boxes * part // whole)
        return replace(self.means.budget, seconds=None, boxes=own)


@dataclass(frozen=True, eq=False)
class Intervals:
    """Points X (P, d), the features (F,) that move by `radius`, (F,) or (P, F), inside a domain."""

    X: np.ndarray
    features: np.ndarray
    radius: np.ndarray
    domain: tuple[np.ndarray, np.ndarray] | None

    def lengths(self) -> tuple[np.ndarray, np.ndarray]:
        """(P, F, 2) each, upwards and downwards: outer and inner bounds of the real lengths.

        They are the radius itself but where the domain ends first: that difference is rounded.
        Where it rounds to the radius the real end may be nearer by one rounding of t, which the
        errors of scaled coordinates allow for: three are counted, of which t needs one.
        """
        free = np.broadcast_to(self.radius, (len(self.X), len(self.features)))
        outer = np.stack([free, free], axis=-1)
        inner = outer.copy()
        if self.domain is not None:
            x = self.X[:, self.features]
            for side, room in enumerate(
                (self.domain[1][self.features] - x, x - self.domain[0][self.features])
            ):
                cut = room < free
                more = np.where(room > 0, up(room, 1), 0.0)
                less = np.maximum(np.where(room > 0, down(room, 1), 0.0), 0.0)
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
        found = [nothing_searched(goals, (0, 1), StopReason.CONVERGED)]
    elif effort.means.method.name == "taylor" and has_sections(question.model):
        found = _by_sections(question, goals, intervals, effort, line)
    else:
        found = _by_regions(question, model, goals, intervals, effort, line)
    # goals come in pairs: each output, and its negative
    lower = np.reshape(np.concatenate([each.lower for each in found]), (*shape, 2))
    upper = np.reshape(np.concatenate([each.upper for each in found]), (*shape, 2))
    early = [each.reason for each in found if each.reason is not StopReason.CONVERGED]
    reason = next(iter(early), StopReason.CONVERGED)
    if StopReason.INTERRUPTED in early:
        reason = StopReason.INTERRUPTED
    boxes = sum(each.boxes for each in found)
    return Sides(lower[..., 0], upper[..., 0], -upper[..., 1], -lower[..., 1], reason, boxes)


def _by_sections(
    question: RangeQuestion, goals: Sequence[Goal], intervals: Intervals, effort: Effort, line: Line
) -> list[BatchResult]:
    variance = any(goal.needs_variance for goal in goals)
    parts = SectionModel.parts_of(question.model, effort.means.backend, variance)
    P, F = len(intervals.X), len(intervals.features)
    rows = np.repeat(np.arange(P), 2 * F)
    features = np.tile(np.repeat(intervals.features, 2), P)
    outer, inner = (np.reshape(part, (-1, 1)) for part in intervals.lengths())
    upward = np.tile([True, False], P * F)[:, None]
    ends = [np.where(upward, 0.0, -outer), np.where(upward, outer, 0.0)]
    ends += [np.where(upward, 0.0, -inner), np.where(upward, inner, 0.0)]
    stop = WithinTolerance(Tolerance(np.repeat(effort.tol, 2)))

    def solved(chunk: slice, report: Callable[[SearchState], None]) -> BatchResult:
        lines = (rows[chunk], features[chunk]), outer[chunk, 0]
        family = SectionModel.on(parts, intervals.X, *lines, effort.means.backend)
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
    """The answers to all pieces, in order; `unsolved` once time is up, or after Ctrl-C.

    In threads: the work is in products and long arrays, which let go of the interpreter. Ctrl-C is
    raised in the main thread only; a search in another one is told of it when it reports. The first
    piece is begun however late it is.
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
                found = solved(pieces[index], report)
        except KeyboardInterrupt:  # between two searches
            found = unsolved(pieces[index], StopReason.INTERRUPTED)
        if found.reason is StopReason.INTERRUPTED:
            stopped.set()
        done[index] = found
        line.show(f"effects: {len(done)} of {len(pieces)} parts done")
        return found

    effective: Any = joblib.effective_n_jobs  # takes None, whatever its annotation says
    jobs = min(effective(effort.n_jobs), len(pieces))
    if jobs == 1:
        return [answer(index) for index in range(len(pieces))]
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
    words: dict[str, Any] = {**effort.words, "budget": effort.share(1, len(balls) or 1)}
    words |= {"tol": float(effort.tol.min()), "progress": False}
    asked: dict[str, Any] = {"quantity": question.given, "beta": question.beta}

    def solved(ball: Ball, _: Callable[[SearchState], None]) -> BatchResult:
        ranges = prediction_ranges(model, ball, **asked, **words)
        own = ranges[-question.searched :]  # of two classes the second
        lower = [end for r in own for end in (r.minimum.lower, -r.maximum.upper)]
        upper = [end for r in own for end in (r.minimum.upper, -r.maximum.lower)]
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
    for x, own in zip(intervals.X, np.broadcast_to(intervals.radius, shape), strict=True):
        for feature, radius in zip(intervals.features, own, strict=True):
            for side in (1, -1):
                ends = (low.copy(), high.copy())
                ends[0 if side > 0 else 1][feature] = x[feature]
                yield Ball(x, float(radius), features=[int(feature)], domain=ends)
