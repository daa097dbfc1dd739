"""`lipschitz`: by how much a function can change in a region, per unit of distance.

Constants of standard deviations and probabilities come from the lengths of the kernel's features:
proved for any data, and not sharp where there is much.

Proofs: docs/mathematics.md, statements 19.1, 19.7, 19.12 and 19.14.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Unpack

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api.accuracy import Accuracy
from gpcert.api.boxes import bound_boxes
from gpcert.api.domain import domain_of
from gpcert.api.options import QuantityRequest, SearchOptions, SearchSettings, one_of, verb
from gpcert.api.range_questions import function_of, owners_of, what_of
from gpcert.api.ranges import ranges_over
from gpcert.api.running import progress_line, ranges_text
from gpcert.api.slopes import axes, convex, label_of, meaning_of, of_means, output_number
from gpcert.certificates import LipschitzBound
from gpcert.certificates.text import above
from gpcert.errors import InputError
from gpcert.kernels.slope import SlopeKernel, check_smooth
from gpcert.likelihoods.logistic import SMOOTHING_BOUNDS, SmoothedLink
from gpcert.likelihoods.probit import Probit
from gpcert.model.changes import stationary
from gpcert.model.multi_output import Outputs
from gpcert.model.posterior import Posterior
from gpcert.model.slopes import joined_slopes, slopes_beside
from gpcert.numerics.arrays import Inputs, PerFeature
from gpcert.numerics.rounding import down, gamma, norm_lower, norm_upper, up
from gpcert.quantities import Deviation, PredictionSteepness, Quantity
from gpcert.regions import Polytope, Region
from gpcert.regions.shapes import check_norm
from gpcert.search import Budget, Progress, StopReason, solve
from gpcert.search.problem import Tolerance

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
    (known,) = ranges_over(model, region, asked, Accuracy(None, 0.1), settings)
    return known.minimum.lower, known.maximum.upper


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
    bounds = bound_boxes(model, flat, flat, quantity=quantity, budget=limits, progress=False)
    ends = bounds[quantity][:, column].reshape(-1, 2, 2)
    gaps = np.maximum(ends[:, 0, 0] - ends[:, 1, 1], ends[:, 1, 0] - ends[:, 0, 1])
    gaps = np.maximum(down(np.where(np.isfinite(gaps), gaps, 0.0), 1), 0.0)
    quotients = down(gaps / lengths[best], 1)
    first = int(np.argmax(quotients))
    return max(float(quotients[first]), 0.0), pairs[first]


KINDS = ("mean", "jacobian", "std", "probability")
"""What a constant may be of."""

USUAL = 0.01
"""Relative, of a Lipschitz constant, by default."""

STEPS = 16
"""Halvings of the distance at which the second point of a difference quotient is tried."""


@verb
def lipschitz(
    model: Any,
    bounds: Any,
    *,
    norm: float | str = 2,
    of: str = "mean",
    output: Any = None,
    fixed: Mapping[Any, Any] | None = None,
    tol: float | None = None,
    rtol: float | None = None,
    **options: Unpack[SearchOptions],
) -> LipschitzBound:
    """The Lipschitz constant of the mean over a region: a proved upper bound, and a proved lower
    one, attained at a point (of a `Polytope` with equations between the two points of `pair`).

    Parameters
    ----------
    model, bounds, fixed, output : as in `slope_ranges`; the region is convex. With one output, or
        where `output` names one, the function is that output's mean.
    norm : of the distance between inputs, 1, 2 or "inf"; only the features that the region leaves
        free count.
    of : "mean", the mean or the latent mean of a classifier; or "jacobian", all outputs' means
        together: the change is measured by its Euclidean norm, the distance by norm=2, and `upper`
        bounds the Frobenius norm of the Jacobian, `lower` a spectral norm that is attained (they
        meet where the gradients of all outputs are along one line); or "std" or "probability" (of
        the second of two classes), of stationary kernels. Of others, and behind some features, both
        are proved without a search: `upper` follows from the lengths of the kernel's features,
        whatever the data, and `lower` is a difference quotient of the two points of `pair`.
    tol, rtol : the search ends once both ends are as near as that; by default within 1 %.
    budget, ... : as in `prediction_range`.

    Example
    -------
    >>> import gpcert
    >>> from gpcert.kernels import SquaredExponential
    >>> bump = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0, 0.0]], weights=[1.0])
    >>> steepest = gpcert.lipschitz(bump, [(-2.0, 2.0), (-2.0, 2.0)])  # exp(-1/2), at distance 1
    >>> steepest.lower <= float(np.exp(-0.5)) <= steepest.upper <= 1.01 * steepest.lower
    True
    """
    start, posterior = time.perf_counter(), of_means(as_posterior(model))
    one_of("of", of, KINDS)
    region = convex(domain_of(posterior, bounds, fixed), "lipschitz")
    distance = check_norm(norm, "norm")
    if distance not in {1.0, 2.0, math.inf}:
        raise InputError(f"norm: expected 1, 2 or 'inf', got {norm!r}")
    dual = {1.0: math.inf, 2.0: 2.0, math.inf: 1.0}[distance]
    joint = of == "jacobian"
    if joint and (output is not None or distance != 2.0):
        raise InputError(
            "of: 'jacobian' is of all outputs and of Euclidean distances, got "
            f"output={output!r} and norm={norm!r}"
        )
    index, numbers = 0 if joint else output_number(posterior, output), region.free.tolist()
    outputs = range(posterior.outputs) if joint else [index]
    settings, accuracy = SearchSettings.read(options), Accuracy.read(tol, rtol)
    about = {
        "norm": distance,
        "of": of,
        "output": None if joint else label_of(posterior, output),
        "region": region.describe(),
        "meaning": "means of all outputs" if joint else meaning_of(posterior, index),
        "method": settings.method.name,
        "model": posterior.fingerprint,
    }
    nothing = np.empty((0, posterior.dim))
    if not numbers:
        return LipschitzBound(
            0.0, 0.0, region.center, converged=True, pair=nothing, reason=StopReason.CONVERGED,
            boxes=0, seconds=time.perf_counter() - start, **about,
        )  # fmt: skip
    predicted = of in {"std", "probability"}
    if predicted:
        posterior.check_has_variance(f"of={of!r}")
        about["meaning"] = what_of(posterior, owners_of(posterior)[index], of)
    searched = not predicted or stationary(posterior.output(index)[0].kernel)
    if not searched and accuracy.given:
        raise InputError(
            f"tol, rtol: belong to a search, got of={of!r} of a kernel that is not stationary, of "
            "which the constant follows without one; leave them out"
        )
    if of == "std" and not searched:
        upper = deviation_constant(posterior, index, region, distance, settings)
        return _by_lengths(posterior, region, index, upper, start, about)
    _check_smooth(posterior, outputs)
    slopes, quantity = _searched(posterior, outputs, numbers, of if searched else "mean", dual)
    with progress_line(options.get("progress")) as line:
        progress = Progress(start, lambda state: line.show(ranges_text(state)))
        within = accuracy.tolerance() if accuracy.given else Tolerance(0.0, USUAL)
        problem = settings.problem(slopes, region, [quantity], tol=within, progress=progress)
        result = solve(problem)
    (goal,) = result.goals
    if of == "probability" and not searched:
        steepest = 0.0 - goal.lower
        how = (posterior, index, region, distance, steepest, settings)
        return _by_lengths(posterior, region, 1, probability_constant(*how), start, about)
    lower, upper, pair = max(0.0 - goal.upper, 0.0), 0.0 - goal.lower, nothing
    near = result.reason is StopReason.CONVERGED
    thin = isinstance(region, Polytope) and not region.has_interior
    at = region.center if goal.point is None else goal.point
    if isinstance(region, Polytope) and thin:
        what = (of, index + (of == "probability"))
        lower, pair = _steepest_pair(posterior, what, region, at, distance)
    elif joint:
        lower = _spectral_norm(slopes, len(numbers), at)
    if thin or joint:
        lower = min(lower, upper)
        near = near and _near(within, lower, upper)
    return LipschitzBound(
        lower=lower,
        upper=upper,
        point=goal.point,
        pair=pair,
        converged=near,
        reason=result.reason,
        boxes=result.boxes,
        seconds=result.seconds,
        **about,
    )


def _searched(
    model: Outputs, outputs: Sequence[int], numbers: Sequence[int], of: str, dual: float
) -> tuple[Outputs, Quantity]:
    """The slopes in these features as a model, and minus their norm."""
    directions = axes(model, numbers)
    if of in {"std", "probability"}:
        quantity = PredictionSteepness(function_of(model, of), len(numbers), dual)
        return slopes_beside(model, directions, outputs[0]), quantity
    slopes = joined_slopes(model, directions, outputs)
    zeros = (0.0,) * slopes.outputs
    return slopes, Deviation(zeros, zeros, dual)


def _by_lengths(
    model: Outputs, region: Region, column: int, upper: float, start: float, about: dict[str, Any]
) -> LipschitzBound:
    """The proved constant of a standard deviation or a probability, and a quotient below it."""
    lower, pair = steepest_quotient(model, about["of"], column, region, about["norm"])
    return LipschitzBound(
        min(lower, upper), upper, None, converged=False, pair=pair, reason=StopReason.DECIDED,
        boxes=0, seconds=time.perf_counter() - start, **about,
    )  # fmt: skip


def _check_smooth(model: Outputs, outputs: Sequence[int]) -> None:
    """An `InputError` that says what can be had of a kernel without derivatives."""
    for c in outputs:
        posterior, number = model.output(c)
        if posterior.kernel.rough:
            size = float(up(posterior.norms[number] * posterior.scale[number], 2))
            raise InputError(
                f"kernel: {type(posterior.kernel).__name__} with these parameters has no "
                "derivative, and its functions may have no Lipschitz constant; proved is a modulus "
                f"of continuity: |mean(x) - mean(y)| <= {above(size)} |phi(x) - phi(y)| with "
                "|phi(x) - phi(y)|^2 = k(x, x) - 2 k(x, y) + k(y, y)"
            )


def _spectral_norm(slopes: Outputs, features: int, x: PerFeature) -> float:
    """Lower bound of that of the Jacobian at x: the length of its product with a direction v, over
    that of v (any is valid; the first right singular vector is best)."""
    limits = Budget(seconds=10.0)
    ends = bound_boxes(slopes, x[None], x[None], budget=limits, progress=False)["mean"][0]
    low, high = (end.reshape(-1, features) for end in ends.T)
    if not (np.all(np.isfinite(low)) and np.all(np.isfinite(high))):
        return 0.0
    v = np.linalg.svd(0.5 * low + 0.5 * high)[2][0]
    size = np.maximum(np.abs(low), np.abs(high)) @ np.abs(v)
    rounding = up(gamma(features + 4) * size, features + 4)
    least = down(np.minimum(low * v, high * v).sum(axis=1) - rounding, 2)
    most = up(np.maximum(low * v, high * v).sum(axis=1) + rounding, 2)
    gaps = np.maximum(np.maximum(least, -most), 0.0)
    return float(down(norm_lower(gaps, 2.0) / norm_upper(v, 2.0), 1))


def _near(within: Tolerance, lower: float, upper: float) -> bool:
    """Whether both ends of a constant are as near as the tolerance asks."""
    return bool(within.needed(np.array([-lower]))[0] <= -upper)


def _steepest_pair(
    model: Outputs, what: tuple[str, int], region: Polytope, x: PerFeature, distance: float
) -> tuple[float, np.ndarray]:
    """A proved difference quotient of two points of the region, the largest of some, and the pair.

    Of a polytope without an interior: a gradient has parts along which no segment of the region
    goes, and is no lower bound there (Statement 19.7). Any two points of the region are valid.
    """
    directions, slope = _tangents(region), np.zeros(model.dim)
    name: Any = what[0]
    output = what[1]
    step = 1e-6 * (region.upper - region.lower)
    for j in region.free:
        e = np.eye(model.dim)[j] * max(step[j], 1e-300)
        slope[j] = np.diff(_plain(model, what, np.stack([x - e, x + e])))[0] / (2.0 * e[j])
    along = directions @ (directions.T @ slope)
    nothing = np.empty((0, model.dim))
    if not np.any(along):
        return 0.0, nothing
    reach = float(np.max(region.upper - region.lower)) / float(np.max(np.abs(along)))
    steps = reach * 2.0 ** -np.arange(STEPS)[:, None]
    ahead, behind = region.project(x + steps * along), region.project(x - steps * along)
    first = np.concatenate([ahead, ahead, np.tile(x, (STEPS, 1))])
    second = np.concatenate([behind, np.tile(x, (STEPS, 1)), behind])
    held = np.asarray(region.contains(first)) & np.asarray(region.contains(second))
    held &= np.any(first != second, axis=1)
    points = np.stack([first[held], second[held]], axis=1)
    if not len(points):
        return 0.0, nothing
    flat, limits = points.reshape(-1, model.dim), Budget(seconds=10.0)
    bounds = bound_boxes(model, flat, flat, quantity=name, budget=limits, progress=False)
    ends = bounds[name][:, output].reshape(-1, 2, 2)  # of both points, lower and upper
    gaps = np.maximum(ends[:, 0, 0] - ends[:, 1, 1], ends[:, 1, 0] - ends[:, 0, 1])
    lengths = norm_upper(points[:, 0] - points[:, 1], distance, 1)
    quotients = down(np.where(np.isfinite(gaps), np.maximum(down(gaps, 1), 0.0), 0.0) / lengths, 1)
    best = int(np.argmax(quotients))
    return max(float(quotients[best]), 0.0), points[best]


def _plain(model: Outputs, what: tuple[str, int], X: Inputs) -> Annotated[np.ndarray, "n"]:
    """A mean, a standard deviation or a probability in plain floating point."""
    name, output = what
    if name == "probability":
        return model.prediction(X)[:, 0]
    return np.sqrt(model.predict(X)[1])[:, output] if name == "std" else model.mean(X)[:, output]


def _tangents(region: Polytope) -> np.ndarray:
    """(d, k): about an orthonormal basis of the directions along which the region's equations and
    fixed features stay; says where to look."""
    spans = np.abs(region.A) @ (region.upper - region.lower)
    thin = (region.high - region.low) <= 1e-6 * spans
    rows = np.concatenate([region.A[thin], np.eye(region.dim)[region.fixed]])
    if not len(rows):
        return np.eye(region.dim)
    _, sizes, vectors = np.linalg.svd(rows)
    rank = int(np.sum(sizes > 1e-9 * sizes.max(initial=0.0)))
    return vectors[rank:].T
