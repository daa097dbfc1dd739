"""The largest union of cells that a map keeps inside, from boxes around the images of the cells.

Proofs: docs/mathematics.md, statement 21.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated

import numpy as np

from gpcert.numerics.arrays import Index

PerCell = Annotated[np.ndarray, "R"]
Numbers = Annotated[np.ndarray, "R n"]
Corner = Annotated[np.ndarray, "n"]
Images = Annotated[np.ndarray, "R m n 2"]


@dataclass(frozen=True, eq=False)
class GridCells:
    """Cells of a grid of `edges`, one array for each axis, from number `first` (R, n) on and `size`
    (R,) numbers wide in every axis."""

    edges: Sequence[np.ndarray]
    first: Numbers
    size: PerCell

    def __len__(self) -> int:
        return len(self.size)

    @staticmethod
    def of(low: Corner, high: Corner, counts: Sequence[int], halvings: int) -> GridCells:
        """So many equal cells an axis, which can be halved as often as that."""
        size = 2**halvings
        edges = [
            np.linspace(a, b, count * size + 1)
            for a, b, count in zip(low, high, counts, strict=True)
        ]
        first = np.stack(np.meshgrid(*(np.arange(k) * size for k in counts), indexing="ij"), -1)
        first = first.reshape(-1, len(counts))
        return GridCells(edges, first, np.full(len(first), size))

    def take(self, index: Index) -> GridCells:
        """The cells at an index array or under a mask."""
        return GridCells(self.edges, self.first[index], self.size[index])

    def joined(self, other: GridCells) -> GridCells:
        """These cells and others of the same grid."""
        first = np.concatenate([self.first, other.first])
        return GridCells(self.edges, first, np.concatenate([self.size, other.size]))

    @property
    def low(self) -> Annotated[np.ndarray, "R n"]:
        """Lower corners."""
        return np.stack([e[self.first[:, j]] for j, e in enumerate(self.edges)], axis=1)

    @property
    def high(self) -> Annotated[np.ndarray, "R n"]:
        """Upper corners."""
        last = self.first + self.size[:, None]
        return np.stack([e[last[:, j]] for j, e in enumerate(self.edges)], axis=1)

    def halves(self) -> GridCells:
        """The 2^n parts of every cell, halved in every axis."""
        half = self.size // 2
        parts = [self.first + half[:, None] * np.array(at) for at in product((0, 1), repeat=self.n)]
        return GridCells(self.edges, np.concatenate(parts), np.tile(half, 2**self.n))

    @property
    def n(self) -> int:
        """Axes."""
        return len(self.edges)

    def painted(self) -> Annotated[np.ndarray, "..."]:
        """Which cells of the grid are part of these."""
        grid = np.zeros([len(e) - 1 for e in self.edges], dtype=bool)
        for size in np.unique(self.size).tolist():
            first = self.first[self.size == size]
            for at in product(range(size), repeat=self.n):
                grid[tuple((first + np.array(at)).T)] = True
        return grid


def kept_inside(cells: GridCells, images: Images) -> tuple[PerCell, PerCell]:
    """Which cells (R,) the largest union of cells has that holds, for each of its cells, one of m
    boxes `images`; and the number (R,) of the middle one of those that are inside.

    Correctness (Statement 21.4): cells are taken out while none of their boxes lies in the union of
    those that are left, in exact comparisons.
    """
    first, last, usable = _numbers(cells, images)
    inside = np.ones(len(cells), dtype=bool)
    while True:
        outside = ~cells.take(inside).painted()
        holes = outside.astype(np.int64)
        for axis in range(cells.n):
            holes = np.cumsum(holes, axis=axis)
        holes = np.pad(holes, [(1, 0)] * cells.n)
        count = np.zeros(usable.shape, dtype=np.int64)
        for at in product((0, 1), repeat=cells.n):
            corner = np.where(np.array(at, dtype=bool), last, first)
            sign = (-1) ** (cells.n - sum(at))
            count += sign * holes[tuple(np.moveaxis(corner, -1, 0))]
        good = usable & (count == 0)
        again = inside & good.any(axis=1)
        if np.array_equal(again, inside):
            rank = np.cumsum(good, axis=1)
            middle = good & (rank == (rank[:, -1:] + 1) // 2)
            return inside, np.where(inside, middle.argmax(axis=1), -1)
        inside = again


def _numbers(
    cells: GridCells, images: Images
) -> tuple[np.ndarray, np.ndarray, Annotated[np.ndarray, "R m"]]:
    """The numbers of the grid's cells that hold boxes, from `first` on up to before `last`, and
    which boxes lie in the grid."""
    first, last = np.zeros(images.shape[:3], dtype=int), np.ones(images.shape[:3], dtype=int)
    usable = np.ones(images.shape[:2], dtype=bool)
    for j, edges in enumerate(cells.edges):
        low, high = images[:, :, j, 0], images[:, :, j, 1]
        usable &= (low >= edges[0]) & (high <= edges[-1])
        first[..., j] = np.searchsorted(edges, low, side="right") - 1
        last[..., j] = np.searchsorted(edges, high, side="left")
        most = len(edges) - 1
        first[..., j] = np.clip(first[..., j], 0, most - 1)
        last[..., j] = np.clip(last[..., j], first[..., j] + 1, most)
    return first, last, usable


def at_edge(cells: GridCells, kept: PerCell) -> PerCell:
    """(R,) which cells that are not kept and can be halved touch one that is."""
    inside = cells.take(kept).painted()
    near = inside
    for axis in range(cells.n):
        near = near | np.roll(near, 1, axis) | np.roll(near, -1, axis)
    touched = np.zeros(len(cells), dtype=bool)
    for size in np.unique(cells.size).tolist():
        rows = np.flatnonzero(cells.size == size)
        for at in product((0, size - 1), repeat=cells.n):
            touched[rows] |= near[tuple((cells.first[rows] + np.array(at)).T)]
    return touched & ~kept & (cells.size > 1)
