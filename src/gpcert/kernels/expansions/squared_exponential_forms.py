"""Quadratic forms of squared exponentials over cells, and in which features they are monotone.

A form is `q(x) = k(x, Z) W k(Z, x)`. With B_ij = W_ij k_i k_j and y_i = u_i.d at a centre,
`exp(|d|^2) q(c+d) = sum_ij B_ij exp(y_i + y_j)`. Degrees up to 2 are computed. Degree n is
`sum_a C(n, a) sum_ij B_ij y_i^a y_j^(n-a) / n!`, each part at most `F_a |d|^n`,
`F_a^2 = sum_ijkl B_ij B_kl (u_i.u_k)^a (u_j.u_l)^(n-a)`, or a spectral norm in place of F_a; beyond
degree 6 or 9 Cauchy-Schwarz in the space of k^2, where q has the squared norm trace(W K W K).

With omega = exp(|d|^2 / 2) the function `f = b + sum_i t_i k(., z_i) - T k W k` has

    omega f = b omega + sum_i a_i e^(u_i.d) - T omega^-1 sum_ik B_ik e^((u_i + u_k).d).

The sign of a slope of that is that of `e^(-v.d)` times it, for any v: the exponents are then
`(u_i - v).d`, which are small for v in the middle of the points, wherever the cell lies.

Proofs: docs/mathematics.md, statements 4.9, 6.8 and 6.11.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import TYPE_CHECKING, Annotated

from gpcert.kernels.expansions.base import FormFunction
from gpcert.kernels.expansions.exponentials import (
    HIGHEST_DEGREE,
    UNDERFLOW,
    BoxMetric,
    box_metric,
    exponential_tail,
)
from gpcert.kernels.expansions.squared_exponential_table import SquaredExponentialTable
from gpcert.numerics.arrays import (
    Array,
    Index,
    PerCell,
    PerCellAndFeature,
    PerCellMatrix,
    PerRow,
    Rows,
    namespace,
)
from gpcert.numerics.rounding import TINY, gamma, nonnegative, root, up

if TYPE_CHECKING:
    from gpcert.kernels.expansions.squared_exponential import WeightedExpansion

LARGEST = 300.0
"""Exponents of the rounding's bound, beyond which a cell is too large for it."""


SLOPE_DEGREE = 9
"""Highest degree of a slope that is bounded by itself; what is beyond is bounded point by point."""

MAX_FEATURES, MAX_SLOPE_POINTS, MAX_FORM_POINTS = 128, 2048, 512
"""Up to so many the slopes are worth their time: N f^3 operations, of a form 16 N^3 more."""

LARGEST_SLOPE = 30.0
"""Exponents beyond which a cell is too large for slopes of one sign."""


def form_polynomial(
    table: SquaredExponentialTable,
    expansion: WeightedExpansion,
    W: Annotated[Array, "N N"],
    norm: float,
) -> tuple[tuple[PerCell, PerCellAndFeature, PerCellMatrix], PerCell]:
    """See `LocalKernel.form_polynomial`: degrees up to 2, those to `HIGHEST_DEGREE` by their sizes,
    the tail by Cauchy-Schwarz (Statement 6.8)."""
    xp, geometry = namespace(W), expansion.geometry
    parts = [_polynomial(table, expansion, W, b) for b in range(len(expansion.K))]
    value, gradient, hessian, lost = (xp.stack(list(part)) for part in zip(*parts, strict=True))
    tail = xp.sqrt(exponential_tail(up(2.0 * geometry.rho2, 1), HIGHEST_DEGREE))
    error = up(lost + up(norm * table.variance * tail, 8), 4)
    return (value, gradient, hessian), error


