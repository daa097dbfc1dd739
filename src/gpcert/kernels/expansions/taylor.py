"""Any kernel inside a region: plain Taylor expansions of its functions from its tree of nodes.

For `f = sum_i t_i k(., z_i)` of norm B the remainder of the polynomial of degree n at the centre is
at most

    B R_n(cell)                    (Cauchy-Schwarz with the features' remainder),   or
    sum_i |t_i| S_3i / 6           (point by point; S_1i for points too near to be smooth).

The first is best for many points with weights of both signs, the second where few points are near.

Proofs: docs/mathematics.md, statements 2.1, 3.4, 3.5, 3.9, 6.2 and 16.3.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from gpcert.errors import InputError
from gpcert.kernels.expansions.base import (
    Combination,
    FirstOrderModels,
    FunctionModel,
    LinearModel,
    LocalKernel,
    QuadraticForm,
    finite_product,
)
from gpcert.kernels.expansions.taylor_terms import (
    CenterTerm,
    TaylorExpansion,
    binned_errors,
    coefficient_errors,
    joined,
    pointwise_remainder,
    step_form,
    weighted_sizes,
)
from gpcert.kernels.nodes.base import (
    Jet,
    LocalNode,
    NodeBatch,
)
from gpcert.kernels.nodes.radial_bins import BinnedSums
from gpcert.kernels.sizes import euclidean
from gpcert.numerics.arrays import (
    Array,
    Derivatives,
    PerCell,
    PerCellAndClass,
    namespace,
)
from gpcert.numerics.rounding import down, gamma, nonnegative, up, up_float
from gpcert.regions import Cells, Region
from gpcert.regions.cells import Frame
from gpcert.regions.image import ImageCells
from gpcert.regions.scaled import ScaledCells


@dataclass(frozen=True, eq=False)
class LocalTaylor(LocalKernel[TaylorExpansion], FirstOrderModels):
    """See the module."""

    node: LocalNode
    frame: Frame
    inverse_length: Array
    squared_lengths: Array
    unit: Array
    variance: float
    count: int
    """N, the node's points."""
    weight_rate: float = 0.0

    @staticmethod
    def build(node: LocalNode, frame: Frame, region: Region, count: int) -> LocalTaylor:
        """Bound k(x, x) over the region; the node has so many points."""
        backend = frame.backend
        inverse = 1.0 / frame.unit  # exact: powers of two
        root = node.derivative_bounds(ScaledCells.in_frame(region.root(backend), frame))
        largest = up_float(float(root.lengths[0][0]) ** 2, 4)
        if not largest <= LARGEST_VARIANCE:
            raise InputError(
                f"region: k(x, x) may reach {largest:.3g} there, expected at most "
                f"{LARGEST_VARIANCE:.3g}; take a smaller region, or check the kernel's parameters"
            )
        return LocalTaylor(
            node=node,
            frame=frame,
            inverse_length=backend.asarray(inverse),
            squared_lengths=backend.asarray(np.ones_like(inverse)),
            unit=backend.asarray(frame.unit),
            variance=largest,
            count=count,
        )

    def expand(self, cells: Cells) -> TaylorExpansion:
        in_frame = ScaledCells.in_frame(cells, self.frame)
        return TaylorExpansion(self.geometry(cells), self.node, in_frame, self.count)

    def model(
        self, expansion: TaylorExpansion, combination: Combination, pointwise: bool
    ) -> FunctionModel:
        """See `_model`, block by block."""
        blocks = expansion.blocks
        return joined(
            [self._model(block, combination.of(rows), pointwise) for rows, block in blocks]
        )

    def _model(
        self, expansion: TaylorExpansion, combination: Combination, pointwise: bool
    ) -> FunctionModel:
        """The polynomial of the best degree and its remainder, cell by cell; coefficients that
        are not used become zero."""
        batch = expansion.batch
        binned = batch.binned(combination.signed, pointwise)
        finer = [] if binned is not None else expansion.split()
        if finer:
            return joined([self._model(o, combination.of(rows), pointwise) for rows, o in finer])
        xp, a = namespace(expansion.geometry.rho2), expansion.spread(combination.signed)
        sizes = expansion.sizes
        center_term = CenterTerm.of(batch, sizes) if combination.with_center else None
        norm = xp.zeros_like(expansion.geometry.rho2) + combination.squared_norm
        norm = up(xp.sqrt(norm), 2)
        tails = [finite_product(norm, sizes.remainder(n)) for n in range(3)]
        error, degree = tails[2], xp.full_like(norm, 2.0)
        for n in (1, 0):  # the lower degree on a tie: on a single point, where all are exact
            better = tails[n] <= error
            error = xp.where(better, tails[n], error)
            degree = xp.where(better, xp.full_like(norm, float(n)), degree)
        near, gained, cubic = None, False, None
        if pointwise:
            local, left_out = pointwise_remainder(batch, a, combination.slack, binned)
            if center_term is not None:
                local = local.raised(xp.minimum(center_term.with_jet, center_term.value_only))
            better = local.size < error
            gained = bool(xp.any(better))
            cubic = None if local.cubic is None else local.cubic.where(better)
            error = xp.where(better, local.size, error)
            degree = xp.where(better, xp.full_like(norm, POINTWISE), degree)
            near = None if left_out is None else left_out & better[:, None]
        jet, errors = _summed(expansion, combination, near, binned)
        first, second, zero = degree >= 1.0, degree >= 2.0, xp.zeros_like(error)
        # points left out are missing in the gradient: it is no first order of the function
        whole = first if near is None else first & ~xp.any(near, axis=1)
        if center_term is not None:
            use = (degree < POINTWISE) | (center_term.with_jet <= center_term.value_only)
            jet, whole = center_term.added(jet, use), whole & use
            mine = [
                center_term.errors[0],
                *(xp.where(use, e, zero) for e in center_term.errors[1:]),
            ]
            errors = [e + o for e, o in zip(errors, mine, strict=True)]
        errors = [e + gamma(4) * s for e, s in zip(errors, jet.sizes, strict=True)]
        part_errors = [
            errors[0],
            xp.where(first, errors[1], zero),
            xp.where(second, errors[2], zero),
        ]
        unknown = xp.where(first, xp.full_like(zero, math.inf), tails[0])
        return FunctionModel(
            jet.value,
            xp.where(first[:, None], jet.gradient, xp.zeros_like(jet.gradient)),
            xp.where(second[:, None, None], jet.hessian, xp.zeros_like(jet.hessian)),
            up(xp.stack(part_errors, axis=1), 8),
            error,
            error,
            xp.where(whole, tails[1], unknown),
            gained,
            cubic,
        )

    def linear_models(
        self, expansion: TaylorExpansion, functions: Sequence[Combination]
    ) -> list[LinearModel] | None:
        """All by the products of `NodeBatch.first_order`; what the functions leave between two ends
        goes by its middle into the value (Statement 3.9)."""
        weights = namespace(expansion.K).stack([function.weights for function in functions])
        first = expansion.batch.first_order(weights)
        if first is None:
            return None
        xp, f = namespace(weights), first.gradient.shape[-1]
        exact = not bool(xp.any(first.low != first.high))
        if f < MANY_FEATURES and not exact:
            return None
        batch, sizes = expansion.batch, xp.abs(weights).T
        rounding, errors = gamma(expansion.roundings(len(sizes))), []
        for size, error in zip(batch.sizes[:2], batch.errors[:2], strict=True):
            total = (error + rounding * size) @ sizes
            errors.append(up(total + 0.0 * first.value, len(sizes) + 16))
        middle = 0.5 * first.low + 0.5 * first.high
        middle = xp.where(xp.isfinite(middle), middle, xp.zeros_like(middle))
        remainder = up(xp.maximum(first.high - middle, middle - first.low), 1)
        value = first.value + middle
        remainder = xp.where(first.low == first.high, abs(first.low - middle), remainder)
        errors[0] = up(errors[0] + gamma(2) * xp.abs(value), 2)
        return [
            LinearModel(
                value[:, j],
                first.gradient[:, j],
                xp.stack([error[:, j] for error in errors], axis=1),
                remainder[:, j],
            )
            for j in range(len(functions))
        ]

    def center_values(
        self, expansion: TaylorExpansion, weights: Annotated[Array, "m N"]
    ) -> tuple[PerCellAndClass, PerCellAndClass]:
        """The values of `model`, without derivatives; errors as in `coefficient_errors`."""
        return expansion.gathered(lambda block: self._center_values(block, weights))

    def _center_values(
        self, expansion: TaylorExpansion, weights: Array
    ) -> tuple[PerCellAndClass, PerCellAndClass]:
        """Of a block."""
        xp, K = namespace(expansion.K), expansion.K
        sizes, errors = expansion.batch.value_accuracy()
        magnitudes = abs(weights)
        each = errors + gamma(expansion.roundings(K.shape[1])) * sizes
        if bool(xp.all(xp.isfinite(each))):
            lost = each @ magnitudes.T
        else:  # points without a weight do not count
            spread = [xp.broadcast_to(t, K.shape) for t in magnitudes]
            lost = xp.stack([weighted_sizes(t, each) for t in spread], axis=1)
        values = K @ weights.T
        return values, up(up(lost, K.shape[1] + 16) + gamma(4) * xp.abs(values), 8)

    def center_variance(self, expansion: TaylorExpansion) -> tuple[PerCell, PerCell]:
        return expansion.gathered(_diagonal_value)

    def largest_variance(self, expansion: TaylorExpansion) -> PerCell:
        return up(expansion.sizes.lengths[0] ** 2, 2)

    def variance_range(self, expansion: TaylorExpansion) -> tuple[PerCell, PerCell]:
        """That at c for a stationary kernel; else `|phi(x)|` is within R0 of `|phi(c)|`."""
        center, error = self.center_variance(expansion)
        xp = namespace(center)
        largest = self.largest_variance(expansion)
        low, high = nonnegative(down(center - error, 2)), up(center + error, 2)
        if not expansion.sizes.stationary:
            reach = expansion.sizes.remainder(0)
            low = down(nonnegative(down(xp.sqrt(low), 2) - reach) ** 2, 6)
            high = up((up(xp.sqrt(high), 2) + reach) ** 2, 6)
            low = nonnegative(xp.where(xp.isnan(low), xp.zeros_like(low), low))
            high = xp.where(xp.isnan(high), largest, high)
        return low, xp.minimum(high, largest)

    def row_sizes(self, expansion: TaylorExpansion, order: int) -> tuple[PerCell, PerCell]:
        return expansion.gathered(lambda block: _row_sizes(block.batch, order))

    def derivatives(self, expansion: TaylorExpansion) -> Derivatives:
        return expansion.gathered(lambda block: (block.batch.gradients(),))[0]

    def derivative_parts(self, expansion: TaylorExpansion, cells: int) -> Iterator[Derivatives]:
        """Block by block."""
        del cells
        yield from (block.batch.gradients() for _, block in expansion.blocks)

    def derivative_covariance(self, expansion: TaylorExpansion) -> QuadraticForm:
        """Mixed derivatives of k at (c, c)."""
        return QuadraticForm(*expansion.gathered(lambda block: block.batch.mixed()))

    def squared_step(self, expansion: TaylorExpansion) -> QuadraticForm:
        covariance = self.derivative_covariance(expansion)
        return step_form(expansion.sizes, covariance, expansion.geometry)

    def remainder(self, expansion: TaylorExpansion, order: int) -> PerCell:
        return expansion.sizes.remainder(order)

    def step_length(self, cells: ImageCells) -> PerCell:
        """R0 of cells as wide as the offsets."""
        small = Cells.around(cells.region, cells.center, 0.0 * cells.half + cells.offset)
        return self.node.derivative_bounds(ScaledCells.in_frame(small, self.frame)).remainder(0)

    def first_tail(self, expansion: TaylorExpansion) -> PerCell:
        """R1: the features carry no weight."""
        return self.remainder(expansion, 1)


