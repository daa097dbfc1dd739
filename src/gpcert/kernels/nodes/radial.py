"""A radial kernel s F_0(r) inside a region: jets, errors and bounds from its profile.

Coordinates here are *scaled*: frame coordinates times `unit / length`, so that r is the plain
distance. A scaled coordinate carries three roundings. With u = x - z scaled and S the diagonal
matrix of the scales, in frame coordinates

    gradient = -s F_1 S u,     Hessian = s S (F_2 u u^T - F_1) S.

Proofs: docs/mathematics.md, statements 2.5 and 3.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from gpcert.arrays import Array, PerCellAndFeature, PerCellAndPoint, Reals, namespace, row_blocks
from gpcert.errors import InputError
from gpcert.kernels.lines.base import Enclosed
from gpcert.kernels.nodes.base import Jet, LocalNode, NodeBatch, Triple
from gpcert.kernels.nodes.beyond import Beyond
from gpcert.kernels.nodes.feature_sizes import FeatureSizes, spectral_gram
from gpcert.kernels.nodes.moments import MomentTable
from gpcert.kernels.nodes.radial_accuracy import (
    Accuracy,
    is_regular,
    radial_accuracy,
    regular_accuracy,
)
from gpcert.kernels.nodes.radial_bins import BinnedSums, BinTables, serves
from gpcert.kernels.nodes.radial_lines import radial_lines
from gpcert.kernels.nodes.radial_profiles import RadialProfile, infinite_beyond_zero
from gpcert.kernels.nodes.radial_remainder import MOST_TENSOR_FEATURES, radial_remainder
from gpcert.kernels.nodes.radial_variations import (
    DistanceRange,
    largest_third,
    radial_variations,
)
from gpcert.kernels.nodes.symmetric_tensors import HigherMoments
from gpcert.regions.frame import Frame, Reach
from gpcert.rounding import TINY, U, gamma, nonnegative, root, up

LARGEST_EXTENT = 1e60
"""Scaled coordinates beyond this are refused: their powers leave float64."""

SMALLEST_EXTENT = 2.0**-400
"""Extents above 0 count as this much: roots of squares that underflow are off by 2^-537, which is
less than the rounding of coordinates of this size."""

MOST_SUBTRACTED_FEATURES = 32
"""Up to here distances are found by subtracting coordinates; beyond, by expanding the square."""


@dataclass(frozen=True, eq=False)
class LocalRadial(LocalNode):
    """See the module. `fixed` (N,) are squared distances in the features that are held fixed."""

    profile: RadialProfile
    variance: float
    scale: Array
    """(f,): unit / length, one rounding."""
    metric: Array
    """(f,) upper bounds of scale^2."""
    widest: float
    """Upper bound of the largest scale."""
    table: MomentTable
    fixed: Array
    extents: Array
    """(N,) upper bounds of |z_i| + |c|, scaled."""
    largest_extent: float
    roundings: int
    """Of a squared distance, relative, once the coordinates are given."""
    sum_roundings: float
    """gamma of the roundings in a sum over points and its shift to a centre."""

    @staticmethod
    def build(
        points: Annotated[np.ndarray, "N d"],
        lengths: np.ndarray,
        variance: float,
        profile: RadialProfile,
        frame: Frame,
    ) -> LocalRadial:
        """Scale the points; fold in the features that the region holds fixed."""
        with np.errstate(over="ignore", invalid="ignore"):
            scale = frame.unit / lengths[frame.free]
            scaled = frame.points(points) * scale
            reach = frame.extents(points) * scale
            extents = np.asarray(up(np.sqrt(np.square(reach).sum(1)), len(scale) + 12))
            apart = (points[:, frame.fixed] - frame.fixed_values) / lengths[frame.fixed]
            fixed = np.square(apart).sum(1)
        some = (reach > 0).any(axis=1) | (apart != 0).any(axis=1)
        extents = np.where(some, np.maximum(extents, SMALLEST_EXTENT), 0.0)
        if not np.all((extents <= LARGEST_EXTENT) & (fixed <= LARGEST_EXTENT**2)):
            raise InputError(
                f"region: it and the points span more than {LARGEST_EXTENT} length-scales; take a "
                "smaller region, or check the kernel's length-scales"
            )
        place = frame.backend.asarray
        return LocalRadial(
            profile,
            float(variance),
            place(scale),
            place(up(scale**2, 6)),
            float(up(scale.max(initial=0.0), 2)),
            MomentTable(place(scaled)),
            place(fixed),
            place(extents),
            float(extents.max(initial=0.0)),
            points.shape[1] + 16,
            gamma(len(points) + 4 * len(scale) + 48),
        )

    @cached_property
    def higher_moments(self) -> HigherMoments:
        """Moments of the points up to the fourth, formed when first needed."""
        return HigherMoments(self.table.points)

    @property
    def expanded(self) -> bool:
        """Distances of many features are found by expanding the square."""
        return self.scale.shape[0] > MOST_SUBTRACTED_FEATURES

    def feature_sizes(self, reach: Reach) -> FeatureSizes:
        """By Bochner: `E u^(2n) = (1, 3, 15) F_n(0) rho^(2n)`; the remainders of the profile."""
        with np.errstate(over="ignore"):
            rho2 = reach.squared_norm(self.metric)
            xp = namespace(rho2)
            zero = xp.zeros_like(rho2)
            moments = [self.variance + zero]
            for n, factor in ((1, 1.0), (2, 3.0), (3, 15.0)):
                most = factor * self.profile.at_zero[n] * self.variance
                power = xp.where(rho2 > 0, rho2, xp.ones_like(rho2)) ** n
                moments.append(xp.where(rho2 > 0, up(most * power, n + 4), zero))
            squares = self.profile.squared_remainders(rho2)
            zeroth, first, second = (
                xp.where(rho2 > 0, up(root(self.variance * part), 4), zero) for part in squares
            )
        gram = spectral_gram(moments)
        if not math.isfinite(self.profile.at_zero[3]):
            gram = tuple(
                tuple(self._existing(part, max(i, j), rho2) for j, part in enumerate(row))
                for i, row in enumerate(gram)
            )
        return FeatureSizes(gram, (zeroth, first, second), True)

    def _existing(self, part: Array | None, order: int, rho2: Array) -> Array | None:
        """What vanishes by symmetry does so only if the derivatives of that order exist."""
        if part is not None or math.isfinite(self.profile.at_zero[order]):
            return part
        return infinite_beyond_zero(rho2)

    def at(self, reach: Reach) -> RadialBatch:
        return RadialBatch(self, reach)

    @cached_property
    def bin_tables(self) -> BinTables:
        """What is bounded by bins of distances, formed when first needed."""
        return BinTables(self)

    def distances(self, centers: PerCellAndFeature) -> PerCellAndPoint:
        """(B, N) distances r of scaled centres and points."""
        xp = namespace(centers)
        points = self.table.points
        squares = self.fixed + xp.zeros(
            (centers.shape[0], 1), dtype=xp.float64, device=centers.device
        )
        if not self.expanded:
            for j in range(centers.shape[1]):
                gap = centers[:, j, None] - points[:, j]
                gap *= gap
                squares += gap
            return xp.sqrt(squares)
        product = centers @ (-2.0 * points.T)
        product = product + xp.sum(points**2, axis=1)[None, :]
        product = product + xp.sum(centers**2, axis=1)[:, None]
        return xp.sqrt(nonnegative(product) + squares)

    def distance_error(self, r: Reals, extents: Reals) -> Reals:
        """Bounds of the errors of distances r from points of these extents.

        Subtracted: coordinates are off by `3 U (|z| + |c|)`, in norm `3 U extent`, sums by relative
        roundings. Expanded: r^2 is off by `(f + 16) U extent^2`, its root by no more than
        `error / r` and `sqrt(error)`.
        """
        found = gamma(self.roundings) * r + (4.0 * U) * extents
        if not self.expanded:
            return found
        xp, f = namespace(r), self.scale.shape[0]
        error = up((f + 16) * U * extents**2, 4) + xp.zeros_like(r)
        root = xp.sqrt(error)
        return up(xp.minimum(root, error / xp.maximum(r, root)), 4) + found


class RadialBatch(NodeBatch):
    """See `NodeBatch`."""

    def __init__(self, node: LocalRadial, reach: Reach) -> None:
        self.node, self.reach = node, reach
        self.centers = reach.center * node.scale
        xp, shape = namespace(self.centers), (len(self.centers), len(node.extents))
        self.r, self.value = (
            xp.empty(shape, dtype=xp.float64, device=self.centers.device) for _ in range(2)
        )
        for block in row_blocks(self.r):
            self.r[block] = node.distances(self.centers[block])
            self.value[block] = node.variance * node.profile.terms(self.r[block], (0, 0))[0]

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
    def regular(self) -> bool:
        """See `is_regular`."""
        return is_regular(self.node, self.r)

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
    def rho(self) -> Annotated[Array, "B"]:
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

    def own_beyond_second(self) -> Annotated[Array, "B"] | None:
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
