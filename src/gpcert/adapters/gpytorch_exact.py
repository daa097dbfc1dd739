"""GPyTorch's `ExactGP`. With noise from its likelihood,

    L L^T = k(X, X) + noise,  t = L^-T L^-1 (y - constant),  A = L^-1,  X = train_inputs[0],

factored here in float64 whatever the size: beyond 800 points the library itself solves by conjugate
gradients to a tolerance of 1e-2, and what is certified is the exact GP of the same parameters; the
distance is measured (`Conversion.native`). Certified is the latent function, as `model(x)` predicts
it. The library reports variances below 1e-10 as 1e-10 (`settings.min_variance`); the certified
variance is the one of the formula.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpcert.adapters.conversion import Conversion, LibraryPrediction, check_inherited
from gpcert.adapters.gpytorch_prior import in_blocks, latent, native_of, prior_of
from gpcert.adapters.torch_models import (
    exact_solves,
    gpytorch,
    numbers,
    read_only_copy,
    supported_names,
    torch,
)
from gpcert.adapters.variational import exact_regression
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.posterior import Posterior
from gpcert.spread import spread_of

__all__ = ["convert_exact", "exact_posterior"]

LIKELIHOODS = (
    gpytorch.likelihoods.GaussianLikelihood,
    gpytorch.likelihoods.FixedNoiseGaussianLikelihood,
)
"""Likelihoods of exact regression."""


def convert_exact(model: Any) -> Conversion:
    """Convert an `ExactGP`."""
    check_inherited(model, gpytorch.models.ExactGP, ("__call__",))
    copy = read_only_copy(model)
    posterior = exact_posterior(copy, copy.train_inputs, copy.train_targets)

    def predict(X: np.ndarray) -> LibraryPrediction:
        with exact_solves():
            return in_blocks(latent, copy, torch.as_tensor(X))

    native = native_of(model, latent, len(posterior.points))
    return Conversion(posterior, predict, native=native)


def exact_posterior(model: Any, inputs: Any, targets: Any, output: int | None = None) -> Posterior:
    """The posterior of exact regression, from a copy; `output` c of a batch of several."""
    if inputs is None or targets is None:
        raise InputError("model: expected training data, got none; call set_train_data(X, y) first")
    if len(inputs) != 1:
        raise UnsupportedModelError(f"train_inputs: expected one tensor, got {len(inputs)}")
    X, y = numbers("train_inputs", inputs[0]), numbers("train_targets", targets)
    noise = numbers("likelihood.noise", _noise(model.likelihood))
    if output is not None:
        X, y = (X[output] if X.ndim == 3 else X), y[output]
        noise = noise[output] if noise.ndim == 2 else noise
    if X.ndim != 2 or y.shape != (len(X),):
        raise UnsupportedModelError(
            f"train_inputs and train_targets: expected shapes (N, d) and (N,), got {X.shape} and "
            f"{y.shape}; several outputs or batches in one ExactGP are not supported: train one "
            "model an output"
        )
    constant, kernel = prior_of(model, X.shape[1], output)
    K = kernel.value(X, X) + np.diag(np.broadcast_to(noise, y.shape))
    found = exact_regression(K, y - constant)
    return Posterior(kernel, X, found.weights, found.factor, offset=constant, spread=spread_of(X))


def _noise(likelihood: Any) -> Any:
    if type(likelihood) not in LIKELIHOODS:
        raise UnsupportedModelError(
            f"likelihood: {type(likelihood).__name__} is not supported for an ExactGP "
            f"(supported: {supported_names(LIKELIHOODS)})"
        )
    return likelihood.noise
