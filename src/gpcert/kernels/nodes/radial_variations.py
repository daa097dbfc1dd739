"""Derivatives of a radial kernel over points at distances [low, high].

Along a displacement of length rho, with tau the cosine between it and u, |tau| <= 1:

    |D k| = F_1 r |tau| rho,     D^2 k = (F_2 r^2 tau^2 - F_1) rho^2,
    D^3 k = (3 F_2 r tau - F_3 r^3 tau^3) rho^3.

What is increasing and decreasing follows from the growth w_n, see `radial_profiles`.

Proofs: docs/mathematics.md, statements 3.2, 3.6 and 3.7.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from gpcert.kernels.nodes.radial_profiles import PEAK_SLACK, RadialProfile
from gpcert.numerics.arrays import Array, PerCellAndPoint, Reals, namespace
from gpcert.numerics.rounding import POW_ULPS, TINY, U, nonnegative, up

if TYPE_CHECKING:
    pass

FAR = 1e100
"""Upper ends are cut here: no profile changes beyond by anything that a float could show."""

SLACK = 1e-9
"""Relative: above `PEAK_SLACK` and the roundings of `terms` and `growth`, at most 2e4 units U."""

PARTS = (0.25, 0.5, 1.0)
"""Of a displacement: the fifth derivative is bounded on each of these shares of it."""

PIECES = 4
"""Of [0, 1], for the Bernstein coefficients of a fifth derivative."""

CELLS = 2000
"""Intervals of r over which the largest third derivative of a profile is computed, once."""


class DistanceRange(NamedTuple):
    """(B, N) certified ends of the distances r of each cell from each point."""

    low: Array
    high: Array


def radial_variations(
    profile: RadialProfile,
    variance: float,
    distances: DistanceRange,
    rho: Array,
    orders: tuple[int, ...] = (0, 1, 2, 3),
) -> tuple[PerCellAndPoint, ...]:
    """S_n (B, N) of the orders n asked for, of `gpcert.kernels.nodes.NodeBatch.variations`."""
    xp = namespace(rho)
    low = distances.low
    high = xp.minimum(distances.high, xp.full_like(low, FAR))
    suprema = []
    for n in orders:
        if n == 0:
            suprema.append(up(variance * _inflated(profile.terms(low, (0, 0))[0]), 4))
            continue
        if n == 3:
            shape = xp.minimum(third(profile, low, high), xp.full_like(low, largest_third(profile)))
        else:
            shape = (first if n == 1 else _second)(profile, low, high)
        with np.errstate(over="ignore"):
            # `up` keeps the power positive: 0 times infinity is not a number
            size = up(variance * (up(rho**n, POW_ULPS)[:, None] * shape), 8)
        moving = rho[:, None] + 0.0 * low > 0  # without displacement there is no derivative
        suprema.append(xp.where(moving, size, xp.zeros_like(low)))
    return tuple(suprema)


def _inflated(value: Array) -> Array:
    """A positive term as an upper bound: its own rounding, and what a peak may be missed by."""
    return value * (1.0 + SLACK) + TINY


def _clamped(at: float, low: Array, high: Array) -> Array:
    """The point of [low, high] nearest to `at`."""
    xp = namespace(low)
    return xp.minimum(xp.maximum(xp.full_like(low, at), low), high)


def first(profile: RadialProfile, low: Reals, high: Reals) -> Reals:
    """Sup of F_1 r, which rises to w_1 = 1 and then falls."""
    at = _clamped(profile.peak(1, 1), low, high)
    return _inflated(profile.terms(at, (1, 1))[0])


def _second(profile: RadialProfile, low: Array, high: Array) -> Array:
    """Sup of `max(F_1, k'')`: F_1 falls, `k'' = F_2 r^2 - F_1 = F_1 (w_1 - 1)` peaks at w_2 = 3.

    For `k''' = F_2 r (3 - w_2)` changes its sign there and only there.
    """
    xp = namespace(low)
    flat = _inflated(profile.terms(low, (1, 0))[0])
    at = _clamped(profile.peak(2, 3), low, high)
    growth = profile.growth(1, at)
    excess = growth * (1.0 + SLACK) - (1.0 - 4.0 * U)
    slope = _inflated(profile.terms(at, (1, 0))[0])
    known = xp.isfinite(flat)  # then so is F_1 at the point above
    steep = xp.where(known, slope, xp.zeros_like(flat)) * nonnegative(excess)
    return xp.where(known, xp.maximum(flat, steep), flat)


def third(profile: RadialProfile, low: Reals, high: Reals) -> Reals:
    """Sup over r in [low, high] and |tau| <= 1 of `|A tau - C tau^3|`, A = 3 F_2 r, C = F_3 r^3.

    `C / A = w_2 / 3`. Where w_2 <= 1, the maximum over tau is A - C at tau = 1, where both rise;
    beyond, the larger of C - A = C (1 - 3 / w_2) and the inner maximum `2 F_2 r / sqrt(w_2)` at
    tau^2 = 1 / w_2, which falls (Statement 3.2).
    """
    xp = namespace(low)
    turn = profile.peak(2, 1)  # w_2 = 1
    zero = xp.zeros_like(low)
    (at_zero,) = profile.terms(np.zeros(1), (2, 1))  # infinite: no bounded third derivative there
    exists = low >= 0 if np.isfinite(at_zero[0]) else low > 0
    inner_low = xp.where(exists, low, xp.ones_like(low))

    rising = _rising_third(profile, inner_low, xp.maximum(high, inner_low)) if turn > 0 else zero
    rising = xp.where(low < turn, rising, zero)

    start = xp.maximum(inner_low, xp.full_like(low, turn))
    (inner,) = profile.terms(start, (2, 1))
    growth = profile.growth(2, start)
    inner = 2.0 * inner / xp.sqrt(xp.where(growth > 0, growth, xp.ones_like(growth)))
    end = xp.maximum(start, high)
    at = _clamped(profile.peak(3, 3), start, end)
    (outer,) = profile.terms(at, (3, 3))
    growth = profile.growth(2, end) * (1.0 + SLACK)
    outer = outer * nonnegative(1.0 - 3.0 / xp.where(growth > 3.0, growth, 3.0 + zero) + 8.0 * U)
    falling = xp.maximum(inner, outer) * (1.0 + SLACK)
    falling = xp.where(high >= turn * (1.0 - PEAK_SLACK), falling, zero)
    supremum = up(xp.maximum(rising, falling), 8)
    return xp.where(exists, supremum, xp.full_like(supremum, np.inf))


def _rising_third(profile: RadialProfile, low: Array, high: Array) -> Array:
    """`A - C <= A(high) - C(low)` up to the turn at w_2 = 1, where both still rise."""
    xp = namespace(low)
    turn = xp.full_like(low, profile.peak(2, 1))
    start, end = xp.minimum(low, turn), xp.minimum(high, turn)
    (A,), (C,) = profile.terms(end, (2, 1)), profile.terms(start, (3, 3))
    return nonnegative(3.0 * A * (1.0 + SLACK) - C * (1.0 - SLACK))


def share_weights(parts: tuple[float, ...]) -> list[float]:
    """`(1 - q_(j-1))^5 - (1 - q_j)^5` for parts q_j of a displacement, q_0 = 0, multiples of 1/8:
    exact numbers.

    Statement: with `M(q)` the supremum of the fifth derivative at distances within q rho of those
    of the centre, `rho^5 / 120` times `sum_j weight_j M(q_j)` bounds the remainder of degree 4.
    Reason: the remainder is the integral of `(1 - q)^4 / 24` times that derivative at c + q d, and
    most of the weight is near the centre.
    """
    left = [(1.0 - q) ** 5 for q in (0.0, *parts)]
    return [before - after for before, after in pairwise(left)]


def fifth_within(
    profile: RadialProfile, center: DistanceRange, distances: DistanceRange, moved: Array
) -> Annotated[Array, "... N"]:
    """Upper bounds of the fifth derivative at distances within `moved` of those of the centre, as
    far as the cell's distances reach."""
    xp = namespace(moved)
    # one rounding each of the sums, which are no larger than what is added to them
    low = xp.maximum(distances.low, center.low - up(moved, 4) - U * center.low)
    high = xp.minimum(distances.high, up(center.high + moved, 4))
    return _fifth_bounds(profile).over(low, xp.maximum(low, high))


