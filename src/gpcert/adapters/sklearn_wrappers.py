"""scikit-learn models that hold another model: pipelines, searches, transformed targets.

The model inside is converted by whichever adapter accepts it; what stands before or behind it is
folded into its posterior.
"""

from __future__ import annotations

from typing import Any

from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline

from gpcert.adapters.adapter import Supported
from gpcert.adapters.conversion import Conversion, check_fitted
from gpcert.adapters.registry import convert
from gpcert.adapters.sklearn_features import SCALERS, STEPS
from gpcert.adapters.sklearn_pipeline import convert_pipeline
from gpcert.adapters.sklearn_target import convert_target
from gpcert.errors import UnsupportedModelError

__all__ = ["LIBRARY", "SUPPORTED", "accepts", "to_posterior"]

LIBRARY = "scikit-learn"

INSIDE = "that of the model inside"

SEARCHES = (GridSearchCV, RandomizedSearchCV)

REFUSED: dict[type, str] = {
    CalibratedClassifierCV: (
        "its predict_proba passes scores through a fitted sigmoid or isotonic regression and "
        "averages over folds, which is not bounded here; certify one of the models inside "
        "(calibrated_classifiers_[k].estimator), whose decisions are its own"
    ),
}

SUPPORTED = (
    Supported(
        Pipeline.__name__,
        INSIDE,
        (INSIDE,),
        f"steps before the model: {', '.join(STEPS)}",
    ),
    *(Supported(kind.__name__, INSIDE, (INSIDE,), "best_estimator_") for kind in SEARCHES),
    Supported(
        TransformedTargetRegressor.__name__,
        INSIDE,
        (INSIDE,),
        f"transformers: {', '.join(kind.__name__ for kind in SCALERS)}",
    ),
)


def accepts(model: Any) -> bool:
    """By exact type: a subclass of these (imblearn has a Pipeline of its own) may do other
    things."""
    return type(model) in {Pipeline, *SEARCHES, TransformedTargetRegressor, *REFUSED}


def to_posterior(model: Any) -> Conversion:
    """The conversion of the model inside, folded."""
    kind = type(model)
    if kind in REFUSED:
        raise UnsupportedModelError(f"{kind.__name__} is not supported: {REFUSED[kind]}")
    if kind is Pipeline:
        return convert_pipeline(model, convert)
    if kind is TransformedTargetRegressor:
        return convert_target(check_fitted(model, "regressor_"), convert)
    return convert(check_fitted(model, "best_estimator_").best_estimator_)
