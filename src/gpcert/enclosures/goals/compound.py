"""Bounds of quantities of several outputs: H(y_1, ..., y_k) from the ranges of its parts, what
committees decide by, sums of probabilities each as a whole, and sums of class probabilities.

Proofs: docs/mathematics.md, statements 7.5, 10.10 and 11.1 to 11.4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpcert.enclosures.classes.bounds import ClassBounds
from gpcert.enclosures.evaluation import Evaluation, evaluation_at
from gpcert.enclosures.goals.goal import (
    GoalBound,
    chosen,
    least_mean,
    lower_bound,
    output_at_center,
    output_bound,
    upper_at_center,
    worst_of,
)
from gpcert.enclosures.lower_model import QuadraticLowerModel
from gpcert.enclosures.polynomials import Minimum
from gpcert.enclosures.probability_plane import LatentRange, ProbabilityPlane, latent_range
from gpcert.likelihoods.logistic import SmoothedLink
from gpcert.model.multi_output import Outputs
from gpcert.numerics.arrays import (
    Array,
    PerCell,
    PerCellAndFeature,
    PerFeature,
    least_of,
    namespace,
    to_numpy,
)
from gpcert.numerics.rounding import down, gamma, given, nonnegative, up
from gpcert.quantities import (
    ClassSums,
    Compound,
    Deviation,
    LeastSum,
    Mean,
    OutputQuantity,
    Probability,
    Share,
    Votes,
)
from gpcert.regions.scaled import ScaledCells


@dataclass(frozen=True)
class Lazily(Sequence[Array]):
    """Ends (B,) of the ranges of parts on one side, each computed when it is looked at."""

    end: Callable[[OutputQuantity, int], Array]
    parts: Sequence[OutputQuantity]
    sign: int

    def __getitem__(self, number: Any) -> Any:
        return self.end(self.parts[number], self.sign)

    def __len__(self) -> int:
        return len(self.parts)


def part_bound(
    evaluation: Evaluation, part: OutputQuantity, sign: int, target: float | None = None
) -> GoalBound:
    """Lower bound of `sign y` of a part over each cell, within what is known of it."""
    member, c = evaluation.output(part.output)
    if isinstance(part, Mean):
        return least_mean(member, c, sign * part.sign, target)
    quantity = part if sign > 0 else part.negative

    def compute() -> GoalBound:
        bound = output_bound(quantity, evaluation, None)
        return replace(bound, lower=namespace(bound.lower).clip(bound.lower, *quantity.known))

    return member.once(("part", quantity), compute)


def ranges(evaluation: Evaluation, quantity: Compound) -> tuple[Lazily, Lazily]:
    """Ends of all parts over each cell."""

    def end(part: OutputQuantity, sign: int) -> Array:
        return sign * part_bound(evaluation, part, sign, quantity.level).lower

    return Lazily(end, quantity.parts, 1), Lazily(end, quantity.parts, -1)


def ranges_at_center(evaluation: Evaluation, quantity: Compound) -> tuple[Lazily, Lazily]:
    """Ends of all parts at each cell's centre."""

    def end(part: OutputQuantity, sign: int) -> Array:
        signed = part if sign > 0 else part.negative
        member, _ = evaluation.output(part.output)
        value = member.once(("at center", signed), lambda: output_at_center(signed, evaluation))
        return namespace(value).clip(sign * value, *part.known)

    return Lazily(end, quantity.parts, -1), Lazily(end, quantity.parts, 1)


@lower_bound.register(Compound)
def compound_bound(quantity: Compound, evaluation: Evaluation, target: float | None) -> GoalBound:
    """From the parts' own ranges; one part's point and scores say where to look and split."""
    low, high = ranges(evaluation, quantity)
    part, large = quantity.leading_part(low, high)
    below, above = (
        chosen([part_bound(evaluation, y, sign, quantity.level) for y in quantity.parts], part)
        for sign in (1, -1)
    )
    point = namespace(part).where(large[:, None], above.point, below.point)
    return GoalBound(quantity.lowest(low, high), point, below.scores)


@upper_at_center.register(Compound)
def compound_at_center(quantity: Compound, evaluation: Evaluation) -> PerCell:
    """From the parts' values at the centre, on either side of their errors."""
    return quantity.highest(*ranges_at_center(evaluation, quantity))


def deviation_around(posterior: Outputs, x: PerFeature, norm: float) -> Deviation:
    """The deviation from the certified mean at x: floats, and how far off they are."""
    return deviations_at(evaluation_at(posterior, x, variance=False), posterior, norm)[0]


