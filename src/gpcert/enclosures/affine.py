"""Affine functions that a mean, a variance, a standard deviation or a confidence bound lies above
on cells.

Proofs: docs/mathematics.md, statement 5.10.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.mean import TwoSided, Units
from gpcert.numerics.arrays import Array, PerCell, namespace
from gpcert.numerics.rounding import TINY, down, gamma, nonnegative, up
from gpcert.quantities import Band, Mean, OutputQuantity, Quantity, Std, Variance


@dataclass(frozen=True, eq=False)
class AffineBound:
    """`f(x) >= value + slope.(x - c)` for every real x of the cell with centre c; `value` (B,),
    `slope` (B, f), in the units of outputs and inputs."""

    value: Array
    slope: Array

    def or_constant(self, lower: PerCell) -> AffineBound:
        """The constant where that is larger in the middle, so on average, or where no finite line
        was found."""
        xp = namespace(lower)
        line = (self.value > lower) & xp.all(xp.isfinite(self.slope), axis=1)
        slope = xp.where(line[:, None], self.slope, xp.zeros_like(self.slope))
        return AffineBound(xp.where(line, self.value, lower), slope)


def has_affine(quantity: Quantity) -> bool:
    """Whether `least_affine` knows the quantity."""
    return type(quantity) in {Mean, Variance, Std, Band}


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # huge cells: nothing is known
def least_affine(evaluation: Evaluation, quantity: Quantity) -> AffineBound:
    """An affine function below the quantity (times its sign) on every cell."""
    assert isinstance(quantity, OutputQuantity), "asked for where it is known"
    if isinstance(quantity, Band):
        mean = least_affine(evaluation, Mean(quantity.output, quantity.sign))
        std = Std(quantity.output, -1 if quantity.beta > 0 else 1)
        return _sum(mean, abs(quantity.beta), least_affine(evaluation, std), evaluation)
    sign, (evaluation, output) = quantity.sign, evaluation.output(quantity.output)
    if isinstance(quantity, Mean):
        mean = evaluation.mean(output)
        return _least(mean, sign, mean.units.signed(sign))
    variance = evaluation.variance(output)
    units = variance.units.signed(sign)  # without the least value, which is not the line's
    line = _least(variance, sign, units)
    if sign < 0:  # max(v, 0) <= v + dip
        lost = up(variance.units.factor * variance.dip, 2)
        line = AffineBound(down(line.value - lost, 1), line.slope)
    if not isinstance(quantity, Std):
        return line
    low, high = variance.units.range(*variance.range)
    if sign > 0:
        return _above_chord(line, low, high, evaluation)
    return _below_tangent(line, low, high, evaluation)


def _least(both: TwoSided, sign: int, units: Units) -> AffineBound:
    """With the slope of the enclosure at the centre: `y - slope.(x - c)` is at least its minimum.

    `slope.(x - c)` is `factor b.d` in the enclosure's coordinates, b with four roundings (and what
    underflows, which meets |x - c| or |d|).
    """
    enclosure, geometry = both.side(sign), both.geometry
    xp = namespace(enclosure.value)
    slope = units.factor * geometry.unscaled_gradient(enclosure.gradient)
    b = (slope / units.factor) / geometry.inverse_length
    size = up(xp.sum(xp.abs(b) * geometry.half, axis=1), b.shape[1] + 4)
    tiny = TINY * xp.sum(geometry.cells.half + geometry.half, axis=1)
    lost = up(gamma(8) * size + tiny, 4)
    least = enclosure.tilted(-b, size, lost).minimum().lower
    return AffineBound(units.below(least), slope)


def _above_chord(line: AffineBound, low: Array, high: Array, evaluation: Evaluation) -> AffineBound:
    """Below `sqrt(V)`, from a line below V and `low <= V <= high`.

    For any k >= 0, `sqrt(V) - k V` is concave, so at least its smaller value at the two ends.
    """
    xp = namespace(low)
    first, last = (nonnegative(down(xp.sqrt(end), 1)) for end in (low, high))
    k = xp.where(xp.isfinite(high) & (first + last > 0), 1.0 / (first + last), 0.0 * low)
    k = xp.where(xp.isfinite(k), k, 0.0 * low)
    ends = [down(root - up(k * end, 1), 2) for root, end in ((first, low), (last, high))]
    rest = xp.where(k > 0, xp.minimum(*ends), first)
    return _multiple(line, k, rest, evaluation)


def _below_tangent(
    line: AffineBound, low: Array, high: Array, evaluation: Evaluation
) -> AffineBound:
    """Below `-sqrt(V)`, from a line below -V: `sqrt(V) <= k V + 1 / (4 k)` for any k > 0."""
    xp = namespace(low)
    middle = xp.sqrt(0.5 * low + 0.5 * high)
    k = 0.5 / middle
    usable = xp.isfinite(k) & (k > TINY) & (k < 1.0 / TINY)
    k = xp.where(usable, k, xp.ones_like(k))
    multiple = _multiple(line, k, down(-0.25 / k, 1), evaluation)
    none = xp.full_like(low, -math.inf)
    return AffineBound(xp.where(usable, multiple.value, none), multiple.slope)


def _multiple(line: AffineBound, k: Array, rest: Array, evaluation: Evaluation) -> AffineBound:
    """`k line + rest` for k >= 0: the slope's rounding, and what underflows, is taken off."""
    half = evaluation.cells.half
    xp, f = namespace(k), half.shape[1]
    slope = k[:, None] * line.slope
    lost = up(xp.sum((gamma(2) * xp.abs(slope) + TINY) * half, axis=1), f + 4)
    scaled = xp.where(k > 0, down(k * line.value, 1), xp.zeros_like(k))
    return AffineBound(down(down(scaled + rest, 1) - lost, 1), slope)


def _sum(first: AffineBound, k: float, second: AffineBound, evaluation: Evaluation) -> AffineBound:
    """`first + k second` for k > 0: the slope's rounding, and what underflows, is taken off."""
    half = evaluation.cells.half
    xp, f = namespace(half), half.shape[1]
    size = xp.abs(first.slope) + k * xp.abs(second.slope)
    lost = up(xp.sum((gamma(4) * size + TINY) * half, axis=1), f + 6)
    value = down(first.value + down(k * second.value, 1), 1)
    return AffineBound(down(value - lost, 1), first.slope + k * second.slope)


def through_origin(line: AffineBound, center: Array) -> PerCell:
    """(B,): `offset` with `offset + slope.x <= value + slope.(x - c)` for every x, in reals."""
    xp = namespace(center)
    terms = line.slope * center
    f = center.shape[1]
    size = abs(line.value) + xp.sum(xp.abs(terms), axis=1)
    lost = up(gamma(f + 4) * size, f + 8) + (f + 4.0) * TINY
    return down(line.value - xp.sum(terms, axis=1) - lost, 2)
