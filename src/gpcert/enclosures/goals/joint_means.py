"""Sums and norms of several means, each bounded as one function by the sum of their models.

Ranges of the means are attained at different points; one quadratic model of `sum_k w_k mu_k` keeps
what cancels between them, to second order.

Proofs: docs/mathematics.md, statements 19.7 and 19.9.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.goals.compound import compound_bound, part_bound, ranges
from gpcert.enclosures.goals.goal import GoalBound, lower_bound, worst_of
from gpcert.enclosures.mean import MeanEnclosure
from gpcert.enclosures.polynomials import Minimum
from gpcert.numerics.arrays import Array, PerCell, namespace
from gpcert.numerics.rounding import down, gamma, given, nonnegative, norm_upper, up
from gpcert.quantities import Deviation, LeastMeans, WeightedMeans
from gpcert.quantities.compound import row_sum
from gpcert.regions.scaled import ScaledCells


def least_sum(evaluation: Evaluation, weights: Sequence[PerCell | None]) -> Minimum:
    """Lower bound of `sum_k w_k mu_k` over each cell, w_k (B,) of any sign, in the outputs' units;
    None leaves a mean out.

    In unit form `w_k factor_k` rounds once, which meets `mu_k - shift_k`.
    """
    geometry: ScaledCells = evaluation.once("geometry", evaluation.shared_geometry)
    xp, models, constant, lost = namespace(evaluation.cells.lower), [], 0.0, 0.0
    for output, w in enumerate(weights):
        if w is None:
            continue
        mean, reach = plain_mean(evaluation, output, geometry), _reach(evaluation, output)
        shift = mean.units.shift + xp.zeros_like(w)
        models.append(mean.times(given(w * mean.units.factor)))
        constant = constant + w * shift
        lost = lost + xp.abs(w) * (reach + 2.0 * xp.abs(shift))
    best = sum(models[1:], models[0]).minimum()
    rounding = up(gamma(len(weights) + 8) * lost, 2 * len(weights) + 8)
    least = down(down(constant + best.lower, 1) - rounding, 1)
    least = xp.where(xp.isnan(least), xp.full_like(least, -math.inf), least)
    return Minimum(least, geometry.unscaled(best.point))


def plain_mean(evaluation: Evaluation, output: int, geometry: ScaledCells) -> MeanEnclosure:
    """The enclosure of a mean, without a weight, in coordinates that all share."""
    member, c = evaluation.output(output)
    return member.once(("plain mean", c), lambda: member.mean(c).plain(geometry))


def _reach(evaluation: Evaluation, output: int) -> Array:
    """Upper bound (B,) of the mean's size over each cell."""
    low, high = _range(evaluation, output)
    return namespace(low).maximum(abs(low), abs(high))


def _range(evaluation: Evaluation, output: int) -> tuple[Array, Array]:
    part = WeightedMeans((1.0,) * (output + 1)).parts[output]
    low, high = (part_bound(evaluation, part, sign).lower for sign in (1, -1))
    return low, -high


@lower_bound.register(WeightedMeans)
@np.errstate(over="ignore", invalid="ignore")
def _weighted_means(
    quantity: WeightedMeans, evaluation: Evaluation, target: float | None
) -> GoalBound:
    """The better of the ranges' sum and the joint model."""
    apart = compound_bound(quantity, evaluation, target)
    xp = namespace(apart.lower)
    joint = least_sum(evaluation, [xp.zeros_like(apart.lower) + w for w in quantity.weights])
    return replace(apart, lower=xp.maximum(apart.lower, joint.lower), point=joint.point)


@lower_bound.register(LeastMeans)
@np.errstate(over="ignore", invalid="ignore")
def _least_means(quantity: LeastMeans, evaluation: Evaluation, target: float | None) -> GoalBound:
    """The least of the sums' bounds, each the better of the ranges' sum and the joint model; sums
    above the target on every cell by their ranges are not bounded jointly."""
    apart, bounds = compound_bound(quantity, evaluation, target), []
    ends, xp = ranges(evaluation, quantity), namespace(apart.lower)
    for row in quantity.weights:
        least = replace(apart, lower=row_sum(row, *ends))
        if target is None or not bool(xp.all(least.lower > target)):
            weights = [None if w == 0 else xp.full_like(least.lower, w) for w in row]
            joint = least_sum(evaluation, weights)
            least = replace(least, lower=xp.maximum(least.lower, joint.lower), point=joint.point)
        bounds.append(least)
    return worst_of(bounds)


