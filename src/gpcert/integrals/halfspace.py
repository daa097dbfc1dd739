"""The volume of the part of a box on one side of a plane, bounded from below.

Proofs: docs/mathematics.md, statement 21.1.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Annotated

import numpy as np

from gpcert.numerics.arrays import PerRow, Rows
from gpcert.numerics.rounding import POW_ULPS, TINY, U, down, up

STEEPEST = 5
"""Axes, the steepest ones, whose slopes count: the formula has a term for each corner, and the
others have little to give."""

FLATTEST = 2.0**-20
"""Slopes below this part of the steepest one do not count."""


def share_above(least: PerRow, rise: Rows) -> PerRow:
    """A lower bound (n,) of the share of the unit cube where `least + rise.u > 0`; rise (n, f) is
    not negative.

    Statement: axes may be left out, as `rise_j u_j >= 0`. Of the m steepest ones, b = rise / max,
    `t = -least / max`, the share where `b.u <= t` is `sum over S of (-1)^|S| (t - b_S)_+^m` over
    `m! prod b`, b_S the sum over a set S of axes (inclusion and exclusion over the corners). Where
    t is beyond half the sum of b, the cube is turned about its middle.
    """
    n, f = rise.shape
    steepest = rise.max(axis=1, initial=0.0)
    usable = (steepest > TINY) & (steepest < math.inf) & (least <= 0) & (least > -math.inf)
    scale = np.where(usable, steepest, 1.0)
    rise, start = np.where(usable[:, None], rise, 0.0), np.where(usable, least, 0.0)
    with np.errstate(over="ignore"):
        t = up(-start / scale, 1)
        slopes = down(rise / scale[:, None], 1)
    slopes = -np.sort(-np.maximum(slopes, 0.0), axis=1)[:, : min(f, STEEPEST)]
    best = np.zeros(n)
    for m in range(1, slopes.shape[1] + 1):
        rows = np.flatnonzero(usable & (slopes[:, m - 1] > FLATTEST))
        if len(rows):
            best[rows] = np.maximum(best[rows], _share(t[rows], slopes[rows, :m]))
    return np.where(least > 0, 1.0, best)


def _share(t: PerRow, b: Annotated[np.ndarray, "n m"]) -> PerRow:
    """A lower bound of the share of the cube where `b.u > t`, for t > 0 and all b > FLATTEST."""
    whole = down(b.sum(axis=1), b.shape[1])
    low = 2.0 * t <= whole
    rest = np.maximum(down(whole - np.where(t < whole, t, whole), 1), 0.0)
    volume, error = _corner_sum(np.where(low, t, rest), b)
    share = np.where(low, down(1.0 - up(volume + error, 2), 1), down(volume - error, 2))
    return np.clip(share, 0.0, 1.0)


def _corner_sum(t: PerRow, b: Annotated[np.ndarray, "n m"]) -> tuple[np.ndarray, np.ndarray]:
    """The share of the cube where `b.u <= t`, t >= 0, and a bound of its error.

    Reason: a term has `0 <= t - b_S <= t`, formed with m roundings of numbers up to 2 t, and a
    power; 2^m of them are added, and divided with m + 2 roundings.
    """
    m = b.shape[1]
    total = np.zeros_like(t)
    for corner in product((0.0, 1.0), repeat=m):
        chosen = np.array(corner)
        reach = np.maximum(t - b @ chosen, 0.0)
        total += (1.0 - 2.0 * (chosen.sum() % 2)) * reach**m
    divisor = math.factorial(m) * np.prod(b, axis=1)
    largest = up(t**m / divisor, 4 * m + POW_ULPS)
    terms = 2.0**m
    roundings = 2.0 * m * (m + 1.0) + POW_ULPS + terms + m + 8.0
    error = up(terms * largest * (2.0 * roundings * U), 4) + TINY
    return total / divisor, error
