"""scikit-learn's averages of regressors: `VotingRegressor`, `BaggingRegressor`.

Their `predict` is the (weighted) mean of their parts'; each part is converted by whichever adapter
accepts it, and all are a `gpcert.Mixture`. Where every part knows its variance so does the mixture,
of which the library says nothing.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from gpcert.adapters import adapter
from gpcert.adapters.adapter import Conversion, LibraryPrediction, Supported
from gpcert.adapters.registry import convert
from gpcert.adapters.sklearn_features import FeatureMap, folded
from gpcert.errors import UnsupportedModelError
from gpcert.model.mixture import Mixture
from gpcert.model.posterior import Posterior

LIBRARY = "scikit-learn"

INSIDE = "that of the models inside"

SUPPORTED = (
    Supported(
        "VotingRegressor", INSIDE, (INSIDE,), "a gpcert.Mixture: the mean that predict returns"
    ),
    Supported("BaggingRegressor", INSIDE, (INSIDE,), "the same, of all features or some"),
)

NAMES = ("VotingRegressor", "BaggingRegressor")


def accepts(model: Any) -> bool:
    """By exact type; the module is not imported here."""
    ensemble = sys.modules.get("sklearn.ensemble")
    return ensemble is not None and any(type(model) is getattr(ensemble, n) for n in NAMES)


def to_posterior(model: Any) -> Conversion:
    """The conversions of the parts, as one mixture."""
    estimators = adapter.check_fitted(model, "estimators_").estimators_
    inputs, kind = model.n_features_in_, type(model).__name__
    columns = getattr(model, "estimators_features_", [np.arange(inputs)] * len(estimators))
    weights = getattr(model, "_weights_not_none", None)
    members = []
    for estimator, chosen in zip(estimators, columns, strict=True):
        posterior = convert(estimator).posterior
        if not isinstance(posterior, Posterior) or posterior.outputs != 1:
            raise UnsupportedModelError(
                f"{kind}: expected regressors of one target inside, got a "
                f"{type(estimator).__name__}; ask about the parts one by one (estimators_)"
            )
        if len(np.unique(chosen)) != len(chosen):
            raise UnsupportedModelError(
                f"{kind}(bootstrap_features=True) is not supported: a part sees a feature twice; "
                "fit with bootstrap_features=False"
            )
        members.append(folded(FeatureMap.select(inputs, chosen), posterior))
    names = adapter.fitted_names(model)
    if len(members) == 1:
        mixture: Any = adapter.with_names(members[0], names)
    else:
        mixture = Mixture(tuple(members), weights)
        mixture = adapter.with_names(mixture, names)

    def predict(X: np.ndarray) -> LibraryPrediction:
        return LibraryPrediction(mean=np.reshape(model.predict(X), (len(X), 1)))

    return Conversion(mixture, predict)
