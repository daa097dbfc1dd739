"""Which cell of a paving a point is in: the tree of cuts, found again from the cells alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from gpcert.errors import InputError
from gpcert.numerics.arrays import PerRow, Rows

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
