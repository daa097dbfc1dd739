"""Many questions over one family of boxes: what is asked, boxes that carry the numbers of their
questions, and the least values that are attained in each question.

Proofs: docs/mathematics.md, statement 14.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple, Protocol

import numpy as np

from gpcert.enclosures import Evaluation, Portfolio
from gpcert.enclosures.goals import Goal
from gpcert.numerics.arrays import Index, PerCell, PerCellAndFeature, PerRow, Rows, to_numpy
from gpcert.numerics.deadline import checkpoint
from gpcert.regions.base import NormConstraint
from gpcert.search.problem import Budget, Clock, Progress, StopReason, bound_of
from gpcert.search.tolerance import Tolerance


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
    def batch_size(self) -> int:
        """Boxes of one batch."""
        ...


@dataclass(frozen=True, eq=False)
class SharedProblem:
    """Minimise every goal over every box `[low, high]` (Q, f) to within `tol`: a `Tolerance`, or
    absolute numbers (G,).

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
    tol: np.ndarray | Tolerance
    anchors: np.ndarray | None = None
    anchor: np.ndarray | None = None
    balls: NormConstraint | None = None
    target: float | None = None
    """What a bound had better exceed; it steers the enclosures only."""
    budget: Budget = field(default_factory=Budget)
    progress: Progress = field(default_factory=Progress)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tol", Tolerance.of(self.tol))


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


class Attained(NamedTuple):
    """The least values known (Q, G), and where they are attained (Q, G, f)."""

    upper: np.ndarray
    points: np.ndarray


class Attaining:
    """What every search of many questions does: bounds boxes in batches, and keeps the least values
    that are attained in each question; `attained` is replaced whole, as in `Frontier`."""

    def __init__(self, problem: SharedProblem) -> None:
        self.problem = problem
        self.clock = Clock(problem.budget, problem.progress.start)
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
        size = self.problem.family.batch_size
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
        values = np.where(self.inside(question, points), values, np.inf)
        best = least_of_each(question, values)
        better = best[values[best] < self.upper[question[best], g]]
        upper, where = (part.copy() for part in self.attained)
        upper[question[better], g] = values[better]
        where[question[better], g] = points[better]
        self.attained = Attained(upper, where)

    def inside(
        self, question: Annotated[np.ndarray, "n"], points: Annotated[np.ndarray, "n f"]
    ) -> np.ndarray:
        """(n,) whether points (n, f) are proved to lie in their questions."""
        low, high = self.problem.inner_low[question], self.problem.inner_high[question]
        inside, balls = np.all((points >= low) & (points <= high), axis=1), self.balls(question)
        return inside if balls is None else inside & balls.holds(points)


def least_of_each(
    question: Annotated[np.ndarray, "n"], values: Annotated[np.ndarray, "n"]
) -> np.ndarray:
    """For every question (n,) that occurs, the place of its least value."""
    order = np.lexsort((values, question))
    return order[np.unique(question[order], return_index=True)[1]]
