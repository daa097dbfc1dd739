"""All that a search knows: open boxes and the bounds of all others, the least values attained, and
counters, as one record of arrays; and which boxes are split next, and how often, which can make no
bound invalid.

Proofs: docs/mathematics.md, statement 14.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import numpy as np

from gpcert.enclosures import Portfolio
from gpcert.numerics.arrays import Backend, Index, PerRow, Rows
from gpcert.regions.base import Halves
from gpcert.search.problem import Resolution

QuestionsAndFeatures = Annotated[np.ndarray, "Q f"]
QuestionsAndGoals = Annotated[np.ndarray, "Q G"]

Halve = Callable[[np.ndarray, np.ndarray, np.ndarray], Halves]
"""See `gpcert.regions.Region.halves`."""

HALVINGS = 3
"""How often a box may be halved in one step: its parts are eight at most."""


CHOICE = 128
"""Bytes for each open box while boxes are chosen: gaps, masks and an order (measured)."""


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes, a row each: `question` (n,), corners `low` and `high` (n, f), bounds `lower` (n, G) of
    the goals, and the axes (n, G, HALVINGS) along which each goal would have them cut."""

    question: np.ndarray
    low: np.ndarray
    high: np.ndarray
    lower: np.ndarray
    axes: np.ndarray

    def __len__(self) -> int:
        return len(self.question)

    def __iter__(self) -> Iterator[np.ndarray]:
        """All columns, in order."""
        return iter((self.question, self.low, self.high, self.lower, self.axes))

    @property
    def bytes(self) -> float:
        """Memory that the boxes hold."""
        return float(sum(part.nbytes for part in self))

    @property
    def middle(self) -> Rows:
        """(n, f) the rounded midpoints."""
        return 0.5 * self.low + 0.5 * self.high

    def take(self, index: Index) -> Boxes:
        """The boxes at an index array or under a mask."""
        return Boxes(*(part[index] for part in self))

    @staticmethod
    def concatenate(batches: Sequence[Boxes]) -> Boxes:
        """All boxes of several batches, in order."""
        return Boxes(*map(np.concatenate, zip(*batches, strict=True)))

    def splittable(self) -> PerRow:
        """(n,) whether some axis has a float strictly inside."""
        return np.any(self._inside, axis=1)

    def halves(self, axis: Annotated[np.ndarray, "n"], halve: Halve | None = None) -> Boxes:
        """Each box cut in the middle along `axis`, or along the widest axis with a float inside
        where that one has none: all lower parts, then all upper parts, which share the cut; or as
        the region halves it."""
        rows, inside = np.arange(len(self)), self._inside
        widest = np.argmax(np.where(inside, self.high - self.low, 0.0), axis=1)
        axis = np.where(inside[rows, axis], axis, widest)
        if halve is not None:
            first, second, last = halve(self.low, self.high, axis)
        else:
            first, second, last = self.high.copy(), self.low.copy(), self.high
            first[rows, axis] = second[rows, axis] = self.middle[rows, axis]
        return Boxes.concatenate([replace(self, high=first), replace(self, low=second, high=last)])

    def parts(
        self,
        axes: Annotated[np.ndarray, "n halvings"],
        times: Annotated[np.ndarray, "n"],
        halve: Halve | None = None,
    ) -> tuple[Boxes, Index]:
        """Boxes that cover these, and of which box each is a part: halves along the first axis,
        their halves along the second, as many `times` as wanted of each box."""
        boxes, parents = self, np.arange(len(self))
        for step in range(int(times.max(initial=0))):
            again = times[parents] > step
            halves = boxes.take(again).halves(axes[parents[again], step], halve)
            parents = np.concatenate([parents[~again], parents[again], parents[again]])
            boxes = Boxes.concatenate([boxes.take(~again), halves])
        return boxes, parents

    @property
    def _inside(self) -> np.ndarray:
        """(n, f) which axes have a float strictly inside."""
        middle = self.middle
        return (middle > self.low) & (middle < self.high)


def split_order(scores: Rows) -> Annotated[np.ndarray, "n halvings"]:
    """(n, HALVINGS) axes from what halving each of them gains (n, f), a quarter of it the next
    time: gains go with the square of a width.

    >>> split_order(np.array([[1.0, 5.0, 2.0]])).tolist()
    [[1, 2, 1]]
    """
    left, rows, order = scores.copy(), np.arange(len(scores)), []
    for _ in range(HALVINGS):
        order.append(left.argmax(axis=1))
        left[rows, order[-1]] *= 0.25
    return np.stack(order, axis=1)


