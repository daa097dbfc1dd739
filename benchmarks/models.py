"""The fitted classifiers of the benchmark: data, scikit-learn fits, and their cache."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from gpcert.study.datasets import Dataset, mnist, spambase, synthetic2d

TRAINING = 1000
"""Training points of every model."""


def dataset(name: str, folder: Path) -> Dataset:
    """The data set of a model, with a random choice of training points and test points."""
    if name.startswith("synthetic2d"):
        return synthetic2d(TRAINING, shift=float(name.rpartition("-")[2]))
    if name == "spam":
        return sampled(spambase(folder, features="paper"))
    return sampled(mnist((3, 8), folder, size=28 if name == "mnist38-28" else 14))


def sampled(whole: Dataset) -> Dataset:
    """TRAINING training points at random, and the test points in random order."""
    rng = np.random.default_rng(0)
    train = rng.permutation(len(whole.X_train))[:TRAINING]
    test = rng.permutation(len(whole.X_test))
    return replace(
        whole,
        X_train=whole.X_train[train],
        y_train=whole.y_train[train],
        X_test=whole.X_test[test],
        y_test=whole.y_test[test],
    )


def fitted(name: str, folder: Path, cache: Path | None) -> tuple[Any, Dataset]:
    """The Laplace classifier `name` and its data; fitted once if there is a cache."""
    data = dataset(name, folder)
    path = None if cache is None else cache / f"{name}.joblib"
    if path is not None and path.exists():
        return joblib.load(path), data
    model = GaussianProcessClassifier(_kernel(name, data.dim), random_state=0)
    model.fit(data.X_train, data.y_train)
    _check(model, data)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        joblib.dump(model, path)
    return model, data


def _kernel(name: str, dim: int) -> Any:
    """Scikit-learn's default bounds but for SPAM; a length-scale per feature, for images one.

    Without bounds the fit of SPAM ends at length-scales above 1e4, where scikit-learn's Laplace
    iteration does not converge and the model calls every e-mail spam.
    """
    if name == "spam":
        each: Any = np.ones(dim)
        return ConstantKernel(1.0, (1e-2, 1e3)) * RBF(each, (0.1, 100.0))
    lengths: Any = {"mnist38": 3.0, "mnist38-28": 6.0}.get(name, np.ones(dim))
    return ConstantKernel(1.0) * RBF(lengths)


def _check(model: Any, data: Dataset) -> None:
    """Refuse a model that says nothing: a mode that is none, or poor predictions."""
    base = model.base_estimator_
    gap = base.kernel_(base.X_train_) @ (base.y_train_ - base.pi_) - base.f_cached
    accuracy = model.score(data.X_test, data.y_test)
    if not (np.abs(gap).max() < 1e-3 and accuracy > 0.85):
        raise SystemExit(
            f"{data.name}: the fit failed, accuracy {accuracy:.3f}, "
            f"mode off by {np.abs(gap).max():.3g}"
        )


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description="Fit all models into a cache folder.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("cache", type=Path)
    given = parser.parse_args()
    for each in ("synthetic2d-3", "synthetic2d-5", "spam", "mnist38"):
        model, data = fitted(each, given.folder, given.cache)
        print(each, model.kernel_, f"accuracy {model.score(data.X_test, data.y_test):.3f}")
