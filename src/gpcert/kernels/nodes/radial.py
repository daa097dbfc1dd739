"""A radial kernel s F_0(r) inside a region: its points, scaled, and how far its features bend.

Coordinates here are *scaled*: frame coordinates times `unit / length`, so that r is the plain
distance. A scaled coordinate carries three roundings.

With F_n computed at r, `|r - true r| <= dr`, and coordinates of u off by `4 U extent` in norm,
`s F_0`, `-s F_1 S u` and `s S (F_2 u u^T - F_1) S` are off by the relative error of each F_n times
its part, by what the coordinates' errors change, and by what sums over points round when moments
are shifted to a centre (`gpcert.kernels.nodes.moments`): there terms are as large as
`F_n extent^n`, whatever r is.

Proofs: docs/mathematics.md, statements 2.5, 3.5, 16.5 and 16.7.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np
from scipy.spatial.distance import cdist

from gpcert.errors import InputError
from gpcert.kernels.nodes.base import (
    DerivativeBounds,
    Gram,
    Jet,
    LocalNode,
    Triple,
    spectral_gram,
)
from gpcert.kernels.nodes.moments import MomentTable
from gpcert.kernels.nodes.radial_batch import RadialBatch
from gpcert.kernels.nodes.radial_bin_tables import FINENESS, MAX_BINS, BinTables
from gpcert.kernels.nodes.radial_profiles import SMALL_CHANGE, RadialProfile, infinite_beyond_zero
from gpcert.numerics.arrays import (
    Array,
    PerCell,
    PerCellAndFeature,
    PerCellAndPoint,
    Points,
    Reals,
    namespace,
)
from gpcert.numerics.rounding import POW_ULPS, TINY, U, gamma, nonnegative, root, up, up_float
from gpcert.regions.cells import Frame
from gpcert.regions.held import HeldDistances
from gpcert.regions.scaled import ScaledCells

LARGEST_EXTENT = 1e60
"""Scaled coordinates beyond this are refused: their powers overflow."""

SMALLEST_EXTENT = 2.0**-400
"""Extents above 0 count as this much: roots of squares that underflow are off by 2^-537, which is
less than the rounding of coordinates of this size."""

MAX_SUBTRACTED_FEATURES = 32
"""Up to here distances are computed by subtracting coordinates; beyond, by expanding the square."""

SMALLEST_SCALE = 1e-100
"""Scales below this count as this much in bounds: their squares must not vanish."""

COORDINATE = 4.0 * U
"""Errors of scaled coordinates, three roundings, and of differences, relative to extents."""

LARGEST_SHIFT = 1e-8
"""Up to here the square of a coordinate's error is below the unit roundoff."""
Accuracy = tuple[Triple, Triple]
"""`sizes` and `errors` of a `NodeBatch`."""


