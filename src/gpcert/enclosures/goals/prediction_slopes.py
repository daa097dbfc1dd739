"""Slopes `D_u G = G_mu D_u mu + G_V D_u V` of a function of mean and variance, and their norms.

With floats m, s about D_u mu, D_u V at the centre, and G's slopes expanded about (mu0, V0),

    D_u G = a D_u mu + b D_u V + (a1 m + b1 s) (mu - mu0) + (a2 m + b2 s) (V - V0) + rest,

one quadratic model of four functions, whose rest is of second order in the size of a cell.

Proofs: docs/mathematics.md, statements 19.7, 19.13 and 19.14.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.goals.goal import GoalBound, least_mean, lower_bound, upper_at_center
from gpcert.enclosures.goals.joint_means import (
    Term,
    euclidean_length,
    least_of_model,
    linear_part,
    plain_mean,
    total_model,
)
from gpcert.enclosures.lower_model import QuadraticLowerModel
from gpcert.enclosures.mean import TwoSided, Units
from gpcert.enclosures.variance_slope import variance_slope
from gpcert.numerics.arrays import Array, PerCell, namespace
from gpcert.numerics.rounding import down, gamma, given, nonnegative, norm_lower, norm_upper, up
from gpcert.quantities import PredictionSlope, PredictionSteepness
from gpcert.quantities.differentiable import Differentiable, Expanded

Interval = tuple[Array, Array]
"""Lower and upper ends (B,)."""


class Part(NamedTuple):
    """`D_u mu` or `D_u V` on cells: its enclosure, without a weight, its range, that at the
    centres, and a float near it there."""

    enclosure: TwoSided
    range: Interval
    at_center: Interval
    middle: Array


class LatentSlopes(NamedTuple):
    """All that slopes of one G are made of, on a batch of cells. `smooth` (B,): whether V has the
    slopes of v, as where v > 0."""

    mean: Part | None
    variance: Part
    by_direction: list[tuple[Part | None, Part]]
    expanded: Expanded
    smooth: Array


def latent_slopes(
    evaluation: Evaluation, quantity: PredictionSlope | PredictionSteepness
) -> LatentSlopes:
    """Of a model `slopes_beside`."""
    steep = isinstance(quantity, PredictionSteepness)
    how = (quantity.function, quantity.base)
    count = quantity.directions if steep else len(quantity.weights)
    key = ("latent slopes", *how, count)
    return evaluation.once(key, lambda: _latent_slopes(evaluation, *how, count))


def _latent_slopes(
    evaluation: Evaluation, function: Differentiable, first: int, count: int
) -> LatentSlopes:
    geometry = evaluation.once("geometry", evaluation.shared_geometry)
    base = evaluation.output(first)[0]
    known = base.variance(0)
    v_range = known.units.range(*known.range)
    v_center = known.output_at_center
    variance = Part(known.plain(geometry), v_range, v_center, _middle(v_center))
    mean = _mean_part(evaluation, first) if function.by_mean else None
    directions = []
    for j in range(first + 1, first + count + 1):
        member = evaluation.output(j)[0]
        slope = variance_slope(
            (base.local, base.expansion),
            (member.local, member.expansion),
            0,
            geometry,
            evaluation.optional,
        )
        least, most = (slope.side(sign).minimum().lower for sign in (1, -1))
        ends = slope.units.range(*(_or_unknown(end) for end in (least, most)))
        at_center = slope.output_at_center
        part = Part(
            slope, (ends[0], -slope.units.below(_or_unknown(most))), at_center, _middle(at_center)
        )
        directions.append((_mean_part(evaluation, j) if function.by_mean else None, part))
    zero = 0.0 * variance.middle
    mu = (zero, zero, zero) if mean is None else (mean.middle, *mean.range)
    expanded = function.expanded(mu, (variance.middle, *v_range))
    exact = base.local.operator.excess == 0.0
    smooth = known.range[0] > 0 if not exact else zero == 0.0
    return LatentSlopes(mean, variance, directions, expanded, smooth)


def _or_unknown(end: Array) -> Array:
    xp = namespace(end)
    return xp.where(xp.isnan(end), xp.full_like(end, -math.inf), end)


def _middle(ends: Interval) -> Array:
    xp, middle = namespace(ends[0]), 0.5 * ends[0] + 0.5 * ends[1]
    return given(xp.where(xp.isfinite(middle), middle, xp.zeros_like(middle)))


def _mean_part(evaluation: Evaluation, output: int) -> Part:
    member, c = evaluation.output(output)
    low, high = (least_mean(member, c, sign).lower for sign in (1, -1))
    at_center = member.mean_at_center(c)
    geometry = evaluation.once("geometry", evaluation.shared_geometry)
    return Part(
        plain_mean(evaluation, output, geometry), (low, -high), at_center, _middle(at_center)
    )


def _size(ends: Interval) -> Array:
    return namespace(ends[0]).maximum(abs(ends[0]), abs(ends[1]))


def _far(part: Part) -> Array:
    low, high = part.range
    return nonnegative(up(namespace(low).maximum(high - part.middle, part.middle - low), 1))


def slope_model(slopes: LatentSlopes, weights: Sequence[PerCell | None]) -> QuadraticLowerModel:
    """A lower model of `sum_j w_j D_j G`, w_j (B,), where `smooth` (Statement 19.14); None leaves
    a direction out."""
    (a, b), (bend, mixed, turn), near, left = slopes.expanded
    xp, middles, spreads = namespace(a), [], []
    weighted = [
        (w, *parts) for w, parts in zip(weights, slopes.by_direction, strict=True) if w is not None
    ]
    count = len(weighted)
    for k in (0, 1):
        pairs = [(w, parts[k]) for w, *parts in weighted]
        present = [(w, part) for w, part in pairs if part is not None]
        middles.append(given(sum((w * part.middle for w, part in present), 0.0 * a)))
        spread = sum((abs(w) * _far(part) for w, part in present), 0.0 * a)
        size = sum((abs(w * part.middle) for w, part in present), 0.0 * a)
        spreads.append(up(spread + gamma(count + 2) * size, count + 4))
    m, s = middles
    terms, lost = [], 0.0 * a
    for w, of_mean, of_variance in weighted:
        if of_mean is not None:
            terms.append(Term(of_mean.enclosure, given(w * a), _size(of_mean.range)))
        terms.append(Term(of_variance.enclosure, given(w * b), _size(of_variance.range)))
    constant = 0.0 * a
    by_latent = [(slopes.mean, (bend * m, mixed * s)), (slopes.variance, (mixed * m, turn * s))]
    for part, (first, second) in by_latent:
        if part is None:
            continue
        w, size = given(first + second), abs(first) + abs(second)
        terms.append(Term(part.enclosure, w, _size(part.range)))
        constant = constant - w * part.middle
        lost = lost + gamma(8) * (size * _far(part) + abs(w * part.middle))
    # products w a of floats and what they meet
    lost = lost + gamma(8) * sum((abs(t.weight) * t.reach for t in terms), 0.0 * a)
    for far, rest, middle, spread in zip(near, left, (m, s), spreads, strict=True):
        lost = lost + _times(rest, abs(middle)) + _times(far, spread)
    lost = up(lost, 8 * count + 32)
    lost = xp.where(slopes.smooth & ~xp.isnan(lost), lost, xp.full_like(lost, math.inf))
    model = total_model(terms).shifted(given(constant)).lowered(up(gamma(8) * abs(constant), 4))
    return model.lowered(lost)


def _times(size: Array, other: Array) -> Array:
    """A product of bounds >= 0, where 0 times infinity is 0."""
    xp = namespace(size)
    none = (size == 0) | (other == 0)
    return xp.where(none, xp.zeros_like(size), size * other)


def slope_range(slopes: LatentSlopes, j: int, at_center: bool = False) -> Interval:
    """Ends of D_j G over cells, or at their centres, by intervals (there up to rounding)."""
    xp = namespace(slopes.variance.middle)
    mean_slope, variance_part = slopes.by_direction[j]
    low, high = variance_part.at_center if at_center else variance_part.range
    low = xp.where(slopes.smooth, low, xp.minimum(low, 0.0 * low))
    high = xp.where(slopes.smooth, high, xp.maximum(high, 0.0 * high))
    pairs: list[tuple[Interval, Interval]] = [(_factor(slopes, 1), (low, high))]
    if mean_slope is not None:
        ends = mean_slope.at_center if at_center else mean_slope.range
        pairs.append((_factor(slopes, 0), ends))
    least, most = (sum((_product(x, y, side) for x, y in pairs), 0.0 * low) for side in (1, -1))
    return down(least, 4), -down(most, 4)


def _factor(slopes: LatentSlopes, k: int) -> Interval:
    """Ends of G_mu (not negative) or G_V over the cells."""
    at, far = slopes.expanded.first[k], slopes.expanded.near[k]
    low, high = down(at - far, 1), up(at + far, 1)
    return (nonnegative(low), high) if k == 0 else (low, high)


def _product(x: Interval, y: Interval, side: int) -> Array:
    """At most `side x y`."""
    xp = namespace(x[0])
    ends = [side * _signed(a, b) for a in x for b in y]
    least = ends[0]
    for end in ends[1:]:
        least = xp.where(end < least, end, least)
    return down(least, 2)


def _signed(a: Array, b: Array) -> Array:
    xp = namespace(a)
    return xp.where((a == 0) | (b == 0), xp.zeros_like(a), a * b)


def _signed_slope(slopes: LatentSlopes, quantity: PredictionSlope, j: int) -> Array:
    """A lower bound of a number with the sign of `w_j D_j G`: `w (D_j mu + r D_j V)`, r = G_V /
    G_mu; without a mean `w D_j V` (Statement 19.14)."""
    function, (mean_slope, part) = quantity.function, slopes.by_direction[j]
    w = 0.0 * part.middle + quantity.weights[j]
    if mean_slope is None or slopes.mean is None:
        return least_of_model(total_model([Term(part.enclosure, w, _size(part.range))])).lower
    xp = namespace(w)
    infinite = 0.0 * w + math.inf
    ends = function.ratio(slopes.mean.range, slopes.variance.range)
    low, high = (-infinite, infinite) if ends is None else ends
    steep, turn = _factor(slopes, 0), _factor(slopes, 1)
    positive = steep[0] > 0
    bottom, top = (xp.where(positive, end, 1.0 + 0.0 * w) for end in steep)
    least = xp.where(turn[0] < 0, turn[0] / bottom, turn[0] / top)
    most = xp.where(turn[1] > 0, turn[1] / bottom, turn[1] / top)
    low = xp.where(positive, xp.maximum(low, down(least, 2)), low)
    high = xp.where(positive, xp.minimum(high, up(most, 2)), high)
    known = xp.isfinite(low) & xp.isfinite(high) & slopes.smooth
    middle = given(xp.where(known, 0.5 * low + 0.5 * high, xp.zeros_like(low)))
    far = up(xp.maximum(high - middle, middle - low), 1)
    terms = [
        Term(mean_slope.enclosure, w, _size(mean_slope.range)),
        Term(part.enclosure, given(w * middle), _size(part.range)),
    ]
    size = _size(part.range)
    lost = up(abs(w) * _times(xp.where(known, far, 0.0 * far), size), 4)
    lost = up(lost + gamma(4) * abs(w * middle) * size, 4)
    joint = down(least_of_model(total_model(terms)).lower - lost, 1)
    return xp.where(known & ~xp.isnan(joint), joint, -infinite)


@lower_bound.register(PredictionSlope)
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _slope(quantity: PredictionSlope, evaluation: Evaluation, target: float | None) -> GoalBound:
    """The better of intervals and the joint model, and 0 where the sign is proved."""
    slopes = latent_slopes(evaluation, quantity)
    middle = slopes.variance.middle
    model = slope_model(slopes, [0.0 * middle + w if w else None for w in quantity.weights])
    best, xp = least_of_model(model), namespace(middle)
    lower = xp.maximum(best.lower, _by_ranges(slopes, quantity.weights))
    (alone, *others) = [j for j, w in enumerate(quantity.weights) if w]
    if not others:
        signed = _signed_slope(slopes, quantity, alone)
        lower = xp.where((signed >= 0) & (lower < 0), xp.zeros_like(lower), lower)
    return GoalBound(lower, best.point, model.geometry.split_scores())


def _by_ranges(slopes: LatentSlopes, weights: Sequence[float], at_center: bool = False) -> Array:
    """A lower bound of the sum, from the ranges of the slopes."""
    total = 0.0 * slopes.variance.middle
    for j, w in enumerate(weights):
        low, high = slope_range(slopes, j, at_center)
        total = down(total + down(w * (low if w > 0 else high), 1), 1) if w else total
    return _or_unknown(total)


@upper_at_center.register(PredictionSlope)
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _slope_at_center(quantity: PredictionSlope, evaluation: Evaluation) -> PerCell:
    slopes = at_centers(evaluation, quantity)
    return -_by_ranges(slopes, tuple(-w for w in quantity.weights), True)


def at_centers(
    evaluation: Evaluation, quantity: PredictionSlope | PredictionSteepness
) -> LatentSlopes:
    """At the cells' centres: ranges and the expansion of G are those of the points."""
    slopes, base = latent_slopes(evaluation, quantity), evaluation.output(quantity.base)[0]

    def at(part: Part | None) -> Part | None:
        return None if part is None else part._replace(range=part.at_center)

    mean, variance = at(slopes.mean), slopes.variance._replace(range=slopes.variance.at_center)
    zero = 0.0 * variance.middle
    mu = (zero, zero, zero) if mean is None else (mean.middle, *mean.range)
    expanded = quantity.function.expanded(mu, (variance.middle, *variance.range))
    smooth = slopes.smooth
    if base.local.operator.excess > 0.0:
        smooth = base.variance(0).at_center[0] > 0
    return slopes._replace(mean=mean, variance=variance, expanded=expanded, smooth=smooth)


