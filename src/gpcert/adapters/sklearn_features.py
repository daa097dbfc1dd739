"""scikit-learn's linear transformers: scalers, selections, columns, PCA and its like.

A step computes `x'_k = (x_j(k) - shift_k) / scale_k`, each output from an input of its own (a
`FeatureMap`, folded into kernel and points), or `x' = W x + b` (a `LinearMap`, kept in front of the
kernel). Everything else is refused by name: a region in the user's units has no exact image there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)

from gpcert.adapters.sklearn_linear import LINEAR
from gpcert.arrays import finite_array
from gpcert.committee import Model
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.kernels import ActiveDimensions, Kernel
from gpcert.posterior import Posterior
from gpcert.regions import LinearMap
from gpcert.several import Several


@dataclass(frozen=True, eq=False)
class Scaling:
    """`x' = (x - shift) / scale`; None stands for no shift, no scale."""

    shift: Any = None
    scale: Any = None

    def numbers(self, count: int, what: str) -> tuple[np.ndarray, np.ndarray]:
        """Shift and scale, (count,) each, of `what`."""
        shift = finite_array(f"shift of a {what}", 0.0 if self.shift is None else self.shift)
        scale = finite_array(f"scale of a {what}", 1.0 if self.scale is None else self.scale)
        if np.any(scale <= 0):
            raise InputError(f"scale of a {what}: expected positive numbers, got {scale}")
        return np.broadcast_to(shift, (count,)), np.broadcast_to(scale, (count,))


SCALERS: dict[type, Callable[[Any], Scaling]] = {
    StandardScaler: lambda s: Scaling(s.mean_ if s.with_mean else None, s.scale_),
    # transform computes x * scale_ + min_
    MinMaxScaler: lambda s: Scaling(-s.min_ / s.scale_, 1.0 / s.scale_),
    MaxAbsScaler: lambda s: Scaling(None, s.scale_),
    RobustScaler: lambda s: Scaling(s.center_, s.scale_),
}

STEPS = (
    *(kind.__name__ for kind in SCALERS),
    *(kind.__name__ for kind in LINEAR),
    "ColumnTransformer",
    "FeatureUnion",
    "SelectKBest, VarianceThreshold and other selections",
    "SimpleImputer",
    "passthrough",
)
"""What may stand before a model, in words."""

APPROXIMATED = (
    "its features approximate those of a kernel; fit that kernel itself (SVC, SVR, KernelRidge, a "
    "Gaussian process), which is certified as it is"
)

ADVICE: dict[type, str] = {
    Nystroem: APPROXIMATED,
    RBFSampler: APPROXIMATED,
    OneHotEncoder: (
        "its output jumps with its input; encode the data first, fit on the encoded columns, and "
        "keep them fixed by features=, or by a radius of 0"
    ),
    OrdinalEncoder: "its output jumps with its input; encode the data first and keep it fixed",
    FunctionTransformer: "a function of the user's own cannot be bounded; apply it to the data",
    PolynomialFeatures: "products of inputs are not linear; use a polynomial kernel instead",
    SplineTransformer: "splines are not linear; use a kernel for smooth functions instead",
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

    @property
    def linear(self) -> LinearMap:
        """The same as a matrix."""
        matrix = np.zeros((len(self.index), self.inputs))
        matrix[np.arange(len(self.index)), self.index] = 1.0 / self.scale
        return LinearMap(matrix, -self.shift / self.scale)

    def fold(self, posterior: Posterior) -> Posterior:
        """Points `z = z' scale + shift`, 0 in inputs that are not used, and the kernel of them; a
        trend `slope.z'` is `(slope / scale).(z - shift)`."""
        points = np.zeros((len(posterior.points), self.inputs))
        points[:, self.index] = posterior.points * self.scale + self.shift
        kernel = self._seen(posterior.kernel.rescaled(self.scale, self.shift))
        spread = None
        if posterior.spread is not None and len(self.index) == self.inputs:  # else not all known
            spread = np.empty(self.inputs)
            spread[self.index] = posterior.spread * self.scale
        slope = np.zeros((posterior.outputs, self.inputs))
        slope[:, self.index] = posterior.slope / self.scale
        moved = posterior.scale * (slope[:, self.index] @ self.shift)
        return replace(
            posterior,
            points=points,
            kernel=kernel,
            feature_names=None,
            spread=spread,
            slope=slope,
            offset=posterior.offset - moved,
        )

    def _seen(self, kernel: Kernel) -> Kernel:
        """The kernel of the inputs at `index`.

        One of all of them, in another order, stays of its kind where it can: its own bounds serve.
        """
        if np.array_equal(self.index, np.arange(self.inputs)):
            return kernel
        found = kernel.reordered(self.index) if len(self.index) == self.inputs else None
        if found is not None:
            return found
        return ActiveDimensions(kernel, tuple(self.index.tolist()))


AnyMap = FeatureMap | LinearMap


def outputs_of(found: AnyMap) -> int:
    """How many features come out."""
    return len(found.index) if isinstance(found, FeatureMap) else len(found.matrix)


def joined(first: AnyMap, second: AnyMap) -> AnyMap:
    """One map and another after it."""
    if isinstance(first, FeatureMap) and isinstance(second, FeatureMap):
        return first.then(second)
    one, two = (each.linear if isinstance(each, FeatureMap) else each for each in (first, second))
    return one.then(two)


def folded(found: AnyMap, model: Model) -> Model:
    """A model of x' as one of x; a committee member by member."""
    if isinstance(model, Several):
        members = (folded(found, member) for member in model.members)
        return replace(model, members=tuple(m for m in members if isinstance(m, Posterior)))
    if model.dim != outputs_of(found):
        raise UnsupportedModelError(
            f"pipeline: expected a model of {outputs_of(found)} features, got {model.dim}"
        )
    if isinstance(found, FeatureMap) and model.features is None:
        return found.fold(model)
    features = found if model.features is None else joined(found, model.features)
    assert isinstance(features, LinearMap), "a feature map without features was folded above"
    return replace(model, features=features, feature_names=None, spread=None)


