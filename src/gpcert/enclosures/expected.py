"""Means over cells of functions that quadratics enclose, and of the normal distribution function of
a mean in its own standard deviations.

Proofs: docs/mathematics.md, statements 22.8 and 22.9.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpcert.enclosures.crossing import (
    REACH,
    Bounds,
    NormalEnds,
    Polynomial,
    Quadratic,
    Surface,
    negative_shares,
    side_at_level,
    size_of,
    surface_shares,
)
from gpcert.enclosures.lower_model import plain_geometry
from gpcert.enclosures.mean import TwoSided
from gpcert.enclosures.variance import VarianceEnclosure
from gpcert.integrals.families import Normal
from gpcert.integrals.input_law import InputLaw, Marginal, Moments
from gpcert.integrals.special import normal_cdf_bounds, score
from gpcert.numerics.arrays import PerCell, PerCellAndFeature, to_numpy
from gpcert.numerics.rounding import down, gamma, up
from gpcert.regions import Cells

SMALL = 0.5
"""The variance may change by this part of itself on a cell that is looked at."""


@np.errstate(over="ignore", invalid="ignore")
def plain_polynomial(both: TwoSided, cells: Cells, sign: int, level: float = 0.0) -> Polynomial:
    """Of `sign y - level` itself, without a weight, in the output's units."""
    plain = both.plain(plain_geometry(cells))
    factor = float(plain.units.factor)
    value, gradient, hessian, below = side_at_level(
        plain.side(sign), plain.units.signed(sign), level
    )
    v, g, h, above = side_at_level(plain.side(-sign), plain.units.signed(-sign), -level)
    half = to_numpy(cells.half)
    apart = abs(value + v) + size_of(gradient + g, hessian + h, half)
    size = abs(value) + size_of(gradient, hessian, half)
    count = 4 * half.shape[1] ** 2 + 16
    rounding = gamma(8) * size
    below, above = up(below + rounding, 4), up(above + apart + rounding, count)
    scaled = (factor * value, factor * gradient, factor * hessian)
    return Polynomial(*scaled, up(factor * below, 2), up(factor * above, 2), half)


@np.errstate(over="ignore", invalid="ignore")
def mean_over_cells(p: Polynomial, moments: Moments) -> Bounds:
    """Bounds of the function's mean, given the cell: infinite where nothing is known."""
    zero = np.zeros_like(p.value)
    (low, high), _ = Quadratic(p.value, p.gradient, p.hessian, moments).about(zero)
    low, high = down(low - p.below, 2), up(high + p.above, 2)
    return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)


def variance_polynomial(variance: VarianceEnclosure, cells: Cells) -> Polynomial:
    """Of the variance in the output's units: `max(v, 0)` is at most `v + dip`."""
    p = plain_polynomial(variance, cells, 1)
    lost = up(float(variance.units.factor) * variance.dip, 2)
    return p._replace(above=up(p.above + lost, 1))


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _scores(f: Polynomial, v: Polynomial) -> Surface:
    """`-f / sqrt(v)` as a quadratic (Statement 22.9)."""
    middle, half = v.value, f.half
    line, bend = v.gradient / middle[:, None], v.hessian / middle[:, None, None]
    error_v = np.maximum(v.below, v.above) / middle
    lines, bends = np.sum(abs(line) * half, axis=1), size_of(0.0 * line, bend, half)
    reach = up(lines + bends + error_v, 4 * half.shape[1] ** 2 + 16)
    slopes, curves = np.sum(abs(f.gradient) * half, axis=1), size_of(0.0 * line, f.hessian, half)
    error_f = np.maximum(f.below, f.above)
    size = abs(f.value) + slopes + curves
    outer = f.gradient[:, :, None] * line[:, None, :]
    quadratic = f.hessian - (0.5 * f.value)[:, None, None] * bend
    quadratic = quadratic - 0.5 * (outer + np.swapaxes(outer, 1, 2))
    linear = f.gradient - (0.5 * f.value)[:, None] * line
    third = 0.5 * (slopes * bends + curves * (lines + bends))
    tail = 0.375 * reach**2 / (1.0 - reach) ** 2.5 * (size + error_f)
    lost = error_f * (1.0 + 0.5 * reach) + 0.5 * size * error_v + third + tail
    lost = up(lost + gamma(64) * size * (1.0 + reach), 4 * half.shape[1] ** 2 + 64)
    root = 1.0 / np.sqrt(middle)
    known = (middle > 0) & (reach < SMALL) & np.isfinite(lost) & np.isfinite(root)
    count = len(middle)
    error = up(root * lost, 4)
    return Surface(
        np.zeros(count, dtype=int),
        np.ones(count),
        -root * f.value,
        -root[:, None] * linear,
        -root[:, None, None] * quadratic,
        error,
        error,
        known,
    )


