"""A goal: one scalar function of x whose minimum over a region is asked for.

The maximum of a quantity is minus the minimum of its negative, so every goal minimises.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from gpcert.arrays import Array, PerCell, PerCellAndFeature, namespace
from gpcert.attacks.functions import PlainFunction
from gpcert.committee import Model
from gpcert.enclosures.evaluation import Evaluation


@dataclass(frozen=True, eq=False)
class GoalBound:
    """For each cell: `lower` <= goal on the cell; `point`, a displacement from the centre (user's
    units) where the goal may be small; `scores`, what halving each axis would gain."""

    lower: PerCell
    point: PerCellAndFeature
    scores: PerCellAndFeature


class Goal(ABC):
    """A function to minimise. Subclasses are frozen records."""

    needs_variance: bool

    @property
    def known(self) -> tuple[float, float]:
        """Bounds `low <= goal(x) <= high` that hold for every x whatever the model: a search that
        ends before its first box still knows them."""
        return -math.inf, math.inf

    @property
    def cells_at_once(self) -> int | None:
        """The largest batch that a goal wants which is slow on every box: budgets are looked at
        between batches. None leaves the size to the search."""
        return None

    @abstractmethod
    def bound(self, evaluation: Evaluation, target: float | None) -> GoalBound:
        """Certified lower bound over each cell, best near `target` where one is given."""

    @abstractmethod
    def ceiling(self, evaluation: Evaluation) -> Array:
        """Certified upper bound of the goal at each cell's centre point."""

    @abstractmethod
    def function(self, model: Model) -> PlainFunction:
        """The goal and its gradient in plain floating point, for local search."""

    def plain_values(self, model: Model, X: np.ndarray) -> list[float | None]:
        """The goal at points (n, d), for pictures, never for verdicts; None where plain floating
        point has no finite value."""
        with np.errstate(all="ignore"):  # extreme models overflow; bounds do not rest on this
            found = self.function(model)(X)[0].tolist()
        return [value if math.isfinite(value) else None for value in found]


def worst_of(bounds: list[GoalBound]) -> GoalBound:
    """The bound of the minimum of several goals; point and scores are those of the least one."""
    xp = namespace(bounds[0].lower)
    lower = xp.stack([bound.lower for bound in bounds], axis=1)
    worst = xp.argmin(lower, axis=1)
    rows = xp.arange(len(worst), device=worst.device)
    return GoalBound(
        lower[rows, worst],
        xp.stack([bound.point for bound in bounds], axis=1)[rows, worst],
        xp.stack([bound.scores for bound in bounds], axis=1)[rows, worst],
    )
