"""Cells that planes cut: on one side of a plane a condition is proved to hold, on one side of
another it is proved to fail; what that says of points, of boxes and of volumes; boxes
and balls inside a set of such cells; and which cell a point is in: the tree of cuts, found again
from the cells alone.

Proofs: docs/mathematics.md, statements 21.1, 21.2 and 21.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from gpcert.errors import InputError
from gpcert.integrals.halfspace import share_above
from gpcert.numerics.arrays import Index, PerRow, Rows
from gpcert.numerics.rounding import TINY, down, gamma, up

INSIDE, OUTSIDE = 1.0, -1.0
"""Of a cell and the region: every point of the cell is in it, or none is; 0 where neither is
proved."""

HOLDS, FAILS = 0, 1
"""The two half-spaces of a condition."""

PerCellAndSide = Annotated[np.ndarray, "n m 2"]
Planes = Annotated[np.ndarray, "n m 2 p"]


@dataclass(frozen=True, eq=False)
class CutCells:
    """Cells, a row each, which share no volume, and m conditions.

    With `*slope, offset = planes[r, c, 0]` condition c is proved to hold at every real point x of
    cell r with `slope.x + offset > 0`; with `planes[r, c, 1]` it is proved to fail there. Offsets
    of inf and -inf, with a slope of 0, mean the whole cell and nothing. `within` (n,) is INSIDE,
    OUTSIDE or 0.
    """

    low: Annotated[np.ndarray, "n f"]
    high: Annotated[np.ndarray, "n f"]
    planes: Planes
    within: Annotated[np.ndarray, "n"]

    def __len__(self) -> int:
        return len(self.low)

    def take(self, index: Index) -> CutCells:
        """The cells at an index array or under a mask."""
        return CutCells(*(part[index] for part in vars(self).values()))

    def least(self, low: Rows, high: Rows) -> PerCellAndSide:
        """Lower bounds of the planes over boxes (n, f), one for each cell."""
        return least_over(self.planes, low, high)

    @property
    def whole(self) -> PerCellAndSide:
        """Which half-spaces are whole cells."""
        return self.planes[..., -1] == math.inf

    def simplified(self) -> CutCells:
        """The same, half-spaces that hold a cell or miss it as such."""
        sure = self.least(self.low, self.high) > 0
        planes = np.where(sure[..., None], everywhere(self.low.shape[1]), self.planes)
        return CutCells(self.low, self.high, planes, self.within)

    def shares(self, classes: bool) -> Annotated[np.ndarray, "n k"]:
        """Lower bounds of the shares of each cell that are proved to be in each of k sets.

        Of `classes` the sets are those where condition c holds; else they are where some condition
        fails, and where all hold. A union has at least its largest part; an intersection 1 less
        what the parts lack together.
        """
        n, m = self.planes.shape[:2]
        width = self.high - self.low
        rise = down(np.abs(self.planes[..., :-1]) * width[:, None, None, :], 2)
        rows = np.maximum(rise, 0.0).reshape(2 * n * m, -1)
        least = self.least(self.low, self.high).reshape(-1)
        each = share_above(least, rows).reshape(n, m, 2)
        inside = (self.within == INSIDE)[:, None]
        if classes:
            return np.where(inside, each[:, :, HOLDS], 0.0)
        lost = up(np.sum(1.0 - each[:, :, HOLDS], axis=1), m + 2)
        whole = np.all(each[:, :, HOLDS] == 1.0, axis=1)
        both = np.where(whole, 1.0, np.maximum(down(1.0 - lost, 1), 0.0))
        out = np.where(self.within == OUTSIDE, 1.0, each[:, :, FAILS].max(axis=1, initial=0.0))
        return np.stack([out, np.where(inside[:, 0], both, 0.0)], axis=1)

    def sides(self, X: Rows) -> PerCellAndSide:
        """Which half-spaces the points X (n, f), one for each cell, are proved to lie in."""
        return least_over(self.planes, X, X) > 0


def least_over(planes: Planes, low: Rows, high: Rows) -> PerCellAndSide:
    """Lower bounds of `slope.x + offset` over boxes, one for each row.

    Reason: each term is least at an end, with one rounding; f of them and the offset are added.
    """
    slope, offset = planes[..., :-1], planes[..., -1]
    ends = slope * low[:, None, None, :], slope * high[:, None, None, :]
    f, finite = slope.shape[-1], np.isfinite(offset)
    with np.errstate(over="ignore", invalid="ignore"):
        start = np.where(finite, offset, 0.0)
        size = np.maximum(np.abs(ends[0]), np.abs(ends[1])).sum(axis=-1) + np.abs(start)
        value = np.minimum(*ends).sum(axis=-1) + start
        value = down(value - up(gamma(f + 2) * size, f + 4) - (f + 1.0) * TINY, 2)
        value = np.where(np.isnan(value), -math.inf, value)
    return np.where(finite, value, offset)


def everywhere(f: int) -> Annotated[np.ndarray, "p"]:
    """The plane (f + 1,) whose half-space is the whole cell; its negative's is empty."""
    plane = np.zeros(f + 1)
    plane[-1] = math.inf
    return plane


