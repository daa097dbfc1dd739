"""One search for many questions: the boxes of all of them share batches.

A question is a box of its own; every open box carries the number of its question. What is bounded
together is decided by the `Family` alone, so a thousand small questions cost a few large batches
instead of a thousand searches.

Proofs: docs/mathematics.md, statement 14.1.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple, Protocol

import numpy as np

from gpcert.arrays import Index, PerCell, PerCellAndFeature, PerRow, Rows, to_numpy
from gpcert.deadline import OutOfTime, checkpoint, until
from gpcert.enclosures import Evaluation, Portfolio
from gpcert.enclosures.goals import Goal
from gpcert.errors import InputError, SoundnessError
from gpcert.regions.base import NormConstraint
from gpcert.search.branch_and_bound import FIRST_BOX_SECONDS
from gpcert.search.problem import (
    Budget,
    Clock,
    SearchState,
    StopReason,
    Watch,
    bound_of,
    check_bounds,
)


class Family(Protocol):
    """Where the questions live: how boxes of any of them are enclosed in one batch."""

    def evaluation(
        self,
        question: PerCell,
        low: PerCellAndFeature,
        high: PerCellAndFeature | None,
        optional: bool = True,
        learnt: Portfolio | None = None,
    ) -> Evaluation:
        """Enclosures over boxes [low, high] (B, f), or at the points `low` where `high` is None,
        each of its question (B,); `learnt` says which optional bounds have paid."""
        ...

    @property
    def cells_at_once(self) -> int:
        """Boxes of one batch."""
        ...


@dataclass(frozen=True, eq=False)
class SharedProblem:
    """Minimise every goal over every box `[low, high]` (Q, f) to within `tol` (G,).

    `low`, `high` are outer ends; every float point between the inner ones lies in the real box.
    `anchors` (Q,), if any, are numbers of groups whose questions all contain the same real point,
    which lies at `anchor` (f,) in the coordinates of each: it is evaluated once per group.
    `balls`, if any, are norm constraints of the questions, alike but for their centres (Q, f).
    """

    family: Family
    goals: Sequence[Goal]
    low: np.ndarray
    high: np.ndarray
    inner_low: np.ndarray
    inner_high: np.ndarray
    tol: np.ndarray
    anchors: np.ndarray | None = None
    anchor: np.ndarray | None = None
    balls: NormConstraint | None = None
    target: float | None = None
    """What a bound had better exceed; it steers the enclosures only."""
    budget: Budget = field(default_factory=Budget)
    watch: Watch = field(default_factory=Watch)

    def __post_init__(self) -> None:
        if not np.all(np.isfinite(self.tol) & (self.tol >= 0)):
            raise InputError(f"tol: expected a number >= 0, got {self.tol!r}")


@dataclass(frozen=True, eq=False)
class SharedResult:
    """Proved `lower <= min goal <= upper`, (Q, G) each; `upper` is attained at `points` (Q, G, f),
    NaN where the search ended before any value was known (then upper holds everywhere)."""

    lower: np.ndarray
    upper: np.ndarray
    points: np.ndarray
    reason: StopReason
    boxes: int
    seconds: float


def solve_shared(problem: SharedProblem) -> SharedResult:
    """Always returns proved bounds, whatever ended the search.

    Correctness: as in `branch_and_bound.solve`, for every question by itself: its open boxes and
    those set aside cover it, children cover their parents and inherit their bounds, and a step is
    taken as a whole or not at all: a deadline or an interrupt, between whichever two instructions,
    finds bounds that hold. `upper` is a certified value at a point of the question's box, or what
    `Goal.known` says.
    """
    search = _Shared(problem)
    try:
        reason = search.run()
    except OutOfTime:
        reason = StopReason.TIME
    except KeyboardInterrupt:
        reason = StopReason.INTERRUPTED
    return search.result(reason)


def nothing_searched(
    goals: Sequence[Goal], shape: tuple[int, int], reason: StopReason
) -> SharedResult:
    """What is known of (Q, f) questions before any search: the goals' `known` bounds."""
    Q, f = shape
    low, high = np.array([goal.known for goal in goals], dtype=float).T
    lower, upper = np.tile(low, (Q, 1)), np.tile(high, (Q, 1))
    return SharedResult(lower, upper, np.full((Q, len(goals), f), np.nan), reason, 0, 0.0)


