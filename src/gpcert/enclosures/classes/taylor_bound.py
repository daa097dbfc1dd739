"""Lower bounds of a weighted sum of class probabilities by one expansion a cell, or by a few.

    G(x) = sum_c w_c pi_c(x),   pi_c = F_c(a(x), V(x)),

a the latent differences, V their covariance. About a reference (a_0, V_0) of the cell

    G = G_0 + p.da + <Q, dV> / 2 + (D2[da, da] + D3[da, dV] + D4[dV, dV] / 4) / 2 + rest,

p and Q the first two derivatives in a. The first-order part is one sum of the outputs' means and
variances, minimised over the cell jointly; the second-order part takes the linear parts of da and
dV. Where the latent variance changes a lot the expansion is made about several covariances.

Proofs: docs/mathematics.md, statements 10.5 and 10.7.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from gpcert.enclosures.classes.jets import ClassJet, derivative_norm
from gpcert.enclosures.classes.joint_change import spectral_size
from gpcert.enclosures.classes.metric import Sizes
from gpcert.enclosures.classes.outputs import LatentOutputs, sum_model
from gpcert.enclosures.classes.reference import Reference, frobenius
from gpcert.enclosures.classes.remainder import higher_degrees, orthogonal_rest, shrunk_bounds
from gpcert.enclosures.lower_model import QuadraticLowerModel
from gpcert.enclosures.polynomials import Minimum, smallest_eigenvalue
from gpcert.integrals.moments import UNIMODAL_BOUNDS
from gpcert.kernels.expansions.base import reach
from gpcert.kernels.expansions.exponentials import growth_chord
from gpcert.numerics.arrays import Array, PerCell, namespace
from gpcert.numerics.rounding import down, gamma, given, nonnegative, root, up
from gpcert.utils.processes import checkpoint


def taylor_bound(latent: LatentOutputs, place: Reference, jet: ClassJet) -> Minimum:
    """See the module. `lower` (B,), minus infinity where nothing is known; `point` (B, f)."""
    slopes = Slopes.of(place, jet, jet.derivatives[1])
    return least_sum(latent, place, jet, slopes, lost_beyond(place, jet))


def least_sum(
    latent: LatentOutputs,
    place: Reference,
    jet: ClassJet,
    slopes: Slopes,
    lost: PerCell,
) -> Minimum:
    """Lower bound of `value + p.da + <Q, dV> / 2 + second-order part - lost` over the cells."""
    xp = namespace(place.L)
    model, constant = sum_model(latent, place.layout, slopes.p, slopes.q)
    # the constant is that of the cell's centre; the references lie beside it
    means, variances = place.change.means, place.change.variances
    aside = xp.sum(slopes.p * (means.reference - means.center), axis=1)
    aside = aside + 0.5 * xp.sum(slopes.q * (variances.reference - variances.center), axis=1)
    constant = constant + aside
    # both are sums of terms that may cancel
    count = 64 + 4 * (place.layout.outputs + place.layout.classes)
    rounding = gamma(count) * _terms(latent, place, slopes)
    bent, bend_error = with_curvature(model, jet, place)
    best = bent.minimum()
    lost = up(lost + slopes.error + bend_error + rounding, 4)
    lower = jet.value + (best.lower - constant) - slopes.shift - lost
    size = xp.abs(jet.value) + xp.abs(best.lower) + xp.abs(constant) + xp.abs(slopes.shift) + lost
    lower = down(lower - gamma(8) * size, 2)
    lower = xp.where(xp.isnan(lower), xp.full_like(lower, -math.inf), lower)
    return Minimum(lower, best.point)


def center_range(latent: LatentOutputs, cells: Reference, jet: ClassJet) -> tuple[PerCell, PerCell]:
    """Certified range (B,) of G at the cells' centres: the same expansion, where nothing moves but
    what rounding leaves open and the step from V_0 to the centre's covariance."""
    layout = cells.layout
    place, known = latent.once((layout, "still place"), lambda: cells.at_center(latent))
    xp = namespace(place.L)
    slopes = Slopes.of(place, jet, jet.derivatives[1])
    means, variances = place.change.means, place.change.variances
    step = xp.sum(slopes.p * (means.center - means.reference), axis=1)
    value = jet.value + step - slopes.shift
    open_part = xp.sum(xp.abs(slopes.p) * known, axis=1)
    open_part = open_part + 0.5 * xp.sum(xp.abs(slopes.q) * variances.bend, axis=1)
    lost = up(lost_beyond(place, jet) + slopes.error + open_part, layout.outputs + 16)
    whole = xp.abs(means.center) + xp.abs(means.reference)
    size = xp.abs(jet.value) + xp.abs(slopes.shift)
    size = size + xp.sum(xp.abs(slopes.p) * whole, axis=1)
    lost = up(lost + gamma(layout.classes + 8) * size, layout.classes + 8)
    lost = xp.where(xp.isnan(lost), xp.full_like(lost, math.inf), lost)
    return down(value - lost, 2), up(value + lost, 2)


