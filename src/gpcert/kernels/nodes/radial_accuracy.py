"""How well the jets of a radial kernel are known: from distances and profile to sizes and errors.

With F_n computed at r, `|r - true r| <= dr`, and coordinates of u off by `4 U extent` in norm,
`s F_0`, `-s F_1 S u` and `s S (F_2 u u^T - F_1) S` are off by the relative error of each F_n times
its part, by what the coordinates' errors change, and by what sums over points round when moments
are shifted to a centre (`gpcert.kernels.nodes.moments`): there terms are as large as
`F_n extent^n`, whatever r is.

Proofs: docs/mathematics.md, statements 16.5 and 16.7.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from gpcert.arrays import Array, PerCellAndPoint, Reals, namespace
from gpcert.kernels.nodes.base import Triple
from gpcert.kernels.nodes.radial_profiles import RadialProfile
from gpcert.rounding import TINY, U, gamma, nonnegative, up

if TYPE_CHECKING:
    from gpcert.kernels.nodes.radial import LocalRadial

SMALLEST_SCALE = 1e-100
"""Scales below this count as this much in bounds: their squares must not vanish."""

SMALL_CHANGE = 0.1
"""`e^x - 1 <= 1.06 x` for x up to here."""

COORDINATE = 4.0 * U
"""Errors of scaled coordinates, three roundings, and of differences, relative to extents."""

LARGEST_SHIFT = 1e-8
"""Up to here the square of a coordinate's error is below the unit roundoff."""


class Accuracy(NamedTuple):
    """`sizes`, `errors` of a `NodeBatch`, and F_1, F_2 (B, N) as they may be used."""

    sizes: Triple
    errors: Triple
    first: Array
    second: Array


def relative_errors(profile: RadialProfile, n: int, r: Reals, error: Reals) -> Reals:
    """`|fl(F_n(r)) - F_n(r')| <= this * fl(F_n(r))` for `|r - r'| <= error`; may be infinite."""
    return errors_between(profile, n, (r, r), error)


def errors_between(
    profile: RadialProfile, n: int, ends: tuple[Reals, Reals], error: Reals
) -> Reals:
    """The same for every r between two ends.

    Reason: log F_n changes by at most `steepness * error`, then the evaluation's own rounding. Far
    out both are below TINY, and 0 is returned.
    """
    xp = namespace(error)
    low, high = nonnegative(ends[0] - 1.0001 * error), ends[1] + 1.0001 * error
    slope = profile.steepness(n, low, high)
    change = xp.where(error == 0, xp.zeros_like(low), slope) * error
    known = xp.where(change <= SMALL_CHANGE, change, xp.zeros_like(change))
    found = 1.1 * known + (1.1 * U) * profile.roundings(ends[1])
    found = xp.where(change <= SMALL_CHANGE, found, xp.full_like(found, math.inf))
    return xp.where(low > profile.negligible, xp.zeros_like(found), found)


def uniform_error(
    node: LocalRadial, farthest: Annotated[Array, "n 1"]
) -> Annotated[Array, "n 1"] | None:
    """One relative error of F_0, F_1, F_2 at all distances up to these; None where none is small.

    It increases with r and the extents.
    """
    xp = namespace(farthest)
    if node.expanded or node.largest_extent > LARGEST_SHIFT / COORDINATE:
        return None
    shift = COORDINATE * node.largest_extent + xp.zeros_like(farthest)
    relative = node.profile.uniform_error(farthest, gamma(node.roundings), shift)
    return relative if relative is not None and bool(xp.all(relative <= SMALL_CHANGE)) else None


def regular_accuracy(
    node: LocalRadial, r: Reals, extents: Reals, factors: tuple[Reals, Reals, Reals]
) -> Accuracy:
    """The errors where all is regular (`uniform_error`), for points of these extents.

    The same bounds as those of `radial_accuracy` in a third of its passes; factors such as 1.5
    make room for terms of second order, `relative` and `shift / r` being at most 0.1. All of them
    increase with r, the extents and the factors.
    """
    xp = namespace(r)
    shift = COORDINATE * extents
    relative = node.profile.uniform_error(r, gamma(node.roundings), shift)
    assert relative is not None, "of a regular profile"
    value, first, second = factors
    summed = node.sum_roundings * extents
    loose = relative + 9.0 * U
    spread = r * loose
    error1 = first * (spread + (1.5 * shift + summed))
    rank_one = (spread + 3.0 * shift) * r + (2.0 * shift**2 + summed * extents)
    error2 = first * loose + second * rank_one
    size1 = first * (r + shift)
    size2 = xp.maximum(first, second * (r * r + 20.0 * shift**2))
    sizes, errors = (value, size1, size2), (value * relative, error1, error2)
    return _in_frame(node, extents, (1.5, 1.05), (sizes, errors), (first, second))


