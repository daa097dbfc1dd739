"""Boxes and balls inside a set of cells that planes cut.

Proofs: docs/mathematics.md, statement 21.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from gpcert.numerics.arrays import Rows
from gpcert.numerics.rounding import down
from gpcert.search.cut_cells import INSIDE, CutCells, least_over

HALVINGS = 26
"""Steps of a bisection for how far a box can grow."""

STARTS, STEPS, WIDENED, TRIALS = 48, 48, 6, 40
"""Points from which a box is grown, steps of the search for a better middle, boxes that are
widened, and how often the best is grown again after one side was drawn in."""

Corner = Annotated[np.ndarray, "f"]
Ends = Annotated[np.ndarray, "2 f"]


@dataclass(frozen=True, eq=False)
class InnerCells:
    """Cells and half-spaces, q for each: a point of a cell is in the set where it is in all of its
    half-spaces. `whole` (2, f) is the box that the cells cover."""

    cells: CutCells
    whole: Ends

    @staticmethod
    def of(cells: CutCells, needed: Annotated[np.ndarray, "n q p"], whole: Ends) -> InnerCells:
        """From cells and the half-spaces `needed` of each; those that are in the set with all their
        points are left out, as they keep nothing from growing."""
        planes = np.stack([needed, needed], axis=2)
        inside = (cells.within == INSIDE) & np.all(needed[..., -1] == math.inf, axis=1)
        left = CutCells(cells.low, cells.high, planes, cells.within).take(~inside)
        return InnerCells(left, whole)

    def holds(self, low: Corner, high: Corner) -> bool:
        """Whether every point of a box, which has an interior, is proved to be in the set."""
        if not (np.all(low < high) and np.all(low >= self.whole[0])):
            return False
        return bool(np.all(high <= self.whole[1])) and _free(self._met(low, high), low, high)

    def _met(self, low: Corner, high: Corner) -> CutCells:
        """The cells whose interiors meet that of a box."""
        cells = self.cells
        return cells.take(np.flatnonzero(np.all((cells.low < high) & (cells.high > low), axis=1)))

    def grown(self, least: Ends, most: Ends) -> Ends:
        """The largest box between `least`, which is inside, and `most` that bisection finds along
        the segment from the one to the other."""
        cells = self._met(*most)
        if _free(cells, *most):
            return most
        first, last = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = 0.5 * (first + last)
            ends = self._between(least, most, middle)
            if np.all(ends[0] < ends[1]) and _free(cells, *ends):
                first = middle
            else:
                last = middle
        return self._between(least, most, first) if first else least

    @staticmethod
    def _between(least: Ends, most: Ends, part: float) -> Ends:
        ends = least + part * (most - least)
        return np.stack([np.maximum(ends[0], most[0]), np.minimum(ends[1], most[1])])

    def around(self, center: Corner, aspect: Corner) -> Ends:
        """The largest box about a point with sides in some proportion; of width 0 if there is
        none."""
        distance = np.minimum(center - self.whole[0], self.whole[1] - center)
        reach = float(np.min(distance / aspect))
        most = np.stack([center - reach * aspect, center + reach * aspect])
        most = np.clip(most, self.whole[0], self.whole[1])
        return self.grown(np.stack([center, center]), most)

    def widened(self, box: Ends, about: Corner | None) -> Ends:
        """A box with its sides moved out one after the other, in pairs about a point if given."""
        f = len(box[0])
        for j in range(f) if about is not None else range(2 * f):
            most = box.copy()
            if about is None:
                most[j % 2, j // 2] = self.whole[j % 2, j // 2]
            else:
                reach = min(about[j] - self.whole[0, j], self.whole[1, j] - about[j])
                most[:, j] = about[j] - reach, about[j] + reach
                most[:, j] = np.clip(most[:, j], *self.whole[:, j])
                most[:, j] = min(most[0, j], box[0, j]), max(most[1, j], box[1, j])
            box = self.grown(box, most)
        return box

    def largest(self, starts: Rows, aspect: Corner | None, center: Corner | None) -> Ends | None:
        """A large box inside, grown from points, or about one; its proportions are free if none are
        given. None where nothing is found."""
        rng, width = np.random.default_rng(0), self.whole[1] - self.whole[0]
        shape = width if aspect is None else aspect
        if center is not None:
            box = self.around(center, shape)
        else:
            box = self._best_middle(starts, shape, rng)
        if not np.all(box[0] < box[1]):
            return None
        if aspect is None:
            others = [self.around(start, shape) for start in starts] if center is None else []
            tried = [box, *sorted(others, key=_size, reverse=True)[:WIDENED]]
            box = max((self.widened(each, center) for each in tried if _size(each) > 0), key=_size)
            for _ in range(TRIALS):
                tried = box.copy()
                side, j = int(rng.integers(0, 2)), int(rng.integers(0, len(width)))
                part = rng.uniform(0.05, 0.5)
                tried[side, j] += part * (box[1 - side, j] - box[side, j])
                if center is not None:
                    tried[1 - side, j] = 2.0 * center[j] - tried[side, j]
                    tried[:, j] = np.clip(tried[:, j], *box[:, j])
                others = self._regrown(tried, center, j)
                if _size(others) > _size(box):
                    box = others
        return box if self.holds(*box) else None

    def _regrown(self, box: Ends, center: Corner | None, last: int) -> Ends:
        """A box with its sides moved out, that of one axis after the others."""
        held = InnerCells(self.cells, self.whole.copy())
        held.whole[:, last] = box[:, last]
        box = held.widened(box, center)
        return self.widened(box, center)

    def _best_middle(self, starts: Rows, shape: Corner, rng: np.random.Generator) -> Ends:
        """The largest box of a shape, about points near the best of `starts`."""
        best = max((self.around(start, shape) for start in starts), key=_size)
        step = 0.25
        for k in range(STEPS):
            middle = 0.5 * best[0] + 0.5 * best[1]
            move = step * rng.normal(size=len(shape)) * np.maximum(best[1] - best[0], 1e-3 * shape)
            if k % 8 == 0 and _size(best) > 0:  # away from what is near on one side only
                wide = self.widened(best, None)
                move = 0.5 * (wide[0] + wide[1]) - middle
            tried = self.around(np.clip(middle + move, *self.whole), shape)
            better = _size(tried) > _size(best)
            best, step = (tried, 1.2 * step) if better else (best, 0.9 * step)
        return best

    def distance(self, x: Corner, p: float) -> float:
        """A lower bound of the distance in the norm l_p, 2 or infinity, from a point of the set to
        the nearest that is not proved to be in it."""
        cells, faces = self.cells, np.concatenate([x - self.whole[0], self.whole[1] - x])
        nearest = float(down(faces.min(), 1))
        if not len(cells):
            return max(nearest, 0.0)
        gaps = np.maximum(np.maximum(down(cells.low - x, 1), down(x - cells.high, 1)), 0.0)
        apart = np.sqrt(np.sum(gaps**2, axis=1)) if p == 2 else gaps.max(axis=1)
        planes, point = cells.planes, np.tile(x, (len(cells), 1))
        slope, value = planes[:, :, 0, :-1], least_over(planes, point, point)[..., 0]
        size = np.sqrt(np.sum(slope**2, axis=-1)) if p == 2 else np.abs(slope).sum(axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            off = np.where(size > 0, value / size, np.where(value > 0, math.inf, 0.0)).min(axis=1)
        off = np.where(cells.within == INSIDE, np.maximum(off, 0.0), 0.0)
        least = float(np.maximum(apart, off).min())
        return max(0.0, min(nearest, float(down(least, 4 * len(x) + 8))))


def _free(cells: CutCells, low: Corner, high: Corner) -> bool:
    """Whether the parts of cells in a box, which all meet it, are proved to be in the set."""
    if not np.all(cells.within == INSIDE):
        return False
    ends = np.maximum(cells.low, low), np.minimum(cells.high, high)
    apart = np.any(ends[0] >= ends[1], axis=1)
    return bool(np.all(apart | np.all(least_over(cells.planes, *ends)[..., 0] > 0, axis=1)))


def _size(box: Ends) -> float:
    return float(np.prod(np.maximum(box[1] - box[0], 0.0)))
