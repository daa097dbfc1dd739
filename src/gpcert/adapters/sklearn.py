"""scikit-learn models as posteriors: exact Gaussian process regression, binary Laplace classifier.

Notation of Rasmussen & Williams (2006) with the library's attribute names:

    regression (Alg. 2.1):  t = alpha_,  A = L_^-1,  L_ L_^T = K + alpha I (+ white noise),
    Laplace (Alg. 3.2):     t = y - pi_,  A = L_^-1 diag(W_sr_),  L_ L_^T = I + W^1/2 K W^1/2.

The library solves with L_ at every prediction; here the inverse is formed once, and that factor is
the certified model.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from sklearn.compose import TransformedTargetRegressor
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline

from gpcert.adapters import own
from gpcert.adapters.conversion import Conversion, LibraryPrediction
from gpcert.adapters.sklearn_kernels import convert_kernel
from gpcert.adapters.sklearn_pipeline import convert_pipeline
from gpcert.arrays import finite_array
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.likelihoods import SklearnLogistic
from gpcert.posterior import Posterior

__all__ = ["convert"]


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
    if isinstance(model, TransformedTargetRegressor):
        raise UnsupportedModelError(
            "TransformedTargetRegressor is not supported: its prediction is not Gaussian in the "
            "user's units; scale targets with GaussianProcessRegressor(normalize_y=True) instead"
        )
    raise UnsupportedModelError(
        "model: expected a GaussianProcessRegressor, a binary GaussianProcessClassifier, a "
        "Pipeline of scalers before one of them, or a GridSearchCV or RandomizedSearchCV of these; "
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
    )

    def predict(X: np.ndarray) -> LibraryPrediction:
        mean, deviation = model.predict(X, return_std=True)
        shape = (len(mean), posterior.outputs)
        return LibraryPrediction(mean.reshape(shape), np.square(deviation).reshape(shape))

    return Conversion(posterior, predict)


def _convert_classifier(model: GaussianProcessClassifier) -> Conversion:
    if model.n_classes_ > 2:
        raise UnsupportedModelError(
            "multi-class GaussianProcessClassifier is not supported yet: expected 2 classes, got "
            f"{model.n_classes_}; fit one binary classifier a class and certify each"
        )
    base: Any = model.base_estimator_
    kernel, white = convert_kernel(base.kernel_, base.X_train_.shape[1])
    posterior = Posterior(
        kernel=kernel,
        points=base.X_train_,
        weights=base.y_train_ - base.pi_,
        factor=_inverse(base.L_) * finite_array("W_sr_", base.W_sr_),
        noise=white,
        likelihood=SklearnLogistic(),
        classes=tuple(model.classes_.tolist()),
    )

    def predict(X: np.ndarray) -> LibraryPrediction:
        probability = model.predict_proba(X)[:, 1]
        if not hasattr(model, "latent_mean_and_variance"):  # scikit-learn before 1.7
            return LibraryPrediction(probability=probability)
        mean, variance = model.latent_mean_and_variance(X)
        return LibraryPrediction(mean[:, None], variance[:, None], probability)

    return Conversion(posterior, predict)


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
