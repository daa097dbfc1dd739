"""BoTorch's exact models, in the units of the user.

    x' = (x - offset) / coefficient   `Normalize`, `InputStandardize`, `AffineInputTransform`,
    x' = x[indices]                   `FilterFeatures`,
    y  = mean + stdv y'               `Standardize` (the default), `StratifiedStandardize`,
    y  = exp(y'), sign(y')(e^|y'| - 1)  `Log`, `Bilog`: likelihoods `ExpLink` and `CurveLink`,
    chains of these; `Warp`, `Log10` and `Round` of inputs are functions in front of the model,

feature by feature and output by output; both are folded into the posterior, whose regions are in
the units of x. Certified is what `model.posterior(X)` returns, without observation noise. Several
outputs: see `gpcert.adapters.canonical`; tasks: see `gpcert.adapters.tasks`.

The posterior of a `KroneckerMultiTaskGP` adds the tasks' noise to eigenvalues of other vectors,
which is exact only where all tasks have the same noise. Certified is the exact posterior, which
`model(X)` computes; the distance of `model.posterior(X)` is measured (`Conversion.native`).
"""

from __future__ import annotations

from functools import partial, reduce
from importlib.util import find_spec
from typing import Any

import numpy as np

from gpcert.adapters import botorch_pairwise, tasks
from gpcert.adapters.adapter import Conversion, LibraryPrediction, concatenated, unsupported
from gpcert.adapters.botorch_transforms import Outcome, input_map, outcome
from gpcert.adapters.canonical import in_units, join_outputs
from gpcert.adapters.gpytorch_models import exact_outputs, variational_outputs
from gpcert.adapters.gpytorch_prior import (
    TREE,
    compared,
    gk,
    read_only_copy,
    selected,
    task_means,
    torch,
)
from gpcert.adapters.gpytorch_tasks import task_covariance, task_noise
from gpcert.adapters.sklearn_features import AnyMap, dropping, folded
from gpcert.errors import UnsupportedModelError
from gpcert.inputs.tabular import spread_of
from gpcert.likelihoods import ResponseLikelihood
from gpcert.model.mixture import Mixture
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import finite_array
from gpcert.utils.optional_imports import library

models: Any = library("botorch.models")
posteriors: Any = library("botorch.posteriors")
bases: Any = library("botorch.models.gpytorch")
ExactGP: Any = library("gpytorch.models").ExactGP
Variational: Any = models.ApproximateGPyTorchModel
likelihoods: Any = library("gpytorch.likelihoods")
REGRESSIONS = (likelihoods.GaussianLikelihood, likelihoods.MultitaskGaussianLikelihood)

KNOWN = (
    "SingleTaskGP, SingleTaskVariationalGP, MultiTaskGP, KroneckerMultiTaskGP, "
    "EnsembleMapSaasSingleTaskGP, SaasFullyBayesianSingleTaskGP, ModelListGP, PairwiseGP, or a "
    "GPyTorchModel that is an ExactGP"
)
"""The models that are supported, in words."""


INSTEAD = {
    "HigherOrderGP": "; fit a SingleTaskGP to each of its outputs, or a KroneckerMultiTaskGP",
}
"""Models by name, and what to do."""

ENSEMBLES = (
    ("map_saas", "EnsembleMapSaasSingleTaskGP"),
    ("fully_bayesian", "SaasFullyBayesianSingleTaskGP"),
)

POSTERIORS = (
    bases.GPyTorchModel.posterior,
    bases.BatchedMultiOutputGPyTorchModel.posterior,
    bases.MultiTaskGPyTorchModel.posterior,
    models.KroneckerMultiTaskGP.posterior,
    *(
        getattr(library(f"botorch.models.{module}"), name).posterior
        for module, name in ENSEMBLES
        if find_spec(f"botorch.models.{module}")
    ),
)
"""The methods whose answer is certified; a class with another one may predict something else."""