def nowhere(n: int, m: int, f: int) -> Planes:
    """Planes of which nothing is known."""
    planes = np.zeros((n, m, 2, f + 1))
    planes[..., -1] = -math.inf
    return planes


def cell_shares(
    low: Rows, high: Rows, whole: Annotated[np.ndarray, "2 f"]
) -> tuple[PerRow, PerRow]:
    """Bounds of the volumes of cells as shares of that of the box `whole` (2, f).

    Reason: three roundings an axis, and a product of f numbers at most 1.
    """
    f = low.shape[1]
    share = np.prod((high - low) / (whole[1] - whole[0]), axis=1)
    return np.maximum(down(share, 4 * f), 0.0), up(share, 4 * f)


def set_shares(
    cells: CutCells, whole: Annotated[np.ndarray, "2 f"], classes: bool
) -> list[tuple[float, float]]:
    """Bounds of the share of each set in the volume of the box `whole`, which the cells cover
    (Statement 21.2); the sets are those of `CutCells.shares`."""
    least, most = cell_shares(cells.low, cells.high, whole)
    parts, shares = cells.shares(classes), []
    for k in range(parts.shape[1]):
        others = np.delete(parts, k, axis=1)
        rest = np.clip(up(1.0 - down(others.sum(axis=1), parts.shape[1]), 1), 0.0, 1.0)
        nothing = np.any(others == 1.0, axis=1)
        if classes or k:
            nothing |= cells.within == OUTSIDE
        lower = np.where(parts[:, k] > 0, down(least * parts[:, k], 1), 0.0)
        upper = np.where(nothing, 0.0, up(most * rest, 1))
        ends = _total(np.maximum(lower, 0.0), -math.inf), _total(upper, math.inf)
        shares.append((max(ends[0], 0.0), min(ends[1], 1.0)))
    return shares


def _total(values: PerRow, towards: float) -> float:
    """The sum of floats, rounded to the next one in a direction; exact where that is 0."""
    total = math.fsum(values.tolist())
    return math.nextafter(total, towards) if total else total


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


DEEPEST = 4096
"""Cuts above one another: an axis has at most about 1100 halvings between 0 and 1."""


@dataclass(frozen=True, eq=False)
class CellTree:
    """Nodes by number: the `axis` of the cut, or -1; where it `cut`s; the `child` below, the one
    above is the next; of a node that is not cut the number of its `cell`."""

    axis: np.ndarray
    cut: np.ndarray
    child: np.ndarray
    cell: np.ndarray

    @staticmethod
    def of(low: Rows, high: Rows, whole: Annotated[np.ndarray, "2 f"]) -> CellTree:
        """From cells (n, f) that halvings made of the box `whole` (2, f), level by level."""
        axis, cut, child = (np.zeros(0, dtype=kind) for kind in (int, float, int))
        cell = np.zeros(0, dtype=int)
        order, node, ends = np.arange(len(low)), np.zeros(len(low), dtype=int), whole[None]
        for _ in range(DEEPEST):
            count = len(ends)
            starts = np.flatnonzero(np.diff(node, prepend=-1))
            single = np.bincount(node, minlength=count) == 1
            middle = 0.5 * ends[:, 0] + 0.5 * ends[:, 1]
            below, above = high[order] <= middle[node], low[order] >= middle[node]
            good = np.logical_and.reduceat(below | above, starts, axis=0)
            good &= np.logical_or.reduceat(below, starts, axis=0)
            good &= np.logical_or.reduceat(above, starts, axis=0)
            chosen = np.where(single, -1, np.argmax(good, axis=1))
            if np.any(~single & ~good.any(axis=1)):
                raise InputError("expected cells that halvings of one box made")
            at = middle[np.arange(count), chosen]
            first, inner = len(axis) + count, np.flatnonzero(~single)
            places = np.full(count, -1)
            places[inner] = first + 2 * np.arange(len(inner))
            axis, cut = np.concatenate([axis, chosen]), np.concatenate([cut, at])
            child = np.concatenate([child, places])
            cell = np.concatenate([cell, np.where(single, order[starts], -1)])
            if len(inner) == 0:
                return CellTree(axis, cut, child, cell)
            parts = np.repeat(ends[inner], 2, axis=0)
            rows = np.arange(0, len(parts), 2)
            parts[rows, 1, chosen[inner]] = parts[rows + 1, 0, chosen[inner]] = at[inner]
            left = np.flatnonzero(~single[node])
            upper = above[left, chosen[node[left]]]
            node = (places[node[left]] - first) + upper
            by_node = np.argsort(node, kind="stable")
            order, node, ends = order[left][by_node], node[by_node], parts
        raise InputError("expected cells that halvings of one box made")

    def find(self, X: Rows) -> PerRow:
        """(n,) the cell of every point (n, f) of the box; of points on a cut the one above."""
        node, rows = np.zeros(len(X), dtype=int), np.arange(len(X))
        while len(rows):
            here = node[rows]
            rows = rows[self.axis[here] >= 0]
            here = node[rows]
            upper = X[rows, self.axis[here]] >= self.cut[here]
            node[rows] = self.child[here] + upper
        return self.cell[node]