def deviations_at(evaluation: Evaluation, posterior: Outputs, norm: float) -> list[Deviation]:
    """`deviation_around` the centre of each cell."""
    values, errors = [], []
    for c in range(posterior.outputs):
        member, number = evaluation.output(c)
        low, high = (to_numpy(end) for end in member.mean_at_center(number))
        values.append(given(0.5 * (low + high)))
        errors.append(up(np.maximum(high - values[c], values[c] - low), 2))
    cells = zip(np.stack(values, axis=1).tolist(), np.stack(errors, axis=1).tolist(), strict=True)
    return [Deviation(tuple(value), tuple(error), norm) for value, error in cells]


JOINT = "sum of probabilities"
"""The joint bound of `weighted_sum` in the portfolio: it seldom pays on large cells."""

LEVEL_GRID = 2.0**-30
"""Levels of a share are multiples of this, so that 1 - level is exact."""

Parts = Sequence[Probability]


@lower_bound.register(LeastSum)
def _least_sum(quantity: LeastSum, evaluation: Evaluation, target: float | None) -> GoalBound:
    """The least of the sums' bounds.

    Sums that already exceed the target on every cell by the members' extremes are not bounded
    jointly.
    """
    xp, parts = namespace(evaluation.cells.lower), quantity.parts
    sums, bounds = quantity.sums(*ranges(evaluation, quantity)), []
    for weights, apart in zip(quantity.weights, sums, strict=True):
        if target is not None and bool(xp.all(apart > target)):
            worst = min(range(len(parts)), key=weights.__getitem__)
            lower, point = apart, part_bound(evaluation, parts[worst], -1).point
        else:
            joint = weighted_sum(evaluation, parts, weights)
            lower, point = xp.maximum(apart, joint.lower), joint.point
        bounds.append(GoalBound(lower, point, split_scores(evaluation, parts, weights)))
    return worst_of(bounds)


@lower_bound.register(Share)
def _share(quantity: Share, evaluation: Evaluation, target: float | None) -> GoalBound:
    """The better of the members' extremes and the test of a level.

    Level t: with `N = (1 - t) F_c - t sum_{k != c} F_k`, the ratio is `t + N / sum_k F_k`; a lower
    bound n of sign N, joint over the members, gives `sign ratio >= sign t + n / S`, S the largest
    sum where n >= 0, else the smallest. Any level is valid, the ratio at the centre is a good one.
    """
    xp, parts, sign = namespace(evaluation.cells.lower), quantity.parts, quantity.sign
    count = len(parts)
    ends = ranges(evaluation, quantity)
    lows, highs = list(ends[0]), list(ends[1])
    apart = quantity.lowest(lows, highs)
    level = _level(quantity, evaluation)
    rise = sign * (1.0 - level)
    weights = [rise if k == quantity.index else -sign * level for k in range(count)]
    joint = weighted_sum(evaluation, parts, weights)
    n = joint.lower
    least = down(sum(lows), count)
    total = xp.where(n >= 0, up(sum(highs), count), least)
    known = least > 0  # where all F_k may be 0 the formula says nothing
    step = down(xp.where(known, n, xp.zeros_like(n)) / xp.where(known, total, 1.0 + 0.0 * n), 1)
    tested = down(sign * level + step, 1)
    lower = xp.where(known, xp.maximum(apart, tested), apart)
    return GoalBound(lower, joint.point, split_scores(evaluation, parts, [1.0] * count))


def _level(quantity: Share, evaluation: Evaluation) -> Array:
    """About the ratio at the centre, as a multiple of `LEVEL_GRID` in [0, 1]."""
    low, high = ranges_at_center(evaluation, quantity)
    middles = [0.5 * (below + above) for below, above in zip(low, high, strict=True)]
    xp, total = namespace(middles[0]), sum(middles)
    ratio = middles[quantity.index] / xp.where(total > 0, total, xp.ones_like(total))
    return xp.floor(xp.clip(ratio, 0.0, 1.0) / LEVEL_GRID) * LEVEL_GRID


@lower_bound.register(Votes)
def _votes(quantity: Votes, evaluation: Evaluation, target: float | None) -> GoalBound:
    """The least lead; differences of confidences are bounded as a whole."""
    parts = quantity.probabilities
    leads = quantity.leads(
        *ranges(evaluation, quantity),
        lambda weights: weighted_sum(evaluation, parts, weights.tolist()).lower,
    )
    bounds = []
    for j, lead in zip(quantity.rivals, leads, strict=True):
        weights = quantity.weights(j).tolist()
        pair = max(range(len(parts)), key=lambda p, row=weights: abs(row[p]))  # of i and j
        sign = 1 if weights[pair] > 0 else -1
        point = part_bound(evaluation, quantity.parts[pair], sign, quantity.level).point
        bounds.append(GoalBound(lead, point, split_scores(evaluation, parts, weights)))
    return worst_of(bounds)


