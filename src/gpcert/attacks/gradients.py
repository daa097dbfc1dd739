"""`predict_gradient`: predictions and their gradients in plain floating point."""

from __future__ import annotations

from typing import Literal

import numpy as np

from gpcert.attacks.class_margins import (
    all_pair_weights,
    class_predictions,
    member_means,
    member_values,
    vote_scores,
    weighted_gradient,
)
from gpcert.attacks.functions import Both, means_and_gradients, plain_function, stacked
from gpcert.committee import Committee, Model
from gpcert.errors import InputError
from gpcert.likelihoods import ClassLikelihood, ScalarLikelihood
from gpcert.posterior import Posterior
from gpcert.quantities import Probability

ROWS = 1024
"""Points whose kernel values are held at once."""


def prediction_and_gradient(
    model: Model, X: np.ndarray, quantity: Literal["probability", "mean"] | None = None
) -> Both:
    """Values (n, m) and gradients (n, m, d) at X (n, d); see `gpcert.predict_gradient`."""
    parts = [_block(model, X[i : i + ROWS], quantity) for i in range(0, len(X), ROWS)]
    if not parts:
        parts = [tuple(part[:0] for part in _block(model, model.places[:1], quantity))]
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


@np.errstate(all="ignore")
def _block(model: Model, X: np.ndarray, quantity: str | None) -> Both:
    if quantity not in {None, "probability", "mean"}:
        raise InputError(f"quantity: expected 'probability' or 'mean', got {quantity!r}")
    if isinstance(model, Committee):
        return _committee(model, X, quantity)
    if quantity == "probability":
        model.check_has_variance("quantity 'probability'")
    if quantity == "mean" or not (model.likelihood.classifies and model.likelihood.has_variance):
        if quantity == "probability":
            raise InputError("quantity: a regression model has no probability; use 'mean'")
        return means_and_gradients(model, X)
    if isinstance(model.likelihood, ClassLikelihood):
        found = class_predictions(model, X)
        rows = np.eye(found[1].probabilities.shape[1])
        slopes = [weighted_gradient(found, np.tile(row, (len(X), 1))) for row in rows]
        return found[1].probabilities, np.stack(slopes, axis=1)
    assert isinstance(model, Posterior), "separate outputs are of several classes"
    assert isinstance(model.likelihood, ScalarLikelihood)
    return stacked([plain_function(model, Probability(model.likelihood, 0, 1))(X)])


def _committee(committee: Committee, X: np.ndarray, quantity: str | None) -> Both:
    if committee.shared:
        if quantity == "probability":
            committee.check_has_probabilities()
        return _block(committee.members[0], X, "mean")  # a value for every pair of classes
    if quantity == "mean":
        return member_means(committee, X)
    means, F, slopes = member_values(committee, X)
    if committee.scheme == "one_vs_one":
        if quantity == "probability":
            committee.check_has_probabilities()
        return vote_scores(all_pair_weights(committee), means, F, slopes)
    total = F.sum(axis=1, keepdims=True)
    safe = np.where(total != 0, total, 1.0)
    value = np.where(total != 0, F / safe, 0.0)
    by_x = (slopes - value[:, :, None] * slopes.sum(axis=1, keepdims=True)) / safe[:, :, None]
    return value, by_x
