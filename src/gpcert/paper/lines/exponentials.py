"""The best lines under and over `factor e^t` on an interval.

Proofs: docs/mathematics.md, statement 12.1.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gpcert.numerics.arrays import Array, Reals, namespace
from gpcert.numerics.rounding import ASIN_LOG_ULPS, EXP_ULPS, TINY, U, down, gamma, up

EXP_OVERFLOW = 700.0
"""exp overflows beyond 709.78."""


class Lines(NamedTuple):
    """`slope_under t + intercept_under <= factor e^t <= slope_over t + intercept_over`."""

    slope_under: Array
    intercept_under: Array
    slope_over: Array
    intercept_over: Array


@np.errstate(over="ignore")
def exponential_lines(factor: float, low: Reals, high: Reals) -> Lines:
    """The best lines of `factor e^t`, factor > 0, for arrays low <= high of one shape: the tangent
    at the midpoint, and the chord.

    Whatever slopes b are taken, their intercepts are certified: `e^t - b t` is least at an end or
    at `t = log b`, greatest at an end. On an interval that is unbounded, or where e^t may
    overflow, nothing is known from above, and 0 from below. The float `factor * slope` differs from
    the product by U of it, and by TINY where it underflows: it costs the intercept at most that
    times `max |t|`.

    >>> lines = exponential_lines(1.0, np.asarray([-1.0]), np.asarray([1.0]))
    >>> [round(float(x[0]), 6) + 0.0 for x in lines]  # tangent at 0; slope sinh 1, at 0 cosh 1
    [1.0, 1.0, 1.175201, 1.543081]
    """
    xp = namespace(low)
    bounded = xp.isfinite(low) & xp.isfinite(high)
    zero = xp.zeros_like(low)
    start, end = xp.where(bounded, low, zero), xp.where(bounded, high, zero)
    middle = 0.5 * (start + end)
    tangent, width = _exp(middle), end - start
    chord = (_exp(end) - _exp(start)) / xp.where(width > 0, width, 1.0 + zero)
    over, other = _greatest(chord, start, end), _greatest(tangent, start, end)
    flatter = other + tangent * middle < over + chord * middle  # by rounding, on tiny intervals
    sides = (
        (tangent, _least(tangent, start, end), 0.0),
        (xp.where(flatter, tangent, chord), xp.where(flatter, other, over), math.inf),
    )
    furthest = xp.maximum(xp.abs(low), xp.abs(high))
    lines = []
    for b, a, nothing in sides:
        usable = bounded & xp.isfinite(b) & xp.isfinite(a)
        taken = xp.where(usable, b, zero)
        slope = factor * taken
        intercept = factor * xp.where(usable, a, zero + nothing)
        # of a slope that is exactly 0 nothing is lost, however long the interval
        moved = (2.0 * U * xp.abs(slope) + TINY) * xp.where(taken == 0, zero, furthest)
        outward = down if nothing == 0.0 else up
        moved = -moved if nothing == 0.0 else moved
        lines += [slope, outward(outward(intercept, 2) + moved, 1)]
    return Lines(*lines)


def _exp(t: Array) -> Array:
    """The argument kept below overflow."""
    xp = namespace(t)
    return xp.exp(xp.minimum(t, xp.full_like(t, EXP_OVERFLOW)))


def _at(slope: Array, t: Array) -> tuple[Array, Array]:
    """`e^t - slope t`, the exponent capped, and its error."""
    xp = namespace(t)
    value = _exp(t)
    size = value + 2.0 * xp.abs(slope * t)
    return value - slope * t, gamma(EXP_ULPS + 4) * size + TINY


def _least(slope: Array, low: Array, high: Array) -> Array:
    """Certified lower bound of `min e^t - slope t` over [low, high], slope >= 0.

    At an end, where a capped value is a lower bound too, or `slope (1 - log slope)`: that is the
    minimum over the whole line, so it is a bound wherever it is used.
    """
    xp = namespace(low)
    (first, e), (last, h) = _at(slope, low), _at(slope, high)
    positive = slope > 0
    safe = xp.where(positive, slope, xp.ones_like(slope))
    place = xp.log(safe)
    within = safe * (1.0 - place)
    within = within - gamma(ASIN_LOG_ULPS + 8) * (safe * (1.0 + xp.abs(place))) - TINY
    slack = (32.0 * U) * (1.0 + xp.abs(low) + xp.abs(high))
    inside = positive & (place > low - slack) & (place < high + slack)
    ends = xp.minimum(first - e, last - h)
    return xp.minimum(ends, xp.where(inside, within, xp.full_like(within, math.inf)))


def _greatest(slope: Array, low: Array, high: Array) -> Array:
    """Certified upper bound of `max e^t - slope t` over [low, high]: convex, so at an end."""
    xp = namespace(low)
    (first, e), (last, h) = _at(slope, low), _at(slope, high)
    most = xp.maximum(first + e, last + h)
    return xp.where(high > EXP_OVERFLOW, xp.full_like(most, math.inf), most)
