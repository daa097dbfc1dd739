"""Where small values are looked for in plain floating point: descent in one region, or jumps from
vertex to vertex in many at once. Values count only once they are certified.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from gpcert.attacks import descend
from gpcert.attacks.functions import PlainFunction
from gpcert.numerics.arrays import Index, Rows
from gpcert.utils.processes import checkpoint

if TYPE_CHECKING:
    from gpcert.search.questions import ManyBoxes, OneRegion

RANDOM_STARTS, SAMPLE = 2, 100
"""Starting points of the local search in one region, beside the best point known, and of how many
random ones they are the best."""

JUMPS = 6
"""Most jumps from vertex to vertex in search of a small value."""


class LocalSearch(Protocol):
    """Finds points of questions with small values of a goal; they need not be any good."""

    def random_starts(self, g: int, generator: np.random.Generator) -> Rows:
        """Points (s, f) from which the first search for goal g begins as well."""
        ...

    def improved(self, g: int, question: Index, points: Rows) -> Rows:
        """Points (n, f) of questions (n,) with small values of goal g, from where to start."""
        ...


@dataclass(frozen=True, eq=False)
class Descent:
    """Local minimisation in one region, from each start."""

    place: OneRegion
    functions: Sequence[PlainFunction]

    @np.errstate(all="ignore")  # far away a function may leave float64: such points are not taken
    def random_starts(self, g: int, generator: np.random.Generator) -> Rows:
        """The best of some points of the region."""
        region = self.place.region
        points = region.sample(SAMPLE, generator)
        order = np.argsort(self.functions[g](points)[0], kind="stable")
        return points[order[:RANDOM_STARTS]][:, region.free]

    def improved(self, g: int, question: Index, points: Rows) -> Rows:
        """Where each descent ends."""
        del question
        region = self.place.region
        ends = [descend(self.functions[g], region, start) for start in self.place.full(points)]
        return np.stack(ends)[:, region.free]


@dataclass(frozen=True, eq=False)
class Jumps:
    """From a point of each question to the least ones along the gradients, as long as the goals
    fall; on nearly linear functions that is the right vertex.

    Free features of the inputs are `free` (f,); the others are those of `centers` (Q, d).
    """

    place: ManyBoxes
    functions: Sequence[PlainFunction]
    free: np.ndarray
    centers: np.ndarray

    def random_starts(self, g: int, generator: np.random.Generator) -> Rows:
        """None."""
        del g, generator
        return np.empty((0, len(self.free)))

    @np.errstate(all="ignore")  # far away a function may leave float64: such points are not taken
    def improved(self, g: int, question: Index, points: Rows) -> Rows:
        """Where the jumps end."""
        X = self.centers[question]
        X[:, self.free] = points
        value, slope = self.functions[g](X)
        for _ in range(JUMPS):
            checkpoint()
            Y, along = X.copy(), slope[:, self.free]
            Y[:, self.free] = self._least(question, along, X[:, self.free])
            reached, steepness = self.functions[g](Y)
            better = reached < value
            if not better.any():
                break
            for old, new in ((X, Y), (value, reached), (slope, steepness)):
                old[better] = new[better]
        return X[:, self.free]

    def _least(self, question: Index, slope: Rows, at: Rows) -> Rows:
        """Points (n, f) of some questions that minimise `slope.x`, about; `at` where it is 0."""
        low, high = self.place.inner_low[question], self.place.inner_high[question]
        balls = self.place.balls_of(question)
        if balls is None:
            return np.where(slope > 0, low, np.where(slope < 0, high, at))
        return balls.drawn_in(np.clip(balls.least(slope, low, high), low, high))
