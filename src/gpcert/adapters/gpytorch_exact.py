"""GPyTorch's `ExactGP`. With noise from its likelihood,

    L L^T = k(X, X) + noise,  t = L^-T L^-1 (y - mean(X)),  A = L^-1,  X = train_inputs[0],

factored here in float64 whatever the size: beyond 800 points the library itself solves by conjugate
gradients to a tolerance of 1e-2, and what is certified is the exact GP of the same parameters; the
distance is measured (`Conversion.native`). Certified is the latent function, as `model(x)` predicts
it. The library reports variances below 1e-10 as 1e-10 (`settings.min_variance`); the certified
variance is the one of the formula.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpcert.adapters.conversion import (
    Conversion,
    LibraryPrediction,
    check_inherited,
    unsupported,
)
from gpcert.adapters.gpytorch_prior import (
    compared,
    gpytorch,
    latent,
    numbers,
    prior_of,
    read_only_copy,
    side_by_side,
)
from gpcert.adapters.outputs import join_outputs
from gpcert.adapters.variational import exact_regression
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.frames import spread_of
from gpcert.posterior import Posterior

LIKELIHOODS = (
    gpytorch.likelihoods.GaussianLikelihood,
    gpytorch.likelihoods.FixedNoiseGaussianLikelihood,
    gpytorch.likelihoods.MultitaskGaussianLikelihood,
)
"""Likelihoods of exact regression."""


def convert_exact(model: Any) -> Conversion:
    """Convert an `ExactGP`, or an `IndependentModelList` of them."""
    for each in _models(model):
        check_inherited(each, gpytorch.models.ExactGP, ("__call__",))
    copy = read_only_copy(model)
    found = [
        exact_posterior(each, each.train_inputs, each.train_targets, c)
        for each in _models(copy)
        for c in _outputs(each)
    ]

    def said(own: Any, X: Any) -> LibraryPrediction:
        return side_by_side([latent(each, X) for each in _models(own)])

    points = max(len(each.points) for each in found)
    return compared(join_outputs(found), model, copy, said, points=points)


def _models(model: Any) -> list[Any]:
    """The model, or those of a list."""
    if not isinstance(model, gpytorch.models.IndependentModelList):
        return [model]
    for each in model.models:
        if not isinstance(each, gpytorch.models.ExactGP):
            why = "; ask about one model at a time"
            raise unsupported("IndependentModelList", each, (gpytorch.models.ExactGP,), why)
    return list(model.models)


def _outputs(model: Any) -> list[int | None]:
    """Numbers of the outputs: targets (N, tasks), or a batch of them (tasks, N)."""
    y = model.train_targets
    if y is None or y.ndim == 1:
        return [None]
    return list(range(y.shape[-1 if _is_multitask(model.likelihood) else 0]))


def _is_multitask(likelihood: Any) -> bool:
    return type(likelihood) is gpytorch.likelihoods.MultitaskGaussianLikelihood


def exact_posterior(model: Any, inputs: Any, targets: Any, output: int | None = None) -> Posterior:
    """The posterior of exact regression, from a copy; `output` c of a batch of several."""
    if inputs is None or targets is None:
        raise InputError("model: expected training data, got none; call set_train_data(X, y) first")
    if len(inputs) != 1:
        raise UnsupportedModelError(f"train_inputs: expected one tensor, got {len(inputs)}")
    X, y = numbers("train_inputs", inputs[0]), numbers("train_targets", targets)
    noise = _noise(model.likelihood)
    if output is not None:
        X = X[output] if X.ndim == 3 else X
        y = y[:, output] if _is_multitask(model.likelihood) else y[output]
        noise = noise[output] if noise.ndim == 2 else noise
    if X.ndim != 2 or y.shape != (len(X),):
        raise UnsupportedModelError(
            f"train_inputs and train_targets: expected shapes (N, d) and (N,), got {X.shape} and "
            f"{y.shape}; several outputs are (N, tasks) with a MultitaskGaussianLikelihood, or a "
            "batch (tasks, N); train one model an output"
        )
    mean, kernel = prior_of(model, X.shape[1], output)
    K = kernel.value(X, X) + np.diag(np.broadcast_to(noise, y.shape))
    found = exact_regression(K, y - mean.at(X)[:, 0])
    return found.posterior(kernel, X, mean.constant, mean.slope, spread=spread_of(X))


def _noise(likelihood: Any) -> np.ndarray:
    """One number, one a point, or (tasks, 1) or (tasks, N)."""
    if type(likelihood) not in LIKELIHOODS:
        raise unsupported("likelihood of an ExactGP", likelihood, LIKELIHOODS)
    if not _is_multitask(likelihood):
        return numbers("likelihood.noise", likelihood.noise)
    if likelihood.rank > 0:
        raise UnsupportedModelError(
            "MultitaskGaussianLikelihood with a rank above 0 is not supported: its noise couples "
            "the outputs; train with rank=0"
        )
    total = np.zeros((likelihood.num_tasks, 1))
    if likelihood.has_task_noise:
        total += numbers("likelihood.task_noises", likelihood.task_noises).reshape(-1, 1)
    if likelihood.has_global_noise:
        total += float(numbers("likelihood.noise", likelihood.noise).reshape(()))
    return total
