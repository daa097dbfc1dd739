"""scikit-learn models as posteriors: Gaussian processes, support vectors, kernel ridge.

Gaussian processes, in the notation of Rasmussen & Williams (2006) with the library's names:

    regression (Alg. 2.1):  t = alpha_,  A = L_^-1,  L_ L_^T = K + alpha I (+ white noise),
    Laplace (Alg. 3.2):     t = y - pi_,  A = L_^-1 diag(W_sr_),  L_ L_^T = I + W^1/2 K W^1/2.

The inverse is formed once, and that factor is the certified model. Several binary classifiers, to
which the library comes with more than two classes, are a `Committee`.

The others are a posterior mean without variance,

    f(x) = sum_i t_i k(x, z_i) + offset

with the support vectors (or training points) z_i. `predict` of `SVR`, `NuSVR` and `KernelRidge` is
f, of `SVC`, `NuSVC` with two classes and of `OneClassSVM` its sign. With m > 2 classes libsvm has a
function for every pair j < k, over the same support vectors, and counts votes: class j where
its function is > 0, else class k; most votes win, the first of equal ones. See
`Committee.scheme == "pair_votes"`: its functions are minus libsvm's, so that positive means k.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from sklearn.gaussian_process._gpc import _BinaryGaussianProcessClassifierLaplace
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier

from gpcert.adapters import adapter
from gpcert.adapters.adapter import Conversion, LibraryPrediction, Supported
from gpcert.adapters.sklearn_kernels import TREE, convert_kernel, loses_digits, stable
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.inputs.tabular import spread_of
from gpcert.kernels import (
    ActiveDimensions,
    Kernel,
    Linear,
    Matern,
    Polynomial,
    SquaredExponential,
)
from gpcert.kernels.algebra import product_of
from gpcert.likelihoods import MeanOnly, SignOnly, SklearnLogistic
from gpcert.model.committee import Committee, Scheme
from gpcert.model.posterior import Posterior
from gpcert.model.posterior_parts import known_noise, noise_of_sites
from gpcert.numerics.arrays import finite_array
from gpcert.numerics.triangular import Inverse, triangular_inverse

Reader = tuple[Callable[[Any], Conversion], str, tuple[str, ...]]

SCHEMES: dict[type, Scheme] = {
    OneVsRestClassifier: "one_vs_rest",
    OneVsOneClassifier: "one_vs_one",
}
"""How the library combines its binary classifiers, by the class that does it."""

LIBRARY = "scikit-learn"

NAMED = ("rbf", "poly", "linear")
"""Kernels of models without variance."""

VOTES = "the class that predict returns: a sign, or one-vs-one votes"

SUPPORTED = (
    Supported("GaussianProcessRegressor", "Gaussian", TREE.names, "several targets"),
    Supported(
        "GaussianProcessClassifier",
        "logistic, as predict_proba approximates it",
        TREE.names,
        "two classes; several one-vs-rest or one-vs-one",
    ),
    *(Supported(kind, VOTES, NAMED, "no probabilities") for kind in ("SVC", "NuSVC")),
    *(Supported(kind, "mean without variance", NAMED) for kind in ("SVR", "NuSVR")),
    Supported("OneClassSVM", "the sign of decision_function", NAMED, "classes -1 and 1"),
    Supported(
        "KernelRidge",
        "mean without variance",
        (*NAMED, "laplacian", "kernels of scikit-learn's processes"),
        "several targets",
    ),
)


def accepts(model: Any) -> bool:
    """One of the models of the table, or a user's subclass of one."""
    return _reader(model) is not None


def to_posterior(model: Any) -> Conversion:
    """Convert the model by the class that it is, or derives from."""
    kind_and_reader = _reader(model)
    assert kind_and_reader is not None, "asked of what is accepted"
    base, (convert, fitted, methods) = kind_and_reader
    adapter.check_inherited(model, base, methods)
    return convert(adapter.check_fitted(model, fitted))


def _reader(model: Any) -> tuple[type, Reader] | None:
    """The class of the table that the model is of, and what reads it; where a module of
    scikit-learn is not loaded, the model is of none of its classes."""
    for (module, name), reader in READERS.items():
        kind = getattr(sys.modules.get(module), name, None)
        if kind is not None and isinstance(model, kind):
            return kind, reader
    return None


def _numeric(points: Any) -> np.ndarray:
    """Training inputs (N, d), or a refusal of what has no regions."""
    points = np.asarray(points)
    if points.ndim != 2 or points.dtype.kind not in "fiub":
        raise UnsupportedModelError(
            f"X_train_: expected numbers of shape (N, d), got {points.dtype} of shape "
            f"{points.shape}; a Gaussian process on strings, graphs or other structures has no "
            "regions of inputs: describe them by numbers, and fit on those"
        )
    return points


