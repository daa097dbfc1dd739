"""Sums over many points of what depends on their distances alone, by bins of the distance.

What rounding and Taylor's remainders cost at a point of weight a is |a| times a function of its
distance r. With the weights of each bin of r added up, `sum_i |a_i| e(r_i)` is at most the sum over
bins of that weight times the largest e of the bin: one look at every point for all such functions,
whose tables are made once a region and size of cell.

Proofs: docs/mathematics.md, statement 3.8.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from gpcert.arrays import Array, PerRow, row_blocks
from gpcert.kernels.nodes.base import Jet
from gpcert.kernels.nodes.beyond import Beyond
from gpcert.kernels.nodes.radial_accuracy import regular_accuracy
from gpcert.kernels.nodes.radial_remainder import (
    MOST_TENSOR_FEATURES,
    beyond_of_tensors,
    tensor_rounding,
)
from gpcert.kernels.nodes.radial_sums import (
    FINENESS,
    MOST_BINS,
    PointSums,
    bin_numbers,
    sum_over_points,
    totals_by_bin,
)
from gpcert.kernels.nodes.radial_variations import (
    FAR,
    SLACK,
    DistanceRange,
    fifth_within,
    first,
    largest_third,
    share_weights,
    third,
)
from gpcert.rounding import root, up

if TYPE_CHECKING:
    from gpcert.kernels.nodes.radial import LocalRadial
    from gpcert.kernels.nodes.radial_batch import RadialBatch

FEWEST_POINTS = 256
"""Below, tables cost more than the points."""

STEEP = 8
"""F_n r^k falls from `w_0 = STEEP` on for all k <= 8, as `w_0 <= w_1 <= ...`."""

SIZES = 128
"""Of rho an octave: tables are made for rho rounded up to one of them."""

MOST_TABLES = 512
"""Kept at most, and those of one batch more: 40 kB each."""

LARGEST_RHO = 1e20
"""Beyond, powers of rho leave float64."""

SHARES = tuple(j / 8 for j in range(1, 9))
"""Of a displacement, for the remainder of order 5: made once, they may be many."""


def serves(batch: RadialBatch) -> bool:
    """Whether bins are the cheaper way, and bound what lies in the last one."""
    node, r = batch.node, batch.r
    if not isinstance(r, np.ndarray) or len(r) == 0 or r.shape[1] < FEWEST_POINTS:
        return False
    if not batch.regular or not float(batch.rho.max()) <= LARGEST_RHO:
        return False
    if node.bins < MOST_BINS:
        return True
    last = ((node.bins - 1) / FINENESS) ** 2
    return node.profile.peak(0, STEEP) <= last or float(r.max()) < (node.bins / FINENESS) ** 2


class SizeTable(NamedTuple):
    """For one rho: bins whose points are near, those that go on to order 5, and columns (bins, 6)
    of what a weight of 1 costs there, apart from powers of rho (see `BinTables.of_sizes`)."""

    near: np.ndarray
    goes_on: np.ndarray
    columns: np.ndarray
    squares: np.ndarray


class BinTables:
    """Bounds over each bin; the points' extents count as the largest."""

    def __init__(self, node: LocalRadial) -> None:
        self.node = node
        edges = (np.arange(node.bins + 1) / FINENESS) ** 2
        # the root that tells the bin may be off by a rounding
        self.low, self.high = edges[:-1] * (1.0 - 1e-12), edges[1:] * (1.0 + 1e-12)
        self.extents = np.full(node.bins, node.largest_extent)
        self.error = node.distance_error(self.high, self.extents)
        self._sizes: dict[float, SizeTable] = {}

    @cached_property
    def accuracy(self) -> Annotated[np.ndarray, "bins 6"]:
        """(bins, 6): sizes and errors of value, gradient and Hessian.

        Factors at the lower end, where they are largest, r at the upper; the last bin holds also
        what lies beyond, where every `F_n r^k` falls.
        """
        profile = self.node.profile
        value, slope, bend = profile.terms(self.low, (0, 0), (1, 0), (2, 0))
        found = regular_accuracy(self.node, self.high, self.extents, (value, slope, bend))
        return (1.0 + SLACK) * np.stack([*found.sizes, *found.errors], axis=1)

    @cached_property
    def rounding(self) -> tuple[PerRow, PerRow]:
        """(bins,): what degrees 3 and 4 may be off by, for rho = 1."""
        profile = self.node.profile
        F = profile.terms(self.low, (2, 0), (3, 0), (4, 0))
        cubic, quartic = tensor_rounding(
            self.node, (self.low, self.high), self.error, self.extents, F
        )
        return (1.0 + SLACK) * cubic, (1.0 + SLACK) * quartic

    def of_sizes(self, sizes: list[float], tensors: bool) -> list[SizeTable]:
        """Which points end where is free to choose; costs are, with s the variance,

            s rho first                                     near: the value alone,
            s rho^3 third                                   at order 3,
            s rho^5 fifth + rho^3 cubic + rho^4 quartic     at order 5,

        and `squares` those of the first two, for errors of the weights.
        """
        if len(self._sizes) > MOST_TABLES:
            self._sizes.clear()
        missing = [rho for rho in sizes if rho not in self._sizes]
        if missing:
            found = self._of_sizes(np.asarray(missing)[:, None], tensors)
            tables = (SizeTable(*parts) for parts in zip(*found, strict=True))
            self._sizes.update(zip(missing, tables, strict=True))
        return [self._sizes[rho] for rho in sizes]

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def _of_sizes(self, rho: np.ndarray, tensors: bool) -> SizeTable:
        """Of all sizes (S, 1) at once."""
        node, profile = self.node, self.node.profile
        moved = up(self.error + rho, 4)
        high = up(self.high + moved, 2)
        high[:, -1] = FAR
        distances = DistanceRange(np.maximum(self.low - moved, 0.0) * (1.0 - 1e-12), high)
        alone = first(profile, *distances)
        ends = up(np.minimum(third(profile, *distances), largest_third(profile)) / 6.0, 1)
        center = DistanceRange(self.low - self.error, up(self.high + self.error, 2))
        center.high[-1] = FAR
        moves = np.asarray(SHARES)[:, None, None] * rho
        within = fifth_within(profile, center, distances, moves)
        fifth = up(np.tensordot(share_weights(SHARES), within, 1) / 120.0, 12)
        cubic, quartic = (part + 0.0 * rho for part in self.rounding)
        smooth = rho**3 * (cubic + rho * quartic) + node.variance * (rho**5 * fifth)
        rough = node.variance * (rho**3 * ends)
        near = ~(rough <= node.variance * (rho * alone))
        goes_on = (smooth < rough) & ~near & tensors
        columns = [near * alone, _where(~near & ~goes_on, ends), _where(goes_on, fifth)]
        columns += [_where(goes_on, cubic), _where(goes_on, quartic), _where(~near, ends)]
        squares = [near * alone**2, _where(~near, ends) ** 2]
        return SizeTable(near, goes_on, np.stack(columns, axis=2), np.stack(squares, axis=2))


