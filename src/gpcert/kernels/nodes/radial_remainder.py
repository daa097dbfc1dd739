"""Remainder of degree 2 of sums of functions of a radial kernel, with degrees 3 and 4 as tensors.

With v = z - c scaled, r = |v| (the fixed features included), in c:

    D^3 k = s (F_3 (v.d)^3 - 3 F_2 (v.d) |d|^2),
    D^4 k = s (F_4 (v.d)^4 - 6 F_3 (v.d)^2 |d|^2 + 3 F_2 |d|^4),
    D^5 k = s (F_5 (v.d)^5 - 10 F_4 (v.d)^3 |d|^2 + 15 F_3 (v.d) |d|^4).

Weights of a posterior alternate in sign: `sum_i a_i D^3 k(., z_i)` as one tensor keeps their
cancellation; only order 5 is summed point by point.

Proofs: docs/mathematics.md, statements 3.6 and 3.7.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gpcert.kernels.nodes.base import CubicPart, TaylorRemainder
from gpcert.kernels.nodes.moments import (
    double_pairings,
    entry_sum,
    form_size,
    pairings,
    sorted_index,
)
from gpcert.kernels.nodes.radial_variations import PARTS, DistanceRange, fifth_within, share_weights
from gpcert.numerics.arrays import Array, PerCell, PerCellAndPoint, namespace
from gpcert.numerics.rounding import POW_ULPS, TINY, gamma, up

if TYPE_CHECKING:
    from gpcert.kernels.nodes.radial_batch import RadialBatch

MAX_TENSOR_FEATURES = 12
"""Up to here all fourth moments (f^4 / 24 columns) are formed."""


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def radial_remainder(
    batch: RadialBatch, coefficients: PerCellAndPoint, third: PerCellAndPoint
) -> TaylorRemainder:
    """The remainder of degree 2 of `sum_i a_bi k(., z_i)` on each cell.

    Statement: it is at most `|T_3[d,d,d]| / 6 + |T_4[d,d,d,d]| / 24 + sum_i |a_i| S_5i / 120`, the
    tensors summed over the points (Taylor along the segment; Statement 3.6). A point whose S_5i and
    rounding exceed `third_i / 6`, the bound of order 3, ends there and is left out of the tensors.
    On large cells order 3 may be the better one for all points together.
    """
    xp = namespace(coefficients)
    node, zero = batch.node, xp.zeros_like(batch.r)
    F, smooth = batch.fifth_order
    rough = up(third / 6.0, 1)
    goes_on = smooth < rough
    sizes = xp.abs(coefficients)
    left = xp.where(sizes > 0, xp.where(goes_on, smooth, rough), zero)
    total = up(xp.sum(sizes * left, axis=1), coefficients.shape[1] + 4)
    rough = xp.where(sizes > 0, rough, zero)
    plain = up(xp.sum(sizes * rough, axis=1), coefficients.shape[1] + 4)
    a = node.variance * xp.where(goes_on, coefficients, zero)
    raw = [
        node.table.raw(a * xp.where(goes_on, factor, zero), degree)
        for factor, degree in zip(F, TENSOR_DEGREES, strict=True)
    ]
    return remainder_of_tensors(batch, raw, total, plain)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def fifth_order(batch: RadialBatch) -> tuple[list[PerCellAndPoint], PerCellAndPoint]:
    """F_2, F_3 and F_4 at the distances, and what remains of each function beyond degree 4, with
    the rounding of its tensors; the same for all weights."""
    node, rho = batch.node, batch.rho
    xp = namespace(rho)
    F = node.profile.terms(batch.r, (2, 0), (3, 0), (4, 0))
    ends = (batch.r, batch.r)
    cubic, quartic = node.tensor_rounding(ends, batch.distance_error, node.extents, F)
    powers = (rho * rho * rho)[:, None]
    rounding = up(powers * cubic + (powers * rho[:, None]) * quartic, 8)
    rounding = xp.where(xp.isnan(rounding), xp.full_like(rounding, math.inf), rounding)
    lost = up(batch.distance_error, 2)
    center = DistanceRange(batch.r - lost, up(batch.r + lost, 2))
    shares = (
        weight * fifth_within(node.profile, center, batch.distance_range, q * rho[:, None])
        for q, weight in zip(PARTS, share_weights(PARTS), strict=True)
    )
    leftover = up(up(rho**5, POW_ULPS)[:, None] * sum(shares) / 120.0, 32)  # of degree 4, s apart
    beyond = up(node.variance * leftover, 2)
    return F, up(rounding + beyond, 2)


TENSOR_DEGREES = (1, 3, 4)
"""Up to which moments about 0 of `a s F_n` make the tensors, for n = 2, 3, 4."""


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def remainder_of_tensors(
    batch: RadialBatch, raw: list[list[Array]], total: PerCell, plain: PerCell
) -> TaylorRemainder:
    """From the moments of the points that go on; `total` (B,) is the remainder beside their
    tensors, `plain` that without any tensor."""
    node, half, rho = batch.node, batch.half, batch.rho
    cubic, quartic = _tensors(batch, raw)
    # what underflows: below 2^-1022 a product, of which each entry has fewer than 2^30
    reach = (1.0 + rho + node.largest_extent) ** 8
    rest = up(total + form_size(quartic, half, rho, 4) / 24.0 + TINY * reach, 8)
    absolute = entry_sum(cubic, half, 3)
    size = up(rest + form_size(cubic, half, rho, 3) / 6.0, 4)
    size = namespace(size).minimum(size, plain)
    absolute = up(absolute / 6.0, 1)
    rest = up(rest + gamma(8) * absolute, 2)  # of the tensor's change of coordinates
    xp, entries = namespace(size), sorted_index(node.scale.shape[0], 3).entries
    first, second, last = (node.scale[xp.asarray(p, device=size.device)] for p in entries.T)
    return TaylorRemainder(size, CubicPart(cubic * (first * second * last), rest, absolute))


def _tensors(batch: RadialBatch, raw: list[list[Array]]) -> tuple[Array, Array]:
    """T_3 (B, n3) and T_4 (B, n4) in scaled coordinates, from `a s F_n`, n = 2, 3, 4.

    `3 (g.d) |d|^2` is the tensor with entries `g_j [k = l] + g_k [j = l] + g_l [j = k]`, and
    likewise `6 (d^T H d) |d|^2` and `3 |d|^4`: see `pairings`.
    """
    xp = namespace(batch.r)
    moments, centers = batch.node.table, batch.centers
    f = centers.shape[1]
    low, middle, high = raw
    g = moments.centred(low, centers, 1)
    H = moments.centred(middle, centers, 2)
    cubic = moments.centred(middle, centers, 3)
    quartic = moments.centred(high, centers, 4)
    once, twice = (xp.asarray(m, device=g.device) for m in (pairings(f, 3), pairings(f, 4)))
    both = xp.asarray(double_pairings(f), device=g.device)
    return cubic - g @ once, quartic - H @ twice + low[0].T * both
