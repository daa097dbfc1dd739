"""One quadratic model of a sum of means and variances of several outputs.

Proofs: docs/mathematics.md, statement 5.5.
"""

from __future__ import annotations

from typing import Annotated

from gpcert.arrays import Array, PerCell, namespace
from gpcert.class_layout import ClassLayout
from gpcert.enclosures.classes.outputs import LatentOutputs
from gpcert.enclosures.enclosure import Enclosure
from gpcert.rounding import gamma, up


def sum_model(
    latent: LatentOutputs,
    layout: ClassLayout,
    p: Annotated[Array, "B n"],
    q: Annotated[Array, "B J"],
) -> tuple[Enclosure, Array]:
    """Of `sum_k p_k d_k + sum_j q_j y_j / 2`, and its value at the cells' centres.

    p (B, n) and q (B, J). The constant parts (offsets and noise) are left out of both, so that
    their difference bounds the change from the centre. Coefficients in canonical units carry a few
    roundings; the caller counts them by the outputs' reach.
    """
    means, stacked = _mean_coefficients(layout, p), latent.variances
    if stacked is not None:
        first, first_value = _summed(latent, means, {})
        factors = [float(units.factor) for units in stacked.units]
        factor = namespace(q).asarray(factors, dtype=q.dtype, device=q.device)
        second, second_value = stacked.sum(0.5 * q * factor)
        return first + second, first_value + second_value
    half = [0.5 * q[:, j] for j in range(layout.outputs)]
    return _summed(latent, means, dict(enumerate(half)))


def pair_model(
    latent: LatentOutputs, layout: ClassLayout, pair: tuple[int, int], beta: PerCell
) -> tuple[Enclosure, PerCell]:
    """Of `q - beta D`, q and D mean and variance of `f_l - f_k` for `pair` = (k, l),
    without offsets and noise, and the constant (B,) that they add.

    The coefficients' rounding is taken off the constant: it acts on `|g| <= norm sqrt(s2)` (and
    what a trend reaches) and on variances of at most `gain s2`.
    """
    xp = namespace(beta)
    terms = layout.pair(*pair)
    one = xp.ones_like(beta)
    squares = {j: -beta * (c * c) for j, c in terms}
    model, _ = _summed(latent, {j: c * one for j, c in terms}, squares)
    constant, lost = 0.0 * beta, 0.0 * beta
    for j, c in terms:
        mean, variance = latent.mean(j).units, latent.variance(j)
        offset, noise = c * mean.shift, variance.units.shift
        constant = constant + offset - beta * (c * c) * noise
        size = abs(c) * mean.factor * latent.largest(j) + abs(offset)
        spread = variance.units.factor * variance.largest + noise
        lost = lost + gamma(12 + len(terms)) * (size + xp.abs(beta) * (c * c) * spread)
    return model, constant - up(lost, 8)


def _summed(
    latent: LatentOutputs, means: dict[int, Array], variances: dict[int, Array]
) -> tuple[Enclosure, Array]:
    """Of `sum_j means_j scale_j g_j + sum_j variances_j scale_j^2 max(v_j, 0)`, and about its value
    at the centres."""
    terms = [(latent.mean(j), c) for j, c in means.items()]
    terms += [(latent.variance(j), c) for j, c in variances.items()]
    parts = [(q, c * q.units.factor) for q, c in terms]
    models = [q.times(c) for q, c in parts]
    return sum(models[1:], models[0]), sum(c * q.center for q, c in parts)


def _mean_coefficients(layout: ClassLayout, p: Array) -> dict[int, Array]:
    """Coefficients of the outputs in `sum_k p_k d_k`."""
    found: dict[int, Array] = {}
    for k in range(1, layout.classes):
        for j, c in layout.pair(0, k):
            term = c * p[:, k - 1]
            found[j] = found[j] + term if j in found else term
    return found
