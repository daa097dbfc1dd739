"""A radial kernel s F_0(r) inside a region: its points, scaled, and how far its features bend.

Coordinates here are *scaled*: frame coordinates times `unit / length`, so that r is the plain
distance. A scaled coordinate carries three roundings.

Proofs: docs/mathematics.md, statements 2.5 and 3.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from scipy.spatial.distance import cdist

from gpcert.arrays import Array, PerCellAndFeature, PerCellAndPoint, Points, Reals, namespace
from gpcert.errors import InputError
from gpcert.kernels.nodes.base import FeatureSizes, LocalNode, spectral_gram
from gpcert.kernels.nodes.moments import HigherMoments, MomentTable
from gpcert.kernels.nodes.radial_accuracy import uniform_error
from gpcert.kernels.nodes.radial_batch import RadialBatch
from gpcert.kernels.nodes.radial_bins import FINENESS, MOST_BINS, BinTables
from gpcert.kernels.nodes.radial_profiles import RadialProfile, infinite_beyond_zero
from gpcert.regions.frame import Frame, Reach
from gpcert.rounding import U, gamma, nonnegative, root, up, up_float

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
        points: Points,
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
    def farthest(self) -> float:
        """At least every distance: `r^2` is at most the largest `fixed` and extent squared."""
        fixed = float(self.fixed.max()) if self.fixed.shape[0] else 0.0
        return up_float(math.hypot(math.sqrt(fixed), self.largest_extent), self.roundings)

    @cached_property
    def bins(self) -> int:
        """Bins that hold all distances, and one more, as far as there are so many."""
        return int(min(MOST_BINS, FINENESS * math.sqrt(self.farthest) + 2.0))

    @cached_property
    def uniform_error(self) -> Annotated[Array, "n 1"] | None:
        """See `gpcert.kernels.nodes.radial_accuracy.uniform_error`: at all distances."""
        return uniform_error(self, 0.0 * self.fixed[:1, None] + self.farthest)

    @cached_property
    def bin_tables(self) -> BinTables:
        """What is bounded by bins of distances, formed when first needed."""
        return BinTables(self)

    def distances(self, centers: PerCellAndFeature) -> PerCellAndPoint:
        """(B, N) distances r of scaled centres and points; `cdist` subtracts before it squares."""
        xp = namespace(centers)
        points = self.table.points
        if isinstance(centers, np.ndarray) and not self.expanded:
            found = cdist(centers, points, "sqeuclidean")
            found += self.fixed
            return np.sqrt(found, out=found)
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
