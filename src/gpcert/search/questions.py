"""What a search over many questions is asked: where each question lives, how boxes of all of them
are bounded in one batch, and when each has its answer.

Proofs: docs/mathematics.md, statement 14.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple, Protocol

import numpy as np

from gpcert.enclosures import Evaluation, Portfolio
from gpcert.enclosures.goals import Goal
from gpcert.model.committee import Model
from gpcert.numerics.arrays import (
    Backend,
    Index,
    Inputs,
    PerCell,
    PerCellAndFeature,
    PerRow,
    Reals,
    Rows,
)
from gpcert.regions import Region
from gpcert.regions.base import NormConstraint
from gpcert.search.local_search import LocalSearch
from gpcert.search.problem import Budget, Progress, StopReason, Tolerance
from gpcert.search.region_evaluator import SliceEvaluator
from gpcert.search.state import STEPS, Halve, Leaves, QuestionsAndFeatures, Steps
from gpcert.search.workers import Workers
from gpcert.utils.archive import digest


class BatchEvaluator(Protocol):
    """How boxes of any of the questions are enclosed in one batch, and on which backend."""

    def evaluation(
        self,
        question: PerCell,
        low: PerCellAndFeature,
        high: PerCellAndFeature | None,
        optional: bool = True,
        portfolio: Portfolio | None = None,
    ) -> Evaluation:
        """Enclosures over boxes [low, high] (B, f), or at the points `low` where `high` is None,
        each of its question (B,); `portfolio` says which optional bounds have paid."""
        ...

    @property
    def batch_size(self) -> int:
        """Boxes of one batch."""
        ...

    @property
    def bytes_per_box(self) -> float:
        """Memory of one box while it is bounded."""
        ...

    @property
    def backend(self) -> Backend:
        """Where the last batch was enclosed."""
        ...


class Questions(Protocol):
    """The regions of Q questions, in f coordinates that they share."""

    @property
    def low(self) -> QuestionsAndFeatures:
        """Lower ends (Q, f) of boxes around the regions."""
        ...

    @property
    def high(self) -> QuestionsAndFeatures:
        """Their upper ends."""
        ...

    def contains(self, question: Index, points: Rows) -> PerRow:
        """(n,) whether points (n, f) are proved to lie in the regions of questions (n,)."""
        ...

    def project(self, question: Index, points: Rows) -> Rows:
        """Points (n, f) of these regions near the given ones."""
        ...

    @property
    def halves(self) -> Halve | None:
        """How boxes are halved; None for in the middle."""
        ...


@dataclass(frozen=True, eq=False)
class OneRegion:
    """One question: a region, in its free coordinates."""

    region: Region

    @property
    def low(self) -> QuestionsAndFeatures:
        """(1, f) of the box around it."""
        return self.region.lower[None, self.region.free]

    @property
    def high(self) -> QuestionsAndFeatures:
        """(1, f) of the box around it."""
        return self.region.upper[None, self.region.free]

    def full(self, points: Rows) -> Inputs:
        """Points (n, d) with these free coordinates (n, f)."""
        whole = np.tile(self.region.center, (len(points), 1))
        whole[:, self.region.free] = points
        return whole

    def contains(self, question: Index, points: Rows) -> PerRow:
        """(n,) whether points are proved to lie in the region."""
        del question
        return np.asarray(self.region.contains(self.full(points)))

    def project(self, question: Index, points: Rows) -> Rows:
        """Points of the region near the given ones."""
        del question
        return self.region.project(self.full(points))[:, self.region.free]

    @property
    def halves(self) -> Halve | None:
        """As the region says: between values, where there are some."""
        return self.region.halves


@dataclass(frozen=True, eq=False)
class ManyBoxes:
    """Boxes `[low, high]` (Q, f), outer ends: every float point between the inner ones lies in the
    real box. `balls`, if any, are norm constraints of the questions, alike but for their centres
    (Q, f)."""

    low: np.ndarray
    high: np.ndarray
    inner_low: np.ndarray
    inner_high: np.ndarray
    balls: NormConstraint | None = None

    def contains(self, question: Index, points: Rows) -> PerRow:
        """(n,) whether points are proved to lie in their boxes and balls."""
        low, high = self.inner_low[question], self.inner_high[question]
        inside, balls = np.all((points >= low) & (points <= high), axis=1), self.balls_of(question)
        return inside if balls is None else inside & balls.holds(points)

    def project(self, question: Index, points: Rows) -> Rows:
        """Points drawn into their boxes and balls."""
        points = np.clip(points, self.inner_low[question], self.inner_high[question])
        balls = self.balls_of(question)
        return points if balls is None else balls.drawn_in(points)

    @property
    def halves(self) -> Halve | None:
        """In the middle."""
        return None

    def balls_of(self, question: Index) -> NormConstraint | None:
        """The balls of some questions."""
        balls = self.balls
        return None if balls is None else balls._replace(center=balls.center[question])


class StoppingRule(Protocol):
    """Which boxes keep a question open: those whose bound of a goal is below what is `needed`."""

    @property
    def target(self) -> float | None:
        """A level that matters: enclosures are best near it."""
        ...

    @property
    def reason(self) -> StopReason:
        """Why a search stops whose questions all have their answers."""
        ...

    def needed(self, lower: Reals, upper: Reals) -> Reals:
        """(Q, G): the least bounds of boxes that answer each question for each goal, from what is
        known of the goals' minima, lower and upper (Q, G); minus infinity where nothing is."""
        ...


