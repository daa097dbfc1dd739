"""Sizes of the change of latent means and covariance on a cell, in a metric of the latent space.

Proofs: docs/mathematics.md, statement 10.6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from gpcert.arrays import Array, PerCell, namespace
from gpcert.enclosures.classes.joint_change import (
    Change,
    euclidean,
    joint_sizes,
    longest_image,
    spectral_size,
    turned,
)
from gpcert.enclosures.classes.latent import linear_reach
from gpcert.kernels.expansions.base import Geometry, reach
from gpcert.rounding import gamma, root, up

MOST_ENTRIES = 3
"""Differences up to which the sizes of entries are enough to measure a change by."""


@dataclass(frozen=True, eq=False)
class Sizes:
    """Upper bounds (B,) in the metric of R: `|R (d - d_0)|` and the nuclear norm of
    `R (V - V_0) R^T`, each whole and without its linear part; `operator` and `frobenius` bound the
    spectral and the Frobenius norm of the latter. `trace` bounds the size of its trace, and `skew`,
    for n <= 2, the difference of its eigenvalues, else the Frobenius norm of it less its trace's
    part; both are infinite for n > 2 unless the change is known jointly. `slope` (B, n, f) and
    `spread_slope` (B, n, n, f) are the linear parts."""

    mean: Array
    mean_bend: Array
    spread: Array
    spread_bend: Array
    operator: Array
    frobenius: Array
    trace: Array
    skew: Array
    slope: Array
    spread_slope: Array


def measure(
    change: Change, R: Annotated[Array, "B n n"], inflation: PerCell, geometry: Geometry
) -> Sizes:
    """Measure a change with R (B, n, n), rounding included.

    `inflation` (B,) >= 0: the metric that is meant is T R for a matrix T with
    `|T - I|_2 <= inflation`; everything is enlarged accordingly (twice for covariances).
    Reason: triangle inequalities, row by row for the means, and for covariances in the coordinates
    of `_coordinates`.
    """
    xp = namespace(R)
    n, f = R.shape[1], geometry.half.shape[1]
    J = change.matrices.shape[0]
    count = 4 * (n * n + J + f) + 32
    means = change.means
    slope = R @ means.slope
    size = xp.abs(R)
    moved = xp.sum(xp.abs(means.slope) * geometry.half[:, None, :], axis=2)
    lost = gamma(n + 2) * (size @ moved[:, :, None])[:, :, 0]
    linear = xp.minimum(euclidean(linear_reach(geometry, slope)), _box_length(slope, geometry))
    mean_bend = euclidean((size @ means.bend[:, :, None])[:, :, 0] + lost)
    mean = linear + mean_bend
    if n > MOST_ENTRIES:
        # R is a float matrix: only what the product R slope rounds is left
        mean_bend = _less(mean_bend, longest_image(R, means.bend) + euclidean(lost))
        box = xp.concat([geometry.half, means.bend], axis=1)
        both = longest_image(xp.concat([slope, R], axis=2), box) + euclidean(lost)
        mean = _less(linear + mean_bend, both)
    once, twice = 1.0 + inflation, (1.0 + inflation) ** 2
    mean = up(mean * once, count)

    spread, bend, whole, length = _covariance_sizes(change, R, geometry, count)
    operator = _spectral(whole, n)
    trace, skew = _trace_and_skew(whole, n)
    if change.joint is not None and n > 2:
        trace, skew = joint_sizes(change, change.joint, R, geometry)
        length = xp.minimum(length, up(root(trace * trace / n + skew * skew), 8))
        operator = xp.minimum(operator, spectral_size(trace, skew, n))
        spread = xp.minimum(spread, up(math.sqrt(n) * length, 4))
    spread = up(spread * twice, count)
    bend = up(up(bend * twice, count) + 3.0 * inflation * spread, 2)
    flat = xp.reshape(turned(R, change.matrices[None]), (R.shape[0], J, n * n))
    spread_slope = xp.matrix_transpose(flat) @ change.variances.slope
    return Sizes(
        mean=mean,
        mean_bend=up(mean_bend * once + inflation * mean, count),
        spread=spread,
        spread_bend=bend,
        operator=up(operator * twice, count),
        frobenius=up(length * twice, count),
        # |trace(T W T^T) - trace W| <= |T^T T - I| |W|, and eigenvalues move by as much at most
        trace=up(trace + 3.0 * inflation * spread, count),
        skew=up(skew + 6.0 * inflation * spread, count),
        slope=slope,
        spread_slope=xp.reshape(spread_slope, (R.shape[0], n, n, f)),
    )


def _covariance_sizes(
    change: Change, R: Array, geometry: Geometry, count: int
) -> tuple[Array, Array, Array, Array]:
    """Nuclear norms (B,) of `R (V - V_0) R^T`, whole and without its linear part, bounds (B, K) of
    its coordinates, and its Frobenius norm (B,); the inflation is left to the caller."""
    xp = namespace(R)
    n, variances = R.shape[1], change.variances
    size = xp.abs(R)
    matrices = change.matrices[None]
    images, sizes = turned(R, matrices), turned(size, xp.abs(matrices))
    J = images.shape[1]
    own = _coordinates(images)
    own_sizes = _coordinates(sizes, absolute=True)
    moved = xp.sum(xp.abs(variances.slope) * geometry.half[:, None, :], axis=2)
    sums = (moved + variances.bend)[:, :, None]
    lost = gamma(2 * n + J + 12) * (own_sizes @ sums)[:, :, 0]
    swings = linear_reach(geometry, own @ variances.slope)
    bends = (xp.abs(own) @ variances.bend[:, :, None])[:, :, 0]
    if n == 2 and variances.shapes is not None:
        together = variances.shapes.bends(own, geometry)
        bends = xp.where(together < bends, together, bends)
    fixed = _fixed_part(change, R, count)
    bends = up(bends + lost + fixed, count)
    # output by output: a matrix of rank r has nuclear norm at most sqrt(r) times Frobenius
    most = xp.abs(images) + gamma(2 * n + 4) * sizes
    lengths = up(root(xp.sum(most * most, axis=(2, 3))), n * n + 4)
    each = xp.asarray(change.root_ranks, device=R.device) * lengths
    still = _nuclear(fixed, n)
    apart = [
        up(xp.sum(each * part, axis=1) + still, count)
        for part in (variances.reach, variances.bend + gamma(count) * moved)
    ]
    whole = swings + bends
    spread = xp.minimum(_nuclear(whole, n), apart[0])
    length = up(xp.sum(lengths * variances.reach, axis=1) + _entries_length(fixed, n), count)
    length = xp.minimum(_entries_length(whole, n), length)
    return spread, xp.minimum(_nuclear(bends, n), apart[1]), whole, length


def _fixed_part(change: Change, R: Array, count: int) -> Array:
    """(B, K): coordinates' sizes of what does not move, `offset` and its error."""
    xp = namespace(R)
    n, size = R.shape[1], xp.abs(R)
    shift = turned(R, change.offset[:, None])
    shift_size = turned(size, xp.abs(change.offset)[:, None])
    fixed = xp.abs(_coordinates(shift))[:, :, 0]
    fixed = fixed + gamma(2 * n + 12) * _coordinates(shift_size, absolute=True)[:, :, 0]
    norm = root(xp.sum(R * R, axis=(1, 2)))
    return up(fixed + 2.0 * (norm**2 * change.offset_error)[:, None], count)


