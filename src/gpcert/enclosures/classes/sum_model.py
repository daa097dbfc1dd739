"""One quadratic model of a sum of means and variances of several outputs.

Proofs: docs/mathematics.md, statement 5.5.
"""

from __future__ import annotations

from gpcert.arrays import Array, namespace
from gpcert.class_layout import ClassLayout
from gpcert.enclosures.enclosure import Enclosure
from gpcert.enclosures.evaluation import Evaluation
from gpcert.rounding import gamma, up


def sum_model(
    evaluation: Evaluation, layout: ClassLayout, p: Array, q: Array
) -> tuple[Enclosure, Array]:
    """Of `sum_k p_k d_k + sum_j q_j y_j / 2`, and its value at the cells' centres.

    p (B, n) and q (B, J). The constant parts (offsets and noise) are left out of both, so that
    their difference bounds the change from the centre. Coefficients in canonical units carry a few
    roundings; the caller counts them by the outputs' reach.
    """
    half = [0.5 * q[:, j] for j in range(layout.outputs)]
    return _summed(evaluation, _mean_coefficients(layout, p), dict(enumerate(half)))


def pair_model(
    evaluation: Evaluation, layout: ClassLayout, pair: tuple[int, int], beta: Array
) -> tuple[Enclosure, Array]:
    """Of `q - beta D`, q and D mean and variance of `f_l - f_k` for `pair` = (k, l),
    without offsets and noise, and the constant (B,) that they add.

    The coefficients' rounding is taken off the constant: it acts on `|g| <= norm sqrt(s2)` (and
    what a trend reaches) and on variances of at most `gain s2`.
    """
    xp = namespace(beta)
    terms = layout.pair(*pair)
    one = xp.ones_like(beta)
    model, _ = _summed(evaluation, {j: s * one for j, s in terms}, {j: -beta for j, _ in terms})
    constant, lost = 0.0 * beta, 0.0 * beta
    for j, sign in terms:
        mean, variance = evaluation.mean(j).units, evaluation.variance(j)
        offset, noise = sign * mean.shift, variance.units.shift
        constant = constant + offset - beta * noise
        reach = evaluation.local.norms[j] * variance.largest**0.5 + _trend(evaluation, j)
        size = mean.factor * reach + xp.abs(beta) * variance.units.factor * variance.largest
        lost = lost + gamma(8) * (size + abs(offset) + xp.abs(beta) * noise)
    return model, constant - up(lost, 8)


def mean_sum_model(
    evaluation: Evaluation, layout: ClassLayout, weights: dict[int, Array]
) -> tuple[Enclosure, Array]:
    """Of `sum_k weights_k mu_k` over classes, and the constant (B,) to be added.

    The weights add up to zero (or nearly: the caller counts it), so that the sum is one of
    differences from class 0. The constant holds offsets and takes off the coefficients' rounding.
    """
    local = evaluation.local
    means: dict[int, Array] = {}
    for k, weight in weights.items():
        if k == 0:
            continue
        for j, sign in layout.pair(0, k):
            means[j] = means[j] + sign * weight if j in means else sign * weight
    model, _ = _summed(evaluation, means, {})
    constant, lost = 0.0, 0.0
    largest = local.operator.gain * local.kernel.variance
    for j, c in means.items():
        units = evaluation.mean(j).units
        constant = constant + c * units.shift
        reach = local.norms[j] * largest**0.5 + _trend(evaluation, j)
        lost = lost + abs(c) * (abs(units.shift) + units.factor * reach)
    return model, constant - up(gamma(16) * lost, 8)


def _trend(evaluation: Evaluation, output: int) -> Array | float:
    """Upper bound (B,) of what the output's linear trend reaches in unit form."""
    trend = evaluation.mean(output).trend
    return 0.0 if trend is None else trend.reach


def _summed(
    evaluation: Evaluation, means: dict[int, Array], variances: dict[int, Array]
) -> tuple[Enclosure, Array]:
    """Of `sum_j means_j scale_j g_j + sum_j variances_j scale_j^2 max(v_j, 0)`, and about its value
    at the centres."""
    terms = [(evaluation.mean(j), c) for j, c in means.items()]
    terms += [(evaluation.variance(j), c) for j, c in variances.items()]
    parts = [(q, c * q.units.factor) for q, c in terms]
    models = [q.times(c) for q, c in parts]
    return sum(models[1:], models[0]), sum(c * q.center for q, c in parts)


def _mean_coefficients(layout: ClassLayout, p: Array) -> dict[int, Array]:
    found: dict[int, Array] = {}
    for k in range(1, layout.classes):
        for j, sign in layout.pair(0, k):
            term = sign * p[:, k - 1]
            found[j] = found[j] + term if j in found else term
    return found
