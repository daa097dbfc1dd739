"""The classifiers of the experiments, trained as in the paper."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpcert.datasets import Dataset
from gpcert.experiments.pixels import key_patch
from gpcert.kernels import SquaredExponential
from gpcert.models import GPClassifier

__all__ = ["IMAGES", "accuracy", "ball_words", "fitted", "labelled"]

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
    of `GPClassifier`."""
    kernel = SquaredExponential(np.ones(data.dim))
    model = GPClassifier(kernel, max_epochs=epochs, random_state=random_state, **options)
    return model.fit(data.X_train, data.y_train)


def ball_words(name: str, x: np.ndarray, pixels: int) -> dict[str, Any]:
    """`features` and `domain` of the balls around x: all features, of images a patch in [0, 1]."""
    if name not in IMAGES:
        return {}
    return {"features": key_patch(x, pixels), "domain": (0.0, 1.0)}


def accuracy(model: GPClassifier, data: Dataset) -> float:
    """The share of test points that are classified rightly."""
    return float(model.score(data.X_test, data.y_test))
