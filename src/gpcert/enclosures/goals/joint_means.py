"""Sums and norms of several means, each bounded as one function by the sum of their models.

Ranges of the means are attained at different points; one quadratic model of `sum_k w_k mu_k` keeps
what cancels between them, to second order.

Proofs: docs/mathematics.md, statements 19.7 and 19.9.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.goals.compound import compound_bound, part_bound, ranges
from gpcert.enclosures.goals.goal import GoalBound, lower_bound, worst_of
from gpcert.enclosures.lower_model import QuadraticLowerModel
from gpcert.enclosures.mean import MeanEnclosure, TwoSided
from gpcert.enclosures.polynomials import Minimum
from gpcert.kernels.expansions.base import reach
from gpcert.numerics.arrays import Array, PerCell, PerCellAndFeature, namespace
from gpcert.numerics.rounding import down, gamma, given, nonnegative, norm_upper, up
from gpcert.quantities import Deviation, LeastMeans, SameDecision, WeightedMeans
from gpcert.quantities.compound import row_sum
from gpcert.regions.scaled import ScaledCells


def sum_model(evaluation: Evaluation, weights: Sequence[PerCell | None]) -> QuadraticLowerModel:
    """A lower model of `sum_k w_k mu_k`, w_k (B,) of any sign, in the outputs' units; None leaves a
    mean out.

    In unit form `w_k factor_k` rounds once, which meets `mu_k - shift_k`.
    """
    geometry: ScaledCells = evaluation.once("geometry", evaluation.shared_geometry)
    terms = [
        Term(plain_mean(evaluation, output, geometry), w, _reach(evaluation, output))
        for output, w in enumerate(weights)
        if w is not None
    ]
    return total_model(terms)


class Term(NamedTuple):
    """A function of `weight` (B,) in a sum, at most `reach` (B,) in size on the cells."""

    enclosure: TwoSided
    weight: Array
    reach: Array


def total_model(terms: Sequence[Term]) -> QuadraticLowerModel:
    """A lower model of a weighted sum of functions, in their own units (Statement 19.9)."""
    models, constant, lost = [], 0.0, 0.0
    for enclosure, w, reach_of in terms:
        shift = enclosure.units.shift + 0.0 * w
        models.append(enclosure.times(given(w * enclosure.units.factor)))
        constant = constant + w * shift
        lost = lost + abs(w) * (reach_of + 2.0 * abs(shift))
    rounding = up(gamma(len(terms) + 8) * lost, 2 * len(terms) + 8)
    return sum(models[1:], models[0]).shifted(given(constant)).lowered(rounding)


def least_sum(evaluation: Evaluation, weights: Sequence[PerCell | None]) -> Minimum:
    """Lower bound of `sum_k w_k mu_k` over each cell; see `sum_model`."""
    return least_of_model(sum_model(evaluation, weights))


def least_of_model(model: QuadraticLowerModel) -> Minimum:
    """Over each cell, -inf where nothing is known; the point in the inputs' units."""
    best, xp = model.minimum(), namespace(model.value)
    least = xp.where(xp.isnan(best.lower), xp.full_like(best.lower, -math.inf), best.lower)
    return Minimum(least, model.geometry.unscaled(best.point))


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


@lower_bound.register(SameDecision)
@np.errstate(over="ignore", invalid="ignore")
def _same_decision(
    quantity: SameDecision, evaluation: Evaluation, target: float | None
) -> GoalBound:
    """The better of the ranges and, for the class that is best by these on a cell, of one joint
    model for each of its rows (any class would be valid)."""
    apart = compound_bound(quantity, evaluation, target)
    xp = namespace(apart.lower)
    if target is not None and bool(xp.all(apart.lower > target)):
        return apart
    margins = xp.stack(quantity.margins(*ranges(evaluation, quantity)), axis=1)
    best, lower, point = xp.argmax(margins, axis=1), apart.lower, apart.point
    for c in range(len(quantity.rows)):
        mine = best == c
        if not bool(xp.any(mine)):
            continue
        bounds = []
        for row in quantity.of_class(c):
            weights = [None if w == 0 else xp.full_like(lower, w) for w in row]
            joint = least_sum(evaluation, weights)
            bounds.append(replace(apart, lower=joint.lower, point=joint.point))
        worst = worst_of(bounds)
        lower = xp.where(mine, xp.maximum(lower, worst.lower), lower)
        point = xp.where(mine[:, None], worst.point, point)
    return replace(apart, lower=lower, point=point)


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
    if quantity.norm == 1.0:
        size, point = _absolute(evaluation, quantity, gaps, centers)
    else:
        along = shifted_sum(evaluation, quantity, [-v for v in centers])
        geometry = along.geometry
        linear = [
            linear_part(plain_mean(evaluation, k, geometry), at, v)
            for k, (at, v) in enumerate(zip(quantity.reference, centers, strict=True))
        ]
        errors = list(quantity.errors)
        size, point = euclidean_length(along, gaps, centers, linear, errors)
    lower = xp.maximum(apart.lower, -size)
    finite = xp.isfinite(lower)
    lower = xp.where(finite, lower, apart.lower)
    return replace(apart, lower=lower, point=point)


def shifted_sum(
    evaluation: Evaluation, quantity: Deviation, weights: Sequence[PerCell]
) -> QuadraticLowerModel:
    """A lower model of `sum_k w_k (mu_k - reference_k)`."""
    model, constant, size, lost = sum_model(evaluation, weights), 0.0, 0.0, 0.0
    for w, at, error in zip(weights, quantity.reference, quantity.errors, strict=True):
        constant = constant - w * at
        size = size + abs(w) * abs(at)
        lost = lost + abs(w) * error
    rounding = up(gamma(4 * len(weights) + 8) * size + lost, 2 * len(weights) + 8)
    return model.shifted(given(constant)).lowered(rounding)