@lru_cache(maxsize=64)
def _fifth_bounds(profile: RadialProfile) -> RangeMaximum:
    return RangeMaximum.of(lambda low, high: fifth(profile, low, high))


def fifth(profile: RadialProfile, low: Reals, high: Reals) -> Reals:
    """Sup over r in [low, high], a short interval, and |tau| <= 1 of the size of

        p(tau) = A tau^5 - B tau^3 + C tau,

    A = F_5 r^5, B = 10 F_4 r^3, C = 15 F_3 r; infinite where k has no bounded fifth derivative.

    p is odd, so tau >= 0 will do; on each piece of [0, 1] it lies between its Bernstein
    coefficients, which are monotone in A, -B and C, and these lie in intervals.
    """
    xp = namespace(low)
    high = xp.minimum(high, xp.full_like(low, FAR))
    pairs = ((5, 5), (4, 3), (3, 1))
    ends = zip(profile.terms(low, *pairs), profile.terms(high, *pairs), strict=True)
    ranges = []
    for factor, pair, (first, last) in zip((1.0, 10.0, 15.0), pairs, ends, strict=True):
        least, most = xp.minimum(first, last), xp.maximum(first, last)
        at = profile.peak(*pair)
        if at > 0:  # rises up to w_n = k and falls beyond
            top = float(profile.terms(np.full(1, at), pair)[0][0])
            most = xp.where((low < at) & (at < high), xp.full_like(most, top), most)
        ranges.append((factor * least * (1.0 - SLACK), factor * _inflated(most)))
    (A0, A1), (B0, B1), (C0, C1) = ranges
    known = xp.isfinite(A1) & xp.isfinite(B1) & xp.isfinite(C1)
    A0, A1, B0, B1, C0, C1 = (
        xp.where(known, part, xp.zeros_like(low)) for part in (A0, A1, B0, B1, C0, C1)
    )
    most, least = xp.zeros_like(low), xp.zeros_like(low)
    for a, b, c in _quintic_coefficients(PIECES):
        most = xp.maximum(most, a * A1 - b * B0 + c * C1)
        least = xp.minimum(least, a * A0 - b * B1 + c * C0)
    supremum = up(xp.maximum(most, -least) + (16.0 * U) * (A1 + B1 + C1), 8)
    return xp.where(known, supremum, xp.full_like(low, np.inf))


