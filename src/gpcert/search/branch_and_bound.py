"""The one search: best-first branch and bound over batches of boxes, for all goals at once.

Proofs: docs/mathematics.md, statements 14.1 and 14.2.
"""

from __future__ import annotations

import math
import time

import numpy as np

from gpcert.enclosures import Evaluation, LocalModel, Portfolio, local_model
from gpcert.numerics.arrays import Backend, to_numpy
from gpcert.numerics.compilation import running_on
from gpcert.numerics.deadline import OutOfTime, until
from gpcert.regions import Cells
from gpcert.search.batches import batch_size, bytes_per_cell
from gpcert.search.frontier import HALVINGS, Boxes, Frontier, Incumbents, split_order
from gpcert.search.problem import (
    Clock,
    GoalResult,
    Problem,
    SearchResult,
    SearchState,
    StopReason,
    bound_of,
    check_bounds,
)
from gpcert.search.tolerance import Resolution, Tolerance

FIRST_BOX_SECONDS = 0.5
"""Time that the first box gets even where the budget has less left."""

HOST_SHARE = 0.5
"""Of a CPU's batch: what a search has before it moves to a GPU."""

RANDOM_STARTS = 2
"""Random starting points of the local search at the root, beside the bound's own minimiser."""

HOPELESS = 6.0
"""Halves are halved at once where their gaps are expected to exceed so many times what is allowed:
bounding them first would only add boxes."""

SMALL_BATCH = 256
"""That is done up to so many boxes at a time: of more, the bounds in between are worth knowing."""

STEEPEST = 6.0
"""Before anything is known, gaps are expected to fall like this power of the width."""

SLOWEST = 0.99
"""Gaps are expected to fall by a hundredth at least."""

POLISH_GAIN = 0.1
"""A new best point is polished when it is better by this part of the tolerance."""

FIRST_LOOK = 64
"""Boxes after which it is first looked at what rounding alone leaves, and then whenever there are
twice as many."""


def solve(problem: Problem) -> SearchResult:
    """Minimise the problem's goals; always returns proved bounds, whatever ended the search.

    Correctness: `Frontier` keeps, for every goal, bounds over boxes that cover the region; boxes
    are only ever replaced by children that cover them (with bounds at least as good, as a parent's
    bound holds for its children) or set aside with their bound remembered. So the result's `lower`
    is a lower bound at every moment, and `upper` is the certified value at a point of the region.
    A batch that the deadline or an interrupt ends is dropped: its parents are still there. Before
    the first box only what `Goal.known` says is known.

    A second Ctrl-C, while the result of the first is put together, is raised.
    """
    search = _Search(problem)
    try:
        reason = search.run()
    except OutOfTime:
        reason = StopReason.TIME
    except KeyboardInterrupt:
        reason = StopReason.INTERRUPTED
    return search.result(reason)