def _coordinates(W: Array, absolute: bool = False) -> Array:
    """(B, K, J): linear coordinates of symmetric matrices W (B, J, n, n) in which norms are read
    off by `_nuclear` and `_spectral`.

    n = 2: the trace t, and `W_11 - W_22`, `2 W_12` of length s: the eigenvalues are (t +- s) / 2.
    Otherwise: all entries. `absolute`: bounds of the coordinates from bounds of the entries.
    """
    xp = namespace(W)
    n = W.shape[2]
    if n != 2:
        return xp.matrix_transpose(xp.reshape(W, (W.shape[0], W.shape[1], n * n)))
    first, second, mixed = W[:, :, 0, 0], W[:, :, 1, 1], W[:, :, 0, 1]
    difference = first + second if absolute else first - second
    return xp.stack([first + second, difference, 2.0 * mixed], axis=1)


def _nuclear(coordinates: Array, n: int) -> Array:
    """Upper bound (B,) of the nuclear norm from bounds (B, K) of the coordinates' sizes.

    n = 2: `|t + s| / 2 + |t - s| / 2 = max(|t|, s)`. Otherwise sqrt(n) times the Frobenius norm.
    """
    xp = namespace(coordinates)
    if n == 2:
        return xp.maximum(coordinates[:, 0], euclidean(coordinates[:, 1:]))
    return up(math.sqrt(n) * euclidean(coordinates), 4)


def _trace_and_skew(coordinates: Array, n: int) -> tuple[Array, Array]:
    """Bounds (B,) of the trace's size and of the eigenvalues' difference."""
    xp = namespace(coordinates)
    trace = coordinates[:, 0]
    if n == 1:
        return trace, 0.0 * trace
    if n == 2:
        return trace, euclidean(coordinates[:, 1:])
    infinite = xp.full_like(trace, math.inf)
    return infinite, infinite


def _spectral(coordinates: Array, n: int) -> Array:
    """The same for the spectral norm: `(|t| + s) / 2`, or the Frobenius norm."""
    if n == 2:
        return up(0.5 * (coordinates[:, 0] + euclidean(coordinates[:, 1:])), 4)
    return euclidean(coordinates)


def _less(bound: Array, other: Array) -> Array:
    """The smaller one; undefined numbers lose."""
    return namespace(bound).where(other < bound, other, bound)


def _box_length(slope: Array, geometry: Geometry) -> Array:
    """Upper bound (B,) of `|slope d|` on every cell: `d^T G d <= sum_ij |G_ij| w_i w_j` for
    `G = slope^T slope`, in which the rows cancel where `linear_reach` adds up their sizes."""
    xp = namespace(slope)
    n = slope.shape[1]
    gram = xp.matrix_transpose(slope) @ slope
    rows = xp.sum(xp.abs(slope) * geometry.half[:, None, :], axis=2)
    rounding = gamma(n + 8) * xp.sum(rows * rows, axis=1)
    return up(root(reach(gram, geometry) + rounding), slope.shape[2] ** 2 + 16)


def _entries_length(coordinates: Array, n: int) -> Array:
    """The same for the Frobenius norm: `sqrt((t^2 + s^2) / 2)`, or the length of all entries."""
    return up(math.sqrt(0.5) * euclidean(coordinates), 4) if n == 2 else euclidean(coordinates)