def _polynomial(
    table: SquaredExponentialTable, expansion: WeightedExpansion, W: Array, b: int
) -> tuple[Array, Array, Array, Array]:
    """Degrees 0, 1, 2 of one cell, and the remainder beyond them and degrees 3 to `HIGHEST_DEGREE`.

    Reason for the rounding: every coefficient is a sum of N^2 products `B_ij u_i.. u_j..` with a
    few roundings each, at most `sum_ij |B_ij| (m_i + m_j)^n` in size with m_i >= |z_i| + |c|; over
    all degrees `sum_ij |B_ij| exp((m_i + m_j) rho)` on the cell.
    """
    xp, geometry = namespace(W), expansion.geometry
    N, f = table.points.shape
    K, scaled = expansion.K[b], expansion.scaled[b : b + 1]
    half, rho = geometry.half[b : b + 1], geometry.rho[b : b + 1]
    B = W * (K[:, None] * K[None, :])
    rows = xp.sum(B, axis=1)
    points = table.points - scaled
    turned = B @ points
    (zeroth, gradient, hessian), _ = table.moments_and_cubes(2.0 * rows[None], scaled)
    H = hessian[0] + 2.0 * (points.T @ turned)
    eta = gamma(6 * N + 16 * f + 128) + 4.0 * xp.max(table.relative_error)
    exponents = (table.point_norms + table.reach) * rho[0]
    reach = xp.exp(xp.minimum(exponents, LARGEST + 0.0 * K))
    far, floor = (K + table.floor) * reach, table.floor * reach
    total = xp.sum(far * (xp.abs(W) @ far)) * eta + 2.0 * xp.sum(floor * (xp.abs(W) @ far))
    usable = xp.all(exponents < LARGEST)
    total = xp.where(usable, up(4.0 * total, 4 * N + 64), xp.full_like(total, math.inf))
    metric = box_metric(xp.sum(xp.abs(B), axis=1)[None], points[None], half, rho)
    sizes = xp.abs(table.points) + xp.abs(scaled)
    lengths = metric.lengths(sizes[None])[0]
    higher = higher_degrees(B, points / metric.delta, lengths, eta)
    power = xp.stack([metric.rho[0] ** n for n in range(3, HIGHEST_DEGREE + 1)])
    lost = up(xp.sum(higher * power), 64) + UNDERFLOW + total
    return 0.5 * zeroth[0], gradient[0], 0.5 * (H + H.T), lost


