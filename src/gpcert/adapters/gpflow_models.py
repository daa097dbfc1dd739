"""GPflow models as posteriors.

    GPR    exact regression,
    VGP    q of L^-1 (f - m) at the training inputs, L L^T = K + jitter I,
    SVGP   q of u, or of L^-1 (u - m), at inducing inputs, diagonal or full,
    SGPR   the same at its optimum: with A = L^-1 K_uf / sigma and B = I + A A^T the whitened values
           have the covariance B^-1 and the mean B^-1 A (y - m) / sigma (Titsias 2009).

See `gpcert.adapters.variational`. Jitter is in K_uu only. Certified is the latent function
(`predict_f`), and of a classifier the probability of `predict_y`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from gpcert.adapters.conversion import Conversion, LibraryPrediction
from gpcert.adapters.gpflow_kernels import convert_kernel
from gpcert.adapters.library import library
from gpcert.adapters.outputs import join_outputs
from gpcert.adapters.prior_mean import PriorMean
from gpcert.adapters.variational import (
    Canonical,
    exact_regression,
    lower_factor,
    unwhitened,
    whitened,
)
from gpcert.arrays import finite_array
from gpcert.errors import UnsupportedModelError
from gpcert.kernels import Kernel
from gpcert.likelihoods import Gaussian, LapseProbit, Likelihood, Softmax
from gpcert.posterior import Posterior
from gpcert.spread import spread_of

gpflow: Any = library("gpflow")

LAPSE = 1e-3
"""Hard-coded in gpflow/likelihoods/utils.py, `inv_probit`."""


def convert(model: Any) -> Conversion:
    """Convert a GPflow model."""
    reader = READERS.get(type(model))
    if reader is None:
        names = ", ".join(kind.__name__ for kind in READERS)
        raise UnsupportedModelError(
            f"model: {type(model).__name__} is not supported (supported: {names} of gpflow.models, "
            "not classes derived from them)"
        )
    likelihood = _likelihood(model.likelihood)
    Z = _points(model)
    kernel, white = convert_kernel(model.kernel, Z.shape[1])
    count = int(model.num_latent_gps)
    mean = _mean(model.mean_function, count, Z.shape[1])
    outputs = [
        Posterior(
            kernel,
            Z,
            found.weights,
            found.factor,
            negative_factor=found.negative_factor,
            offset=mean.constant[c],
            slope=mean.slope[c],
            noise=white,
            spread=spread_of(np.asarray(model.data[0])) if hasattr(model, "data") else None,
        )
        for c, found in enumerate(reader(model, kernel, white, mean))
    ]
    posterior = join_outputs(outputs, likelihood=likelihood)
    binary = isinstance(likelihood, LapseProbit)

    def predict(X: np.ndarray) -> LibraryPrediction:
        mean, variance = (part.numpy() for part in model.predict_f(X))
        probability = model.predict_y(X)[0].numpy()[:, 0] if binary else None
        return LibraryPrediction(mean, variance, probability)

    return Conversion(posterior, predict)


def _numbers(name: str, value: Any) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype != np.float64:
        raise UnsupportedModelError(
            f"{name}: expected float64, got {array.dtype}; build the model with "
            "gpflow.config.set_default_float(np.float64), the library's own default"
        )
    return finite_array(name, array)


def _points(model: Any) -> np.ndarray:
    """Training inputs or inducing inputs."""
    if type(model) in (gpflow.models.GPR, gpflow.models.VGP):
        return _numbers("data[0]", model.data[0])
    inducing = model.inducing_variable
    if type(inducing) is not gpflow.inducing_variables.InducingPoints:
        raise UnsupportedModelError(
            f"inducing_variable: {type(inducing).__name__} is not supported (supported: "
            "InducingPoints)"
        )
    return _numbers("inducing_variable.Z", inducing.Z)


def _covariance(kernel: Kernel, white: float, Z: np.ndarray, added: Any) -> np.ndarray:
    """k(Z, Z), white noise included, with something more on the diagonal."""
    return kernel.value(Z, Z) + np.diag(np.broadcast_to(white + added, (len(Z),)))


def _inducing_factor(model: Any, kernel: Kernel, white: float) -> np.ndarray:
    K = _covariance(kernel, white, _points(model), gpflow.default_jitter())
    return lower_factor(K, "covariance of the inducing inputs")


def _noise(model: Any, X: np.ndarray) -> np.ndarray:
    return _numbers("likelihood.variance_at", model.likelihood.variance_at(X)).reshape(-1)


def _exact(model: Any, kernel: Kernel, white: float, mean: PriorMean) -> list[Canonical]:
    X, Y = _numbers("data[0]", model.data[0]), _numbers("data[1]", model.data[1])
    K = _covariance(kernel, white, X, _noise(model, X))
    return [exact_regression(K, errors) for errors in (Y - mean.at(X)).T]


def _sparse(model: Any, kernel: Kernel, white: float, mean: PriorMean) -> list[Canonical]:
    X, Y = _numbers("data[0]", model.data[0]), _numbers("data[1]", model.data[1])
    sigma = np.sqrt(_noise(model, X))
    L = _inducing_factor(model, kernel, white)
    A = scipy.linalg.solve_triangular(L, kernel.value(_points(model), X) / sigma, lower=True)
    root = lower_factor(np.eye(len(L)) + A @ A.T, "I + A A^T")
    spread = scipy.linalg.cho_solve((root, True), np.eye(len(L)))
    errors = (Y - mean.at(X)).T / sigma
    return [whitened(L, scipy.linalg.cho_solve((root, True), A @ e), spread) for e in errors]


def _variational(model: Any, kernel: Kernel, white: float, mean: PriorMean) -> list[Canonical]:
    L = _inducing_factor(model, kernel, white)
    centers, roots = _numbers("q_mu", model.q_mu).T, _numbers("q_sqrt", model.q_sqrt)
    if roots.ndim == 2:  # standard deviations, (M, P)
        spreads = [np.diag(np.square(deviations)) for deviations in roots.T]
    else:
        lower = np.tril(roots)
        spreads = list(lower @ lower.transpose(0, 2, 1))
    # u less its prior mean is not what an unwhitened q of the library describes: m(Z) is ignored
    solve = whitened if getattr(model, "whiten", True) else unwhitened
    return [solve(L, center, spread) for center, spread in zip(centers, spreads, strict=True)]


def _likelihood(likelihood: Any) -> Likelihood:
    kinds = gpflow.likelihoods
    if type(likelihood) is kinds.Gaussian:
        return Gaussian()
    if type(likelihood) is kinds.Softmax:
        return Softmax()
    if type(likelihood) is kinds.Bernoulli:
        if likelihood.invlink is kinds.utils.inv_probit:
            return LapseProbit(LAPSE)
        raise UnsupportedModelError(
            "likelihood: Bernoulli with another invlink than inv_probit is not supported: "
            "predict_y approximates it by quadrature; use Bernoulli()"
        )
    raise UnsupportedModelError(
        f"likelihood: {type(likelihood).__name__} is not supported (supported: Gaussian, "
        "Bernoulli, Softmax)"
    )


def _mean(mean: Any, count: int, d: int) -> PriorMean:
    """The prior's mean of every output."""
    kinds = gpflow.functions
    if type(mean) is kinds.Zero:
        return PriorMean.of(count, d)
    if type(mean) is kinds.Constant:
        return PriorMean.of(count, d, _numbers("mean_function.c", mean.c).reshape(-1))
    if type(mean) is kinds.Linear:  # A (d, outputs) or (d, 1), b (outputs,) or (1,)
        A, b = _numbers("mean_function.A", mean.A), _numbers("mean_function.b", mean.b)
        return PriorMean.of(count, d, b.reshape(-1), A.T)
    if type(mean) is kinds.Additive:
        return _mean(mean.add_1, count, d) + _mean(mean.add_2, count, d)
    raise UnsupportedModelError(
        f"mean_function: {type(mean).__name__} is not supported (supported: Constant, Zero, "
        "Linear and sums of these); fit the targets less the mean"
    )


READERS: dict[type, Callable[..., list[Canonical]]] = {
    gpflow.models.GPR: _exact,
    gpflow.models.SGPR: _sparse,
    gpflow.models.VGP: _variational,
    gpflow.models.SVGP: _variational,
}
