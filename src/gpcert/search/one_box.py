"""One box each for many regions, in shared batches: what it answers needs no search of its own.

Proofs: docs/mathematics.md, statement 14.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gpcert.arrays import Index, PerRow, Rows, to_numpy
from gpcert.deadline import checkpoint
from gpcert.enclosures import Portfolio
from gpcert.errors import SoundnessError
from gpcert.regions import Box, Region
from gpcert.regions.base import NormConstraint
from gpcert.search.box_family import BoxFamily

MOST_IDLE_FEATURES = 32
"""Features up to which regions that keep different ones fixed share their coordinates: they then
cost time, as each kernel value has all of them."""

JUMPS = 6
"""Most jumps from vertex to vertex in search of a small value."""


@dataclass(frozen=True, eq=False)
class OneBox:
    """Proved `lower <= min goal <= upper` (R, G) over each region; `upper` is attained at `points`
    (R, G, d), which lie in it."""

    lower: np.ndarray
    upper: np.ndarray
    points: np.ndarray


def hull_of(regions: Sequence[Region]) -> Box | None:
    """The box around regions; None where they do not share its coordinates. Balls share them where
    all of them move in the same features."""
    low, high = (np.stack([getattr(r, end) for r in regions]) for end in ("lower", "upper"))
    hull = Box(low.min(axis=0), high.max(axis=0))
    alike = bool(np.all((low < high)[:, hull.free]))
    boxes = all(region.norm_constraint is None for region in regions)
    return hull if alike or (boxes and len(hull.free) <= MOST_IDLE_FEATURES) else None


def balls_of(regions: Sequence[Region]) -> tuple[NormConstraint | None, bool]:
    """The norm constraints of regions as one with their centres (R, f), or None where they are
    boxes; and whether they are alike: of one norm, radius and unit."""
    each = [region.norm_constraint for region in regions]
    balls = [ball for ball in each if ball is not None]
    if not balls:
        return None, True
    first = balls[0]
    alike = len(balls) == len(each) and all(
        (ball.radius, ball.p, ball.center.shape) == (first.radius, first.p, first.center.shape)
        and np.array_equal(_unit(ball), _unit(first))
        for ball in balls
    )
    return (first._replace(center=np.stack([b.center for b in balls])) if alike else None), alike


def _unit(ball: NormConstraint) -> np.ndarray:
    return np.ones(1) if ball.unit is None else ball.unit


def one_box_each(
    family: BoxFamily,
    regions: Sequence[Region],
    target: float | None,
    answered: Callable[[PerRow, Rows, Rows], PerRow],
) -> OneBox:
    """Bound every region, inside the family's `whole` box, as one cell, and evaluate the goals at
    its centre and where they may be small.

    `answered` says of numbers of regions (n,) and their bounds (n, G) and (n, G) which have their
    answer (n,): the others are tried again with the bounds that may not pay. A search of a region's
    own does the same first.
    """
    state = _State(family, regions, target)
    every = np.arange(len(regions))
    state.offer(every, state.middle, range(len(family.goals)))
    for optional in (False, True):
        left = every[~answered(every, state.lower, state.upper)]
        if len(left) == 0:
            break
        state.bound(left, optional)
        state.jump(left[~answered(left, state.lower[left], state.upper[left])])
    if np.any(state.lower > state.upper):
        raise SoundnessError("crossed bounds: a defect of gpcert, please report this model")
    points = np.repeat(state.center[:, None], len(family.goals), axis=1)
    points[:, :, family.whole.free] = state.points
    return OneBox(state.lower, state.upper, points)


class _State:
    """Bounds so far; coordinates are the free ones of the family's box."""

    def __init__(self, family: BoxFamily, regions: Sequence[Region], target: float | None) -> None:
        self.family, self.target = family, target
        self.center = np.stack([region.center for region in regions])
        ends = ("lower", "upper", "inner_lower", "inner_upper")
        free = family.whole.free
        self.low, self.high, self.inner_low, self.inner_high = (
            np.stack([getattr(region, end) for region in regions])[:, free] for end in ends
        )
        self.middle = self.center[:, free]
        known = np.array([goal.known for goal in family.goals], dtype=float)
        self.lower, self.upper = (np.tile(known[:, side], (len(regions), 1)) for side in (0, 1))
        self.points = np.repeat(self.middle[:, None], len(known), axis=1)
        self.portfolio = Portfolio()

    def bound(self, rows: Index, optional: bool) -> None:
        """Bound the goals over some boxes, then evaluate each where its bound says."""
        where = np.empty((len(rows), len(self.family.goals), self.low.shape[1]))
        for start in range(0, len(rows), self.family.cells_at_once):
            batch = rows[start : start + self.family.cells_at_once]
            boxes = (self.low[batch], self.high[batch])
            evaluation = self.family.evaluation(batch, *boxes, optional, self.portfolio)
            center = to_numpy(evaluation.cells.center)
            for g, goal in enumerate(self.family.goals):
                checkpoint()
                bound = goal.bound(evaluation, self.target)
                lower = to_numpy(bound.lower)
                if np.isnan(lower).any():
                    raise SoundnessError(f"goal {g}: a bound is NaN; please report this model")
                self.lower[batch, g] = np.maximum(self.lower[batch, g], lower)
                self._take(batch, g, to_numpy(goal.ceiling(evaluation)), center)
                where[start : start + len(batch), g] = center + to_numpy(bound.point)
            self.portfolio = evaluation.portfolio
        for g in range(len(self.family.goals)):
            self.offer(rows, where[:, g], [g])

    @np.errstate(all="ignore")  # far away a function may leave float64: such points are not taken
    def jump(self, rows: Index) -> None:
        """From the best points known to the least ones along the gradients, as long as the goals
        fall in plain floating point; on nearly linear functions that is the right vertex."""
        free = self.family.whole.free
        for g, goal in enumerate(self.family.goals if len(rows) else ()):
            function = goal.function(self.family.model)
            X = self.center[rows].copy()
            X[:, free] = self.points[rows, g]
            value, slope = function(X)
            for _ in range(JUMPS):
                checkpoint()
                Y, along = X.copy(), slope[:, free]
                Y[:, free] = self._least(rows, along, X[:, free])
                reached, steepness = function(Y)
                better = reached < value
                if not better.any():
                    break
                for own, new in ((X, Y), (value, reached), (slope, steepness)):
                    own[better] = new[better]
            self.offer(rows, X[:, free], [g])

    def _balls(self, rows: Index) -> NormConstraint | None:
        """Those of some regions."""
        balls = self.family.balls
        return None if balls is None else balls._replace(center=balls.center[rows])

    def _least(self, rows: Index, slope: Rows, at: Rows) -> Rows:
        """Points (n, f) of some regions that minimise `slope.x`, about; `at` where it is 0."""
        low, high = self.inner_low[rows], self.inner_high[rows]
        balls = self._balls(rows)
        if balls is None:
            return np.where(slope > 0, low, np.where(slope < 0, high, at))
        return balls.drawn_in(np.clip(balls.least(slope, low, high), low, high))

    def offer(self, rows: PerRow, points: Rows, goals: Sequence[int]) -> None:
        """Certified values of some goals at points (n, f), drawn into their regions."""
        points = np.clip(points, self.inner_low[rows], self.inner_high[rows])
        balls = self._balls(rows)
        if balls is not None:
            points = balls.drawn_in(points)
        values = self.family.ceilings(points, goals)
        for k, g in enumerate(goals):
            self._take(rows, g, values[:, k], points)

    def _take(self, rows: np.ndarray, g: int, values: np.ndarray, points: np.ndarray) -> None:
        """Keep what is smaller, at points of the region."""
        inside = (points >= self.inner_low[rows]) & (points <= self.inner_high[rows])
        better = inside.all(axis=1) & (values < self.upper[rows, g])
        balls = self._balls(rows)
        if balls is not None:
            better &= balls.holds(points)
        self.upper[rows[better], g] = values[better]
        self.points[rows[better], g] = points[better]
