"""What a model predicts, its slope and the features it looks at, in plain floating point."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpcert.api.rules import decision_candidates
from gpcert.attacks import Decision
from gpcert.attacks.functions import plain_function
from gpcert.committee import Committee, Model
from gpcert.likelihoods import ClassLikelihood
from gpcert.quantities import Mean
from gpcert.regions import Region
from gpcert.several import Outputs


def output_labels(model: Model) -> tuple[Any, ...]:
    """The classes, or the numbers of the outputs of a regression."""
    if isinstance(model, Committee):
        return model.classes
    return model.labels if _probable(model) else tuple(range(model.outputs))


def predictions(model: Model, X: np.ndarray) -> np.ndarray:
    """(n, outputs): probabilities of all classes, two included, or the means.

    >>> from gpcert import Posterior
    >>> from gpcert.kernels import SquaredExponential
    >>> predictions(Posterior(SquaredExponential(1.0), [[0.0]], [2.0]), np.zeros((1, 1))).tolist()
    [[2.0]]
    """
    if isinstance(model, Committee):
        return model.probabilities(X)
    found = model.prediction(X)
    if _probable(model) and not isinstance(model.likelihood, ClassLikelihood):
        return np.concatenate([1.0 - found, found], axis=1)
    return found


def _probable(posterior: Outputs) -> bool:
    """Whether it predicts probabilities of classes."""
    return posterior.likelihood.classifies and posterior.likelihood.has_variance


def features_seen(model: Model) -> np.ndarray:
    """(d,) mask: False where no kernel and no trend of the model depends on the feature.

    A prediction is a function of kernel values, of k(x, x) and of trends, so it cannot change there
    at all. Behind linear features, an input is seen if a feature is that depends on it.

    >>> from gpcert import Posterior
    >>> from gpcert.kernels import ActiveDimensions, SquaredExponential
    >>> kernel = ActiveDimensions(SquaredExponential(1.0), (0, 2))
    >>> features_seen(Posterior(kernel, [[0.0, 0.0, 0.0]], [1.0])).tolist()
    [True, False, True]
    """
    seen = np.zeros(model.dim, dtype=bool)
    for member in model.members:
        own = member.kernel.features_seen(member.points.shape[1]) | np.any(member.slope, axis=0)
        seen |= own if member.features is None else np.any(member.features.matrix[own], axis=0)
    return seen


def decision_gradient(model: Model, x: np.ndarray) -> np.ndarray:
    """(d,): gradient at x of the margin of the decision, in plain floating point.

    For two classes, and in regression, that of the (first) latent mean: it has the direction in
    which the decision changes.
    """
    if isinstance(model, Committee) or isinstance(model.likelihood, ClassLikelihood):
        rule = decision_candidates(model, x, Decision()).guess  # an order needs no proof
        function = rule.goal.function(rule.model)
    else:
        function = plain_function(model, Mean(0, 1))
    return function(x[None])[1][0]


def importance_by_gradient(model: Model, x: np.ndarray, region: Region) -> np.ndarray:
    """All features, the most important first: |slope| times how far the feature may move."""
    reach = np.maximum(region.upper - x, x - region.lower)
    return np.argsort(-np.abs(decision_gradient(model, x)) * reach, kind="stable")
