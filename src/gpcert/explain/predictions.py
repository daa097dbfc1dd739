"""What a model predicts, as one table of outputs, in plain floating point."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpcert.committee import Committee, Model
from gpcert.likelihoods import ClassLikelihood
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
