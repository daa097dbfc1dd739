"""BoTorch's transforms of inputs and outcomes that have an exact image in the user's units."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from gpcert.adapters.adapter import unsupported
from gpcert.adapters.sklearn_features import AnyMap, FeatureMap, joined, of_curves
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.functions import (
    Affine,
    Clip,
    Curve,
    Exp,
    Increasing,
    InverseBilog,
    Kumaraswamy,
    Log,
    Round,
)
from gpcert.likelihoods import CurveLink, ExpLink, ResponseLikelihood
from gpcert.numerics.arrays import finite_array
from gpcert.utils.optional_imports import library

inputs: Any = library("botorch.models.transforms.input")
outcomes: Any = library("botorch.models.transforms.outcome")

AFFINE_INPUTS = (inputs.Normalize, inputs.InputStandardize, inputs.AffineInputTransform)
CURVED = (inputs.Warp, inputs.Log10, inputs.Round)
"""Transforms of single features that do not decrease."""


class Outcome(NamedTuple):
    """Outcomes in the user's units: `link(shift + scale f)`, output by output, of those of the
    model, for the link of a likelihood, None for none."""

    shift: np.ndarray
    scale: np.ndarray
    link: ResponseLikelihood | None = None


LINKS = (outcomes.Log, outcomes.Bilog)
"""Transforms after which the prediction is no longer Gaussian."""


def input_map(transform: Any, d: int) -> AnyMap:
    """The map of d inputs in the user's units to those of the model."""
    return _chain(transform, d, inputs.ChainedInputTransform, _input)


def outcome(transform: Any, m: int, task: Any = None) -> Outcome:
    """That of m outputs; `task` is the label of the one whose outcome it is.

    Behind a logarithm, and affine transforms after it, the prediction is the mean of exp(f)
    (`ExpLink`); behind other chains it is the median (`CurveLink`).
    """
    parts = _flat(transform)
    last = max((i for i, part in enumerate(parts) if type(part) in LINKS), default=-1)
    units = reduce(
        FeatureMap.then,
        (_outcome(part, m, task) for part in parts[last + 1 :]),
        FeatureMap.select(m),
    )
    if last < 0:
        return Outcome(units.shift, units.scale)
    if last == 0 and type(parts[0]) is outcomes.Log:
        return Outcome(units.shift, units.scale, ExpLink())
    steps: list[Increasing] = []
    for part in reversed(parts[: last + 1]):
        if type(part) in LINKS:
            if part._outputs is not None:
                raise UnsupportedModelError(
                    f"outcome_transform: {type(part).__name__}(outputs=...) is not supported, by "
                    "BoTorch's posterior neither; give each output a model of its own"
                )
            steps.append(Exp() if type(part) is outcomes.Log else InverseBilog())
            continue
        each = _outcome(part, m, task)
        if m != 1:
            raise UnsupportedModelError(
                f"outcome_transform: expected one output where a {type(part).__name__} comes "
                f"before {' or '.join(kind.__name__ for kind in LINKS)}, got {m}; give each a model"
            )
        shift, scale = float(each.shift[0]), float(each.scale[0])
        steps.append(Affine(-shift / scale, 1.0 / scale))
    return Outcome(units.shift, units.scale, CurveLink(Curve(tuple(steps))))


def _flat(transform: Any) -> list[Any]:
    """The transforms of a chain, in the order in which they were applied."""
    if transform is None:
        return []
    if type(transform) is not outcomes.ChainedOutcomeTransform:
        return [transform]
    return [part for inner in transform.values() for part in _flat(inner)]


def _chain(transform: Any, count: int, chained: type, read: Callable[[Any, int], AnyMap]) -> Any:
    """One after the other of a chain."""
    if transform is None:
        return FeatureMap.select(count)
    if type(transform) is not chained:
        return read(transform, count)
    parts: list[AnyMap] = []
    for part in transform.values():
        parts.append(_chain(part, len(parts[-1].shift) if parts else count, chained, read))
    return reduce(joined, parts, FeatureMap.select(count))


def _input(transform: Any, d: int) -> AnyMap:
    units = FeatureMap.select(d)
    if type(transform) in CURVED:
        return _curved(transform, d)
    if type(transform) is inputs.FilterFeatures:
        return FeatureMap.select(d, np.asarray(transform.feature_indices))
    if type(transform) not in AFFINE_INPUTS:
        raise unsupported(
            "input_transform",
            transform,
            (*AFFINE_INPUTS, inputs.FilterFeatures, *CURVED, inputs.ChainedInputTransform),
            ", since a region in the user's units has no exact image under it; transform the data "
            "first and ask about regions of the result",
        )
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


def _curved(transform: Any, d: int) -> AnyMap:
    """Functions of some of d inputs that do not decrease; Warp scales them to [0, 1] first."""
    if not transform.transform_on_eval:
        return FeatureMap.select(d)
    kind = type(transform)
    batch, categories = (getattr(transform, n, ()) for n in ("batch_shape", "categorical_features"))
    if getattr(transform, "reverse", False) or batch or categories:
        raise UnsupportedModelError(
            f"input_transform: {kind.__name__} is supported without reverse=True, batch_shape and "
            "categorical_features; transform the data first and ask about regions of the result"
        )
    if kind is inputs.Round:
        if transform.approximate:
            raise UnsupportedModelError(
                "input_transform: Round(approximate=True) is not supported; set approximate=False, "
                "which rounds"
            )
        columns = np.asarray(transform.integer_indices)
        return of_curves(dict.fromkeys(columns.tolist(), Curve((Round(),))), d)
    columns = np.asarray(transform.indices).reshape(-1) % d
    if kind is inputs.Log10:
        curve = Curve((Log(), Affine(0.0, math.log(10.0))))
        return of_curves(dict.fromkeys(columns.tolist(), curve), d)
    b, a = (
        finite_array(name, getattr(transform, name)).reshape(-1)
        for name in ("concentration0", "concentration1")
    )
    eps = float(transform._eps)
    inside = (Affine(-eps / (1.0 - 2.0 * eps), 1.0 / (1.0 - 2.0 * eps)), Clip(eps, 1.0 - eps))
    steps = zip(columns.tolist(), a.tolist(), b.tolist(), strict=True)
    warped = {j: Curve((*inside, Kumaraswamy(*powers))) for j, *powers in steps}
    return joined(_input(transform._normalize, d), of_curves(warped, d))


def _outcome(transform: Any, m: int, task: Any) -> FeatureMap:
    known = (outcomes.Standardize, outcomes.StratifiedStandardize)
    if type(transform) not in known:
        raise unsupported(
            "outcome_transform",
            transform,
            (*known, *LINKS, outcomes.ChainedOutcomeTransform),
            ", since what it does to predictions is not known here; transform the targets first "
            "and ask about the result",
        )
    means, deviations = (finite_array(n, getattr(transform, n)) for n in ("means", "stdvs"))
    if type(transform) is outcomes.StratifiedStandardize:
        stratum = float(transform.strata_mapping[int(task)])
        known_task = not np.isnan(stratum)
        row = int(stratum) if known_task else 0
        means = means.reshape(-1)[row : row + 1] if known_task else np.zeros(1)
        deviations = deviations.reshape(-1)[row : row + 1] if known_task else np.ones(1)
    if means.size != m:
        raise UnsupportedModelError(f"outcome_transform: expected {m} means, got {means.shape}")
    return FeatureMap(m, np.arange(m), means.reshape(-1), deviations.reshape(-1))
