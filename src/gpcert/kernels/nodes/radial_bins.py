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

from gpcert.kernels.nodes.base import Jet, TaylorRemainder
from gpcert.kernels.nodes.moments import dense
from gpcert.kernels.nodes.radial_bin_tables import (
    FINENESS,
    MAX_BINS,
    JetTable,
    SizeTable,
    rounded_sizes,
)
from gpcert.kernels.nodes.radial_remainder import (
    MAX_TENSOR_FEATURES,
    TENSOR_DEGREES,
    remainder_of_tensors,
)
from gpcert.numerics.arrays import Array, PerCell, PerCellAndBin, PerCellAndPoint, row_blocks
from gpcert.numerics.rounding import root, up

if TYPE_CHECKING:
    from gpcert.kernels.nodes.radial import LocalRadial
    from gpcert.kernels.nodes.radial_batch import RadialBatch

BLOCK = 2**18
"""Numbers a step: matrix products of hundreds of columns are as fast as they get."""


class BinSelection(NamedTuple):
    """In which bins (B, bins) points enter the moments of F_1 and of F_2, and the tensors of
    degrees 3 and 4; None: in all of them."""

    slope: np.ndarray | None = None
    bend: np.ndarray | None = None
    tensors: np.ndarray | None = None

    def take(self, rows: slice) -> BinSelection:
        """Those of some of the cells."""
        return BinSelection(*(None if part is None else part[rows] for part in self))


class PointSums(NamedTuple):
    """`totals` (B, bins): the sizes of the weights by bins of distance; `counts` (B, bins): the
    points, if asked for; `value` (B,): the sum of `a s F_0`; `slope`, `bend`: moments about 0 of
    `a s F_1` and `a s F_2` up to degree 1 and 2; `tensors`: those of degrees 3 and 4, if asked for
    (`TENSOR_DEGREES`)."""

    totals: np.ndarray
    counts: np.ndarray | None
    value: np.ndarray
    slope: list[np.ndarray]
    bend: list[np.ndarray]
    tensors: list[list[np.ndarray]] | None


def bin_numbers(r: PerCellAndPoint, bins: int) -> PerCellAndPoint:
    """(rows, N): the bins of distances, those of each row after those of the last."""
    numbers = np.sqrt(r)
    numbers *= FINENESS
    np.minimum(numbers, bins - 1.0, out=numbers)
    flat = numbers.astype(np.int64)
    flat += (bins * np.arange(len(flat)))[:, None]
    return flat


def totals_by_bin(numbers: PerCellAndPoint, sizes: np.ndarray | None, bins: int) -> PerCellAndBin:
    """(rows, bins): sums of sizes (N,) or (rows, N), or counts."""
    flat = None if sizes is None else np.broadcast_to(sizes, numbers.shape).reshape(-1)
    cells = len(numbers)
    totals = np.bincount(numbers.reshape(-1), weights=flat, minlength=cells * bins)
    return totals.reshape(cells, bins)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def sum_over_points(
    node: LocalRadial,
    r: PerCellAndPoint,
    weights: Annotated[np.ndarray, "... N"],
    selection: BinSelection,
    tensors: bool,
) -> PointSums:
    """With weights a (N,) or (B, N); points are counted in the latter case."""
    moments, bins, B, each = node.table, node.bins, len(r), weights.ndim > 1
    degrees = (1, 2, *TENSOR_DEGREES) if tensors else (1, 2)
    raw = [np.empty((moments.rows(degree), B)) for degree in degrees]
    totals, value = np.empty((B, bins)), np.empty(B)
    counts = np.empty((B, bins)) if each else None
    for block in row_blocks(r, BLOCK):
        row, numbers = weights[block] if each else weights, bin_numbers(r[block], bins)
        totals[block] = totals_by_bin(numbers, np.abs(row), bins)
        if counts is not None:
            counts[block] = totals_by_bin(numbers, None, bins)
        terms = node.profile.weighted(r[block], node.variance * row, 4 if tensors else 2)
        value[block] = terms[0].sum(axis=1)
        outside = [_outside(mask, numbers) for mask in selection.take(block)]
        used = [_without(terms[1], outside[0]), _without(terms[2], outside[1])]
        if tensors:
            used += [_without(term, outside[2]) for term in terms[2:]]
        for place, (out, term, degree) in enumerate(zip(raw, used, degrees, strict=True)):
            if place == 2 and term is used[1]:  # of the same points: sums that are known
                out[:, block] = raw[1][: len(out), block]
            else:
                out[:, block] = moments.products(term, degree)
    split = [moments.by_degree(out, degree) for out, degree in zip(raw, degrees, strict=True)]
    return PointSums(totals, counts, value, split[0], split[1], split[2:] or None)


