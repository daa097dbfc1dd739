"""`effects`: how much a feature raises or lowers a prediction, as intervals that hold."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api.methods import Method, MethodName
from gpcert.api.questions import Quantity, RangeQuestion, range_question
from gpcert.arrays import Backend, backend_from_name
from gpcert.committee import Model
from gpcert.errors import InputError
from gpcert.explain.arguments import check_points, feature_radius, full_domain
from gpcert.explain.dependence import features_seen
from gpcert.explain.effects_record import Effects
from gpcert.explain.record import named
from gpcert.explain.sides import Effort, Intervals, Sides, one_sided_ranges
from gpcert.posterior import Posterior
from gpcert.rounding import TINY, gamma
from gpcert.search import Budget

__all__ = ["effects"]

DEFAULT_TOLERANCE = 1e-3
"""Width of an effect's interval: a probability, or a part of the prior's standard deviation."""


def effects(
    model: Any,
    X: Any,
    radius: Any,
    *,
    features: Any = None,
    domain: Any = None,
    quantity: Quantity | None = None,
    tol: float | None = None,
    budget: Budget | None = None,
    backend: str | Backend = "numpy",
    random_state: int | None = 0,
    method: MethodName = "taylor",
    n_jobs: int = 1,
) -> Effects:
    """The paper's interpretability metric, as intervals that provably contain it.

    With `T+ = [x, x + r e_i]` and `T- = [x - r e_i, x]`, the effect of feature i on a prediction pi
    is ("Interpretability Analysis" in the paper)

        Delta_i(x) = (max_T+ pi - max_T- pi) + (min_T+ pi - min_T- pi):

    positive where raising the feature raises pi. `Delta_i / (2 r)` tends to the derivative as r
    goes to 0. Each of the four numbers is enclosed by branch and bound; the sum is rounded outward.

    Parameters
    ----------
    model : a `Posterior`, or a fitted model that an adapter converts.
    X : one point (d,) or several (n, d); `Effects.mean()` averages over them.
    radius : how far a feature moves: a number, one per feature, or a dict by feature, which then
        names the features to explain.
    features : features to explain, by index or name; all by default.
    domain : (low, high), the valid inputs: a feature does not leave them.
    quantity : as in `prediction_range`. All outputs or classes are explained; of two classes the
        second (`Effects.of` turns it to the first).
    tol : width at which an interval is good enough; by default 0.001 for probabilities, else 0.001
        prior standard deviations.
    budget : of the whole call; when it ends the intervals so far are returned. n_jobs: threads.
    backend, random_state, method : as in `prediction_range`.

    Squared exponentials bound all features of all points in shared batches. A feature that the
    kernel does not look at, or that the domain does not let move, has exactly [0, 0].

    Example
    -------
    >>> import gpcert
    >>> from gpcert import explain
    >>> from gpcert.kernels import SquaredExponential
    >>> p = gpcert.Posterior(SquaredExponential(1.0), [[0.0, 0.0], [2.0, 0.0]], [-1.0, 1.0])
    >>> found = explain.effects(p, [1.0, 0.0], radius=0.5)
    >>> bool(found.lower[0, 0, 0] > 0)  # the mean grows with the first feature
    True
    >>> bool(found.lower[0, 0, 1] <= 0 <= found.upper[0, 0, 1])  # and is even in the second
    True
    """
    posterior = as_posterior(model)
    points = check_points(posterior, X)
    chosen, radii = feature_radius(posterior, radius, features)
    ends = full_domain(domain, points)
    question = range_question(posterior, quantity)
    _ = Method(method)  # refuses unknown names
    effort = Effort(
        _tolerances(question, posterior, tol) / 4.0,
        budget or Budget(),
        backend_from_name(backend),
        n_jobs,
        random_state,
        method,
    )
    moving = features_seen(posterior)[chosen]
    intervals = Intervals(points, chosen[moving], radii[moving], ends)
    sides = one_sided_ranges(question, posterior, intervals, effort)
    lower, upper = _differences(sides, question.quantity)
    still = ~np.any(intervals.lengths()[0] > 0, axis=-1)
    shape = (len(points), len(question.labels), len(chosen))
    least, most = np.zeros(shape), np.zeros(shape)
    least[:, :, moving] = np.where(still[:, None], 0.0, np.moveaxis(lower, 2, 1))
    most[:, :, moving] = np.where(still[:, None], 0.0, np.moveaxis(upper, 2, 1))
    names = named(posterior.feature_names, posterior.dim)
    return Effects(
        X=points,
        lower=least,
        upper=most,
        features=tuple(int(j) for j in chosen),
        feature_names=tuple(names[j] for j in chosen),
        outputs=_outputs(posterior, question),
        quantity=question.quantity,
        radius=radii,
        reason=sides.reason,
        boxes=sides.boxes,
        seconds=sides.seconds,
        binary=_is_binary(posterior, question),
    )


def _is_binary(model: Model, question: RangeQuestion) -> bool:
    """Whether the one output is the probability of the second of two classes."""
    single = isinstance(model, Posterior) and not question.classes
    return single and question.quantity == "probability"


def _outputs(model: Model, question: RangeQuestion) -> tuple[Any, ...]:
    if _is_binary(model, question):
        assert isinstance(model, Posterior)
        return (model.labels[1],)
    return question.labels


def _tolerances(question: RangeQuestion, model: Model, tol: float | None) -> np.ndarray:
    """Per output the width that an effect may have."""
    count = len(question.labels)
    if tol is not None:
        if not (isinstance(tol, int | float) and math.isfinite(tol) and tol > 0):
            raise InputError(f"tol: expected a positive number, got {tol!r}")
        return np.full(count, float(tol))
    if question.quantity == "probability":
        return np.full(count, DEFAULT_TOLERANCE)
    assert isinstance(model, Posterior), "a committee has probabilities only"
    prior = np.sqrt(float(np.max(model.kernel.diagonal(model.points))))
    spread = np.broadcast_to(model.scale * prior, (count,))
    power = 2 if question.quantity == "variance" else 1
    return np.maximum(DEFAULT_TOLERANCE * spread**power, np.finfo(float).tiny)


def _differences(sides: Sides, quantity: str) -> tuple[np.ndarray, np.ndarray]:
    """(P, F, C) bounds of Delta, rounded outward by the size of what cancels."""
    limits = (0.0, 1.0) if quantity == "probability" else (-np.inf, np.inf)
    low, high = (np.maximum(a, limits[0]) for a in (sides.minimum_lower, sides.maximum_lower))
    low_up, high_up = (np.minimum(a, limits[1]) for a in (sides.minimum_upper, sides.maximum_upper))
    above, below = 0, 1
    least = (high[:, :, above], -high_up[:, :, below], low[:, :, above], -low_up[:, :, below])
    most = (high_up[:, :, above], -high[:, :, below], low_up[:, :, above], -low[:, :, below])
    return -_sum_up([-term for term in least]), _sum_up(list(most))


def _sum_up(terms: list[np.ndarray]) -> np.ndarray:
    """Upper bound of a sum of four numbers that may cancel; infinite where a term is."""
    total, size = sum(terms), sum(abs(term) for term in terms)
    with np.errstate(invalid="ignore"):
        found = np.asarray(total + (gamma(8) * size + TINY))
    return np.where(np.isnan(found), np.inf, found)
