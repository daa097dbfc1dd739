"""Boxes of one region as questions of their own: bounded once each, or refined together.

Proofs: docs/mathematics.md, statement 14.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, NamedTuple

import numpy as np

from gpcert.arrays import Backend, PerCellAndFeature, Rows, to_numpy
from gpcert.committee import Model
from gpcert.deadline import OutOfTime, checkpoint
from gpcert.enclosures import Evaluation, Portfolio, local_model
from gpcert.enclosures.affine import least_affine, through_origin
from gpcert.enclosures.goals import Goal, QuantityGoal
from gpcert.enclosures.local_posterior import LocalModel
from gpcert.errors import SoundnessError
from gpcert.fusion import running_on
from gpcert.regions import Box, Cells
from gpcert.regions.base import NormConstraint
from gpcert.search.branch_and_bound import bytes_per_cell, cells_at_once
from gpcert.search.problem import Budget
from gpcert.search.shared import SharedProblem, SharedResult, solve_shared

BATCH_BYTES = 5.0e8
"""Most memory of one batch on a CPU."""

NEAR_BYTES, FEW_CELLS = 2.0e8, 64
"""Its memory where that is not for fewer cells: much of it stays in the caches, and the steps of a
batch cost little beside."""

GPU_SHARE = 0.8
"""Of what a GPU has left, by an estimate that is twice what is used: the larger its batches, the
less its launches cost (half a million boxes at a time are four times as fast as 65,536)."""

TRIAL_BOXES = 64
"""Boxes on which it is tried whether the optional bounds pay."""

TRIAL_GAIN = 0.05
"""Part of the width that they must take off."""


class Once(NamedTuple):
    """`lower` (R, G) bounds of the goals; `affine` (R, G, f + 1), slopes and offsets of affine
    functions below them, if they were asked for; and how many boxes were `reached` in time."""

    lower: np.ndarray
    affine: np.ndarray | None
    reached: int


@dataclass(frozen=True, eq=False)
class BoxFamily:
    """Boxes inside `whole`, or parts of balls, enclosed in shared batches; a `shared.Family`."""

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
    def cells_at_once(self) -> int:
        """Boxes per batch."""
        f = len(self.whole.free)
        each = bytes_per_cell(self.model, f)
        if self.backend.gpu:
            return max(1, int(GPU_SHARE * self.backend.free_bytes / each))
        usual = cells_at_once(self.model, f, self.goals, self.backend)
        room = min(BATCH_BYTES, max(NEAR_BYTES, FEW_CELLS * each))
        return max(1, min(int(room / each), usual))

    def evaluation(
        self,
        question: np.ndarray,
        low: PerCellAndFeature,
        high: PerCellAndFeature,
        optional: bool = True,
        learnt: Portfolio | None = None,
    ) -> Evaluation:
        """Enclosures over boxes in the free features; all questions share the coordinates. Where
        they are balls, each box is cut to that of its question; of no question, it is the box."""
        own = None
        if self.balls is not None and len(question):
            own = self.balls._replace(center=self.backend.asarray(self.balls.center[question]))
        cells = Cells(self.whole, self.backend.asarray(low), self.backend.asarray(high), own=own)
        return Evaluation(self.local, cells, optional, learnt)

    def ceilings(self, points: Annotated[np.ndarray, "n f"], goals: Sequence[int]) -> np.ndarray:
        """(n, len(goals)): certified values, from above, of some goals at points (n, f)."""
        found = np.empty((len(points), len(goals)))
        for start in range(0, len(points), self.cells_at_once):
            x = points[start : start + self.cells_at_once]
            evaluation = self.evaluation(np.empty(0), x, x, optional=False)
            for k, g in enumerate(goals):
                checkpoint()
                values = to_numpy(self.goals[g].ceiling(evaluation))
                found[start : start + len(x), k] = values
        return found

    def floors(
        self, points: Annotated[np.ndarray, "n f"], target: float
    ) -> Annotated[np.ndarray, "n"]:
        """(n,): certified values, from below, of the first goal at points (n, f)."""
        found = np.empty(len(points))
        for start in range(0, len(points), self.cells_at_once):
            checkpoint()
            x = points[start : start + self.cells_at_once]
            evaluation = self.evaluation(np.empty(0), x, x)
            found[start : start + len(x)] = to_numpy(self.goals[0].bound(evaluation, target).lower)
        return found

    def bounded_once(self, low: Rows, high: Rows) -> Once:
        """A proved lower bound of every goal over every box (R, f), from one evaluation each; boxes
        that are not reached before the deadline have what is known anyway.

        Goals come in pairs, a quantity and its negative.
        """
        known = np.array([goal.known[0] for goal in self.goals], dtype=float)
        lower = np.tile(known, (len(low), 1))
        affine = None
        if self.affine:
            affine = np.zeros((len(low), len(known), low.shape[1] + 1))
            affine[:, :, -1] = known
        start, learnt = 0, Portfolio()
        with running_on(self.backend), suppress(OutOfTime):
            paying = self._paying(low, high)
            for start in range(0, len(low), self.cells_at_once):
                rows = slice(start, start + self.cells_at_once)
                boxes = (low[rows], high[rows])
                evaluation = self.evaluation(np.empty(0), *boxes, False, learnt)
                for optional in (False, True):
                    own = np.flatnonzero(paying == optional)
                    if len(own):
                        evaluation = evaluation.again(optional)
                        lower[rows, own] = self._bounds(evaluation, own)
                        if affine is not None:
                            affine[rows, own] = self._affine(evaluation, own, lower[rows])
                learnt = evaluation.portfolio
            return Once(lower, affine, len(low))
        return Once(lower, affine, start)

    def _paying(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """(G,) whether the bounds that may not pay take something off a pair's widths, by trial."""
        rows = np.linspace(0, len(low) - 1, min(TRIAL_BOXES, len(low))).astype(int)
        every = np.arange(len(self.goals))
        plain, tried = (
            np.sum(self._bounds(self.evaluation(rows, low[rows], high[rows], each), every), axis=0)
            for each in (False, True)
        )
        # widths are minus the sums of a pair's bounds; infinite ones are worth every try
        before, after = -(plain[0::2] + plain[1::2]), -(tried[0::2] + tried[1::2])
        pays = ~(after > (1.0 - TRIAL_GAIN) * before) | ~np.isfinite(before)
        return np.repeat(pays, 2)

    def _bounds(self, evaluation: Evaluation, goals: np.ndarray) -> np.ndarray:
        """(n, len(goals)): bounds of some goals over the boxes of an evaluation."""
        found = []
        for g in map(int, goals):
            checkpoint()
            bound = to_numpy(self.goals[g].bound(evaluation, None).lower)
            if np.isnan(bound).any():
                raise SoundnessError("a bound is NaN; please report this model")
            found.append(np.maximum(bound, self.goals[g].known[0]))
        return np.stack(found, axis=1)

    def _affine(self, evaluation: Evaluation, goals: np.ndarray, lower: np.ndarray) -> np.ndarray:
        """(n, len(goals), f + 1): slopes and offsets of affine functions below some goals; `lower`
        (n, G) is taken where none is known."""
        found = []
        for g in map(int, goals):
            checkpoint()
            constant, goal = self.backend.asarray(lower[:, g]), self.goals[g]
            assert isinstance(goal, QuantityGoal), "asked for where it is known"
            line = least_affine(evaluation, goal.quantity).or_constant(constant)
            offset = through_origin(line, evaluation.cells.center)
            parts = (to_numpy(line.slope), to_numpy(offset)[:, None])
            found.append(np.concatenate(parts, axis=1))
        affine = np.stack(found, axis=1)
        if np.isnan(affine).any():
            raise SoundnessError("an affine bound is NaN; please report this model")
        return affine

    def refined(self, low: Rows, high: Rows, tol: float, budget: Budget) -> SharedResult:
        """The goals' minima over every box to within `tol`, by one search for all."""
        problem = SharedProblem(
            self, self.goals, low, high, low, high, np.full(len(self.goals), tol), budget=budget
        )
        with running_on(self.backend):
            return solve_shared(problem)
