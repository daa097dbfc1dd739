"""Batches of sub-boxes of a region, in its free coordinates; and the `Frame` in which a kernel is
expanded there, shifted to the region's centre and scaled exactly.

    x_j = origin_j + unit_j * (frame coordinate)_j,    unit_j a power of two.

A power of two as unit makes the scaling exact: a frame coordinate of a float carries one rounding,
that of the subtraction, `|fl - real| <= U |fl|`.

Proofs: docs/mathematics.md, statements 13.1 and 13.5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, cast

import array_api_compat
import numpy as np

from gpcert.numerics.arrays import (
    Array,
    Backend,
    Index,
    PerCell,
    PerCellAndFeature,
    PerRow,
    PerVector,
    Points,
    Reals,
    Rows,
    Vectors,
    namespace,
    to_numpy,
)
from gpcert.numerics.rounding import TINY, U, nonnegative, up

if TYPE_CHECKING:
    from gpcert.regions.base import Region
    from gpcert.regions.norm_ball import NormConstraint


FAR = 2.0**500
"""See `Cells.scaled_minimum`: lengths beyond are taken in this unit."""


@dataclass(frozen=True, eq=False)
class Cells:
    """B boxes `[lower, upper]` (B, f) in the f free coordinates of a region, on one backend.

    What a cell stands for is its intersection with the region. All bounds below are about the
    exact float64 numbers `lower`, `upper` and `center`.

    >>> from gpcert.regions import Box
    >>> root = Box([0.0, 0.0], [1.0, 2.0]).root()
    >>> children = root.split(np.array([1]))
    >>> children.lower.tolist(), children.upper.tolist()
    ([[0.0, 0.0], [0.0, 1.0]], [[1.0, 1.0], [1.0, 2.0]])
    """

    region: Region
    lower: PerCellAndFeature
    upper: PerCellAndFeature
    balls: NormConstraint | None = field(default=None, kw_only=True)
    """Of cells of many balls inside the region, which is then a box: the ball of each, alike but
    for their centres (B, f), on the backend."""
    choice: Annotated[Array, "B groups"] | None = field(default=None, kw_only=True)
    """Of cells of `Slices`: the category of every group that each of them holds."""

    @property
    def ball(self) -> NormConstraint | None:
        """What a cell is cut to besides its box; `center` is (f,), or (B, f) where each has one."""
        return self.region.norm_constraint if self.balls is None else self.balls

    @staticmethod
    def around(region: Region, center: PerCellAndFeature, half: PerCellAndFeature) -> Cells:
        """Boxes with exactly these centres and half-widths (B, f); the region is a box."""
        cells = Cells(region, center - half, center + half)
        vars(cells).update(center=center, half=half)
        return cells

    def __len__(self) -> int:
        return int(self.lower.shape[0])

    @property
    def constraint(self) -> Region | NormConstraint:
        """What knows which points the cells stand for."""
        return self.region if self.balls is None else self.balls

    @cached_property
    def middle(self) -> PerCellAndFeature:
        """The rounded midpoint (B, f), clipped into the cell: where it is cut."""
        return self.clipped(self.region.cuts(0.5 * self.lower + 0.5 * self.upper))

    @cached_property
    def center(self) -> PerCellAndFeature:
        """The float point (B, f) of each cell about which it is described."""
        return self.constraint.cell_centers(self)

    @cached_property
    def half(self) -> PerCellAndFeature:
        """Half-widths (B, f): `[center - half, center + half]` contains the cell; 0 if it has none.

        Reason: a difference of floats is off by at most a factor `1 + U`, and exact where it is
        below 2^-1021, so the factor `1 + 4U` steps over it and keeps zero.
        """
        xp = namespace(self.lower)
        wide = xp.maximum(self.upper - self.center, self.center - self.lower)
        return wide * (1.0 + 4.0 * U)

    @property
    def is_box(self) -> bool:
        """Whether bounds over a cell are those over its box."""
        return self.balls is None and not self.region.bounds_cells

    @property
    def widths(self) -> PerCellAndFeature:
        """`upper - lower` (B, f), rounded; for choosing where to split."""
        return self.upper - self.lower

    def split(self, axis: PerCell) -> Cells:
        """Cut cell i in the middle along `axis[i]`: all lower parts, then all upper parts.

        The cut is a float inside the cell that both parts share, so they cover it exactly.
        """
        xp = namespace(self.lower)
        at = self._indices(axis)[:, None] == self._indices(np.arange(self.lower.shape[1]))[None, :]
        first = xp.where(at, self.middle, self.upper)
        second = xp.where(at, self.middle, self.lower)
        return self._others(
            xp.concat([self.lower, second], axis=0),
            xp.concat([first, self.upper], axis=0),
            lambda of: xp.concat([of(self), of(self)], axis=0),
        )

    def can_split(self, axis: Array | None = None) -> PerCell:
        """Mask (B,): a float lies strictly inside along `axis` (default: the widest axis)."""
        xp = namespace(self.lower)
        inside = (self.middle > self.lower) & (self.middle < self.upper)
        if self.lower.shape[1] == 0:
            return xp.any(inside, axis=-1)
        index = xp.argmax(self.widths, axis=-1) if axis is None else self._indices(axis)
        return xp.take_along_axis(inside, index[:, None], axis=-1)[:, 0]

    def take(self, index: Annotated[Array, "i"]) -> Cells:
        """The cells at an index array or under a mask."""
        return self._others(self.lower[index], self.upper[index], lambda of: of(self)[index])

    def with_ends(self, lower: PerCellAndFeature, upper: PerCellAndFeature) -> Cells:
        """Other boxes in the place of these."""
        return replace(self, lower=lower, upper=upper)

    @staticmethod
    def concatenate(batches: Sequence[Cells]) -> Cells:
        """One batch of several batches of the same region."""
        xp = namespace(batches[0].lower)
        return batches[0]._others(
            xp.concat([cells.lower for cells in batches], axis=0),
            xp.concat([cells.upper for cells in batches], axis=0),
            lambda of: xp.concat([of(cells) for cells in batches], axis=0),
        )

    def _others(
        self, lower: Array, upper: Array, rows: Callable[[Callable[[Any], Array]], Array]
    ) -> Cells:
        """Other cells of the region; `rows` makes what each of them has from what cells have."""
        balls = self.balls and self.balls._replace(center=rows(lambda cells: cells.balls.center))
        choice = None if self.choice is None else rows(lambda cells: cells.choice)
        return Cells(self.region, lower, upper, balls=balls, choice=choice)

    def linear_minimum(self, g: Vectors) -> PerVector:
        """Certified lower bound of `min g.(x - center)` over each cell, g (B, f) or (B, m, f).

        >>> from gpcert.regions import Ball
        >>> root = Ball([0.0, 0.0], 1.0, norm=2).root()
        >>> round(float(root.linear_minimum(np.array([[3.0, 4.0]]))[0]), 12)
        -5.0
        """
        return self.constraint.linear_minimum(self, g)

    def linear_maximum(self, g: Vectors) -> PerVector:
        """Certified upper bound of `max g.(x - center)` over each cell."""
        return -self.linear_minimum(-g)

    def scaled_minimum(self, slope: Vectors, inverse: Array) -> PerVector:
        """Lower bound of `min slope.d`, `d = (x - center) inverse`, over each cell; slope (B, f) or
        (B, m, f). What underflows is counted, two roundings of every slope are the caller's.

        Reason: `slope inverse` is a subnormal number, or 0, where lengths are of 1e200 and slopes
        small, and what that loses meets |x - center|: all slopes are taken `FAR` times as large
        there, and TINY times |x - center| is more than what is then left of it (Statement 16.5).
        """
        xp = namespace(slope)
        if slope.shape[-1] == 0:
            return self.linear_minimum(slope)
        one = xp.ones_like(xp.min(inverse))
        # slopes in unit form, some 2^40 at most, times these stay floats
        far = (xp.min(inverse) < 1.0 / FAR) & (xp.max(inverse) < 2.0**900 / FAR)
        scale = xp.where(far, FAR * one, one)
        half = self.half[:, None, :] if slope.ndim == 3 else self.half
        meets = xp.where(slope != 0, 1.0 + half / scale, xp.zeros_like(slope))
        lower = self.linear_minimum(slope * (inverse * scale)) / scale
        return lower - TINY * xp.sum(meets, axis=-1)

    def squared_norm_maximum(self, weights: Array, unit: Array | None = None) -> PerCell:
        """Certified upper bound (B,) of `max sum_j weights_j ((x_j - center_j) / unit_j)^2`.

        weights >= 0; `unit` (f,) are powers of two, 1 by default: squares of displacements of
        1e-200 would vanish.
        """
        xp = namespace(self.lower)
        w = xp.asarray(weights, dtype=xp.float64, device=array_api_compat.device(self.lower))
        return self.constraint.squared_norm_maximum(self, w, unit)

    def contract(self) -> tuple[Cells, PerCell]:
        """Smaller cells that hold the same points of the region, and a mask (B,) of those that are
        proved to hold none."""
        return self.constraint.contract(self)

    def feasible(self) -> tuple[Cells, Annotated[np.ndarray, "k"]]:
        """The contracted cells but for those that hold no point of the region, and the numbers of
        the cells that are left."""
        cells, empty = self.contract()
        keep = np.flatnonzero(~to_numpy(empty))
        return (cells if len(keep) == len(self) else cells.take(keep)), keep

    def empty(self) -> PerCell:
        """Mask (B,): the cell is proved to miss the region."""
        return self.contract()[1]

    def points_full(self, X_free: Annotated[Array, "n f"]) -> Annotated[np.ndarray, "n d"]:
        """Host points (n, d) with free coordinates X_free (n, f), the others from the region."""
        free, region = to_numpy(X_free), cast("Any", self.region)
        points = np.tile(self.region.center, (free.shape[0], 1))
        points[:, self.region.free] = free
        return points if self.choice is None else region.points_at(points, to_numpy(self.choice))

    def clipped(self, points: Array) -> PerCellAndFeature:
        """The points of the cells nearest to points (f,) or (B, f)."""
        xp = namespace(self.lower)
        return xp.minimum(xp.maximum(points, self.lower), self.upper)

    def placed(self, host: Array) -> Annotated[Array, "..."]:
        """An array of the host where the cells are."""
        if not isinstance(host, np.ndarray):
            return host
        device = array_api_compat.device(self.lower)
        return namespace(self.lower).asarray(np.array(host), device=device)

    def _indices(self, axis: Any) -> Array:
        xp, device = namespace(self.lower), array_api_compat.device(self.lower)
        index = axis if array_api_compat.is_array_api_obj(axis) else np.asarray(axis)
        return xp.asarray(index, dtype=xp.int64, device=device)


def separable_minima(zeroth: PerCell, first: PerCellAndFeature, half: Array) -> PerCellAndFeature:
    """`min zeroth d_j^2 - 2 first_j d_j` over |d_j| <= half_j, in plain floating point: at an end,
    or at `first / zeroth` where that is inside."""
    xp = namespace(first)
    ends = zeroth[:, None] * half**2 - 2.0 * xp.abs(first) * half
    inside = xp.abs(first) < zeroth[:, None] * half
    safe = xp.where(inside, zeroth[:, None] + 0.0 * first, xp.ones_like(first))
    # first * (first / zeroth), not first^2 / zeroth: the square of 1e-160 would vanish
    return xp.where(inside, -first * (first / safe), ends)


def squared_distance_ranges(
    cells: tuple[Array, Array], points: Annotated[Array, "N d"], fixed: Annotated[Array, "... N"]
) -> tuple[Array, Array]:
    """(B, N) ends of `|x - z_i|^2 + fixed_i` over boxes `cells`, centres and half-widths (B, f), in
    plain floating point: f + 3 roundings beyond those of the coordinates."""
    center, half = cells
    xp = namespace(center)
    # one row per cell, also where no feature is free (f = 0)
    low = fixed + xp.zeros_like(xp.sum(center, axis=1))[:, None]
    high = low + 0.0
    for j in range(points.shape[1]):
        gap = xp.abs(center[:, j, None] - points[None, :, j])
        far = gap + half[:, j, None]
        far *= far  # in place: new memory costs as much as the arithmetic
        high += far
        near = nonnegative(gap - half[:, j, None])
        near *= near
        low += near
    return low, high


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


UNITS = ("inverse_length", "squared_lengths", "unit")


def box_minimum(g: Vectors, half: Array) -> PerVector:
    """Certified `-sum_j |g_j| half_j`, the minimum of `g.z` over `|z| <= half`.

    Reason: a dot product of f terms carries f roundings, and all its terms have one sign.
    """
    xp = namespace(g, half)
    f = int(g.shape[-1])
    if f == 0:
        return xp.zeros_like(xp.sum(g, axis=-1))
    return -up(xp.sum(xp.abs(g) * half, axis=-1), f + 1)


def box_maximum(weights: Array, half: Rows) -> PerRow:
    """Certified `sum_j weights_j half_j^2`; each term carries two roundings, the sum f."""
    xp = namespace(half)
    f = int(half.shape[-1])
    if f == 0:
        return xp.sum(half, axis=-1)
    return up(xp.sum(weights * half * half, axis=-1), f + 3)
