"""The expansion about several covariances: for cells on which the latent variance changes a lot.

Most of the change of the covariance on a cell is a common factor. With V_0 the cell's reference and
`t(x) = trace(V_0^-1 (V(x) - V_0))`, every x of the cell has its t in one of a few pieces. For
the points of a piece around t_k the expansion about `V_k = (1 + t_k / n) V_0` holds with a small
rest, and the cell's bound is the least of the pieces'. Pieces cost integrals and quadratics, but no
product with the kernel matrix, as splitting the cell would.

For a piece of half-width h the part of `<Q, V - V_k> / 2` along the trace is at least
`-|q_t| h / 2`, q_t = trace(D2) / n in the metric of V_k; or all of `<Q, V - V_k>` is left in the
sum that is minimised over the cell. Both hold; the larger bound counts.

Proofs: docs/mathematics.md, statement 10.7.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from gpcert.arrays import Array, PerCell, namespace
from gpcert.deadline import checkpoint
from gpcert.enclosures.classes.jets import ClassJet, derivative_norm
from gpcert.enclosures.classes.joint_change import spectral_size
from gpcert.enclosures.classes.metric import Sizes
from gpcert.enclosures.classes.outputs import LatentOutputs
from gpcert.enclosures.classes.reference import Reference, frobenius
from gpcert.enclosures.classes.remainder import higher_degrees, orthogonal_rest
from gpcert.enclosures.classes.taylor_bound import (
    Slopes,
    gaussian_bounds,
    least_sum,
    missed_bends,
)
from gpcert.rounding import gamma, nonnegative, root, up

MOST_DIFFERENCES = 2
"""Largest n for which trace and skew say all about the size of a change (see `_moved`)."""

PIECES = 6
"""Pieces of the range of the trace."""


def variance_pieces_bound(
    latent: LatentOutputs, place: Reference, jet_at: Callable[[Reference], ClassJet]
) -> PerCell:
    """Certified lower bound (B,) of the sum whose jet at a reference is `jet_at(reference)`; n at
    most `MOST_DIFFERENCES`, or jets that know their mean square.

    The trace is at least -n: V is positive semi-definite.
    """
    xp = namespace(place.L)
    sizes, n = place.sizes, place.L.shape[1]
    usable = xp.isfinite(sizes.trace)
    high = xp.where(usable, sizes.trace, xp.ones_like(sizes.trace))
    low = -xp.minimum(high, xp.full_like(high, float(n)))
    best = None
    for k in range(PIECES):
        ends = [low + (high - low) * ((k + shift) / PIECES) for shift in (0, 1)]
        middle = 0.5 * (ends[0] + ends[1])
        # the ends round: neighbours overlap a little
        half = up(0.5 * (ends[1] - ends[0]), 4) + gamma(16) * (xp.abs(low) + high)
        found = _piece(latent, _moved(place, middle, half), jet_at)
        best = found if best is None else xp.minimum(best, found)
    assert best is not None
    return xp.where(usable, best, xp.full_like(best, -math.inf))


def _piece(
    latent: LatentOutputs, place: Reference, jet_at: Callable[[Reference], ClassJet]
) -> Array:
    """The bound for the points of the cell whose trace lies in the piece of the reference."""
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


def _moved(place: Reference, middle: Array, half: Array) -> Reference:
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
    aside = n * nonnegative(ratio - (1.0 + middle / n))
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
    size = xp.abs(L) @ xp.matrix_transpose(xp.abs(L))
    size = size + xp.abs(place.L) @ xp.matrix_transpose(xp.abs(place.L)) + xp.abs(square)
    error = gamma(n + 8) * root(xp.sum(size * size, axis=(1, 2)))
    change = replace(
        place.change,
        offset=place.change.offset + (square - before),
        offset_error=up(place.change.offset_error + error, n * n + 8),
    )
    mismatch = up(ratio * place.mismatch + 2.0 * error, n * n + 8)
    apart = place.apart * ratio[:, None]
    return replace(place, L=L, R=R, change=change, sizes=moved, apart=apart, mismatch=mismatch)