def finite_norm(sizes: Sequence[Array]) -> PerCell:
    """Upper bound (B,) of the l_2 norm of numbers >= 0; infinite where one is, or is none."""
    return norm_upper(namespace(sizes[0]).stack(list(sizes), axis=1), 2.0)


class LinearPart(NamedTuple):
    """`|y - v - gradient.d| <= error` on every cell, v a float that is known elsewhere."""

    gradient: Array
    error: Array


def linear_part(enclosure: TwoSided, reference: float | PerCell, v: PerCell) -> LinearPart:
    """Of `y - reference`, from both quadratics of y's own units."""
    below, above, xp = enclosure.below, enclosure.above, namespace(v)
    f, shift = below.gradient.shape[1], enclosure.units.shift
    value, turn = enclosure.units.factor * below.value, below.gradient + above.gradient
    half = below.geometry.half
    apart = abs(below.value + above.value) + xp.sum(xp.abs(turn) * half, axis=1)
    bends = xp.maximum(
        0.5 * reach(below.matrix, below.geometry) + below.error,
        0.5 * reach(above.matrix, above.geometry) + above.error + apart,
    )
    size = abs(shift) + abs(value) + abs(reference) + enclosure.units.factor * below.slopes
    error = enclosure.units.factor * bends + abs((shift + value - reference) - v)
    error = up(error + gamma(16) * size, 2 * f * f + 32)
    return LinearPart(enclosure.units.factor * below.gradient, error)


def _most(
    evaluation: Evaluation, quantity: Deviation, weights: Sequence[Array]
) -> tuple[Array, Array]:
    """Upper bound (B,) of `sum_k w_k (mu_k - reference_k)` over each cell, and where."""
    least = least_of_model(shifted_sum(evaluation, quantity, [-w for w in weights]))
    return -least.lower, least.point


def euclidean_length(
    along: QuadraticLowerModel,
    gaps: Sequence[tuple[PerCell, PerCell]],
    v: Sequence[PerCell],
    linear: Sequence[LinearPart],
    errors: Sequence[float | PerCell],
) -> tuple[PerCell, PerCellAndFeature]:
    """Upper bound of |y|_2 over each cell, and where it may be large, from a lower model of
    `-v.y`, the ranges of all `y_k`, about their values v at the centres, and their linear parts
    (the centres' own errors are `errors`).

    With T >= |y - v|: `|y|^2 <= (v.y / |v|)^2 + T^2`, where `|v.y| / |v| <= max(sup v.y / |v|,
    T - |v|)`. Where `s = |v| - T > 0`, the part y' of y across v and any eta > 0,

        |y| <= v.y / |v| + |y'|^2 / (2 s),   |y'|^2 <= (1 + eta) |W d|^2 + (1 + 1 / eta) e^2,

    W the gradients' part across v: one quadratic, in which what bends down along v meets what
    grows across (Statement 19.7).
    """
    xp, count, geometry = namespace(v[0]), len(v), along.geometry
    plain = least_of_model(along)
    spreads = [
        nonnegative(xp.maximum(up(high - at, 2), up(at - low, 2)))
        for (low, high), at in zip(gaps, v, strict=True)
    ]
    T = finite_norm(spreads)
    stacked = xp.stack(list(v), axis=1)
    squared = xp.sum(stacked * stacked, axis=1)
    length = down(xp.sqrt(squared), count + 8)
    known = length > 0
    safe = xp.where(known, length, xp.ones_like(length))
    straight = up(-plain.lower / safe, 1)
    straight = nonnegative(xp.maximum(straight, up(T - length, 1)))
    size = finite_norm([straight, T])
    size = xp.where(known, size, xp.full_like(size, math.inf))
    least = down(length - T, 2)
    usable = known & (least > 0) & xp.isfinite(along.error)
    if not bool(xp.any(usable)):
        return size, plain.point
    least = xp.where(usable, least, xp.ones_like(least))
    J = xp.stack([part.gradient for part in linear], axis=1)
    share = xp.where(known, squared, xp.ones_like(squared))
    W = (
        J
        - stacked[:, :, None] * (xp.sum(stacked[:, :, None] * J, axis=1) / share[:, None])[:, None]
    )
    far = up(xp.sum(xp.sqrt(xp.sum(J * J, axis=1)) * geometry.half, axis=1), count + 32)
    missed = finite_norm([up(p.error + e, 1) for p, e in zip(linear, errors, strict=True)])
    missed = up(missed + gamma(8 * count + 64) * far, 4)
    M = xp.matrix_transpose(W) @ W
    M = 0.5 * (M + xp.matrix_transpose(M))
    g = xp.sqrt(reach(M, geometry))
    eta = given(xp.clip(missed / xp.where(g > 0, g, xp.ones_like(g)), 1e-6, 1.0))
    factor = given(up((1.0 + eta) / least, 2))
    turned = QuadraticLowerModel(
        geometry,
        xp.zeros_like(g),
        xp.zeros_like(along.gradient),
        -factor[:, None, None] * M,
        up(gamma(4 * count + 32) * factor * far * far, 8),
    )
    model = along.scaled(given(up(1.0 / safe, 2))) + turned
    rest = up(0.5 * (1.0 + 1.0 / eta) * missed * missed / least, 16)
    best = least_of_model(model)
    together = up(-best.lower + rest, 1)
    better = usable & (together < size)
    size = xp.where(better, nonnegative(together), size)
    return size, xp.where(better[:, None], best.point, plain.point)


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