@lower_bound.register(Deviation)
@np.errstate(over="ignore", invalid="ignore")
def _deviation(quantity: Deviation, evaluation: Evaluation, target: float | None) -> GoalBound:
    """The better of the coordinates' extremes and, for l_1 and l_2 norms of several means, of one
    sum with the weights of the norm's gradient at the centre (Statement 19.7)."""
    apart = compound_bound(quantity, evaluation, target)
    if len(quantity.reference) == 1 or quantity.norm not in {1.0, 2.0}:
        return apart
    xp = namespace(apart.lower)
    low, high = zip(*(_range(evaluation, k) for k in range(len(quantity.reference))), strict=True)
    gaps = [
        (down(least - at - error, 3), up(most - at + error, 3))
        for least, most, at, error in zip(
            low, high, quantity.reference, quantity.errors, strict=True
        )
    ]
    centers = []
    for k, at in enumerate(quantity.reference):
        member, c = evaluation.output(k)
        below, above = member.mean_at_center(c)
        centers.append(given(0.5 * (below + above) - at))
    bound = _euclidean if quantity.norm == 2.0 else _absolute
    size, point = bound(evaluation, quantity, gaps, centers)
    lower = xp.maximum(apart.lower, -size)
    finite = xp.isfinite(lower)
    lower = xp.where(finite, lower, apart.lower)
    return replace(apart, lower=lower, point=point)


def _most(
    evaluation: Evaluation, quantity: Deviation, weights: Sequence[Array]
) -> tuple[Array, Array]:
    """Upper bound (B,) of `sum_k w_k (mu_k - reference_k)` over each cell, and where."""
    least = least_sum(evaluation, [-w for w in weights])
    xp, total, size = namespace(least.lower), -least.lower, 0.0 * weights[0]
    for w, at, error in zip(weights, quantity.reference, quantity.errors, strict=True):
        total = total - w * at
        size = size + xp.abs(w) * (abs(at) + error)
        total = total + xp.abs(w) * error
    rounding = gamma(4 * len(weights) + 8) * (size + xp.abs(least.lower))
    return up(total + rounding, 2 * len(weights) + 8), least.point


def _euclidean(
    evaluation: Evaluation,
    quantity: Deviation,
    gaps: Sequence[tuple[Array, Array]],
    v: Sequence[Array],
) -> tuple[Array, Array]:
    """With y = mu - reference, any v and T >= |y - v|: `|y|^2 <= (v.y / |v|)^2 + T^2`, where
    `|v.y| / |v| <= max(sup v.y / |v|, T - |v|)`."""
    xp = namespace(v[0])
    most, point = _most(evaluation, quantity, v)
    spreads = [
        nonnegative(xp.maximum(up(high - at, 2), up(at - low, 2)))
        for (low, high), at in zip(gaps, v, strict=True)
    ]
    T = norm_upper(xp.stack(spreads, axis=1), 2.0)
    stacked = xp.stack(list(v), axis=1)
    length = down(xp.sqrt(xp.sum(stacked * stacked, axis=1)), len(v) + 8)
    known = length > 0
    along = up(most / xp.where(known, length, xp.ones_like(length)), 1)
    along = nonnegative(xp.maximum(along, up(T - length, 1)))
    size = norm_upper(xp.stack([along, T], axis=1), 2.0)
    return xp.where(known, size, xp.full_like(size, math.inf)), point


def _absolute(
    evaluation: Evaluation,
    quantity: Deviation,
    gaps: Sequence[tuple[Array, Array]],
    v: Sequence[Array],
) -> tuple[Array, Array]:
    """`|y|_1 <= sum_k s_k y_k + 2 sum_k max(-min s_k y_k, 0)` for any signs s_k."""
    xp = namespace(v[0])
    signs = [xp.where(each >= 0, xp.ones_like(each), -xp.ones_like(each)) for each in v]
    total, point = _most(evaluation, quantity, signs)
    for sign, (low, high) in zip(signs, gaps, strict=True):
        least = xp.where(sign > 0, low, -high)
        total = up(total + 2.0 * nonnegative(-least), 2)
    return total, point
