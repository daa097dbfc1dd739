"""The paper's bounded decomposition: k(x, z_i) between functions affine in carriers phi(x, z_i).

A `Carrier` is a function phi(x, z_i) whose weighted sums over i have an exact minimum over a box
(the paper's U): a squared distance (a separable quadratic), a sum of sinusoids, one exponential, a
linear function. A leaf kernel is psi(phi); a line under and over psi on the range of phi gives

    intercept_i + slope_i phi(x, z_i) <= k(x, z_i) <= intercept'_i + slope'_i phi(x, z_i).

Sums add such functions, products combine them by McCormick's inequality, so a composed kernel is
enclosed by functions affine in several carriers at once. Reference: Patane et al., Section 5.1 and
Propositions "sum" and "product", with the corrections of Statement 12.10.

Proofs: docs/mathematics.md, statement 12.3.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Annotated

import numpy as np

from gpcert.numerics.arrays import Array, PerCell, PerCellAndPoint, Reals, namespace
from gpcert.numerics.rounding import EXP_ULPS, SIN_COS_ULPS, TINY, down, gamma, root, up
from gpcert.regions.cells import separable_minima
from gpcert.regions.scaled import ScaledCells


class Carrier(ABC):
    """phi(x, z_i) on a batch of cells."""

    @abstractmethod
    def minimum(self, coefficients: PerCellAndPoint) -> PerCell:
        """Certified lower bound (B,) of `min_x sum_i a_bi phi(x, z_i)` over each cell, a (B, N).

        Exact up to rounding: this is `-U(-a)` of the paper.
        """

    @abstractmethod
    def magnitude(self) -> PerCellAndPoint:
        """Upper bound (B, N) of `|phi(x, z_i)|` over each cell."""


@dataclass(frozen=True, eq=False)
class Affine:
    """`intercept_bi + sum_m slopes[m]_bi phi_m(x, z_i)`, arrays (B, N)."""

    intercept: Array
    slopes: tuple[tuple[Carrier, Array], ...]


@dataclass(frozen=True, eq=False)
class AffineRelaxation:
    """For all x of cell b: `low <= k(x, z_i) <= high` and `under <= k(x, z_i) <= over`.

    The floats of `under` and `over` are taken as exact: whoever makes them rounds intercepts
    outwards.
    """

    low: Array
    high: Array
    under: Affine
    over: Affine


@dataclass(frozen=True, eq=False)
class QuadraticCarrier(Carrier):
    """`phi = |x - z_i|^2` (scaled); with u_i = z_i - c,

    `sum_i a_i phi(c + d, z_i) = sum a_i |u_i|^2 - 2 d.sum a_i u_i + |d|^2 sum a_i`. Scaled points
    (N, f), centres (B, f) and half-widths (B, f) of the cells.

    Points and centres carry 3 roundings each; half-widths are upper bounds. `fixed` (N,) is the
    part of phi from the features that the region holds fixed, known up to the relative error
    `fixed_error`; `extents` (N,) bounds |z_i| + |c|; `largest` (B, N) bounds phi over each cell.
    `scale` (f,), one rounding, is what the frame's coordinates at `columns` are multiplied by; None
    where these are not known among the region's free features.
    """

    points: Annotated[Array, "N d"]
    centers: Array
    half: Array
    fixed: Array
    fixed_error: float
    extents: Array
    largest: Array
    scale: Array
    columns: np.ndarray | None

    def minimum(self, coefficients: PerCellAndPoint) -> PerCell:
        """In each feature at an end, or at `sum a u / sum a` where that is inside a convex one.

        Rounding: every sum is a dot product of at most 4N + 8f + 32 roundings of terms bounded by
        `|a_i| (extent_i^2 + fixed_i)`, `|a_i| |half|^2` and `|sum a u| half`.
        """
        xp = namespace(self.centers)
        N, f = self.points.shape
        a, c, half = coefficients, self.centers, self.half
        with np.errstate(over="ignore", invalid="ignore"):
            zeroth = xp.sum(a, axis=1)
            raw = a @ self.points
            first = raw - zeroth[:, None] * c
            square = a @ (xp.sum(self.points**2, axis=1) + self.fixed)
            square = square - xp.sum(c * (raw + first), axis=1)
            total = square + xp.sum(separable_minima(zeroth, first, half), axis=1)

            magnitudes = xp.abs(a)
            size = magnitudes @ (self.extents**2 + self.fixed)
            size = size + xp.sum(magnitudes, axis=1) * xp.sum(half**2, axis=1)
            size = size + xp.sum(xp.abs(first) * half, axis=1)
            size = size + (magnitudes @ self.extents) * root(xp.sum(half**2, axis=1))
            error = gamma(4 * N + 8 * f + 64) * 4.0 * size
            error = error + self.fixed_error * (magnitudes @ self.fixed)
            floor = TINY * xp.sum(magnitudes * (1.0 + self.extents) ** 2, axis=1)
            least = total - up(error + floor, 16)
        return xp.where(xp.isfinite(least), least, xp.full_like(least, -math.inf))

    def magnitude(self) -> PerCellAndPoint:
        return self.largest


HALF_TURN = 3.14
"""An interval of at least this half-width may hold a sinusoid's minimum wherever it begins."""


