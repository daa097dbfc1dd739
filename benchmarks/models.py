"""The fitted classifiers of the benchmark: data, scikit-learn fits, and their cache."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np

TRAINING = 1000
"""Training points of every model."""

TESTS = 200
"""Test points kept."""

SPAM_FEATURES = np.array([5, 7, 16, 17, 19, 21, 23, 25, 52, 53, 57]) - 1
"""The 11 features of the published experiments, counted from 0."""


@dataclass(frozen=True)
class Split:
    """Training and test points."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def synthetic2d(shift: float) -> Split:
    """Two unit Gaussians centred at (shift, 0) and (0, shift), standardised."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(600, 2)) + [shift, 0], rng.normal(size=(600, 2)) + [0, shift]
    X, y = np.concatenate([a, b]), np.repeat([0, 1], 600)
    X = (X - X.mean(0)) / X.std(0)
    order = rng.permutation(len(X))
    return _cut(X[order], y[order])


def spam(data: Path) -> Split:
    """Spambase, 11 features, standardised with the training points."""
    with np.load(data / "spambase.npz") as file:
        X, y = file["X"][:, SPAM_FEATURES].astype(float), file["y"]
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order], y[order]
    return _cut((X - X[:TRAINING].mean(0)) / X[:TRAINING].std(0), y)


def mnist38(data: Path) -> Split:
    """MNIST 3 against 8, averaged to 14x14, pixels in [0, 1]."""
    rng = np.random.default_rng(0)
    with np.load(data / "mnist_358.npz") as file:
        train = _images(file["x_train"], file["y_train"])
        test = _images(file["x_test"], file["y_test"])
    i, j = rng.permutation(len(train[0]))[:TRAINING], rng.permutation(len(test[0]))[:TESTS]
    return Split(train[0][i], train[1][i], test[0][j], test[1][j])


def _images(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    keep = (y == 3) | (y == 8)
    pixels = x[keep].astype(float) / 255
    return pixels.reshape(-1, 14, 2, 14, 2).mean((2, 4)).reshape(-1, 196), y[keep]


def _cut(X: np.ndarray, y: np.ndarray) -> Split:
    end = TRAINING + TESTS
    return Split(X[:TRAINING], y[:TRAINING], X[TRAINING:end], y[TRAINING:end])


def fitted(name: str, data: Path, cache: Path | None) -> tuple[Any, Split]:
    """The Laplace classifier `name` and its data; fitted once if there is a cache."""
    split = {
        "synthetic2d-3": lambda: synthetic2d(3.0),
        "synthetic2d-5": lambda: synthetic2d(5.0),
        "spam": lambda: spam(data),
        "mnist38": lambda: mnist38(data),
    }[name]()
    path = None if cache is None else cache / f"{name}.joblib"
    if path is not None and path.exists():
        return joblib.load(path), split
    model = _fit(split, isotropic=name == "mnist38")
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        joblib.dump(model, path)
    return model, split


def _fit(split: Split, isotropic: bool) -> Any:
    from sklearn.gaussian_process import GaussianProcessClassifier  # noqa: PLC0415  (slow import)
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel  # noqa: PLC0415

    lengths = 3.0 if isotropic else np.ones(split.X.shape[1])
    kernel = ConstantKernel(1.0) * RBF(lengths)
    return GaussianProcessClassifier(kernel, random_state=0).fit(split.X, split.y)