@dataclass(frozen=True, eq=False)
class WithinTolerance:
    """Both ends of every goal are as near as a tolerance says."""

    tolerance: Tolerance
    target: float | None = None
    reason = StopReason.CONVERGED

    def needed(self, lower: Reals, upper: Reals) -> Reals:
        """See `Tolerance.needed`."""
        del lower
        return self.tolerance.needed(upper)


@dataclass(frozen=True, eq=False)
class DecidedLevel:
    """With a target T a goal is *proved* once its lower bound exceeds T, and *refuted* once a point
    with a value below T is known. A question is decided if one of its goals is refuted or all are
    proved."""

    target: float
    reason = StopReason.DECIDED

    def needed(self, lower: Reals, upper: Reals) -> Reals:
        """A box with a bound above T matters no more, and none does once a goal is refuted."""
        del lower
        refuted = np.any(upper < self.target, axis=-1, keepdims=True)
        above = np.nextafter(self.target, np.inf)
        return np.broadcast_to(np.where(refuted, -np.inf, above), upper.shape)


class FirstPoints(NamedTuple):
    """A point (Q, f) of every question, evaluated before any box; the same real point for all
    questions with the same number in `group` (Q,), and then evaluated once."""

    points: np.ndarray
    group: np.ndarray


@dataclass(frozen=True, eq=False)
class BatchProblem:
    """Minimise every goal in every question until the stopping rule says that it has its answer."""

    evaluator: BatchEvaluator
    goals: Sequence[Goal]
    questions: Questions
    stop: StoppingRule
    first_points: FirstPoints | None = None
    local_search: LocalSearch | None = None
    """How small values are looked for, beside the points that the bounds name."""
    passes: tuple[bool, ...] = (False, True)
    """How the first box of a question is bounded, again and again until it has its answer: with the
    bounds that may not pay or without. Most questions of a large family are easy."""
    split: bool = True
    """Whether to go on after that."""
    first_seconds: float = 0.0
    """Time that the first points and the first batch get even where the budget has less left."""
    record: bool = False
    """Whether the result has the leaves: see `Leaves`."""
    budget: Budget = field(default_factory=Budget)
    progress: Progress = field(default_factory=Progress)
    random_state: int | None = 0
    steps: Steps = STEPS
    """How boxes are halved more than once."""
    slices: SliceEvaluator | None = None
    """How boxes whose categories are decided are bounded, where there is a cheaper way."""
    workers: Workers | None = None
    """Processes that search shares of the open boxes, if there are some."""
    model: Model | None = None
    """Of which all that is asked speaks; without one a checkpoint does not hold the search."""
    about: Any = None
    """What tells the questions from others with the same ends, for a checkpoint."""

    @property
    def key(self) -> str:
        """The same for the same question about the same model, whatever it may cost."""
        asked = (self.goals, self.questions, self.stop, self.first_points, self.passes, self.split)
        return digest(self.model, asked, self.record, self.random_state, self.about)

    @property
    def known(self) -> Annotated[np.ndarray, "G 2"]:
        """(G, 2) bounds of the goals that hold everywhere."""
        return np.array([goal.known for goal in self.goals], dtype=float)


@dataclass(frozen=True, eq=False)
class BatchResult:
    """Proved `lower <= min goal <= upper`, (Q, G) each; `upper` is attained at `points` (Q, G, f),
    NaN where the search ended before any value was known (then upper holds everywhere)."""

    lower: np.ndarray
    upper: np.ndarray
    points: np.ndarray
    reason: StopReason
    boxes: int
    seconds: float
    leaves: Leaves | None = None


def nothing_searched(
    goals: Sequence[Goal], shape: tuple[int, int], reason: StopReason
) -> BatchResult:
    """What is known of (Q, f) questions before any search: the goals' `known` bounds."""
    Q, f = shape
    low, high = np.array([goal.known for goal in goals], dtype=float).T
    lower, upper = np.tile(low, (Q, 1)), np.tile(high, (Q, 1))
    return BatchResult(lower, upper, np.full((Q, len(goals), f), np.nan), reason, 0, 0.0)