def convert(model: Any) -> Conversion:
    """Convert a BoTorch model; the result predicts in the units of the user."""
    if isinstance(model, botorch_pairwise.PairwiseGP):
        return botorch_pairwise.convert(model)
    _members(model)  # an error before the copy
    copy = read_only_copy(model)
    each, originals = _members(copy), _members(model)
    links = {_link(one) for one in each}
    if len(links) > 1:
        raise UnsupportedModelError(
            "ModelListGP: expected outcome transforms after which all predictions are means, or "
            "all of the same function, got others; ask about one model at a time"
        )
    (link,) = links
    options = {} if link is None else {"likelihood": link}
    pairs = zip(each, originals, strict=True)
    outputs = [p for one, own in pairs for p in _outputs(one, own)]
    if any(map(_is_ensemble, each)):
        if len(each) > 1 or link is not None:
            raise UnsupportedModelError(
                f"{type(each[0]).__name__}: supported by itself and without Log or Bilog, got it "
                "in a ModelListGP or behind one; ask about it alone"
            )
        posterior: Any = Mixture(tuple(outputs))
    else:
        posterior = join_outputs(outputs, **options)
    points = max(len(each.points) for each in posterior.members)
    other = any(isinstance(each, models.KroneckerMultiTaskGP) for each in _members(model))
    native = partial(_predictions, exact=False)
    return compared(posterior, model, copy, _predictions, native, points, other)


def _predictions(model: Any, X: Any, exact: bool = True) -> LibraryPrediction:
    """What the library says, (n, outputs); of a multi-task model task by task."""
    if isinstance(model, models.KroneckerMultiTaskGP) and exact:
        distribution = model(model.transform_inputs(X))
        y = outcome(getattr(model, "outcome_transform", None), model.num_outputs)
        mean = finite_array("mean", distribution.mean)
        variance = finite_array("variance", distribution.variance)
        return LibraryPrediction(y.shift + y.scale * mean, y.scale**2 * variance)
    if not isinstance(model, models.MultiTaskGP):
        if isinstance(model, models.ModelListGP):
            return concatenated([_predictions(each, X, exact) for each in model.models], axis=1)
        return _prediction(model, X)
    column, parts = model._task_feature, []
    for task in model._output_tasks:
        at = torch.full((len(X), 1), float(task)).to(X)
        parts.append(_prediction(model, torch.cat([X[:, :column], at, X[:, column:]], dim=1)))
    return concatenated(parts, axis=1)


def _prediction(model: Any, X: Any) -> LibraryPrediction:
    """Of transformed outcomes the latent function, and as the response the mean where the library
    knows it, else what its samples would be at the latent mean."""
    prediction, transforms = model.posterior(X), []
    if _is_ensemble(model):  # (n, 1)
        mean, variance = prediction.mixture_mean, prediction.mixture_variance
        return LibraryPrediction(finite_array("mean", mean), finite_array("variance", variance))
    while isinstance(prediction, posteriors.TransformedPosterior) and _link(model) is not None:
        transforms.append(prediction)
        prediction = prediction._posterior
    mean, variance = prediction.mean, prediction.variance
    response = None
    if transforms:
        try:
            response = transforms[0].mean
        except NotImplementedError:
            response = reduce(lambda y, each: each._sample_transform(y), transforms[::-1], mean)
        response = finite_array("response", response)
    mean, variance = finite_array("mean", mean), finite_array("variance", variance)
    return LibraryPrediction(mean, variance, response=response)


def _is_ensemble(model: Any) -> bool:
    """Whether a model is several with their own hyper-parameters, of one outcome."""
    return bool(getattr(model, "_is_ensemble", False))


def _link(model: Any) -> ResponseLikelihood | None:
    """That of a model's outcome transform."""
    transform = getattr(model, "outcome_transform", None)
    if isinstance(model, models.MultiTaskGP) or transform is None:
        return None  # each task has its own
    return _outcome(model, model.num_outputs).link


def _outcome(model: Any, count: int) -> Outcome:
    """Of so many outputs; of an ensemble one transform for all members, or one each."""
    transform = getattr(model, "outcome_transform", None)
    if _is_ensemble(model):
        means = getattr(transform, "means", None)
        count = 1 if means is None else int(means.shape[0])
    return outcome(transform, count)


def _members(model: Any) -> list[Any]:
    """The model, or those of a list; an error for a class that is not supported."""
    each = list(model.models) if type(model) is models.ModelListGP else [model]
    for one in each:
        kind = type(one)
        exact = isinstance(one, ExactGP) and isinstance(one, bases.GPyTorchModel)
        if exact and kind.posterior in POSTERIORS and kind.__call__ is ExactGP.__call__:
            continue
        if isinstance(one, Variational) and kind.posterior is Variational.posterior:
            if not isinstance(one.likelihood, REGRESSIONS):
                raise UnsupportedModelError(
                    f"{kind.__name__}: its posterior is the latent function, without its "
                    f"{type(one.likelihood).__name__}; pass the pair (model.model, "
                    "model.likelihood) for the classes"
                )
            continue
        why = INSTEAD.get(kind.__name__, "; classes that override posterior or __call__ neither")
        raise unsupported("model" if one is model else "ModelListGP", one, KNOWN, why)
    return each