class Boxes(NamedTuple):
    """Open boxes: their questions (n,), corners (n, f) and bounds (n, G)."""

    question: np.ndarray
    low: np.ndarray
    high: np.ndarray
    lower: np.ndarray

    @property
    def middle(self) -> Rows:
        """(n, f) about the centres."""
        return 0.5 * self.low + 0.5 * self.high

    def take(self, index: Index) -> Boxes:
        """Some of them."""
        return Boxes(*(part[index] for part in self))

    def halves(self) -> Boxes:
        """Each box cut in the middle of its widest axis that has one; both parts share the cut."""
        rows = np.arange(len(self.question))
        axis = np.argmax(np.where(self._inside, self.high - self.low, 0.0), axis=1)
        middle = np.clip(self.middle, self.low, self.high)[rows, axis]
        first, second = self.high.copy(), self.low.copy()
        first[rows, axis] = second[rows, axis] = middle
        parts = zip(self._replace(high=first), self._replace(low=second), strict=True)
        return Boxes(*map(np.concatenate, parts))

    def splittable(self) -> PerRow:
        """(n,) whether some axis has a float strictly inside."""
        return np.any(self._inside, axis=1)

    @property
    def _inside(self) -> np.ndarray:
        """(n, f) which axes have one."""
        return (self.middle > self.low) & (self.middle < self.high)


class Cover(NamedTuple):
    """The open boxes, and per question and goal the least bound of those set aside (Q, G)."""

    open: Boxes
    settled: np.ndarray


class Attained(NamedTuple):
    """The least values known (Q, G), and where they are attained (Q, G, f)."""

    upper: np.ndarray
    points: np.ndarray


class Attaining:
    """What every search of many questions does: bounds boxes in batches, and keeps the least values
    that are attained in each question; `attained` is replaced whole, as in `Frontier`."""

    def __init__(self, problem: SharedProblem) -> None:
        self.problem = problem
        self.clock = Clock(problem.budget, problem.watch.start)
        self.known = nothing_searched(problem.goals, problem.low.shape, StopReason.TIME)
        self.attained = Attained(self.known.upper, self.known.points)
        self.boxes = 0
        self.portfolio = Portfolio()

    @property
    def upper(self) -> Annotated[np.ndarray, "n G"]:
        """(Q, G) the least values known."""
        return self.attained.upper

    def batches(self, count: int) -> list[Annotated[np.ndarray, "_"]]:
        """Numbers up to `count`, as many at a time as fit a batch."""
        size = self.problem.family.cells_at_once
        return [np.arange(k, min(k + size, count)) for k in range(0, count, size)]

    def bounded(
        self, boxes: Boxes, goals: Sequence[int], optional: bool
    ) -> tuple[Annotated[np.ndarray, "n G"], Annotated[np.ndarray, "n G f"]]:
        """Of one batch: bounds (n, G), no worse than those that the boxes have, and where each of
        the goals may be small (n, G, f); values at the centres are kept."""
        problem, lower = self.problem, boxes.lower.copy()
        where = np.repeat(boxes.middle[:, None], lower.shape[1], axis=1)
        evaluation = problem.family.evaluation(
            boxes.question, boxes.low, boxes.high, optional, self.portfolio
        )
        center = to_numpy(evaluation.cells.center)
        for g in goals:
            bound = bound_of(problem.goals[g], evaluation, problem.target)
            lower[:, g] = np.maximum(lower[:, g], to_numpy(bound.lower))
            where[:, g] = center + to_numpy(bound.point)
            self._take(g, boxes.question, to_numpy(problem.goals[g].ceiling(evaluation)), center)
        self.portfolio = evaluation.portfolio
        return lower, where

    def offer(self, question: Index, points: Rows, goals: Sequence[int]) -> None:
        """Evaluate goals at points (n, f), drawn into their questions."""
        problem = self.problem
        points = np.clip(points, problem.inner_low[question], problem.inner_high[question])
        balls = self.balls(question)
        if balls is not None:
            points = balls.drawn_in(points)
        for batch in self.batches(len(question)):
            if self.boxes and self.clock.exhausted(self.boxes, 0.0) is not None:
                return
            q, x = question[batch], points[batch]
            evaluation = problem.family.evaluation(q, x, None, optional=False)
            for g in goals:
                checkpoint()
                self._take(g, q, to_numpy(problem.goals[g].ceiling(evaluation)), x)

    def balls(self, question: Index) -> NormConstraint | None:
        """Those of some questions."""
        balls = self.problem.balls
        return None if balls is None else balls._replace(center=balls.center[question])

    def _take(self, g: int, question: np.ndarray, values: np.ndarray, points: np.ndarray) -> None:
        """Keep the smallest certified value of every question among points of its own."""
        low, high = self.problem.inner_low[question], self.problem.inner_high[question]
        inside, balls = np.all((points >= low) & (points <= high), axis=1), self.balls(question)
        if balls is not None:
            inside &= balls.holds(points)
        values = np.where(inside, values, np.inf)
        best = _least_of_each(question, values)
        better = best[values[best] < self.upper[question[best], g]]
        upper, where = (part.copy() for part in self.attained)
        upper[question[better], g] = values[better]
        where[question[better], g] = points[better]
        self.attained = Attained(upper, where)


def _least_of_each(question: np.ndarray, values: np.ndarray) -> np.ndarray:
    """For every question (n,) that occurs, the place of its least value."""
    order = np.lexsort((values, question))
    return order[np.unique(question[order], return_index=True)[1]]


