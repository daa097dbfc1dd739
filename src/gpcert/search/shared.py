"""One search for many questions: the boxes of all of them share batches.

A question is a box of its own; what is bounded together is decided by the `Family` alone, so a
thousand small questions cost a few large batches instead of a thousand searches.

Proofs: docs/mathematics.md, statement 14.1.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from gpcert.errors import SoundnessError
from gpcert.numerics.arrays import to_numpy
from gpcert.numerics.deadline import OutOfTime, until
from gpcert.search.branch_and_bound import FIRST_BOX_SECONDS
from gpcert.search.problem import SearchState, StopReason, bound_of, check_bounds
from gpcert.search.questions import (
    Attained,
    Attaining,
    Boxes,
    SharedProblem,
    SharedResult,
    least_of_each,
)
from gpcert.search.tolerance import Resolution, Tolerance

FIRST_LOOK, NEXT_LOOK = 4, 1.5
"""Times that all open boxes have been halved when it is first looked at what rounding alone leaves,
and how much later than the last the next look is."""


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


class Cover(NamedTuple):
    """The open boxes, and per question and goal the least bound of those set aside (Q, G)."""

    open: Boxes
    settled: np.ndarray


class _Shared(Attaining):
    """State of one search: `cover` is replaced whole, as `attained` is."""

    def __init__(self, problem: SharedProblem) -> None:
        super().__init__(problem)
        start = Boxes(np.arange(len(problem.low)), problem.low, problem.high, self.known.lower)
        self.cover = Cover(start, np.full_like(self.known.lower, np.inf))
        self.tolerance = Tolerance.of(problem.tol)
        self.resolution = Resolution(self.upper.shape)

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
            rounds, next_look = 0, float(FIRST_LOOK)
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
                rounds += 1
                if rounds >= next_look:
                    next_look *= NEXT_LOOK
                    self._look()
                    self._set_aside(np.any(self._needed(self.open), axis=1))
        # boxes that could not be split, or that rounding keeps open, were set aside as they were
        short = np.any(self._bounds() < self.tolerance.needed(self.upper))
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
        report = self.problem.progress.report
        if report is not None:
            report(SearchState(self._bounds(), self.upper, self.boxes, self.clock.seconds))

    def _needed(self, boxes: Boxes) -> np.ndarray:
        """(n, G): boxes that keep a question from being answered."""
        needed = self.tolerance.needed(self.upper)[boxes.question]
        return (boxes.lower < needed) & ~self.resolution.reached[boxes.question]

    def _look(self) -> None:
        """Find out which goals of which questions rounding alone keeps open."""
        problem, boxes, lower = self.problem, self.open, self._bounds()
        needed, floors = self._needed(boxes), np.full((2, *lower.shape), np.inf)
        for g, goal in enumerate(problem.goals):
            mine = np.flatnonzero(needed[:, g])
            worst = boxes.take(mine[least_of_each(boxes.question[mine], boxes.lower[mine, g])])
            # about the point of the least value known, and about the middle of the worst box
            points = np.concatenate([self.attained.points[worst.question, g], worst.middle])
            question, widths = np.tile(worst.question, 2), np.tile(worst.high - worst.low, (2, 1))
            inside = np.flatnonzero(self.inside(question, points))
            for batch in self.batches(len(inside)):
                q, own = question[inside[batch]], inside[batch]
                ends = problem.low[q], problem.high[q]
                corners = self.resolution.around(points[own], widths[own], *ends)
                evaluation = problem.family.evaluation(np.tile(q, 2), *corners)
                found = to_numpy(bound_of(goal, evaluation, problem.target).lower)
                for floor, part in zip(floors, np.reshape(found, (2, -1)), strict=True):
                    np.minimum.at(floor[:, g], q, part)
        open_ = floors[0] < self.tolerance.needed(self.upper)
        self.resolution.look(lower, self.upper, floors[0], floors[1], open_)

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
        unanswered = self._bounds() < self.tolerance.needed(self.upper)
        chosen = []
        for g in np.flatnonzero(unanswered.any(axis=0)):
            mine = np.flatnonzero(unanswered[question, g] & np.isfinite(lower[:, g]))
            first = mine[least_of_each(question[mine], lower[mine, g])]
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