class Cell(NamedTuple):
    """What `predicted_shares` knows of the cells beside the functions."""

    law: InputLaw
    low: PerCellAndFeature
    high: PerCellAndFeature
    moments: Moments
    scores: PerCellAndFeature


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def predicted_shares(
    f: Polynomial,
    v: Polynomial,
    ends: tuple[PerCell, PerCell, PerCell, PerCell],
    cell: Cell,
) -> tuple[PerCell, PerCell, PerCellAndFeature]:
    """Bounds of `E Phi(-f / sqrt(v))`, given the cell, and what halving each axis may gain; `ends`
    are those of f and of v on the cell.

    It is the probability of `f + sqrt(v) N < 0` for a normal N of its own: where f changes little
    in standard deviations N is the steepest input, elsewhere one of the others.
    """
    count = len(f.value)
    normal = NormalEnds(np.zeros(count), np.full(count, REACH))
    share = surface_shares(_scores(f, v), normal, normal, cell.moments, cell.scores)
    steep = _steep_shares(f, ends[2:], cell)
    better = ~(share[1] - share[0] <= steep[1] - steep[0])
    gains = np.where(better[:, None], steep[2], share[2])
    lower, upper = np.maximum(share[0], steep[0]), np.minimum(share[1], steep[1])
    least, most, v_low, v_high = ends
    low = np.minimum(score(-most, v_low)[0], score(-most, v_high)[0])
    high = np.maximum(score(-least, v_low)[1], score(-least, v_high)[1])
    return (
        np.maximum(lower, normal_cdf_bounds(low)[0]),
        np.minimum(upper, normal_cdf_bounds(high)[1]),
        gains,
    )


WIDE, BEYOND = 6.0, 2e-9
"""Standard deviations of N that count as its interval, and more than the probability of others."""


def _steep_shares(
    f: Polynomial, v: Bounds, cell: Cell
) -> tuple[PerCell, PerCell, PerCellAndFeature]:
    """The same with N as one of the inputs, within `WIDE`: `sqrt(v) N` is its middle value times N,
    up to half its range times `WIDE`. Given |N| <= 6, `E N^2` is between 1 - 1e-7 and 1."""
    count, m = len(f.value), cell.moments
    first, last = (up(np.sqrt(end), 1) for end in v)
    first = down(first, 2)
    middle = 0.5 * (first + last)
    lost = up(WIDE * np.maximum(last - middle, middle - first), 4)

    def wider(array: PerCellAndFeature, value: float | PerCell) -> np.ndarray:
        return np.concatenate([array, np.broadcast_to(value, count)[:, None]], axis=1)

    hessian = np.pad(f.hessian, ((0, 0), (0, 1), (0, 1)))
    below, above = up(f.below + lost, 1), up(f.above + lost, 1)
    whole = Polynomial(
        f.value, wider(f.gradient, middle), hessian, below, above, wider(f.half, WIDE)
    )
    law = InputLaw((*cell.law.marginals, Marginal(Normal())))
    more = (0.0, WIDE, 0.0, 0.0, 1.0 - 5e-8, 6e-8)
    moments = Moments(*(wider(each, value) for each, value in zip(m, more, strict=True)))
    ends = wider(cell.low, -WIDE), wider(cell.high, WIDE)
    lower, upper, gains = negative_shares(whole, law, *ends, moments, wider(cell.scores, 0.0))
    return down((1.0 - BEYOND) * lower, 2), up(upper + BEYOND, 1), gains[:, :-1]
