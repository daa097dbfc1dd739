"""Terms of a plain Taylor model: the kernel at the centre, the remainder of degree 2 point by
point, the rounding of summed coefficients, and quadratic forms over `||phi(c+d) - phi(c)||^2`.

Expansions are made in blocks of cells, so that what is computed of each (cell, point) stays in a
processor's cache. Bounds of rough kernels take some hundred elementwise passes over arrays (cells,
points), a dozen or two of which are alive at a time. Where those of a whole batch leave the cache,
every pass waits for the memory, and new arrays of more than 32 MB for the system's pages. A tensor
is one block: a GPU wants few and large steps.

Proofs: docs/mathematics.md, statements 3.4, 3.5, 6.2 and 16.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, TypeVar, cast

import numpy as np

from gpcert.kernels.expansions.base import Expansion, FunctionModel, QuadraticForm, finite_product
from gpcert.kernels.nodes.base import (
    CubicPart,
    DerivativeBounds,
    Jet,
    LocalNode,
    NodeBatch,
    TaylorRemainder,
    Triple,
)
from gpcert.kernels.nodes.radial_bins import BinnedSums
from gpcert.kernels.sizes import euclidean
from gpcert.numerics.arrays import Array, PerCell, PerCellAndBin, PerCellAndPoint, namespace
from gpcert.numerics.rounding import gamma, given, up
from gpcert.regions.scaled import ScaledCells

T = TypeVar("T", bound=tuple[Any, ...])

BLOCK = 2**17
"""Numbers (1 MB) of one array of a block."""

MIN_CELLS = 64
"""Of a block: what is done once a block must not cost more than its cells."""

BINNED_CELLS = 1024
"""Of a block whose sums over points go by bins of distances: those take blocks of their own."""


@dataclass(frozen=True, eq=False)
class TaylorExpansion(Expansion):
    """A kernel's functions of N points at the centres, and how far its features bend over the
    cells."""

    geometry: ScaledCells
    node: LocalNode
    in_frame: ScaledCells
    """The cells as the node sees them: scaled exactly."""
    count: int

    @cached_property
    def batch(self) -> NodeBatch:
        """The functions at the centres; of many cells those of the blocks are used instead."""
        return self.node.at(self.in_frame)

    @cached_property
    def K(self) -> PerCellAndPoint:  # pyright: ignore[reportIncompatibleVariableOverride]
        """See `Expansion`: not computed before it is asked for."""
        return self.gathered(lambda block: (block.batch.value,))[0]

    def spread(self, weights: Array) -> PerCellAndPoint:
        """Weights (N,) or (B, N), for every cell."""
        xp, cells = namespace(weights), self.geometry.rho2.shape[0]
        return xp.broadcast_to(weights, (cells, weights.shape[-1]))

    def roundings(self, points: int) -> int:
        """Of a sum over so many points, see `NodeBatch.contract`."""
        return points + 4 * self.geometry.half.shape[1] + 32

    @cached_property
    def sizes(self) -> DerivativeBounds:
        """How far the features bend; not asked of single points."""
        return self.node.derivative_bounds(self.in_frame)

    @property
    def blocks(self) -> list[tuple[slice, TaylorExpansion]]:
        """The cells in blocks, each with an expansion of its own."""
        return self._parts or [(slice(None), self)]

    @cached_property
    def _parts(self) -> list[tuple[slice, TaylorExpansion]]:
        """None where one block holds all (it would refer to itself)."""
        return self.split(BINNED_CELLS if self.node.has_bins else MIN_CELLS)

    def split(self, fewest: int = MIN_CELLS) -> list[tuple[slice, TaylorExpansion]]:
        """Blocks of about `BLOCK` numbers an array, of no fewer cells than that; none where one
        holds all."""
        cells, on_host = self.geometry.rho2.shape[0], isinstance(self.geometry.rho2, np.ndarray)
        most = max(fewest, BLOCK // max(1, self.count)) if on_host else max(1, cells)
        number = -(-cells // most)
        if number <= 1:
            return []
        step = -(-cells // number)
        rows = (slice(start, min(start + step, cells)) for start in range(0, cells, step))
        return [(part, self._part(part)) for part in rows]

    def _part(self, rows: slice) -> TaylorExpansion:
        index = np.arange(rows.start, rows.stop)
        in_frame = self.in_frame.take(index)
        return TaylorExpansion(self.geometry.take(index), self.node, in_frame, self.count)

    def gathered(self, compute: Callable[[TaylorExpansion], T]) -> T:
        """A tuple of arrays of all cells, from those of each block."""
        answers = [compute(block) for _, block in self.blocks]
        if len(answers) == 1:
            return answers[0]
        concat = namespace(self.geometry.rho2).concat
        return cast("T", tuple(concat(list(each), axis=0) for each in zip(*answers, strict=True)))


def joined(parts: Sequence[FunctionModel]) -> FunctionModel:
    """The model of all cells, from those of each block; degree 3 where it is known of all."""
    if len(parts) == 1:
        return parts[0]
    concat = namespace(parts[0].value).concat

    def each(records: Sequence[object], name: str) -> Array:
        return concat([getattr(record, name) for record in records], axis=0)

    cubics = [part.cubic for part in parts if part.cubic is not None]
    known = ("tensor", "rest", "absolute") if len(cubics) == len(parts) else ()
    return FunctionModel(
        value=each(parts, "value"),
        gradient=each(parts, "gradient"),
        hessian=each(parts, "hessian"),
        errors=each(parts, "errors"),
        below=each(parts, "below"),
        above=each(parts, "above"),
        linear_error=each(parts, "linear_error"),
        gained=any(part.gained for part in parts),
        cubic=CubicPart(*(each(cubics, name) for name in known)) if known else None,
    )


@dataclass(frozen=True, eq=False)
class CenterTerm:
    """The function `x -> k(x, c)` on each cell: its jet, and the remainder with and without it.

    `with_jet` (B,) bounds the remainder of degree 2: `|<phi(c), r_2>| <= |phi(c)| R2`, or the
    node's own bound. `value_only` (B,) bounds that of the value alone: `|phi(c)| R0`, and
    `R0^2 / 2` for a stationary kernel, where `k(0) - k(d) = ||phi(c+d) - phi(c)||^2 / 2`.
    """

    jet: Jet
    errors: Triple
    with_jet: Array
    value_only: Array

    @staticmethod
    def of(batch: NodeBatch, sizes: DerivativeBounds) -> CenterTerm:
        """From the node's own jet at the centres."""
        jet, errors = batch.diagonal_jet()
        with_jet = finite_product(sizes.lengths[0], sizes.remainder(2))
        if sizes.stationary:
            value_only = up(0.5 * sizes.remainder(0) ** 2, 4)
        else:
            value_only = finite_product(sizes.lengths[0], sizes.remainder(0))
        xp = namespace(with_jet)
        closer = batch.diagonal_second_order_remainder()
        if closer is not None:
            with_jet = xp.minimum(with_jet, closer)
        usable = xp.isfinite(errors[1]) & xp.isfinite(errors[2])
        return CenterTerm(
            jet, errors, xp.where(usable, with_jet, xp.full_like(with_jet, math.inf)), value_only
        )

    def added(self, jet: Jet, use: PerCell) -> Jet:
        """The jet of a sum with it, its derivatives where `use` says."""
        xp = namespace(use)
        gradient = xp.where(use[:, None], self.jet.gradient, 0.0 * jet.gradient)
        hessian = xp.where(use[:, None, None], self.jet.hessian, 0.0 * jet.hessian)
        return jet.plus(Jet(self.jet.value, gradient, hessian))


