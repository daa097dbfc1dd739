"""Slopes of kernels inside a region: `D_u k(., z_i)` along a fixed direction u, as nodes.

The features are `psi(x) = D_u phi(x)`, so that a slope of `f = sum_i t_i k(., z_i)` is `<f, psi>`,
and all that holds of a function and its features holds of a slope and psi, with the norm of f.
For a radial kernel, in scaled coordinates,

    D_u k(x, z) = u.(z - x) k1(x, z),   k1 = s F_1(r): radial too, with the profile F_1, F_2, ...

Proofs: docs/mathematics.md, statements 19.1 to 19.6.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Annotated
from weakref import WeakValueDictionary

import numpy as np

from gpcert.kernels.nodes.base import (
    CubicPart,
    DerivativeBounds,
    Jet,
    KnownBatch,
    LocalNode,
    NodeBatch,
    TaylorRemainder,
    Triple,
)
from gpcert.kernels.nodes.composite import ProductBatch, SumNode
from gpcert.kernels.nodes.moments import sorted_index
from gpcert.kernels.nodes.radial import LocalRadial
from gpcert.kernels.nodes.radial_batch import RadialBatch
from gpcert.kernels.nodes.radial_profiles import RadialProfile, infinite_beyond_zero
from gpcert.kernels.nodes.radial_remainder import MAX_TENSOR_FEATURES
from gpcert.kernels.sizes import frobenius, leibniz, raised, times
from gpcert.numerics.arrays import (
    Array,
    PerCell,
    PerCellAndFeature,
    PerCellAndPoint,
    PerCellMatrix,
    PerFeature,
    Points,
    Reals,
    namespace,
)
from gpcert.numerics.rounding import POW_ULPS, TINY, U, gamma, nonnegative, root, up, up_float
from gpcert.regions.cells import Cells, Frame
from gpcert.regions.scaled import ScaledCells

FURTHER_ROUNDINGS = 70.0
"""Of F_(n+1) besides those that a profile counts for F_n: one ratio more, in units of U."""


class DerivedProfile(RadialProfile):
    """`factor F_(n+1)` of another profile as the F_n of this one, factor a power of two for which
    its value at 0 is at most 1; exact but for that of the profile."""

    def __init__(self, profile: RadialProfile) -> None:
        self.profile = profile
        self.factor = 2.0 ** -math.ceil(math.log2(profile.at_zero[1]))
        (fourth,) = profile.terms(np.zeros(1), (4, 0))
        slack = FURTHER_ROUNDINGS + float(profile.roundings(np.zeros(1))[0])
        last = float(up(fourth, math.ceil(slack))[0])
        values = (*profile.at_zero[1:], last if math.isfinite(last) else math.inf)
        self._at_zero = tuple(self.factor * value for value in values)

    @property
    def negligible(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """That of the profile."""
        return self.profile.negligible

    @property
    def at_zero(self) -> tuple[float, float, float, float]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """`factor F_(n+1)(0)`, rounded up."""
        one, two, three, four = self._at_zero
        return one, two, three, four

    def terms(self, r: Reals, *pairs: tuple[int, int]) -> list[Reals]:
        """Those of a higher order."""
        terms = self.profile.terms(r, *((n + 1, k) for n, k in pairs))
        return [self.factor * term for term in terms]

    def roundings(self, r: Reals) -> Reals:
        """One ratio more."""
        return self.profile.roundings(r) + FURTHER_ROUNDINGS

    def growth(self, n: int, r: Reals) -> Reals:
        """w_(n+1)."""
        return self.profile.growth(n + 1, r)

    def steepness(self, n: int, low: Reals, high: Reals) -> Reals:
        """Of F_(n+1)."""
        return self.profile.steepness(n + 1, low, high)


_IN_USE: WeakValueDictionary[tuple[Hashable, ...], RadialBatch] = WeakValueDictionary()
"""Batches of derived kernels that some expansion holds, by what they were made from."""


@lru_cache(maxsize=128)
def derived(profile: RadialProfile) -> RadialProfile:
    """F_1, F_2, ... as a profile: one record for each, as its peaks are found once."""
    return profile if profile.self_similar else DerivedProfile(profile)


@dataclass(frozen=True, eq=False)
class LinearDifferenceBatch(KnownBatch):
    """`a.(z_i - x)` on a batch of cells, of the same slope `-a` for all points."""

    slope: PerFeature
    """(f,): -a, in frame coordinates."""
    reach: PerCell
    """Upper bound (B,) of `|a.d|` over each cell."""

    def contract(self, coefficients: PerCellAndPoint) -> Jet:
        xp = namespace(coefficients)
        f = self.slope.shape[0]
        gradient = xp.sum(coefficients, axis=1)[:, None] * self.slope
        return Jet(xp.sum(coefficients * self.value, axis=1), gradient, self._zeros(f, f))

    def gradients(self) -> Annotated[Array, "B f N"]:
        B, N = self.value.shape
        return namespace(self.value).broadcast_to(
            self.slope[None, :, None], (B, len(self.slope), N)
        )

    def variations(self) -> tuple[PerCellAndPoint, ...]:
        """`S_1 = sup |a.d|`; then zero."""
        xp = namespace(self.value)
        none = xp.zeros_like(self.value)
        first = none + self.reach[:, None]
        return up(self.sizes[0] + first, 2), first, none, none

    def diagonal_jet(self) -> tuple[Jet, Triple]:
        raise NotImplementedError("a slope's own variance is not bounded")


@dataclass(frozen=True, eq=False)
class RadialSlopeBatch(ProductBatch):
    """`D_u k(., z_i)` as the product of a linear function and a radial kernel."""

    left: LinearDifferenceBatch  # pyright: ignore[reportIncompatibleVariableOverride]

    @np.errstate(under="ignore")
    def contract(self, coefficients: PerCellAndPoint) -> Jet:
        """Leibniz; the linear functions differ by constants, so their common slope meets one sum.

        `D (b k1) = b D k1 - a k1`, `D^2 (b k1) = b D^2 k1 - (a D k1^T + D k1 a^T)`.
        """
        xp, slope = namespace(coefficients), self.left.slope
        first = self.right.contract(coefficients * self.left.value)
        second = self.right.contract(coefficients)
        crossed = slope[None, :, None] * second.gradient[:, None, :]
        return Jet(
            xp.sum(coefficients * self.value, axis=1),
            first.gradient + second.value[:, None] * slope,
            first.hessian + (crossed + xp.matrix_transpose(crossed)),
        )

    def variations(self) -> tuple[PerCellAndPoint, ...]:
        """Leibniz, as of any product; the linear functions have no more than one derivative."""
        size, first, none, _ = self.left.variations()
        left = (size, first, none[:1, :1], none[:1, :1])
        right = self.right.variations()
        return tuple(leibniz(left, right, n) for n in range(4))

    @np.errstate(over="ignore", invalid="ignore")
    def second_order_remainder(
        self, coefficients: PerCellAndPoint, third: PerCellAndPoint
    ) -> TaylorRemainder:
        """Statement 19.4: with `b_i = a.(z_i - c)`, the sum is `sum t_i b_i k1_i - (a.d) sum t_i
        k1_i`; of the first what its degree 2 leaves, of the second what its degree 1 leaves, times
        `a.d`. The errors of the b_i meet the third derivatives of the k1_i."""
        del third
        xp, right, left = namespace(coefficients), self.right, self.left
        inner = right.first_and_third()[1]
        sizes = xp.abs(coefficients)
        weights = coefficients * left.value
        lost = times(sizes, up(left.errors[0] + 2.0 * U * abs(left.value), 2))
        beside = up(xp.sum(times(lost, inner), axis=1) / 6.0, coefficients.shape[1] + 8)
        first = right.second_order_remainder(weights, inner).raised(beside)
        rest = right.second_order_remainder(coefficients, inner)
        hessian = right.contract(coefficients).hessian
        accuracy = times(sizes, right.errors[2] + 0.0 * sizes)
        rounding = gamma(coefficients.shape[1] + 4 * self.features + 32)
        accuracy = accuracy + rounding * times(sizes, right.sizes[2] + 0.0 * sizes)
        wrong = up(xp.sum(accuracy, axis=1), coefficients.shape[1] + 16)
        return TaylorRemainder.of_sum([first, self._by_slope(hessian, wrong, rest.size)])

    def _by_slope(self, hessian: PerCellMatrix, wrong: PerCell, rest: PerCell) -> TaylorRemainder:
        """Of `(a.d) (d^T H d / 2 + e)`, H off by at most `wrong` in norm and `|e| <= rest`."""
        xp, half, reach = namespace(rest), self.half, self.left.reach
        f = self.features
        rho2 = up(xp.sum(half * half, axis=1), f + 2)
        bends = xp.abs(hessian) * (half[:, :, None] * half[:, None, :])
        whole = up(xp.sum(bends, axis=(1, 2)), f * f + 4)
        bend = xp.minimum(whole, times(up(frobenius(hessian), 2), rho2))
        left = up(times(reach, up(0.5 * times(wrong, rho2) + rest, 4)) + TINY, 4)
        size = up(times(reach, up(0.5 * bend, 2)) + left, 2)
        if not 0 < f <= MAX_TENSOR_FEATURES:
            return TaylorRemainder(size)
        entries, slope = sorted_index(f, 3).entries, self.left.slope
        j, k, m = (xp.asarray(place, device=half.device) for place in entries.T)
        tensor = slope[j] * hessian[:, k, m] + slope[k] * hessian[:, j, m]
        tensor = tensor + slope[m] * hessian[:, j, k]
        lines = up(xp.sum(xp.abs(slope) * half, axis=1), f + 4)
        absolute = up(0.5 * times(lines, whole) + TINY, 4)
        return TaylorRemainder(
            size, CubicPart(tensor, up(left + gamma(16) * absolute, 2), absolute)
        )

    @property
    def half(self) -> PerCellAndFeature:
        """The cells' half-widths, in frame coordinates."""
        return self.geometry.half

    geometry: ScaledCells


