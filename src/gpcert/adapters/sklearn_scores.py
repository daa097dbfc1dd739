"""scikit-learn models that are a posterior mean without variance: support vectors, kernel ridge.

    f(x) = sum_i t_i k(x, z_i) + offset

with the support vectors (or training points) z_i. `predict` of `SVR`, `NuSVR` and `KernelRidge` is
f, of `SVC`, `NuSVC` with two classes and of `OneClassSVM` its sign. With m > 2 classes libsvm has a
function for every pair j < k, over the same support vectors, and counts votes: class j where
its function is > 0, else class k; most votes win, the first of equal ones. See
`Committee.scheme == "pair_votes"`: its functions are minus libsvm's, so that positive means k.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

from gpcert.adapters.adapter import Supported
from gpcert.adapters.conversion import (
    Conversion,
    LibraryPrediction,
    check_fitted,
    check_inherited,
    fitted_names,
    with_names,
)
from gpcert.arrays import finite_array
from gpcert.committee import Committee
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.kernels import Kernel, Linear, Polynomial, SquaredExponential
from gpcert.likelihoods import MeanOnly, SignOnly
from gpcert.posterior import Posterior

LIBRARY = "scikit-learn"

KERNELS = ("rbf", "poly", "linear")

CLASSIFIERS, REGRESSORS = (SVC, NuSVC), (SVR, NuSVR)

MACHINES = (*CLASSIFIERS, *REGRESSORS, OneClassSVM)

METHODS = ("predict", "decision_function", "_decision_function", "_dense_predict")

VOTES = "the class that predict returns: a sign, or one-vs-one votes"

SUPPORTED = (
    *(Supported(kind.__name__, VOTES, KERNELS, "no probabilities") for kind in CLASSIFIERS),
    *(Supported(kind.__name__, "mean without variance", KERNELS) for kind in REGRESSORS),
    Supported(OneClassSVM.__name__, "the sign of decision_function", KERNELS, "classes -1 and 1"),
    Supported(KernelRidge.__name__, "mean without variance", KERNELS, "several targets"),
)


def accepts(model: Any) -> bool:
    """A support vector machine or kernel ridge regression, or a user's subclass of one."""
    return isinstance(model, (*MACHINES, KernelRidge))


def to_posterior(model: Any) -> Conversion:
    """The mean that the model predicts by."""
    base = next(kind for kind in (*MACHINES, KernelRidge) if isinstance(model, kind))
    check_inherited(model, base, METHODS)
    if base is KernelRidge:
        return _ridge(check_fitted(model, "dual_coef_"))
    machine: Any = check_fitted(model, "support_vectors_")
    if base in REGRESSORS:
        return _regressor(machine)
    classes = [-1, 1] if base is OneClassSVM else machine.classes_.tolist()
    return _votes(machine) if len(classes) > 2 else _signed(machine, classes)


def _posterior(model: Any, weights: np.ndarray, offset: Any, **options: Any) -> Posterior:
    points = _dense("support_vectors_", model.support_vectors_)
    return Posterior(
        kernel=_kernel(model, float(model._gamma)),
        points=points,
        weights=weights,
        offset=finite_array("intercept_", offset),
        feature_names=fitted_names(model),
        **options,
    )


def _regressor(model: Any) -> Conversion:
    weights = _dense("dual_coef_", model.dual_coef_)
    posterior = _posterior(model, weights, model.intercept_, likelihood=MeanOnly())
    return Conversion(posterior, lambda X: LibraryPrediction(mean=model.predict(X)[:, None]))


def _signed(model: Any, classes: Any) -> Conversion:
    """Two classes by the sign of `decision_function`."""
    posterior = _posterior(
        model,
        _dense("dual_coef_", model.dual_coef_),
        model.intercept_,
        likelihood=SignOnly(),
        classes=tuple(classes),
    )

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
    member = _posterior(model, -weights, -model.intercept_, likelihood=MeanOnly())
    committee = Committee((member,), tuple(model.classes_.tolist()), "pair_votes")

    def predict(X: np.ndarray) -> LibraryPrediction:
        decision = np.searchsorted(model.classes_, np.asarray(model.predict(X)))
        return LibraryPrediction(mean=-_pair_functions(model, X), decision=decision)

    return Conversion(with_names(committee, fitted_names(model)), predict)


def _pair_functions(model: Any, X: np.ndarray) -> np.ndarray:
    """libsvm's own function of every pair, whatever `decision_function_shape` is."""
    return np.asarray(model._decision_function(X))


def _ridge(model: KernelRidge) -> Conversion:
    points = _dense("X_fit_", model.X_fit_)
    gamma = 1.0 / points.shape[1] if model.gamma is None else float(model.gamma)
    if model.kernel_params:
        raise UnsupportedModelError(
            "KernelRidge(kernel_params=...) is not supported; give gamma, degree and coef0 instead"
        )
    posterior = Posterior(
        kernel=_kernel(model, gamma),
        points=points,
        weights=np.atleast_2d(_dense("dual_coef_", model.dual_coef_).T),
        likelihood=MeanOnly(),
        feature_names=fitted_names(model),
    )

    def predict(X: np.ndarray) -> LibraryPrediction:
        return LibraryPrediction(mean=np.reshape(model.predict(X), (len(X), posterior.outputs)))

    return Conversion(posterior, predict)


def _kernel(model: Any, gamma: float) -> Kernel:
    """The kernel by its name; `gamma` is a number, as "scale" and "auto" were when it was fitted.

    rbf: `exp(-gamma |x - z|^2)`, a length-scale of `1 / sqrt(2 gamma)`;
    poly: `(gamma x.z + coef0)^degree`; linear: `x.z`.
    """
    kind, name = type(model).__name__, model.kernel
    if not isinstance(name, str) or name not in KERNELS:
        why = {
            "sigmoid": "tanh(gamma x.z + coef0) is not positive definite",
            "precomputed": "the points themselves are not known",
        }
        said = why.get(name, "it is not known here") if isinstance(name, str) else "it is code"
        raise UnsupportedModelError(
            f"{kind}(kernel={name!r}) is not supported: {said}; fit with one of {KERNELS}, or "
            "write the model as a Posterior by hand with a kernel of gpcert.kernels"
        )
    try:
        if name == "linear":
            return Linear(1.0)
        if name == "rbf":
            return SquaredExponential(1.0 / np.sqrt(2.0 * _positive("gamma", gamma)))
        return Polynomial(model.degree, _positive("gamma", gamma), model.coef0)
    except InputError as error:
        raise UnsupportedModelError(
            f"{kind}(kernel={name!r}) is not supported with these parameters: {error}; fit with "
            "others"
        ) from None


def _positive(name: str, value: float) -> float:
    if not 0.0 < value < np.inf:
        raise InputError(f"{name}: expected a positive number, got {value!r}")
    return value


def _dense(name: str, values: Any) -> np.ndarray:
    """An array, also of a model that was fitted on sparse data."""
    return finite_array(name, values.toarray() if scipy.sparse.issparse(values) else values)
