"""What is decided at a point, in plain floating point: from a model and the user's words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpcert.attacks.class_margins import ClassMargins, PairVoteMargins, RestMargins, VoteMargins
from gpcert.attacks.margins import Margins
from gpcert.attacks.single_margins import BinaryMargins, DeviationMargins, LevelMargins
from gpcert.committee import Committee, Model, check_class_weight
from gpcert.errors import InputError
from gpcert.likelihoods import ClassLikelihood
from gpcert.posterior import Posterior


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
        labels = model.labels
        if decision.delta is not None or decision.threshold is not None:
            raise InputError(
                f"expected class_weight= for {len(labels)} classes, got delta= or threshold="
            )
        weight = None if decision.class_weight is None else _weights(labels, decision.class_weight)
        if not isinstance(model, Committee):
            return ClassMargins(model, np.ones(len(labels)) if weight is None else weight).at(X)
        checked = np.asarray(check_class_weight(model, None if weight is None else tuple(weight)))
        if model.scheme != "one_vs_rest":
            return (PairVoteMargins(model) if model.shared else VoteMargins(model)).at(X)
        return RestMargins(model, checked).at(X)
    if isinstance(model, Posterior) and model.likelihood.classifies:
        threshold = decision.threshold
        if decision.class_weight is not None:
            model.check_has_variance("class_weight")
            first, second = _weights(model.labels, decision.class_weight)
            threshold = float(first / (first + second))
        return BinaryMargins(model, X, threshold)
    if decision.delta is not None:
        return DeviationMargins(model, X, decision.delta, decision.output_norm)
    if decision.threshold is None:
        raise InputError(
            "an attack on a regression needs delta= (how far the mean may move) or threshold= (a "
            "level that it must not cross)"
        )
    return LevelMargins(model, X, decision.threshold)


def _weights(labels: tuple[Any, ...], weight: Mapping[Any, float] | Sequence[float]) -> np.ndarray:
    values = [weight[label] for label in labels] if isinstance(weight, Mapping) else list(weight)
    found = np.asarray(values, dtype=np.float64)
    if found.shape != (len(labels),) or not np.all(found > 0):
        raise InputError(f"class_weight: expected {len(labels)} positive weights, got {weight!r}")
    return found
