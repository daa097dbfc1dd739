"""The paper's bound of a mean, one function a class of `LocalKernel`: an optional bound of the
Taylor engine, which has none for kernels without lines. That of a squared exponential uses lines
under every exponential of all its points at once.

Proofs: docs/mathematics.md, statements 12.1, 12.4 and 15.2.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from gpcert.kernels.expansions.squared_exponential import (
    LocalSquaredExponential,
    WeightedExpansion,
)
from gpcert.kernels.expansions.squared_exponential_sections import SquaredExponentialSections
from gpcert.kernels.expansions.taylor import LocalTaylor
from gpcert.kernels.expansions.taylor_terms import TaylorExpansion
from gpcert.numerics.arrays import Array, PerCell, fused, namespace
from gpcert.numerics.rounding import EXP_ULPS, U, down, gamma, given, nonnegative, root, up
from gpcert.paper.lines.algebra import affine_lower_bound
from gpcert.paper.lines.registry import affine_relaxation, has_lines, lines_bound
from gpcert.regions.cells import separable_minima, squared_distance_ranges


class ScaledPoints(NamedTuple):
    """The points as a cell's kernel sees them; see `LocalSquaredExponential`."""

    points: Annotated[Array, "N d"]
    fixed_distances: Array
    extents: Array
    """(N,) bounds of |z_i| + |c|."""
    distance_errors: Array
    """(N,) bounds of the absolute error of `fixed_distances`, where k is not below TINY."""
    variance: float


@fused
def paper_lower_bound(
    where: ScaledPoints, scaled: Array, half: Array, weights: Array, slope: Array | None = None
) -> PerCell:
    """Certified lower bound (B,) of `sum_i t_i k(x, z_i) + slope.d` over |d_j| <= half_j: the
    paper's, Proposition "mean bound" of Patane et al. (as in Statement 12.4).

    Of `exp(-phi/2)`, convex in `phi_i(x) = |x - z_i|^2` (scaled), a tangent where t_i > 0 and the
    chord where t_i < 0 make a separable quadratic in x, whose minimum over a box is a closed form.
    A line is valid for whatever slope is taken, so the slopes' rounding costs tightness only;
    intercepts are rounded outwards.
    """
    xp = namespace(scaled)
    N, f = where.points.shape
    low, high = _phi_range(where, scaled, half)
    positive = weights > 0
    middle = given(0.5 * (low + high))
    tangent = -0.5 * xp.exp(-0.5 * middle)
    at_low, at_high = xp.exp(-0.5 * low), xp.exp(-0.5 * high)
    width = high - low
    chord = (at_high - at_low) / xp.where(width > 0, width, xp.ones_like(width))
    lines = given(xp.where(positive, tangent, chord))

    accuracy = gamma(EXP_ULPS + 16)
    # tangent of slope b: touches at phi = -2 log(-2b), within the error of exp of `middle`
    under = -2.0 * lines * (1.0 + 0.5 * middle) * (1.0 - 4.0 * accuracy) + middle * (
        4.0 * U * lines
    )
    over = xp.maximum(at_low - lines * low, at_high - lines * high) * (1.0 + 4.0 * accuracy)
    intercept = xp.where(positive, under, over)

    scaled_slope = weights * lines
    flat = xp.sum(weights * intercept, axis=1)
    zeroth = xp.sum(scaled_slope, axis=1)
    first = scaled_slope @ where.points - zeroth[:, None] * scaled
    trend = xp.zeros_like(first) if slope is None else (0.5 / where.variance) * slope
    second = scaled_slope @ xp.sum(where.points**2, axis=1)
    center2 = xp.sum(
        scaled * (2.0 * (scaled_slope @ where.points) - zeroth[:, None] * scaled), axis=1
    )
    second = second - center2 + scaled_slope @ where.fixed_distances
    first, along = first - trend, xp.sum((xp.abs(first) + xp.abs(trend)) * half, axis=1)
    total = flat + second + xp.sum(separable_minima(zeroth, first, half), axis=1)

    size = xp.sum(xp.abs(weights * intercept), axis=1)
    size = size + xp.abs(scaled_slope) @ (where.extents**2 + where.fixed_distances)
    reach2 = xp.sum(half**2, axis=1)
    size = size + xp.sum(xp.abs(scaled_slope), axis=1) * reach2 + along
    shifted = xp.abs(scaled_slope) @ where.distance_errors
    total = total - up(gamma(4 * N + 8 * f + 64) * 4.0 * size + shifted, 16)
    return down(where.variance * total, 2)


def _phi_range(where: ScaledPoints, scaled: Array, half: Array) -> tuple[Array, Array]:
    """(B, N) certified ends of `phi_i` over the cells, the fixed features included."""
    f = scaled.shape[1]
    low, high = squared_distance_ranges((scaled, half), where.points, where.fixed_distances)
    # coordinates carry 3 roundings of size |z| + |c|, squares and sums f + 8 more
    spread = (8.0 * U) * root(high) * where.extents + gamma(f + 16) * high
    spread = spread + (64.0 * U * U) * where.extents**2 + where.distance_errors
    return nonnegative(low - spread), up(high + spread, 4)


@lines_bound.register
def _taylor(
    local: LocalTaylor,
    expansion: TaylorExpansion,
    weights: Annotated[Array, "N"],
    slope: Array | None = None,
) -> PerCell | None:
    """Lines under and over every k(., z_i); a slope by its own minimum, as the lines of other
    carriers have theirs."""
    del local
    if not has_lines(expansion.blocks[0][1].batch):
        return None
    (lower,) = expansion.gathered(
        lambda block: (affine_lower_bound(affine_relaxation(block.batch), weights),)
    )
    return lower if slope is None else down(lower + expansion.geometry.least(slope), 1)


@lines_bound.register
def _squared_exponential(
    local: LocalSquaredExponential,
    expansion: WeightedExpansion,
    weights: Annotated[Array, "N"],
    slope: Array | None = None,
) -> PerCell:
    """Tangents and chords of the exponentials themselves."""
    extents = local.point_norms + local.reach
    # relative_error >= 0.6 of every error of r^2, that of the fixed features included
    errors = 2.0 * local.relative_error
    where = ScaledPoints(local.points, local.fixed_distances, extents, errors, local.variance)
    underflow = local.floor * float(namespace(weights).sum(abs(weights)))
    half = expansion.geometry.half
    return paper_lower_bound(where, expansion.scaled, half, weights, slope) - underflow


@lines_bound.register
def _sections(
    local: SquaredExponentialSections,
    expansion: WeightedExpansion,
    weights: Annotated[Array, "N"],
    slope: Array | None = None,
) -> PerCell:
    """`-s^2 sum max(-t_i, 0) exp(-F_i/2)`, as `0 <= k <= s^2 exp(-F/2)` on the whole section.

    Lines, which pay on large cells of several features, are not formed here.
    """
    assert slope is None, "models with a trend have no sections"
    xp = namespace(expansion.K)
    # errors of F and of exp: relative_error covers both, as k itself has them
    caps = local.variance * xp.exp(-0.5 * local.fixed_distances) * (1.0 + local.relative_error)
    total = caps @ nonnegative(-weights)
    return -up(total + local.floor * float(xp.sum(xp.abs(weights))), len(weights) + 16)
