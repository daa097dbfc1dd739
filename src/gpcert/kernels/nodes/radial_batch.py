"""The functions k(., z_i) of a radial kernel at the centres of a batch of cells.

With u = x - z scaled and S the diagonal matrix of the scales, in frame coordinates

    gradient = -s F_1 S u,     Hessian = s S (F_2 u u^T - F_1) S.

Proofs: docs/mathematics.md, statements 2.5 and 3.5.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

import numpy as np

from gpcert.arrays import Array, PerCell, PerCellAndFeature, PerCellAndPoint, namespace, row_blocks
from gpcert.kernels.lines.base import Enclosed
from gpcert.kernels.nodes.base import Beyond, Jet, NodeBatch, Triple
from gpcert.kernels.nodes.radial_accuracy import (
    Accuracy,
    radial_accuracy,
    regular_accuracy,
    regular_values,
    uniform_error,
)
from gpcert.kernels.nodes.radial_bins import BinnedSums, serves
from gpcert.kernels.nodes.radial_lines import radial_lines
from gpcert.kernels.nodes.radial_remainder import MOST_TENSOR_FEATURES, radial_remainder
from gpcert.kernels.nodes.radial_variations import (
    DistanceRange,
    largest_third,
    radial_variations,
)
from gpcert.regions.frame import Reach
from gpcert.rounding import TINY, U, gamma, nonnegative, up

if TYPE_CHECKING:
    from gpcert.kernels.nodes.radial import LocalRadial


class RadialBatch(NodeBatch):
    """See `NodeBatch`."""

    def __init__(self, node: LocalRadial, reach: Reach) -> None:
        self.node, self.reach = node, reach
        self.centers = reach.center * node.scale
        self.r = node.distances(self.centers)

    @cached_property
    def value(self) -> PerCellAndPoint:  # pyright: ignore[reportIncompatibleVariableOverride]
        """See `NodeBatch`; a sum by bins does without them."""
        found = namespace(self.r).empty_like(self.r)
        for block in row_blocks(self.r):
            found[block] = self.node.variance * self.node.profile.terms(self.r[block], (0, 0))[0]
        return found

    @cached_property
    def profile(self) -> tuple[PerCellAndPoint, ...]:
        """F_0, F_1 and F_2 (B, N): a sum by bins does without them."""
        found = tuple(namespace(self.r).empty_like(self.r) for _ in range(3))
        for block in row_blocks(self.r):
            terms = self.node.profile.terms(self.r[block], (0, 0), (1, 0), (2, 0))
            for kept, term in zip(found, terms, strict=True):
                kept[block] = term
        return found

    @cached_property
    def _uniform_error(self) -> Array | None:
        """Of F_0, F_1 and F_2; that of the whole region, or (B, 1) that of the cells' own distances
        where only they are small enough."""
        found = self.node.uniform_error
        if found is not None or not self.r.shape[1]:
            return found
        return uniform_error(self.node, namespace(self.r).max(self.r, axis=1, keepdims=True))

    @property
    def regular(self) -> bool:
        """Whether F_0, F_1 and F_2 have one small relative error."""
        return self._uniform_error is not None

    def value_accuracy(self) -> tuple[PerCellAndPoint, PerCellAndPoint]:
        """See `NodeBatch`."""
        if not self.regular:
            return super().value_accuracy()
        return regular_values(self.node, self.r, self.value)

    @cached_property
    def distance_error(self) -> PerCellAndPoint:
        """(B, N) of r."""
        return self.node.distance_error(self.r, self.node.extents)

    @cached_property
    def _accuracy(self) -> Accuracy:
        """(B, N) arrays that a sum by bins does without."""
        if self.regular:
            return regular_accuracy(self.node, self.r, self.node.extents, self.profile)
        return radial_accuracy(self.node, self.r, self.distance_error, self.profile)

    @property
    def sizes(self) -> Triple:  # pyright: ignore[reportIncompatibleVariableOverride]
        """See `NodeBatch`."""
        return self._accuracy.sizes

    @property
    def errors(self) -> Triple:  # pyright: ignore[reportIncompatibleVariableOverride]
        """See `NodeBatch`."""
        return self._accuracy.errors

    @property
    def _factors(self) -> tuple[Array, Array]:
        """F_1 and F_2 as they may be used."""
        if self.regular:
            return self.profile[1], self.profile[2]
        return self._accuracy.first, self._accuracy.second

    def binned(self, weights: Annotated[Array, "... N"]) -> BinnedSums | None:
        return BinnedSums(self, weights) if serves(self) else None

    def contract(self, coefficients: PerCellAndPoint) -> Jet:
        """First moments of a F_1 and second moments of a F_2: two matrix products."""
        xp = namespace(self.r)
        node = self.node
        parts = [self._contracted(coefficients, block) for block in row_blocks(self.r)]
        if len(parts) == 1:
            value, slope, gradient, hessian = parts[0]
        else:
            value, slope, gradient, hessian = (
                xp.concat(list(each), axis=0) for each in zip(*parts, strict=True)
            )
        hessian = hessian * (node.scale[:, None] * node.scale[None, :])
        f = node.scale.shape[0]
        identity = xp.eye(f, dtype=xp.float64, device=self.r.device)
        hessian = hessian - slope[:, None, None] * (identity * node.scale**2)
        return Jet(value, gradient * node.scale, hessian)

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
        return up(self.reach.half * self.node.scale, 4)

    @cached_property
    def rho(self) -> PerCell:
        """(B,): upper bound of the scaled displacement."""
        with np.errstate(over="ignore"):
            rho2 = self.reach.squared_norm(self.node.metric)
        xp = namespace(rho2)
        return xp.where(rho2 > 0, up(xp.sqrt(rho2), 2), xp.zeros_like(rho2))

    @cached_property
    def distance_range(self) -> DistanceRange:
        """Distances of the points from each cell: box by box, or r -+ rho where that is better.

        The distance of a box from a point is a 1-Lipschitz function of the scaled coordinates.
        """
        xp = namespace(self.r)
        node, points = self.node, self.node.table.points
        zero = xp.zeros_like(self.r)
        low = node.fixed + zero
        high = low
        with np.errstate(over="ignore"):
            for j in range(points.shape[1]):
                gap = xp.abs(self.centers[:, j, None] - points[None, :, j])
                half = self.half[:, j, None]
                low = low + xp.maximum(gap - half, zero) ** 2
                high = high + (gap + half) ** 2
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
        node = self.node
        return radial_variations(node.profile, node.variance, self.distance_range, self.rho)

    def beyond_second(self, coefficients: PerCellAndPoint, third: PerCellAndPoint) -> Beyond:
        """Degrees 3 and 4 as tensors of all points, see `radial_remainder`."""
        if not 0 < self.centers.shape[1] <= MOST_TENSOR_FEATURES:
            return super().beyond_second(coefficients, third)
        return radial_remainder(self, coefficients, third)

    def own_beyond_second(self) -> PerCell | None:
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
            left = up(node.variance * (steepest / 6.0) * rho**3, 8)
            if math.isfinite(curvature):
                left = xp.minimum(left, up(node.variance * (curvature / 8.0) * rho**4, 8))
        return xp.where(rho > 0, left, xp.zeros_like(left))

    def itself(self) -> tuple[Jet, Triple]:
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
        error = up(node.variance * curvature * node.widest**2 * (slack * U), 8) + TINY
        return jet, (zero, zero, zero + error)

    def enclosed(self) -> Enclosed:
        """Lines under and over the convex function `q -> s F_0(sqrt q)` of phi = r^2."""
        return radial_lines(
            self.node, self.reach.columns, self.centers, self.half, self.distance_range
        )
