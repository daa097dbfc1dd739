"""A proved bound from any multipliers: the solver need not be trusted.

Neumaier & Shcherbina 2004, "Safe bounds in linear and mixed-integer linear programming", Math.
Program. 99, for the relaxation of `relaxation`: for all multipliers y, z >= 0,

    c.r >= sum_i min over [low_i, high_i] of (c_i - y_i + z_i) r_i
           + y.under - z.over + min over w of (U^T y - O^T z).w,

as `r >= under + U w` and `r <= over + O w`. Every variable has a box, so the right side is a number
for whatever multipliers; good ones make it the program's optimum. The minimum over w is that over
the curved set itself, not over its linear relaxation.

Proofs: docs/mathematics.md, statement 12.6.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from gpcert.arrays import Array, namespace
from gpcert.enclosures.paper.relaxation import Planes, Relaxation
from gpcert.kernels.sizes import signed_times
from gpcert.rounding import TINY, gamma, nonnegative, up

LARGEST_MULTIPLIER = 1e100
"""Larger multipliers, infinite ones and NaN become zero: they bound nothing useful."""


class Multipliers(NamedTuple):
    """y and z of the module, (M, N) or (B, M, N)."""

    under: Array
    over: Array


class DualBound(NamedTuple):
    """`lower` (B, M), and the displacements (B, M, f) at which the minimum over w lies."""

    lower: Array
    point: Array


def sign_multipliers(c: Annotated[Array, "... N"]) -> Multipliers:
    """The paper's mean bound: the plane under r_i where c_i > 0, the one over it where c_i < 0."""
    return Multipliers(nonnegative(c), nonnegative(-c))


@np.errstate(over="ignore", invalid="ignore", under="ignore")
def dual_bound(
    relaxation: Relaxation,
    c: Array,
    multipliers: Multipliers,
    slope: Annotated[Array, "f"] | None = None,
) -> DualBound:
    """Certified lower bounds (B, M) of `c.r + slope.e` over each cell, c (M, N) or (B, M, N).

    `slope` (f,), exact but for underflow, meets the displacements e of the features, which are
    among w; None for none. Rounding: sums over i are dot products of N terms, counted by their
    size; a coefficient of w that is off costs it times |w_k|, one of r times |r_i|.
    """
    xp = namespace(relaxation.low)
    y, z = (
        _usable(_clean(part), planes)
        for part, planes in zip(multipliers, (relaxation.under, relaxation.over), strict=True)
    )
    N = c.shape[-1]
    under, over = relaxation.under, relaxation.over
    coefficients = y @ under.slopes - z @ over.slopes
    sizes = y @ xp.abs(under.slopes) + z @ xp.abs(over.slopes)
    if slope is not None:
        f = relaxation.lifted.features
        trend = xp.zeros_like(coefficients[:, :1])
        trend[:, 0, :f] = slope
        coefficients, sizes = coefficients + trend, sizes + xp.abs(trend)
    errors = up(gamma(2 * N + 4) * sizes, 2 * N + 8) + TINY * N
    total = _dot(y, under.intercept) - _dot(z, over.intercept)
    size = _dot(y, xp.abs(under.intercept)) + _dot(z, xp.abs(over.intercept))
    least = relaxation.lifted.minimum(coefficients, errors)
    rest, rest_size = _box_part(relaxation, c, y, z)
    total = total + least + rest
    size = size + xp.abs(least) + rest_size
    total = total - up(gamma(2 * N + 8) * size, 2 * N + 8) - TINY * N
    lower = xp.where(xp.isfinite(total), total, xp.full_like(total, -math.inf))
    return DualBound(lower, relaxation.lifted.minimiser(coefficients))


def interval_bound(relaxation: Relaxation, c: Array) -> Annotated[Array, "B M"]:
    """(B, M): `sum_i min(c_i low_i, c_i high_i)`, the bound of multipliers zero."""
    xp = namespace(c)
    zero = xp.zeros_like(c)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        total, size = _box_part(relaxation, c, zero, zero)
        N = c.shape[-1]
        total = total - up(gamma(N + 8) * size, N + 8) - TINY * N
    return xp.where(xp.isfinite(total), total, xp.full_like(total, -math.inf))


def _clean(multipliers: Array) -> Array:
    """Multipliers projected to what is allowed."""
    xp = namespace(multipliers)
    good = (multipliers > 0) & (multipliers <= LARGEST_MULTIPLIER)
    return xp.where(good, multipliers, xp.zeros_like(multipliers))


def _usable(multipliers: Array, planes: Planes) -> Array:
    """Zero where no plane is known."""
    xp = namespace(multipliers)
    if bool(xp.all(planes.usable)):
        return multipliers
    spread = planes.usable[:, None, :]
    return xp.where(spread, multipliers, xp.zeros_like(multipliers))


def _dot(y: Array, intercept: Array) -> Array:
    """(B, M): `sum_i y_i a_i`."""
    return (y @ intercept[:, :, None])[..., 0]


def _box_part(relaxation: Relaxation, c: Array, y: Array, z: Array) -> tuple[Array, Array]:
    """`sum_i min rho_i r_i` for `rho = c - y + z`, less what rho is off, and the terms' size.

    rho is exactly zero where one multiplier is |c_i| and the other 0; else it is off by at most
    `gamma(3) (|c| + y + z)`.
    """
    xp = namespace(c)
    # of a difference of floats and of a sum with it: zero is exact where both are
    step = c - y
    rho = step + z
    exact = ((step == 0) & (z == 0)) | ((y == 0) & (c == -z)) | ((y == 0) & (z == 0))
    if bool(xp.all(exact & (rho == 0))):
        flat = xp.zeros_like(relaxation.low[:, :1] + xp.sum(c, axis=-1))
        return flat, flat
    off = gamma(3) * (xp.abs(c) + y + z)
    off = xp.where(exact, xp.zeros_like(off), up(off, 4))
    low, high = relaxation.low[:, None, :], relaxation.high[:, None, :]
    terms = signed_times(rho, xp.where(rho > 0, low, high))
    lost = signed_times(off, relaxation.sizes[:, None, :])
    total = xp.sum(terms, axis=-1) - up(xp.sum(lost, axis=-1), c.shape[-1] + 8)
    return total, xp.sum(xp.abs(terms) + lost, axis=-1)
