"""BoTorch models as posteriors, in the units of the user: `SingleTaskGP` and `ModelListGP`.

A `SingleTaskGP` is an `ExactGP` on transformed inputs and outcomes,

    x' = (x - offset) / coefficient      Normalize, InputStandardize, and chains of them,
    y  = means + stdvs y'                Standardize (the default), and chains of it,

feature by feature and output by output; both are folded into the posterior, whose regions are in
the units of x. Certified is what `model.posterior(X)` returns, without observation noise. Several
outputs: see `gpcert.adapters.canonical`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from gpcert.adapters.adapter import Conversion, LibraryPrediction, unsupported
from gpcert.adapters.canonical import in_units, join_outputs
from gpcert.adapters.gpytorch_models import exact_posterior
from gpcert.adapters.gpytorch_prior import compared, read_only_copy
from gpcert.adapters.sklearn_features import FeatureMap
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import finite_array
from gpcert.utils.optional_imports import library

models: Any = library("botorch.models")
inputs: Any = library("botorch.models.transforms.input")
outcomes: Any = library("botorch.models.transforms.outcome")
ModelListGP, SingleTaskGP = models.ModelListGP, models.SingleTaskGP

AFFINE_INPUTS = (inputs.Normalize, inputs.InputStandardize, inputs.AffineInputTransform)

MODELS = (SingleTaskGP, ModelListGP)


def convert(model: Any) -> Conversion:
    """Convert a BoTorch model; the result predicts in the units of the user."""
    if type(model) not in MODELS:
        why = "; classes derived from them neither"
        if "Variational" in type(model).__name__:
            why = "; a variational one is passed with its likelihood, as (model.model, likelihood)"
        raise unsupported("model", model, MODELS, why)
    copy = read_only_copy(model)
    each = list(copy.models) if type(copy) is ModelListGP else [copy]
    posterior = join_outputs([output for one in each for output in _outputs(one)])
    points = max(len(each.points) for each in posterior.members)

    def predictions(library_model: Any, X: Any) -> LibraryPrediction:
        prediction = library_model.posterior(X)
        mean, variance = (
            finite_array("mean", prediction.mean),
            finite_array("variance", prediction.variance),
        )
        return LibraryPrediction(mean, variance)

    return compared(posterior, model, copy, predictions, points=points)


def _outputs(model: Any) -> list[Posterior]:
    """The posteriors of the outputs of one copied model, in the units of the user."""
    if type(model) is not SingleTaskGP:
        raise unsupported("ModelListGP", model, (SingleTaskGP,))
    count = model.num_outputs
    each = [None] if count == 1 else list(range(count))
    posteriors = [exact_posterior(model, c) for c in each]
    x = _units(getattr(model, "input_transform", None), posteriors[0].dim, _input)
    y = _units(getattr(model, "outcome_transform", None), count, _outcome)
    return [
        in_units(x.fold(posterior), y.shift[c], y.scale[c])
        for c, posterior in enumerate(posteriors)
    ]


def _units(transform: Any, count: int, read: Callable[[Any, int], FeatureMap]) -> FeatureMap:
    """The map from the user's units to those of the model, one after the other of a chain."""
    if transform is None:
        return FeatureMap.select(count)
    if type(transform) in (inputs.ChainedInputTransform, outcomes.ChainedOutcomeTransform):
        parts = [_units(part, count, read) for part in transform.values()]
        return reduce(FeatureMap.then, parts, FeatureMap.select(count))
    return read(transform, count)


def _input(transform: Any, d: int) -> FeatureMap:
    if type(transform) not in AFFINE_INPUTS:
        raise unsupported(
            "input_transform",
            transform,
            (*AFFINE_INPUTS, inputs.ChainedInputTransform),
            ", since a region in the user's units has no exact image under it; transform the data "
            "first and ask about regions of the result",
        )
    units = FeatureMap.select(d)
    if not transform.transform_on_eval:
        return units
    columns = getattr(transform, "indices", None)
    where = np.arange(d) if columns is None else np.asarray(columns)
    a = finite_array("input_transform.coefficient", transform.coefficient)
    b = finite_array("input_transform.offset", transform.offset)
    if a.size != len(where) or b.size != len(where):
        raise UnsupportedModelError(
            f"input_transform: expected one coefficient per feature, got shape {a.shape}; batches "
            "of transforms are not supported"
        )
    a, b = a.reshape(-1), b.reshape(-1)
    if np.any(a <= 0):
        raise InputError(f"input_transform: expected positive coefficients, got {a}")
    units.scale[where], units.shift[where] = (1.0 / a, -b / a) if transform.reverse else (a, b)
    return units


def _outcome(transform: Any, m: int) -> FeatureMap:
    if type(transform) is not outcomes.Standardize:
        raise unsupported(
            "outcome_transform",
            transform,
            (outcomes.Standardize, outcomes.ChainedOutcomeTransform),
            ", since its prediction is not Gaussian in the user's units; transform the targets "
            "first and ask about the result",
        )
    means, deviations = (finite_array(n, getattr(transform, n)) for n in ("means", "stdvs"))
    if means.size != m:
        raise UnsupportedModelError(f"outcome_transform: expected {m} means, got {means.shape}")
    return FeatureMap(m, np.arange(m), means.reshape(-1), deviations.reshape(-1))