class _Shared(Attaining):
    """State of one search: `cover` is replaced whole, as `attained` is."""

    def __init__(self, problem: SharedProblem) -> None:
        super().__init__(problem)
        start = Boxes(np.arange(len(problem.low)), problem.low, problem.high, self.known.lower)
        self.cover = Cover(start, np.full_like(self.known.lower, np.inf))

    @property
    def open(self) -> Boxes:
        return self.cover.open

    def run(self) -> StopReason:
        """Bound all questions, then split what is open until nothing is or the budget ends.

        Most questions of a large family are easy: the bounds that may not pay are first left out.
        The common points get some time even where the budget has less left.
        """
        first = max(self.clock.end, time.perf_counter() + FIRST_BOX_SECONDS)
        with until(first, exactly=True):
            self._offer_anchors()
        with until(self.clock.end):
            for optional in (False, True):
                self._bound(self.open, optional)
                self._set_aside(np.any(self._needed(self.open), axis=1))
            while len(self.open.question):
                memory = self.open.low.nbytes + self.open.high.nbytes
                reason = self.clock.exhausted(self.boxes, memory)
                if reason is not None:
                    return reason
                self._set_aside(self.open.splittable())
                if len(self.open.question) == 0:
                    return StopReason.RESOLUTION
                self._bound(self.open.halves())
                self._set_aside(np.any(self._needed(self.open), axis=1))
        # boxes that could not be split were set aside as they were
        short = np.any(self._bounds() < self.upper - self.problem.tol)
        return StopReason.RESOLUTION if short else StopReason.CONVERGED

    def result(self, reason: StopReason) -> SharedResult:
        """Bounds as they stand."""
        lower, attained = self._bounds(), self.attained
        check_bounds(lower, attained.upper)
        return SharedResult(lower, *attained, reason, self.boxes, self.clock.seconds)

    def _bounds(self) -> np.ndarray:
        cover = self.cover
        lower = cover.settled.copy()
        np.minimum.at(lower, cover.open.question, cover.open.lower)
        return lower

    def _report(self) -> None:
        report = self.problem.watch.report
        if report is not None:
            report(SearchState(self._bounds(), self.upper, self.boxes, self.clock.seconds))

    def _needed(self, boxes: Boxes) -> np.ndarray:
        """(n, G): boxes that keep a question from being answered."""
        return boxes.lower < self.upper[boxes.question] - self.problem.tol

    def _set_aside(self, keep: np.ndarray) -> None:
        boxes, settled = self.open, self.cover.settled.copy()
        rest = boxes.take(np.flatnonzero(~keep))
        np.minimum.at(settled, rest.question, rest.lower)
        self.cover = Cover(boxes.take(np.flatnonzero(keep)), settled)

    def _bound(self, boxes: Boxes, optional: bool = True) -> None:
        """Bound boxes that cover the open ones and put them in their place; then evaluate the goals
        where they may be small.

        Boxes and goals that the budget leaves out keep what they inherited.
        """
        n, late = len(boxes.question), False
        lower = boxes.lower.copy()
        where = np.repeat(boxes.middle[:, None], lower.shape[1], axis=1)
        for batch in self.batches(n):
            if self.boxes and self.clock.exhausted(self.boxes, 0.0) is not None:
                break
            self._report()
            try:
                part = boxes.take(batch)
                goals = np.flatnonzero(self._needed(part).any(axis=0)).tolist()
                lower[batch], where[batch] = self.bounded(part, goals, optional)
            except OutOfTime:
                late = True
                break
            self.boxes += len(batch)
        bounded = boxes._replace(lower=lower)
        self.cover = Cover(bounded, self.cover.settled)
        if late:  # what was bounded in time is kept
            raise OutOfTime("the deadline has passed")
        self._offer_candidates(bounded, where)

    def _offer_candidates(self, boxes: Boxes, where: np.ndarray) -> None:
        """Values at the likeliest place of every goal that is still open, one per question."""
        question, lower = boxes.question, boxes.lower
        unanswered = self._bounds() < self.upper - self.problem.tol
        chosen = []
        for g in np.flatnonzero(unanswered.any(axis=0)):
            mine = np.flatnonzero(unanswered[question, g] & np.isfinite(lower[:, g]))
            first = mine[_least_of_each(question[mine], lower[mine, g])]
            chosen.append((question[first], where[first, g]))
        if chosen:
            at, points = map(np.concatenate, zip(*chosen, strict=True))
            self.offer(at, points, range(len(self.problem.goals)))

    def _offer_anchors(self) -> None:
        """The common points, each by one of its questions."""
        problem = self.problem
        if problem.anchors is None or problem.anchor is None:
            return
        _, first, group = np.unique(problem.anchors, return_index=True, return_inverse=True)
        at = np.tile(problem.anchor, (len(first), 1))
        if np.any((at < problem.inner_low[first]) | (at > problem.inner_high[first])):
            raise SoundnessError("anchor: expected a point of its questions; please report this")
        self.offer(first, at, range(len(problem.goals)))
        self.attained = Attained(*(part[first][group] for part in self.attained))