def higher_degrees(
    B: Annotated[Array, "N N"],
    points: Annotated[Array, "N f"],
    lengths: Annotated[Array, "N"],
    eta: Annotated[Array, "#"],
) -> Annotated[Array, "orders"]:
    """Bounds of degrees 3 to `HIGHEST_DEGREE` for |d| <= 1, from the points u_i (N, f) of one cell.

    `F_a^2 = sum_ij (B P^a B)_ij P_ij^(n-a)`, P the points' products and powers entry by entry; its
    error is at most `16 eta (sum_ij |B_ij| m_i^a m_j^(n-a))^2`, m_i >= |u_i|.
    """
    xp, degree = namespace(B), HIGHEST_DEGREE
    rows, turned = xp.sum(B, axis=1), B @ points
    P = points @ points.T
    powers = list(accumulate([P] * degree, mul, initial=xp.ones_like(P)))
    joined = [rows[:, None] * rows[None, :], turned @ turned.T]
    joined += [B @ (powers[a] @ B) for a in range(2, degree // 2 + 1)]
    spread = xp.stack([xp.abs(B) @ lengths**a for a in range(degree // 2 + 1)])
    sizes_by_degree = []
    for n in range(3, degree + 1):
        size = 0.0
        for a in range(n // 2 + 1):
            square = xp.sum(joined[a] * powers[n - a])
            most = xp.sum(spread[a] * lengths ** (n - a)) ** 2
            part = xp.sqrt(nonnegative(square + 16.0 * eta * most))
            times = (1 if 2 * a == n else 2) * math.comb(n, a)
            size = size + times * part / math.factorial(n)
        sizes_by_degree.append(size)
    sizes = xp.stack(sizes_by_degree)
    sizes = xp.where(xp.isnan(sizes), xp.full_like(sizes, math.inf), sizes)  # of overflows
    return up(sizes, 4 * len(B) + 64)


@dataclass(frozen=True, eq=False)
class _Cell:
    """One cell in the features that move: `u` (N, f) the points from its centre, `sizes` of what
    they are made of, `tilt` v (f,), `half` (f,), `rho` >= |d|, K (N,), `eta` the relative error of
    everything that is computed."""

    u: Array
    sizes: Array
    tilt: Array
    half: Array
    rho: Array
    K: Array
    eta: Array
    floor: float

    def moved(self, part: float) -> tuple[Rows, Rows, PerRow]:
        """`u_i - part v`, their sizes, and bounds (N,) of `|(u_i - part v).d|`."""
        xp = namespace(self.u)
        sizes = self.sizes + xp.abs(self.tilt)
        return self.u - part * self.tilt, sizes, up(sizes @ self.half, sizes.shape[1] + 8)


def monotone_signs(
    table: SquaredExponentialTable, expansion: WeightedExpansion, function: FormFunction
) -> Annotated[Array, "f"]:
    """(f,): 1 where the function, weighted, rises on the one cell of the expansion, -1 where it
    falls, 0 where that is not known or the cell has no width."""
    xp, geometry = namespace(expansion.K), expansion.geometry
    signs = xp.zeros_like(geometry.half[0])
    (active,) = xp.nonzero(geometry.half[0] > 0)
    N = len(table.points)
    large = (MAX_SLOPE_POINTS if function.W is None else MAX_FORM_POINTS) < N
    if large or not 0 < len(active) <= MAX_FEATURES:
        return signs
    a = expansion.K[0] * function.weights
    cell = form_cell(table, expansion, active, xp.abs(a))
    largest = xp.maximum(xp.max(cell.moved(1.0)[2]), cell.rho**2)
    if not bool(largest < LARGEST_SLOPE):  # nor where it is no number
        return signs
    low, high = sum_slopes(cell, a, function.sizes)
    terms = xp.abs(low) + xp.abs(high)
    half_square = 0.5 * up(cell.rho * cell.rho, 2)
    if function.constant > 0.0:
        most = half_square + xp.sum(xp.abs(cell.tilt) * cell.half)
        size = up(function.constant * cell.half * xp.exp(up(most, len(active) + 8)), 16)
        low, high, terms = low - size, high + size, terms + size
    if function.W is not None:
        least, most = form_slopes(cell, function.W)
        shrink = xp.exp(-half_square) * (1.0 - gamma(32))
        most = xp.where(most > 0, most, most * shrink)
        least = xp.where(least < 0, least, least * shrink)
        low, high = low - most, high - least
        terms = terms + xp.abs(most) + xp.abs(least)
    # what was added may cancel: its rounding is that of the terms
    rounding = up(gamma(16) * terms, 8)
    low, high = low - rounding, high + rounding
    one = xp.ones_like(low)
    signs[active] = xp.where(low > 0, one, xp.where(high < 0, -one, 0.0 * one))
    return signs


def form_cell(
    table: SquaredExponentialTable,
    expansion: WeightedExpansion,
    active: Index,
    magnitudes: Annotated[Array, "N"],
) -> _Cell:
    """The tilt is the points' mean, each with its magnitude (N,); any would do."""
    xp, geometry = namespace(expansion.K), expansion.geometry
    points, center = table.points[:, active], expansion.scaled[0, active]
    N, f = points.shape
    u = points - center
    total = xp.sum(magnitudes)
    tilt = (magnitudes @ u) / xp.where(total > TINY, total, xp.ones_like(total))
    return _Cell(
        u,
        xp.abs(points) + xp.abs(center),
        tilt,
        geometry.half[0, active],
        geometry.rho[0],
        expansion.K[0],
        gamma(6 * N + 16 * f + 256) + 4.0 * xp.max(table.relative_error),
        table.floor,
    )


def sum_slopes(
    cell: _Cell, a: Annotated[Array, "N"], sizes: Annotated[Array, "N"]
) -> tuple[Annotated[Array, "f"], Annotated[Array, "f"]]:
    """Bounds (f,) of `sum_i a_i u_ij e^((u_i - v).d)` on the cell, for every j."""
    xp, half = namespace(a), cell.half
    N, f = cell.u.shape
    moved, moved_sizes, reach = cell.moved(1.0)
    V = a[:, None] * cell.u
    value, linear = xp.sum(V, axis=0), xp.abs(V.T @ moved) @ half
    most = sizes * (cell.K + cell.floor)
    metric = box_metric(most[None], moved[None], half[None], cell.rho[None])
    lengths = metric.lengths(moved_sizes[None])[0]
    scaled = moved / metric.delta[0]
    P = scaled @ scaled.T
    power, radius = P * P, linear
    for n in range(2, SLOPE_DEGREE + 1):
        square = xp.sum(V * (power @ V), axis=0)
        size = (most * lengths**n) @ cell.sizes
        length = root(nonnegative(square + 32.0 * cell.eta * size**2)) * metric.rho[0] ** n
        if n == 2:
            second = [half @ (xp.abs((moved.T * V[:, j]) @ moved) @ half) for j in range(f)]
            length = xp.minimum(length, xp.stack(second))
        radius = radius + length / math.factorial(n)
        power = power * P
    along = up(xp.abs(moved) @ half, f + 8)
    tail = most * along ** (SLOPE_DEGREE + 1) * xp.exp(along) / math.factorial(SLOPE_DEGREE + 1)
    rounding = sizes * (cell.eta * (cell.K + cell.floor) + cell.floor) * xp.exp(reach)
    radius = radius + tail @ cell.sizes + 8.0 * rounding @ (cell.sizes + 1.0)
    radius = up(radius, 8 * N + 8 * f + 64)
    return value - radius, value + radius


def form_slopes(
    cell: _Cell, W: Annotated[Array, "N N"]
) -> tuple[Annotated[Array, "f"], Annotated[Array, "f"]]:
    """Bounds (f,) of `e^(-v.d) (d_j Q - d_j' Q)`, that is of
    `2 sum_ik B_ik u_ij e^((u_i + u_k - v).d) - d_j sum_ik B_ik e^((u_i + u_k - v).d)`, for every j.
    """
    xp, half, u = namespace(W), cell.half, cell.u
    N, f = u.shape
    moved, moved_sizes, reach = cell.moved(0.5)
    B = W * (cell.K[:, None] * cell.K[None, :])
    rows, turned, plain = xp.sum(B, axis=1), B @ moved, B @ u
    total = xp.sum(rows)
    value = 2.0 * (rows @ u)
    first = 2.0 * ((u * rows[:, None]).T @ moved + u.T @ turned)
    first = first - total * xp.eye(f, dtype=first.dtype, device=first.device)
    second = []
    for j in range(f):
        cross = (moved.T * u[:, j]) @ turned
        M = (moved.T * (rows * u[:, j] + plain[:, j])) @ moved + cross + cross.T
        second.append(half @ (xp.abs(M) @ half))
    bend = xp.abs((moved.T * rows) @ moved + moved.T @ turned)
    change = 2.0 * (xp.abs(rows @ moved) @ half) + half @ (bend @ half)
    metric = box_metric(xp.sum(xp.abs(B), axis=1)[None], moved[None], half[None], cell.rho[None])
    higher, whole = _slope_degrees(cell, B, moved / metric.delta[0], metric, moved_sizes)
    along = up(xp.abs(moved) @ half, f + 8)
    both = along[:, None] + along[None, :]
    n = SLOPE_DEGREE + 1
    beyond = xp.sum(xp.abs(B) * (both**n * xp.exp(both) / math.factorial(n)), axis=1)
    far, floor = (cell.K + cell.floor) * xp.exp(reach), cell.floor * xp.exp(reach)
    size = xp.abs(W) @ far
    rounding = far * size * cell.eta + floor * size + far * (xp.abs(W) @ floor)
    lost = 2.0 * beyond + 16.0 * rounding
    change = change + whole + xp.sum(lost)
    radius = xp.abs(first) @ half + xp.stack(second) + higher + lost @ (cell.sizes + 1.0)
    radius = up(radius + half * change, 8 * N + 8 * f + 64)
    return value - radius, value + radius


def _slope_degrees(
    cell: _Cell, B: Array, points: Array, metric: BoxMetric, sizes: Array
) -> tuple[Array, Array]:
    """Bounds of degrees 3 to `SLOPE_DEGREE` on the cell: (f,) of
    `2 sum_ik B_ik u_ij e^(y_i + y_k)`, and of the same without `2 u_ij`.

    `F_a^2 = u_j^T [(B P^a B) o P^(n-a)] u_j`, P the points' products, powers entry by entry.
    """
    xp = namespace(B)
    lengths = metric.lengths(sizes[None])[0]
    P, absolute, slack = points @ points.T, xp.abs(B), 32.0 * cell.eta
    powers = list(accumulate([P] * SLOPE_DEGREE, mul, initial=xp.ones_like(P)))
    slopes, whole = xp.zeros_like(cell.half), xp.zeros_like(cell.rho)
    for a in range(SLOPE_DEGREE + 1):
        joined, spread = B @ (powers[a] @ B), absolute @ lengths**a
        for n in range(max(a, 3), SLOPE_DEGREE + 1):
            inner = joined * powers[n - a]
            factor = math.comb(n, a) / math.factorial(n) * metric.rho[0] ** n
            most = spread * lengths ** (n - a)
            square = xp.sum(cell.u * (inner @ cell.u), axis=0)
            square = nonnegative(square + slack * (most @ cell.sizes) ** 2)
            slopes = slopes + 2.0 * factor * root(square)
            whole = whole + factor * root(nonnegative(xp.sum(inner) + slack * xp.sum(most) ** 2))
    return slopes, whole
