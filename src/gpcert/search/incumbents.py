"""The best points known for every goal: the attained side of the bounds.

Proofs: docs/mathematics.md, statement 14.1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpcert.arrays import Backend, to_numpy
from gpcert.attacks import descend
from gpcert.deadline import checkpoint
from gpcert.enclosures import Evaluation, LocalModel
from gpcert.regions import Cells
from gpcert.search.problem import Problem


class Incumbents:
    """For each goal the smallest certified upper value at a point of the region.

    Every value is `Goal.ceiling`, rounding included, at a point that `region.contains` proves to
    lie inside: an upper bound of the minimum that somebody can check by hand.
    """

    def __init__(self, problem: Problem) -> None:
        self.region = problem.region
        self.goals = problem.goals
        self.functions = [goal.function(problem.posterior) for goal in self.goals]
        # one entry a goal, replaced whole: an interrupt never finds a value without its point
        self._best = [(goal.known[1], self.region.center) for goal in self.goals]

    def bind(self, local: LocalModel, backend: Backend) -> None:
        """Say by which model the points are evaluated; needed before any is offered."""
        self.local, self.backend = local, backend

    @property
    def values(self) -> np.ndarray:
        """(G,) the smallest certified value; before any is known, what holds everywhere."""
        return np.array([value for value, _ in self._best], dtype=float)

    @property
    def points(self) -> np.ndarray:
        """(G, d) where the values are attained."""
        return np.stack([point for _, point in self._best])

    def offer_cells(self, evaluation: Evaluation, active: Sequence[int]) -> None:
        """Take the centres of an evaluated batch into account: their values are already there."""
        points = evaluation.cells.points_full(evaluation.cells.center)
        inside = np.asarray(self.region.contains(points))
        if not inside.any():
            return
        for g in active:
            checkpoint()
            values = to_numpy(self.goals[g].ceiling(evaluation))
            self._take(g, np.where(inside, values, np.inf), points)

    def offer_points(self, points: np.ndarray, active: Sequence[int]) -> None:
        """Evaluate the goals at points (n, d) that lie in the region."""
        points = points[np.asarray(self.region.contains(points))]
        if len(points) == 0:
            return
        free = self.backend.asarray(points[:, self.region.free])
        evaluation = Evaluation(self.local, Cells(self.region, free, free), optional=False)
        for g in active:
            checkpoint()
            self._take(g, to_numpy(self.goals[g].ceiling(evaluation)), points)

    def polish(self, g: int, starts: np.ndarray) -> None:
        """Descend from each start and offer what is found."""
        found = [descend(self.functions[g], self.region, start) for start in starts]
        self.offer_points(np.stack(found), [g])

    def _take(self, g: int, values: np.ndarray, points: np.ndarray) -> None:
        best = int(np.argmin(values))
        if values[best] < self._best[g][0]:
            self._best[g] = (float(values[best]), points[best].copy())
