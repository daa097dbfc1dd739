"""Multi-task models of GPyTorch: `IndexKernel` of a task, and `MultitaskKernel` of all of them.

    Hadamard   forward(x, i) with two training inputs; covariance k(x, x') B[i, i'],
    Kronecker  MultitaskKernel, or a sum of them (LCMKernel), with a MultitaskMean and a
               MultitaskGaussianLikelihood: all tasks are observed at all points.

Both become one output for each task, see `gpcert.adapters.tasks`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpcert.adapters import gpytorch_prior as prior
from gpcert.adapters import tasks
from gpcert.adapters.adapter import Conversion, LibraryPrediction, concatenated, unsupported
from gpcert.adapters.canonical import join_outputs
from gpcert.adapters.gpytorch_prior import gk, gpytorch, torch
from gpcert.errors import UnsupportedModelError
from gpcert.inputs.tabular import spread_of
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import finite_array

gl: Any = gpytorch.likelihoods

ONE_TASK_LIKELIHOODS = (
    gl.GaussianLikelihood,
    gl.FixedNoiseGaussianLikelihood,
    gl.HadamardGaussianLikelihood,
)
"""Likelihoods of observations of one task each."""


def is_hadamard(model: Any) -> bool:
    """Whether a model is called with the inputs and with the numbers of their tasks."""
    inputs = model.train_inputs
    return inputs is not None and len(inputs) == 2 and len(_index_kernels(model)) == 1


def is_kronecker(model: Any) -> bool:
    """Whether a model has all tasks at every point."""
    kernels = prior.outermost(dict(model.named_children()), gk.Kernel)
    return len(kernels) == 1 and type(kernels[0]) in (gk.MultitaskKernel, gk.LCMKernel)


def _index_kernels(model: Any) -> list[Any]:
    parts = prior.outermost(dict(model.named_children()), gk.Kernel)
    return [part for part in parts if isinstance(part, gk.IndexKernel)]


def task_covariance(kernel: Any) -> np.ndarray:
    """B (T, T) of an index kernel."""
    if prior.batched(kernel):
        raise UnsupportedModelError("IndexKernel with a batch_shape is not supported")
    B = finite_array("task covariance", kernel._eval_covar_matrix())
    return 0.5 * (B + B.T)


def task_noise(model: Any, count: int) -> np.ndarray:
    """(N,): the noise of the observations, one task each, as predictions count it."""
    likelihood = model.likelihood
    if type(likelihood) not in ONE_TASK_LIKELIHOODS:
        raise unsupported("likelihood of a multi-task model", likelihood, ONE_TASK_LIKELIHOODS)
    noise = likelihood._shaped_noise_covar(torch.Size((count,)), model.train_inputs)
    return finite_array("likelihood noise", noise.diagonal(dim1=-1, dim2=-2)).reshape(count)


def convert_hadamard(model: Any) -> Conversion:
    """Convert a model that is called with inputs and tasks: an output for each task."""
    copy = prior.read_only_copy(model)
    X, numbers = (finite_array("train_inputs", part) for part in copy.train_inputs)
    y = finite_array("train_targets", copy.train_targets)
    if X.ndim != 2 or y.shape != (len(X),) or numbers.size != len(X):
        raise UnsupportedModelError(
            "train_inputs: expected inputs (N, d), tasks (N, 1) and targets (N,), got shapes "
            f"{X.shape}, {numbers.shape} and {y.shape}"
        )
    index = _index_kernels(copy)[0]
    parts = {name: part for name, part in copy.named_children() if part is not index}
    (kernel,) = prior.outermost(parts, gk.Kernel) or [None]
    if kernel is None:
        raise UnsupportedModelError(
            "model: expected a kernel of the inputs beside its IndexKernel, got none"
        )
    prior.check_parts(dict(copy.named_children()))
    (mean,) = prior.outermost(parts, gpytorch.means.Mean)
    rows = numbers.reshape(-1).astype(int)
    means = prior.task_means(mean, X.shape[1], len(task_covariance(index)))
    each = tasks.of_observations(
        prior.TREE.convert(kernel, X.shape[1])[0],
        X,
        rows,
        task_covariance(index),
        task_noise(copy, len(X)),
        y - np.concatenate([m.at(X) for m in means], axis=1)[np.arange(len(X)), rows],
    )
    posteriors = [
        task.canonical.posterior(task.kernel, X, mean, spread=spread_of(X))
        for task, mean in zip(each, means, strict=True)
    ]

    def of_task(library_model: Any, X: Any, t: int) -> LibraryPrediction:
        prediction = library_model(X, torch.full((len(X), 1), t, dtype=torch.long))
        mean, variance = (finite_array("", part) for part in (prediction.mean, prediction.variance))
        return LibraryPrediction(mean[:, None], variance[:, None])

    def predictions(library_model: Any, X: Any) -> LibraryPrediction:
        every = [of_task(library_model, X, t) for t in range(len(posteriors))]
        return concatenated(every, axis=1)

    joint = join_outputs(posteriors)
    return prior.compared(joint, model, copy, predictions, points=len(X))


def kronecker_posteriors(model: Any) -> list[Posterior]:
    """The tasks of a copied model that observes all of them at every point."""
    X = finite_array("train_inputs", model.train_inputs[0])
    Y = finite_array("train_targets", model.train_targets)
    kernel = prior.outermost(dict(model.named_children()), gk.Kernel)[0]
    (mean,) = prior.outermost(dict(model.named_children()), gpytorch.means.Mean)
    terms = [kernel] if type(kernel) is gk.MultitaskKernel else list(kernel.covar_module_list)
    covariances = [task_covariance(term.task_covar_module) for term in terms]
    B = covariances[0]
    if X.ndim != 2 or Y.shape != (len(X), len(B)):
        raise UnsupportedModelError(
            f"train_inputs and train_targets: expected shapes (N, d) and (N, {len(B)}), got "
            f"{X.shape} and {Y.shape}"
        )
    inner = [prior.TREE.convert(term.data_covar_module, X.shape[1])[0] for term in terms]
    means = prior.task_means(mean, X.shape[1], len(B))
    residuals = Y - np.concatenate([each.at(X) for each in means], axis=1)
    noise = _block_noise(model.likelihood)
    if len(terms) > 1:
        joint = tasks.Terms.of_covariances(inner, covariances, X.shape[1])
        rows, numbers = np.repeat(X, len(B), axis=0), np.tile(np.arange(len(B)), len(X))
        alone = np.count_nonzero(noise - np.diag(np.diag(noise))) == 0
        every = np.tile(np.diag(noise), len(X)) if alone else np.kron(np.eye(len(X)), noise)
        return joint.exact(rows, numbers, every, residuals.ravel(), means, spread=spread_of(X))
    each = tasks.of_blocks(inner[0], X, B, noise, residuals)
    return [
        task.canonical.posterior(task.kernel, X, mean, spread=spread_of(X))
        for task, mean in zip(each, means, strict=True)
    ]


def _block_noise(likelihood: Any) -> np.ndarray:
    """(T, T): the covariance of the noise of all tasks at a point."""
    if type(likelihood) is not gl.MultitaskGaussianLikelihood:
        raise unsupported("likelihood", likelihood, (gl.MultitaskGaussianLikelihood,))
    count = likelihood.num_tasks
    total = np.zeros((count, count))
    if likelihood.has_task_noise and likelihood.rank == 0:
        total += np.diag(finite_array("task_noises", likelihood.task_noises).reshape(-1))
    elif likelihood.has_task_noise:
        total += finite_array("task_noise_covar", likelihood.task_noise_covar)
    if likelihood.has_global_noise:
        noise = float(finite_array("likelihood.noise", likelihood.noise).reshape(()))
        total += noise * np.eye(count)
    return total