def pointwise_remainder(
    batch: NodeBatch, weights: Array, slack: Array | None, binned: BinnedSums | None = None
) -> tuple[TaylorRemainder, Annotated[Array, "B _"] | None]:
    """The remainder of degree 2 of `sum_i a_i k(., z_i)`, and the points left out (B, N), or
    their bins (B, bins) if they are `binned`; None where none is.

    That of the points which are not near is `NodeBatch.second_order_remainder`; for a point so near
    that `S_3i / 6` is larger than S_1i, its value alone is kept, with a remainder of at most S_1i.
    The weights' errors, of norm at most `slack`, meet a vector of such bounds: Cauchy-Schwarz.
    """
    if binned is not None:
        beyond, left_out = binned.remainder()
        if slack is not None:
            beyond = beyond.raised(finite_product(slack, binned.remainder_norm()))
        return beyond, left_out
    xp = namespace(weights)
    first, third = batch.first_and_third()
    smooth = up(third / 6.0, 1)
    near = ~(smooth <= first)
    left = xp.where(near, first, smooth)
    zero = xp.zeros_like(left)
    magnitudes = xp.where(near, xp.abs(weights), zero)
    terms = xp.where(magnitudes > 0, magnitudes * left, zero)
    total = up(xp.sum(terms, axis=1), weights.shape[1] + 4)
    if slack is not None:
        total = up(total + finite_product(slack, euclidean(left)), 1)
    return batch.second_order_remainder(xp.where(near, zero, weights), third).raised(total), near


