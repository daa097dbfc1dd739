"""GPyTorch's models.

`ExactGP` knows its likelihood. With noise from it,

    L L^T = k(X, X) + noise,  t = L^-T L^-1 (y - mean(X)),  A = L^-1,  X = train_inputs[0],

factored here in float64 whatever the size: beyond 800 points the library itself solves by conjugate
gradients to a tolerance of 1e-2, and what is certified is the exact GP of the same parameters; the
distance is measured (`Conversion.native`). Certified is the latent function, as `model(x)` predicts
it. The library reports variances below 1e-10 as 1e-10 (`settings.min_variance`); the certified
variance is the one of the formula.

To an `ApproximateGP` its likelihood is given as the pair `(model, likelihood)`, or found in its
attribute `likelihood`; without one the latent function is certified.

    VariationalStrategy            q is that of L^-1 (u - m_Z); jitter in K_ZZ and in k(x, x),
    UnwhitenedVariationalStrategy  q is that of u itself; jitter in K_ZZ only,
    IndependentMultitask...        several of them, one per output,
    LMCVariationalStrategy         mixtures of several by its coefficients, plus its jitter.

See `gpcert.adapters.canonical` for the formulas. The jitter is the one of the model's own
precision (1e-4 in float32, 1e-6 in float64 unless given), and belongs to the model.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gpcert.adapters import adapter, canonical, gpytorch_sparse, gpytorch_tasks, tasks
from gpcert.adapters import gpytorch_prior as prior
from gpcert.adapters.adapter import Conversion, LibraryPrediction, unsupported
from gpcert.adapters.gpytorch_prior import gpytorch, torch
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.likelihoods import Gaussian, Likelihood, Probit, Softmax
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import finite_array

gv: Any = gpytorch.variational
gl: Any = gpytorch.likelihoods

STRATEGIES: dict[type, Callable[..., canonical.Canonical]] = {
    gv.VariationalStrategy: canonical.whitened,
    gv.UnwhitenedVariationalStrategy: canonical.unwhitened,
}

DISTRIBUTIONS = (
    gv.CholeskyVariationalDistribution,
    gv.MeanFieldVariationalDistribution,
    gv.DeltaVariationalDistribution,
    gv.NaturalVariationalDistribution,
    gv.TrilNaturalVariationalDistribution,
)


ALONE = (
    "; a variational GPyTorch model alone is its latent function: for the classes of a likelihood "
    "pass the pair (model, likelihood)"
)
"""What errors say of a model that came without its likelihood."""

EXACT_LIKELIHOODS = (
    gl.GaussianLikelihood,
    gl.FixedNoiseGaussianLikelihood,
    gl.MultitaskGaussianLikelihood,
)
"""Likelihoods of exact regression."""


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


def convert_exact(model: Any) -> Conversion:
    """Convert an `ExactGP`, or an `IndependentModelList` of them."""
    for each in _models(model):
        adapter.check_inherited(each, gpytorch.models.ExactGP, ("__call__",))
    if isinstance(model, gpytorch.models.ExactGP) and gpytorch_tasks.is_hadamard(model):
        return gpytorch_tasks.convert_hadamard(model)
    copy = prior.read_only_copy(model)
    posteriors = [output for each in _models(copy) for output in exact_outputs(each)]

    def predictions(library_model: Any, X: Any) -> LibraryPrediction:
        return adapter.concatenated([_latent(each, X) for each in _models(library_model)], axis=1)

    points = max(len(each.points) for each in posteriors)
    return prior.compared(
        canonical.join_outputs(posteriors), model, copy, predictions, points=points
    )


def _latent(model: Any, X: Any) -> LibraryPrediction:
    """Mean and variance, each (n, outputs)."""
    prediction = model(X)
    mean, variance = (
        finite_array("mean", prediction.mean),
        finite_array("variance", prediction.variance),
    )
    if isinstance(prediction, gpytorch.distributions.MultitaskMultivariateNormal):
        return LibraryPrediction(mean, variance)
    rows = (-1, len(X))  # of a batch (tasks, n)
    return LibraryPrediction(mean.reshape(rows).T, variance.reshape(rows).T)


def exact_outputs(model: Any) -> list[Posterior]:
    """The posterior of every output of a copied model."""
    if gpytorch_tasks.is_kronecker(model):
        return gpytorch_tasks.kronecker_posteriors(model)
    if gpytorch_sparse.inducing_kernel(model) is not None:
        return [gpytorch_sparse.sparse_posterior(model, _noise(model.likelihood))]
    return [exact_posterior(model, c) for c in _outputs(model)]


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
        kernels = prior.outermost(dict(model.named_children()), prior.gk.Kernel)
        batch = kernels[0].batch_shape if len(kernels) == 1 else ()
        return [None] if len(batch) != 1 else list(range(batch[0]))  # hyper-parameters of the same
    return list(range(y.shape[-1 if _is_multitask(model.likelihood) else 0]))


def _is_multitask(likelihood: Any) -> bool:
    return type(likelihood) is gl.MultitaskGaussianLikelihood


def exact_posterior(model: Any, output: int | None = None) -> Posterior:
    """The posterior of exact regression, from a copy; `output` c of a batch of several."""
    inputs, targets = model.train_inputs, model.train_targets
    if inputs is None or targets is None:
        raise InputError("model: expected training data, got none; call set_train_data(X, y) first")
    if len(inputs) != 1:
        raise UnsupportedModelError(f"train_inputs: expected one tensor, got {len(inputs)}")
    X, y = finite_array("train_inputs", inputs[0]), finite_array("train_targets", targets)
    noise = _noise(model.likelihood)
    if output is not None:
        X = X[output] if X.ndim == 3 else X
        if y.ndim > 1:
            y = y[:, output] if _is_multitask(model.likelihood) else y[output]
        noise = noise[output] if noise.ndim == 2 else noise
    if X.ndim != 2 or y.shape != (len(X),):
        raise UnsupportedModelError(
            f"train_inputs and train_targets: expected shapes (N, d) and (N,), got {X.shape} and "
            f"{y.shape}; several outputs are (N, tasks) with a MultitaskGaussianLikelihood, or a "
            "batch (tasks, N); train one model an output"
        )
    known = prior.prior_of(model, X.shape[1], output, X)
    seen = known.seen(X)
    K = known.kernel.value(seen, seen) + np.diag(np.broadcast_to(noise, y.shape))
    regression = canonical.exact_regression(K, y - known.mean.at(X)[:, 0], noise)
    mean, fields = known.placed(X)
    return regression.posterior(known.kernel, seen, mean, **fields)


def _noise(likelihood: Any) -> np.ndarray:
    """One number, one per point, or (tasks, 1) or (tasks, N)."""
    if type(likelihood) not in EXACT_LIKELIHOODS:
        raise unsupported("likelihood of an ExactGP", likelihood, EXACT_LIKELIHOODS)
    if not _is_multitask(likelihood):
        return finite_array("likelihood.noise", likelihood.noise)
    if likelihood.rank > 0:
        raise UnsupportedModelError(
            "MultitaskGaussianLikelihood with a rank above 0 is not supported: its noise couples "
            "the outputs; train with rank=0"
        )
    total = np.zeros((likelihood.num_tasks, 1))
    if likelihood.has_task_noise:
        total += finite_array("likelihood.task_noises", likelihood.task_noises).reshape(-1, 1)
    if likelihood.has_global_noise:
        total += float(finite_array("likelihood.noise", likelihood.noise).reshape(()))
    return total


def _variational(model: Any, likelihood: Any) -> Conversion:
    """The model with its likelihood; None stands for the latent function itself."""
    adapter.check_inherited(model, gpytorch.models.ApproximateGP, ("__call__",))
    link = _likelihood(likelihood)
    copy = prior.read_only_copy(model)
    asked: Any = (
        None if likelihood is None else prior.read_only_copy(prior.without_caches(likelihood))
    )
    outputs = variational_outputs(model, copy)
    coupled = type(model.variational_strategy) is gv.LMCVariationalStrategy
    if coupled and isinstance(link, Softmax):
        raise UnsupportedModelError(
            "LMCVariationalStrategy with SoftmaxLikelihood is not supported: its classes need the "
            "joint law of the outputs; use IndependentMultitaskVariationalStrategy, whose mixing "
            "weights couple the classes"
        )
    if isinstance(link, Softmax) and asked.num_features != len(outputs):
        raise UnsupportedModelError(
            f"SoftmaxLikelihood: expected {len(outputs)} features, one per output of the model "
            f"(its classes without mixing_weights), got {asked.num_features}"
        )
    posterior = canonical.join_outputs(outputs, likelihood=link)
    binary = isinstance(link, Probit)

    def predictions(marginal: Any, library_model: Any, X: Any) -> LibraryPrediction:
        distribution = library_model(X)
        shape = (len(X), posterior.outputs)
        mean = finite_array("mean", distribution.mean).reshape(shape)
        variance = finite_array("variance", distribution.variance).reshape(shape)
        probability = finite_array("probability", marginal(distribution).mean) if binary else None
        return LibraryPrediction(mean, variance, probability)

    of_copy, of_model = (partial(predictions, each) for each in (asked, likelihood))
    return prior.compared(posterior, model, copy, of_copy, of_model)


def variational_outputs(model: Any, copy: Any) -> list[Posterior]:
    """The posterior of every latent function of an `ApproximateGP`, from its copy."""
    base, count = _strategy(model.variational_strategy)
    read, _ = _strategy(copy.variational_strategy)
    read.jitter_val = base.jitter_val  # by the model's own precision
    with prior.exact_solves():
        latent = [_output(copy, read, c) for c in (range(count) if count else [None])]
    whole = copy.variational_strategy
    if type(whole) is not gv.LMCVariationalStrategy:
        return latent
    W = finite_array("lmc_coefficients", whole.lmc_coefficients).T
    constants = W @ np.array([g.offset[0] for g in latent])
    slopes = W @ np.stack([g.slope[0] for g in latent])
    trends = zip(constants, slopes, strict=True)
    means = [canonical.PriorMean.of(1, slopes.shape[1], *trend) for trend in trends]
    whole.jitter_val = model.variational_strategy.jitter_val
    return tasks.mixed(latent, W, means, float(whole.jitter_val))


def _strategy(strategy: Any) -> tuple[Any, int]:
    """The strategy that holds the inducing points, and its number of outputs (0: no batch)."""
    count = 0
    if type(strategy) is gv.IndependentMultitaskVariationalStrategy:
        count, strategy = strategy.num_tasks, strategy.base_variational_strategy
    if type(strategy) is gv.LMCVariationalStrategy:
        count, strategy = strategy.num_latents, strategy.base_variational_strategy
    if type(strategy) not in STRATEGIES:
        joined = (gv.IndependentMultitaskVariationalStrategy, gv.LMCVariationalStrategy)
        known = (*STRATEGIES, *joined)
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
    Z = finite_array("inducing_points", strategy.inducing_points)
    center = finite_array("variational mean", q.mean)
    delta = isinstance(q, gpytorch.distributions.Delta)
    spread = None if delta else finite_array("variational covariance", q.covariance_matrix)
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
    known = prior.prior_of(model, Z.shape[1], output)
    mean, kernel = known.mean, known.kernel
    jitter = float(strategy.jitter_val)
    L = canonical.lower_factor(
        kernel.value(Z, Z) + jitter * np.eye(len(Z)), "covariance of inducing points"
    )
    white = type(strategy) is gv.VariationalStrategy
    variational = STRATEGIES[type(strategy)](
        L, center if white else center - mean.at(Z)[:, 0], spread
    )
    noise = jitter if white else 0.0
    return variational.posterior(kernel, Z, mean, noise=noise)


def _likelihood(likelihood: Any) -> Likelihood:
    """Ours for the library's."""
    if likelihood is None:
        return Gaussian(advice=ALONE)
    link = LIKELIHOODS.get(type(likelihood))
    if link is None:
        why = "; pass the model without it to certify the latent function"
        raise unsupported("likelihood", likelihood, LIKELIHOODS, why)
    if isinstance(link, Softmax) and likelihood.mixing_weights is not None:
        return Softmax(finite_array("likelihood.mixing_weights", likelihood.mixing_weights))
    return link


LIKELIHOODS: dict[type, Likelihood] = {
    gl.GaussianLikelihood: Gaussian(),
    gl.FixedNoiseGaussianLikelihood: Gaussian(),
    gl.MultitaskGaussianLikelihood: Gaussian(),
    gl.StudentTLikelihood: Gaussian(),
    gl.LaplaceLikelihood: Gaussian(),
    gl.BernoulliLikelihood: Probit(),
    gl.SoftmaxLikelihood: Softmax(),
}
