"""scikit-learn's transformers that take every feature from one input: scalers, selections, columns.

Such a step computes `x'_k = (x_j(k) - shift_k) / scale_k`, each output from an input of its own.
Everything else is refused by name: a region in the user's units has no exact image under it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)

from gpcert.arrays import finite_array
from gpcert.committee import Model
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.kernels import ActiveDimensions, Kernel, SquaredExponential
from gpcert.posterior import Posterior
from gpcert.several import Several

__all__ = ["SCALERS", "STEPS", "FeatureMap", "Scaling", "feature_map"]


@dataclass(frozen=True, eq=False)
class Scaling:
    """`x' = (x - shift) / scale`; None stands for no shift, no scale."""

    shift: Any = None
    scale: Any = None


def _standard(scaler: StandardScaler) -> Scaling:
    return Scaling(scaler.mean_ if scaler.with_mean else None, scaler.scale_)


def _min_max(scaler: MinMaxScaler) -> Scaling:
    # transform computes x * scale_ + min_
    return Scaling(-scaler.min_ / scaler.scale_, 1.0 / scaler.scale_)


def _max_abs(scaler: MaxAbsScaler) -> Scaling:
    return Scaling(None, scaler.scale_)


def _robust(scaler: RobustScaler) -> Scaling:
    return Scaling(scaler.center_, scaler.scale_)


SCALERS: dict[type, Callable[[Any], Scaling]] = {
    StandardScaler: _standard,
    MinMaxScaler: _min_max,
    MaxAbsScaler: _max_abs,
    RobustScaler: _robust,
}

STEPS = (
    *(kind.__name__ for kind in SCALERS),
    "ColumnTransformer",
    "SelectKBest, VarianceThreshold and other selections",
    "passthrough",
)
"""What may stand before a model, in words."""

ADVICE: dict[type, str] = {
    OneHotEncoder: (
        "its output jumps with its input; encode the data first, fit on the encoded columns, and "
        "keep them fixed by features=, or by a radius of 0"
    ),
    OrdinalEncoder: "its output jumps with its input; encode the data first and keep it fixed",
    FunctionTransformer: "a function of the user's own cannot be bounded; apply it to the data",
}


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """`x'_k = (x[index_k] - shift_k) / scale_k` of x with so many `inputs`; no input twice."""

    inputs: int
    index: np.ndarray
    shift: np.ndarray
    scale: np.ndarray

    @staticmethod
    def select(inputs: int, index: Any) -> FeatureMap:
        """Some of the inputs, as they are."""
        found = np.asarray(index, dtype=int)
        return FeatureMap(inputs, found, np.zeros(len(found)), np.ones(len(found)))

    def then(self, after: FeatureMap) -> FeatureMap:
        """This map and another after it."""
        shift, scale = self.shift[after.index], self.scale[after.index]
        return FeatureMap(
            self.inputs,
            self.index[after.index],
            shift + after.shift * scale,
            scale * after.scale,
        )

    def fold(self, model: Model) -> Model:
        """A model of x' as one of x; a committee member by member."""
        if isinstance(model, Several):
            return replace(model, members=tuple(self._fold(member) for member in model.members))
        return self._fold(model)

    def _fold(self, posterior: Posterior) -> Posterior:
        """Points `z = z' scale + shift`, 0 in inputs that are not used, and the kernel of them."""
        if posterior.dim != len(self.index):
            raise UnsupportedModelError(
                f"pipeline: expected a model of {len(self.index)} features, got {posterior.dim}"
            )
        points = np.zeros((len(posterior.points), self.inputs))
        points[:, self.index] = posterior.points * self.scale + self.shift
        kernel = self._seen(posterior.kernel.rescaled(self.scale, self.shift))
        spread = None
        if posterior.spread is not None and len(self.index) == self.inputs:  # else not all known
            spread = np.empty(self.inputs)
            spread[self.index] = posterior.spread * self.scale
        return replace(posterior, points=points, kernel=kernel, feature_names=None, spread=spread)

    def _seen(self, kernel: Kernel) -> Kernel:
        """The kernel of the inputs at `index`.

        A squared exponential of all of them, in another order, stays one: it has bounds of its own.
        """
        if np.array_equal(self.index, np.arange(self.inputs)):
            return kernel
        if type(kernel) is SquaredExponential and len(self.index) == self.inputs:
            lengths = np.empty(self.inputs)
            lengths[self.index] = kernel.length_scale
            return SquaredExponential(lengths, kernel.variance)
        return ActiveDimensions(kernel, tuple(self.index.tolist()))


