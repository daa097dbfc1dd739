"""The functions k(., z_i) of a radial kernel at the centres of a batch of cells.

With u = x - z scaled and S the diagonal matrix of the scales, in frame coordinates

    gradient = -s F_1 S u,     Hessian = s S (F_2 u u^T - F_1) S.

F_0 is completely monotone in q = r^2, so psi(q) = s F_0(sqrt q) is convex and falling: a tangent
lies below it, and a line through (or over) both ends of an interval above it.

Proofs: docs/mathematics.md, statements 2.5, 3.5 and 12.1.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

import numpy as np

from gpcert.kernels.nodes.base import Jet, NodeBatch, TaylorRemainder, Triple
from gpcert.kernels.nodes.radial_bins import BinnedSums, serves
from gpcert.kernels.nodes.radial_remainder import (
    MAX_TENSOR_FEATURES,
    fifth_order,
    radial_remainder,
)
from gpcert.kernels.nodes.radial_variations import (
    DistanceRange,
    largest_third,
    radial_variations,
)
from gpcert.numerics.arrays import (
    Array,
    PerCell,
    PerCellAndFeature,
    PerCellAndPoint,
    namespace,
    row_blocks,
)
from gpcert.numerics.rounding import POW_ULPS, TINY, U, gamma, nonnegative, up
from gpcert.regions.cells import squared_distance_ranges
from gpcert.regions.scaled import ScaledCells

if TYPE_CHECKING:
    from gpcert.kernels.nodes.radial import Accuracy, LocalRadial


class RadialBatch(NodeBatch):
    """See `NodeBatch`."""

    def __init__(self, node: LocalRadial, geometry: ScaledCells) -> None:
        self.node, self.geometry = node, geometry
        self.centers = geometry.center * node.scale
        self.fixed = node.fixed if node.held is None else node.held.at(geometry.cells)
        self.r = node.distances(self.centers, self.fixed)

    def _terms(self, *pairs: tuple[int, int]) -> list[PerCellAndPoint]:
        """`RadialProfile.terms` at the distances, block by block."""
        results = [namespace(self.r).empty_like(self.r) for _ in pairs]
        for block in row_blocks(self.r):
            terms = self.node.profile.terms(self.r[block], *pairs)
            for out, term in zip(results, terms, strict=True):
                out[block] = term
        return results

    @cached_property
    def value(self) -> PerCellAndPoint:  # pyright: ignore[reportIncompatibleVariableOverride]
        """See `NodeBatch`; a sum by bins does without them."""
        return self.node.variance * self._terms((0, 0))[0]

    @cached_property
    def profile(self) -> tuple[PerCellAndPoint, ...]:
        """F_0, F_1 and F_2 (B, N): a sum by bins does without them."""
        return tuple(self._terms((0, 0), (1, 0), (2, 0)))

    @cached_property
    def regular(self) -> bool:
        """Whether F_0, F_1 and F_2 have one small relative error: in the whole region, or at the
        cells' own distances."""
        if self.node.regular or not self.r.shape[1]:
            return self.node.regular
        return self.node.is_regular(namespace(self.r).max(self.r, axis=1, keepdims=True))

    def value_accuracy(self) -> tuple[PerCellAndPoint, PerCellAndPoint]:
        """See `NodeBatch`."""
        if not self.regular:
            return self.node.general_values(self.r, self.distance_error, self.value)
        return self.node.regular_values(self.r, self.value)

    @cached_property
    def distance_error(self) -> PerCellAndPoint:
        """(B, N) of r."""
        return self.node.distance_error(self.r, self.node.extents)

    @cached_property
    def _accuracy(self) -> tuple[Accuracy, tuple[Array, Array]]:
        """(B, N) arrays that a sum by bins does without; F_1 and F_2 as they may be used."""
        if self.regular:
            accuracy = self.node.regular_accuracy(self.r, self.node.extents, self.profile)
            return accuracy, self._factors
        ends = (self.r, self.r)
        return self.node.accuracy(ends, self.distance_error, self.node.extents, self.profile)

    @property
    def sizes(self) -> Triple:  # pyright: ignore[reportIncompatibleVariableOverride]
        """See `NodeBatch`."""
        return self._accuracy[0][0]

    @property
    def errors(self) -> Triple:  # pyright: ignore[reportIncompatibleVariableOverride]
        """See `NodeBatch`."""
        return self._accuracy[0][1]

    @property
    def _factors(self) -> tuple[Array, Array]:
        return (self.profile[1], self.profile[2]) if self.regular else self._accuracy[1]

    def binned(self, weights: Annotated[Array, "... N"], pointwise: bool) -> BinnedSums | None:
        return BinnedSums(self, weights, pointwise) if serves(self, weights.ndim > 1) else None

    def contract(self, coefficients: PerCellAndPoint) -> Jet:
        """First moments of a F_1 and second moments of a F_2: two matrix products."""
        parts = [self._contracted(coefficients, block) for block in row_blocks(self.r)]
        concat = namespace(self.r).concat
        return self.node.jet(*(concat(list(each), axis=0) for each in zip(*parts, strict=True)))

    def _contracted(self, coefficients: Array, block: slice) -> tuple[Array, Array, Array, Array]:
        """Value and moments of some of the cells."""
        xp, table, centers = namespace(self.r), self.node.table, self.centers[block]
        first, second = (factor[block] for factor in self._factors)
        a = coefficients[block]
        value = xp.sum(a * self.value[block], axis=1)
        a = self.node.variance * a
        slope, gradient = table.first_moments(a * first, centers)
        a *= second
        return value, slope, gradient, table.moments(a, centers)[2]

    def gradients(self) -> Annotated[Array, "B f N"]:
        """`s F_1 S (z - c)`."""
        node = self.node
        difference = node.table.points.T[None, :, :] - self.centers[:, :, None]
        slopes = node.variance * self._factors[0]
        return slopes[:, None, :] * (difference * node.scale[None, :, None])

    @cached_property
    def half(self) -> PerCellAndFeature:
        """Scaled half-widths (B, f), rounded up."""
        return up(self.geometry.half * self.node.scale, 4)

    @cached_property
    def rho(self) -> PerCell:
        """(B,): upper bound of the scaled displacement."""
        with np.errstate(over="ignore"):
            rho2 = self.geometry.squared_norm(self.node.metric)
        xp = namespace(rho2)
        return xp.where(rho2 > 0, up(xp.sqrt(rho2), 2), xp.zeros_like(rho2))

    @cached_property
    def distance_range(self) -> DistanceRange:
        """Distances of the points from each cell: box by box, or r -+ rho where that is better.

        The distance of a box from a point is a 1-Lipschitz function of the scaled coordinates.
        """
        xp, node = namespace(self.r), self.node
        cells = (self.centers, self.half)
        with np.errstate(over="ignore"):
            low, high = squared_distance_ranges(cells, node.table.points, self.fixed)
            low, high = xp.sqrt(low), xp.sqrt(high)
            spread = gamma(2 * node.roundings) * high + (5.0 * U) * node.extents
            rho = self.rho[:, None]
            near = self.r - up(self.distance_error + rho, 4)
            far = self.r + up(self.distance_error + rho, 4)
            # r itself may be off by one rounding of the subtraction
            low = xp.maximum(low - spread, near - (4.0 * U) * self.r)
            high = xp.minimum(high + spread, far)
        return DistanceRange(nonnegative(low), up(high, 8))

    def variations(self) -> tuple[PerCellAndPoint, ...]:
        """Sup of each derivative over the distances of the cell, times powers of rho."""
        return self._variations

    @cached_property
    def _variations(self) -> tuple[PerCellAndPoint, ...]:
        node = self.node
        return radial_variations(node.profile, node.variance, self.distance_range, self.rho)

    def first_and_third(self) -> tuple[PerCellAndPoint, PerCellAndPoint]:
        return self._first_and_third

    @cached_property
    def _first_and_third(self) -> tuple[PerCellAndPoint, PerCellAndPoint]:
        node, orders = self.node, (1, 3)
        first, third = radial_variations(
            node.profile, node.variance, self.distance_range, self.rho, orders
        )
        return first, third

    @cached_property
    def fifth_order(self) -> tuple[list[PerCellAndPoint], PerCellAndPoint]:
        """See `radial_remainder.fifth_order`; slopes ask for several sums of one batch."""
        return fifth_order(self)

    def second_order_remainder(
        self, coefficients: PerCellAndPoint, third: PerCellAndPoint
    ) -> TaylorRemainder:
        """Degrees 3 and 4 as tensors of all points, see `radial_remainder`."""
        if not 0 < self.centers.shape[1] <= MAX_TENSOR_FEATURES:
            return super().second_order_remainder(coefficients, third)
        return radial_remainder(self, coefficients, third)

    def diagonal_second_order_remainder(self) -> PerCell | None:
        """`F_2(0) rho^4 / 8`, or the third derivative along the line.

        F_0 is completely monotone in q = r^2 / 2 (`radial_profiles`), with derivatives -F_1
        and F_2: `0 <= F_0 - 1 + F_1(0) q <= F_2(0) q^2 / 2`.
        """
        xp = namespace(self.rho)
        node, rho = self.node, self.rho
        steepest, curvature = largest_third(node.profile), node.profile.at_zero[2]
        if not math.isfinite(steepest):
            return None
        with np.errstate(over="ignore"):
            left = up(node.variance * (steepest / 6.0) * rho**3, POW_ULPS + 8)
            if math.isfinite(curvature):
                fourth = up(node.variance * (curvature / 8.0) * rho**4, POW_ULPS + 8)
                left = xp.minimum(left, fourth)
        return xp.where(rho > 0, left, xp.zeros_like(left))

    def diagonal_jet(self) -> tuple[Jet, Triple]:
        """s, 0 and -s F_1(0) S^2; without F_1(0) neither gradient nor Hessian exist."""
        xp = namespace(self.r)
        node = self.node
        zero = xp.zeros_like(self.rho)
        f = node.scale.shape[0]
        curvature = node.profile.at_zero[1]
        smooth = math.isfinite(curvature)
        square = -(node.variance * curvature if smooth else 0.0) * node.scale**2
        hessian = xp.eye(f, dtype=xp.float64, device=self.r.device) * square
        gradient = xp.zeros_like(self.centers)
        jet = Jet(node.variance + zero, gradient, hessian[None, :, :] + zero[:, None, None])
        if not smooth:
            return jet, (zero, zero + math.inf, zero + math.inf)
        slack = 24.0 + node.profile.zero_slack
        error = up(node.variance * curvature * node.widest**2 * (slack * U) + TINY, 8)
        return jet, (zero, zero, zero + error)