def sinusoid_minimum(C: Reals, S: Reals, spread: Reals, error: Reals) -> Reals:
    """Lower bound of `C cos e - S sin e` over |e| <= spread.

    Statement: it is least at an end, `C cos u - |S| sin u`, or, once its derivative there,
    `-C sin u - |S| cos u`, has become positive, it has passed `-sqrt(C^2 + S^2)`. `error` is twice
    a bound of the errors of C and of S, and of `gamma(2 SIN_COS_ULPS + 16)` times their sizes: both
    forms and the derivative's sign are known within it.
    """
    xp = namespace(C)
    S = xp.abs(S)
    u = xp.minimum(spread, xp.full_like(spread, HALF_TURN))
    cosine, sine = xp.cos(u), xp.sin(u)
    passed = (-C * sine - S * cosine >= -error) | (spread >= HALF_TURN)
    return xp.where(passed, -root(C * C + S * S), C * cosine - S * sine) - error


@dataclass(frozen=True, eq=False)
class SinusoidCarrier(Carrier):
    """`phi(x, z_i) = constant_i + sum_j amplitude_j cos(phase_bij + e_j)`, `|e_j| <= spread_bj`.

    The e_j move freely and independently: they are the displacements of the coordinates, or (f = 1)
    that of one phase. `cosines` and `sines` (B, f, N), at most 1 in size, are those of the phases
    at the centres, within `phase_errors` (at most 2) and a few roundings; `amplitudes` (f,) >= 0
    carry at most 8 roundings, `constants` (N,) the errors `constant_errors` (N,).
    """

    constants: Array
    constant_errors: Array
    amplitudes: Array
    cosines: Array
    sines: Array
    phase_errors: Array
    spreads: Array

    @np.errstate(over="ignore")
    def magnitude(self) -> PerCellAndPoint:
        """`|constant_i| + sum_j amplitude_j`, rounded up."""
        xp = namespace(self.constants)
        total = xp.abs(self.constants) + self.constant_errors + xp.sum(self.amplitudes)
        row = up(total, len(self.amplitudes) + 12)
        zero = xp.zeros_like(xp.sum(self.spreads, axis=1))
        return row[None, :] + zero[:, None]

    @np.errstate(over="ignore", invalid="ignore")
    def minimum(self, coefficients: PerCellAndPoint) -> PerCell:
        """`sum_i a_i constant_i`, and for each j the exact minimum of *one* sinusoid.

        Summed over the points first, `sum_i a_i cos(p_i + e) = C cos e - S sin e` is one sinusoid;
        every point apart (the paper's eq. "priodicU") is never better: `min sum >= sum min`.
        """
        xp = namespace(coefficients)
        (_, N), f = coefficients.shape, len(self.amplitudes)
        sizes = xp.abs(coefficients)
        weighted = coefficients[:, None, :]
        C = self.amplitudes * xp.sum(self.cosines * weighted, axis=2)
        S = self.amplitudes * xp.sum(self.sines * weighted, axis=2)
        moved = xp.sum(self.phase_errors * sizes[:, None, :], axis=2)
        whole = xp.sum(sizes, axis=1)[:, None]
        error = self.amplitudes * (moved + gamma(N + 6 * SIN_COS_ULPS + 40) * whole)
        error = up(2.0 * error, N + 16)
        parts = sinusoid_minimum(C, S, self.spreads, error)
        flat = xp.sum(coefficients * self.constants, axis=1)
        lost = xp.sum(sizes * self.constant_errors, axis=1)
        lost = lost + gamma(N + f + 16) * xp.sum(sizes * xp.abs(self.constants), axis=1)
        lost = lost + gamma(f + 16) * xp.sum(xp.abs(parts), axis=1)
        floor = TINY * N * (1.0 + xp.sum(self.amplitudes))  # what underflows meets the amplitudes
        total = flat + xp.sum(parts, axis=1) - up(lost + floor, N + f + 16)
        return xp.where(xp.isfinite(total), total, xp.full_like(total, -math.inf))


