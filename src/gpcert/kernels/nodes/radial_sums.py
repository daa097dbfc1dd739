"""Weighted sums over the points of a batch of a radial kernel, all in one pass.

Blocks of cells whose arrays stay in the cache: of all that has an entry a cell and a point nothing
but the distances is kept, and the exponentials are taken once for all F_n.

Proofs: docs/mathematics.md, statements 3.6, 3.8 and 4.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from gpcert.arrays import PerCellAndFeature, PerCellAndPoint, row_blocks
from gpcert.kernels.nodes.base import Jet
from gpcert.kernels.nodes.radial_remainder import TENSOR_DEGREES
from gpcert.kernels.nodes.symmetric_tensors import dense

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

    def jet(self, node: LocalRadial, centers: PerCellAndFeature) -> Jet:
        """Of the sum at the centres."""
        moments, f = node.higher_moments, centers.shape[1]
        gradient = moments.centred(self.slope, centers, 1) * node.scale
        hessian = dense(moments.centred(self.bend, centers, 2), f, 2)
        hessian = hessian * (node.scale[:, None] * node.scale[None, :])
        identity = np.eye(f) * node.scale**2
        return Jet(self.value, gradient, hessian - self.slope[0][0][:, None, None] * identity)


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
    node, moments, B = batch.node, batch.node.higher_moments, len(batch.r)
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
