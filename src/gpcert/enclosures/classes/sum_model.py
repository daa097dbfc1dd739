"""One quadratic model of a sum of means and variances of several outputs.

Proofs: docs/mathematics.md, statement 5.5.
"""

from __future__ import annotations

from gpcert.arrays import Array, namespace
from gpcert.class_layout import ClassLayout
from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.joint import combine
from gpcert.enclosures.local_quadratic import LocalQuadratic
from gpcert.rounding import gamma, nonnegative, up

__all__ = ["mean_sum_model", "pair_model", "sum_model"]


def sum_model(
    evaluation: Evaluation, layout: ClassLayout, p: Array, q: Array
) -> tuple[LocalQuadratic, Array]:
    """Lower model of `sum_k p_k d_k + sum_j q_j y_j / 2`, and its value at the cells' centres.

    p (B, n) and q (B, J). The constant parts (offsets and noise) are left out of both, so that
    their difference bounds the change from the centre. Coefficients in canonical units carry a few
    roundings; the caller counts them by the outputs' reach.
    """
    half = [0.5 * q[:, j] for j in range(layout.outputs)]
    return _summed(evaluation, _mean_coefficients(layout, p), dict(enumerate(half)))


def pair_model(
    evaluation: Evaluation, layout: ClassLayout, pair: tuple[int, int], beta: Array
) -> tuple[LocalQuadratic, Array]:
    """Lower model of `q - beta D`, q and D mean and variance of `f_l - f_k` for `pair` = (k, l),
    without offsets and noise, and the constant (B,) that they add.

    The coefficients' rounding is taken off the constant: it acts on `|g| <= norm sqrt(s2)` and on
    variances of at most `gain s2`.
    """
    xp = namespace(beta)
    local = evaluation.local
    posterior = local.posterior
    terms = layout.pair(*pair)
    one = xp.ones_like(beta)
    means = {j: sign * one for j, sign in terms}
    model, _ = _summed(evaluation, means, {j: -beta for j, _ in terms})
    largest = local.operator.gain * local.kernel.variance
    dip = local.operator.excess * local.kernel.variance
    constant, lost = 0.0 * beta, 0.0 * beta
    for j, sign in terms:
        scale, scale2 = local.unit.mean_scale[j], local.unit.variance_scale[j]
        noise = float(posterior.noise[j])
        offset = sign * float(posterior.offset[j])
        constant = constant + offset - beta * noise
        size = scale * local.norms[j] * largest**0.5 + xp.abs(beta) * scale2 * largest
        size = size + abs(offset) + xp.abs(beta) * noise
        # max(v, 0) <= v + dip costs beta dip where beta > 0
        lost = lost + gamma(8) * size + nonnegative(beta) * scale2 * dip
    return model, constant - up(lost, 8)


def mean_sum_model(
    evaluation: Evaluation, layout: ClassLayout, weights: dict[int, Array]
) -> tuple[LocalQuadratic, Array]:
    """Lower model of `sum_k weights_k mu_k` over classes, and the constant (B,) to be added.

    The weights add up to zero (or nearly: the caller counts it), so that the sum is one of
    differences from class 0. The constant holds offsets and takes off the coefficients' rounding.
    """
    local = evaluation.local
    posterior = local.posterior
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
        offset, scale = float(posterior.offset[j]), local.unit.mean_scale[j]
        constant = constant + c * offset
        lost = lost + abs(c) * (abs(offset) + scale * local.norms[j] * largest**0.5)
    return model, constant - up(gamma(16) * lost, 8)


def _summed(
    evaluation: Evaluation, means: dict[int, Array], variances: dict[int, Array]
) -> tuple[LocalQuadratic, Array]:
    """Lower model of `sum_j means_j scale_j g_j + sum_j variances_j scale_j^2 v_j`, and its value
    at the centres."""
    local, geometry = evaluation.local, evaluation.expansion.geometry
    dip = local.operator.excess * local.kernel.variance
    model, constant = None, namespace(geometry.rho2).zeros_like(geometry.rho2)
    for j, coefficient in means.items():
        c = coefficient * local.unit.mean_scale[j]
        enclosure = evaluation.mean(j)
        own = _chosen(enclosure.below, enclosure.above, c > 0)
        model = _add(model, own, abs(c), evaluation)
        constant = constant + c * enclosure.center
    assert model is not None, "at least one mean"
    for j, coefficient in variances.items():
        c = coefficient * local.unit.variance_scale[j]
        enclosure = evaluation.variance(j)
        model = combine(model, enclosure, -c, evaluation.variance_range(j)[0], dip, geometry)
        constant = constant + c * enclosure.center
    return model, constant


def _mean_coefficients(layout: ClassLayout, p: Array) -> dict[int, Array]:
    found: dict[int, Array] = {}
    for k in range(1, layout.classes):
        for j, sign in layout.pair(0, k):
            term = sign * p[:, k - 1]
            found[j] = found[j] + term if j in found else term
    return found


def _chosen(below: LocalQuadratic, above: LocalQuadratic, positive: Array) -> LocalQuadratic:
    xp = namespace(positive)
    return LocalQuadratic(
        xp.where(positive, below.value, above.value),
        xp.where(positive[:, None], below.gradient, above.gradient),
        xp.where(positive[:, None, None], below.hessian, above.hessian),
        xp.where(positive, below.error, above.error),
        below.rate,
    )


def _add(
    first: LocalQuadratic | None, other: LocalQuadratic, size: Array, evaluation: Evaluation
) -> LocalQuadratic:
    """`first + size other`, size >= 0; the sum's rounding by the reach of its terms."""
    xp = namespace(size)
    half = evaluation.expansion.geometry.half
    value, gradient = size * other.value, size[:, None] * other.gradient
    hessian = size[:, None, None] * other.hessian
    finite = xp.isfinite(other.error)
    error = xp.where(finite, size * xp.where(finite, other.error, 0.0 * size), other.error)
    parts = [(value, gradient, hessian)]
    if first is not None:
        parts.append((first.value, first.gradient, first.hessian))
        value, gradient = first.value + value, first.gradient + gradient
        hessian, error = first.hessian + hessian, first.error + error
    spread = half[:, :, None] * half[:, None, :]
    reach = sum(
        xp.abs(v) + xp.sum(xp.abs(g) * half, axis=1) + xp.sum(xp.abs(h) * spread, axis=(1, 2))
        for v, g, h in parts
    )
    rounding = gamma(4) * reach
    return LocalQuadratic(value, gradient, hessian, up(error + rounding, 8), other.rate)
