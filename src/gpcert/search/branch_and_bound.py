"""The one search: best-first branch and bound over batches of boxes, for all goals of all questions
at once; one region is the case of one question.

Proofs: docs/mathematics.md, statements 14.1 and 14.2.
"""

from __future__ import annotations

import math
import threading
import time
from contextlib import suppress
from dataclasses import replace

import numpy as np

from gpcert.search.bounding import Bounding
from gpcert.search.checkpoints import JOURNAL, Kept
from gpcert.search.local_search import Descent
from gpcert.search.problem import (
    Budget,
    Clock,
    GoalResult,
    Problem,
    Progress,
    SearchResult,
    SearchState,
    StopReason,
    Tolerance,
    check_bounds,
)
from gpcert.search.questions import (
    BatchProblem,
    BatchResult,
    DecidedLevel,
    FirstPoints,
    OneRegion,
    WithinTolerance,
)
from gpcert.search.region_evaluator import RegionEvaluator, SliceEvaluator
from gpcert.search.state import Branch, State, Steps, first_shrink
from gpcert.search.workers import Shares, Workers
from gpcert.utils.processes import OutOfTime, effective_jobs, until

FIRST_BOX_SECONDS = 0.5
"""Time that the first box of a region gets even where the budget has less left."""

POLISH_GAIN = 0.1
"""A new best point is polished when it is better by this part of what is allowed."""

FINAL = {"CONVERGED", "DECIDED", "RESOLUTION"}
"""Why a search ends that a larger budget would not bring further."""

FIRST_LOOK = 64
"""Boxes of a question after which it is first looked at what rounding alone leaves; the number
doubles from look to look."""


def solve(problem: Problem) -> SearchResult:
    """Minimise the problem's goals; always returns proved bounds, whatever ended the search.

    Correctness: see `solve_batch`, of which this is the case of one question. A second Ctrl-C,
    while the result of the first is put together, is raised.
    """
    region, free = problem.region, problem.region.free
    jobs, workers = effective_jobs(problem.n_jobs), None
    if jobs > 1:
        workers = Workers(search_share, problem, problem.n_jobs, jobs)
    try:
        result = solve_batch(replace(_with_one_question(problem), workers=workers))
    finally:
        if workers is not None:
            workers.close()
    # before any value is known every point of the region is as good as the other
    points = np.where(np.isnan(result.points[0]), region.center[free], result.points[0])
    ends = result.lower[0].tolist(), result.upper[0].tolist(), OneRegion(region).full(points)
    goals = tuple(map(GoalResult, *ends))
    return SearchResult(goals, result.reason, result.boxes, result.seconds, result.leaves)


def _with_one_question(problem: Problem) -> BatchProblem:
    region, target = problem.region, problem.target
    question, free = OneRegion(region), region.free
    functions = [goal.function(problem.model) for goal in problem.goals]
    stop = WithinTolerance(Tolerance.of(problem.tol)) if target is None else DecidedLevel(target)
    whole = problem.model, region, problem.goals, problem.backend
    evaluator = RegionEvaluator(*whole)
    return BatchProblem(
        evaluator,
        problem.goals,
        question,
        stop,
        slices=SliceEvaluator.of(evaluator, *whole),
        first_points=FirstPoints(region.center[None, free], np.zeros(1, dtype=int)),
        local_search=Descent(question, functions),
        passes=(True,),
        steps=Steps.on(problem.backend),
        first_seconds=FIRST_BOX_SECONDS,
        record=problem.record,
        budget=problem.budget,
        progress=_of_one_question(problem.progress),
        random_state=problem.random_state,
        model=problem.model,
    )


LAST = threading.local()
"""In a worker: the last search's name and problem, so that its rounds share what is computed of
the model."""


def search_share(
    name: str, problem: Problem, share: State | None, budget: Budget, seconds: float
) -> State | None:
    """The share of the search of this name after some more `seconds`; without one, the worker gets
    ready."""
    if getattr(LAST, "name", None) != name:
        LAST.name, LAST.problem = name, _with_one_question(problem)
    if share is None:
        return None
    search = _Search(replace(LAST.problem, budget=budget), share)
    return search.continued(time.perf_counter() + seconds)


def _of_one_question(progress: Progress) -> Progress:
    """Reports with bounds (G,) instead of (1, G)."""
    report = progress.report
    if report is None:
        return progress

    def told(state: SearchState) -> None:
        report(replace(state, lower=state.lower[0], upper=state.upper[0]))

    return replace(progress, report=told)