class _Search:
    """State of one search; `run` drives it."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.clock = Clock(problem.budget, problem.progress.start)
        self.boxes = 0
        known = np.array([goal.known[0] for goal in problem.goals], dtype=float)
        self.frontier = Frontier.whole(problem.region, known)
        self.incumbents = Incumbents(problem)
        self.rng = np.random.default_rng(problem.random_state)
        self.portfolio = Portfolio()
        self.shrink = 0.5 ** (STEEPEST / max(1, len(problem.region.free)))
        """By how much halving a box lessened its gap when last seen; only guides the search."""
        self.backend = Backend() if problem.backend.gpu else problem.backend
        """Where batches are bounded now: see `_move`."""
        self.tolerance = Tolerance.of(problem.tol)
        self.resolution, self.next_look = Resolution(known.shape), FIRST_LOOK

    def run(self) -> StopReason:
        """Evaluate the root, then split what is open until nothing is or the budget ends."""
        first = max(self.clock.end, time.perf_counter() + FIRST_BOX_SECONDS)
        with until(first, exactly=True):
            self._root()
        with until(self.clock.end):
            self._local_search()
            while True:
                self._report()
                reason = self._finished() or self.clock.exhausted(self.boxes, self.frontier.bytes)
                if reason is not None:
                    return reason
                self._look()
                index = self._select()
                if len(index) == 0:
                    return StopReason.RESOLUTION
                self._move()
                self._split(index)
                self._check()

    def result(self, reason: StopReason) -> SearchResult:
        """Bounds as they stand."""
        self._check()
        lower = self.frontier.bounds()
        ends = (lower.tolist(), self.incumbents.values.tolist(), self.incumbents.points)
        goals = tuple(map(GoalResult, *ends))
        return SearchResult(goals, reason, self.boxes, self.clock.seconds)

    def _report(self) -> None:
        report = self.problem.progress.report
        if report is not None:
            lower, upper = self.frontier.bounds(), self.incumbents.values
            report(SearchState(lower, upper, self.boxes, self.clock.seconds))

    def _root(self) -> None:
        """Bind the model to the region and bound the region as one box."""
        problem = self.problem
        self.local = self._local_model()
        self.incumbents.bind(self.local, self.backend)
        active = list(range(len(problem.goals)))
        # the centre first: an interrupt from here on finds at least one attained value
        self.incumbents.offer_points(problem.region.center[None], active)
        root = np.arange(len(self.frontier))
        cells = self.frontier.cells(root, self.backend)
        _, _, lower, axes = self.frontier.boxes
        with running_on(self.backend):
            children, points, _ = self._evaluate(cells, lower, axes, active)
        self.frontier = self.frontier.replacing(root, children)
        self.starts = problem.region.project(points)
        self.incumbents.offer_points(self.starts, active)

    def _local_model(self) -> LocalModel:
        problem = self.problem
        variance = any(goal.needs_variance for goal in problem.goals)
        return local_model(problem.model, problem.region, self.backend, variance)

    def _move(self) -> None:
        """To the GPU, once a batch of a CPU is open or done: its thousands of launches take a
        quarter of a second whatever they compute. Single points stay where they are."""
        if self.backend == self.problem.backend:
            return
        if max(self.boxes, len(self.frontier)) >= HOST_SHARE * self._most():
            self.backend = self.problem.backend
            self.local = self._local_model()

    def _most(self) -> int:
        """Boxes of one batch."""
        problem = self.problem
        return batch_size(problem.model, len(problem.region.free), problem.goals, self.backend)

    def _local_search(self) -> None:
        """Descend from where the root's bounds are attained, and from random points."""
        region, starts = self.problem.region, self.starts
        if self._finished() is not None or len(region.free) == 0:
            return
        extra = region.sample(RANDOM_STARTS, self.rng)
        for g in self._active():
            own = starts[[g]] if len(starts) > g else starts[:1]
            self.incumbents.polish(g, np.concatenate([own, extra]))

    def _open(self) -> np.ndarray:
        """(n, G): boxes that keep a goal from being finished."""
        left = self.problem.open(self.frontier.boxes.lower, self.incumbents.values)
        return left & ~self.resolution.reached

    def _active(self) -> list[int]:
        return [int(g) for g in np.flatnonzero(self._open().any(axis=0))]

    def _finished(self) -> StopReason | None:
        bounds, values, target = self.frontier.bounds(), self.incumbents.values, self.problem.target
        if target is not None:
            decided = np.any(values < target) or np.all(bounds > target)
            return StopReason.DECIDED if decided else None
        return None if np.any(self.problem.open(bounds, values)) else StopReason.CONVERGED

    def _look(self) -> None:
        """Find out which goals are kept open by rounding alone: their boxes are set aside."""
        if self.boxes < self.next_look:
            return
        self.next_look = 2 * self.boxes
        problem, active, values = self.problem, self._active(), self.incumbents.values
        region, boxes = problem.region, self.frontier.boxes
        worst = np.argmin(boxes.lower[:, active], axis=0)
        low, high = boxes.low[worst], boxes.high[worst]
        # about the point of the least value known, and about the middle of the worst box
        points = np.tile(self.incumbents.points[active], (2, 1))
        points[len(active) :, region.free] = 0.5 * low + 0.5 * high
        inside = np.asarray(region.contains(points))
        if not inside.any():
            return
        ends = region.lower[region.free], region.upper[region.free]
        widths = np.tile(high - low, (2, 1))[inside]
        corners = self.resolution.around(points[inside][:, region.free], widths, *ends)
        evaluation = Evaluation(self.local, Cells(region, *map(self.backend.asarray, corners)))
        floors = np.full((2, len(values)), np.inf)  # of small boxes and of points
        for g in active:
            found = to_numpy(bound_of(problem.goals[g], evaluation, problem.target).lower)
            floors[:, g] = np.reshape(found, (2, -1)).min(axis=1)
        open_ = problem.open(floors[0], values)
        self.resolution.look(self.frontier.bounds(), values, floors[0], floors[1], open_)

    def _select(self) -> np.ndarray:
        """The open boxes that matter most, as many as fit a batch."""
        self.frontier = self.frontier.keeping(np.asarray(self._open().any(axis=1)))
        splittable = np.flatnonzero(self.frontier.splittable())
        if len(splittable) == 0:
            return splittable
        urgency = self._urgency()[splittable].max(axis=1)
        order = np.argsort(-urgency, kind="stable")
        return splittable[order[: self._batch_size()]]

    def _urgency(self) -> np.ndarray:
        """(n, G): how far a box lies below what would settle it; -inf where it is settled."""
        target = self.problem.target
        gap = (self.incumbents.values if target is None else target) - self.frontier.boxes.lower
        gap = np.where(np.isnan(gap), np.inf, gap)
        return np.where(self._open(), gap, -np.inf)

    def _batch_size(self) -> int:
        """Parents per batch: bounded by work, memory, and the budget of boxes."""
        problem = self.problem
        size, budget = self._most() // 2, problem.budget
        if budget.memory is not None:
            each = bytes_per_cell(problem.model, len(problem.region.free))
            size = min(size, int((budget.memory - self.frontier.bytes) / (2 * each)))
        if budget.boxes is not None:
            size = min(size, (budget.boxes - self.boxes + 1) // 2)
        return max(1, size)

    def _split(self, index: np.ndarray) -> None:
        boxes, active = self.frontier.boxes, self._active()
        worst = np.argmax(self._urgency()[index], axis=1)
        levels = self._levels(index, worst)
        cells, parents = self._parts(index, boxes.axes[index, worst], levels)
        before, step = self.incumbents.values.copy(), POLISH_GAIN * self._allowed()
        lower, axes = boxes.lower[index][parents], boxes.axes[index][parents]
        with running_on(self.backend):
            children, points, kept = self._evaluate(cells, lower, axes, active)
        self._learn(boxes.lower[index, worst], worst, levels, children, parents[kept])
        self.frontier = self.frontier.replacing(index, children)
        if len(points):
            self.incumbents.offer_points(self.problem.region.project(points), active)
        for g in active:
            gain = before[g] - self.incumbents.values[g]
            if gain > step[g]:
                self.incumbents.polish(g, self.incumbents.points[[g]])

    def _levels(self, index: np.ndarray, worst: np.ndarray) -> np.ndarray:
        """How often to halve each of the boxes.

        Once more where the halves would be expected to stay open by far; any number is valid. A
        budget of boxes is spent one halving at a time, so that more of it never proves less.
        """
        if self.problem.budget.boxes is not None:
            return np.ones(len(index), dtype=int)
        value, target = self.incumbents.values, self.problem.target
        allowed = self._allowed() if target is None else value - target
        gaps = value[worst] - self.frontier.boxes.lower[index, worst]
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.log(gaps / (HOPELESS * allowed[worst])) / -math.log(self.shrink)
        more = np.clip(np.nan_to_num(np.ceil(room) - 1.0, nan=0.0), 0, HALVINGS - 1)
        most = max(2, min(2 * self._batch_size(), SMALL_BATCH) // len(index))
        return np.minimum(1 + more.astype(int), most.bit_length() - 1)

    def _allowed(self) -> np.ndarray:
        """(G,) how wide the goals' gaps may be."""
        values = self.incumbents.values
        with np.errstate(invalid="ignore"):  # while no value is known
            return np.nan_to_num(values - self.tolerance.needed(values), nan=0.0)

    def _parts(
        self, index: np.ndarray, axes: np.ndarray, levels: np.ndarray
    ) -> tuple[Cells, np.ndarray]:
        """Boxes that cover the given ones, and whose part each is: halves along the first axis,
        their halves along the second, as often as the levels say; along the widest axis that can
        be split where the wished one is too thin."""
        cells, parents = self.frontier.cells(index, Backend()), np.arange(len(index))
        for step in range(int(levels.max())):
            again = levels[parents] > step
            some, axis = cells.take(again), axes[parents[again], step]
            inside = (some.middle > some.lower) & (some.middle < some.upper)
            widest = np.argmax(np.where(inside, some.widths, 0.0), axis=1)
            halves = some.split(np.where(to_numpy(some.can_split(axis)), axis, widest))
            parents = np.concatenate([parents[~again], parents[again], parents[again]])
            cells = Cells.concatenate([cells.take(~again), halves])
        place = self.backend.asarray
        return Cells(cells.region, place(cells.lower), place(cells.upper)), parents

    def _learn(
        self,
        lower: np.ndarray,
        worst: np.ndarray,
        levels: np.ndarray,
        children: Boxes,
        parents: np.ndarray,
    ) -> None:
        """From the bounds of boxes and of their parts, how fast gaps fall."""
        value = self.incumbents.values[worst[parents]]
        old = value - lower[parents]
        new = value - children.lower[np.arange(len(parents)), worst[parents]]
        known = np.isfinite(old) & (old > 0)
        if known.any():
            ratio = np.maximum(new[known] / old[known], 1e-3) ** (1.0 / levels[parents[known]])
            self.shrink = min(float(np.median(ratio)), SLOWEST)

    def _evaluate(
        self, cells: Cells, inherited: np.ndarray, axes: np.ndarray, active: list[int]
    ) -> tuple[Boxes, np.ndarray, np.ndarray]:
        """Bounds of a batch, no worse than the inherited ones, promising points (full), and the
        numbers of its cells that are not outside the region."""
        count = len(cells)
        cells, keep = cells.feasible()  # the others are proved to lie outside the region
        lower, axes, candidates = inherited[keep], axes[keep], []
        if len(cells):
            evaluation = Evaluation(self.local, cells, learnt=self.portfolio)
            for g in active:
                evaluation.enough = self._enough(g)
                bound = bound_of(self.problem.goals[g], evaluation, self.problem.target)
                lower[:, g] = np.maximum(lower[:, g], to_numpy(bound.lower))
                if len(self.problem.region.free):
                    axes[:, g] = split_order(to_numpy(bound.scores))
                best = int(np.argmin(lower[:, g]))
                candidates.append(to_numpy(cells.center)[best] + to_numpy(bound.point)[best])
            self.incumbents.offer_cells(evaluation, active)
            self.portfolio = evaluation.portfolio
        self.boxes += count
        points = cells.points_full(np.stack(candidates)) if candidates else np.empty((0, 0))
        boxes = Boxes(to_numpy(cells.lower), to_numpy(cells.upper), lower, axes)
        return boxes, points, keep

    def _enough(self, g: int) -> float | None:
        """A lower bound that settles a box for goal g, and a little more: bounds are rounded."""
        value, target = float(self.incumbents.values[g]), self.problem.target
        settled = float(self.tolerance.needed(self.incumbents.values)[g])
        settled = settled if target is None else target
        enough = settled + 1e-6 * (value - settled)
        return enough if math.isfinite(enough) else None

    def _check(self) -> None:
        check_bounds(self.frontier.bounds(), self.incumbents.values)