@lower_bound.register(PredictionSteepness)
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _steepness(
    quantity: PredictionSteepness, evaluation: Evaluation, target: float | None
) -> GoalBound:
    """Minus the norm of the largest slopes, and for l_2 of their joint model."""
    count = quantity.directions
    slopes = latent_slopes(evaluation, quantity)
    zero = 0.0 * slopes.variance.middle
    xp, one, ends, models = namespace(zero), zero + 1.0, [], []
    for j in range(count):
        sides = [
            slope_model(slopes, [w * one if i == j else None for i in range(count)])
            for w in (1.0, -1.0)
        ]
        low, high = slope_range(slopes, j)
        least, most = (least_of_model(side).lower for side in sides)
        ends.append((_larger(least, low), -_larger(most, -high)))
        models.append(sides)
    sizes = xp.stack([_size(end) for end in ends], axis=1)
    finite = xp.all(xp.isfinite(sizes), axis=1)
    safe = xp.where(finite[:, None], sizes, xp.zeros_like(sizes))
    size = xp.where(finite, norm_upper(safe, quantity.norm), zero + math.inf)
    centers = at_centers(evaluation, quantity)
    v = [_middle(slope_range(centers, j, True)) for j in range(count)]
    along = slope_model(slopes, [-each for each in v])
    if quantity.norm == 2.0 and count > 1:
        linear = [
            linear_part(TwoSided(below, above, at, zero, Units()), 0.0, at)
            for (below, above), at in zip(models, v, strict=True)
        ]
        joint, point = euclidean_length(along, ends, v, linear, [0.0] * count)
        size = xp.where(joint < size, joint, size)
    else:
        point = least_of_model(along).point
    return GoalBound(-size, point, along.geometry.split_scores())


def _larger(a: Array, b: Array) -> Array:
    """The larger of two lower bounds, NaN being none."""
    xp = namespace(a)
    return _or_unknown(xp.where(a > b, a, b))


@upper_at_center.register(PredictionSteepness)
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _steepness_at_center(quantity: PredictionSteepness, evaluation: Evaluation) -> PerCell:
    slopes = at_centers(evaluation, quantity)
    ends = [slope_range(slopes, j, True) for j in range(quantity.directions)]
    xp = namespace(slopes.variance.middle)
    gaps = [nonnegative(xp.maximum(low, -high)) for low, high in ends]
    return -norm_lower(
        xp.stack([xp.where(xp.isfinite(g), g, 0.0 * g) for g in gaps], axis=1), quantity.norm
    )
