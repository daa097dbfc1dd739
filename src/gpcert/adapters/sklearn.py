"""scikit-learn models as posteriors: exact Gaussian process regression, Laplace classifier.

Notation of Rasmussen & Williams (2006) with the library's attribute names:

    regression (Alg. 2.1):  t = alpha_,  A = L_^-1,  L_ L_^T = K + alpha I (+ white noise),
    Laplace (Alg. 3.2):     t = y - pi_,  A = L_^-1 diag(W_sr_),  L_ L_^T = I + W^1/2 K W^1/2.

The library solves with L_ at every prediction; here the inverse is formed once, and that factor is
the certified model. With more than two classes the library fits several binary classifiers, which
become a `Committee`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg
from sklearn.compose import TransformedTargetRegressor
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process._gpc import _BinaryGaussianProcessClassifierLaplace
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import Pipeline

from gpcert.adapters import own
from gpcert.adapters.conversion import (
    Conversion,
    LibraryPrediction,
    fitted_names,
    with_names,
)
from gpcert.adapters.sklearn_kernels import convert_kernel
from gpcert.adapters.sklearn_pipeline import convert_pipeline
from gpcert.adapters.sklearn_target import convert_target
from gpcert.arrays import finite_array
from gpcert.committee import Committee, Scheme
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.likelihoods import SklearnLogistic
from gpcert.posterior import Posterior
from gpcert.spread import spread_of

__all__ = ["convert"]

SCHEMES: dict[type, Scheme] = {
    OneVsRestClassifier: "one_vs_rest",
    OneVsOneClassifier: "one_vs_one",
}
"""How the library combines its binary classifiers, by the class that does it."""


def convert(model: Any) -> Conversion:
    """Convert a scikit-learn model; see `gpcert.adapters.as_posterior` for what is supported."""
    # Exact types: a subclass of these (imblearn has a Pipeline of its own) may do other things.
    if type(model) is Pipeline:
        return convert_pipeline(model, convert)
    if type(model) in (GridSearchCV, RandomizedSearchCV):
        return convert(_fitted(model, "best_estimator_").best_estimator_)
    if own.is_own(model):  # at the end of a pipeline, or found by a search
        return own.convert(model)
    if isinstance(model, GaussianProcessRegressor):
        _check_predictions_inherited(model, GaussianProcessRegressor)
        return _convert_regressor(_fitted(model, "alpha_"))
    if isinstance(model, GaussianProcessClassifier):
        _check_predictions_inherited(model, GaussianProcessClassifier)
        return _convert_classifier(_fitted(model, "base_estimator_"))
    if type(model) is TransformedTargetRegressor:
        return convert_target(_fitted(model, "regressor_"), convert)
    raise UnsupportedModelError(
        "model: expected a GaussianProcessRegressor, a GaussianProcessClassifier, a "
        "Pipeline of scalers before one of them, a TransformedTargetRegressor with a scaler, or a "
        "GridSearchCV or RandomizedSearchCV of these; "
        f"got {type(model).__module__}.{type(model).__name__}"
    )


def _convert_regressor(model: GaussianProcessRegressor) -> Conversion:
    points = np.asarray(model.X_train_)
    kernel, white = convert_kernel(model.kernel_, points.shape[1])
    std = finite_array("_y_train_std", model._y_train_std)
    posterior = Posterior(
        kernel=kernel,
        points=points,
        weights=finite_array("alpha_", model.alpha_).T,
        factor=_inverse(model.L_),
        offset=model._y_train_mean,
        scale=std,
        noise=std**2 * white,
        feature_names=fitted_names(model),
        spread=spread_of(points),
    )

    def predict(X: np.ndarray) -> LibraryPrediction:
        mean, deviation = model.predict(X, return_std=True)
        shape = (len(mean), posterior.outputs)
        return LibraryPrediction(mean.reshape(shape), np.square(deviation).reshape(shape))

    return Conversion(posterior, predict)


def _convert_classifier(model: GaussianProcessClassifier) -> Conversion:
    if model.n_classes_ > 2:
        return _convert_committee(model)
    base: Any = model.base_estimator_
    posterior = replace(
        _laplace(base),
        classes=tuple(model.classes_.tolist()),
        feature_names=fitted_names(model),
        spread=spread_of(base.X_train_),
    )

    def predict(X: np.ndarray) -> LibraryPrediction:
        probability = model.predict_proba(X)[:, 1]
        if not hasattr(model, "latent_mean_and_variance"):  # scikit-learn before 1.7
            return LibraryPrediction(probability=probability)
        mean, variance = model.latent_mean_and_variance(X)
        return LibraryPrediction(mean[:, None], variance[:, None], probability)

    return Conversion(posterior, predict)


def _convert_committee(model: GaussianProcessClassifier) -> Conversion:
    base: Any = model.base_estimator_
    scheme = SCHEMES.get(type(base))
    if scheme is None:
        raise UnsupportedModelError(
            "base_estimator_: expected scikit-learn's OneVsRestClassifier or OneVsOneClassifier, "
            f"got {type(base).__name__}"
        )
    # every training point is in as many members as any other, so all of them spread as the data do
    spread = spread_of(np.concatenate([estimator.X_train_ for estimator in base.estimators_]))
    members = tuple(replace(_laplace(each), spread=spread) for each in base.estimators_)
    committee = Committee(members, tuple(model.classes_.tolist()), scheme)
    committee = with_names(committee, fitted_names(model))

    def predict(X: np.ndarray) -> LibraryPrediction:
        each = [estimator.predict_proba(X)[:, 1] for estimator in base.estimators_]
        return LibraryPrediction(
            probability=np.stack(each, axis=1),
            classes=model.predict_proba(X) if scheme == "one_vs_rest" else None,
            decision=np.searchsorted(model.classes_, np.asarray(model.predict(X))),
        )

    return Conversion(committee, predict)


def _laplace(estimator: Any) -> Posterior:
    """The posterior of one binary classifier; class labels are left to the caller."""
    if type(estimator) is not _BinaryGaussianProcessClassifierLaplace:
        raise UnsupportedModelError(
            "GaussianProcessClassifier: expected binary Laplace classifiers inside, got "
            f"{type(estimator).__name__}; fit on data in which every class occurs"
        )
    kernel, white = convert_kernel(estimator.kernel_, estimator.X_train_.shape[1])
    return Posterior(
        kernel=kernel,
        points=estimator.X_train_,
        weights=estimator.y_train_ - estimator.pi_,
        factor=_inverse(estimator.L_) * finite_array("W_sr_", estimator.W_sr_),
        noise=white,
        likelihood=SklearnLogistic(),
    )


def _inverse(L: Any) -> np.ndarray:
    """L^-1 of a lower triangular matrix."""
    L = finite_array("L_", L, ndim=2)
    return scipy.linalg.solve_triangular(L, np.eye(len(L)), lower=True)


def _fitted(model: Any, attribute: str) -> Any:
    if not hasattr(model, attribute):
        raise InputError(
            f"{type(model).__name__}: expected a fitted model, got one without {attribute!r}; "
            "call fit(X, y) first (a search: with refit=True)"
        )
    return model


def _check_predictions_inherited(model: Any, base: type) -> None:
    """A subclass may fit as it likes, but must predict with the library's own code."""
    for name in ("predict", "predict_proba", "latent_mean_and_variance"):
        if getattr(type(model), name, None) is not getattr(base, name, None):
            raise UnsupportedModelError(
                f"{type(model).__name__} overrides {name} of {base.__name__}, so it may predict "
                f"something else; pass a fitted {base.__name__}"
            )