def feature_map(name: str, step: Any, inputs: int) -> FeatureMap:
    """The map of a fitted step with so many inputs, or a refusal that names it."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return FeatureMap.select(inputs, np.arange(inputs))
    if not _is_fitted(step):
        raise InputError(
            f"pipeline step {name!r}: expected a fitted {type(step).__name__}, got an unfitted "
            "one; call fit(X, y) on the pipeline first"
        )
    if type(step) in SCALERS:
        return _scaled(name, step, inputs)
    if type(step) is ColumnTransformer:
        return _columns(name, step, inputs)
    if type(step) is Pipeline:
        found = FeatureMap.select(inputs, np.arange(inputs))
        for part, inner in step.steps:
            found = found.then(feature_map(f"{name}.{part}", inner, len(found.index)))
        return found
    if isinstance(step, SelectorMixin) and type(step).__module__.startswith("sklearn."):
        return FeatureMap.select(inputs, step.get_support(indices=True))
    if type(step) is FunctionTransformer and step.func is None:
        return FeatureMap.select(inputs, np.arange(inputs))
    raise _refusal(name, step)


def _is_fitted(step: Any) -> bool:
    return type(step) is FunctionTransformer or hasattr(step, "n_features_in_")


def _refusal(name: str, step: Any) -> UnsupportedModelError:
    kind = type(step).__name__
    why = ADVICE.get(
        type(step),
        "a region in the user's units has no exact image under it; apply it to the data first and "
        "ask about regions of its output",
    )
    return UnsupportedModelError(
        f"pipeline step {name!r}: {kind} is not supported (supported: {', '.join(STEPS)}): {why}"
    )


def _scaled(name: str, step: Any, inputs: int) -> FeatureMap:
    kind = type(step).__name__
    if getattr(step, "clip", False):
        raise UnsupportedModelError(
            f"pipeline step {name!r}: {kind}(clip=True) is not supported, because clipping is not "
            f"affine; fit with {kind}(clip=False)"
        )
    scaling = SCALERS[type(step)](step)
    ones, zeros = np.ones(inputs), np.zeros(inputs)
    scale = ones if scaling.scale is None else finite_array("scale of a scaler", scaling.scale)
    shift = zeros if scaling.shift is None else finite_array("shift of a scaler", scaling.shift)
    if np.any(scale <= 0):
        raise InputError(f"scale of a scaler: expected positive numbers, got {scale}")
    return FeatureMap(inputs, np.arange(inputs), shift, scale)


def _columns(name: str, step: ColumnTransformer, inputs: int) -> FeatureMap:
    """The parts side by side, each behind the selection of its columns."""
    if step.transformer_weights:
        raise UnsupportedModelError(
            f"pipeline step {name!r}: ColumnTransformer(transformer_weights=...) is not supported; "
            "put a scaler into the transformers instead"
        )
    maps = []
    for part, inner, _ in step.transformers_:
        chosen = np.asarray(step._transformer_to_input_indices[part], dtype=int)
        if (isinstance(inner, str) and inner == "drop") or len(chosen) == 0:
            continue
        own = feature_map(f"{name}.{part}", inner, len(chosen))
        maps.append(FeatureMap.select(inputs, chosen).then(own))
    index = np.concatenate([each.index for each in maps]) if maps else np.zeros(0, dtype=int)
    if len(index) == 0 or len(np.unique(index)) != len(index):
        raise UnsupportedModelError(
            f"pipeline step {name!r}: expected a ColumnTransformer that uses each column at most "
            "once, and one at least; put repeated columns into the data instead"
        )
    return FeatureMap(
        inputs,
        index,
        np.concatenate([each.shift for each in maps]),
        np.concatenate([each.scale for each in maps]),
    )
