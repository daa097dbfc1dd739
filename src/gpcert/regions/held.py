"""Features that cells hold at values of their own: one category of each group of one-hot columns.

Proofs: docs/mathematics.md, statement 13.16.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from gpcert.numerics.arrays import (
    Array,
    Index,
    Inputs,
    PerCell,
    PerCellAndFeature,
    PerCellAndPoint,
    Points,
    Rows,
)
from gpcert.regions.base import Region
from gpcert.regions.cells import Cells
from gpcert.regions.discrete import Discrete
from gpcert.regions.one_hot import OneHot
from gpcert.regions.shapes import Box


@dataclass(frozen=True, eq=False, init=False)
class Slices(Region):
    """The parts of a `OneHot` region where every group has one category, in the coordinates of the
    other features; which categories those are each cell says itself (`Cells.choice`).

    For bounds over cells alone: points belong to the `OneHot` region. Of boxes, with whole numbers
    and values too: no constraint joins categories and other features.
    """

    kind = "slices"

    region: Region
    lower: np.ndarray
    upper: np.ndarray
    whole: OneHot

    def __init__(self, whole: OneHot, region: Region) -> None:
        self._set(whole=whole, region=region, lower=region.lower, upper=region.upper)
        self._set(center=region.center)

    @staticmethod
    def of(whole: OneHot) -> Slices | None:
        """Those of a region; None where it is no box, nothing else is free, or a category has no
        column."""
        base, columns = whole.region, whole.groups.every
        box = base.region if isinstance(base, Discrete) else base
        if type(box) is not Box or any(whole.groups.dropped):
            return None
        lower, upper = box.lower.copy(), box.upper.copy()
        lower[columns] = upper[columns] = whole.center[columns]
        inner: Region = Box(lower, upper)
        if isinstance(base, Discrete):
            integers = [j for j in base.integers.tolist() if j not in columns]
            values = {j: each for j, each in base.values.items() if j not in columns}
            inner = Discrete(inner, integers, values) if integers or values else inner
        return Slices(whole, inner) if len(inner.free) else None

    @property
    def held(self) -> tuple[Annotated[np.ndarray, "_"], ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The columns of each group."""
        return self.whole.groups.columns

    @cached_property
    def columns(self) -> Annotated[np.ndarray, "q"]:
        """Which of the other region's free features are free here."""
        return np.searchsorted(self.whole.free, self.free)

    def choices(self, low: Rows, high: Rows) -> Annotated[np.ndarray, "n groups"]:
        """The category (its place in the group) of every group in boxes [low, high] (n, f) of the
        other region's free features, contracted ones; -1 where there are several."""
        ends = np.tile(self.whole.lower, (len(low), 1)), np.tile(self.whole.upper, (len(low), 1))
        ends[0][:, self.whole.free], ends[1][:, self.whole.free] = low, high
        places = []
        for group in self.held:
            may = ends[1][:, group] >= 1.0
            places.append(np.where(may.sum(axis=1) == 1, np.argmax(may, axis=1), -1))
        return np.stack(places, axis=1)

    def cells(
        self,
        low: PerCellAndFeature,
        high: PerCellAndFeature,
        choice: Annotated[Array, "B groups"],
    ) -> Cells:
        """Boxes [low, high] (B, q) of the features free here, at categories (B, groups)."""
        return Cells(self, low, high, choice=choice)

    def contains(self, X: Any) -> Annotated[Array, "..."]:
        return self.whole.contains(X)

    def sample(self, n: int, random_state: Any = None) -> Inputs:
        return self.whole.sample(n, random_state)

    def describe(self) -> dict[str, Any]:
        return self.whole.describe()

    def contract(self, cells: Cells) -> tuple[Cells, PerCell]:
        inner, empty = self.region.contract(Cells(self.region, cells.lower, cells.upper))
        return cells.with_ends(inner.lower, inner.upper), empty

    def cuts(self, middle: PerCellAndFeature) -> PerCellAndFeature:
        return self.region.cuts(middle)

    def points_at(self, points: Inputs, choice: Annotated[np.ndarray, "n groups"]) -> Inputs:
        """Points (n, d) with these categories (n, groups)."""
        rows = np.arange(len(points))
        for group, chosen in zip(self.held, choice.T, strict=True):
            points[:, group] = 0.0
            points[rows, group[chosen]] = 1.0
        return points


@dataclass(frozen=True, eq=False)
class HeldDistances:
    """Squared scaled distances of N points from cells in the features that are held: `rest` (N,)
    where they have one value, `tables` (k, N) of the k categories of each group."""

    rest: Array
    tables: tuple[Array, ...]

    @staticmethod
    def of(
        points: Points,
        lengths: Annotated[np.ndarray, "d"],
        groups: tuple[np.ndarray, ...],
        rest: tuple[np.ndarray, np.ndarray],
        place: Callable[[np.ndarray], Array],
    ) -> tuple[HeldDistances, Annotated[np.ndarray, "N"]]:
        """From points (N, d), `rest` the fixed features and their values, and the largest distances
        (N,). Columns of a group that the kernel does not see are -1.

        Sums of squares of differences that come first: as many relative roundings as there are
        features, and four more, in whichever order they are added.
        """
        grouped = np.concatenate(groups)
        features, values = rest
        free = ~np.isin(features, grouped)
        features, values = features[free], values[free]
        fixed = np.square((points[:, features] - values) / lengths[features]).sum(axis=1)
        most, tables = fixed.copy(), []
        for group in groups:
            seen = group >= 0
            off, on = np.zeros((2, len(group), len(points)))
            columns = points[:, group[seen]].T
            off[seen] = np.square(columns / lengths[group[seen], None])
            on[seen] = np.square((columns - 1.0) / lengths[group[seen], None])
            others = [off[:a].sum(0) + off[a + 1 :].sum(0) for a in range(len(off))]
            table = np.stack(others) + on
            tables.append(place(table))
            most += table.max(axis=0)
        return HeldDistances(place(fixed), tuple(tables)), most

    def at(self, cells: Cells) -> PerCellAndPoint:
        """(B, N) of the cells' own categories."""
        assert cells.choice is not None, "cells of `Slices` say their categories"
        total = self.rest[None, :]
        for g, table in enumerate(self.tables):
            total = total + table[cells.choice[:, g]]
        return total + 0.0 * cells.lower[:, :1]

    def restricted(self, index: Index) -> HeldDistances:
        """Of some of the points."""
        return HeldDistances(self.rest[index], tuple(table[:, index] for table in self.tables))
