"""Cells that planes cut: on one side of a plane a condition is proved to hold, on one side of
another it is proved to fail; what that says of points, of boxes and of volumes.

Proofs: docs/mathematics.md, statements 21.1 and 21.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

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
    parts, found = cells.shares(classes), []
    for k in range(parts.shape[1]):
        others = np.delete(parts, k, axis=1)
        rest = np.clip(up(1.0 - down(others.sum(axis=1), parts.shape[1]), 1), 0.0, 1.0)
        nothing = np.any(others == 1.0, axis=1)
        if classes or k:
            nothing |= cells.within == OUTSIDE
        lower = np.where(parts[:, k] > 0, down(least * parts[:, k], 1), 0.0)
        upper = np.where(nothing, 0.0, up(most * rest, 1))
        ends = _total(np.maximum(lower, 0.0), -math.inf), _total(upper, math.inf)
        found.append((max(ends[0], 0.0), min(ends[1], 1.0)))
    return found


def _total(values: PerRow, towards: float) -> float:
    """The sum of floats, rounded to the next one in a direction; exact where that is 0."""
    total = math.fsum(values.tolist())
    return math.nextafter(total, towards) if total else total