def split_scores(
    evaluation: Evaluation, parts: Parts, weights: Sequence[float | Array]
) -> PerCellAndFeature:
    """What halving each axis gains: the sum over the members that have a weight."""
    scores = [
        evaluation.output(part.output)[0].expansion.geometry.split_scores()
        for part, weight in zip(parts, weights, strict=True)
        if not (isinstance(weight, int | float) and weight == 0)
    ]
    return sum(scores[1:], scores[0])


def weighted_sum(
    evaluation: Evaluation, parts: Parts, weights: Sequence[float | PerCell]
) -> Minimum:
    """Lower bound of `sum_k w_k F_k` over each cell, weights floats or (B,), one sign each: the
    better of the members' own extremes, which may be attained at different points, and one
    quadratic model of the whole sum, from the tangent of every F_k (Statement 5.5)."""
    zero = namespace(evaluation.cells.lower).sum(0.0 * evaluation.cells.lower, axis=1)
    xp = namespace(zero)
    used = [k for k, w in enumerate(weights) if not (isinstance(w, int | float) and w == 0)]
    sizes = {k: zero + weights[k] for k in used}
    signs = {k: 1 if bool(xp.all(sizes[k] >= 0)) else -1 for k in used}
    assert all(bool(xp.all(signs[k] * sizes[k] >= 0)) for k in used), "a weight changes its sign"
    bounds = {k: part_bound(evaluation, parts[k], signs[k]) for k in used}
    terms = [down(xp.abs(sizes[k]) * bounds[k].lower, 1) for k in used]
    absolute = sum((xp.abs(term) for term in terms[1:]), xp.abs(terms[0]))
    rounding = up(gamma(len(terms)) * absolute, len(terms) + 2)
    apart = down(sum(terms[1:], terms[0]) - rounding, 1)
    name = f"{JOINT} {signs}"
    summands = [(parts[k], signs[k], xp.abs(sizes[k])) for k in used]
    joint = _joint_sum(evaluation, summands) if evaluation.wants(name) else None
    if joint is None:
        return Minimum(apart, bounds[used[0]].point)
    evaluation.report(name, bool(xp.any(joint.lower > apart)))
    return Minimum(xp.maximum(apart, joint.lower), joint.point)


def _joint_sum(
    evaluation: Evaluation, terms: Sequence[tuple[Probability, int, Array]]
) -> Minimum | None:
    """The bound by one quadratic model; None for likelihoods whose curvature is not known."""
    geometry = evaluation.once("geometry", evaluation.shared_geometry)
    models = []
    for part, sign, size in terms:
        if not isinstance(part.likelihood, SmoothedLink):
            return None
        models.append(_model(evaluation, part, sign, geometry).scaled(size))
    best = sum(models[1:], models[0]).minimum()
    return Minimum(best.lower, geometry.unscaled(best.point))


def _model(
    evaluation: Evaluation, part: Probability, sign: int, geometry: ScaledCells
) -> QuadraticLowerModel:
    """A lower model of `sign F`, on a plane with F's slopes at the centre (any would be valid)."""
    member, c = evaluation.output(part.output)
    likelihood = part.likelihood
    assert isinstance(likelihood, SmoothedLink), "its curvature is known"

    def latent() -> LatentRange:
        low, high = (least_mean(member, c, side).lower for side in (1, -1))
        return latent_range(member, low, -high)

    def model() -> QuadraticLowerModel:
        ranges: LatentRange = member.once("latent", latent)
        by_mu, by_v = likelihood.slopes(ranges.mean, ranges.variance)
        plane = ProbabilityPlane.under(likelihood, ranges, nonnegative(by_mu), by_v, sign)
        return plane.model(member, geometry)

    return member.once(("model", sign), model)


def classes_of(quantity: ClassSums, evaluation: Evaluation) -> ClassBounds:
    """The batch's enclosures of class probabilities."""
    return ClassBounds(evaluation, quantity.layout, quantity.likelihood)


@lower_bound.register(ClassSums)
def _class_sums(quantity: ClassSums, evaluation: Evaluation, target: float | None) -> GoalBound:
    """The least of the sums' own lower bounds."""
    classes = classes_of(quantity, evaluation)
    geometry, scores = classes.latent.geometry, classes.split_scores()
    minima = (classes.lower(weights, target) for weights in quantity.weights)
    bounds = [GoalBound.of(geometry, each) for each in minima]
    return worst_of([replace(bound, scores=scores) for bound in bounds])


@upper_at_center.register(ClassSums)
def _class_sums_at_center(quantity: ClassSums, evaluation: Evaluation) -> Array:
    """The least of the sums' upper bounds at the centres."""
    classes = classes_of(quantity, evaluation)
    return least_of([classes.upper_at_center(weights) for weights in quantity.weights])