@lru_cache(maxsize=4)
def _quintic_coefficients(pieces: int) -> tuple[tuple[float, float, float], ...]:
    """Bernstein coefficients of tau^5, tau^3 and tau on equal pieces of [0, 1], one row each.

    Those of a piece [a, b] are the polar form at k times b and 5 - k times a: the elementary
    symmetric polynomial of degree i over binomial(5, i) for tau^i. All are in [0, 1].
    """
    rows = []
    for piece in range(pieces):
        a, b = piece / pieces, (piece + 1) / pieces
        for k in range(6):
            places = [b] * k + [a] * (5 - k)
            rows.append(
                tuple(
                    math.fsum(math.prod(chosen) for chosen in combinations(places, i))
                    / math.comb(5, i)
                    for i in (5, 3, 1)
                )
            )
    return tuple(row for row in dict.fromkeys(rows) if any(row))


@lru_cache(maxsize=64)
def largest_third(profile: RadialProfile) -> float:
    """Upper bound of `third` over all r: its maximum over intervals that cover [0, FAR]."""
    turn = profile.peak(3, 3) + 1.0 / np.sqrt(profile.growth(0, np.ones(1))[0])
    ends = np.concatenate([[0.0], np.linspace(0.0, 8.0 * turn, CELLS)[1:], [FAR]])
    return float(third(profile, ends[:-1], ends[1:]).max())


STEPS = 4096
"""Intervals that cover [0, infinity): equal steps of `r / (1 + r)`."""

LEVEL_OF = np.floor(np.log2(np.maximum(np.arange(STEPS + 1), 1))).astype(np.int64)
"""The largest l with `2^l <= length`."""


@dataclass(frozen=True, eq=False)
class RangeMaximum:
    """`over(low, high)` is at least the function's supremum over [low, high].

    Level l of the table holds, at i, the largest of the bounds of the intervals i, ..., i + 2^l - 1
    (a sparse table): two of them cover any range, so a query is two look-ups.

    >>> bounds = RangeMaximum.of(lambda low, high: np.exp(-low))
    >>> float(np.exp(-1.0)) <= float(bounds.over(np.asarray([1.0]), np.asarray([5.0]))[0]) < 0.3685
    True
    """

    table: np.ndarray
    """(levels * STEPS,) flat."""

    @staticmethod
    def of(bound: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> RangeMaximum:
        """From `bound(low, high)`, upper bounds of the function over the intervals of the grid."""
        steps = np.arange(STEPS + 1) / STEPS
        with np.errstate(divide="ignore"):
            ends = steps / (1.0 - steps)
        levels = [np.asarray(bound(ends[:-1], ends[1:]))]
        for level in range(LEVEL_OF[-1]):
            later = np.concatenate([levels[-1][2**level :], np.full(2**level, -np.inf)])
            levels.append(np.maximum(levels[-1], later))
        return RangeMaximum(np.concatenate(levels))

    def over(self, low: Reals, high: Reals) -> Reals:
        """Upper bounds over [low, high], 0 <= low <= high: the intervals that meet it, and one more
        on either side for the rounding of the interval's number."""
        xp = namespace(low)
        first, last = (self._number(at) for at in (low, high))
        first = xp.where(first > 0, first - 1, first)
        last = xp.where(last < STEPS - 1, last + 1, last)
        table = xp.asarray(self.table, device=low.device)
        level = xp.asarray(LEVEL_OF, device=low.device)[last - first + 1]
        row = level * STEPS
        ends = last + 1 - 2**level
        return xp.maximum(table[row + first], table[row + ends])

    def _number(self, at: Array) -> Array:
        """Which interval holds a point, in plain floating point: off by one at most."""
        xp = namespace(at)
        some = xp.minimum(at, xp.full_like(at, 1e15))
        number = xp.astype(xp.floor(STEPS * (some / (1.0 + some))), xp.int64)
        return xp.where(number < STEPS, number, xp.full_like(number, STEPS - 1))
