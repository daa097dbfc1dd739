"""scikit-learn models that hold another model: pipelines, searches, transformed targets.

The model inside is converted by whichever adapter accepts it; what stands before or behind it is
folded into its posterior: regions stay in the user's own units. The folded float64 arrays define
the certified model; `gpcert.adapters.agreement` measures what their rounding changed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.model_selection._search_successive_halving import (  # public ones are experimental
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
)
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, PowerTransformer, QuantileTransformer

from gpcert.adapters import adapter
from gpcert.adapters.adapter import Conversion, LibraryPrediction, Supported
from gpcert.adapters.canonical import in_units
from gpcert.adapters.registry import convert
from gpcert.adapters.sklearn_categories import decoded
from gpcert.adapters.sklearn_curves import CURVED, NAMES, target_curve
from gpcert.adapters.sklearn_features import (
    SCALERS,
    STEPS,
    FeatureMap,
    feature_map,
    folded,
    spread_before,
)
from gpcert.errors import UnsupportedModelError
from gpcert.functions import Curve
from gpcert.likelihoods import CurveLink, Gaussian, MeanOnly
from gpcert.model.posterior import Posterior

LIBRARY = "scikit-learn"

INSIDE = "that of the model inside"

SEARCHES = (GridSearchCV, RandomizedSearchCV, HalvingGridSearchCV, HalvingRandomSearchCV)

_ADVICE = {
    "AdaBoostClassifier AdaBoostRegressor BaggingClassifier StackingClassifier StackingRegressor "
    "VotingClassifier": (
        "the votes and models on top of its parts are not bounded here; certify the parts one by "
        "one (estimators_), or fit one Gaussian process or support vector machine, or a "
        "VotingRegressor or BaggingRegressor, which are"
    ),
    "OneVsOneClassifier OneVsRestClassifier OutputCodeClassifier": (
        "its binary parts are joined by a rule of its own; use the several classes of "
        "GaussianProcessClassifier or SVC themselves, or certify the parts (estimators_)"
    ),
    "FixedThresholdClassifier TunedThresholdClassifierCV": (
        "certify the classifier inside (estimator_) with threshold=, the probability from which "
        "on the second class is decided"
    ),
    "MultiOutputClassifier MultiOutputRegressor": (
        "certify the models of single targets (estimators_) one by one"
    ),
    "CalibratedClassifierCV": (
        "its predict_proba passes scores through a fitted sigmoid or isotonic regression and "
        "averages over folds, which is not bounded here; certify one of the models inside "
        "(calibrated_classifiers_[k].estimator), whose decisions are its own"
    ),
}

REFUSED = {name: advice for names, advice in _ADVICE.items() for name in names.split()}
"""Classes of scikit-learn by name, and what to do instead."""

NOTES: dict[type, str] = {
    Pipeline: f"steps before the model: {', '.join(STEPS)}",
    **dict.fromkeys(SEARCHES, "best_estimator_"),
    TransformedTargetRegressor: f"transformers: {', '.join(kind.__name__ for kind in SCALERS)}, "
    f"PowerTransformer, QuantileTransformer; inverse_func of {NAMES} that is "
    "defined everywhere, or a gpcert.functions.Curve; predict is then quantity='response'",
}

SUPPORTED = tuple(Supported(kind.__name__, INSIDE, (INSIDE,), NOTES[kind]) for kind in NOTES)


def accepts(model: Any) -> bool:
    """By exact type: a subclass of these (imblearn has a Pipeline of its own) may do other
    things."""
    kind = type(model)
    return kind in NOTES or (kind.__module__.startswith("sklearn.") and kind.__name__ in REFUSED)


def to_posterior(model: Any) -> Conversion:
    """The conversion of the model inside, folded."""
    kind = type(model)
    if kind.__name__ in REFUSED:
        raise UnsupportedModelError(f"{kind.__name__} is not supported: {REFUSED[kind.__name__]}")
    if kind is Pipeline:
        return _pipeline(model)
    if kind is TransformedTargetRegressor:
        return _target(adapter.check_fitted(model, "regressor_"))
    return convert(adapter.check_fitted(model, "best_estimator_").best_estimator_)


def _pipeline(pipeline: Pipeline) -> Conversion:
    """Convert the last step, and fold the steps before it from last to first."""
    steps = [each for each in pipeline.steps[:-1] if each[1] not in (None, "passthrough")]
    maps = []
    inputs = getattr(steps[0][1], "n_features_in_", 0) if steps else 0
    for name, step in steps:
        maps.append(feature_map(name, step, inputs))
        inputs = len(maps[-1].shift)
    inner = convert(pipeline.steps[-1][1])
    posterior = inner.posterior
    for each in reversed(maps):
        posterior = folded(each, posterior)
    if len(posterior.levels) == posterior.dim:
        raise UnsupportedModelError(
            "pipeline: expected an input that may move, got categories only: an encoder's output "
            "jumps with its input; encode the columns of categories alone, in a ColumnTransformer, "
            "and keep them fixed by features=, or by a radius of 0"
        )
    if posterior.spread is None:
        spread = spread_before(steps, posterior.dim)
        posterior = adapter.with_spread(posterior, None if np.isnan(spread).any() else spread)
    # the last step may know names too: those of what the steps before it hand on
    names = adapter.fitted_names(steps[0][1] if steps else pipeline.steps[-1][1])
    posterior = adapter.with_names(posterior, names)

    def predict(X: np.ndarray) -> LibraryPrediction:
        rows = decoded(X, posterior.levels, names)
        for _, step in steps:
            rows = step.transform(rows)
        rows = rows.toarray() if issparse(rows) else rows
        return inner.predict(np.asarray(rows, dtype=np.float64))

    return Conversion(posterior, predict, inner.tolerance)


OTHER_TARGETS = "; ask about the regressor_ inside, whose targets are the transformed ones"


def _target(model: TransformedTargetRegressor) -> Conversion:
    """Convert the regressor inside, and fold the transform of its targets, where it is affine.

    The library fits on `y' = (y - shift) / scale` and predicts `y = shift + scale y'`, target by
    target; behind another function that increases it predicts the inverse of the mean of y'
    (`likelihoods.CurveLink`).
    """
    inner = convert(model.regressor_)
    posterior = inner.posterior
    if not isinstance(posterior, Posterior) or posterior.likelihood.classifies:
        raise UnsupportedModelError("TransformedTargetRegressor: expected a regressor inside")
    curve = target_curve(model.transformer_) if type(model.transformer_) in CURVED else None
    if curve is not None and curve.steps:
        return _curved_target(model, inner, curve)
    units = _units(model.transformer_, posterior.outputs)

    def predict(X: np.ndarray) -> LibraryPrediction:
        library = inner.predict(X)
        variance = None if library.variance is None else library.variance * units.scale**2
        return LibraryPrediction(np.reshape(model.predict(X), (len(X), -1)), variance)

    return Conversion(in_units(posterior, units.shift, units.scale), predict, inner.tolerance)


def _curved_target(model: Any, inner: Conversion, curve: Curve) -> Conversion:
    """The same latent function, with another prediction."""
    posterior: Any = inner.posterior
    if type(posterior.likelihood) not in {Gaussian, MeanOnly}:
        raise adapter.unsupported(
            "regressor_ of a TransformedTargetRegressor", model.regressor_, "regressions of a mean"
        )
    if posterior.outputs > 1 and type(model.transformer_) is not FunctionTransformer:
        raise UnsupportedModelError(
            "TransformedTargetRegressor: expected one target behind a transform that differs "
            f"between targets, got {posterior.outputs}; fit a model a target"
        )
    link = CurveLink(curve, posterior.likelihood.has_variance)

    def predict(X: np.ndarray) -> LibraryPrediction:
        return replace(inner.predict(X), response=np.reshape(model.predict(X), (len(X), -1)))

    return Conversion(replace(posterior, likelihood=link), predict, inner.tolerance)


def _units(transformer: Any, targets: int) -> FeatureMap:
    if type(transformer) is FunctionTransformer:  # without functions
        return FeatureMap.select(targets)
    if type(transformer) not in SCALERS:
        known = (*SCALERS, PowerTransformer, QuantileTransformer, FunctionTransformer)
        raise adapter.unsupported("TransformedTargetRegressor", transformer, known, OTHER_TARGETS)
    return FeatureMap.scaled(targets, *SCALERS[type(transformer)](transformer), "target")
