"""Sums over many points of what depends on their distances alone, by bins of the distance.

What rounding and Taylor's remainders cost at a point of weight a is |a| times a function of its
distance r. With the weights of each bin of r added up, `sum_i |a_i| e(r_i)` is at most the sum over
bins of that weight times the largest e of the bin: one look at every point for all such functions,
whose tables are made once a region and size of cell. The moments come of the same look
(`sum_over_points`), in blocks of cells whose arrays stay in the cache.

Proofs: docs/mathematics.md, statements 3.6, 3.8 and 4.1.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from gpcert.arrays import Array, PerCell, PerCellAndPoint, PerRow, row_blocks
from gpcert.kernels.nodes.base import Beyond, Jet
from gpcert.kernels.nodes.moments import dense
from gpcert.kernels.nodes.radial_variations import (
    FAR,
    MOST_TENSOR_FEATURES,
    SLACK,
    TENSOR_DEGREES,
    DistanceRange,
    beyond_of_tensors,
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

FINENESS = 128.0
"""Bin j holds distances from (j / 128)^2 to ((j+1) / 128)^2, the last one all beyond: of width
0.016 at 1 and 0.03 at 4, finer near 0 where rough kernels change fast."""

MOST_BINS = 512
"""The last of them begins at 15.9; `LocalRadial.bins` are enough for a region."""

BLOCK = 2**18
"""Numbers a step: matrix products of hundreds of columns are as fast as they get."""


class PointSums(NamedTuple):
    """`totals` (B, bins): the sizes of the weights by bins of distance; `value` (B,): the sum of
    `a s F_0`; `slope`, `bend`: moments about 0 of `a s F_1` and `a s F_2` up to degree 1 and 2;
    `tensors`: those of degrees 3 and 4, of points that have them (`TENSOR_DEGREES`)."""

    totals: np.ndarray
    value: np.ndarray
    slope: list[np.ndarray]
    bend: list[np.ndarray]
    tensors: list[list[np.ndarray]] | None


def bin_numbers(r: PerCellAndPoint, bins: int) -> PerCellAndPoint:
    """(rows, N): the bins of distances, those of each row after those of the last."""
    numbers = np.sqrt(r)
    numbers *= FINENESS
    np.minimum(numbers, bins - 1.0, out=numbers)
    found = numbers.astype(np.int64)
    found += (bins * np.arange(len(found)))[:, None]
    return found


def totals_by_bin(
    numbers: PerCellAndPoint, sizes: np.ndarray | None, bins: int
) -> Annotated[np.ndarray, "B bins"]:
    """(rows, bins): sums of sizes (N,) or (rows, N), or counts."""
    own = None if sizes is None else np.broadcast_to(sizes, numbers.shape).reshape(-1)
    cells = len(numbers)
    found = np.bincount(numbers.reshape(-1), weights=own, minlength=cells * bins)
    return found.reshape(cells, bins)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def sum_over_points(
    batch: RadialBatch, weights: Annotated[np.ndarray, "... N"], goes_on: np.ndarray | None
) -> PointSums:
    """With weights a (N,) or (B, N); with tensors of the points in bins (B, bins) that go on beyond
    order 3, if any are given."""
    node, moments, B = batch.node, batch.node.table, len(batch.r)
    degrees = (1, 2) if goes_on is None else (1, 2, *TENSOR_DEGREES)
    raw = [np.empty((moments.rows(degree), B)) for degree in degrees]
    totals, value = np.empty((B, node.bins)), np.empty(B)
    for block in row_blocks(batch.r, BLOCK):
        r, own = batch.r[block], weights if weights.ndim == 1 else weights[block]
        numbers = bin_numbers(r, node.bins)
        totals[block] = totals_by_bin(numbers, np.abs(own), node.bins)
        terms = node.profile.weighted(r, node.variance * own, 2 if goes_on is None else 4)
        value[block] = terms[0].sum(axis=1)
        used = terms[1:3]
        if goes_on is not None:
            used = [*used, *_kept(terms[2:], goes_on[block], numbers)]
        for place, (out, term, degree) in enumerate(zip(raw, used, degrees, strict=True)):
            if place == 2 and term is terms[2]:  # all points go on: sums that are known
                out[:, block] = raw[1][: len(out), block]
            else:
                out[:, block] = moments.products(term, degree)
    split = [moments.by_degree(out, degree) for out, degree in zip(raw, degrees, strict=True)]
    return PointSums(totals, value, split[0], split[1], split[2:] or None)


def _kept(terms: list[np.ndarray], goes_on: np.ndarray, numbers: np.ndarray) -> list[np.ndarray]:
    """0 for points in other bins: few, if any."""
    if goes_on.all():
        return terms
    outside = np.flatnonzero(~goes_on.reshape(-1)[numbers])
    if len(outside) == 0:
        return terms
    found = [term.copy() for term in terms]
    for term in found:
        term.reshape(-1)[outside] = 0.0
    return found


FEWEST_POINTS = 256
"""For each size of cell: of fewer (cell, point) the table costs more than they do themselves."""

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
    if not isinstance(r, np.ndarray) or r.size < FEWEST_POINTS:
        return False
    if not batch.regular or not float(batch.rho.max()) <= LARGEST_RHO:
        return False
    if r.shape[1] < FEWEST_POINTS and r.size < FEWEST_POINTS * len(rounded_sizes(batch.rho)[0]):
        return False
    if node.bins < MOST_BINS:
        return True
    last = ((node.bins - 1) / FINENESS) ** 2
    return node.profile.peak(0, STEEP) <= last or float(r.max()) < (node.bins / FINENESS) ** 2


def rounded_sizes(rho: PerCell) -> tuple[np.ndarray, np.ndarray]:
    """The sizes of cells that occur, each rounded up, and (B,) which is whose."""
    mantissa, exponent = np.frexp(rho)
    rounded = np.ldexp(np.ceil(mantissa * (2 * SIZES)) / (2 * SIZES), exponent)
    return np.unique(rounded, return_inverse=True)


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
        sizes, errors = self.node.regular_accuracy(self.high, self.extents, (value, slope, bend))
        return (1.0 + SLACK) * np.stack([*sizes, *errors], axis=1)

    @cached_property
    def rounding(self) -> tuple[PerRow, PerRow]:
        """(bins,): what degrees 3 and 4 may be off by, for rho = 1."""
        profile = self.node.profile
        F = profile.terms(self.low, (2, 0), (3, 0), (4, 0))
        ends = (self.low, self.high)
        cubic, quartic = self.node.tensor_rounding(ends, self.error, self.extents, F)
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
        sizes, whose = rounded_sizes(self.batch.rho)
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
        sums, node, centers = self._sums, self.batch.node, self.batch.centers
        gradient = node.table.centred(sums.slope, centers, 1)
        hessian = dense(node.table.centred(sums.bend, centers, 2), centers.shape[1], 2)
        return node.jet(sums.value, sums.slope[0][0], gradient, hessian)

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
