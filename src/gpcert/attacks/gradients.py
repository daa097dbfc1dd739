"""`predict_gradient`: predictions and their gradients in plain floating point."""

from __future__ import annotations

from typing import Literal

import numpy as np

from gpcert.attacks.functions import (
    Both,
    class_predictions,
    means_and_gradients,
    plain_function,
    stacked,
)
from gpcert.class_layout import class_layout
from gpcert.committee import Committee, Model, pair_weights
from gpcert.errors import InputError
from gpcert.likelihoods import ClassLikelihood, ScalarLikelihood
from gpcert.posterior import Posterior
from gpcert.quantities import Probability, Share
from gpcert.quantities.committee import member_probabilities

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
        return means_and_gradients(model, X, model.outputs)
    if isinstance(model.likelihood, ClassLikelihood):
        layout, searched = class_layout(model)
        found, gradient_of = class_predictions(searched, layout, model.likelihood)(X)
        rows = np.eye(layout.classes)
        slopes = [gradient_of(np.tile(row, (len(X), 1))) for row in rows]
        return found, np.stack(slopes, axis=1)
    assert isinstance(model, Posterior), "separate outputs are of several classes"
    assert isinstance(model.likelihood, ScalarLikelihood)
    return stacked([plain_function(model, Probability(model.likelihood, 0, 1))(X)])


def _committee(committee: Committee, X: np.ndarray, quantity: str | None) -> Both:
    votes = committee.scheme != "one_vs_rest"
    if votes and quantity == "probability":
        committee.check_has_probabilities()
    if committee.shared:
        return _block(committee.members[0], X, "mean")  # a value for every pair of classes
    if quantity == "mean":
        return means_and_gradients(committee, X, len(committee.members))
    parts, m = member_probabilities(committee), len(committee.classes)
    F, slopes = stacked([plain_function(committee, part)(X) for part in parts])
    if votes:  # the gradients are those of the sums of confidences
        weights = np.stack([pair_weights(m, c) for c in range(m)])
        steep = 1.0 / (3.0 * (np.abs(F @ weights.T) + 1.0) ** 2)
        return committee.scores(X), np.einsum("kc,cp,kpd->kcd", steep, weights, slopes)
    shares = [Share(parts, c, 1) for c in range(m)]
    values = np.stack([share.value(F) for share in shares], axis=1)
    by_F = np.stack([share.slopes(F) for share in shares], axis=1)
    return values, np.einsum("kcp,kpd->kcd", by_F, slopes)