def feature_map(name: str, step: Any, inputs: int) -> AnyMap:
    """The map of a fitted step with so many inputs, or a refusal that names it."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return FeatureMap.select(inputs, np.arange(inputs))
    if type(step) is not FunctionTransformer and not hasattr(step, "n_features_in_"):
        raise InputError(
            f"pipeline step {name!r}: expected a fitted {type(step).__name__}, got an unfitted "
            "one; call fit(X, y) on the pipeline first"
        )
    convert = CONVERTERS.get(type(step))
    if convert is not None:
        return convert(name, step, inputs)
    if type(step) in LINEAR:
        return LINEAR[type(step)](step)
    if isinstance(step, SelectorMixin) and type(step).__module__.startswith("sklearn."):
        return FeatureMap.select(inputs, step.get_support(indices=True))
    raise _refusal(name, step)


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
    shift, scale = SCALERS[type(step)](step).numbers(inputs, "scaler")
    return FeatureMap(inputs, np.arange(inputs), shift, scale)


def _function(name: str, step: FunctionTransformer, inputs: int) -> FeatureMap:
    if step.func is not None:
        raise _refusal(name, step)
    return FeatureMap.select(inputs, np.arange(inputs))


def _imputed(name: str, step: SimpleImputer, inputs: int) -> FeatureMap:
    """Inputs of a region are not missing: they pass as they are."""
    numbers = isinstance(step.missing_values, float) and np.isnan(step.missing_values)
    if not numbers or step.add_indicator or step.get_feature_names_out().size != inputs:
        raise UnsupportedModelError(
            f"pipeline step {name!r}: SimpleImputer is supported for missing_values=nan, without "
            "indicators and empty columns; apply it to the data first"
        )
    return FeatureMap.select(inputs, np.arange(inputs))


def _steps(name: str, step: Pipeline, inputs: int) -> AnyMap:
    found: AnyMap = FeatureMap.select(inputs, np.arange(inputs))
    for part, inner in step.steps:
        found = joined(found, feature_map(f"{name}.{part}", inner, outputs_of(found)))
    return found


def _columns(name: str, step: ColumnTransformer, inputs: int) -> AnyMap:
    """The parts side by side, each behind the selection of its columns."""
    _refuse_weights(name, step)
    maps = []
    for part, inner, _ in step.transformers_:
        chosen = np.asarray(step._transformer_to_input_indices[part], dtype=int)
        if (isinstance(inner, str) and inner == "drop") or len(chosen) == 0:
            continue
        own = feature_map(f"{name}.{part}", inner, len(chosen))
        maps.append(joined(FeatureMap.select(inputs, chosen), own))
    return _side_by_side(name, step, maps)


def _union(name: str, step: FeatureUnion, inputs: int) -> AnyMap:
    _refuse_weights(name, step)
    used = [(part, inner) for part, inner in step.transformer_list if inner != "drop"]
    return _side_by_side(name, step, [feature_map(f"{name}.{p}", t, inputs) for p, t in used])


def _refuse_weights(name: str, step: Any) -> None:
    if step.transformer_weights:
        raise UnsupportedModelError(
            f"pipeline step {name!r}: {type(step).__name__}(transformer_weights=...) is not "
            "supported; put a scaler into the transformers instead"
        )


def _side_by_side(name: str, step: Any, maps: list[AnyMap]) -> AnyMap:
    """Scalings and selections of distinct inputs stay what they are; all others have a matrix."""
    if not maps:
        raise UnsupportedModelError(
            f"pipeline step {name!r}: expected a {type(step).__name__} with at least one column"
        )
    plain = [each for each in maps if isinstance(each, FeatureMap)]
    index = np.concatenate([each.index for each in plain] or [np.zeros(0, dtype=int)])
    if len(plain) < len(maps) or len(np.unique(index)) != len(index):
        linear = [each.linear if isinstance(each, FeatureMap) else each for each in maps]
        return LinearMap(
            np.concatenate([each.matrix for each in linear]),
            np.concatenate([each.shift for each in linear]),
        )
    shift, scale = (np.concatenate([getattr(m, n) for m in plain]) for n in ("shift", "scale"))
    return FeatureMap(plain[0].inputs, index, shift, scale)


CONVERTERS: dict[type, Callable[[str, Any, int], AnyMap]] = {
    **dict.fromkeys(SCALERS, _scaled),
    ColumnTransformer: _columns,
    FeatureUnion: _union,
    FunctionTransformer: _function,
    Pipeline: _steps,
    SimpleImputer: _imputed,
}