def _outputs(model: Any, original: Any) -> list[Posterior]:
    """The posteriors of the outputs of one copied model, in the units of the user."""
    if isinstance(model, models.MultiTaskGP):
        return _tasks(model)
    if isinstance(model, Variational):
        posteriors = variational_outputs(original.model, model.model)
        columns = posteriors[0].dim  # a selection of features is refused by the comparison
    else:
        posteriors, columns = exact_outputs(model), _columns(model)
    x = input_map(getattr(model, "input_transform", None), columns)
    y = _outcome(model, len(posteriors))
    each_output = enumerate(posteriors)
    return [_in_units(each, x, y, min(c, len(y.shift) - 1)) for c, each in each_output]


def _in_units(posterior: Posterior, x: AnyMap, y: Outcome, output: int) -> Posterior:
    return in_units(folded(x, posterior), y.shift[output], y.scale[output])


def _columns(model: Any) -> int:
    """How many columns the inputs have before they are transformed."""
    original = getattr(model, "_original_train_inputs", None)
    return int((model.train_inputs[0] if original is None else original).shape[-1])


def _tasks(model: Any) -> list[Posterior]:
    """The output tasks of a multi-task model, whose inputs have a column with the task."""
    column, d = model._task_feature, model.num_non_task_features
    X = finite_array("train_inputs", model.train_inputs[0], ndim=2)
    y = finite_array("train_targets", model.train_targets, ndim=1)
    numbers = _numbers(model, X[:, column])
    inner, index = _split_kernel(model.covar_module, column)
    # a mean of the inputs and of the task's number, or one of the inputs for each task
    multitask = type(model.mean_module).__name__ == "MultitaskMean"
    kept = np.delete(np.arange(d + 1), column)
    Z, B = X[:, kept], task_covariance(index)
    means = task_means(model.mean_module, d if multitask else d + 1, len(B))
    if not multitask:
        means = [mean.without(column, float(t)) for t, mean in enumerate(means)]
    prior = np.concatenate([mean.at(Z) for mean in means], axis=1)
    residuals = y - prior[np.arange(len(y)), numbers]
    kernel = selected(inner, kept.tolist(), d + 1)
    noise = task_noise(model, len(X))
    each = list(tasks.of_observations(kernel, Z, numbers, B, noise, residuals))
    x = dropping(input_map(getattr(model, "input_transform", None), _columns(model)), column)
    outputs = []
    for label, t in zip(model._output_tasks, _numbers(model, model._output_tasks), strict=True):
        y_units = outcome(getattr(model, "outcome_transform", None), 1, label)
        if y_units.link is not None:
            raise UnsupportedModelError(
                "outcome_transform: Log and Bilog of a MultiTaskGP are not supported; transform "
                "the targets first and ask about the result"
            )
        form = each[t].canonical.posterior(each[t].kernel, Z, means[t], spread=spread_of(Z))
        outputs.append(_in_units(form, x, y_units, 0))
    return outputs


def _numbers(model: Any, labels: Any) -> np.ndarray:
    """The numbers of tasks, from their labels."""
    mapped = model._map_tasks(torch.as_tensor(np.asarray(labels, dtype=np.float64)).long())
    return np.asarray(mapped).astype(int)


def _split_kernel(kernel: Any, column: int) -> tuple[Any, Any]:
    """The kernel of the inputs and that of the tasks, of their product."""
    parts = list(kernel.kernels) if type(kernel) is gk.ProductKernel else []
    index = [part for part in parts if isinstance(part, gk.IndexKernel)]
    rest = [part for part in parts if not isinstance(part, gk.IndexKernel)]
    if len(index) != 1 or len(rest) != 1:
        raise UnsupportedModelError(
            f"covar_module: expected the product of a kernel of the inputs and an IndexKernel of "
            f"column {column}, got {TREE.described(kernel)}; sums of such products are not "
            "supported: fit a model with one"
        )
    return rest[0], index[0]
