"""What the goals of a committee ask of its members: probabilities on cells, and sums of them.

Proofs: docs/mathematics.md, statement 11.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpcert.arrays import Array, namespace
from gpcert.enclosures.enclosure import Enclosure, LevelBound, plain_geometry
from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.goals.base import GoalBound
from gpcert.enclosures.goals.scalar import ScalarGoal, least_mean
from gpcert.enclosures.probability_plane import LatentRange, ProbabilityPlane, latent_range
from gpcert.kernels.expansions.geometry import Geometry
from gpcert.likelihoods import ScalarLikelihood
from gpcert.likelihoods.smoothed_link import SmoothedLink
from gpcert.quantities import Probability
from gpcert.rounding import down, gamma, nonnegative, up

JOINT = "sum of probabilities"
"""The joint bound of `weighted_sum` in the portfolio: it seldom pays on large cells."""


def latent_mean(evaluation: Evaluation, index: int, sign: int, target: float | None) -> GoalBound:
    """Lower bound of `sign mu` of a member over each cell."""
    return least_mean(evaluation.member(index), 0, sign, target)


def probability(evaluation: Evaluation, index: int, sign: int) -> GoalBound:
    """Lower bound of `sign F` of a member over each cell, within [0, 1] or [-1, 0]."""
    member = evaluation.member(index)

    def compute() -> GoalBound:
        quantity = Probability(_likelihood(member), 0, sign)
        bound = ScalarGoal(quantity).bound(member, None)
        lower = namespace(bound.lower).clip(bound.lower, *quantity.known)
        return GoalBound(lower, bound.point, bound.scores)

    return member.once(("probability", sign), compute)


def probability_at_center(evaluation: Evaluation, index: int) -> tuple[Array, Array]:
    """Certified range of a member's F at each cell's centre, within [0, 1]."""
    member = evaluation.member(index)

    def compute() -> tuple[Array, Array]:
        goals = [ScalarGoal(Probability(_likelihood(member), 0, sign)) for sign in (-1, 1)]
        low, high = -goals[0].ceiling(member), goals[1].ceiling(member)
        xp = namespace(low)
        return xp.clip(low, 0.0, 1.0), xp.clip(high, 0.0, 1.0)

    return member.once("center", compute)


def split_scores(evaluation: Evaluation, weights: Sequence[Any]) -> Array:
    """What halving each axis gains: the sum over the members that have a weight."""
    parts = [
        evaluation.member(index).expansion.geometry.split_scores()
        for index, weight in enumerate(weights)
        if not _is_zero(weight)
    ]
    return sum(parts[1:], parts[0])


def weighted_sum(evaluation: Evaluation, weights: Sequence[float | Array]) -> LevelBound:
    """Lower bound of `sum_k w_k F_k` over each cell, weights floats or (B,), one sign each.

    The better of two: the members' own extremes, which may be attained at different points, so
    that the loss is of first order in the cell; and one quadratic model of the whole sum, from the
    tangent of every F_k, whose loss is of second order (Statement 5.5).
    """
    xp = namespace(evaluation.cells.lower)
    used = [k for k, weight in enumerate(weights) if not _is_zero(weight)]
    sizes = {k: _array(weights[k], evaluation) for k in used}
    signs = {k: 1 if bool(xp.all(sizes[k] >= 0)) else -1 for k in used}
    assert all(bool(xp.all(signs[k] * sizes[k] >= 0)) for k in used), "a weight changes its sign"
    parts = [down(xp.abs(sizes[k]) * probability(evaluation, k, signs[k]).lower, 1) for k in used]
    apart = sum(parts[1:], parts[0])
    absolute = sum((xp.abs(part) for part in parts[1:]), xp.abs(parts[0]))
    apart = down(apart - up(gamma(len(parts)) * absolute, len(parts) + 2), 1)
    joint = None
    name = f"{JOINT} {signs}"
    if evaluation.wants(name):
        joint = _joint_sum(evaluation, {k: xp.abs(sizes[k]) for k in used}, signs)
    if joint is None:
        return LevelBound(apart, probability(evaluation, used[0], signs[used[0]]).point)
    evaluation.report(name, bool(xp.any(joint.lower > apart)))
    return LevelBound(xp.maximum(apart, joint.lower), joint.point)


def _joint_sum(
    evaluation: Evaluation, sizes: dict[int, Array], signs: dict[int, int]
) -> LevelBound | None:
    """The bound by one quadratic model; None for likelihoods whose curvature is not known."""
    models = []
    for k, size in sizes.items():
        likelihood = _likelihood(evaluation.member(k))
        if not isinstance(likelihood, SmoothedLink):
            return None
        models.append(_model(evaluation, k, signs[k], likelihood).scaled(size))
    best = sum(models[1:], models[0]).minimum()
    return LevelBound(best.lower, _geometry(evaluation).unscaled(best.point))


def _model(evaluation: Evaluation, index: int, sign: int, likelihood: SmoothedLink) -> Enclosure:
    """A lower model of `sign F`, on a plane with F's slopes at the centre (any would be valid)."""
    member = evaluation.member(index)

    def latent() -> LatentRange:
        low = latent_mean(evaluation, index, 1, None).lower
        return latent_range(member, low, -latent_mean(evaluation, index, -1, None).lower)

    def model() -> Enclosure:
        ranges: LatentRange = member.once("latent", latent)
        by_mu, by_v = likelihood.slopes(ranges.mean, ranges.variance)
        plane = ProbabilityPlane.under(likelihood, ranges, nonnegative(by_mu), by_v, sign)
        return plane.model(member, _geometry(evaluation))

    return member.once(("model", sign), model)


def _geometry(evaluation: Evaluation) -> Geometry:
    return evaluation.once("geometry", lambda: plain_geometry(evaluation.cells))


def _likelihood(member: Evaluation) -> ScalarLikelihood:
    likelihood = member.local.posterior.likelihood
    assert isinstance(likelihood, ScalarLikelihood), "a committee checks its members"
    return likelihood


def _array(weight: float | Array, evaluation: Evaluation) -> Array:
    xp = namespace(evaluation.cells.lower)
    zero = xp.zeros_like(xp.sum(evaluation.cells.lower, axis=1))
    return zero + weight


def _is_zero(weight: float | Array) -> bool:
    return isinstance(weight, int | float) and weight == 0.0
