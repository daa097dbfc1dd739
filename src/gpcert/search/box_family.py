"""Many boxes or balls as questions of their own: bounded once each, refined together, or as far as
the first box of each, whose answers need no search of their own.

Proofs: docs/mathematics.md, statement 14.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gpcert.enclosures import Evaluation, Portfolio, local_model
from gpcert.enclosures.affine import least_affine, through_origin
from gpcert.enclosures.goals import Goal, QuantityGoal
from gpcert.enclosures.local_posterior import LocalModel
from gpcert.errors import SoundnessError
from gpcert.model.committee import Model
from gpcert.numerics.arrays import Backend, Inputs, PerCellAndFeature, Rows, running_on, to_numpy
from gpcert.regions import Box, Cells, Region
from gpcert.regions.base import NormConstraint
from gpcert.search.branch_and_bound import solve_batch
from gpcert.search.local_search import Jumps
from gpcert.search.problem import Budget, StopReason, Tolerance, bound_of, stop_if_interrupted
from gpcert.search.questions import (
    BatchProblem,
    FirstPoints,
    ManyBoxes,
    StoppingRule,
    WithinTolerance,
)
from gpcert.search.region_evaluator import GPU_SHARE, batch_size, bytes_per_cell
from gpcert.utils.processes import OutOfTime, checkpoint

BATCH_BYTES = 5.0e8
"""Most memory of one batch on a CPU."""

NEAR_BYTES, FEW_CELLS = 2.0e8, 64
"""Its memory where that is not for fewer cells: much of it stays in the caches, and the steps of a
batch cost little beside."""

TRIAL_BOXES = 64
"""Boxes on which it is tried whether the optional bounds pay."""

TRIAL_GAIN = 0.05
"""Part of the width that they must take off."""

MAX_IDLE_FEATURES = 32
"""Features up to which regions that keep different ones fixed share their coordinates: they then
cost time, as each kernel value has all of them."""


class Bounded(NamedTuple):
    """`lower` (R, G) bounds of the goals; `affine` (R, G, f + 1), slopes and offsets of affine
    functions below them, if they were asked for; how many of the R were `reached` in time, how many
    boxes that took, and why it ended; `met` (R,) says which are bounded as they were asked to."""

    lower: np.ndarray
    affine: np.ndarray | None
    reached: int
    boxes: int
    reason: StopReason
    met: np.ndarray


@dataclass(frozen=True, eq=False)
class BoxFamily:
    """Boxes inside `whole`, or parts of balls, enclosed in shared batches; a `BatchEvaluator`."""

    model: Model
    goals: tuple[Goal, ...]
    whole: Box
    backend: Backend
    affine: bool = False
    """Whether `bounded_once` also finds affine functions below the goals."""
    balls: NormConstraint | None = None
    """Of questions that are balls: theirs, alike but for their centres (Q, f)."""

    @cached_property
    def local(self) -> LocalModel:
        """The model inside the box that holds all of them."""
        variance = any(goal.needs_variance for goal in self.goals)
        return local_model(self.model, self.whole, self.backend, variance)

    @property
    def bytes_per_box(self) -> float:
        """Memory of one box while it is bounded."""
        return bytes_per_cell(self.model, len(self.whole.free))

    @property
    def batch_size(self) -> int:
        """Boxes per batch."""
        f, each = len(self.whole.free), self.bytes_per_box
        if self.backend.gpu:
            return max(1, int(GPU_SHARE * self.backend.free_bytes / each))
        usual = batch_size(self.model, f, self.goals, self.backend)
        memory = min(BATCH_BYTES, max(NEAR_BYTES, FEW_CELLS * each))
        return max(1, min(int(memory / each), usual))

    def evaluation(
        self,
        question: np.ndarray,
        low: PerCellAndFeature,
        high: PerCellAndFeature | None,
        optional: bool = True,
        portfolio: Portfolio | None = None,
    ) -> Evaluation:
        """Enclosures over boxes in the free features, or at points where `high` is None; all
        questions share the coordinates. Where they are balls, each box is cut to that of its
        question; a point is what it is."""
        balls, place = None, self.backend.asarray
        if self.balls is not None and high is not None:
            balls = self.balls._replace(center=place(self.balls.center[question]))
        cells = Cells(self.whole, place(low), place(low if high is None else high), balls=balls)
        return Evaluation(self.local, cells, optional, portfolio)

    def at_points(self, X: Inputs, optional: bool = True) -> Iterator[Evaluation]:
        """Enclosures at points X (n, d) of `whole`, batch by batch, each point once."""
        size = self.batch_size  # once: what a GPU has left changes between batches
        for start in range(0, len(X), size):
            checkpoint()
            x = X[start : start + size, self.whole.free]
            yield self.evaluation(np.arange(len(x)), x, None, optional)

    def bounded(self, low: Rows, high: Rows, tol: Tolerance | None, budget: Budget) -> Bounded:
        """The goals over every box (R, f), bounded once each, or searched to within a tolerance;
        affine functions are of one box."""
        if tol is None:
            return self.bounded_once(low, high)
        places, stop = ManyBoxes(low, high, low, high), WithinTolerance(tol)
        asked = BatchProblem(self, self.goals, places, stop, budget=budget, model=self.model)
        answer = solve_batch(asked)
        reached = min(answer.boxes, len(low))  # all are bounded once, in order, before any again
        met = ~np.any(answer.lower < tol.needed(answer.upper), axis=1)
        refined = Bounded(answer.lower, None, reached, answer.boxes, answer.reason, met)
        if not self.affine or answer.reason is StopReason.INTERRUPTED:
            return refined
        once = self.bounded_once(low, high)
        late = once.reason if once.reason is StopReason.TIME else answer.reason
        reached, boxes = min(reached, once.reached), answer.boxes + once.boxes
        return refined._replace(affine=once.affine, reached=reached, boxes=boxes, reason=late)

    def bounded_once(self, low: Rows, high: Rows) -> Bounded:
        """A proved lower bound of every goal over every box (R, f), from one evaluation each; boxes
        that are not reached before the deadline have what is known anyway.

        Goals come in pairs, a quantity and its negative.
        """
        known = np.array([goal.known[0] for goal in self.goals], dtype=float)
        lower, affine = np.tile(known, (len(low), 1)), None
        if self.affine:
            affine = np.zeros((*lower.shape, low.shape[1] + 1))
            affine[:, :, -1] = known
        start, portfolio = 0, Portfolio()
        with running_on(self.backend), suppress(OutOfTime):
            paying, size = self._paying(low, high), self.batch_size
            for start in range(0, len(low), size):
                rows = slice(start, start + size)
                evaluation = self.evaluation(np.empty(0), low[rows], high[rows], False, portfolio)
                for optional in (False, True):
                    chosen = np.flatnonzero(paying == optional)
                    if len(chosen):
                        evaluation = evaluation.again(optional)
                        lower[rows, chosen] = self._bounds(evaluation, chosen)
                        if affine is not None:
                            affine[rows, chosen] = self._affine(evaluation, chosen, lower[rows])
                portfolio = evaluation.portfolio
            start = len(low)
        late, met = start < len(low), np.arange(len(low)) < start
        reason = StopReason.TIME if late else StopReason.CONVERGED
        return Bounded(lower, affine, start, start, reason, met)

    def _paying(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """(G,) whether the bounds that may not pay take something off a pair's widths, by trial."""
        rows = np.linspace(0, len(low) - 1, min(TRIAL_BOXES, len(low))).astype(int)
        every, boxes = np.arange(len(self.goals)), (rows, low[rows], high[rows])
        plain, tried = (
            np.sum(self._bounds(self.evaluation(*boxes, optional), every), axis=0)
            for optional in (False, True)
        )
        # widths are minus the sums of a pair's bounds; infinite ones are worth every try
        before, after = -(plain[0::2] + plain[1::2]), -(tried[0::2] + tried[1::2])
        pays = ~(after > (1.0 - TRIAL_GAIN) * before) | ~np.isfinite(before)
        return np.repeat(pays, 2)

    def _bounds(self, evaluation: Evaluation, goals: np.ndarray) -> np.ndarray:
        """(n, len(goals)): bounds of some goals over the boxes of an evaluation."""
        some = [self.goals[g] for g in goals]
        pairs = [(to_numpy(bound_of(goal, evaluation, None).lower), goal.known[0]) for goal in some]
        return np.stack([np.maximum(*pair) for pair in pairs], axis=1)

    def _affine(self, evaluation: Evaluation, goals: np.ndarray, lower: np.ndarray) -> np.ndarray:
        """(n, len(goals), f + 1): slopes and offsets of affine functions below some goals; `lower`
        (n, G) is taken where none is known."""
        models = []
        for g in map(int, goals):
            checkpoint()
            constant, goal = self.backend.asarray(lower[:, g]), self.goals[g]
            assert isinstance(goal, QuantityGoal), "asked for where it is known"
            line = least_affine(evaluation, goal.quantity).or_constant(constant)
            offset = through_origin(line, evaluation.cells.center)
            parts = (to_numpy(line.slope), to_numpy(offset)[:, None])
            models.append(np.concatenate(parts, axis=1))
        affine = np.stack(models, axis=1)
        if np.isnan(affine).any():
            raise SoundnessError("an affine bound is NaN; please report this model")
        return affine