@dataclass(frozen=True, eq=False)
class RadialSlope(LocalNode):
    """`D_u k` of a radial kernel; `radial` is that of the derived profile.

    In frame coordinates `u.(z_i - x)` is `slope.(z_i - x)` of the free features, and `fixed` (N,)
    of those that are held, to `errors` (N,) in all; `squared` bounds |u|^2 in scaled coordinates,
    all features.
    """

    radial: LocalRadial
    slope: PerFeature
    points: Points
    fixed: Annotated[Array, "N"]
    errors: Annotated[Array, "N"]
    length: float
    """Upper bound of |slope|."""
    squared: float
    jump: float
    """See `RadialProfile.fifth_jump`, of the derived profile."""
    identity: tuple[Hashable, ...]
    """What `radial` was made from."""

    @staticmethod
    def build(
        points: Points,
        lengths: PerFeature,
        kernel: tuple[float, RadialProfile],
        direction: PerFeature,
        frame: Frame,
    ) -> RadialSlope:
        """Of the kernel with that variance and profile."""
        variance, profile = kernel
        free, held, place = frame.free, frame.fixed, frame.backend.asarray
        derivative = derived(profile)
        factor = derivative.factor if isinstance(derivative, DerivedProfile) else 1.0
        radial = LocalRadial.build(points, lengths, variance / factor, derivative, frame)
        parts = (points, lengths, frame.unit, frame.origin, frame.fixed_values, free, held)
        along = direction / lengths
        squared = float(up(np.sum(along * along), len(lengths) + 8) + TINY * np.any(along != 0))
        slope = (along / lengths)[free] * frame.unit
        apart = (along / lengths)[held] * (points[:, held] - frame.fixed_values)
        seen = frame.points(points)
        reach = frame.extents(points) @ np.abs(slope) + np.abs(apart).sum(axis=1)
        lost = TINY * (1.0 + np.abs(slope).sum() + frame.extents(points).sum(axis=1))
        errors = np.asarray(up(gamma(2 * len(lengths) + 40) * reach + lost, len(lengths) + 8))
        return RadialSlope(
            radial,
            place(slope),
            place(seen),
            place(apart.sum(axis=1)),
            place(errors),
            float(up(np.sqrt(np.sum(slope * slope)), len(slope) + 16)) + TINY * bool(np.any(slope)),
            squared,
            factor * profile.fifth_jump,
            (derivative, variance, *(bytes(np.asarray(part)) for part in parts)),
        )

    @np.errstate(over="ignore", invalid="ignore")
    def derivative_bounds(self, geometry: ScaledCells) -> DerivativeBounds:
        """Statement 19.2: `E (w.u)^2 (w.d)^(2n) <= (2n+1)!! F_(n+1)(0) |u|^2 rho^(2n)`, and R_0 and
        R_1 from the kernel where these do not exist."""
        radial, profile = self.radial, self.radial.profile
        rho2 = geometry.squared_norm(radial.metric)
        xp = namespace(rho2)
        size = up_float(radial.variance * self.squared, 2)
        moments = []
        for n, factor in enumerate((1.0, 3.0, 15.0, 105.0)):
            most = up_float(factor * profile.at_zero[n] * size, 4) if self.squared else 0.0
            if not math.isfinite(most):
                moments.append(infinite_beyond_zero(rho2))
                continue
            power = xp.where(rho2 > 0, rho2, xp.ones_like(rho2)) ** n
            term = raised(most * power, POW_ULPS + 4)
            moments.append(term if n == 0 else xp.where(rho2 > 0, term, xp.zeros_like(rho2)))
        r = up(xp.sqrt(rho2), 2)
        zeroth = up(root(size * self._zeroth(r)), 4)
        first = up(root(size * up((2.0 / 3.0) * self.jump * r**3, POW_ULPS + 4)), 4)
        unknown, none = infinite_beyond_zero(rho2), xp.zeros_like(rho2)
        direct = (zeroth, first if math.isfinite(self.jump) else unknown, unknown)
        if not self.squared:
            direct = (none, none, none)
        direct = tuple(xp.where(rho2 > 0, part, none) for part in direct)
        return DerivativeBounds(radial.gram_of(moments, rho2), direct, True)

    def _zeroth(self, r: PerCell) -> PerCell:
        """Upper bound of `2 (F_0(0) - F_0 + sup F_1 r^2)` of the derived profile up to r; its terms
        are off by a relative rounding."""
        xp, profile = namespace(r), self.radial.profile
        top = xp.minimum(r, xp.full_like(r, profile.peak(1, 2)))
        (value,), (rising,) = profile.terms(r, (0, 0)), profile.terms(top, (1, 2))
        wrong = U * (profile.roundings(r) + profile.roundings(top) + 16.0)
        rising = rising * (1.0 + 1e-9 + wrong) + TINY
        fall = nonnegative(profile.at_zero[0] * (1.0 + 8.0 * U) - value * (1.0 - wrong))
        return up(2.0 * (fall + rising), 8)

    @np.errstate(over="ignore", invalid="ignore")
    def at(self, geometry: ScaledCells) -> RadialSlopeBatch:
        right = self._radial_batch(geometry)
        centers = geometry.center
        xp = namespace(centers)
        value = (self.points @ self.slope + self.fixed)[None, :] - (centers @ self.slope)[:, None]
        none = xp.zeros_like(value[:1, :1])
        length = none + self.length
        errors = self.errors[None, :] + xp.zeros_like(value)
        across = geometry.squared_norm(xp.ones_like(self.slope))
        reach = up(geometry.length(xp.abs(self.slope)), 16)
        reach = xp.minimum(reach, times(up(root(across), 2), xp.full_like(reach, self.length)))
        moves = xp.any(geometry.half > 0, axis=1)
        reach = xp.where(moves, up(reach, 4) + TINY, xp.zeros_like(reach))
        left = LinearDifferenceBatch(
            value,
            (up(xp.abs(value) + errors, 2), length, none),
            (errors, up(gamma(16) * length, 2), none),
            -self.slope,
            reach,
        )
        return RadialSlopeBatch.of(left, right, geometry.half.shape[1], geometry=geometry)

    def _radial_batch(self, geometry: ScaledCells) -> RadialBatch:
        """The derived kernel on these cells: slopes along several directions, each a model of its
        own, share it while the first of them is in use."""
        cells = geometry.cells
        shared = isinstance(cells.lower, np.ndarray) and type(cells) is Cells
        if not shared or cells.choice is not None or cells.balls is not None:
            return self.radial.at(geometry)
        columns = b"" if geometry.columns is None else np.asarray(geometry.columns).tobytes()
        ends = (cells.lower, cells.upper, geometry.center, geometry.half)
        key = (*self.identity, id(cells.region), columns, *(end.tobytes() for end in ends))
        batch = _IN_USE.get(key)
        if batch is None:
            batch = _IN_USE[key] = self.radial.at(geometry)
        return batch


