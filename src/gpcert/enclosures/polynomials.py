"""Polynomials on cells: certified minima of quadratics in closed form, whether a function above one
is at least a level, and the degree 3 that an enclosure keeps beside it.

No solver: the bilinear terms are relaxed around a local minimum, where the relaxation is exact. An
enclosure says what lies below `exp(rate |d|^2) q`; a level is subtracted from q, so the weight
multiplies it too (`QuadraticLowerModel.minimum` has statement and reason).

Proofs: docs/mathematics.md, statements 5.1, 5.2, 5.3, 5.9 and 5.13.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from gpcert.kernels.expansions.exponentials import LARGEST_EXPONENT, growth_chord
from gpcert.kernels.nodes.base import CubicPart
from gpcert.kernels.sizes import euclidean, frobenius
from gpcert.numerics.arrays import (
    Array,
    Index,
    PerCell,
    PerCellAndFeature,
    PerCellMatrix,
    PerVector,
    Rows,
    Vectors,
    fused,
    namespace,
    products,
)
from gpcert.numerics.rounding import (
    EXP_ULPS,
    TINY,
    U,
    down,
    gamma,
    given,
    nonnegative,
    root,
    up,
)
from gpcert.regions.scaled import ScaledCells

DESCENT_STEPS = 2
"""Steps towards a local minimum, from the vertex against the gradient. More of them leave the
vertex where staying would be better: 2 needed the fewest boxes in the benchmarks (1 to 8 tried)."""


@dataclass(frozen=True, eq=False)
class Minimum:
    """`lower`: certified bound of a function on each cell, or of several; `point`: a displacement d
    where it may be small."""

    lower: PerVector
    point: Vectors

    def or_better(self, other: Minimum, asked: PerCell | None = None) -> Minimum:
        """The other one where its bound is greater, and where that is asked (B,)."""
        xp, better = namespace(self.lower), other.lower > self.lower
        better = better if asked is None else asked & better
        lower = xp.where(better, other.lower, self.lower)
        return Minimum(lower, xp.where(better[..., None], other.point, self.point))


def quadratic_minimum(
    geometry: ScaledCells, gradient: PerCellAndFeature, hessian: PerCellMatrix
) -> Minimum:
    """Lower bound of `q(d) = g.d + d^T H d / 2` over the box |d_j| <= w_j (and a ball, if any).

    H must be exactly symmetric. Let z be any point of the box, V the coordinates with z_j = +-w_j,
    s_j = -sign z_j, I the others, m_j = w_j + |z_j|, a = g + H z. Statement:

        q(d) >= q(z) + sum_{j in V} min_{0<=t<=2w_j} [ (s_j a_j - n_j) t + H_jj t^2 / 2 ]
                     + sum_{j in I} min_{|t|<=m_j} [ a_j t + (H_jj - r_j) t^2 / 2 ],
        n_j = sum_{k in V, k != j} (s_j H_jk s_k)^- w_k + sum_{k in I} |H_jk| m_k,
        r_j = sum_{k in I, k != j} |H_jk|.

    Reason: about z, with McCormick's (1976) `|y_j y_k| <= w_k |y_j| + w_j |y_k|`, y = d - z, in V
    and `|y_j y_k| <= (y_j^2 + y_k^2) / 2` inside I it is separable (Statement 5.2). The better of
    this and the same at the centre; over images that of the cells themselves (Statement 13.9).
    """
    xp = namespace(gradient)
    source = geometry.pulled_back(gradient, hessian)
    if source is not None:
        quadratic = quadratic_minimum(source.geometry, source.gradient, source.hessian)
        lower = down(quadratic.lower - source.lost, 2)
        return Minimum(lower, quadratic.point @ xp.matrix_transpose(source.matrix))
    quadratic = box_minimum(geometry.half, gradient, hessian)
    lower = _ball_improvement(geometry, gradient, hessian, quadratic.lower)
    round_ = _ball_minimum(geometry, gradient, hessian)
    if round_ is None:
        return Minimum(lower, quadratic.point)
    better = (round_.lower > lower)[:, None]
    point = xp.where(better, round_.point, quadratic.point)
    return Minimum(xp.maximum(lower, round_.lower), point)


@fused
def box_minimum(w: Rows, gradient: Rows, hessian: Array) -> Minimum:
    """The statement of `quadratic_minimum` over the boxes |d_j| <= w_j (B, f)."""
    xp = namespace(gradient)
    curvature = xp.linalg.diagonal(hessian)
    absolute = xp.abs(hessian)
    z, slope = _local_minimum(gradient, hessian, absolute, w)
    at_end = xp.abs(z) >= w
    zero = xp.zeros_like(w)
    sign = xp.where(z > 0, -xp.ones_like(z), xp.ones_like(z))
    outer, inner = xp.where(at_end, w, zero), xp.where(at_end, zero, w + xp.abs(z))
    # |H| is read once for all that it multiplies: of many features that is most of the time
    inside = xp.where(at_end, zero, xp.ones_like(w))
    bulk, near, crowd, whole = products(absolute, outer, inner, inside, w)
    # (s_j H_jk s_k)^- = (|H_jk| - s_j H_jk s_k) / 2
    opposed = 0.5 * (bulk - sign * apply(hessian, sign * outer))
    negative = opposed - nonnegative(-curvature) * outer
    reach = xp.where(at_end, 2.0 * w, inner)
    bent = curvature - xp.where(at_end, zero, crowd - xp.abs(curvature))
    steep = xp.where(at_end, sign * slope - negative - near, -xp.abs(slope))
    around_point, step = _parabola_minimum(steep, bent, reach)
    value = 0.5 * xp.sum(z * (gradient + slope), axis=1)
    lower = value + xp.sum(around_point, axis=1)

    flank = xp.abs(gradient)
    separable, _ = _parabola_minimum(-flank, curvature, w)
    magnitude = xp.sum(w * whole, axis=1)
    squares = xp.sum(xp.abs(curvature) * w**2, axis=1)
    lower = xp.maximum(lower, xp.sum(separable, axis=1) - 0.5 * (magnitude - squares))
    # Nested dot products of length f: every term is below |g|.w + w|H|w in size, some eightfold.
    size = xp.sum(flank * w, axis=1) + magnitude
    lower = lower - up(gamma(4 * w.shape[1] + 48) * 16.0 * size, 4)
    away = xp.where(at_end, sign * step, -xp.sign(slope) * step)
    point = z + away
    # coefficients beyond float64 say nothing about where to look
    return Minimum(lower, xp.where(xp.isfinite(point), point, zero))


def _local_minimum(
    gradient: Array, hessian: Array, absolute: Array, w: Array
) -> tuple[Array, Array]:
    """A point z of the box where q is about locally smallest, and g + H z; any z would be valid.
    Steps against the gradient, scaled by the row sums of |H| (which majorise q)."""
    xp = namespace(gradient)
    rows = xp.sum(absolute, axis=2)
    stiff = xp.where(rows > 0, rows, xp.ones_like(rows))
    z = xp.where(gradient > 0, -w, w)
    slope = gradient + apply(hessian, z)
    for _ in range(DESCENT_STEPS):
        z = xp.minimum(xp.maximum(z - slope / stiff, -w), w)
        slope = gradient + apply(hessian, z)
    return z, slope


def apply(matrix: Array, vector: PerCellAndFeature) -> PerCellAndFeature:
    """Batched matrix-vector product."""
    return products(matrix, vector)[0]


def _parabola_minimum(linear: Array, curvature: Array, width: Array) -> tuple[Array, Array]:
    """`min_{0<=y<=width} linear y + curvature y^2/2` (never above 0) and where it is attained; for
    linear <= 0 that is also the minimum over |y| <= width."""
    xp = namespace(linear)
    convex = curvature > 0
    inside = -linear / xp.where(convex, curvature, xp.ones_like(curvature))
    y = xp.where(convex, xp.minimum(nonnegative(inside), width), width)
    value = y * (linear + 0.5 * curvature * y)
    better, zero = value < 0, xp.zeros_like(value)
    return xp.where(better, value, zero), xp.where(better, y, zero)


def _ball_improvement(
    geometry: ScaledCells, gradient: Array, hessian: Array, lower: Array
) -> Array:
    """For cells inside an l_p ball: `min g.d + min(lambda_min(H), 0) rho^2 / 2`, if that is larger;
    the affine part is minimised exactly over cell and ball (Statement 5.3)."""
    xp = namespace(lower)
    if geometry.cells.is_box:
        return lower
    bend = xp.minimum(smallest_eigenvalue(hessian), xp.zeros_like(lower))
    curved = geometry.least(gradient) - 0.5 * up(-bend * geometry.rho2, 4)
    return xp.maximum(lower, curved - gamma(8) * xp.abs(curved))


SECULAR_STEPS = 8
"""Newton's, from below: each squares the error. Any multiplier would be valid."""

