"""A certified lower bound of `g.d + d^T H d / 2` over a cell, in closed form.

No solver: the bilinear terms are relaxed around a vertex, where the relaxation is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpcert.arrays import Array, namespace
from gpcert.enclosures.geometry import Geometry
from gpcert.rounding import gamma, nonnegative, up

__all__ = ["QuadraticMinimum", "quadratic_minimum", "smallest_eigenvalue"]

VERTEX_STEPS = 4
"""Steps of z <- -w sign(g + H z): in practice the vertex settles within two or three."""


@dataclass(frozen=True, eq=False)
class QuadraticMinimum:
    """`lower` (B,) the certified bound; `point` (B, f) an approximate minimiser d;
    `loss` (B, f) what each coordinate's relaxation costs at that point, for choosing a split."""

    lower: Array
    point: Array
    loss: Array


def quadratic_minimum(geometry: Geometry, gradient: Array, hessian: Array) -> QuadraticMinimum:
    """Lower bound of `q(d) = g.d + d^T H d / 2` over the box |d_j| <= w_j (and a ball, if any).

    H must be exactly symmetric.

    Statement: for a vertex z, with s_j = -sign z_j, d_j = z_j + s_j y_j, 0 <= y_j <= 2 w_j,

        q(d) >= q(z) + sum_j min_{0<=y<=2w_j} [ (s_j (g+Hz)_j - sum_{k != j} (s_j H_jk s_k)^- w_k) y
                                              + H_jj y^2 / 2 ].

    Reason: expand q at z; a bilinear term with s_j H_jk s_k >= 0 is >= 0 and dropped, the others
    obey McCormick's `y_j y_k <= w_k y_j + w_j y_k`; what remains is separable. Where the gradient
    dominates, every bracket is 0 and the bound is the exact minimum q(z). Reference: McCormick
    1976, applied at the vertex. The better of this and the same at the centre
    (`sum_j min [g_j d + H_jj d^2/2] - sum_{j<k} |H_jk| w_j w_k`) is returned.
    """
    xp = namespace(gradient)
    w = geometry.half
    curvature = xp.linalg.diagonal(hessian)
    z, slope = _vertex(gradient, hessian, w)
    sign = xp.where(z > 0, -xp.ones_like(z), xp.ones_like(z))
    facing = sign * slope
    signed = hessian * sign[:, :, None] * sign[:, None, :]
    negative = xp.sum(nonnegative(-signed) * w[:, None, :], axis=2) - nonnegative(-curvature) * w
    at_vertex, step = _parabola_minimum(facing - negative, curvature, 2.0 * w)
    value = 0.5 * xp.sum(z * (gradient + slope), axis=1)
    around_vertex = value + xp.sum(at_vertex, axis=1)

    flank = xp.abs(gradient)
    separable, _ = _parabola_minimum(-flank, curvature, w)
    magnitude = xp.sum(w[:, :, None] * xp.abs(hessian) * w[:, None, :], axis=(1, 2))
    own = xp.sum(xp.abs(curvature) * w**2, axis=1)
    around_centre = xp.sum(separable, axis=1) - 0.5 * (magnitude - own)

    lower = xp.maximum(around_vertex, around_centre)
    # Nested dot products of length f: every term is below |g|.w + w|H|w in size, some fourfold.
    size = xp.sum(flank * w, axis=1) + magnitude
    lower = lower - up(gamma(4 * w.shape[1] + 48) * 8.0 * size, 4)
    lower = _ball_improvement(geometry, gradient, hessian, lower)
    return QuadraticMinimum(lower, z + sign * step, -at_vertex)


def _vertex(gradient: Array, hessian: Array, w: Array) -> tuple[Array, Array]:
    """A vertex z of the box that a few sign steps cannot improve, and g + H z there."""
    xp = namespace(gradient)
    z = xp.where(gradient > 0, -w, w)
    slope = gradient + (hessian @ z[:, :, None])[:, :, 0]
    for _ in range(VERTEX_STEPS - 1):
        z = xp.where(slope > 0, -w, w)
        slope = gradient + (hessian @ z[:, :, None])[:, :, 0]
    return z, slope


def _parabola_minimum(linear: Array, curvature: Array, width: Array) -> tuple[Array, Array]:
    """`min_{0<=y<=width} linear y + curvature y^2/2` (never above 0) and where it is attained."""
    xp = namespace(linear)
    convex = curvature > 0
    inside = -linear / xp.where(convex, curvature, xp.ones_like(curvature))
    inside = xp.minimum(nonnegative(inside), width)
    y = xp.where(convex, inside, width)
    value = y * (linear + 0.5 * curvature * y)
    better = value < 0
    zero = xp.zeros_like(value)
    return xp.where(better, value, zero), xp.where(better, y, zero)


def _ball_improvement(geometry: Geometry, gradient: Array, hessian: Array, lower: Array) -> Array:
    """For cells inside an l_p ball: `min g.d + lambda_min(H) rho^2 / 2`, if that is larger.

    Reason: the affine part is minimised exactly over cell and ball, the quadratic part is at least
    `min(lambda_min, 0) |d|^2 / 2`.
    """
    xp = namespace(lower)
    if geometry.cells.region.norm_constraint is None:
        return lower
    linear = geometry.cells.linear_minimum(geometry.unscaled_gradient(gradient))
    # scaling the gradient back rounds once a coordinate
    size = xp.sum(xp.abs(gradient) * geometry.half, axis=1)
    bend = xp.minimum(smallest_eigenvalue(hessian), xp.zeros_like(lower))
    curved = linear - 0.5 * up(-bend * geometry.rho2, 4) - gamma(8) * size
    return xp.maximum(lower, curved - gamma(8) * xp.abs(curved))


def smallest_eigenvalue(hessian: Array) -> Array:
    """Certified lower bound of the smallest eigenvalue of symmetric H (B, f, f), at most 0.

    For *any* V and diagonal L: `H = V L V^T + E`, hence
    `lambda_min(H) >= min(L, 0) |V|_2^2 - |E|_F` and `|V|_2^2 <= 1 + |V^T V - I|_F`; the computed
    eigenvectors are only a good choice of V. The rounding of E and V^T V is added.
    """
    xp = namespace(hessian)
    f = hessian.shape[-1]
    L, V = xp.linalg.eigh(hessian)
    Vt = xp.matrix_transpose(V)
    residual = hessian - (V * L[:, None, :]) @ Vt
    identity = xp.eye(f, dtype=hessian.dtype, device=hessian.device)
    defect = xp.sqrt(xp.sum((Vt @ V - identity) ** 2, axis=(1, 2))) + gamma(f + 8) * 4.0 * f
    largest = xp.max(xp.abs(L), axis=1)
    error = xp.sqrt(xp.sum(residual**2, axis=(1, 2))) + gamma(f + 8) * 4.0 * f * largest
    lowest = xp.minimum(L[:, 0], xp.zeros_like(largest))
    return -up(-lowest * (1.0 + defect) + error, f * f + 8)