def _terms(latent: LatentOutputs, place: Reference, slopes: Slopes) -> Array:
    """Upper bound (B,) of the sizes of the first-order part's terms, at centre and reference."""
    xp, layout = namespace(place.L), place.layout
    outputs, variances = place.outputs, place.change.variances
    zero = xp.zeros_like(outputs.center[:, 0])
    shifts = [latent.mean_units(j).shift for j in range(layout.mean_outputs)]
    offset = xp.stack([zero + abs(shift) for shift in shifts], axis=1)
    noises = [latent.variance_units(j).shift for j in range(layout.outputs)]
    noise = xp.asarray(np.asarray(noises), device=place.L.device)
    means = xp.abs(outputs.center) + xp.abs(outputs.reference) + 2.0 * offset
    whole = xp.sum((xp.abs(slopes.p) @ place.change.mixing) * means, axis=1)
    spread = xp.abs(variances.center) + xp.abs(variances.reference) + 2.0 * noise
    count = 4 * layout.classes + 2 * layout.outputs + 64
    return up(whole + xp.sum(xp.abs(slopes.q) * spread, axis=1), count)


def lost_beyond(place: Reference, jet: ClassJet) -> PerCell:
    """The value's own error, the second-order part that bends, and the rest: the smaller one in the
    metric of V_0 and in the links' own, or by orthogonality."""
    sizes, xp = place.sizes, namespace(place.L)
    known = [derivative_norm(jet, order) for order in range(1, jet.order + 1)]
    missed = missed_bends(jet, sizes)
    rest = higher_degrees(known, gaussian_bounds(jet, place), sizes.mean, sizes.spread)
    smooth = _link_bounds(place, jet)
    if smooth is not None:
        # nearly singular covariances: the links themselves are smoother than their averages tell
        plain = place.plain_sizes
        other = _bent(smooth, plain, jet.order) + _tensor_errors(jet, sizes)
        missed = xp.minimum(missed, up(other, 32))
        # tensors of V_0's metric say nothing here, but that degree 2 is expanded
        rest = xp.minimum(rest, higher_degrees(known[:4], smooth, plain.mean, plain.spread))
    if jet.square is not None:
        rest = xp.minimum(rest, orthogonal_rest(jet, sizes))
    return up(jet.errors[:, 0] + missed + rest, 4)


def _link_bounds(place: Reference, jet: ClassJet) -> list[float] | None:
    """Bounds of the derivatives 1..6 by the links' own, in the metric of `plain_sizes`."""
    bounds = [jet.total * place.likelihood.link_bound(order) for order in range(1, 7)]
    return bounds if math.isfinite(bounds[-1]) else None