ORDINARY = (1e-100, 1e100)
"""Radii whose products with coefficients neither vanish nor overflow."""


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _ball_minimum(geometry: ScaledCells, gradient: Array, hessian: PerCellMatrix) -> Minimum | None:
    """Lower bound of `g.d + d^T H d / 2` over the Euclidean ball that cells lie in, which is its
    minimum up to rounding where a cell is the ball; None where there is no such ball.

    With y = d / e, |y| <= rho, and any lambda >= 0 and p: for `A = E H E + lambda I`,
    `r = E g + A p`, `q >= p.E g + p^T A p / 2 - |r| R + min(lambda_min(A), 0) R^2 / 2 - lambda
    rho^2 / 2`, R = rho + |p| (Statement 5.13). lambda and p are those of the trust-region problem,
    from the eigenvectors of E H E.
    """
    ball = geometry.cells.ball
    plain = geometry.is_plain and geometry.columns is None and geometry.inverse_length.ndim == 1
    if ball is None or ball.p != 2.0 or not plain:
        return None
    xp, f = namespace(gradient), gradient.shape[1]
    radii = np.full(f, ball.radius) if ball.unit is None else ball.unit
    e = geometry.cells.placed(radii) * geometry.inverse_length
    if not bool(xp.all((e > ORDINARY[0]) & (e < ORDINARY[1]))):
        return None
    weights = up(geometry.squared_lengths / (e * e), 4)
    rho2 = geometry.cells.squared_norm_maximum(weights, geometry.unit)
    rho = up(xp.sqrt(rho2), 2)
    # roundings of g, H, A and of the sums with them are counted in `sizes`
    g, H = given(gradient * e), given(hessian * (e[:, None] * e[None, :]))
    fine = xp.all(xp.isfinite(H), axis=(1, 2)) & xp.all(xp.isfinite(g), axis=1) & (rho > 0)
    g = xp.where(fine[:, None], g, xp.zeros_like(g))
    H = xp.where(fine[:, None, None], H, xp.zeros_like(H))
    try:
        L, V = xp.linalg.eigh(H)
    except (np.linalg.LinAlgError, RuntimeError):  # torch's error is a RuntimeError
        return None
    least = nonnegative(-xp.min(L, axis=1))
    along = apply(xp.matrix_transpose(V), g)
    reach = xp.where(fine, rho, xp.ones_like(rho))
    tiny = 1e-14 * (xp.max(xp.abs(L), axis=1) + euclidean(g)) + TINY
    shift = xp.maximum(xp.max(xp.abs(along) / reach[:, None] - L, axis=1), least + tiny)
    for _ in range(SECULAR_STEPS):
        stiff = xp.maximum(L + shift[:, None], tiny[:, None])
        p = given(-along / stiff)
        length = euclidean(p)
        bent = xp.sum(p * p / stiff, axis=1)
        step = length**2 * (length - reach) / xp.where(bent > 0, bent * reach, xp.ones_like(bent))
        step = xp.where((bent > 0) & xp.isfinite(step), step, xp.zeros_like(step))
        shift = xp.maximum(shift + step, least)
    shift = given(xp.where(fine, shift, xp.zeros_like(shift)))
    p = given(apply(V, -along / xp.maximum(L + shift[:, None], tiny[:, None])))
    A = given(add_identity(H, shift))
    bend = given(apply(A, p))
    size, wide = euclidean(p), frobenius(H) + shift
    value = given(xp.sum(p * (g + 0.5 * bend), axis=1))
    off = up(euclidean(given(g + bend)), f + 4)
    far = up(rho + size, 4)
    curved = nonnegative(-smallest_eigenvalue(A))
    lower = value - 0.5 * shift * rho2 - off * far - 0.5 * curved * far * far
    sizes = (euclidean(g) + wide * far) * far + shift * rho2
    lower = down(lower - gamma(4 * f + 64) * 4.0 * sizes - TINY * (1.0 + far) ** 2, 8)
    lower = xp.where(fine & xp.isfinite(lower), lower, xp.full_like(lower, -math.inf))
    point = xp.minimum(xp.maximum(p * e, -geometry.half), geometry.half)
    return Minimum(lower, point)