def _process(model: GaussianProcessRegressor) -> Conversion:
    points = _numeric(model.X_train_)
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
        training_noise=known_noise(len(points), model.alpha, white),
        feature_names=adapter.fitted_names(model),
        spread=spread_of(points),
    )
    exact = partial(adapter.regressor_prediction, stable(model))
    native = partial(adapter.regressor_prediction, model)
    return Conversion(posterior, exact, native=native if loses_digits(model.kernel_) else None)


def _process_classifier(model: GaussianProcessClassifier) -> Conversion:
    if model.n_classes_ > 2:
        return _process_committee(model)
    base: Any = model.base_estimator_
    posterior = replace(
        _laplace(base),
        classes=tuple(model.classes_.tolist()),
        feature_names=adapter.fitted_names(model),
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


def _process_committee(model: GaussianProcessClassifier) -> Conversion:
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
    committee = adapter.with_names(committee, adapter.fitted_names(model))

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
    kernel, white = convert_kernel(estimator.kernel_, _numeric(estimator.X_train_).shape[1])
    L = finite_array("L_", estimator.L_, ndim=2)
    return Posterior(
        kernel=kernel,
        points=estimator.X_train_,
        weights=estimator.y_train_ - estimator.pi_,
        factor=triangular_inverse(L) * finite_array("W_sr_", estimator.W_sr_),
        noise=white,
        training_noise=known_noise(len(L), noise_of_sites(estimator.W_sr_**2), white),
        likelihood=SklearnLogistic(),
    )


def _of_machine(model: Any, weights: np.ndarray, offset: Any, **options: Any) -> Posterior:
    return Posterior(
        kernel=_named_kernel(model, float(model._gamma)),
        points=_dense("support_vectors_", model.support_vectors_),
        weights=weights,
        offset=finite_array("intercept_", offset),
        feature_names=adapter.fitted_names(model),
        **options,
    )


def _machine(model: Any) -> Conversion:
    weights = _dense("dual_coef_", model.dual_coef_)
    posterior = _of_machine(model, weights, model.intercept_, likelihood=MeanOnly())
    return Conversion(posterior, lambda X: LibraryPrediction(mean=model.predict(X)[:, None]))


def _machine_classifier(model: Any) -> Conversion:
    """Two classes by the sign of `decision_function`, several by votes."""
    # OneClassSVM has no classes_
    classes = model.classes_.tolist() if hasattr(model, "classes_") else [-1, 1]
    if len(classes) > 2:
        return _votes(model)
    weights = _dense("dual_coef_", model.dual_coef_)
    options = {"likelihood": SignOnly(), "classes": tuple(classes)}
    posterior = _of_machine(model, weights, model.intercept_, **options)

    def predict(X: np.ndarray) -> LibraryPrediction:
        mean = np.reshape(model.decision_function(X), (len(X), 1))
        return LibraryPrediction(mean=mean, decision=np.searchsorted(classes, model.predict(X)))

    return Conversion(posterior, predict)


def _votes(model: Any) -> Conversion:
    """All pairs as outputs of one posterior: the support vectors of other classes weigh 0."""
    if model.break_ties and model.decision_function_shape == "ovr":
        raise UnsupportedModelError(
            f"{type(model).__name__}(break_ties=True) is not supported with more than two classes: "
            "it decides by sums of confidences, which are not bounded here; set break_ties=False, "
            "which decides by votes"
        )
    coefficients = _dense("dual_coef_", model.dual_coef_)
    ends = np.cumsum([0, *model.n_support_])
    pairs = list(combinations(range(len(model.classes_)), 2))
    weights = np.zeros((len(pairs), coefficients.shape[1]))
    for row, (j, k) in zip(weights, pairs, strict=True):
        # row k - 1 of class j's support vectors is their weight against class k, if j < k
        first, second = slice(ends[j], ends[j + 1]), slice(ends[k], ends[k + 1])
        row[first], row[second] = coefficients[k - 1, first], coefficients[j, second]
    member = _of_machine(model, -weights, -model.intercept_, likelihood=MeanOnly())
    committee = Committee((member,), tuple(model.classes_.tolist()), "pair_votes")

    def predict(X: np.ndarray) -> LibraryPrediction:
        decision = np.searchsorted(model.classes_, np.asarray(model.predict(X)))
        # libsvm's own function of every pair, whatever `decision_function_shape` is
        pairs = np.asarray(model._decision_function(X))
        return LibraryPrediction(mean=-pairs, decision=decision)

    return Conversion(adapter.with_names(committee, adapter.fitted_names(model)), predict)


def _ridge(model: Any) -> Conversion:
    points = _dense("X_fit_", _numeric_or_sparse(model.X_fit_))
    gamma = 1.0 / points.shape[1] if model.gamma is None else float(model.gamma)
    if model.kernel_params:
        raise UnsupportedModelError(
            "KernelRidge(kernel_params=...) is not supported; give gamma, degree and coef0 instead"
        )
    posterior = Posterior(
        kernel=_ridge_kernel(model, gamma, points.shape[1]),
        points=points,
        weights=np.atleast_2d(_dense("dual_coef_", model.dual_coef_).T),
        likelihood=MeanOnly(),
        feature_names=adapter.fitted_names(model),
    )

    def predict(X: np.ndarray) -> LibraryPrediction:
        return LibraryPrediction(mean=np.reshape(model.predict(X), (len(X), posterior.outputs)))

    return Conversion(posterior, predict)


def _numeric_or_sparse(points: Any) -> Any:
    return points if scipy.sparse.issparse(points) else _numeric(points)


def _ridge_kernel(model: Any, gamma: float, features: int) -> Kernel:
    """A kernel object of scikit-learn, whose white part only the fit sees; "laplacian",
    `exp(-gamma |x - z|_1)`, a product over features; or the others by name."""
    if isinstance(model.kernel, sk.Kernel):
        return convert_kernel(model.kernel, features)[0]
    if model.kernel != "laplacian":
        return _named_kernel(model, gamma, (*NAMED, "laplacian"))
    if not 0.0 < gamma < np.inf:
        raise UnsupportedModelError(
            f"KernelRidge(kernel='laplacian'): gamma: expected a positive number, got {gamma!r}; "
            "fit with another one"
        )
    each = Matern(1.0 / gamma, nu=0.5)
    if features == 1:
        return each
    return product_of([ActiveDimensions(each, (j,)) for j in range(features)])


def _named_kernel(model: Any, gamma: float, known: tuple[str, ...] = NAMED) -> Kernel:
    """The kernel by its name; `gamma` is a number, as "scale" and "auto" were when it was fitted.

    rbf: `exp(-gamma |x - z|^2)`, a length-scale of `1 / sqrt(2 gamma)`;
    poly: `(gamma x.z + coef0)^degree`; linear: `x.z`.
    """
    kind, name = type(model).__name__, model.kernel
    if not isinstance(name, str) or name not in NAMED:
        why = {
            "sigmoid": "tanh(gamma x.z + coef0) is not positive definite",
            "precomputed": "the points themselves are not known",
        }
        reason = why.get(name, "it is not known here") if isinstance(name, str) else "it is code"
        raise UnsupportedModelError(
            f"{kind}(kernel={name!r}) is not supported: {reason}; fit with one of {known}, or "
            "write the model as a Posterior by hand with a kernel of gpcert.kernels"
        )
    try:
        if name == "linear":
            return Linear(1.0)
        if not 0.0 < gamma < np.inf:
            raise InputError(f"gamma: expected a positive number, got {gamma!r}")
        if name == "rbf":
            return SquaredExponential(1.0 / np.sqrt(2.0 * gamma))
        return Polynomial(model.degree, gamma, model.coef0)
    except InputError as error:
        raise UnsupportedModelError(
            f"{kind}(kernel={name!r}) is not supported with these parameters: {error}; fit with "
            "others"
        ) from None


def _dense(name: str, values: Any) -> np.ndarray:
    """An array, also of a model that was fitted on sparse data."""
    return finite_array(name, values.toarray() if scipy.sparse.issparse(values) else values)


PROCESS = ("predict", "predict_proba", "latent_mean_and_variance")
MACHINE = ("predict", "decision_function", "_decision_function", "_dense_predict")

PROCESSES, SVM = "sklearn.gaussian_process", "sklearn.svm"
CLASSIFIED: Reader = (_machine_classifier, "support_vectors_", MACHINE)
REGRESSED: Reader = (_machine, "support_vectors_", MACHINE)

READERS: dict[tuple[str, str], Reader] = {
    (PROCESSES, "GaussianProcessRegressor"): (_process, "alpha_", PROCESS),
    (PROCESSES, "GaussianProcessClassifier"): (_process_classifier, "base_estimator_", PROCESS),
    **{(SVM, name): CLASSIFIED for name in ("SVC", "NuSVC", "OneClassSVM")},
    **{(SVM, name): REGRESSED for name in ("SVR", "NuSVR")},
    ("sklearn.kernel_ridge", "KernelRidge"): (_ridge, "dual_coef_", MACHINE),
}
"""How each class is converted, what fitting sets, and the methods that a subclass must inherit."""