def solve_batch(problem: BatchProblem) -> BatchResult:
    """Minimise every goal in every question; always returns proved bounds, whatever ended it.

    Correctness: `Frontier` keeps, for every question and goal, bounds over boxes that cover the
    region; boxes are only ever replaced by children that cover them (with bounds at least as good,
    as a parent's bound holds for its children) or closed with their bound remembered. So `lower`
    is a lower bound at every moment, and `upper` is the certified value at a point of the region,
    or what `Goal.known` says. The state is one record that is replaced as a whole: a deadline or an
    interrupt, between whichever two instructions, finds the old one or the new one. A batch that it
    ends is dropped: its parents are still there.
    """
    journal = JOURNAL.get()
    kept = None if journal is None or problem.model is None else journal.kept(problem.key)
    search = _Search(problem, kept=kept)
    if kept is not None and kept.ended in FINAL:
        return search.result(StopReason[kept.ended])
    try:
        reason = search.run()
    except OutOfTime:
        reason = StopReason.TIME
    except KeyboardInterrupt:
        reason = StopReason.INTERRUPTED
    if kept is not None:
        kept.put(search.state, search.clock.seconds, reason.name)
    return search.result(reason)


class _Search:
    """The driver: `work` holds the state and changes it, the problem's objects say how."""

    def __init__(
        self, problem: BatchProblem, share: State | None = None, kept: Kept | None = None
    ) -> None:
        self.problem, self.kept = problem, kept
        before = 0.0 if kept is None else kept.seconds
        self.clock = Clock(problem.budget, problem.progress.start, before)
        self.whole = share is None
        ends = problem.questions.low, problem.questions.high
        how = first_shrink(ends[0].shape[1]), problem.random_state, problem.record
        known = share if kept is None else kept.state
        self.begun = known is not None
        self.work = Bounding(problem, known or State.start(ends, problem.known, *how))

    @property
    def state(self) -> State:
        """All that is known."""
        return self.work.state

    def run(self) -> StopReason:
        """Bound the first box of every question, then split what is open until nothing is or the
        budget ends."""
        problem = self.problem
        first = max(self.clock.end, time.perf_counter() + problem.first_seconds)
        with until(first, exactly=True):
            if not self.begun:
                self.work.first_points()
                if problem.first_seconds > 0:
                    self._first_boxes(problem.passes[0])
        with until(self.clock.end):
            for optional in problem.passes[self.state.passed :]:
                while self.state.rest > 0:
                    reason = self._exhausted()
                    if reason is not None:
                        return reason
                    self._save()
                    self._first_boxes(optional)
                self._local_search()
                self._close(self._open(self._needed()))
                rest, passed = len(self.state.frontier.boxes), self.state.passed + 1
                look = self.state.boxes + FIRST_LOOK * rest
                self.work.state = replace(self.state, rest=rest, passed=passed, next_look=look)
            return self._branch()

    def _save(self) -> None:
        """Tell a checkpoint what is known, between two batches."""
        if self.kept is not None:
            self.kept.put(self.state, self.clock.seconds)

    def continued(self, end: float) -> State:
        """The state about `end`, between two batches; a deadline drops the one that it meets."""
        with suppress(OutOfTime), until(self.clock.end):
            self._branch(end)
        return self.state

    def _branch(self, end: float = math.inf) -> StopReason:
        """Split open boxes, the most urgent first, until about `end`."""
        while True:
            start = time.perf_counter()
            self._save()
            needed = self._needed(report=True)
            if self.problem.split and self.state.boxes >= self.state.next_look:
                self._look(needed)
            self._close(self._open(needed))
            if len(self.state.frontier.boxes) == 0:
                # boxes that could not be split, or that rounding keeps open, were closed as well
                short = np.any(self.state.frontier.bounds() < needed)
                return StopReason.RESOLUTION if short else self.problem.stop.reason
            reason = self._exhausted()
            if reason is not None or not self.problem.split:
                return reason or StopReason.BOXES
            workers = self.problem.workers
            if workers is not None and workers.ready(self.state, self.problem.budget):
                self._deal(workers, needed)
            else:
                self._split(needed)
            now = time.perf_counter()
            if now + 0.5 * (now - start) >= end:
                return StopReason.TIME

    def _deal(self, workers: Workers, needed: np.ndarray) -> None:
        """Let processes search shares of the most urgent boxes for a while."""
        boxes, budget = self.state.frontier.boxes, self.problem.budget
        index = Branch.most_urgent(boxes, self._open(needed), needed, workers.most).index
        shares = Shares(self.state, index, workers.count)
        for state in workers.round(shares, budget, self.clock):
            self.work.state = state
            self._needed(report=True)

    def result(self, reason: StopReason) -> BatchResult:
        """Bounds as they stand."""
        state = self.state
        lower, upper = state.frontier.bounds(), state.incumbents.values
        check_bounds(lower, upper)
        cost, leaves = (state.boxes, self.clock.seconds), state.frontier.leaves()
        return BatchResult(lower, upper, state.incumbents.points, reason, *cost, leaves)

    def _needed(self, report: bool = False) -> np.ndarray:
        """(Q, G): bounds of boxes that answer the questions."""
        state, told = self.state, self.problem.progress.report
        lower, upper = state.frontier.bounds(), state.incumbents.values
        if not self.whole:  # the best point may lie in another share
            lower = np.minimum(lower, upper)
        check_bounds(lower, upper)
        if report and told is not None:
            told(SearchState(lower, upper, state.boxes, self.clock.seconds))
        return self.problem.stop.needed(lower, upper)

    def _exhausted(self) -> StopReason | None:
        return self.clock.exhausted(self.state.boxes, self.state.frontier.bytes)

    def _open(self, needed: np.ndarray) -> np.ndarray:
        """(n, G): boxes that keep a question from being answered for a goal."""
        boxes, reached = self.state.frontier.boxes, self.state.resolution.reached
        return (boxes.lower < needed[boxes.question]) & ~reached[boxes.question]

    def _close(self, open_: np.ndarray) -> None:
        """Close the boxes that are not open for any goal, or that cannot be split."""
        keep, frontier = open_.any(axis=1), self.state.frontier
        if self.problem.split:
            keep &= frontier.boxes.splittable()
        self.work.state = replace(self.state, frontier=frontier.keeping(keep))

    def _first_boxes(self, optional: bool) -> None:
        """Bound the first boxes of one batch, of those that are left in front.

        A batch goes to the end of the frontier, so those that are left are in front.
        """
        rest = min(self.state.rest, len(self.state.frontier.boxes))
        index = np.arange(min(rest, self.problem.evaluator.batch_size))
        needed, boxes = self._needed(report=True), self.state.frontier.boxes.take(index)
        goals, every = list(range(len(self.problem.goals))), self.problem.local_search is not None
        if not every:  # bounds are wanted, not values as well
            goals = np.flatnonzero(self._open(needed)[index].any(axis=0)).tolist()
        self.work.bound(index, boxes, needed, goals, optional, every)
        self.work.state = replace(self.state, rest=rest - len(index))

    def _local_search(self) -> None:
        """From the best points known of questions that are open, and from random ones."""
        search, boxes = self.problem.local_search, self.state.frontier.boxes
        open_ = self._open(self._needed())
        if search is None or boxes.low.shape[1] == 0 or not open_.any():
            return
        generator = np.random.default_rng()
        generator.bit_generator.state = self.state.generator
        for g in np.flatnonzero(open_.any(axis=0)).tolist():
            extra = search.random_starts(g, generator)
            self.work.state = replace(self.state, generator=dict(generator.bit_generator.state))
            self.work.polish(g, np.unique(boxes.question[open_[:, g]]), extra)

    def _most_parents(self) -> int:
        """Parents per batch: bounded by work, memory, and the budget of boxes."""
        evaluator, budget, state = self.problem.evaluator, self.problem.budget, self.state
        size = evaluator.batch_size // 2
        if budget.memory is not None:
            left = budget.memory - state.frontier.bytes
            size = min(size, int(left / (2 * evaluator.bytes_per_box)))
        if budget.boxes is not None:
            size = min(size, (budget.boxes - state.boxes + 1) // 2)
        return max(1, size)

    def _split(self, needed: np.ndarray) -> None:
        """Split the most urgent boxes, bound their parts, and look for better points."""
        boxes, most = self.state.frontier.boxes, self._most_parents()
        branch = Branch.most_urgent(boxes, self._open(needed), needed, most)
        before, times = self.state.incumbents, np.ones(len(branch.boxes), dtype=int)
        if self.problem.budget.boxes is None:  # more of that budget never proves less
            steps = self.problem.steps
            times = branch.times(before, needed, self.state.shrink, 2 * most, steps)
        parts, origin = branch.parts(times, self.problem.questions.halves)
        goals = np.flatnonzero(branch.open.any(axis=0)).tolist()
        inside = self.work.bound(branch.index, parts, needed, goals)
        boxes = self.state.frontier.boxes
        children = boxes.take(np.arange(len(boxes) - len(inside), len(boxes)))
        shrink = branch.shrink(times, children, origin[inside], self.state.incumbents)
        if shrink is not None:
            self.work.state = replace(self.state, shrink=shrink)
        with np.errstate(invalid="ignore"):
            step = POLISH_GAIN * np.nan_to_num(before.values - needed, nan=0.0)
            gain = before.values - self.state.incumbents.values
        for g in goals:
            self.work.polish(g, np.flatnonzero(gain[:, g] > step[:, g]))

    def _look(self, needed: np.ndarray) -> None:
        """Find out which goals of which questions rounding alone keeps open."""
        state, open_ = self.state, self._open(needed)
        lower, upper = state.frontier.bounds(), state.incumbents.values
        small, point = self.work.floors(state.frontier, open_)
        resolution = state.resolution.looked(lower, upper, small, point, small < needed)
        asked = len(np.unique(state.frontier.boxes.question[open_.any(axis=1)]))
        later = state.boxes + min(state.boxes, FIRST_LOOK * 2**state.looks * asked)
        self.work.state = replace(
            state, resolution=resolution, looks=state.looks + 1, next_look=later
        )
