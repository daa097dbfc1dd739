"""Regions that are the points of another region with some property: whole numbers, categories.

Proofs: docs/mathematics.md, statements 13.13 and 13.15.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from gpcert.errors import InputError
from gpcert.numerics.arrays import (
    Array,
    Backend,
    Index,
    Inputs,
    PerCell,
    PerVector,
    Vectors,
    namespace,
    to_numpy,
)
from gpcert.regions.base import Region
from gpcert.regions.cells import Cells

MOST_CELLS = 20_000
"""Cells that are looked at for a first point of the region."""


@dataclass(frozen=True, eq=False, init=False)
class Within(Region):
    """The points of `region` that have a property; its bounding box may be smaller, and so may be
    the number of its free features."""

    region: Region
    lower: np.ndarray
    upper: np.ndarray

    @property
    def bounds_cells(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.region.bounds_cells

    @cached_property
    def inner_lower(self) -> Annotated[np.ndarray, "d"]:
        return np.maximum(self.lower, self.region.inner_lower)

    @cached_property
    def inner_upper(self) -> Annotated[np.ndarray, "d"]:
        return np.minimum(self.upper, self.region.inner_upper)

    def values_of(self, feature: int) -> Annotated[np.ndarray, "k"] | None:
        of_itself = super().values_of(feature)
        return self.region.values_of(feature) if of_itself is None else of_itself

    @abstractmethod
    def settled(self, X: Inputs) -> Inputs:
        """Points of the region near X (n, d), which need not be in the other one."""

    def project(self, X: Any) -> Annotated[np.ndarray, "... d"]:
        """Points of the region near X: those of the other one, with the property."""
        points, single = self._points(X)
        points = self.settled(points)
        return points[0] if single else points

    # ---- cells: the other region's, whose free features may be more

    def linear_minimum(self, cells: Cells, g: Vectors) -> PerVector:
        if not self.region.bounds_cells or len(self.free) != len(self.region.free):
            return super().linear_minimum(cells, g)
        return self.region.linear_minimum(self._with_centers(cells), g)

    def squared_norm_maximum(self, cells: Cells, weights: Array, unit: Array | None) -> PerCell:
        if not self.region.bounds_cells or len(self.free) != len(self.region.free):
            return super().squared_norm_maximum(cells, weights, unit)
        return self.region.squared_norm_maximum(self._with_centers(cells), weights, unit)

    def of_region(self, cells: Cells) -> Cells:
        """The cells as those of the other region, in its free features."""
        if np.array_equal(self.free, self.region.free):
            return Cells(self.region, cells.lower, cells.upper)
        xp, wide = namespace(cells.lower), []
        place = {int(j): k for k, j in enumerate(self.free)}
        for ends, fixed in ((cells.lower, self.lower), (cells.upper, self.upper)):
            zero = 0.0 * xp.sum(ends, axis=1)
            parts = [
                ends[:, place[j]] if j in place else zero + float(fixed[j])
                for j in self.region.free.tolist()
            ]
            wide.append(xp.stack(parts, axis=1))
        return Cells(self.region, *wide)

    def _with_centers(self, cells: Cells) -> Cells:
        """The same, where the free features are the same: bounds are about the cells' centres."""
        same = self.of_region(cells)
        vars(same).update(center=cells.center, half=cells.half)
        return same

    def columns_of(self, cells: Cells) -> Index:
        """Which of the other region's free features are free here."""
        index = np.searchsorted(self.region.free, self.free)
        return namespace(cells.lower).asarray(index, device=cells.lower.device)


def first_point(region: Within, wanted: str) -> Annotated[np.ndarray, "d"]:
    """A point that the region contains, or an `InputError`: cells are halved until one is found, or
    all are proved to hold none; `wanted` is what its points have. The region has a centre, which
    need not be in it."""
    for start in (region.region.center[None], region.region.sample(16, 0)):
        points = region.settled(np.array(start))
        inside = np.asarray(region.contains(points))
        if inside.any():
            return points[np.argmax(inside)].copy()
    cells, seen = region.root(Backend()), 1
    while len(cells) and seen < MOST_CELLS:
        cells, _ = cells.feasible()
        if not len(cells):
            break
        points = region.settled(cells.points_full(cells.middle))
        inside = np.asarray(region.contains(points))
        if inside.any():
            return points[np.argmax(inside)].copy()
        axis = np.argmax(to_numpy(cells.widths), axis=1)
        can = to_numpy(cells.can_split(axis))
        if not can.all():  # single points that rounding cannot decide
            cells, axis = cells.take(np.flatnonzero(can)), axis[can]
            seen = MOST_CELLS if not len(cells) else seen
        cells = cells.split(axis) if len(cells) else cells
        seen += len(cells)
    if len(cells) or seen >= MOST_CELLS:
        raise InputError(
            f"the region may be empty: no point {wanted} was found among {seen} boxes, nor a proof "
            "that there is none; take a larger region"
        )
    raise InputError(f"the region is empty: no point {wanted} lies in it (proved box by box)")
