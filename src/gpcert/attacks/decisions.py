"""What is decided at a point, in plain floating point: from a model and the user's words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpcert.attacks.functions import (
    LazyFunction,
    class_predictions,
    lazy_function,
    least_sum_of_means,
)
from gpcert.attacks.margins import DeviationMargins, Judge, Margins
from gpcert.class_layout import class_layout
from gpcert.committee import Committee, Model, check_class_weight, class_weights, pair_weights
from gpcert.errors import InputError
from gpcert.likelihoods import ClassLikelihood, ScalarLikelihood
from gpcert.posterior import Posterior
from gpcert.quantities import ClassSums, Probability
from gpcert.quantities.committee import committee_margin
from gpcert.quantities.compound import margins
from gpcert.several import Outputs


@dataclass(frozen=True)
class Decision:
    """What the user says about the decision; see `gpcert.certify`."""

    threshold: float | None = None
    class_weight: Mapping[Any, float] | Sequence[float] | None = None
    delta: float | None = None
    output_norm: float = math.inf


def decision_margins(model: Model, X: np.ndarray, decision: Decision) -> Margins:
    """The decisions that the model makes at X (n, d), with their margins.

    >>> from gpcert.kernels import SquaredExponential
    >>> from gpcert.posterior import Posterior
    >>> p = Posterior(SquaredExponential(1.0), [[0.0]], [1.0])
    >>> margins = decision_margins(p, np.array([[0.0]]), Decision(threshold=0.5))
    >>> margins.margin(np.array([[0.0], [9.0]]), np.array([0, 0])).round(3).tolist()
    [0.5, -0.5]
    """
    if isinstance(model, Committee) or isinstance(model.likelihood, ClassLikelihood):
        if decision.delta is not None or decision.threshold is not None:
            raise InputError(
                f"expected class_weight= for {len(model.labels)} classes, got delta= or threshold="
            )
        costs = class_weights(model.labels, decision.class_weight)
        if isinstance(model, Committee):
            return _of_committee(model, X, None if decision.class_weight is None else costs)
        return _of_classes(model, X, costs)
    if isinstance(model, Posterior) and model.likelihood.classifies:
        threshold = decision.threshold
        if decision.class_weight is not None:
            model.check_has_variance("class_weight")
            first, second = class_weights(model.labels, decision.class_weight)
            threshold = first / (first + second)
        return _of_two(model, X, threshold)
    if decision.delta is not None:
        return DeviationMargins(model, X, decision.delta, decision.output_norm)
    if decision.threshold is None:
        raise InputError(
            "an attack on a regression needs delta= (how far the mean may move) or threshold= (a "
            "level that it must not cross)"
        )
    return _of_level(model, X, decision.threshold)


def _of_two(model: Posterior, X: np.ndarray, threshold: float | None) -> Margins:
    """Two classes: `sign (pi - threshold)`, by default the sign of the latent mean.

    Of a model that is a mean alone pi is that mean, and the threshold 0 by default.
    """
    likelihood = model.likelihood
    assert isinstance(likelihood, ScalarLikelihood)
    probable = likelihood.has_variance
    by_latent = threshold is None and likelihood.symmetric
    level = (0.5 if probable else 0.0) if threshold is None else threshold

    def choose(X: np.ndarray) -> np.ndarray:
        second = model.mean(X) > 0 if by_latent else model.prediction(X) > level
        return second[:, 0].astype(int)

    predicted = lazy_function(model, Probability(likelihood, 0, 1))
    latent = least_sum_of_means(model, np.ones((1, 1)))
    judges = [Judge(predicted, latent, sign, (level, 0.0)) for sign in (-1.0, 1.0)]
    quantity = f"probability of class {model.labels[1]}" if probable else "decision function"
    return Margins(
        X,
        choose,
        model.labels,
        judges,
        lambda X, _: model.prediction(X)[:, 0],
        quantity,
        level,
        by_latent,
    )


def _of_level(model: Outputs, X: np.ndarray, level: float) -> Margins:
    """Regression: `sign (mu - level)`."""
    mean = least_sum_of_means(model, np.ones((1, 1)))
    return Margins(
        X,
        lambda X: (model.mean(X)[:, 0] > level).astype(int),
        (None, None),
        [Judge(mean, mean, sign, (level, level)) for sign in (-1.0, 1.0)],
        lambda X, _: model.mean(X)[:, 0],
        "mean",
        level,
    )


def _of_classes(model: Outputs, X: np.ndarray, costs: tuple[float, ...]) -> Margins:
    """`min_j (w_i pi_i - w_j pi_j)`; of the latent means `min_j (mu_i - mu_j)`."""
    likelihood = model.likelihood
    assert isinstance(likelihood, ClassLikelihood)
    layout, searched = class_layout(model)
    predicted = class_predictions(searched, layout, likelihood)
    m, mixing = layout.classes, likelihood.mixed(model.outputs)

    def sums(winner: int) -> ClassSums:
        return ClassSums(layout, likelihood, margins(m, winner, costs))

    return Margins(
        X,
        lambda X: np.argmax(np.asarray(costs) * predicted(X)[0], axis=1),
        model.labels,
        [Judge(lazy_function(searched, sums(c)), _lead(model, mixing, c)) for c in range(m)],
        lambda X, numbers: predicted(X)[0][np.arange(len(X)), numbers],
        "probability of the decided class",
    )


def _lead(model: Model, means: np.ndarray, winner: int) -> LazyFunction:
    """The least lead of a class over the others, from its mean's weights (m, outputs)."""
    return least_sum_of_means(model, means[winner] - np.delete(means, winner, axis=0))


def _of_committee(model: Committee, X: np.ndarray, weight: tuple[float, ...] | None) -> Margins:
    """One-vs-rest: `min_j (w_i F_i - w_j F_j)`, of the latent means `min_j (mu_i - mu_j)`. Votes:
    the lead in scores, and the least mean in favour of the winner over its pairs."""
    m, costs = len(model.classes), np.asarray(check_class_weight(model, weight))
    rest = model.scheme == "one_vs_rest"

    def latent(winner: int) -> LazyFunction:
        if rest:
            return _lead(model, np.eye(m), winner)
        signs = pair_weights(m, winner)
        return least_sum_of_means(model, np.diag(signs)[signs != 0])

    def look(X: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        rows = np.arange(len(X))
        if rest:
            return model.probabilities(X)[rows, numbers]
        scores = model.scores(X)
        own = scores[rows, numbers]
        scores[rows, numbers] = -np.inf
        return own - scores.max(axis=1)

    return Margins(
        X,
        lambda X: np.argmax(costs * model.scores(X), axis=1),
        model.classes,
        [
            Judge(lazy_function(model, committee_margin(model, c, weight)), latent(c))
            for c in range(m)
        ],
        look,
        "probability of the decided class" if rest else "lead of the decided class",
    )