@dataclass(frozen=True, eq=False)
class FlatSlope(LocalNode):
    """Slopes that do not depend on x, as those of a linear kernel: `values` (N,) to `errors`, of
    features of at most the `length`."""

    values: Annotated[Array, "N"]
    errors: Annotated[Array, "N"]
    length: float

    def derivative_bounds(self, geometry: ScaledCells) -> DerivativeBounds:
        """`D_u phi` is constant."""
        xp = namespace(geometry.half)
        none = xp.zeros_like(geometry.center[:, :1].sum(axis=1))
        first = none + up_float(self.length * self.length, 2)
        gram = tuple(
            tuple((none if i else first) if i == j else None for j in range(4)) for i in range(4)
        )
        return DerivativeBounds(gram, (none, none, none), stationary=True)

    def at(self, geometry: ScaledCells) -> FlatSlopeBatch:
        xp, (B, f) = namespace(geometry.half), geometry.half.shape
        none = xp.zeros((B, self.values.shape[0]), dtype=xp.float64, device=geometry.half.device)
        value, error = none + self.values, none + self.errors
        sizes = (up(xp.abs(value) + error, 2), none, none)
        return FlatSlopeBatch(value, sizes, (error, none, none), f)


@dataclass(frozen=True, eq=False)
class FlatSlopeBatch(KnownBatch):
    """Constants on a batch of cells with f free features."""

    features: int

    def contract(self, coefficients: PerCellAndPoint) -> Jet:
        value = namespace(coefficients).sum(coefficients * self.value, axis=1)
        return Jet(value, self._zeros(self.features), self._zeros(self.features, self.features))

    def gradients(self) -> Annotated[Array, "B f N"]:
        return self._zeros(self.features, self.value.shape[1])

    def variations(self) -> tuple[PerCellAndPoint, ...]:
        size, none, _ = self.sizes
        return size, none, none, none

    def diagonal_jet(self) -> tuple[Jet, Triple]:
        raise NotImplementedError("a slope's own variance is not bounded")


@dataclass(frozen=True, eq=False)
class ProductSlope(SumNode):
    """`D_u (phi_1 (x) phi_2) = D_u phi_1 (x) phi_2 + phi_1 (x) D_u phi_2`: a sum of products whose
    features are not orthogonal."""

    @np.errstate(over="ignore")
    def derivative_bounds(self, geometry: ScaledCells) -> DerivativeBounds:
        """By the triangle inequality (Statement 19.5)."""
        parts = [part.derivative_bounds(geometry) for part in self.parts]
        return reduce(DerivativeBounds.joined, parts)


def slope_sum(parts: Sequence[LocalNode]) -> LocalNode:
    """The slope of a product from one product of nodes for each of its factors."""
    return parts[0] if len(parts) == 1 else ProductSlope(tuple(parts))


__all__ = [
    "FlatSlope",
    "LinearDifferenceBatch",
    "NodeBatch",
    "ProductSlope",
    "RadialSlope",
    "derived",
    "slope_sum",
]
