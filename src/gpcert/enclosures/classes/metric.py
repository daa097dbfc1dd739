"""Sizes of the change of latent means and covariance on a cell, in a metric of the latent space.

Proofs: docs/mathematics.md, statement 10.6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from gpcert.enclosures.classes.joint_change import (
    Change,
    euclidean,
    joint_sizes,
    longest_image,
    spectral_size,
    turned,
)
from gpcert.enclosures.classes.latent import linear_reach
from gpcert.numerics.arrays import Array, PerCell, namespace
from gpcert.numerics.rounding import gamma, root, up
from gpcert.regions.scaled import ScaledCells

MAX_ENTRIES = 3
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
    change: Change, R: Annotated[Array, "B n n"], inflation: PerCell, geometry: ScaledCells
) -> Sizes:
    """Measure a change with R (B, n, n), rounding included.

    `inflation` (B,) >= 0: the metric that is meant is T R for a matrix T with
    `|T - I|_2 <= inflation`; everything is enlarged accordingly (twice for covariances).
    Reason: triangle inequalities, row by row for the means, and for covariances in the coordinates
    of `coordinates_of`.
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
    linear = euclidean(linear_reach(geometry, slope))
    mean_bend = euclidean((size @ means.bend[:, :, None])[:, :, 0] + lost)
    mean = linear + mean_bend
    if n > MAX_ENTRIES:
        # R is a float matrix: only what the product R slope rounds is left
        mean_bend = _less(mean_bend, longest_image(R, means.bend) + euclidean(lost))
        box = xp.concat([geometry.half, means.bend], axis=1)
        both = longest_image(xp.concat([slope, R], axis=2), box) + euclidean(lost)
        mean = _less(linear + mean_bend, both)
    once, twice = 1.0 + inflation, (1.0 + inflation) ** 2
    mean = up(mean * once, count)

    (spread, operator, length, trace, skew), bend = _covariance_sizes(change, R, geometry, count)
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
    change: Change, R: Array, geometry: ScaledCells, count: int
) -> tuple[Norms, Array]:
    """Norms of `R (V - V_0) R^T`, and the nuclear norm (B,) without its linear part; the inflation
    is left to the caller."""
    xp = namespace(R)
    n, variances = R.shape[1], change.variances
    size = xp.abs(R)
    matrices = change.matrices[None]
    images, sizes = turned(R, matrices), turned(size, xp.abs(matrices))
    J = images.shape[1]
    coordinates = coordinates_of(images)
    magnitudes = coordinates_of(sizes, absolute=True)
    moved = xp.sum(xp.abs(variances.slope) * geometry.half[:, None, :], axis=2)
    sums = (moved + variances.bend)[:, :, None]
    lost = gamma(2 * n + J + 12) * (magnitudes @ sums)[:, :, 0]
    swings = linear_reach(geometry, coordinates @ variances.slope)
    bends = (xp.abs(coordinates) @ variances.bend[:, :, None])[:, :, 0]
    if n == 2 and variances.shapes is not None:
        together = variances.shapes.bends(coordinates, geometry)
        bends = xp.where(together < bends, together, bends)
    fixed = _fixed_part(change, R, count)
    bends = up(bends + lost + fixed, count)
    # output by output: a matrix of rank r has nuclear norm at most sqrt(r) times Frobenius
    most = xp.abs(images) + gamma(2 * n + 4) * sizes
    lengths = up(root(xp.sum(most * most, axis=(2, 3))), n * n + 4)
    each = xp.asarray(change.root_ranks, device=R.device) * lengths
    still, whole = Norms.of(fixed, n), Norms.of(swings + bends, n)
    apart = [
        up(xp.sum(each * part, axis=1) + still.nuclear, count)
        for part in (variances.reach, variances.bend + gamma(count) * moved)
    ]
    length = up(xp.sum(lengths * variances.reach, axis=1) + still.frobenius, count)
    spread, length = xp.minimum(whole.nuclear, apart[0]), xp.minimum(whole.frobenius, length)
    bend = xp.minimum(Norms.of(bends, n).nuclear, apart[1])
    return whole._replace(nuclear=spread, frobenius=length), bend


def _fixed_part(change: Change, R: Array, count: int) -> Array:
    """(B, K): coordinates' sizes of what does not move, `offset` and its error."""
    xp = namespace(R)
    n, size = R.shape[1], xp.abs(R)
    shift = turned(R, change.offset[:, None])
    shift_size = turned(size, xp.abs(change.offset)[:, None])
    fixed = xp.abs(coordinates_of(shift))[:, :, 0]
    fixed = fixed + gamma(2 * n + 12) * coordinates_of(shift_size, absolute=True)[:, :, 0]
    norm = root(xp.sum(R * R, axis=(1, 2)))
    return up(fixed + 2.0 * (norm**2 * change.offset_error)[:, None], count)


def coordinates_of(
    W: Annotated[Array, "B J n n"], absolute: bool = False
) -> Annotated[Array, "B K J"]:
    """(B, K, J): linear coordinates of symmetric matrices W (B, J, n, n) for `Norms`.

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


class Norms(NamedTuple):
    """Upper bounds (B,) of norms, of the trace's size, and of the eigenvalues' difference."""

    nuclear: Array
    spectral: Array
    frobenius: Array
    trace: Array
    skew: Array

    @staticmethod
    def of(coordinates: Annotated[Array, "B K"], n: int) -> Norms:
        """From bounds (B, K) of the coordinates' sizes: by the eigenvalues for n = 2, nuclear norm
        `|t + s| / 2 + |t - s| / 2 = max(|t|, s)`; else by the length of all entries."""
        trace, length = coordinates[:, 0], euclidean(coordinates)
        if n == 2:
            skew = euclidean(coordinates[:, 1:])
            nuclear = namespace(trace).maximum(trace, skew)
            length = up(math.sqrt(0.5) * length, 4)
            return Norms(nuclear, up(0.5 * (trace + skew), 4), length, trace, skew)
        infinite = namespace(trace).full_like(trace, math.inf)
        whole = (trace, 0.0 * trace) if n == 1 else (infinite, infinite)
        return Norms(up(math.sqrt(n) * length, 4), length, length, *whole)


def _less(bound: Array, other: Array) -> Array:
    """The smaller one; undefined numbers lose."""
    return namespace(bound).where(other < bound, other, bound)