def binned_errors(
    binned: BinnedSums, near: PerCellAndBin | None, slack: PerCell | None, roundings: int
) -> list[PerCell]:
    """`coefficient_errors` by bins of distance, `near` (B, bins)."""
    sizes, errors = binned.accuracy(near)
    total = errors + gamma(roundings) * sizes
    if slack is not None:
        norms = binned.size_norms(near)
        total = total + finite_product(slack[:, None] + 0.0 * norms, norms)
    return [up(total[:, order], 16) for order in range(3)]


def coefficient_errors(
    batch: NodeBatch, weights: Array, near: Array | None, slack: Array | None, roundings: int
) -> list[PerCell]:
    """Rounding (B,) of value, gradient and Hessian of the contracted sum, near points left out.

    Each is a sum of N terms bounded by `|a_i| sizes_i`, in at most N + 4f + 32 roundings, whose
    parts carry `errors`; the weights' own errors meet the vector of the sizes (Cauchy-Schwarz).
    """
    xp = namespace(weights)
    N = weights.shape[1]
    rounding = gamma(roundings)
    everything = xp.abs(weights)
    smooth = everything if near is None else xp.where(near, xp.zeros_like(weights), everything)
    errors = []
    for order in range(3):
        magnitudes = everything if order == 0 else smooth
        size, error = batch.sizes[order], batch.errors[order]
        total = weighted_sizes(magnitudes, error) + rounding * weighted_sizes(magnitudes, size)
        if slack is not None:
            used = size
            if order > 0 and near is not None:
                used = xp.where(near, xp.zeros_like(weights), size)
            norm = euclidean(xp.broadcast_to(used, weights.shape))
            total = total + finite_product(slack, norm)
        errors.append(up(total, N + 16))
    return errors


def weighted_sizes(magnitudes: PerCellAndPoint, size: Array) -> PerCell:
    """`sum_i magnitudes_bi size_i`, infinite sizes of points without weight left out."""
    xp = namespace(magnitudes)
    if size.ndim == 1 and bool(xp.all(xp.isfinite(size))):
        return magnitudes @ size
    spread = xp.broadcast_to(size, magnitudes.shape)
    present = magnitudes > 0
    safe = xp.where(present, spread, xp.zeros_like(magnitudes))
    return xp.sum(magnitudes * safe, axis=1)


def step_form(
    sizes: DerivativeBounds, covariance: QuadraticForm, geometry: ScaledCells
) -> QuadraticForm:
    """A quadratic form over `||phi(c+d) - phi(c)||^2`: the better of two, cell by cell.

    With G the derivatives' covariance at c: for a stationary kernel the step is at most `d^T G d`
    (as `2 - 2 cos u <= u^2`); for any other, phi(c+d) - phi(c) = D d + r and Young's inequality
    give `(1 + eta) d^T G d + (1 + 1/eta) R1^2`. And always the constant R0^2.
    """
    xp = namespace(geometry.rho2)
    constant = up(sizes.remainder(0) ** 2, 2)
    infinite = xp.full_like(constant, math.inf)
    known = xp.isfinite(covariance.error)
    G_error = xp.where(known, covariance.error, xp.zeros_like(constant))
    size = QuadraticForm(covariance.matrix, G_error * geometry.rho2).reach(geometry)
    matrix, error = covariance.matrix, up(G_error * geometry.rho2, 4)
    if not sizes.stationary:
        R1 = sizes.remainder(1)
        known = known & xp.isfinite(R1)
        safe = xp.where(known, R1, xp.zeros_like(R1))
        root = xp.sqrt(size)
        eta = xp.where(
            root > 0, safe / xp.where(root > 0, root, xp.ones_like(root)), 1.0 + 0 * root
        )
        eta = given(xp.maximum(eta, xp.full_like(eta, SMALLEST_RATIO)))
        matrix = matrix * (1.0 + eta)[:, None, None]
        error = up(error * (1.0 + eta) + safe * safe * (1.0 + 1.0 / eta), 8)
        size = size * (1.0 + eta)
    error = up(error + gamma(8) * size, 4)  # of the products, and of adding it to another matrix
    reach = xp.where(known, size + error, infinite)
    take = reach < constant
    return QuadraticForm(
        xp.where(take[:, None, None], matrix, xp.zeros_like(matrix)),
        xp.where(take, error, constant),
    )


SMALLEST_RATIO = 1e-6
"""Keeps 1/eta finite where the remainder vanishes; any positive value will do."""
