"""Both sides of the bounds: the boxes that still matter, with the bounds of all that were ever set
aside, and the best points known for every goal.

Proofs: docs/mathematics.md, statement 14.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from gpcert.attacks import descend
from gpcert.enclosures import Evaluation, LocalModel
from gpcert.numerics.arrays import Backend, Index, Inputs, PerRow, Rows, to_numpy
from gpcert.numerics.deadline import checkpoint
from gpcert.regions import Cells, Region
from gpcert.search.problem import Problem

HALVINGS = 3
"""How often a box may be halved in one step: its parts are eight at most."""


class Boxes(NamedTuple):
    """Corners (n, f), lower bounds (n, G) and split axes (n, G, HALVINGS) of boxes, a row each."""

    low: np.ndarray
    high: np.ndarray
    lower: np.ndarray
    axes: np.ndarray


@dataclass(frozen=True, eq=False)
class Frontier:
    """Open boxes on the host, and per goal the least bound `settled` (G,) of all others.

    Invariant: for every goal g and every x of the region,
    `goal_g(x) >= min(settled[g], min over open boxes lower[:, g])`.
    A frontier never changes: a search puts a new one in its place, after all that belongs to it has
    been computed. An interrupt or a deadline, between whichever two instructions, finds the old one
    or the new one, and both satisfy the invariant.
    """

    region: Region
    boxes: Boxes
    settled: np.ndarray

    @staticmethod
    def whole(region: Region, known: Annotated[np.ndarray, "G"]) -> Frontier:
        """Boxes that cover the region, with bounds `known` (G,) that hold everywhere."""
        roots = region.roots()
        axes = np.zeros((len(roots), len(known), HALVINGS), dtype=np.int64)
        boxes = Boxes(roots.lower, roots.upper, np.tile(known, (len(roots), 1)), axes)
        return Frontier(region, boxes, np.full(len(known), np.inf))

    def __len__(self) -> int:
        return len(self.boxes.lower)

    @property
    def bytes(self) -> float:
        """Memory held by the open boxes."""
        return float(sum(part.nbytes for part in self.boxes))

    def bounds(self) -> Annotated[np.ndarray, "G"]:
        """(G,) the proved lower bound of every goal over the whole region."""
        return np.minimum(self.settled, self.boxes.lower.min(axis=0, initial=np.inf))

    def cells(self, index: Index, backend: Backend) -> Cells:
        """Some of the boxes as cells on the backend."""
        ends = (backend.asarray(end[index]) for end in self.boxes[:2])
        return Cells(self.region, *ends)

    def splittable(self) -> Annotated[np.ndarray, "n"]:
        """(n,) mask: some axis has a float strictly inside."""
        low, high = self.boxes.low, self.boxes.high
        middle = 0.5 * low + 0.5 * high
        return np.any((middle > low) & (middle < high), axis=1)

    def keeping(self, mask: PerRow) -> Frontier:
        """Set the other boxes aside: their bounds go to `settled`."""
        if mask.all():
            return self
        aside = np.minimum(self.settled, self.boxes.lower[~mask].min(axis=0, initial=np.inf))
        return Frontier(self.region, Boxes(*(part[mask] for part in self.boxes)), aside)

    def replacing(self, index: Index, children: Boxes) -> Frontier:
        """Put children in the place of their parents, which they must cover."""
        kept, pairs = np.ones(len(self), dtype=bool), zip(self.boxes, children, strict=True)
        kept[index] = False
        merged = [np.concatenate([old[kept], new]) for old, new in pairs]
        return Frontier(self.region, Boxes(*merged), self.settled)


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


class Incumbents:
    """For each goal the smallest certified upper value at a point of the region.

    Every value is `Goal.ceiling`, rounding included, at a point that `region.contains` proves to
    lie inside: an upper bound of the minimum that somebody can check by hand.
    """

    def __init__(self, problem: Problem) -> None:
        self.region = problem.region
        self.goals = problem.goals
        self.functions = [goal.function(problem.model) for goal in self.goals]
        # one entry per goal, replaced whole: an interrupt never finds a value without its point
        self._best = [(goal.known[1], self.region.center) for goal in self.goals]

    def bind(self, local: LocalModel, backend: Backend) -> None:
        """Say by which model the points are evaluated; needed before any is offered."""
        self.local, self.backend = local, backend

    @property
    def values(self) -> Annotated[np.ndarray, "G"]:
        """(G,) the smallest certified value; before any is known, what holds everywhere."""
        return np.array([value for value, _ in self._best], dtype=float)

    @property
    def points(self) -> Annotated[np.ndarray, "G d"]:
        """(G, d) where the values are attained."""
        return np.stack([point for _, point in self._best])

    def offer_cells(self, evaluation: Evaluation, active: Sequence[int]) -> None:
        """Take the centres of an evaluated batch into account: their values are already there."""
        points = evaluation.cells.points_full(evaluation.cells.center)
        self._take(evaluation, points, np.asarray(self.region.contains(points)), active)

    def offer_points(self, points: Inputs, active: Sequence[int]) -> None:
        """Evaluate the goals at points (n, d) that lie in the region."""
        points = points[np.asarray(self.region.contains(points))]
        if len(points):
            free = self.backend.asarray(points[:, self.region.free])
            evaluation = Evaluation(self.local, Cells(self.region, free, free), optional=False)
            self._take(evaluation, points, np.ones(len(points), dtype=bool), active)

    def polish(self, g: int, starts: Rows) -> None:
        """Descend from each start and offer what is found."""
        found = [descend(self.functions[g], self.region, start) for start in starts]
        self.offer_points(np.stack(found), [g])

    def _take(
        self, evaluation: Evaluation, points: Inputs, inside: PerRow, active: Sequence[int]
    ) -> None:
        """Keep the smallest values at those of the evaluated points that are inside."""
        for g in active if inside.any() else ():
            checkpoint()
            values = np.where(inside, to_numpy(self.goals[g].ceiling(evaluation)), np.inf)
            best = int(np.argmin(values))
            if values[best] < self._best[g][0]:
                self._best[g] = (float(values[best]), points[best].copy())
