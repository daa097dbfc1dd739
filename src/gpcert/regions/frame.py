"""The coordinates in which a kernel is expanded: shifted to the region's centre, scaled exactly.

    x_j = origin_j + unit_j * (frame coordinate)_j,    unit_j a power of two.

A power of two as unit makes the scaling exact: a frame coordinate of a float carries one rounding,
that of the subtraction, `|fl - real| <= U |fl|`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from gpcert.numerics.arrays import Array, Backend, Index, PerCell, Points, Reals, namespace
from gpcert.numerics.rounding import nonnegative, up
from gpcert.regions import Cells, Region


def power_of_two(lengths: Reals) -> Reals:
    """The power of two nearest to each length (in its logarithm); 1 for infinite ones."""
    finite = np.isfinite(lengths)
    exponent = np.round(np.log2(np.where(finite, lengths, 1.0)))
    return np.ldexp(1.0, np.clip(exponent, -1000, 1000).astype(int))


def widths_as_units(region: Region) -> Annotated[np.ndarray, "f"]:
    """(f,) powers of two near the widths of a region in its free features."""
    widths = (region.upper - region.lower)[region.free]
    return power_of_two(np.where((widths > 0) & np.isfinite(widths), widths, np.inf))


@dataclass(frozen=True, eq=False)
class Frame:
    """Which inputs are free, where the others are held, and the coordinates of the free ones.

    `radius` (f,) bounds `|x_j - origin_j| / unit_j` for every centre x of the region. All arrays
    are on the host; `backend` is where the expansions run.
    """

    free: np.ndarray
    fixed: np.ndarray
    fixed_values: np.ndarray
    origin: np.ndarray
    unit: np.ndarray
    radius: np.ndarray
    backend: Backend

    @staticmethod
    def of(region: Region, lengths: Annotated[np.ndarray, "d"], backend: Backend) -> Frame:
        """The frame of a region for a kernel with these typical lengths (d,)."""
        free, fixed = region.free, region.fixed
        origin = region.center[free]
        offsets = np.maximum(region.upper[free] - origin, origin - region.lower[free])
        lengths = np.asarray(lengths, dtype=np.float64)[free]
        # the region's own size where the kernel has none
        unit = power_of_two(np.where(np.isfinite(lengths) | (offsets == 0), lengths, offsets))
        with np.errstate(over="ignore"):
            radius = np.asarray(up(offsets / unit, 4))
        return Frame(free, fixed, region.center[fixed], origin, unit, radius, backend)

    def points(self, points: Points) -> Annotated[np.ndarray, "N f"]:
        """Frame coordinates (N, f) of host points (N, d): one rounding each."""
        return (points[:, self.free] - self.origin) / self.unit

    def extents(self, points: Points) -> Annotated[np.ndarray, "N f"]:
        """(N, f) upper bounds of `|z_j| + |c_j|` in frame coordinates, c any centre."""
        return np.asarray(up(np.abs(self.points(points)) + self.radius, 4))

    def columns(self, dims: Index) -> Annotated[np.ndarray, "columns"]:
        """Positions, among the free features, of those that lie in `dims`, in the order of dims."""
        place = {int(j): i for i, j in enumerate(self.free)}
        return np.asarray([place[int(j)] for j in dims if int(j) in place], dtype=int)

    def restricted(self, dims: Index) -> Frame:
        """The frame of a kernel that sees only the inputs `dims` (in that order)."""
        columns = self.columns(dims)
        held = dict(zip(self.fixed.tolist(), self.fixed_values.tolist(), strict=True))
        fixed = np.array([int(j) in held for j in dims], dtype=bool)
        values = np.array([held[int(j)] for j in dims if int(j) in held], dtype=np.float64)
        own = (self.origin[columns], self.unit[columns], self.radius[columns])
        return Frame(np.flatnonzero(~fixed), np.flatnonzero(fixed), values, *own, self.backend)


@dataclass(frozen=True, eq=False)
class Reach:
    """A batch of cells as a kernel sees it: centres and the displacements d that they allow.

    `center` (B, f) are frame coordinates (one rounding each), `raw` (B, f) the exact floats in the
    user's units, `half` (B, f) bounds |d_j| in frame coordinates. `cells` and `columns` let a ball
    bound weighted norms of d better than its bounding box does.
    """

    center: Array
    raw: Array
    half: Array
    unit: Array
    cells: Cells | None = None
    columns: np.ndarray | None = None

    @staticmethod
    def of(cells: Cells, frame: Frame) -> Reach:
        """Cells of a region in its frame."""
        unit, origin = (frame.backend.asarray(a) for a in (frame.unit, frame.origin))
        half = cells.half / unit  # exact
        columns = np.arange(len(frame.unit))
        return Reach((cells.center - origin) / unit, cells.center, half, unit, cells, columns)

    def take(self, rows: slice, cells: Cells | None) -> Reach:
        """That of some of the cells, which are `cells`."""
        own = (self.center[rows], self.raw[rows], self.half[rows])
        return Reach(own[0], own[1], own[2], self.unit, cells, self.columns)

    def squared_norm(self, weights: Annotated[Array, "f"]) -> PerCell:
        """Upper bound (B,) of `sum_j weights_j d_j^2` over each cell, weights (f,) >= 0."""
        xp = namespace(self.half)
        with np.errstate(over="ignore"):
            box = self._sum(weights, self.half**2)
        if self.cells is None or self.cells.is_box:
            return box
        assert self.columns is not None
        place = self.half.device
        everything = xp.zeros(self.cells.lower.shape[1], dtype=self.half.dtype, device=place)
        # features that the kernel does not see have no weight: any unit will do
        units = everything + (xp.min(self.unit) if len(self.unit) else 1.0)
        index = xp.asarray(self.columns, device=place)
        everything[index], units[index] = weights, self.unit
        ball = self.cells.squared_norm_maximum(everything, units)
        return nonnegative(xp.where(ball < box, ball, box))  # an overflow to NaN improves nothing

    def length(self, weights: Annotated[Array, "f"]) -> PerCell:
        """Upper bound (B,) of `sum_j weights_j |d_j|`, weights (f,) >= 0."""
        return self._sum(weights, self.half)

    def _sum(self, weights: Array, sizes: Array) -> Array:
        """`sum_j weights_j sizes_j`, rounded up, where sizes (B, f) may be infinite: they count
        where the weight is not zero; zero only where nothing moves."""
        xp = namespace(sizes)
        moves = (weights > 0) & (self.half > 0)  # not where the product is zero: squares underflow
        total = xp.sum(weights * xp.where(moves, sizes, xp.zeros_like(sizes)), axis=1)
        raised = up(total, self.half.shape[1] + 4)
        return xp.where(xp.any(moves, axis=1), raised, xp.zeros_like(total))

    def restricted(self, columns: Index) -> Reach:
        """The same cells for a kernel that sees only some of the free features."""
        index = namespace(self.half).asarray(columns, device=self.half.device)
        center, raw, half = (part[:, index] for part in (self.center, self.raw, self.half))
        kept = None if self.columns is None else self.columns[columns]
        return Reach(center, raw, half, self.unit[index], self.cells, kept)
