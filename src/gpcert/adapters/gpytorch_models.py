"""GPyTorch's models: exact ones (`gpytorch_exact`), and normal distributions at inducing points.

`ExactGP` knows its likelihood. To an `ApproximateGP` it is given as the pair `(model, likelihood)`,
or found in its attribute `likelihood`; without one the latent function is certified.

    VariationalStrategy            q is that of L^-1 (u - m_Z); jitter in K_ZZ and in k(x, x),
    UnwhitenedVariationalStrategy  q is that of u itself; jitter in K_ZZ only,
    IndependentMultitask...        several of them, one an output.

See `gpcert.adapters.variational` for the formulas. The jitter is the one of the model's own
precision (1e-4 in float32, 1e-6 in float64 unless given), and belongs to the model.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gpcert.adapters.conversion import (
    Conversion,
    LibraryPrediction,
    check_inherited,
    unsupported,
)
from gpcert.adapters.gpytorch_exact import convert_exact
from gpcert.adapters.gpytorch_prior import (
    compared,
    exact_solves,
    gpytorch,
    numbers,
    prior_of,
    read_only_copy,
    torch,
    without_caches,
)
from gpcert.adapters.outputs import join_outputs
from gpcert.adapters.variational import Canonical, lower_factor, unwhitened, whitened
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.likelihoods import Gaussian, Likelihood, Probit, Softmax
from gpcert.posterior import Posterior

gv: Any = gpytorch.variational
gl: Any = gpytorch.likelihoods

STRATEGIES: dict[type, Callable[..., Canonical]] = {
    gv.VariationalStrategy: whitened,
    gv.UnwhitenedVariationalStrategy: unwhitened,
}

DISTRIBUTIONS = (
    gv.CholeskyVariationalDistribution,
    gv.MeanFieldVariationalDistribution,
    gv.DeltaVariationalDistribution,
    gv.NaturalVariationalDistribution,
    gv.TrilNaturalVariationalDistribution,
)


def convert(model: Any) -> Conversion:
    """Convert an `ExactGP`, an `ApproximateGP`, or a pair of that and its likelihood."""
    kinds = gpytorch.models
    if isinstance(model, tuple):
        return _variational(*model)
    if isinstance(model, kinds.ExactGP | kinds.IndependentModelList):
        return convert_exact(model)
    if isinstance(model, kinds.ApproximateGP):
        return _variational(model, getattr(model, "likelihood", None))
    known = (
        "ExactGP, ApproximateGP, IndependentModelList, or a pair (ApproximateGP, likelihood) of "
        "gpytorch.models"
    )
    raise unsupported("model", model, known)


def _variational(model: Any, likelihood: Any) -> Conversion:
    """The model with its likelihood; None stands for the latent function itself."""
    check_inherited(model, gpytorch.models.ApproximateGP, ("__call__",))
    link = _likelihood(likelihood)
    copy = read_only_copy(model)
    asked: Any = None if likelihood is None else read_only_copy(without_caches(likelihood))
    base, count = _strategy(model.variational_strategy)
    read, _ = _strategy(copy.variational_strategy)
    read.jitter_val = base.jitter_val  # by the model's own precision
    with exact_solves():
        outputs = [_output(copy, read, c) for c in (range(count) if count else [None])]
    if isinstance(link, Softmax) and asked.num_features != len(outputs):
        raise UnsupportedModelError(
            f"SoftmaxLikelihood: expected {len(outputs)} features, one an output of the model (its "
            f"classes without mixing_weights), got {asked.num_features}"
        )
    posterior = join_outputs(outputs, likelihood=link)
    binary = isinstance(link, Probit)

    def said(marginal: Any, own: Any, X: Any) -> LibraryPrediction:
        distribution = own(X)
        shape = (len(X), posterior.outputs)
        mean = numbers("mean", distribution.mean).reshape(shape)
        variance = numbers("variance", distribution.variance).reshape(shape)
        probability = numbers("probability", marginal(distribution).mean) if binary else None
        return LibraryPrediction(mean, variance, probability)

    of_copy, of_model = (partial(said, each) for each in (asked, likelihood))
    return compared(posterior, model, copy, of_copy, of_model)


def _strategy(strategy: Any) -> tuple[Any, int]:
    """The strategy that holds the inducing points, and its number of outputs (0: no batch)."""
    count = 0
    if type(strategy) is gv.IndependentMultitaskVariationalStrategy:
        count, strategy = strategy.num_tasks, strategy.base_variational_strategy
    if type(strategy) not in STRATEGIES:
        known = (*STRATEGIES, gv.IndependentMultitaskVariationalStrategy)
        raise unsupported("variational_strategy", strategy, known)
    distribution = strategy._variational_distribution
    if type(distribution) not in DISTRIBUTIONS:
        raise unsupported("variational distribution", distribution, DISTRIBUTIONS)
    if not strategy.variational_params_initialized.item():
        raise InputError(
            "model: expected a trained model, got one whose variational distribution was never "
            "set: the library draws it at random at the first call; train the model first"
        )
    if not getattr(strategy, "updated_strategy", torch.tensor(True)).item():
        raise InputError(
            "model: its state comes from a version of GPyTorch that did not whiten; call the model "
            "once, which converts the state, and save it again"
        )
    return strategy, count


def _output(model: Any, strategy: Any, output: int | None) -> Posterior:
    """The posterior of one output, from a copy."""
    q = strategy.variational_distribution
    Z = numbers("inducing_points", strategy.inducing_points)
    center = numbers("variational mean", q.mean)
    delta = isinstance(q, gpytorch.distributions.Delta)
    spread = None if delta else numbers("variational covariance", q.covariance_matrix)
    if output is not None:
        if center.ndim != 2:
            raise UnsupportedModelError(
                "variational distribution: expected batch_shape (outputs,), got values of shape "
                f"{center.shape}"
            )
        Z, center = (Z[output] if Z.ndim == 3 else Z), center[output]
        spread = None if spread is None else spread[output]
    if Z.ndim != 2 or center.shape != (len(Z),):
        raise UnsupportedModelError(
            f"variational distribution: expected shape ({Z.shape[-2]},), got {center.shape}; wrap "
            "batches in IndependentMultitaskVariationalStrategy"
        )
    mean, kernel = prior_of(model, Z.shape[1], output)
    jitter = float(strategy.jitter_val)
    L = lower_factor(kernel.value(Z, Z) + jitter * np.eye(len(Z)), "covariance of inducing points")
    white = type(strategy) is gv.VariationalStrategy
    found = STRATEGIES[type(strategy)](L, center if white else center - mean.at(Z)[:, 0], spread)
    noise = jitter if white else 0.0
    return found.posterior(kernel, Z, mean.constant, mean.slope, noise=noise)


def _likelihood(likelihood: Any) -> Likelihood:
    """Ours for the library's."""
    if likelihood is None:
        return Gaussian()
    link = LIKELIHOODS.get(type(likelihood))
    if link is None:
        why = "; pass the model without it to certify the latent function"
        raise unsupported("likelihood", likelihood, LIKELIHOODS, why)
    if isinstance(link, Softmax) and likelihood.mixing_weights is not None:
        return Softmax(numbers("likelihood.mixing_weights", likelihood.mixing_weights))
    return link


LIKELIHOODS: dict[type, Likelihood] = {
    gl.GaussianLikelihood: Gaussian(),
    gl.FixedNoiseGaussianLikelihood: Gaussian(),
    gl.BernoulliLikelihood: Probit(),
    gl.SoftmaxLikelihood: Softmax(),
}