def _outside(mask: np.ndarray | None, numbers: np.ndarray) -> np.ndarray | None:
    """Where, in the flat array, points are in bins that the mask leaves out; None: nowhere."""
    if mask is None or mask.all():
        return None
    outside = np.flatnonzero(~mask.reshape(-1)[numbers])
    return outside if len(outside) else None


def _without(term: np.ndarray, outside: np.ndarray | None) -> np.ndarray:
    """0 there: a factor of infinity too."""
    if outside is None:
        return term
    reduced = term.copy()
    reduced.reshape(-1)[outside] = 0.0
    return reduced


MIN_POINTS = 256
"""For each size of cell: of fewer (cell, point) the table costs more than they do themselves."""

STEEP = 8
"""F_n r^k falls from `w_0 = STEEP` on for all k <= 8, as `w_0 <= w_1 <= ...`."""

LARGEST_RHO = 1e20
"""Beyond, powers of rho leave float64."""


def serves(batch: RadialBatch, each: bool = False) -> bool:
    """Whether bins are the cheaper way, and bound what lies in the last one; `each`: for functions
    that differ from cell to cell.

    Those are the variance's, of many weights of both signs. A mean lives by its nearest points, of
    which bins say less: that of a rough kernel is bounded point by point, and that of few points
    where degrees 3 and 4 are not known.
    """
    node, r = batch.node, batch.r
    if not isinstance(r, np.ndarray) or len(r) == 0 or node.expanded:
        return False
    few, tensors = r.shape[1] < MIN_POINTS, batch.centers.shape[1] <= MAX_TENSOR_FEATURES
    if not (each or (batch.regular and (tensors or not few))):
        return False
    if not float(batch.rho.max()) <= LARGEST_RHO:
        return False
    if few and r.size < MIN_POINTS * len(rounded_sizes(batch.rho)[0]):
        return False
    if node.bins < MAX_BINS:
        return True
    last = ((node.bins - 1) / FINENESS) ** 2
    return node.profile.peak(0, STEEP) <= last or float(r.max()) < (node.bins / FINENESS) ** 2


