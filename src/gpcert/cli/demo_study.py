"""The demo's two problems: models fitted by scikit-learn, points chosen, what is proved of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from gpcert.adapters import as_posterior
from gpcert.api import certified_radius, certify_many, prediction_range
from gpcert.certificates import CertificateTable, PredictionRange, Radius
from gpcert.datasets import Dataset
from gpcert.posterior import Posterior
from gpcert.regions import Ball
from gpcert.search import Budget, stop_if_interrupted


@dataclass(frozen=True, eq=False)
class Study:
    """Certificates and ranges of chosen test points, radius after radius."""

    data: Dataset
    posterior: Posterior
    accuracy: float
    chosen: list[int]
    radii: tuple[float, ...]
    certificates: CertificateTable
    ranges: list[PredictionRange]


def fit(data: Dataset) -> GaussianProcessClassifier:
    """scikit-learn's Laplace classifier with a squared exponential kernel."""
    kernel = ConstantKernel(10.0) * RBF(2.0)
    return GaussianProcessClassifier(kernel, random_state=0).fit(data.X_train, data.y_train)


def study(
    data: Dataset, radii: tuple[float, ...], count: int, domain: Any, budget: Budget
) -> Study:
    """Fit a model and certify `count` of its test points at each radius."""
    model = fit(data)
    posterior = as_posterior(model)
    assert isinstance(posterior, Posterior), "the demo's problems have two classes"
    chosen = _spread(posterior, data.X_test, count)
    points = data.X_test[chosen]
    certificates, ranges = [], []
    for radius in radii:
        table = certify_many(
            posterior, points, radius, domain=domain, budget=budget, progress=False
        )
        if not table.complete:
            raise KeyboardInterrupt
        certificates += table
        for x in points:
            found = prediction_range(posterior, Ball(x, radius, domain=domain), budget=budget)
            stop_if_interrupted(found.reason)
            ranges.append(found)
    return Study(
        data=data,
        posterior=posterior,
        accuracy=float(model.score(data.X_test, data.y_test)),
        chosen=chosen,
        radii=radii,
        certificates=CertificateTable(tuple(certificates)),
        ranges=ranges,
    )


def radii(done: Study, chosen: Sequence[int], domain: Any, budget: Budget) -> list[Radius]:
    """Certified radii of some test points."""
    found = []
    for index in chosen:
        x = done.data.X_test[index]
        found.append(certified_radius(done.posterior, x, domain=domain, budget=budget))
        stop_if_interrupted(found[-1].reason)
    return found


def _spread(posterior: Posterior, X: np.ndarray, count: int) -> list[int]:
    """The least certain test point, then always the one farthest from those chosen so far."""
    chosen = [int(np.argmin(np.abs(posterior.prediction(X)[:, 0] - 0.5)))]
    while len(chosen) < min(count, len(X)):
        distances = np.linalg.norm(X[:, None] - X[chosen], axis=-1).min(axis=1)
        chosen.append(int(np.argmax(distances)))
    return chosen
