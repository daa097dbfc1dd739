"""The gradient of what a decision is made from: a ranking of features without a proof."""

from __future__ import annotations

import numpy as np

from gpcert.api.rules import RuleOptions, decision_candidates
from gpcert.attacks.functions import PlainFunction, scalar_function
from gpcert.committee import Committee, Model
from gpcert.likelihoods import ClassLikelihood
from gpcert.quantities import Mean
from gpcert.regions import Region


def decision_gradient(model: Model, x: np.ndarray) -> np.ndarray:
    """(d,): gradient at x of the margin of the decision, in plain floating point.

    For two classes, and in regression, that of the (first) latent mean: it has the direction in
    which the decision changes.
    """
    return _function(model, x)(x[None])[1][0]


def _function(model: Model, x: np.ndarray) -> PlainFunction:
    if not isinstance(model, Committee) and not isinstance(model.likelihood, ClassLikelihood):
        return scalar_function(model.members[0], Mean(0, 1))
    rule = decision_candidates(model, x, RuleOptions()).guess  # an order needs no proof
    return rule.goal.function(rule.model)


def importance_by_gradient(model: Model, x: np.ndarray, region: Region) -> np.ndarray:
    """All features, the most important first: |slope| times how far the feature may move."""
    reach = np.maximum(region.upper - x, x - region.lower)
    return np.argsort(-np.abs(decision_gradient(model, x)) * reach, kind="stable")