@dataclass(frozen=True, eq=False)
class Slopes:
    """`p` (B, n) and `q` (B, J), q_j = <Q, matrices_j>; `shift` (B,), <Q, V_0 - sum y_j C_j> / 2;
    `error` (B,): what their rounding costs on the cell."""

    p: Array
    q: Array
    shift: Array
    error: Array

    @staticmethod
    def of(place: Reference, jet: ClassJet, second: Annotated[Array, "B n n"]) -> Slopes:
        """From the derivatives in z: `p = R^T D1`, `Q = R^T second R`, `second` D2 or part of it.

        Whatever p and Q are, `p.da` differs from D1 applied to L^-1 da by at most
        `|L^T p - D1| |L^-1 da|`, and likewise for Q: rounding is found a posteriori.
        """
        xp = namespace(place.L)
        L, R = place.L, place.R
        n = L.shape[1]
        first = jet.derivatives[0]
        Lt, Rt = xp.matrix_transpose(L), xp.matrix_transpose(R)
        p = given((Rt @ first[:, :, None])[:, :, 0])
        Q = Rt @ second @ R
        Q = given(0.5 * (Q + xp.matrix_transpose(Q)))
        size = xp.abs(L)
        size_t = xp.matrix_transpose(size)
        miss1 = xp.abs((Lt @ p[:, :, None])[:, :, 0] - first)
        miss1 = miss1 + gamma(n + 4) * (size_t @ xp.abs(p)[:, :, None])[:, :, 0]
        miss2 = xp.abs(Lt @ Q @ L - second) + gamma(2 * n + 4) * (size_t @ xp.abs(Q) @ size)
        off1 = up(root(xp.sum(miss1 * miss1, axis=1)) + jet.errors[:, 1], n + 8)
        off2 = root(xp.sum(miss2 * miss2, axis=(1, 2))) + jet.errors[:, 2]
        change, sizes = place.change, place.sizes
        J = change.matrices.shape[0]
        flat = xp.reshape(change.matrices, (J, n * n))
        rows = xp.reshape(Q, (Q.shape[0], n * n))
        q = rows @ flat.T
        q_size = xp.abs(rows) @ xp.abs(flat).T
        shift = 0.5 * xp.sum(Q * change.offset, axis=(1, 2))
        rounding = gamma(n * n + 4) * xp.sum(xp.abs(Q * change.offset), axis=(1, 2))
        norm = root(xp.sum(Q * Q, axis=(1, 2)))
        rounding = rounding + norm * change.offset_error
        rounding = rounding + gamma(n * n + 8) * xp.sum(q_size * change.variances.reach, axis=1)
        whole = (xp.abs(p) @ change.mixing) * place.outputs.reach
        rounding = rounding + gamma(n + 8) * xp.sum(whole, axis=1)
        error = off1 * sizes.mean + 0.5 * off2 * sizes.spread + rounding
        return Slopes(p, q, shift, up(error, 4 * n * n + 4 * J + 32))


def missed_bends(jet: ClassJet, sizes: Sizes) -> PerCell:
    """What the second-order part differs from its value for the linear parts of da and dV, and
    what the computed derivatives are off by."""
    norms = [derivative_norm(jet, order) for order in range(1, jet.order + 1)]
    norms[1] = second_norm(jet)
    return up(_bent(norms, sizes, jet.order) + _tensor_errors(jet, sizes), 32)


def second_norm(jet: ClassJet) -> PerCell:
    """Upper bound (B,) of the spectral norm of the true second derivative."""
    second, xp = jet.derivatives[1], namespace(jet.value)
    second = 0.5 * (second + xp.matrix_transpose(second))
    ends = [-smallest_eigenvalue(sign * second) for sign in (1.0, -1.0)]
    norm = up(xp.maximum(*ends) * (1.0 + gamma(8)) + jet.errors[:, 2], 4)
    return xp.minimum(norm, derivative_norm(jet, 2))


def _bent(norms: Sequence[Array | float], sizes: Sizes, order: int) -> Array:
    """With |D_j| at most t_j and da = linear + bend, at most
    `t2 (2 A a + a^2) / 2 + t3 (a W + A w) / 2 + t4 (2 W w + w^2) / 8`, capitals whole sizes, small
    letters bends. For D_2 alone if no more is expanded."""
    A, a, W, w = sizes.mean, sizes.mean_bend, sizes.spread, sizes.spread_bend
    bent = 0.5 * norms[1] * (2.0 * A * a + a * a)
    if order >= 4:
        bent = bent + 0.5 * norms[2] * (a * W + A * w)
        bent = bent + 0.125 * norms[3] * (2.0 * W * w + w * w)
    return bent


def _tensor_errors(jet: ClassJet, sizes: Sizes) -> Array:
    """`e2 A^2 / 2 + e3 A W / 2 + e4 W^2 / 8`, e_j the errors of the computed D_j."""
    A, W = sizes.mean, sizes.spread
    total = 0.5 * jet.errors[:, 2] * A * A
    if jet.order >= 4:
        total = total + 0.5 * jet.errors[:, 3] * A * W + 0.125 * jet.errors[:, 4] * W * W
    return total


