"""gpcert's own estimators: their `posterior_` is what they predict from."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpcert.adapters.adapter import Supported
from gpcert.adapters.conversion import (
    Conversion,
    LibraryPrediction,
    check_fitted,
    fitted_names,
    with_names,
)
from gpcert.posterior import Posterior

LIBRARY = "gpcert"

EVERY_KERNEL = ("every kernel of gpcert.kernels",)

SUPPORTED = (
    Supported("GPRegressor", "Gaussian", EVERY_KERNEL, "exact"),
    Supported("GPClassifier", "probit, logistic, softmax", EVERY_KERNEL, "Laplace, EP, sparse EP"),
)


def accepts(model: Any) -> bool:
    """Whether the model, or a class that it derives from, is one of `gpcert.models`."""
    return any(base.__module__.startswith("gpcert.models") for base in type(model).__mro__)


def to_posterior(model: Any) -> Conversion:
    """The fitted estimator's posterior, beside what its own methods predict."""
    check_fitted(model, "n_features_in_")
    posterior = with_names(model.posterior_, fitted_names(model))
    assert isinstance(posterior, Posterior)

    def predict(X: np.ndarray) -> LibraryPrediction:
        if posterior.outputs > 1 and posterior.classes is not None:
            return LibraryPrediction(classes=model.predict_proba(X))
        if posterior.classes is not None:
            return LibraryPrediction(probability=model.predict_proba(X)[:, 1])
        mean, deviation = model.predict(X, return_std=True)
        shape = (len(mean), posterior.outputs)
        return LibraryPrediction(mean.reshape(shape), np.square(deviation).reshape(shape))

    return Conversion(posterior, predict)
