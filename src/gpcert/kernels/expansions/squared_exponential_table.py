"""The squared exponential at a batch of centres: values, moments and tails, rounding included.

Coordinates are scaled by the length-scales; `gpcert.kernels.expansions.squared_exponential` says
what the moments and tails are for.

Proofs: docs/mathematics.md, statements 1.2, 2.6, 4.3, 16.5 and 16.6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Self

import numpy as np

from gpcert.kernels.expansions.base import inverse_lengths
from gpcert.kernels.expansions.exponentials import (
    FARTHEST,
    HIGHEST_DEGREE,
    Box,
    HigherTerms,
    Triples,
    box_metric,
    cubic_terms,
    expanded_values,
    exponential_tail,
    gram_terms,
    kernel_errors,
    subtraction_error,
)
from gpcert.kernels.nodes.moments import MomentTable
from gpcert.numerics.arrays import (
    Array,
    Backend,
    PerCell,
    PerCellAndPoint,
    PerOrder,
    Reals,
    Rows,
    dot,
    fused,
    namespace,
)
from gpcert.numerics.rounding import (
    EXP_ULPS,
    POW_ULPS,
    TINY,
    U,
    down,
    gamma,
    nonnegative,
    raised_power,
    root,
    scaled_to_one,
    up,
    up_float,
)
from gpcert.regions import Region
from gpcert.regions.cells import power_of_two
from gpcert.regions.held import HeldDistances
from gpcert.utils.processes import checkpoint

Cubes = tuple[Array, Array]
"""Third moments (B, n) over sorted triples, and the centres (B, f) they are to be shifted to."""

MAX_CUBIC_FEATURES = 12
"""Up to here all third moments (f^3/6 columns) cost less than one product with an N x N matrix."""

MAX_GRAM_ENTRIES = 20_000_000
"""Entries of the (B, N, N) arrays of inner products that are formed at once."""

MAX_GRAM_FEATURES, MAX_GRAM_WORK = 32, 256_000_000
"""Up to so many features a batch may form so many, one piece after the other: halving boxes gains
less there than the degrees 3 to 6 do. Beyond, `MAX_GRAM_ENTRIES` in all."""


@dataclass(frozen=True, eq=False)
class SquaredExponentialTable:
    """See the module. Arrays live on the backend; `reach` bounds |c| over the region, scaled."""

    inverse_length: Array
    squared_lengths: Array
    unit: Array
    variance: float
    origin: Array
    lengths: Array
    points: Array
    """(N, f) scaled displacements of the points from the region's centre; this and what is of each
    point may differ between cells, (B, N, f) and (B, N): `squared_exponential_sections`."""

    point_norms: Array
    fixed_distances: Array
    """(N,) squared scaled distances in the features that the region holds fixed; NaN where cells
    hold them at values of their own: then `held` says."""

    relative_error: Array
    """(N,): `|fl(k_bi) - k_bi| <= relative_error_i fl(k_bi)` (+ TINY s^2) for centres inside."""

    reach: float | Array
    direct: bool
    """Subtract coordinates instead of expanding the square (for huge scaled distances)."""

    weight_rate: float = 0.5
    held: HeldDistances | None = None

    @classmethod
    def build(
        cls,
        points: Annotated[np.ndarray, "N d"],
        lengths: Annotated[np.ndarray, "d"],
        variance: float,
        region: Region,
        backend: Backend,
    ) -> Self:
        """Scale the points, and bound the error of every kernel value computed from here."""
        free, fixed = region.free, region.fixed
        d, f = points.shape[1], len(free)
        origin = region.center[free]
        scaled = (points if f == d else points[:, free]) - origin
        scaled /= lengths[free]
        norms = np.asarray(up(root(np.einsum("ij,ij->i", scaled, scaled)), f + 8))
        offsets = np.maximum(region.upper[free] - origin, origin - region.lower[free])
        with np.errstate(over="ignore"):  # an infinite reach is refused below
            reach = float(up(root(np.square(offsets / lengths[free]).sum()), f + 8))
        with np.errstate(over="ignore"):
            fixed_scaled = (points[:, fixed] - region.center[fixed]) / lengths[fixed]
            farthest = fixed_distances = np.minimum(np.square(fixed_scaled).sum(1), FARTHEST)
        held = None
        if region.held:
            rest = fixed, region.center[fixed]
            held, most = HeldDistances.of(points, lengths, region.held, rest, backend.asarray)
            farthest, fixed_distances = np.minimum(most, FARTHEST), np.full(len(points), np.nan)
        # Both coordinates carry 3 roundings, |c| + |z_i| <= extent_i. Expanding the square loses
        # (f + 12) U extent^2; subtracting first much less where the extent is large.
        extent = norms + reach
        expanded = (f + 12) * U * np.square(extent)
        subtracted = subtraction_error(extent, f)
        direct = bool(expanded.max(initial=0.0) > 1e3 * subtracted.max(initial=0.0))
        relative = kernel_errors(subtracted if direct else expanded, farthest, d, extent)
        inverse, unit = inverse_lengths(lengths[free]), power_of_two(lengths[free])
        return cls(
            inverse_length=backend.asarray(inverse),
            squared_lengths=backend.asarray(up((unit / lengths[free]) ** 2, 4)),
            unit=backend.asarray(unit),
            variance=float(variance),
            origin=backend.asarray(origin),
            lengths=backend.asarray(lengths[free]),
            points=backend.asarray(scaled),
            point_norms=backend.asarray(norms),
            fixed_distances=backend.asarray(fixed_distances),
            relative_error=backend.asarray(relative),
            reach=reach,
            direct=direct,
            held=held,
        )

    def scaled_centers(self, centers: Annotated[Array, "B f"]) -> Annotated[Array, "B f"]:
        """`(c - origin) / l`."""
        return (centers - self.origin) / self.lengths

    def values(self, scaled: Array, fixed: Array) -> tuple[PerCellAndPoint, PerCellAndPoint]:
        """(B, N): squared scaled distances in the free features, clipped at 0, and
        `s^2 exp(-(r_free^2 + fixed)/2)`, `fixed` (N,) or (B, N)."""
        xp = namespace(scaled)
        if self.direct:
            total = 0.0 * (xp.sum(scaled, axis=1)[:, None] + self.point_norms)
            for j in range(scaled.shape[1]):
                total = total + (scaled[:, j, None] - self.points[..., j]) ** 2
            return total, self._scale * xp.exp(-0.5 * (total + fixed))
        return expanded_values(scaled, self._opposite, self._squares, fixed, self._scale)

    @cached_property
    def _scale(self) -> Array:
        """s^2, as an array: a number would be compiled into what is fused."""
        xp = namespace(self.points)
        return xp.asarray(self.variance, dtype=xp.float64, device=self.points.device)

    @cached_property
    def _opposite(self) -> Array:
        """(f, N): -2 z."""
        return -2.0 * self.points.T

    @cached_property
    def _squares(self) -> Array:
        """(N,) squared norms of the scaled points."""
        return namespace(self.points).sum(self.points**2, axis=1)

    def squared_sizes(self, K: PerCellAndPoint) -> tuple[PerOrder, PerOrder]:
        """(B, 3) upper bounds of `sum_i k_i^2 m_i^2n`, m_i >= |z_i - c|, n = 0, 1, 2, and of the
        same of the errors: one product of K^2 with powers of the extents, which what underflows in
        K^2 meets too."""
        N = K.shape[1]
        lost = self.floor * (1.0 + self._largest_extent) ** 2 * N
        sums = up(_sums_of_squares(K, self._size_columns), N + 16) + lost
        return sums[:, :3], sums[:, 3:]

    @cached_property
    def _size_columns(self) -> Array:
        """(..., N, 6): what `squared_sizes` sums K^2 with."""
        extent2 = (self.point_norms + self.reach) ** 2
        # the first sums are about k itself, not fl(k): k <= (1 + relative) fl(k)
        factors = ((1.0 + self.relative_error) ** 2, self.relative_error**2)
        return _columns([extent2**n * factor for factor in factors for n in range(3)])

    @cached_property
    def _table(self) -> MomentTable:
        return MomentTable(self.points)

    def moments_and_cubes(
        self, coefficients: PerCellAndPoint, scaled: Array
    ) -> tuple[tuple[Array, Array, Array], Cubes | None]:
        """`sum_i a_bi (1, u_i, u_i u_i^T)` for coefficients (B, N), u_i = z_i - c_b scaled, and for
        few features the third moments, by one product."""
        if 0 < self.points.shape[1] <= MAX_CUBIC_FEATURES:
            moments, third = self._table.moments_and_cubes(coefficients, scaled)
            return moments, (third, scaled)
        return self._table.moments(coefficients, scaled), None

    @cached_property
    def _triples(self) -> Triples:
        return Triples.of(self.lengths.shape[-1], self.points)

    def higher_terms(
        self,
        coefficients: Array,
        scaled: Array,
        moments: tuple[tuple[Array, Array, Array], Cubes | None],
        box: Box,
        rounding: PerCell,
        drift: Array | None = None,
        copies: int = 1,
    ) -> HigherTerms | None:
        """Third `moments_and_cubes` if known, `rounding` (B,) the last of `terms`; else the
        points' Gram matrix, N^2 per cell, once for all `copies` of a cell."""
        xp = namespace(coefficients)
        # |T_n| <= sum |a_i| m_i^n, and m_i^n <= m_i^2 (largest m)^(n-2)
        growth = [self._largest_extent ** (n - 2) for n in range(3, HIGHEST_DEGREE + 1)]
        drifts = xp.stack([0.0 * box[1] if drift is None else drift * g for g in growth], axis=1)
        lower, cubes = moments
        if cubes is not None:
            error = rounding + self._cubic_floor + up(drifts[:, 0], 4)
            return cubic_terms(*cubes, lower, self._triples, error, box)
        if not bool(xp.any(box[1] > 0)):
            return None  # single points have no higher degrees
        return self.gram_degrees(coefficients, scaled, box, 3, up(drifts, 8), copies)

    def gram_degrees(
        self, coefficients: Array, scaled: Rows, box: Box, first: int, drifts: Array, copies: int
    ) -> HigherTerms | None:
        """Degrees `first` (2 or 3) to 6 from the points' Gram matrix; None where that is large."""
        xp, (N, f) = namespace(coefficients), self.points.shape
        most = MAX_GRAM_WORK if first == 3 and f <= MAX_GRAM_FEATURES else MAX_GRAM_ENTRIES
        cells = len(coefficients) // copies
        if f == 0 or cells * N * N > most:
            return None
        each = max(1, MAX_GRAM_ENTRIES // N**2)
        if cells > each:  # piece by piece: bounds the memory
            pieces = []
            for start in range(0, cells, each):
                checkpoint()
                numbers = np.arange(copies * cells).reshape(copies, cells)[:, start : start + each]
                index = xp.asarray(numbers.reshape(-1), device=coefficients.device)
                parts = (part[index] for part in (coefficients, scaled, *box, drifts))
                a, c, half, rho, lost = parts
                pieces.append(self.gram_degrees(a, c, (half, rho), first, lost, copies))
            return HigherTerms.joined(pieces, copies)
        magnitudes = xp.abs(coefficients)
        # |u_i.u_j| <= m_i m_j, both and a_i with errors: at most 2 n eta (sum |a_i| m_i^n)^2 in all
        eta = gamma(2 * N + 8 * f + 64) + 2.0 * xp.max(self.relative_error)
        orders, scaled = range(first, HIGHEST_DEGREE + 1), scaled[:cells]
        points = self.points[None] - scaled[:, None, :]
        whole = xp.sum(xp.reshape(magnitudes, (copies, cells, N)), axis=0)
        metric = box_metric(whole, points, box[0][:cells], box[1][:cells])  # one for all copies
        growth = xp.stack([metric.growth**n for n in orders], axis=1)
        extent = metric.lengths(xp.abs(self.points)[None] + xp.abs(scaled)[:, None, :])
        parts = (extent, growth, metric.rho, metric.plain)
        extent, growth, rho, plain = (xp.concat([part] * copies, axis=0) for part in parts)
        sums = xp.stack([xp.sum(magnitudes * extent**n, axis=1) for n in orders], axis=1)
        error = up(16.0 * eta * (sums + self._cubic_floor * growth) ** 2, N + 32)
        points = points / metric.delta[:, None, :]
        terms = gram_terms(coefficients, points, error, up(drifts * growth, 12), rho, first)
        known = xp.where(plain, terms.known, 0.0 * terms.known)  # not of T'_n
        return replace(terms, known=known)

    @cached_property
    def _largest_extent(self) -> float:
        return float(namespace(self.point_norms).max(self.point_norms + self.reach))

    @property
    def _cubic_floor(self) -> float:
        """What underflow can cost a moment of degree up to six."""
        return self.floor * (1.0 + self._largest_extent) ** HIGHEST_DEGREE

    def terms(self, K: PerCellAndPoint, weights: Array) -> tuple[PerCellAndPoint, Array]:
        """`a_i = k_i t_i` (B, N), and errors (B, 4) of their moments of degree n about a centre:
        `sum_i |a_i| eta_i (|z_i| + |c|)^n`, eta_i = gamma(N + 2f + 32) + relative error of k, and
        128 in place of 32 for n = 3.

        Reason: each moment is a dot product of N terms whose factors carry at most 3n + 8 further
        roundings, and shifts are bounded by `(|z_i| + |c|)^n`, in norm, termwise; those of degree 3
        by 7 times that, with fewer than 14 roundings of their own (4.4).
        """
        coefficients, sums = _products_and_sizes(K, weights, self._error_columns)
        return coefficients, up(sums, K.shape[1] + POW_ULPS + 8)

    @cached_property
    def _error_columns(self) -> Array:
        """(..., N, 4), see `terms`."""
        N, f = self.points.shape[-2:]
        extent = self.point_norms + self.reach
        eta = [gamma(N + 2 * f + more) + self.relative_error for more in (32, 32, 32, 128)]
        return _columns([each * extent**n for n, each in enumerate(eta)])

    @property
    def floor(self) -> float:
        """What underflow can cost a moment of order <= 2 for each unit of `sum |t_i|`."""
        return TINY * max(1.0, self.variance) * (1.0 + self._largest_extent) ** 2

    def tail(self, order: int, rho2: PerCell) -> PerCell:
        """`s sqrt(sum_{k>n} rho2^k / k!)`, rounded up."""
        xp = namespace(rho2)
        return up(math.sqrt(self.variance) * xp.sqrt(exponential_tail(rho2, order)), 4)

    def zeroth_remainder(self, rho2: Reals) -> Reals:
        """`s sqrt(2 (1 - exp(-rho2/2)))`, rounded up."""
        xp = namespace(rho2)
        return up(xp.sqrt(-2.0 * self.variance * xp.expm1(-0.5 * up(rho2, 2))), EXP_ULPS + 8)

    def first_remainder(self, rho2: Reals) -> Reals:
        """Exact R1 (which grows with rho), or `b2/2 = s sqrt(3) rho^2 / 2` where that is smaller.

        `R1^2 = s^2 ((2 + rho2) - 2 exp(-rho2/2) (1 + rho2))`; what cancels is at most 2 + rho2 in
        size, and its rounding is added in full.
        """
        xp = namespace(rho2)
        x = up(rho2, 2)
        square = (2.0 + x) - 2.0 * xp.exp(-0.5 * x) * (1.0 + x) + (2.0 + x) * ((EXP_ULPS + 16) * U)
        exact = up(math.sqrt(self.variance) * xp.sqrt(square), 8)
        return xp.minimum(exact, up(0.5 * math.sqrt(3.0 * self.variance) * x, 8))

    def known_squared_norm(self, value: PerCell, gradient: PerCell, hessian: PerCell) -> PerCell:
        """`(f^2 + |g|^2 + |H|_F^2 / 2) / s^2`: the coefficients in the orthonormal basis."""
        xp = namespace(value)
        total = nonnegative(value) ** 2 + nonnegative(gradient) ** 2
        total = total + 0.5 * nonnegative(hessian) ** 2
        return xp.where(total > 0, down(total / self.variance, 12), xp.zeros_like(total))

    def slice_norm(self, weights: Annotated[np.ndarray, "N"]) -> float | None:
        """`t'^T K' t'` with t'_i = t_i exp(-fixed distance_i / 2) and K' on the free features.

        Reason: k(x, z_i) factors into a constant and the same kernel on the free features. The
        rounding of every entry is bounded by the relative errors of both factors, and what
        underflows by `floor`, as the largest weight is scaled to about one.
        """
        if self.direct or self.held is not None:  # expanded distances are not accurate enough
            return None
        xp = namespace(self.points)
        mantissas, exponent = scaled_to_one(weights)
        t = xp.asarray(mantissas, device=self.points.device)
        half = xp.exp(-0.5 * self.fixed_distances)
        gram = self._free_gram
        scaled_weights = t * half
        product = gram @ scaled_weights
        magnitude = gram @ xp.abs(scaled_weights)
        N = len(t)
        # r_ij^2 between points: both carry the coordinate errors that `relative_error` bounds
        eta = 4.0 * xp.max(self.relative_error) + gamma(2 * N + EXP_ULPS + 16)
        square = xp.sum(scaled_weights * product)
        error = eta * xp.sum(xp.abs(scaled_weights) * magnitude) + self.floor * xp.sum(abs(t)) ** 2
        total = float(square + error)
        if not math.isfinite(total):
            return None
        return raised_power(up_float(math.sqrt(max(total, 0.0)), 4), exponent)

    @cached_property
    def _free_gram(self) -> Array:
        """(N, N) the kernel on the free features, for the norms of all outputs."""
        xp = namespace(self.points)
        squares = self._squares
        distances = squares[:, None] + squares[None, :] - 2.0 * (self.points @ self.points.T)
        return self.variance * xp.exp(-0.5 * nonnegative(distances))


def _columns(columns: list[Array]) -> Array:
    """(..., N, n), each of them together in memory."""
    xp = namespace(columns[0])
    return xp.matrix_transpose(xp.stack(columns, axis=-2))


def _sums(rows: Array, columns: Array) -> Array:
    """(B, n): rows (B, N) times columns (N, n), or (B, N, n) of their own."""
    return dot(rows, columns) if columns.ndim == 2 else (rows[:, None, :] @ columns)[:, 0]


@fused
def _sums_of_squares(rows: Array, columns: Array) -> Array:
    return _sums(rows * rows, columns)


@fused
def _products_and_sizes(K: Array, weights: Array, columns: Array) -> tuple[Array, Array]:
    rows = K * weights
    return rows, _sums(namespace(rows).abs(rows), columns)