def with_curvature(
    model: QuadraticLowerModel, jet: ClassJet, place: Reference
) -> tuple[QuadraticLowerModel, PerCell]:
    """The model plus `d^T M d / 2`, M the second-order part for the linear parts of da and dV, and
    a bound of what the weight and rounding cost.

    The model carries the weight omega, M does not: the difference is at most
    `(omega - 1) |d^T M d| / 2`. Every entry of M is a sum of at most 2 n^4 products whose sizes
    together are bounded by Frobenius norms.
    """
    xp = namespace(place.L)
    geometry, sizes = place.geometry, place.sizes
    B, n, f = sizes.slope.shape
    across = xp.matrix_transpose(sizes.slope)  # (B, f, n)
    M = across @ jet.derivatives[1] @ sizes.slope
    moved = xp.sum(root(xp.sum(sizes.slope**2, axis=1)) * geometry.half, axis=1)
    terms = derivative_norm(jet, 2) * moved**2
    if jet.order >= 4:
        spread = xp.reshape(sizes.spread_slope, (B, n * n, f))
        third = xp.reshape(jet.derivatives[2], (B, n, n * n))
        fourth = xp.reshape(jet.derivatives[3], (B, n * n, n * n))
        cross = across @ third @ spread
        M = M + 0.5 * (cross + xp.matrix_transpose(cross))
        M = M + 0.25 * (xp.matrix_transpose(spread) @ fourth @ spread)
        widened = xp.sum(root(xp.sum(spread**2, axis=1)) * geometry.half, axis=1)
        terms = terms + derivative_norm(jet, 3) * moved * widened
        terms = terms + 0.25 * derivative_norm(jet, 4) * widened**2
    M = 0.5 * (M + xp.matrix_transpose(M))
    growth = growth_chord(model.rate, geometry.rho2) * geometry.rho2 if model.rate > 0 else 0.0
    size = reach(M, geometry)
    rounding = gamma(4 * n**4 + 32) * terms + gamma(4) * (size + model.size)
    curved = replace(model, hessian=model.matrix + M, known_size=up(model.size + size, 2 * f + 8))
    return curved, up(0.5 * growth * size + rounding, 64 + 2 * f * f)


def gaussian_bounds(jet: ClassJet, place: Reference) -> list[PerCell]:
    """Bounds of the derivatives of G along the line, in the metric of V_0."""
    return [up(jet.total * b, 2) for b in shrunk_bounds(UNIMODAL_BOUNDS, place.sizes.operator)]


MAX_DIFFERENCES = 2
"""Largest n for which trace and skew say all about the size of a change (see `moved_reference`)."""

PIECES = 6
"""Pieces of the range of the trace."""

LARGEST_TRACE = 1e3
"""Beyond this the range is not cut into pieces: from n on, the first one reaches down to no
variance at all, about which nothing is known."""


def variance_pieces_bound(
    latent: LatentOutputs,
    place: Reference,
    jet_at: Callable[[Reference], ClassJet],
    known: PerCell | None = None,
) -> PerCell:
    """Certified lower bound (B,) of the sum whose jet at a reference is `jet_at(reference)`; n at
    most `MAX_DIFFERENCES`, or jets that know their mean square.

    Most of the change of the covariance on a cell is a common factor: every x has its
    `t(x) = trace(V_0^-1 (V(x) - V_0))`, at least -n, in one of a few pieces. For the points of a
    piece around t_k the expansion is about `V_k = (1 + t_k / n) V_0` (Statement 10.7), which costs
    integrals and quadratics, but no product with the kernel matrix, as splitting the cell would.

    Where the pieces so far, those at the ends first, surpass `known` bounds on no cell, the least
    of all does not either: then nothing is claimed, and the others are not computed.
    """
    xp = namespace(place.L)
    sizes, n = place.sizes, place.L.shape[1]
    usable = sizes.trace <= LARGEST_TRACE
    high = xp.where(usable, sizes.trace, xp.ones_like(sizes.trace))
    low = -xp.minimum(high, xp.full_like(high, float(n)))
    best = None
    for k in (0, PIECES - 1, *range(1, PIECES - 1)):
        if best is not None and known is not None and not bool(xp.any(usable & ~(best <= known))):
            return xp.full_like(best, -math.inf)
        ends = [low + (high - low) * ((k + shift) / PIECES) for shift in (0, 1)]
        middle = 0.5 * (ends[0] + ends[1])
        # the ends round: neighbours overlap a little
        half = up(0.5 * (ends[1] - ends[0]) + gamma(16) * (xp.abs(low) + high), 4)
        bound = piece_bound(latent, moved_reference(place, middle, half), jet_at)
        best = bound if best is None else xp.minimum(best, bound)
    return xp.where(usable, best, xp.full_like(best, -math.inf))


