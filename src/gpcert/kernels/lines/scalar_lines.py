"""The best lines under and over a scalar function on an interval, and the paper's own.

    slope_under t + intercept_under <= psi(t) <= slope_over t + intercept_over,  low <= t <= high.

*Best*: of all lines under psi the one with the largest value at the midpoint, which is the tangent
(or the chord) of the convex envelope there. Whatever slope is found, its intercept is certified by
`ScalarFunction.least`, so the search for the slope need not be trusted.

Proofs: docs/mathematics.md, statements 12.1 and 12.10.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gpcert.arrays import Array, namespace
from gpcert.kernels.lines.scalar_functions import ScalarFunction
from gpcert.rounding import U, down, up

__all__ = ["Lines", "best_lines", "paper_lines", "scaled_lines"]

MOST_STEPS = 40
"""Chord steps of the search: each halves an interval around the midpoint, or ends it."""

CLOSE_ENOUGH = 2.0**-40
"""Gap at the midpoint, relative to that of the first try, at which the search ends."""

MOST_PIECES = 64
"""Convex or concave pieces that the paper's construction goes through; beyond, a constant."""

Chooser = Callable[[ScalarFunction, Array, Array], tuple[Array, Array]]
"""Slope and certified intercept of a line under psi over [low, high]."""


class Lines(NamedTuple):
    """A line under and a line over psi; see the module."""

    slope_under: Array
    intercept_under: Array
    slope_over: Array
    intercept_over: Array


def best_lines(function: ScalarFunction, low: Array, high: Array) -> Lines:
    """The best lines on each interval; see the module. Arrays of any one shape, low <= high.

    >>> import numpy as np
    >>> from gpcert.kernels.lines.scalar_functions import CosineFunction
    >>> lines = best_lines(CosineFunction(), np.asarray([0.0]), np.asarray([1000.0]))
    >>> [round(float(x[0]), 9) + 0.0 for x in lines]
    [0.0, -1.0, 0.0, 1.0]
    """
    under = _line_under(_best_slope, function, low, high)
    over = _line_under(_best_slope, function.negated(), low, high)
    return Lines(*under, -over[0], -over[1])


def paper_lines(function: ScalarFunction, low: Array, high: Array) -> Lines:
    """The paper's lines (Lemma LBF/UBF, Cases 1 to 4): tangent at the midpoint where psi is convex,
    chord where it is concave, joined two pieces at a time from the left.

    Reference: Patane et al., proof of Proposition 1, with Case 2 as Statement 12.10 corrects it.
    Intercepts are the construction's, lowered where rounding asks for it.
    """
    under = _line_under(_paper_slope, function, low, high)
    over = _line_under(_paper_slope, function.negated(), low, high)
    return Lines(*under, -over[0], -over[1])


def scaled_lines(lines: Lines, factor: Array, low: Array, high: Array) -> Lines:
    """Lines of `factor psi`, for factors of any sign: a negative one exchanges the two.

    The float `factor * slope` differs from the product by U of it, which costs the intercept at
    most that times `max |t|`.
    """
    xp = namespace(low)
    furthest = xp.maximum(xp.abs(low), xp.abs(high))
    factor = xp.zeros_like(low) + factor
    positive = factor >= 0
    found = []
    for side, outward in ((0, down), (2, up)):
        slope = factor * xp.where(positive, lines[side], lines[2 - side])
        intercept = _product(factor, xp.where(positive, lines[side + 1], lines[3 - side]))
        moved = 2.0 * U * xp.abs(slope) * xp.where(slope == 0, xp.zeros_like(low), furthest)
        found += [slope, outward(outward(intercept, 2) + (moved if side else -moved), 1)]
    return Lines(*found)


def _product(factor: Array, intercept: Array) -> Array:
    """`factor * intercept`; a factor of 0 makes the function 0, also where nothing was known."""
    xp = namespace(factor)
    zero = factor == 0
    return xp.where(
        zero, xp.zeros_like(factor), factor * xp.where(zero, 1.0 + xp.zeros_like(factor), intercept)
    )


def _line_under(
    choose: Chooser, function: ScalarFunction, low: Array, high: Array
) -> tuple[Array, Array]:
    """A certified line under psi; on an unbounded interval the constant `infimum`."""
    xp = namespace(low)
    usable = xp.isfinite(low) & xp.isfinite(high)
    a = xp.where(usable, low, xp.zeros_like(low))
    b = xp.where(usable, high, xp.zeros_like(high))
    slope, intercept = choose(function, a, b)
    usable = usable & xp.isfinite(slope) & xp.isfinite(intercept)
    floor = xp.full_like(low, function.infimum)
    return xp.where(usable, slope, xp.zeros_like(slope)), xp.where(usable, intercept, floor)