def _where(mask: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.where(mask, values, 0.0)


class BinnedSums:
    """Sums over the points of a batch with weights (N,) or (B, N)."""

    def __init__(self, batch: RadialBatch, weights: Array) -> None:
        self.batch, self.weights = batch, weights
        self.tables = batch.node.bin_tables
        self.roundings = batch.r.shape[1] + batch.node.bins + 64

    @cached_property
    def _sums(self) -> PointSums:
        """With the tensors, where there are some."""
        tables, whose = self._sizes
        goes_on = np.stack([table.goes_on for table in tables])[whose] if self._tensors else None
        return sum_over_points(self.batch, self.weights, goes_on)

    @cached_property
    def totals(self) -> Annotated[np.ndarray, "B bins"]:
        """(B, bins): the sizes of the weights."""
        if "_sums" in vars(self):
            return self._sums.totals
        return self._added(np.abs(self.weights))

    def _added(self, sizes: np.ndarray | None) -> np.ndarray:
        """(B, bins): sums of sizes (N,) or (B, N), or counts."""
        r, bins = self.batch.r, self.batch.node.bins
        found = np.empty((len(r), bins))
        for block in row_blocks(r):
            own = sizes if sizes is None or sizes.ndim == 1 else sizes[block]
            found[block] = totals_by_bin(bin_numbers(r[block], bins), own, bins)
        return found

    @cached_property
    def counts(self) -> Annotated[np.ndarray, "B bins"]:
        """(B, bins): points."""
        return self._added(None)

    @property
    def _tensors(self) -> bool:
        """Whether degrees 3 and 4 are formed."""
        return 0 < self.batch.centers.shape[1] <= MOST_TENSOR_FEATURES

    @cached_property
    def _sizes(self) -> tuple[list[SizeTable], np.ndarray]:
        """Tables for the sizes of cells that occur, and (B,) which is whose."""
        mantissa, exponent = np.frexp(self.batch.rho)
        rounded = np.ldexp(np.ceil(mantissa * (2 * SIZES)) / (2 * SIZES), exponent)
        sizes, whose = np.unique(rounded, return_inverse=True)
        return self.tables.of_sizes(sizes.tolist(), self._tensors), whose

    def _dot(self, weights: np.ndarray, name: str) -> np.ndarray:
        """(B, columns): weights (B, bins) times each cell's own table."""
        tables, whose = self._sizes
        found = np.empty((len(whose), getattr(tables[0], name).shape[1]))
        for index, table in enumerate(tables):
            rows = whose == index
            found[rows] = weights[rows] @ getattr(table, name)
        return found

    def _near(self) -> np.ndarray | None:
        """(B, N): the points in bins whose points are near; None where none is."""
        tables, whose = self._sizes
        kinds = np.stack([table.near for table in tables])[whose]
        if not np.any(kinds & (self.totals > 0)):
            return None
        found = [
            kinds[block].reshape(-1)[bin_numbers(self.batch.r[block], self.batch.node.bins)]
            for block in row_blocks(self.batch.r)
        ]
        return np.concatenate(found)

    def remainder(self) -> tuple[Beyond, Annotated[np.ndarray, "B N"] | None]:
        """What degree 2 leaves, and the points (B, N) left out of it; None: no point is."""
        batch, raw = self.batch, self._sums.tensors
        s, rho = batch.node.variance, batch.rho
        near, rough, fifth, cubic, quartic, ends = self._dot(self.totals, "columns").T
        alone = s * (rho * near)
        plain = up(alone + s * (rho**3 * ends), self.roundings)
        if raw is None:
            return Beyond(plain), self._near()
        total = alone + s * (rho**3 * rough + rho**5 * fifth)
        total = up(total + rho**3 * (cubic + rho * quartic), self.roundings)
        return beyond_of_tensors(batch, raw, total, plain), self._near()

    def jet(self) -> Jet | None:
        """Of the sum of all points, where it is known already."""
        if "_sums" not in vars(self):
            return None
        return self._sums.jet(self.batch.node, self.batch.centers)

    def remainder_norm(self) -> Annotated[np.ndarray, "B"]:
        """(B,): the norm over the points of what each leaves at order 3 or 1."""
        s, rho = self.batch.node.variance, self.batch.rho
        near, ends = self._dot(self.counts, "squares").T
        return up(root((s * rho) ** 2 * near + (s * rho**3) ** 2 * ends), self.roundings)

    def accuracy(self) -> tuple[Annotated[np.ndarray, "B 3"], Annotated[np.ndarray, "B 3"]]:
        """(B, 3) each: sums of the sizes and of the errors of value, gradient and Hessian."""
        found = up(self.totals @ self.tables.accuracy, self.roundings)
        return found[:, :3], found[:, 3:]

    def size_norms(self) -> Annotated[np.ndarray, "B 3"]:
        """(B, 3): norms over the points of the sizes."""
        squares = self.counts @ self.tables.accuracy[:, :3] ** 2
        return up(root(squares), self.roundings)