def least_of_each(
    question: Annotated[np.ndarray, "n"], values: Annotated[np.ndarray, "n"]
) -> Index:
    """For every question (n,) that occurs, the place of its least value.

    >>> least_of_each(np.array([3, 5, 3]), np.array([2.0, 1.0, 0.0])).tolist()
    [2, 1]
    """
    order = np.lexsort((values, question))
    return order[np.unique(question[order], return_index=True)[1]]


class Leaves(NamedTuple):
    """Boxes that together cover the box around the region of every question, a row each.

    `low`, `high` (n, f) are their corners in the region's free coordinates, `lower` (n, G) a proved
    lower bound of every goal over the part of the region inside, infinite where there is none, and
    `question` (n,) the number of the question. They are those with which the search ended: the
    boxes that it closed and those that were still open. Children of one parent share the cut, so
    they are the leaves of a tree of halvings.
    """

    question: np.ndarray
    low: np.ndarray
    high: np.ndarray
    lower: np.ndarray


@dataclass(frozen=True, eq=False)
class Frontier:
    """Open boxes, and per question and goal the least bound `settled` (Q, G) of all others.

    Invariant: for every question q, goal g and x of the question's region,
    `goal_g(x) >= min(settled[q, g], min over open boxes of q of lower[:, g])`.
    `closed` holds the other boxes themselves, in batches, if they are recorded.
    A frontier never changes: a search puts a new one in its place, after all that belongs to it has
    been computed. An interrupt or a deadline, between whichever two instructions, finds the old one
    or the new one, and both satisfy the invariant.
    """

    boxes: Boxes
    settled: np.ndarray
    closed: tuple[Boxes, ...] | None = None

    @staticmethod
    def whole(
        low: QuestionsAndFeatures,
        high: QuestionsAndFeatures,
        known: Annotated[np.ndarray, "G"],
        record: bool = False,
    ) -> Frontier:
        """One box [low, high] (Q, f) for each question, with bounds `known` (G,) that hold
        everywhere."""
        Q, G = len(low), len(known)
        axes = np.zeros((Q, G, HALVINGS), dtype=np.int32)
        boxes = Boxes(np.arange(Q), low, high, np.tile(known, (Q, 1)), axes)
        return Frontier(boxes, np.full((Q, G), np.inf), () if record else None)

    @property
    def bytes(self) -> float:
        """Memory of open boxes and of closed ones that are recorded, of the copy that is made when
        some of them are replaced, and of what it takes to choose among the open ones."""
        held = self.boxes.bytes + sum(batch.bytes for batch in self.closed or ())
        return 2.0 * held + CHOICE * len(self.boxes)

    def bounds(self) -> QuestionsAndGoals:
        """(Q, G) the proved lower bound of every goal over the region of every question."""
        return _least(self.settled, self.boxes)

    def keeping(self, mask: PerRow) -> Frontier:
        """Close the other boxes: their bounds go to `settled`."""
        if mask.all():
            return self
        others = self.boxes.take(~mask)
        settled = _least(self.settled, others)
        return Frontier(self.boxes.take(mask), settled, self._with_closed(others))

    def replacing(self, index: Index, children: Boxes, outside: Boxes | None = None) -> Frontier:
        """Put children in the place of their parents, which they must cover but for parts that are
        proved to lie `outside` the region."""
        others = np.ones(len(self.boxes), dtype=bool)
        others[index] = False
        pairs = zip(self.boxes, children, strict=True)  # column by column: one copy, not two
        boxes = Boxes(*(np.concatenate([column[others], more]) for column, more in pairs))
        if outside is None or self.closed is None:
            return replace(self, boxes=boxes)
        nothing = replace(outside, lower=np.full_like(outside.lower, np.inf))
        return replace(self, boxes=boxes, closed=self._with_closed(nothing))

    def leaves(self) -> Leaves | None:
        """The closed boxes and the open ones, if they are recorded."""
        if self.closed is None:
            return None
        parts = zip(*(list(batch)[:4] for batch in (*self.closed, self.boxes)), strict=True)
        return Leaves(*map(np.concatenate, parts))

    def _with_closed(self, boxes: Boxes) -> tuple[Boxes, ...] | None:
        """The closed boxes and these; batches of similar sizes are joined, so there are few."""
        if self.closed is None or len(boxes) == 0:
            return self.closed
        plain = replace(boxes, axes=np.zeros((len(boxes), 0, 0), dtype=np.int32))
        batches = [*self.closed, plain]
        while len(batches) > 1 and len(batches[-2]) <= 2 * len(batches[-1]):
            batches[-2:] = [Boxes.concatenate(batches[-2:])]
        return tuple(batches)


