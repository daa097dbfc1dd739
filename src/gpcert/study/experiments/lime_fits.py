"""LIME's weights (Ribeiro, Singh and Guestrin 2016), written out so that every machine has them.

Two versions, as the paper does not say which it means. `lime_tabular` is the algorithm of the
package `lime` 0.2.0.1 for tables without discretisation (also behind `gpcert.explain.lime`, where
the package is installed): random points of the data's spread, weighted by their distance from x,
ridge regression. `lime_of_scripts` is what the scripts published with the paper run: for tables x
plus standard normal noise, for images pixels set to 0 or left, weighted by the cosine distance from
x, least squares. Of an image only pixels that are not 0 can get a weight there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpcert.study.datasets import Dataset

Predict = Callable[[np.ndarray], np.ndarray]
"""Points (n, d) to predictions (n, outputs)."""

RIDGE = 1.0
TABULAR_WIDTH = 0.75
SCRIPTS_WIDTH = 0.25
LEAST_WEIGHT = 0.01


LIMES = ("LIME (package)", "LIME (scripts)")
"""The two versions, as tables and figures call them."""


def limes(
    model: Any, output: int, x: np.ndarray, data: Dataset, settings: Any, *, image: bool
) -> dict[str, np.ndarray]:
    """(d,) the weights for one class at x by either version; `settings` have samples and a seed."""

    def predict(Z: np.ndarray) -> np.ndarray:
        return model.predict_proba(Z)[:, output : output + 1]

    how = (settings.samples, settings.random_state)
    package = lime_tabular(predict, x, data.X_train, *how)[0]
    scripts = lime_of_scripts(predict, x, *how, image=image)[0]
    return dict(zip(LIMES, (package, scripts), strict=True))


def lime_tabular(
    predict: Predict, x: np.ndarray, background: np.ndarray, samples: int, random_state: int
) -> np.ndarray:
    """(outputs, d) slopes per standard deviation of a feature.

    >>> def line(Z):
    ...     return Z @ np.array([[1.0], [-2.0]])
    >>> found = lime_tabular(line, np.zeros(2), np.eye(2), 2000, 0)
    >>> bool(found[0, 0] > 0 > found[0, 1])
    True
    """
    mean, spread = background.mean(axis=0), background.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    points = mean + spread * np.random.default_rng(random_state).standard_normal((samples, x.size))
    points[0] = x
    scaled = (points - mean) / spread
    distance = np.linalg.norm(scaled - scaled[0], axis=1)
    width = TABULAR_WIDTH * np.sqrt(x.size)
    return _slopes(scaled, predict(points), np.exp(-0.5 * (distance / width) ** 2), RIDGE)


def lime_of_scripts(
    predict: Predict, x: np.ndarray, samples: int, random_state: int, *, image: bool
) -> np.ndarray:
    """(outputs, d) slopes; 0 for the pixels of an image that are 0.

    >>> def line(Z):
    ...     return Z @ np.array([[1.0], [-2.0], [3.0]])
    >>> lime_of_scripts(line, np.array([1.0, 0.5, 0.0]), 500, 0, image=True).round(6).tolist()
    [[1.0, -2.0, 0.0]]
    """
    rng = np.random.default_rng(random_state)
    if image:
        points = x * rng.integers(0, 2, size=(samples, x.size))
    else:
        points = x + rng.standard_normal((samples, x.size))
    points[0] = x
    lengths = np.linalg.norm(points, axis=1) * np.linalg.norm(x)
    # an image all 0 has no direction: as far away as a right angle
    cosine = np.divide(points @ x, lengths, out=np.zeros(samples), where=lengths > 0)
    weights = np.exp(-0.5 * ((1.0 - cosine) / SCRIPTS_WIDTH) ** 2)
    seen = x > 0 if image else np.ones(x.size, dtype=bool)
    predicted = predict(points)
    found = np.zeros((predicted.shape[1], x.size))
    found[:, seen] = _slopes(points[:, seen], predicted, np.maximum(weights, LEAST_WEIGHT), 0.0)
    return found


def _slopes(Z: np.ndarray, values: np.ndarray, weights: np.ndarray, ridge: float) -> np.ndarray:
    """(outputs, d): weighted regression with an intercept that costs nothing."""
    share = weights / weights.sum()
    root = np.sqrt(weights)[:, None]
    A = root * (Z - share @ Z)
    B = root * (values - share @ values)
    if ridge:
        A = np.concatenate([A, np.sqrt(ridge) * np.eye(Z.shape[1])])
        B = np.concatenate([B, np.zeros((Z.shape[1], values.shape[1]))])
    return np.linalg.lstsq(A, B, rcond=None)[0].T
