"""scikit-learn models that hold another model: pipelines, searches, transformed targets.

The model inside is converted by whichever adapter accepts it; what stands before or behind it is
folded into its posterior.
"""

from __future__ import annotations

from typing import Any

from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.model_selection._search_successive_halving import (  # public ones are experimental
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import Pipeline

from gpcert.adapters.adapter import Supported
from gpcert.adapters.conversion import Conversion, check_fitted
from gpcert.adapters.registry import convert
from gpcert.adapters.sklearn_features import SCALERS, STEPS
from gpcert.adapters.sklearn_pipeline import convert_pipeline
from gpcert.adapters.sklearn_target import convert_target
from gpcert.errors import UnsupportedModelError

LIBRARY = "scikit-learn"

INSIDE = "that of the model inside"

SEARCHES = (GridSearchCV, RandomizedSearchCV, HalvingGridSearchCV, HalvingRandomSearchCV)

ENSEMBLE = (
    "the averages, votes and models on top of its parts are not bounded here; certify the parts "
    "one by one (estimators_), or fit one Gaussian process or support vector machine"
)

REDUCTION = (
    "its binary parts are joined by a rule of its own; use the several classes of "
    "GaussianProcessClassifier or SVC themselves, or certify the parts (estimators_)"
)

THRESHOLD = (
    "certify the classifier inside (estimator_) with threshold=, the probability from which on "
    "the second class is decided"
)

TARGETS = "certify the models of single targets (estimators_) one by one"

REFUSED: dict[type, str] = {
    **dict.fromkeys((AdaBoostClassifier, AdaBoostRegressor), ENSEMBLE),
    **dict.fromkeys((BaggingClassifier, BaggingRegressor), ENSEMBLE),
    **dict.fromkeys((StackingClassifier, StackingRegressor), ENSEMBLE),
    **dict.fromkeys((VotingClassifier, VotingRegressor), ENSEMBLE),
    **dict.fromkeys((OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier), REDUCTION),
    **dict.fromkeys((FixedThresholdClassifier, TunedThresholdClassifierCV), THRESHOLD),
    **dict.fromkeys((MultiOutputClassifier, MultiOutputRegressor), TARGETS),
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