@dataclass(frozen=True, eq=False)
class ExponentialCarrier(Carrier):
    """`phi(x, z_i) = value_bi e^s`, the same s for all points, `|s| <= spread_b`.

    `values` (B, N) > 0 are known up to `errors` (B, N), `largest` (B, N) bounds phi.
    """

    values: Array
    errors: Array
    largest: Array
    spread: Array

    def magnitude(self) -> PerCellAndPoint:
        return self.largest

    @np.errstate(over="ignore", invalid="ignore")
    def minimum(self, coefficients: PerCellAndPoint) -> PerCell:
        """`A e^s`, `A = sum_i a_i value_i`, is monotone: least at s = -u for A >= 0, else at u."""
        xp = namespace(coefficients)
        N = coefficients.shape[1]
        sizes = xp.abs(coefficients)
        total = xp.sum(coefficients * self.values, axis=1)
        unknown = xp.where(sizes > 0, sizes * self.errors, xp.zeros_like(sizes))
        error = xp.sum(unknown, axis=1) + gamma(N + 4) * xp.sum(sizes * self.values, axis=1)
        least = total - up(error, N + 8)
        grown = up(xp.exp(self.spread), EXP_ULPS + 2)
        shrunk = down(xp.exp(-self.spread), EXP_ULPS + 2)
        shrunk = xp.where(shrunk > 0, shrunk, xp.zeros_like(shrunk))
        bound = xp.where(least >= 0, down(least * shrunk, 2), down(least * grown, 2)) - TINY
        return xp.where(xp.isfinite(bound), bound, xp.full_like(bound, -math.inf))


@dataclass(frozen=True, eq=False)
class LinearCarrier(Carrier):
    """Linear functions, known by their values at the centres and by their slopes.

    `values` (B, N) are known up to `errors` (B, N), `slopes` (N, f) up to `gamma(roundings)` times
    themselves (and up to what underflow takes), in the frame coordinates of `geometry`.
    """

    values: Array
    errors: Array
    slopes: Array
    geometry: ScaledCells
    spread: Array
    """(B, N): upper bounds of `|beta_i.d|` over each cell's box."""
    roundings: int = 4

    @cached_property
    @np.errstate(over="ignore", invalid="ignore")
    def _magnitude(self) -> Array:
        return up(abs(self.values) + self.errors + self.spread, 4)

    def magnitude(self) -> PerCellAndPoint:
        """`|alpha_i| + sum_j |beta_ij| half_j`, rounded up."""
        return self._magnitude

    def minimum(self, coefficients: PerCellAndPoint) -> PerCell:
        """`sum_i a_i alpha_i + min_d (sum_i a_i beta_i).d`, exact up to rounding."""
        return joint_minimum([(self, coefficients)])

    def form(self, coefficients: Array, summands: int) -> tuple[PerCell, Array, PerCell]:
        """`sum_i a_i phi(x, z_i)` as a value (B,), slopes (B, f) and an error (B,) over the cell.

        The sums over i have N terms each, `|a_i alpha_i|` and `|a_i beta_ij| half_j`, together at
        most `|a_i| magnitude_i`; their rounding is counted by that size, and so is the rounding
        of a sum of so many forms.
        """
        xp, half = namespace(coefficients), self.geometry.half
        (_, N), f = coefficients.shape, half.shape[1]
        sizes = abs(coefficients)
        count = N + f + self.roundings + summands + 16
        error = xp.sum(sizes * self.errors, axis=1)
        error = error + gamma(count) * xp.sum(sizes * self._magnitude, axis=1)
        # underflow of slopes in either units
        lost = 1.0 + xp.sum(half * (1.0 + self.geometry.unit), axis=1)
        error = error + (TINY * (1.0 + N)) * lost
        flat = xp.sum(coefficients * self.values, axis=1)
        return flat, coefficients @ self.slopes, up(error, N + 8)


@np.errstate(over="ignore", invalid="ignore")
def joint_minimum(terms: Sequence[tuple[LinearCarrier, Array]]) -> PerCell:
    """Certified lower bound (B,) of the minimum over each cell of a sum of linear functions.

    `sum_m sum_i a_mi phi_m(x, z_i)` with coefficients (B, N), all carriers on the same cells, each
    on some of their features. Exact up to rounding, over parts of balls too.
    """
    geometry = terms[0][0].geometry
    xp = namespace(geometry.half)
    forms = [carrier.form(coefficients, len(terms)) for carrier, coefficients in terms]
    flat = reduce(add, [form[0] for form in forms])
    error = reduce(add, [form[2] for form in forms])
    slope = xp.zeros_like(geometry.cells.lower)
    for (carrier, _), form in zip(terms, forms, strict=True):
        index = xp.asarray(carrier.geometry.features, device=slope.device)
        # in the user's units, exactly: the frame's are powers of two
        slope[:, index] = slope[:, index] + form[1] / carrier.geometry.unit
    least = geometry.cells.linear_minimum(slope)
    # sums of 2 m + 1 numbers; the errors' own sum is rounded up
    size = abs(least) + reduce(add, [abs(form[0]) for form in forms])
    total = flat + least - up(error + gamma(len(terms) + 2) * size, 2 * len(terms) + 4)
    return xp.where(xp.isfinite(total), total, xp.full_like(total, -math.inf))