class BinnedSums:
    """Sums over the points of a batch with weights (N,) or (B, N).

    If `pointwise`, for the remainder of degree 2 point by point: points of which the value alone is
    kept are left out of the derivatives, and degrees 3 and 4 are formed.
    """

    def __init__(self, batch: RadialBatch, weights: Array, pointwise: bool) -> None:
        self.batch, self.weights, self.pointwise = batch, weights, pointwise
        self.tables = batch.node.bin_tables
        self.roundings = batch.r.shape[1] + batch.node.bins + 64

    @property
    def _jets(self) -> JetTable:
        return self.tables.regular if self.batch.regular else self.tables.general

    @cached_property
    def _sizes(self) -> tuple[list[SizeTable], np.ndarray]:
        """Tables for the sizes of cells that occur, and (B,) which is whose."""
        sizes, whose = rounded_sizes(self.batch.rho)
        return self.tables.of_sizes(sizes.tolist(), self._tensors), whose

    @property
    def _tensors(self) -> bool:
        """Whether degrees 3 and 4 are formed."""
        return self.pointwise and 0 < self.batch.centers.shape[1] <= MAX_TENSOR_FEATURES

    @cached_property
    def _near(self) -> PerCellAndBin | None:
        """Bins of whose points the value alone is kept; None where there are none."""
        if not self.pointwise:
            return None
        tables, whose = self._sizes
        near = np.stack([table.near for table in tables])
        return near[whose] if near.any() else None

    @cached_property
    def _left_out(self) -> PerCellAndBin | None:
        """Those that hold a point with a weight."""
        return None if self._near is None else self._near & (self.totals > 0)

    def _selection(self, near: np.ndarray | None) -> BinSelection:
        """Points whose F_1 and F_2 may be used, less those of bins `near` (B, bins)."""
        B, used = len(self.batch.r), self._jets.used
        if near is None and used.all():
            slope = bend = None
        else:
            slope, bend = (np.broadcast_to(each, (B, len(each))) for each in used)
            if near is not None:
                slope, bend = slope & ~near, bend & ~near
        return BinSelection(slope, bend)

    @cached_property
    def _sums(self) -> PointSums:
        batch, selection = self.batch, self._selection(self._near)
        if self._tensors:
            tables, whose = self._sizes
            goes_on = np.stack([table.goes_on for table in tables])
            selection = selection._replace(tensors=goes_on[whose])
        return sum_over_points(batch.node, batch.r, self.weights, selection, self._tensors)

    @property
    def totals(self) -> PerCellAndBin:
        """(B, bins): the sizes of the weights."""
        return self._sums.totals

    @cached_property
    def counts(self) -> PerCellAndBin:
        """(B, bins): points."""
        if self._sums.counts is not None:
            return self._sums.counts
        r, bins = self.batch.r, self.batch.node.bins
        return np.concatenate(
            [totals_by_bin(bin_numbers(r[block], bins), None, bins) for block in row_blocks(r)]
        )

    def _dot(self, weights: np.ndarray, name: str) -> np.ndarray:
        """(B, columns): weights (B, bins) times each cell's own table."""
        tables, whose = self._sizes
        products = np.empty((len(whose), getattr(tables[0], name).shape[1]))
        for index, table in enumerate(tables):
            rows = whose == index
            products[rows] = weights[rows] @ getattr(table, name)
        return products

    def remainder(self) -> tuple[TaylorRemainder, PerCellAndBin | None]:
        """The remainder of degree 2, and the bins of points left out of it; None: no point is."""
        assert self.pointwise, "asked for sums without a remainder"
        batch, raw = self.batch, self._sums.tensors
        s, rho = batch.node.variance, batch.rho
        near, rough, fifth, cubic, quartic, ends = self._dot(self.totals, "columns").T
        alone = s * (rho * near)
        plain = up(alone + s * (rho**3 * ends), self.roundings)
        if raw is None:
            return TaylorRemainder(plain), self._left_out
        total = alone + s * (rho**3 * rough + rho**5 * fifth)
        total = up(total + rho**3 * (cubic + rho * quartic), self.roundings)
        return remainder_of_tensors(batch, raw, total, plain), self._left_out

    def jet(self, near: PerCellAndBin | None) -> Jet:
        """Of the sum of all points, less the derivatives of those in bins `near` (B, bins): those
        of `remainder` on cells where it counts, and none on others."""
        batch = self.batch
        whole = self._jet(self._sums, batch.centers)
        if self._left_out is None:
            return whole
        again = self._left_out.any(axis=1)
        if near is not None:
            again &= ~near.any(axis=1)
        if not again.any():
            return whole
        weights = self.weights[again] if self.weights.ndim > 1 else self.weights
        selection = BinSelection(
            *(None if each is None else each[again] for each in self._selection(None))
        )
        sums = sum_over_points(batch.node, batch.r[again], weights, selection, False)
        repaired = self._jet(sums, batch.centers[again])
        gradient, hessian = whole.gradient.copy(), whole.hessian.copy()
        gradient[again], hessian[again] = repaired.gradient, repaired.hessian
        return Jet(whole.value, gradient, hessian)

    def _jet(self, sums: PointSums, centers: np.ndarray) -> Jet:
        node = self.batch.node
        gradient = node.table.centred(sums.slope, centers, 1)
        hessian = dense(node.table.centred(sums.bend, centers, 2), centers.shape[1], 2)
        return node.jet(sums.value, sums.slope[0][0], gradient, hessian)

    def remainder_norm(self) -> PerCell:
        """(B,): the norm over the points of their remainders of order 3 or 1."""
        s, rho = self.batch.node.variance, self.batch.rho
        near, ends = self._dot(self.counts, "squares").T
        return up(root((s * rho) ** 2 * near + (s * rho**3) ** 2 * ends), self.roundings)

    def accuracy(
        self, near: PerCellAndBin | None = None
    ) -> tuple[Annotated[np.ndarray, "B 3"], Annotated[np.ndarray, "B 3"]]:
        """(B, 3) each: sums of the sizes and of the errors of value, gradient and Hessian; points
        in bins `near` (B, bins) may be left out of the latter two."""
        bounds = up(self._summed(self.totals, near), self.roundings)
        return bounds[:, :3], bounds[:, 3:]

    def size_norms(self, near: PerCellAndBin | None = None) -> Annotated[np.ndarray, "B 3"]:
        """(B, 3): norms over the points of the sizes."""
        return up(root(self._summed(self.counts, near, 2)[:, :3]), self.roundings)

    def _summed(self, weights: np.ndarray, near: np.ndarray | None, power: int = 1) -> np.ndarray:
        """(B, 6). Near points count as the others where all is regular."""
        sums = self._jets.summed(weights, power)
        if near is not None and not self.batch.regular:
            rows = near.any(axis=1)
            other = self._jets.summed(np.where(near[rows], 0.0, weights[rows]), power)
            other[:, [0, 3]] = sums[rows][:, [0, 3]]
            sums[rows] = other
        return sums