def smallest_eigenvalue(hessian: PerCellMatrix) -> PerCell:
    """Certified lower bound of the smallest eigenvalue of symmetric H (B, f, f), at most 0.

    For *any* V and diagonal L: `H = V L V^T + E`, hence
    `lambda_min(H) >= min(L, 0) |V|_2^2 - |E|_F` and `|V|_2^2 <= 1 + |V^T V - I|_F`, the rounding of
    E and V^T V added. -inf where H is not finite.
    """
    xp = namespace(hessian)
    f = hessian.shape[-1]
    finite = xp.all(xp.isfinite(hessian), axis=(1, 2))
    hessian = xp.where(finite[:, None, None], hessian, xp.zeros_like(hessian))
    identity = xp.eye(f, dtype=hessian.dtype, device=hessian.device)
    try:
        L, V = xp.linalg.eigh(hessian)
    except (np.linalg.LinAlgError, RuntimeError):  # torch's error is a RuntimeError
        L, V = xp.linalg.diagonal(hessian), xp.zeros_like(hessian) + identity
    Vt = xp.matrix_transpose(V)
    residual = given(hessian - (V * L[:, None, :]) @ Vt)  # its rounding is added to `error`
    defect = root(xp.sum((Vt @ V - identity) ** 2, axis=(1, 2))) + gamma(f + 8) * 4.0 * f
    largest = xp.max(xp.abs(L), axis=1)
    spread = 1.0 + defect  # |V|_2^2 is at most this: the size of the terms that cancel
    error = root(xp.sum(residual**2, axis=(1, 2))) + gamma(f + 8) * 4.0 * f * largest * spread
    lowest = xp.minimum(xp.min(L, axis=1), xp.zeros_like(largest))
    bound = -up(-lowest * spread + error, f * f + 8)
    return xp.where(finite & ~xp.isnan(bound), bound, xp.full_like(bound, -math.inf))