def _least(known: np.ndarray, boxes: Boxes) -> np.ndarray:
    """(Q, G) the smaller of what is known and the least bound of the boxes of each question."""
    if len(known) == 1:
        return np.minimum(known, boxes.lower.min(axis=0, initial=np.inf))
    least = known.copy()
    np.minimum.at(least, boxes.question, boxes.lower)
    return least


@dataclass(frozen=True, eq=False)
class Incumbents:
    """For each question and goal the smallest certified upper value, `values` (Q, G), and the point
    of the question's region where it is attained, `points` (Q, G, f); NaN before any is known,
    when the value is one that holds everywhere.

    Every value is `Goal.ceiling`, rounding included, at a point that is proved to lie inside: an
    upper bound of the minimum that somebody can check by hand.
    """

    values: np.ndarray
    points: np.ndarray

    @staticmethod
    def unknown(known: Annotated[np.ndarray, "G"], Q: int, f: int) -> Incumbents:
        """Values (G,) that hold everywhere, before any point is known."""
        return Incumbents(np.tile(known, (Q, 1)), np.full((Q, len(known), f), np.nan))

    def improved(
        self, g: int, question: Index, values: Annotated[np.ndarray, "n"], points: Rows
    ) -> Incumbents:
        """With certified values (n,) of goal g at points (n, f) of questions (n,), where they are
        smaller."""
        best = least_of_each(question, values)
        better = best[values[best] < self.values[question[best], g]]
        if len(better) == 0:
            return self
        least, where = self.values.copy(), self.points.copy()
        least[question[better], g] = values[better]
        where[question[better], g] = points[better]
        return Incumbents(least, where)

    def take(self, index: Index) -> Incumbents:
        """Those of some questions."""
        return Incumbents(self.values[index], self.points[index])


@dataclass(frozen=True, eq=False)
class State:
    """What a search knows and what steers it, at one moment: arrays, numbers and tuples of them.

    Bounds rest on `frontier` and `incumbents` alone. A search replaces the whole record at every
    step, so any moment's record is one from which the search could go on; `generator` is the state
    of its random numbers (`np.random.Generator.bit_generator.state`).
    """

    frontier: Frontier
    incumbents: Incumbents
    resolution: Resolution
    portfolio: Portfolio
    """Which optional bounds have paid."""
    generator: dict
    shrink: float
    """By how much halving a box lessened its gap when last seen; only guides the search."""
    boxes: int = 0
    """Boxes bounded so far."""
    looks: int = 0
    """How often it has been looked at what rounding alone leaves."""
    next_look: int = 0
    """Number of boxes after which the next look is due."""
    rest: int = 0
    """How many boxes, in front, have not been bounded in this pass over the first boxes."""
    passed: int = 0
    """Passes over the first boxes that are done."""

    @staticmethod
    def start(
        ends: tuple[QuestionsAndFeatures, QuestionsAndFeatures],
        known: Annotated[np.ndarray, "G 2"],
        shrink: float,
        random_state: int | None,
        record: bool,
    ) -> State:
        """One box [low, high] (Q, f) per question; `known` (G, 2) are bounds of the goals that hold
        everywhere."""
        Q, f = ends[0].shape
        lower, upper = known.T
        return State(
            Frontier.whole(*ends, lower, record),
            Incumbents.unknown(upper, Q, f),
            Resolution.unknown((Q, len(known))),
            Portfolio(),
            dict(np.random.default_rng(random_state).bit_generator.state),
            shrink,
            rest=Q,
        )


class Steps(NamedTuple):
    """How boxes are halved more than once before their parts are bounded."""

    hopeless: float = 6.0
    """Halves are halved at once where their gaps are expected to exceed so many times what is
    allowed: bounding them first would only add boxes."""
    parts: int = 256
    """That is done up to so many boxes at a time: of more, the bounds in between are worth
    knowing."""

    @staticmethod
    def on(backend: Backend) -> Steps:
        """A GPU's batches take about as long whatever is in them: few large ones are faster."""
        return Steps(0.0, 16384) if backend.gpu else STEPS


STEPS = Steps()
"""On a CPU."""

STEEPEST = 6.0
"""Before anything is known, gaps are expected to fall like this power of the width."""

