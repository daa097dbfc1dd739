"""Lipschitz constants of standard deviations and probabilities, from the lengths of the kernel's
features: proved for any data, and not sharp where there is much.

Proofs: docs/mathematics.md, statement 19.12.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpcert.api.accuracy import Accuracy
from gpcert.api.boxes import bound_boxes
from gpcert.api.options import QuantityRequest, SearchSettings
from gpcert.api.range_questions import owners_of
from gpcert.api.ranges import ranges_over
from gpcert.errors import InputError
from gpcert.kernels.slope import SlopeKernel, check_smooth
from gpcert.likelihoods.logistic import SMOOTHING_BOUNDS, SmoothedLink
from gpcert.likelihoods.probit import Probit
from gpcert.model.changes import stationary
from gpcert.model.multi_output import Outputs
from gpcert.model.posterior import Posterior
from gpcert.numerics.rounding import down, norm_upper, up
from gpcert.regions import Region
from gpcert.search import Budget

SAMPLES, TRIED, STEP = 400, 16, 2.0**-6
"""Points at which a steep quotient is looked for, how many are proved, and the largest step, in
widths of the region."""


def length_of_slopes(posterior: Posterior, region: Region, p: float) -> float:
    """Upper bound of `|D_u phi(x)|` for every x of the box around the region and |u|_p <= 1, u in
    its free features.

    With `g_j = sup |D_j phi|`: the largest for p = 1, their sum for infinity; for p = 2 the root of
    the sum of squares, or the largest where the D_j phi are orthogonal, as of stationary kernels.
    """
    if posterior.features is not None:
        raise InputError(
            "of: standard deviations and probabilities behind linear features (PCA, one-hot "
            "columns) have no constant here; expected a model without them"
        )
    check_smooth(posterior.kernel)
    half = up(np.maximum(region.upper - region.center, region.center - region.lower), 2)
    lengths = []
    for j in region.free:
        slopes = SlopeKernel(posterior.kernel, np.eye(posterior.dim)[j])
        square = slopes.derivative_bounds(half[None], region.center[None]).gram[0][0]
        lengths.append(float(up(np.sqrt(up(np.asarray(square)[0], 2)), 2)))
    lengths = np.array(lengths)
    if p == 1.0 or (p == 2.0 and stationary(posterior.kernel)):
        return float(lengths.max())
    if p == 2.0:
        return float(norm_upper(lengths, 2.0))
    return float(up(lengths.sum(), len(lengths) + 2))


def deviation_constant(
    model: Outputs, index: int, region: Region, p: float, settings: SearchSettings
) -> float:
    """Upper bound of the constant of an output's standard deviation, noise included."""
    posterior, c = model.output(index)
    posterior.check_has_variance("of='std'")
    length = length_of_slopes(posterior, region, p)
    excess = 0.0 if posterior.training_noise is not None else posterior.excess
    size = up(math.sqrt(up(posterior.gain + excess, 2)) * length * float(posterior.scale[c]), 6)
    if excess > 0.0:  # w^2 = v + excess k is what is Lipschitz
        least = _range(model, "std", index, region, settings)[0]
        prior = float(up(np.max(posterior.prior_variance(region.center[None])[:, c]), 64))
        if not stationary(posterior.kernel) or least <= 0.0:
            raise InputError(
                "of: the stored factor of this model is not exact, so that its variance may vanish "
                "where it is small; give the posterior its training_noise, or take a smaller region"
            )
        size = up(size * math.sqrt(up(1.0 + excess * prior / (least * least), 6)), 4)
    return float(size)


def probability_constant(
    model: Outputs, index: int, region: Region, p: float, mean: float, settings: SearchSettings
) -> float:
    """Of the probability of two classes, from that of the latent mean, `mean`."""
    likelihood = model.likelihood
    if not isinstance(likelihood, SmoothedLink | Probit):
        raise InputError(
            "of: 'probability' is known for two classes with a smooth link (probit, logistic), got "
            f"{type(likelihood).__name__}; ask of='mean', the latent function that decides"
        )
    deviation = deviation_constant(model, index, region, p, settings)
    least, most = _range(model, "variance", index, region, settings)
    by_mean, bend = (_bend(likelihood, n, max(least, 0.0)) for n in (1, 2))
    variance = up(2.0 * up(math.sqrt(max(most, 0.0)), 2) * deviation, 2)
    return float(up(up(by_mean * mean, 1) + up(0.5 * bend * variance, 2), 1))


def _bend(likelihood: SmoothedLink | Probit, order: int, v: float) -> float:
    """Upper bound of `|d^n F / dmu^n|` at variances >= v; of probit `Phi(mu / sqrt(1 + v))`."""
    if isinstance(likelihood, SmoothedLink):
        return float(likelihood.derivative_bound(order, np.array(v)))
    return float(up(SMOOTHING_BOUNDS[order - 1] / down(1.0 + v, 1) ** (0.5 * order), 8))


def _range(
    model: Outputs, quantity: Any, index: int, region: Region, settings: SearchSettings
) -> tuple[float, float]:
    """Proved ends of a variance or standard deviation."""
    asked = (QuantityRequest(quantity), owners_of(model)[index].label, "both")
    (found,) = ranges_over(model, region, asked, Accuracy(None, 0.1), settings)
    return found.minimum.lower, found.maximum.upper


def steepest_quotient(
    model: Outputs, quantity: Any, column: int, region: Region, p: float
) -> tuple[float, np.ndarray]:
    """A proved difference quotient of a quantity, the largest of those tried, and its points."""
    rng = np.random.default_rng(0)
    x = region.sample(SAMPLES, rng)
    step = rng.normal(size=x.shape) * (region.upper - region.lower)
    y = region.project(x + STEP * rng.random((SAMPLES, 1)) * step)
    held = np.asarray(region.contains(x)) & np.asarray(region.contains(y)) & np.any(x != y, axis=1)
    x, y = x[held], y[held]
    nothing = np.empty((0, model.dim))
    if not len(x):
        return 0.0, nothing
    if quantity == "std":
        values = [np.sqrt(model.predict(points)[1][:, column]) for points in (x, y)]
    else:
        values = [model.prediction(points)[:, 0] for points in (x, y)]
    lengths = np.asarray(norm_upper(x - y, p, 1))
    best = np.argsort(-np.abs(values[0] - values[1]) / lengths)[:TRIED]
    pairs = np.stack([x[best], y[best]], axis=1)
    flat, limits = pairs.reshape(-1, model.dim), Budget(seconds=10.0)
    found = bound_boxes(model, flat, flat, quantity=quantity, budget=limits, progress=False)
    ends = found[quantity][:, column].reshape(-1, 2, 2)
    gaps = np.maximum(ends[:, 0, 0] - ends[:, 1, 1], ends[:, 1, 0] - ends[:, 0, 1])
    gaps = np.maximum(down(np.where(np.isfinite(gaps), gaps, 0.0), 1), 0.0)
    quotients = down(gaps / lengths[best], 1)
    first = int(np.argmax(quotients))
    return max(float(quotients[first]), 0.0), pairs[first]
