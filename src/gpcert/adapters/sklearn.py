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
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process._gpc import _BinaryGaussianProcessClassifierLaplace
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier

from gpcert.adapters.adapter import Supported
from gpcert.adapters.conversion import (
    Conversion,
    LibraryPrediction,
    check_fitted,
    check_inherited,
    fitted_names,
    with_names,
)
from gpcert.adapters.sklearn_kernels import TREE, convert_kernel
from gpcert.arrays import finite_array
from gpcert.committee import Committee, Scheme
from gpcert.errors import UnsupportedModelError
from gpcert.frames import spread_of
from gpcert.likelihoods import SklearnLogistic
from gpcert.posterior import Posterior
from gpcert.triangular import Inverse, triangular_inverse

SCHEMES: dict[type, Scheme] = {
    OneVsRestClassifier: "one_vs_rest",
    OneVsOneClassifier: "one_vs_one",
}
"""How the library combines its binary classifiers, by the class that does it."""


LIBRARY = "scikit-learn"

KERNELS = TREE.names

MODELS = (GaussianProcessRegressor, GaussianProcessClassifier)

SUPPORTED = (
    Supported(GaussianProcessRegressor.__name__, "Gaussian", KERNELS, "several targets"),
    Supported(
        GaussianProcessClassifier.__name__,
        "logistic, as predict_proba approximates it",
        KERNELS,
        "two classes; several one-vs-rest or one-vs-one",
    ),
)


def accepts(model: Any) -> bool:
    """A Gaussian process, or a user's subclass of one."""
    return isinstance(model, MODELS)


def to_posterior(model: Any) -> Conversion:
    """Convert a Gaussian process of scikit-learn."""
    base = next(kind for kind in MODELS if isinstance(model, kind))
    check_inherited(model, base, ("predict", "predict_proba", "latent_mean_and_variance"))
    if base is GaussianProcessRegressor:
        return _convert_regressor(check_fitted(model, "alpha_"))
    return _convert_classifier(check_fitted(model, "base_estimator_"))


def _convert_regressor(model: GaussianProcessRegressor) -> Conversion:
    points = np.asarray(model.X_train_)
    kernel, white = convert_kernel(model.kernel_, points.shape[1])
    std = finite_array("_y_train_std", model._y_train_std)
    posterior = Posterior(
        kernel=kernel,
        points=points,
        weights=finite_array("alpha_", model.alpha_).T,
        factor=Inverse.of(finite_array("L_", model.L_, ndim=2), owned=True),
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
        decision = np.searchsorted(model.classes_, np.asarray(model.predict(X)))
        if not hasattr(model, "latent_mean_and_variance"):  # scikit-learn before 1.7
            return LibraryPrediction(probability=probability, decision=decision)
        mean, variance = model.latent_mean_and_variance(X)
        return LibraryPrediction(mean[:, None], variance[:, None], probability, decision=decision)

    return Conversion(posterior, predict)


def _convert_committee(model: GaussianProcessClassifier) -> Conversion:
    base: Any = model.base_estimator_
    scheme = SCHEMES.get(type(base))
    if scheme is None:
        raise UnsupportedModelError(
            "base_estimator_: expected scikit-learn's OneVsRestClassifier or OneVsOneClassifier, "
            f"got {type(base).__name__}"
        )
    converted = [_laplace(each) for each in base.estimators_]
    # every training point is in as many members as any other, so all of them spread as the data do
    spread = spread_of(np.concatenate([each.points for each in converted]))
    members = tuple(replace(each, spread=spread) for each in converted)
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
    L = finite_array("L_", estimator.L_, ndim=2)
    return Posterior(
        kernel=kernel,
        points=estimator.X_train_,
        weights=estimator.y_train_ - estimator.pi_,
        factor=triangular_inverse(L) * finite_array("W_sr_", estimator.W_sr_),
        noise=white,
        likelihood=SklearnLogistic(),
    )
