"""The fitted classifiers of the benchmark: data, scikit-learn fits, and their cache."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from gpcert.datasets import Dataset, mnist, spambase, synthetic2d

TRAINING = 1000
"""Training points of every model."""


def dataset(name: str, folder: Path) -> Dataset:
    """The data set of a model, with a random choice of training points and test points."""
    if name.startswith("synthetic2d"):
        return synthetic2d(TRAINING, shift=float(name.rpartition("-")[2]))
    whole = spambase(folder, paper_features=True) if name == "spam" else mnist((3, 8), folder)
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
    # one length-scale for images, one a feature elsewhere
    lengths: Any = 3.0 if name == "mnist38" else np.ones(data.dim)
    kernel = ConstantKernel(1.0) * RBF(lengths)
    model = GaussianProcessClassifier(kernel, random_state=0).fit(data.X_train, data.y_train)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        joblib.dump(model, path)
    return model, data


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description="Fit all models into a cache folder.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("cache", type=Path)
    given = parser.parse_args()
    for each in ("synthetic2d-3", "synthetic2d-5", "spam", "mnist38"):
        model, data = fitted(each, given.folder, given.cache)
        print(each, model.kernel_, f"accuracy {model.score(data.X_test, data.y_test):.3f}")
