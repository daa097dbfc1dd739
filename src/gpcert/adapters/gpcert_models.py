"""gpcert's own estimators: their `posterior_` is what they predict from."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpcert.adapters import adapter
from gpcert.adapters.adapter import Conversion, LibraryPrediction
from gpcert.model.posterior import Posterior


def convert(model: Any) -> Conversion:
    """The fitted estimator's posterior, beside what its own methods predict."""
    adapter.check_fitted(model, "n_features_in_")
    posterior = adapter.with_names(model.posterior_, adapter.fitted_names(model))
    assert isinstance(posterior, Posterior)

    def predict(X: np.ndarray) -> LibraryPrediction:
        if posterior.outputs > 1 and posterior.classes is not None:
            return LibraryPrediction(classes=model.predict_proba(X))
        if posterior.classes is not None:
            return LibraryPrediction(probability=model.predict_proba(X)[:, 1])
        return adapter.regressor_prediction(model, X)

    return Conversion(posterior, predict)