def _best_slope(function: ScalarFunction, low: Array, high: Array) -> tuple[Array, Array]:
    """Slope and certified intercept of the best line under psi.

    Two points `left <= m <= right` of the envelope; the chord through them lies over the envelope
    at m, the line of its slope under psi lies below, and the point where the latter touches
    replaces one of the two. Where both agree (a chord or a bitangent) or the points meet (a
    tangent) the line is the best one. The tangent at m is tried first: for a convex psi it is it.
    """
    xp = namespace(low)
    shape = low.shape
    low, high = xp.reshape(low, (-1,)), xp.reshape(high, (-1,))
    middle = 0.5 * (low + high)
    left, right = low, high
    at_left, at_right = function.value(left), function.value(right)
    slope = function.derivative(middle)
    intercept, _ = function.least(slope, low, high)
    best = intercept + slope * middle
    ceiling = xp.minimum(function.value(middle), _chord(left, right, at_left, at_right, middle)[1])
    start = xp.abs(ceiling - best)
    todo = start > CLOSE_ENOUGH * xp.abs(ceiling)
    for _ in range(MOST_STEPS):
        if not bool(xp.any(todo)):
            break
        m, x, y, fx, fy = (v[todo] for v in (middle, left, right, at_left, at_right))
        tried, above = _chord(x, y, fx, fy, m)
        bound, place = function.least(tried, low[todo], high[todo])
        place = xp.minimum(xp.maximum(place, x), y)
        found, before = bound + tried * m, best[todo]
        better = found > before
        slope[todo] = xp.where(better, tried, slope[todo])
        intercept[todo] = xp.where(better, bound, intercept[todo])
        best[todo] = xp.where(better, found, before)
        value = function.value(place)
        goes_left = place <= m
        left = _put(left, todo, xp.where(goes_left, place, x))
        at_left = _put(at_left, todo, xp.where(goes_left, value, fx))
        right = _put(right, todo, xp.where(goes_left, y, place))
        at_right = _put(at_right, todo, xp.where(goes_left, fy, value))
        stuck = (place <= x) | (
            place >= y
        )  # touches at a point already known: chord of the envelope
        gap = above - best[todo]
        settled = (gap <= CLOSE_ENOUGH * start[todo]) | stuck | ~xp.isfinite(gap)
        todo = _put(todo, todo, ~settled)
    return xp.reshape(slope, shape), xp.reshape(intercept, shape)


def _put(array: Array, mask: Array, values: Array) -> Array:
    """`array` with `array[mask] = values`; a copy."""
    copy = namespace(array).asarray(array, copy=True)
    copy[mask] = values
    return copy


def _chord(
    left: Array, right: Array, at_left: Array, at_right: Array, m: Array
) -> tuple[Array, Array]:
    """Slope of the chord, and its value at m; slope 0 where the two points coincide."""
    xp = namespace(left)
    width = right - left
    apart = width > 0
    slope = (at_right - at_left) / xp.where(apart, width, xp.ones_like(width))
    slope = xp.where(apart, slope, xp.zeros_like(slope))
    return slope, at_left + slope * (m - left)


def _paper_slope(function: ScalarFunction, low: Array, high: Array) -> tuple[Array, Array]:
    """Slope and intercept of the paper's line under psi, the intercept certified."""
    xp = namespace(low)
    start, end = low, xp.minimum(function.next_flex(low), high)
    slope, intercept = _piece(function, start, end)
    for _ in range(MOST_PIECES):
        if not bool(xp.any(end < high)):
            break
        further = end < high
        start, end = end, xp.minimum(function.next_flex(end), high)
        new = _piece(function, start, end)
        joined = _join((slope, intercept), new, (low, start, end))
        slope = xp.where(further, joined[0], slope)
        intercept = xp.where(further, joined[1], intercept)
    unfinished = end < high
    slope = xp.where(unfinished, xp.zeros_like(slope), slope)
    intercept = xp.where(unfinished, xp.full_like(intercept, function.infimum), intercept)
    certified, _ = function.least(slope, low, high)
    return slope, xp.minimum(intercept, certified)


def _piece(function: ScalarFunction, low: Array, high: Array) -> tuple[Array, Array]:
    """Cases 1 and 2: the chord of a concave piece, the tangent of a convex one at its midpoint."""
    xp = namespace(low)
    middle = 0.5 * (low + high)
    chord, _ = _chord(low, high, function.value(low), function.value(high), middle)
    tangent = function.derivative(middle)
    convex = function.convex_at(middle) | (high <= low)
    slope = xp.where(convex, tangent, chord)
    at = xp.where(convex, middle, low)
    return slope, function.value(at) - slope * at


def _join(
    first: tuple[Array, Array], second: tuple[Array, Array], ends: tuple[Array, Array, Array]
) -> tuple[Array, Array]:
    """Case 3: a line under g' on [low, flex] and under g'' on [flex, high].

    One of the two where it is the smaller one on the other's interval; else the line through the
    smaller of their values at both ends, which by linearity is under both everywhere.
    """
    xp = namespace(ends[0])
    (b1, a1), (b2, a2) = first, second
    low, flex, high = ends
    l1, l2 = a1 + b1 * low, a2 + b2 * low
    f1, f2 = a1 + b1 * flex, a2 + b2 * flex
    h1, h2 = a1 + b1 * high, a2 + b2 * high
    at_low, at_high = xp.minimum(l1, l2), xp.minimum(h1, h2)
    slope, _ = _chord(low, high, at_low, at_high, low)
    intercept = at_low - slope * low
    take_second = (l2 <= l1) & (f2 <= f1)
    take_first = ~take_second & (h1 <= h2) & (f1 <= f2)
    slope = xp.where(take_second, b2, xp.where(take_first, b1, slope))
    intercept = xp.where(take_second, a2, xp.where(take_first, a1, intercept))
    return slope, intercept