Widths = tuple[PerCellAndFeature, PerCell]
"""Half-widths of the cells, and rho2."""


@fused
def add_identity(hessian: PerCellMatrix, amount: PerCell) -> PerCellMatrix:
    """`hessian + amount I` for a batch."""
    xp = namespace(hessian)
    identity = xp.eye(hessian.shape[-1], dtype=hessian.dtype, device=hessian.device)
    return hessian + amount[:, None, None] * identity


@fused
def level_bend(level: PerCell, rate: float, rho2: PerCell) -> PerCell:
    """What `QuadraticLowerModel.at_level` adds to the diagonal of the Hessian."""
    xp = namespace(level)
    each = xp.where(level > 0, growth_chord(rate, rho2), xp.full_like(level, rate))
    return -2.0 * level * each


@fused
def at_level(
    hessian: PerCellMatrix | None, error: PerCell, amount: PerCell, widths: Widths
) -> tuple[PerCellMatrix | None, PerCell]:
    """See `QuadraticLowerModel.at_level`; `amount` is the `level_bend`."""
    xp, (half, rho2) = namespace(amount), widths
    if hessian is None:
        return None, up(error + up(0.5 * nonnegative(-amount) * rho2, 4), 2)
    hessian = add_identity(hessian, amount)
    # rounding of hessian + amount I, entry by entry
    diagonal = xp.sum(xp.abs(xp.linalg.diagonal(hessian)) * half**2, axis=1)
    return hessian, error + up(gamma(4) * (diagonal + xp.abs(amount) * rho2), 8)


@fused
def above_level(
    sides: tuple[PerCell, PerCell, PerCell], level: PerCell, rate: float, rho2: PerCell
) -> PerCell:
    """The bound of `QuadraticLowerModel.minimum` from value, least polynomial and error."""
    xp, (value, least, slack) = namespace(level), sides
    margin = (value - level) + least - slack
    size = xp.abs(value) + xp.abs(level) + xp.abs(least) + slack
    margin = margin - gamma(8) * size
    if rate > 0:
        x = xp.minimum(rate * rho2, xp.full_like(level, LARGEST_EXPONENT))
        shrunk = margin * xp.exp(-up(x, 2)) * (1.0 - 2 * (EXP_ULPS + 4) * U)
        shrunk = xp.where(rate * rho2 < LARGEST_EXPONENT, shrunk, 0.0 * level)
        margin = xp.where(margin > 0, shrunk, margin)
    lower = down(level + margin, 2)
    return xp.where(xp.isnan(lower), xp.full_like(lower, -math.inf), lower)


@fused
def least_on_boxes(
    gradient: Rows, hessian: Array, error: PerCell, bend: PerCell | None, widths: Widths
) -> tuple[Minimum, PerCell]:
    """`box_minimum` of a quadratic with its `level_bend`, and its error `at_level`, in one."""
    if bend is not None:
        hessian, error = at_level(hessian, error, bend, widths)
    return box_minimum(widths[0], gradient, hessian), error


LARGEST_FACTOR = 2.0**100
"""Enclosures scaled by more, or by less than its inverse, forget their cubic: so products of some
factors neither overflow nor underflow."""