SLOWEST = 0.99
"""Gaps are expected to fall by a hundredth at least."""


def first_shrink(f: int) -> float:
    """By how much halving a box of f features is expected to lessen its gap at first."""
    return 0.5 ** (STEEPEST / max(1, f))


@dataclass(frozen=True, eq=False)
class Branch:
    """Boxes that are to be split, and for each the goal that is farthest from what it `needed`."""

    index: np.ndarray
    """Their numbers (n,) in the frontier."""
    boxes: Boxes
    goal: np.ndarray
    """(n,)."""
    open: np.ndarray
    """(n, G) for which goals they are open."""

    @staticmethod
    def most_urgent(
        boxes: Boxes, open_: Annotated[np.ndarray, "n G"], needed: QuestionsAndGoals, most: int
    ) -> Branch:
        """Of all boxes those that lie farthest below the bounds (Q, G) that would settle them."""
        with np.errstate(invalid="ignore"):  # while nothing is known
            urgency = needed[boxes.question] - boxes.lower
        urgency = np.where(np.isnan(urgency), np.inf, urgency)
        urgency = np.where(open_, urgency, -np.inf)
        rest = -urgency.max(axis=1)
        index = np.arange(len(rest))
        if len(rest) > most:  # no more is sorted than may be chosen
            index = np.flatnonzero(rest <= np.partition(rest, most - 1)[most - 1])
        index = index[np.argsort(rest[index], kind="stable")[:most]]
        goal = np.argmax(urgency[index], axis=1)
        return Branch(index, boxes.take(index), goal, open_[index])

    def parts(self, times: Annotated[np.ndarray, "n"], halve: Halve | None) -> tuple[Boxes, Index]:
        """Boxes that cover these, and of which box each is a part: halved so many times along the
        axes that gain most for its goal, as the region halves them."""
        axes = self.boxes.axes[np.arange(len(self.boxes)), self.goal]
        return self.boxes.parts(axes, times, halve)

    def times(
        self,
        known: Incumbents,
        needed: QuestionsAndGoals,
        shrink: float,
        fit: int,
        steps: Steps = STEPS,
    ) -> Annotated[np.ndarray, "n"]:
        """How often to halve each of the boxes, `fit` being how many fit a batch.

        Once more where the halves would be expected to stay open by far; any number is valid.
        """
        n = len(self.boxes)
        value = known.values[self.boxes.question, self.goal]
        with np.errstate(divide="ignore", invalid="ignore"):
            allowed = value - needed[self.boxes.question, self.goal]
            gaps = value - self.boxes.lower[np.arange(n), self.goal]
            halvings = np.log(gaps / (steps.hopeless * allowed)) / -math.log(shrink)
            more = np.clip(np.nan_to_num(np.ceil(halvings) - 1.0, nan=0.0), 0, HALVINGS - 1)
        most = max(2, min(fit, steps.parts) // n)
        return np.minimum(1 + more.astype(int), most.bit_length() - 1)

    def shrink(
        self, times: Annotated[np.ndarray, "n"], children: Boxes, origin: Index, known: Incumbents
    ) -> float | None:
        """From the bounds of boxes and of their children, how fast gaps fall; None if unknown."""
        g = self.goal[origin]
        value = known.values[children.question, g]
        with np.errstate(invalid="ignore"):
            old = value - self.boxes.lower[origin, g]
            new = value - children.lower[np.arange(len(g)), g]
        seen = np.isfinite(old) & (old > 0)
        if not seen.any():
            return None
        ratio = np.maximum(new[seen] / old[seen], 1e-3) ** (1.0 / times[origin[seen]])
        return min(float(np.median(ratio)), SLOWEST)


@dataclass(frozen=True, eq=False)
class PartitionState:
    """All that a partition knows: open cells, whose `lower` (n, 2) holds the lower bound of the
    contribution and minus the upper one; their data (n, k); how many of them, in front, are
    `unevaluated`; sums of the decided cells, and they themselves, in batches with their data."""

    open: Boxes
    data: np.ndarray
    unevaluated: int
    settled: tuple[float, float] = (0.0, 0.0)
    best: tuple[float, float] = (-math.inf, math.inf)
    """The best bounds of the sum so far."""
    decided: tuple[tuple[Boxes, np.ndarray], ...] = ()
    boxes: int = 0

    @property
    def bytes(self) -> float:
        """Memory that the cells hold."""
        pairs = ((self.open, self.data), *self.decided)
        return float(sum(boxes.bytes + data.nbytes for boxes, data in pairs))