@dataclass(frozen=True, eq=False)
class LocalRadial(LocalNode):
    """See the module. `fixed` (N,) are squared distances in the features that are held fixed, NaN
    where cells hold them at values of their own: then `held` says."""

    has_bins: ClassVar[bool] = True

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
    farthest_fixed: float
    """The largest distance in fixed features."""
    held: HeldDistances | None = None

    @staticmethod
    def build(
        points: Points,
        lengths: np.ndarray,
        variance: float,
        profile: RadialProfile,
        frame: Frame,
    ) -> LocalRadial:
        """Scale the points; fold in the features that the region holds fixed."""
        place = frame.backend.asarray
        with np.errstate(over="ignore", invalid="ignore"):
            scale = frame.unit / lengths[frame.free]
            scaled = frame.points(points) * scale
            reach = frame.extents(points) * scale
            extents = np.asarray(up(np.sqrt(np.square(reach).sum(1)), len(scale) + 12))
            apart = (points[:, frame.fixed] - frame.fixed_values) / lengths[frame.fixed]
            most = fixed = np.square(apart).sum(1)
            held = None
            if frame.held:
                rest = frame.fixed, frame.fixed_values
                held, most = HeldDistances.of(points, lengths, frame.held, rest, place)
                fixed = np.full(len(points), np.nan)
        some = (reach > 0).any(axis=1) | (apart != 0).any(axis=1) | (most > 0)
        extents = np.where(some, np.maximum(extents, SMALLEST_EXTENT), 0.0)
        if not np.all((extents <= LARGEST_EXTENT) & (most <= LARGEST_EXTENT**2)):
            raise InputError(
                f"region: it and the points span more than {LARGEST_EXTENT} length-scales; take a "
                "smaller region, or check the kernel's length-scales"
            )
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
            math.sqrt(float(most.max(initial=0.0))),
            held,
        )

    @property
    def expanded(self) -> bool:
        """Distances of many features are computed by expanding the square."""
        return self.scale.shape[0] > MAX_SUBTRACTED_FEATURES

    def derivative_bounds(self, geometry: ScaledCells) -> DerivativeBounds:
        """By Bochner: `E u^(2n) = (1, 3, 15) F_n(0) rho^(2n)`; the remainders of the profile."""
        with np.errstate(over="ignore"):
            rho2 = geometry.squared_norm(self.metric)
            xp = namespace(rho2)
            zero = xp.zeros_like(rho2)
            moments = [self.variance + zero]
            for n, factor in ((1, 1.0), (2, 3.0), (3, 15.0)):
                most = factor * self.profile.at_zero[n] * self.variance
                if not math.isfinite(most):  # whatever the power: it may underflow to zero
                    moments.append(infinite_beyond_zero(rho2))
                    continue
                power = xp.where(rho2 > 0, rho2, xp.ones_like(rho2)) ** n
                moments.append(xp.where(rho2 > 0, up(most * power, POW_ULPS + 4), zero))
            squares = self.profile.squared_remainders(rho2)
            zeroth, first, second = (
                xp.where(rho2 > 0, up(root(self.variance * part), 4), zero) for part in squares
            )
        return DerivativeBounds(self.gram_of(moments, rho2), (zeroth, first, second), True)

    def gram_of(self, moments: Sequence[PerCell], rho2: PerCell) -> Gram:
        """The Gram bounds from even moments of the spectral variable."""
        gram = spectral_gram(moments)
        if math.isfinite(self.profile.at_zero[3]):
            return gram
        return tuple(
            tuple(self._existing(part, max(i, j), rho2) for j, part in enumerate(row))
            for i, row in enumerate(gram)
        )

    def _existing(self, part: Array | None, order: int, rho2: Array) -> Array | None:
        """What vanishes by symmetry does so only if the derivatives of that order exist."""
        if part is not None or math.isfinite(self.profile.at_zero[order]):
            return part
        return infinite_beyond_zero(rho2)

    def at(self, geometry: ScaledCells) -> RadialBatch:
        return RadialBatch(self, geometry)

    def jet(self, value: PerCell, slope: PerCell, gradient: Array, hessian: Array) -> Jet:
        """From the moments of `a s F_1` (degree 0 and 1) and of `a s F_2` (degree 2)."""
        xp, scale = namespace(slope), self.scale
        identity = xp.eye(scale.shape[0], dtype=xp.float64, device=slope.device)
        hessian = hessian * (scale[:, None] * scale[None, :])
        hessian = hessian - slope[:, None, None] * (identity * scale**2)
        return Jet(value, gradient * scale, hessian)

    @cached_property
    def farthest(self) -> float:
        """At least every distance: `r^2` is at most the largest fixed one and extent squared."""
        return up_float(math.hypot(self.farthest_fixed, self.largest_extent), self.roundings)

    @cached_property
    def bins(self) -> int:
        """Bins that hold all distances, and one more, as far as there are so many."""
        return int(min(MAX_BINS, FINENESS * math.sqrt(self.farthest) + 2.0))

    @cached_property
    def bin_tables(self) -> BinTables:
        """What is bounded by bins of distances, formed when first needed."""
        return BinTables(self)

    def distances(self, centers: PerCellAndFeature, fixed: Array) -> PerCellAndPoint:
        """(B, N) distances r of scaled centres and points, `fixed` (N,) or (B, N) their squares in
        the fixed features; `cdist` subtracts before it squares."""
        xp = namespace(centers)
        points = self.table.points
        if isinstance(centers, np.ndarray) and not self.expanded:
            squared = cdist(centers, points, "sqeuclidean")
            squared += fixed
            return np.sqrt(squared, out=squared)
        squares = fixed + xp.zeros((centers.shape[0], 1), dtype=xp.float64, device=centers.device)
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
        rounding = gamma(self.roundings) * r + COORDINATE * extents
        if not self.expanded:
            return rounding
        xp, f = namespace(r), self.scale.shape[0]
        error = up((f + 16) * U * extents**2, 4) + xp.zeros_like(r)
        root = xp.sqrt(error)
        return up(xp.minimum(root, error / xp.maximum(r, root)), 4) + rounding

    def is_regular(self, farthest: Annotated[Array, "n 1"]) -> bool:
        """Whether F_0, F_1 and F_2 have one small relative error at all distances up to these: it
        increases with r and the extents."""
        if self.expanded or self.largest_extent > LARGEST_SHIFT / COORDINATE:
            return False
        xp = namespace(farthest)
        shift = COORDINATE * self.largest_extent + xp.zeros_like(farthest)
        relative = self.profile.uniform_error(farthest, gamma(self.roundings), shift)
        return relative is not None and bool(xp.all(relative <= SMALL_CHANGE))

    @cached_property
    def regular(self) -> bool:
        """`is_regular` at all distances of the region."""
        return self.is_regular(0.0 * self.extents[:1, None] + self.farthest)

    def regular_accuracy(
        self, r: Reals, extents: Reals, factors: tuple[Reals, Reals, Reals]
    ) -> Accuracy:
        """The errors where all is regular (`is_regular`), for points of these extents.

        The same bounds as those of `accuracy` in a third of its passes; factors such as 1.5 make
        room for terms of second order, `relative` and `shift / r` being at most 0.1. All of them
        increase with r, the extents and the factors.
        """
        xp = namespace(r)
        shift = COORDINATE * extents
        relative = self.profile.uniform_error(r, gamma(self.roundings), shift)
        assert relative is not None, "of a regular profile"
        value, first, second = factors
        summed = self.sum_roundings * extents
        loose = relative + 9.0 * U
        spread = r * loose
        error1 = first * (spread + (1.5 * shift + summed))
        rank_one = (spread + 3.0 * shift) * r + (2.0 * shift**2 + summed * extents)
        error2 = first * loose + second * rank_one
        size1 = first * (r + shift)
        size2 = xp.maximum(first, second * (r * r + 20.0 * shift**2))
        sizes, errors = (value, size1, size2), (value * relative, error1, error2)
        return self._in_frame(extents, (1.5, 1.05), (sizes, errors))

    def regular_values(
        self, r: PerCellAndPoint, value: PerCellAndPoint
    ) -> tuple[PerCellAndPoint, PerCellAndPoint]:
        """Sizes and errors of `s F_0` alone, as `regular_accuracy` has them."""
        relative = self.profile.uniform_error(r, gamma(self.roundings), COORDINATE * self.extents)
        assert relative is not None, "of a regular profile"
        floor = TINY * max(1.0, self.variance)
        return 1.5 * value + floor, (1.05 * relative) * value + floor

    def general_values(
        self, r: PerCellAndPoint, distance_error: PerCellAndPoint, value: PerCellAndPoint
    ) -> tuple[PerCellAndPoint, PerCellAndPoint]:
        """Sizes and errors of `s F_0` alone, as `accuracy` has them."""
        error = self._value_error((r, r), distance_error, value, self.variance)
        floor = TINY * max(1.0, self.variance)
        return 1.01 * (value + error) + floor, 1.01 * error + floor

    def _value_error(
        self, ends: tuple[Reals, Reals], distance_error: Reals, value: Reals, most: float
    ) -> Reals:
        """Of values of at most `most`, where distances lie between two ends."""
        xp = namespace(distance_error)
        relative = self.profile.relative_errors(0, ends, distance_error)
        known = xp.isfinite(relative)
        loose = xp.where(known, relative, xp.zeros_like(relative))
        return xp.where(known, loose * value, xp.full_like(loose, most))

    @np.errstate(over="ignore", invalid="ignore")
    def accuracy(
        self,
        ends: tuple[Reals, Reals],
        distance_error: Reals,
        extents: Reals,
        factors: tuple[Reals, Reals, Reals],
    ) -> tuple[Accuracy, tuple[Reals, Reals]]:
        """The errors in general, near points of kernels with an infinite F_1(0) or F_2(0) too, and
        F_1 and F_2 as they may be used: of points of these extents at distances between two ends,
        the factors those at the lower one.

        Where F_1 is not known to a part in ten, 0 stands for it, with its whole size as error. The
        same for `F_2 u u^T` where the roundings of the moments would exceed its size, `F_2 r^2 =
        F_1 w_1`. Gradients of a kernel without F_1(0) do not exist where r may be 0.
        """
        xp = namespace(distance_error)
        profile, E, r = self.profile, extents, ends[0]
        value, first, second = factors
        relative = [profile.relative_errors(n, ends, distance_error) for n in (1, 2)]
        high, zero = up(ends[1] + distance_error, 2), xp.zeros_like(r)
        moved, summed = COORDINATE * E, self.sum_roundings * E
        error0 = self._value_error(ends, distance_error, value, 1.0)

        known = xp.isfinite(relative[0]) & xp.isfinite(first)
        first, loose = xp.where(known, first, zero), xp.where(known, relative[0], zero)
        most = (1.0 + loose) * first
        steepest = profile.steepness(0, zero, high)  # F_1 r = F_0 w_0 / r
        if not math.isfinite(profile.at_zero[1]):
            steepest = xp.where(r > 1.01 * distance_error, steepest, xp.full_like(r, math.inf))
        error1 = loose * first * high + most * (moved + COORDINATE * high) + first * summed
        error1, size1 = xp.where(known, error1, steepest), xp.where(known, most * high, steepest)
        flat = xp.where(known, (loose + 8.0 * U) * first, xp.full_like(r, profile.at_zero[1]))
        most = xp.where(known, most, xp.full_like(r, profile.at_zero[1]))

        growth = up(profile.growth(1, high), 64)
        whole = most * growth  # F_2 r^2
        known = xp.isfinite(relative[1]) & xp.isfinite(second)
        second, loose = xp.where(known, second, zero), xp.where(known, relative[1], zero)
        drift = (loose * high + 2.0 * (1.0 + loose) * (moved + COORDINATE * high)) * high
        spread = second * (drift + (1.0 + loose) * moved**2 + summed * E)
        keep = known & (spread <= whole)  # not where `spread` is 0 times infinity
        error2 = flat + xp.where(keep, spread, whole)
        error2 = xp.where(xp.isnan(error2), xp.full_like(error2, math.inf), error2)
        size2 = most * xp.maximum(xp.ones_like(growth), growth - 1.0)
        sizes, errors = (value + error0, size1, size2), (error0, error1, error2)
        usable = (first, xp.where(keep, second, zero))
        return self._in_frame(E, (1.01, 1.01), (sizes, errors)), usable

    def _in_frame(self, extents: Array, factors: tuple[float, float], parts: Accuracy) -> Accuracy:
        """Into frame coordinates, with factors for roundings, and floors for what underflows."""
        s, w, reach = self.variance, max(self.widest, SMALLEST_SCALE), 1.0 + extents
        floor = TINY * max(1.0, s)
        floors = (floor, floor * w * reach + TINY, floor * w * w * reach**2 + TINY)
        sizes, errors = (
            tuple(
                (factor * s * scale) * part + least
                for scale, part, least in zip((1.0, w, w * w), triple, floors, strict=True)
            )
            for factor, triple in zip(factors, parts, strict=True)
        )
        return sizes, errors

    def tensor_rounding(
        self,
        ends: tuple[Reals, Reals],
        distance_error: Reals,
        extents: Reals,
        F: list[Reals],
    ) -> tuple[Reals, Reals]:
        """By how much degrees 3 and 4 of a point may be off, for a weight and a rho of 1, at
        distances between two ends, F_n at the lower one.

        Each F_n is known up to its relative error, |v| is at most r and the extent; sums over
        points round terms as large as `F_n extent^n` (see the module), and adding the parts of a
        tensor with Kronecker's delta, of Frobenius norm sqrt f, rounds those.
        """
        xp, f = namespace(distance_error), self.scale.shape[0]
        E = extents + xp.zeros_like(distance_error)
        e2, e3, e4 = (
            1.5 * self.profile.relative_errors(n, ends, distance_error) for n in (2, 3, 4)
        )
        length = xp.minimum(up(ends[1] + distance_error, 2), E)
        summed = gamma(self.table.points.shape[0] + f * f + 96) + 4.0 * COORDINATE + 64.0 * U
        many, square = 1.0 + math.sqrt(f), 1.0 + f
        F2, F3, F4 = F
        cubic = F3 * (e3 * length**3 + summed * E**3)
        cubic = cubic + (3.0 * F2) * (e2 * length + (summed * many) * E)
        quartic = F4 * (e4 * length**4 + summed * E**4)
        quartic = quartic + (6.0 * F3) * (e3 * length**2 + (summed * many) * E**2)
        quartic = quartic + (3.0 * F2) * (e2 + summed * square)
        factor = 1.2 * self.variance
        return up((factor / 6.0) * cubic, 32), up((factor / 24.0) * quartic, 32)