def _diagonal_value(expansion: TaylorExpansion) -> tuple[PerCell, PerCell]:
    """k(c, c) and its error."""
    jet, errors = expansion.batch.diagonal_jet()
    return jet.value, errors[0]


def _row_sizes(batch: NodeBatch, order: int) -> tuple[PerCell, PerCell]:
    """Norms over the points of sizes and errors of the derivatives of an order."""
    if order == 0:
        size, error = batch.value_accuracy()
    else:
        xp, shape = namespace(batch.value), batch.value.shape
        size, error = (xp.broadcast_to(part[order], shape) for part in (batch.sizes, batch.errors))
    return euclidean(size), euclidean(error)


LARGEST_VARIANCE = 2.0**100
"""Largest k(x, x) in units of its size at the points: kernels that grow (polynomials, exponentials)
are refused on regions where they exceed it, before float64 overflows."""

MANY_FEATURES = 13
"""From here on the second order costs more than the first."""

POINTWISE = 3.0
"""Marks a cell whose second degree is bounded point by point."""


def _summed(
    expansion: TaylorExpansion,
    combination: Combination,
    near: Array | None,
    binned: BinnedSums | None,
) -> tuple[Jet, list[PerCell]]:
    """The jet of `sum_i a_i k(., z_i)`, near points left out of its derivatives, and its errors."""
    batch, slack = expansion.batch, combination.slack
    a = expansion.spread(combination.signed)
    xp, roundings = namespace(a), expansion.roundings(a.shape[1])
    if binned is not None:
        return binned.jet(near), binned_errors(binned, near, slack, roundings)
    errors = coefficient_errors(batch, a, near, slack, roundings)
    if near is None:
        return batch.contract(a), errors
    jet = batch.contract(xp.where(near, xp.zeros_like(a), a))
    return replace(jet, value=xp.sum(a * expansion.K, axis=1)), errors
