"""GPy models as posteriors, whatever the inference: the library itself keeps the canonical form.

    t = posterior.woodbury_vector,  S = posterior.woodbury_inv,  Z = _predictive_variable,

with Z the training inputs or, of a sparse model, the inducing ones; `normalizer` scales outputs.
Certified is the latent function (`predict_noiseless`; its mean is that of `predict`), and of a
classifier the probability that `predict` returns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpcert.adapters.conversion import Conversion, LibraryPrediction
from gpcert.adapters.gpy_kernels import convert_kernel
from gpcert.adapters.library import library
from gpcert.adapters.prior_mean import PriorMean
from gpcert.arrays import finite_array
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.likelihoods import Gaussian, Likelihood, Probit
from gpcert.posterior import Posterior
from gpcert.spread import spread_of

GPy: Any = library("GPy")

MODELS = (
    GPy.models.GPRegression,
    GPy.models.GPHeteroscedasticRegression,
    GPy.models.GPClassification,
    GPy.models.SparseGPRegression,
    GPy.models.SparseGPClassification,
    GPy.core.GP,
    GPy.core.SparseGP,
)


def convert(model: Any) -> Conversion:
    """Convert a GPy model."""
    if type(model) not in MODELS:  # others predict by other formulas: warped, multi-output, ...
        names = ", ".join(kind.__name__ for kind in MODELS)
        raise UnsupportedModelError(
            f"model: {type(model).__name__} is not supported (supported: {names} of GPy)"
        )
    likelihood = _likelihood(model.likelihood)
    Z = model._predictive_variable
    if not isinstance(Z, np.ndarray) or not isinstance(model.X, np.ndarray):
        raise UnsupportedModelError(
            "model: uncertain inputs (X_variance) are not supported; fit it on plain inputs"
        )
    if model.posterior is None:
        raise InputError("model: expected a model with a posterior, got none; call initialize")
    Z = np.asarray(Z)
    kernel, white = convert_kernel(model.kern, Z.shape[1])
    weights = finite_array("woodbury_vector", model.posterior.woodbury_vector).reshape(len(Z), -1).T
    shift, scale = _normalizer(model, len(weights))
    mean = _mean(model.mean_function, len(weights), Z.shape[1])
    outputs = {
        "offset": shift + scale * mean.constant,
        "slope": mean.slope,
        "scale": scale,
        "noise": scale**2 * white,
        "likelihood": likelihood,
        "spread": spread_of(np.asarray(model.X)),
    }
    posterior = _with_precision(kernel, Z, weights, model.posterior.woodbury_inv, outputs)

    def predict(X: np.ndarray) -> LibraryPrediction:
        mean, variance = model.predict(X, include_likelihood=False)
        variance = np.broadcast_to(variance, mean.shape)
        if not likelihood.classifies:
            return LibraryPrediction(mean, variance)
        return LibraryPrediction(mean, variance, model.predict(X)[0][:, 0])

    return Conversion(posterior, predict)


def _with_precision(
    kernel: Any, Z: np.ndarray, weights: np.ndarray, inverse: Any, outputs: dict[str, Any]
) -> Posterior:
    """The posterior with S (N, N), or (N, N, m) where the outputs differ."""
    S = finite_array("woodbury_inv", inverse)
    S = S[:, :, None] if S.ndim == 2 else S
    found = [
        Posterior.from_precision(kernel, Z, weights, S[:, :, c] / 2 + S[:, :, c].T / 2)
        for c in range(S.shape[2])
    ]

    def stacked(name: str) -> np.ndarray:
        each = [getattr(one, name)[0] for one in found]
        rows = max(len(A) for A in each)
        return np.stack([np.pad(A, ((0, rows - len(A)), (0, 0))) for A in each])

    factors = {name: stacked(name) for name in ("factor", "negative_factor")}
    return Posterior(kernel, Z, weights, **factors, **outputs)


def _likelihood(likelihood: Any) -> Likelihood:
    kinds = GPy.likelihoods
    if type(likelihood) in (kinds.Gaussian, kinds.HeteroscedasticGaussian):
        return Gaussian()
    link = type(likelihood.gp_link).__name__
    if type(likelihood) is kinds.Bernoulli and link == "Probit":
        return Probit()
    raise UnsupportedModelError(
        f"likelihood: {type(likelihood).__name__} with the link {link} is not supported "
        "(supported: Gaussian, HeteroscedasticGaussian, Bernoulli with the Probit link)"
    )


def _normalizer(model: Any, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Shift and scale of every output."""
    normalizer = getattr(model, "normalizer", None)
    if normalizer is None:
        return np.zeros(m), np.ones(m)
    if type(normalizer).__name__ != "Standardize":
        raise UnsupportedModelError(
            f"normalizer: {type(normalizer).__name__} is not supported (supported: Standardize); "
            "scale the targets before fitting"
        )
    shift, scale = finite_array("mean", normalizer.mean), finite_array("std", normalizer.std)
    return np.broadcast_to(shift, (m,)), np.broadcast_to(scale, (m,))


def _mean(mean: Any, m: int, d: int) -> PriorMean:
    """The prior's mean of every output."""
    if mean is None:
        return PriorMean.of(m, d)
    if type(mean) is GPy.mappings.Constant:
        return PriorMean.of(m, d, mean.C)
    if type(mean) is GPy.mappings.Linear:
        return PriorMean.of(m, d, slope=np.asarray(mean.A).T)
    if type(mean) is GPy.mappings.Additive:
        return _mean(mean.mapping1, m, d) + _mean(mean.mapping2, m, d)
    raise UnsupportedModelError(
        f"mean_function: {type(mean).__name__} is not supported (supported: Constant, Linear and "
        "Additive of these of GPy.mappings); fit the targets less the mean"
    )