def hull_of(regions: Sequence[Region]) -> Box | None:
    """The box around regions; None where they do not share its coordinates. Balls share them where
    all of them move in the same features."""
    low, high = np.stack([r.lower for r in regions]), np.stack([r.upper for r in regions])
    hull = Box(low.min(axis=0), high.max(axis=0))
    alike = bool(np.all((low < high)[:, hull.free]))
    boxes = all(region.norm_constraint is None for region in regions)
    return hull if alike or (boxes and len(hull.free) <= MAX_IDLE_FEATURES) else None


def balls_of(regions: Sequence[Region]) -> tuple[NormConstraint | None, bool]:
    """The norm constraints of regions as one with their centres (R, f), or None where they are
    boxes; and whether they are alike: of one norm, radius and unit."""
    each = [region.norm_constraint for region in regions]
    balls = [ball for ball in each if ball is not None]
    if not balls:
        return None, True
    first: Any = balls[0]
    alike = len(balls) == len(each) and all(
        (ball.radius, ball.p, ball.center.shape) == (first.radius, first.p, first.center.shape)
        and np.array_equal(first.unit, np.array(ball.unit))
        for ball in balls
    )
    return (first._replace(center=np.stack([b.center for b in balls])) if alike else None), alike


class OneBox(NamedTuple):
    """Proved `lower <= min goal <= upper` (R, G) over each region; `upper` is attained at `points`
    (R, G, d), which lie in it."""

    lower: np.ndarray
    upper: np.ndarray
    points: np.ndarray