@dataclass(frozen=True, eq=False)
class CubicTerm:
    """An enclosure's inequality holds with `T[d, d, d] / 6` added and `error - saved` for `error`.

    T is the sum of `factor (B,) tensor (B, n)` over the `parts`, tensors over sorted triples: few
    cells ever ask for its entries. `saved`, `absolute` (B,), the latter at least the sum of all
    `|T_jkl| w_j w_k w_l / 6`. Zero where nothing is known: then nothing is said.
    """

    parts: tuple[tuple[Array, Array], ...]
    saved: Array
    absolute: Array

    def tensor(self, index: Index) -> Annotated[Array, "i tuples"]:
        """T (n, f (f+1) (f+2) / 6) of some of the cells."""
        xp, total = namespace(self.saved), 0.0
        for factor, tensor in self.parts:
            each, entries = factor[index][:, None], tensor[index]
            # where nothing is known the entries may be infinite
            total = total + xp.where(each == 0.0, xp.zeros_like(entries), each * entries)
        return total

    @staticmethod
    def of(part: CubicPart | None, error: PerCell, sign: int) -> CubicTerm | None:
        """Of `sign f`, whose polynomial of degree 2 leaves `error` (B,), where degree 3 helps."""
        if part is None:
            return None
        factor, saved, absolute = _helpful(part.rest, part.absolute, error, sign)
        return CubicTerm(((factor, part.tensor),), saved, absolute)

    def scaled(self, factor: PerCell) -> CubicTerm:
        """Of an enclosure times factors (B,) >= 0."""
        usable, absolute, saved = _scaled(factor, self.saved, self.absolute)
        parts = tuple((usable * each, tensor) for each, tensor in self.parts)
        return CubicTerm(parts, saved, absolute)

    @staticmethod
    def sum(first: CubicTerm | None, second: CubicTerm | None) -> CubicTerm | None:
        """Of a sum; of an unknown one the cubic is in its error."""
        if first is None or second is None:
            return second if first is None else first
        parts = _parts(first, second)
        joined = tuple((one + two, tensor) for one, two, tensor in parts)
        absolute = up(first.absolute + second.absolute, 1)
        saved = down(first.saved + second.saved, 1)
        # every entry is a sum of so many terms, each of them a product
        saved = down(saved - gamma(2 * len(joined)) * absolute, 2)
        return CubicTerm(joined, saved, absolute)

    @staticmethod
    def where(mask: PerCell, first: CubicTerm | None, second: CubicTerm | None) -> CubicTerm | None:
        """The first's under the mask (B,), the second's elsewhere."""
        xp, some = namespace(mask), second if first is None else first
        if some is None:
            return None
        none = some.scaled(xp.zeros_like(some.saved))
        one, two = first or none, second or none
        return CubicTerm(
            tuple(
                (xp.where(mask, left, right), tensor) for left, right, tensor in _parts(one, two)
            ),
            xp.where(mask, one.saved, two.saved),
            xp.where(mask, one.absolute, two.absolute),
        )


def _parts(first: CubicTerm, second: CubicTerm) -> list[tuple[Array, Array, Array]]:
    """The factors in both of every tensor of either: the sides of one model have the same."""
    zero = 0.0 * first.parts[0][0]
    factors = {id(tensor): [factor, zero, tensor] for factor, tensor in first.parts}
    for factor, tensor in second.parts:
        factors.setdefault(id(tensor), [zero, zero, tensor])[1] = factor
    return [(one, two, tensor) for one, two, tensor in factors.values()]


@fused
def _helpful(rest: Array, absolute: Array, error: Array, sign: int) -> tuple[Array, Array, Array]:
    """Factor, `saved` and `absolute` of `CubicTerm.of`."""
    xp = namespace(error)
    helps = (rest < error) & xp.isfinite(error) & xp.isfinite(absolute)
    zero = xp.zeros_like(error)
    saved = xp.where(helps, error, zero) - xp.where(helps, rest, zero)
    factor = xp.where(helps, zero + float(sign), zero)
    return factor, xp.where(helps, down(saved, 1), zero), xp.where(helps, absolute, zero)


@fused
def _scaled(factor: Array, saved: Array, absolute: Array) -> tuple[Array, Array, Array]:
    """The factor where it is taken, `absolute` and `saved` of `CubicTerm.scaled`."""
    xp = namespace(factor)
    zero = xp.zeros_like(saved)
    usual = (factor <= LARGEST_FACTOR) & (factor >= 1.0 / LARGEST_FACTOR)
    usable = xp.where(usual, factor, zero)
    absolute = up(usable * absolute, 1)
    saved = down(usable * saved - gamma(4) * absolute, 4)
    return usable, xp.where(usual, absolute, zero), xp.where(usual, saved, zero)
