"""The classifiers of the experiments, trained as in the paper."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gpcert.datasets import Dataset
from gpcert.experiments.pixels import key_patch
from gpcert.experiments.sources import Sources, subset
from gpcert.kernels import SquaredExponential
from gpcert.models import GPClassifier

IMAGES = ("digits38", "digits358", "mnist38", "mnist358", "fashion-ts", "fashion-tsp")

LABELS = {
    "synthetic2d": "Synthetic2D",
    "synthetic2d-published": "Synthetic2D (shift 5)",
    "digits38": "digits 3/8 (8x8)",
    "digits358": "digits 3/5/8 (8x8)",
    "spam": "SPAM",
    "mnist38": "MNIST38",
    "mnist358": "MNIST358",
    "fashion-ts": "F-MNIST-TS",
    "fashion-tsp": "F-MNIST-TSP",
}


def labelled(name: str) -> str:
    """A data set's name as the paper writes it.

    >>> labelled("mnist38")
    'MNIST38'
    """
    return LABELS[name]


def fitted(data: Dataset, epochs: int, random_state: int = 0, **options: Any) -> GPClassifier:
    """A squared exponential with one length-scale per feature, started at 1 as in the published
    scripts, its parameters by maximum likelihood within `epochs` evaluations; `options` are those
    of `GPClassifier`. That few epochs do not converge, or that the variance ends at its bound where
    classes can be separated, is the experiment's own doing: no warning."""
    kernel = SquaredExponential(np.ones(data.dim))
    model = GPClassifier(kernel, max_epochs=epochs, random_state=random_state, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(data.X_train, data.y_train)


@dataclass(frozen=True)
class Case:
    """One data set, and epochs of training."""

    data: str
    epochs: int = 10


def trained(
    settings: Any, arguments: Mapping[str, Any], sources: Sources, points: int | None, **words: Any
) -> tuple[Any, Dataset, GPClassifier]:
    """The case of a piece (`one_per_case`), its data with so many test points (None: all of them),
    and the model."""
    case = settings.cases[arguments["case"]]
    whole = sources.load(case.data)
    count = len(whole.X_test) if points is None else points
    data = subset(whole, settings.train, count, settings.random_state)
    return case, data, fitted(data, case.epochs, settings.random_state, **words)


def ball_words(name: str, x: np.ndarray, pixels: int) -> dict[str, Any]:
    """`features` and `domain` of the balls around x: all features, of images a patch in [0, 1]."""
    if name not in IMAGES:
        return {}
    return {"features": key_patch(x, pixels), "domain": (0.0, 1.0)}


def fit_cells(model: GPClassifier, data: Dataset) -> dict[str, Any]:
    """What a table says about a trained model: test accuracy, evidence, evaluations of it, and the
    variance of the kernel."""
    return {
        "accuracy": float(model.score(data.X_test, data.y_test)),
        "evidence": float(model.evidence_),
        "evaluations": len(model.trace_),
        "variance": float(model.kernel_.config()["variance"]),
    }