def regular_values(
    node: LocalRadial, r: PerCellAndPoint, value: PerCellAndPoint
) -> tuple[PerCellAndPoint, PerCellAndPoint]:
    """Sizes and errors of `s F_0` alone, as `regular_accuracy` has them."""
    relative = node.profile.uniform_error(r, gamma(node.roundings), COORDINATE * node.extents)
    assert relative is not None, "of a regular profile"
    floor = TINY * max(1.0, node.variance)
    return 1.5 * value + floor, (1.05 * relative) * value + floor


@np.errstate(over="ignore", invalid="ignore")
def radial_accuracy(
    node: LocalRadial,
    r: PerCellAndPoint,
    distance_error: PerCellAndPoint,
    factors: tuple[Array, Array, Array],
) -> Accuracy:
    """The errors in general, near points of kernels with an infinite F_1(0) or F_2(0) too.

    Where F_1 is not known to a part in ten, 0 stands for it, with its whole size as error. The
    same for `F_2 u u^T` where the roundings of the moments would exceed its size, `F_2 r^2 =
    F_1 w_1`. Gradients of a kernel without F_1(0) do not exist where r may be 0.
    """
    xp = namespace(r)
    profile, E = node.profile, node.extents
    value, first, second = factors
    relative = [relative_errors(profile, n, r, distance_error) for n in range(3)]
    high, zero = up(r + distance_error, 2), xp.zeros_like(r)
    moved, summed = COORDINATE * E, node.sum_roundings * E

    known = xp.isfinite(relative[0])
    error0 = xp.where(known, xp.where(known, relative[0], zero) * value, 1.0 + zero)

    known = xp.isfinite(relative[1]) & xp.isfinite(first)
    first, loose = xp.where(known, first, zero), xp.where(known, relative[1], zero)
    most = (1.0 + loose) * first
    steepest = profile.steepness(0, zero, high)  # F_1 r = F_0 w_0 / r
    if not math.isfinite(profile.at_zero[1]):
        steepest = xp.where(r > 1.01 * distance_error, steepest, xp.full_like(r, math.inf))
    error1 = loose * first * high + most * (moved + COORDINATE * high) + first * summed
    error1, size1 = xp.where(known, error1, steepest), xp.where(known, most * high, steepest)
    flat = xp.where(known, (loose + 8.0 * U) * first, xp.full_like(r, profile.at_zero[1]))
    most = xp.where(known, most, xp.full_like(r, profile.at_zero[1]))

    growth = up(profile.growth(1, high), 64)
    whole = most * growth  # F_2 r^2
    known = xp.isfinite(relative[2]) & xp.isfinite(second)
    second, loose = xp.where(known, second, zero), xp.where(known, relative[2], zero)
    drift = (loose * high + 2.0 * (1.0 + loose) * (moved + COORDINATE * high)) * high
    kept = second * (drift + (1.0 + loose) * moved**2 + summed * E)
    keep = known & (kept <= whole)  # not where kept is 0 times infinity
    error2 = flat + xp.where(keep, kept, whole)
    error2 = xp.where(xp.isnan(error2), xp.full_like(error2, math.inf), error2)
    size2 = most * xp.maximum(xp.ones_like(growth), growth - 1.0)
    sizes, errors = (value + error0, size1, size2), (error0, error1, error2)
    second = xp.where(keep, second, zero)
    return _in_frame(node, E, (1.01, 1.01), (sizes, errors), (first, second))


def _in_frame(
    node: LocalRadial,
    extents: Array,
    room: tuple[float, float],
    parts: tuple[Triple, Triple],
    factors: tuple[Array, Array],
) -> Accuracy:
    """Into frame coordinates, with room for roundings, and floors for what underflows."""
    s, w, reach = node.variance, max(node.widest, SMALLEST_SCALE), 1.0 + extents
    floor = TINY * max(1.0, s)
    floors = (floor, floor * w * reach + TINY, floor * w * w * reach**2 + TINY)
    found = []
    for factor, triple in zip(room, parts, strict=True):
        zeroth, first, second = (
            (factor * s * scale) * part + least
            for scale, part, least in zip((1.0, w, w * w), triple, floors, strict=True)
        )
        found.append((zeroth, first, second))
    return Accuracy(found[0], found[1], factors[0], factors[1])
