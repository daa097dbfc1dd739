"""The coordinates in which a kernel is expanded: shifted to the region's centre, scaled exactly.

    x_j = origin_j + unit_j * (frame coordinate)_j,    unit_j a power of two.

A power of two as unit makes the scaling exact: a frame coordinate of a float carries one rounding,
that of the subtraction, `|fl - real| <= U |fl|`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from gpcert.numerics.arrays import Backend, Index, Points, Reals
from gpcert.numerics.rounding import up
from gpcert.regions.base import Region


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
    held: tuple[np.ndarray, ...] = ()
    """Groups of the fixed features that cells hold at values of their own, as in `Slices`; -1 for
    columns that are not among the inputs."""

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
        return Frame(free, fixed, region.center[fixed], origin, unit, radius, backend, region.held)

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
        known = dict(zip(self.fixed.tolist(), self.fixed_values.tolist(), strict=True))
        fixed = np.array([int(j) in known for j in dims], dtype=bool)
        values = np.array([known[int(j)] for j in dims if int(j) in known], dtype=np.float64)
        scales = (self.origin[columns], self.unit[columns], self.radius[columns])
        place = {int(j): k for k, j in enumerate(dims)}
        held = tuple(np.array([place.get(int(j), -1) for j in group]) for group in self.held)
        ends = np.flatnonzero(~fixed), np.flatnonzero(fixed), values
        return Frame(*ends, *scales, self.backend, held)