def one_box_each(family: BoxFamily, regions: Sequence[Region], stop: StoppingRule) -> OneBox:
    """Bound every region, inside the family's `whole` box, as one cell, and evaluate the goals at
    its centre and where they may be small.

    Regions that have no answer by the stopping rule are tried again with the bounds that may not
    pay. A search of a region's own does the same first. A deadline raises `OutOfTime`.
    """
    free = family.whole.free
    ends = ("lower", "upper", "inner_lower", "inner_upper")
    corners = (np.stack([getattr(region, end) for region in regions])[:, free] for end in ends)
    places = ManyBoxes(*corners, balls=family.balls)
    centers = np.stack([region.center for region in regions])
    functions = [goal.function(family.model) for goal in family.goals]
    answer = solve_batch(
        BatchProblem(
            family,
            family.goals,
            places,
            stop,
            first_points=FirstPoints(centers[:, free], np.arange(len(regions))),
            local_search=Jumps(places, functions, free, centers),
            split=False,
            budget=Budget(seconds=None, memory=None),
            model=family.model,
        )
    )
    stop_if_interrupted(answer.reason)
    if answer.reason is StopReason.TIME:
        raise OutOfTime("the deadline has passed")
    points = np.repeat(centers[:, None], len(family.goals), axis=1)
    points[:, :, free] = answer.points
    return OneBox(answer.lower, answer.upper, points)