def piece_bound(
    latent: LatentOutputs, place: Reference, jet_at: Callable[[Reference], ClassJet]
) -> PerCell:
    """The bound for the points of the cell whose trace lies in the piece of the reference.

    Of a piece of half-width h the part of `<Q, V - V_k> / 2` along the trace is at least
    `-|q_t| h / 2`, q_t = trace(D2) / n in the metric of V_k; or all of it is left in the sum that
    is minimised over the cell. Both hold; the larger bound counts.
    """
    checkpoint()
    xp = namespace(place.L)
    jet = jet_at(place)
    n = place.L.shape[1]
    A, W = place.sizes.mean, place.sizes.spread
    known = [derivative_norm(jet, order) for order in range(1, jet.order + 1)]
    # only the means' own second-order part is expanded; the rest of degree 2 is bounded
    plain = ClassJet(jet.value, jet.derivatives[:2], jet.errors[:, :3], jet.parts)
    lost = jet.errors[:, 0] + missed_bends(plain, place.sizes)
    beyond = higher_degrees(known, gaussian_bounds(jet, place), A, W)
    if jet.order >= 4:  # else `higher_degrees` counts them
        crossed = 0.5 * known[2] * A * W + 0.125 * known[3] * W * W
        lost = lost + up(crossed, 8)
    if jet.square is not None:
        beyond = xp.minimum(beyond, orthogonal_rest(jet, place.sizes))
    lost = up(lost + beyond, 4)
    second = jet.derivatives[1]
    diagonal = xp.linalg.diagonal(second)
    level = xp.sum(diagonal, axis=1) / n
    identity = xp.eye(n, dtype=second.dtype, device=second.device)
    flat = second - level[:, None, None] * identity
    # the trace of D2 rounds, and so does the difference
    along = 0.5 * xp.abs(level) * place.sizes.trace
    along = along + gamma(8) * xp.sum(xp.abs(diagonal), axis=1) * W
    whole = least_sum(latent, place, plain, Slopes.of(place, plain, second), lost)
    apart = least_sum(latent, place, plain, Slopes.of(place, plain, flat), up(lost + along, 8))
    return xp.maximum(whole.lower, apart.lower)


def moved_reference(place: Reference, middle: PerCell, half: PerCell) -> Reference:
    """The reference V_k, and the sizes of what is left of the change for the points of the piece.

    Variances `apart` move with their law, whose noise is then none. In the metric of V_0 the change
    is `W - (t_k / n) I` with trace within `half` and the same
    difference of eigenvalues; the metric of V_k divides by `1 + t_k / n`. The entries of the float
    factor L_k carry a few roundings each: in the metric they count `| |L^-1| |L| |` times.
    """
    xp = namespace(place.L)
    n = place.L.shape[1]
    ratio = xp.maximum(1.0 + middle / n, xp.full_like(middle, 1e-6))
    factor = xp.sqrt(ratio)
    L, R = place.L * factor[:, None, None], place.R / factor[:, None, None]
    sizes = place.sizes
    skeel = 1.0 + frobenius(xp.abs(place.R) @ xp.abs(place.L)) * (1.0 + place.inflation)
    # a ratio that was raised is not that of the piece: the difference counts as half-width
    aside = given(n * nonnegative(ratio - (1.0 + middle / n)))  # its rounding: `gamma` below
    trace, skew = up(half + aside, 2) / ratio, sizes.skew / ratio
    trace = up(trace + gamma(32) * n * skeel, 4)
    skew = up(skew + gamma(32) * n * skeel, 4)
    nuclear = trace if n == 1 else xp.maximum(trace, skew)
    spectral = length = trace if n == 1 else 0.5 * (trace + skew)
    if n == 2:
        length = nuclear
    if n > 2:
        spectral = spectral_size(trace, skew, n)
        length = up(root(trace * trace / n + skew * skew), 8)
        nuclear = up(math.sqrt(n) * length, 4)
    moved = Sizes(
        mean=up(sizes.mean / factor * (1.0 + gamma(16) * skeel), 8),
        mean_bend=up(sizes.mean_bend / factor + gamma(16) * skeel * sizes.mean / factor, 8),
        spread=up(nuclear, 4),
        spread_bend=up(nuclear, 4),
        operator=up(spectral, 4),
        frobenius=up(length, 4),
        trace=trace,
        skew=skew,
        slope=sizes.slope / factor[:, None, None],
        spread_slope=sizes.spread_slope / ratio[:, None, None, None],
    )
    square = L @ xp.matrix_transpose(L)
    before = place.L @ xp.matrix_transpose(place.L)
    both = [xp.abs(x) @ xp.matrix_transpose(xp.abs(x)) for x in (L, place.L)]
    error = gamma(n + 8) * frobenius(both[0] + both[1] + xp.abs(square))
    change = replace(
        place.change,
        offset=place.change.offset + (square - before),
        offset_error=up(place.change.offset_error + error, n * n + 8),
    )
    mismatch = up(ratio * place.mismatch + 2.0 * error, n * n + 8)
    apart = place.apart * ratio[:, None]
    return replace(place, L=L, R=R, change=change, sizes=moved, apart=apart, mismatch=mismatch)
