"""BoTorch models as posteriors, in the units of the user: `SingleTaskGP` and `ModelListGP`.

A `SingleTaskGP` is an `ExactGP` on transformed inputs and outcomes,

    x' = (x - offset) / coefficient      Normalize, InputStandardize, and chains of them,
    y  = means + stdvs y'                Standardize (the default), and chains of it,

feature by feature and output by output; both are folded into the posterior, whose regions are in
the units of x. Certified is what `model.posterior(X)` returns, without observation noise. Several
outputs: see `gpcert.adapters.outputs`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gpcert.adapters.conversion import Conversion, LibraryPrediction, unsupported
from gpcert.adapters.gpytorch_exact import exact_posterior
from gpcert.adapters.gpytorch_prior import compared, numbers, read_only_copy
from gpcert.adapters.outputs import join_outputs
from gpcert.adapters.sklearn_features import FeatureMap
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.extras import library
from gpcert.posterior import Posterior

models: Any = library("botorch.models")
inputs: Any = library("botorch.models.transforms.input")
outcomes: Any = library("botorch.models.transforms.outcome")
ModelListGP, SingleTaskGP = models.ModelListGP, models.SingleTaskGP

AFFINE_INPUTS = (inputs.Normalize, inputs.InputStandardize, inputs.AffineInputTransform)

MODELS = (SingleTaskGP, ModelListGP)


def convert(model: Any) -> Conversion:
    """Convert a BoTorch model; the result predicts in the units of the user."""
    if type(model) not in MODELS:
        raise unsupported("model", model, MODELS, "; classes derived from them neither")
    copy = read_only_copy(model)
    each = list(copy.models) if type(copy) is ModelListGP else [copy]
    posterior = join_outputs([output for one in each for output in _outputs(one)])
    points = max(len(each.points) for each in posterior.members)
    return compared(posterior, model, copy, _said, points=points)


def _said(model: Any, X: Any) -> LibraryPrediction:
    found = model.posterior(X)
    return LibraryPrediction(numbers("mean", found.mean), numbers("variance", found.variance))


def _outputs(model: Any) -> list[Posterior]:
    """The posteriors of the outputs of one copied model, in the units of the user."""
    if type(model) is not SingleTaskGP:
        raise unsupported("ModelListGP", model, (SingleTaskGP,))
    count = model.num_outputs
    each = [None] if count == 1 else list(range(count))
    found = [exact_posterior(model, model.train_inputs, model.train_targets, c) for c in each]
    scale, shift = _input_units(getattr(model, "input_transform", None), found[0].dim)
    factor, offset = _outcome_units(getattr(model, "outcome_transform", None), count)
    units = FeatureMap(len(scale), np.arange(len(scale)), shift, scale)
    return [
        replace(
            output,
            offset=offset[c] + factor[c] * output.offset,
            scale=factor[c] * output.scale,
            noise=factor[c] ** 2 * output.noise,
        )
        for c, output in enumerate(map(units.fold, found))
    ]


def _input_units(transform: Any, d: int) -> tuple[np.ndarray, np.ndarray]:
    """`(scale, shift)` with `x = scale x' + shift` for the transformed inputs x'."""
    scale, shift = np.ones(d), np.zeros(d)
    if transform is None:
        return scale, shift
    if type(transform) is inputs.ChainedInputTransform:
        for part in transform.values():  # x'' = (x' - b') / a' after x' = (x - b) / a
            a, b = _input_units(part, d)
            scale, shift = scale * a, shift + scale * b
        return scale, shift
    if type(transform) not in AFFINE_INPUTS:
        raise unsupported(
            "input_transform",
            transform,
            (*AFFINE_INPUTS, inputs.ChainedInputTransform),
            ", since a region in the user's units has no exact image under it; transform the data "
            "first and ask about regions of the result",
        )
    if not transform.transform_on_eval:
        return scale, shift
    columns = getattr(transform, "indices", None)
    where = np.arange(d) if columns is None else np.asarray(columns)
    a = numbers("input_transform.coefficient", transform.coefficient)
    b = numbers("input_transform.offset", transform.offset)
    if a.size != len(where) or b.size != len(where):
        raise UnsupportedModelError(
            f"input_transform: expected one coefficient a feature, got shape {a.shape}; batches of "
            "transforms are not supported"
        )
    a, b = a.reshape(-1), b.reshape(-1)
    if np.any(a <= 0):
        raise InputError(f"input_transform: expected positive coefficients, got {a}")
    scale[where], shift[where] = (1.0 / a, -b / a) if transform.reverse else (a, b)
    return scale, shift


def _outcome_units(transform: Any, m: int) -> tuple[np.ndarray, np.ndarray]:
    """`(factor, offset)`, each (m,), with `y = factor y' + offset`."""
    factor, offset = np.ones(m), np.zeros(m)
    if transform is None:
        return factor, offset
    if type(transform) is outcomes.ChainedOutcomeTransform:
        for part in transform.values():
            a, b = _outcome_units(part, m)
            factor, offset = factor * a, offset + factor * b
        return factor, offset
    if type(transform) is not outcomes.Standardize:
        raise unsupported(
            "outcome_transform",
            transform,
            (outcomes.Standardize, outcomes.ChainedOutcomeTransform),
            ", since its prediction is not Gaussian in the user's units; transform the targets "
            "first and ask about the result",
        )
    means, deviations = numbers("means", transform.means), numbers("stdvs", transform.stdvs)
    if means.size != m:
        raise UnsupportedModelError(f"outcome_transform: expected {m} means, got {means.shape}")
    return deviations.reshape(-1), means.reshape(-1)
