"""scikit-learn's linear transformers: scalers, selections, columns, PCA and its like.

A step computes `x'_k = (x_j(k) - shift_k) / scale_k`, each output from an input of its own (a
`FeatureMap`, folded into kernel and points), or `x' = W x + b` (a `LinearMap`, kept in front of the
kernel). An encoder of categories is a map of indicators: a region must keep its columns fixed.
Everything else is refused by name: a region in the user's units has no exact image there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.cluster import FeatureAgglomeration
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, FactorAnalysis, FastICA, IncrementalPCA, TruncatedSVD
from sklearn.feature_selection import SelectorMixin
from sklearn.impute import SimpleImputer
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from gpcert.adapters.sklearn_categories import categories
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.kernels import ActiveDimensions, Kernel
from gpcert.model.committee import Model
from gpcert.model.multi_output import ModelCollection
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import finite_array
from gpcert.regions import LinearMap

SCALERS: dict[type, Callable[[Any], tuple[Any, Any]]] = {
    StandardScaler: lambda s: (s.mean_ if s.with_mean else None, s.scale_),
    # transform computes x * scale_ + min_
    MinMaxScaler: lambda s: (-s.min_ / s.scale_, 1.0 / s.scale_),
    MaxAbsScaler: lambda s: (None, s.scale_),
    RobustScaler: lambda s: (s.center_, s.scale_),
}
"""Shift and scale of `x' = (x - shift) / scale`; None stands for no shift, no scale."""


def _pca(step: Any) -> LinearMap:
    W = np.asarray(step.components_, dtype=np.float64)
    if step.whiten:
        scale = np.sqrt(step.explained_variance_)
        W = W / np.maximum(scale, np.finfo(scale.dtype).eps)[:, None]
    return LinearMap(W, None if step.mean_ is None else -W @ step.mean_)


def _components(step: Any) -> LinearMap:
    """A sparse projection stores a sparse matrix."""
    matrix = step.components_
    return LinearMap(matrix.toarray() if hasattr(matrix, "toarray") else matrix)


def _ica(step: FastICA) -> LinearMap:
    W = np.asarray(step.components_, dtype=np.float64)
    return LinearMap(W, -W @ step.mean_ if step.whiten else None)


def _factors(step: FactorAnalysis) -> LinearMap:
    # transform returns the latent mean: (I + W Psi^-1 W^T)^-1 W Psi^-1 (x - mean)
    weighted = step.components_ / step.noise_variance_
    precision = np.eye(len(weighted)) + weighted @ step.components_.T
    W = np.linalg.solve(precision, weighted)
    return LinearMap(W, -W @ step.mean_)


def _blocks(step: FeatureAgglomeration) -> LinearMap:
    if step.pooling_func is not np.mean:
        raise UnsupportedModelError(
            "FeatureAgglomeration: expected pooling_func=np.mean, the only linear one, got "
            f"{step.pooling_func!r}; fit with it, or apply the step to the data first"
        )
    member = step.labels_ == np.arange(step.labels_.max() + 1)[:, None]
    return LinearMap(member / member.sum(axis=1, keepdims=True))


LINEAR: dict[type, Callable[[Any], LinearMap]] = {
    PCA: _pca,
    IncrementalPCA: _pca,
    TruncatedSVD: _components,
    FastICA: _ica,
    FactorAnalysis: _factors,
    GaussianRandomProjection: _components,
    SparseRandomProjection: _components,
    NeighborhoodComponentsAnalysis: _components,
    FeatureAgglomeration: _blocks,
}
"""Steps that mix their inputs linearly, each as its `transform` computes it."""

STEPS = (
    *(kind.__name__ for kind in SCALERS),
    *(kind.__name__ for kind in LINEAR),
    "ColumnTransformer",
    "FeatureUnion",
    "SelectKBest, VarianceThreshold and other selections",
    "SimpleImputer",
    "OneHotEncoder and OrdinalEncoder of columns that a region keeps fixed",
    "passthrough",
)
"""What may stand before a model, in words."""

NO_IMAGE = (
    "a region in the user's units has no exact image under it; apply it to the data first and ask "
    "about regions of its output"
)

APPROXIMATED = (
    "its features approximate those of a kernel; fit that kernel itself (SVC, SVR, KernelRidge, a "
    "Gaussian process), which is certified as it is"
)

ADVICE: dict[str, str] = {
    **dict.fromkeys(("Nystroem", "RBFSampler"), APPROXIMATED),
    "FunctionTransformer": "a function of the user's own cannot be bounded; apply it to the data",
    "PolynomialFeatures": "products of inputs are not linear; use a polynomial kernel instead",
    "SplineTransformer": "splines are not linear; use a kernel for smooth functions instead",
}


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """`x'_k = (x[index_k] - shift_k) / scale_k` of x with so many `inputs`; no input twice."""

    inputs: int
    index: np.ndarray
    shift: np.ndarray
    scale: np.ndarray

    @staticmethod
    def select(inputs: int, index: Any = None) -> FeatureMap:
        """Some of the inputs, or all, as they are."""
        columns = np.arange(inputs) if index is None else np.asarray(index, dtype=int)
        return FeatureMap(inputs, columns, np.zeros(len(columns)), np.ones(len(columns)))

    @staticmethod
    def scaled(inputs: int, shift: Any, scale: Any, what: str) -> FeatureMap:
        """`x' = (x - shift) / scale` of all inputs, as `what` does it; None for none of either."""
        shift = finite_array(f"shift of a {what}", 0.0 if shift is None else shift)
        scale = finite_array(f"scale of a {what}", 1.0 if scale is None else scale)
        if np.any(scale <= 0):
            raise InputError(f"scale of a {what}: expected positive numbers, got {scale}")
        shift, scale = np.broadcast_to(shift, (inputs,)), np.broadcast_to(scale, (inputs,))
        return FeatureMap(inputs, np.arange(inputs), shift, scale)

    def then(self, after: FeatureMap) -> FeatureMap:
        """This map and another after it."""
        shift, scale = self.shift[after.index], self.scale[after.index]
        shift, index = shift + after.shift * scale, self.index[after.index]
        return FeatureMap(self.inputs, index, shift, scale * after.scale)

    def dropping(self, column: int) -> FeatureMap:
        """The map of all inputs but one, which it must leave as it is."""
        at = np.flatnonzero(self.index == column)
        if len(at) != 1 or self.shift[at[0]] != 0.0 or self.scale[at[0]] != 1.0 or at[0] != column:
            raise UnsupportedModelError(
                f"input_transform: expected column {column}, which holds the task, as it is; give "
                "the transform the indices of the other columns"
            )
        index, shift, scale = (
            np.delete(part, at[0]) for part in (self.index, self.shift, self.scale)
        )
        return FeatureMap(self.inputs - 1, index - (index > column), shift, scale)

    @property
    def linear(self) -> LinearMap:
        """The same as a matrix."""
        matrix = np.zeros((len(self.index), self.inputs))
        matrix[np.arange(len(self.index)), self.index] = 1.0 / self.scale
        return LinearMap(matrix, -self.shift / self.scale)

    def fold(self, posterior: Posterior) -> Posterior:
        """Points `z = z' scale + shift`, 0 in inputs that are not used, and the kernel of them; a
        trend `slope.z'` is `(slope / scale).(z - shift)`."""

        def placed(values: np.ndarray) -> np.ndarray:
            full = np.zeros((len(values), self.inputs))
            full[:, self.index] = values
            return full

        slope, spread = posterior.slope / self.scale, posterior.spread
        if spread is not None:  # known where all inputs are used
            full = len(self.index) == self.inputs
            spread = placed(spread[None] * self.scale)[0] if full else None
        return replace(
            posterior,
            points=placed(posterior.points * self.scale + self.shift),
            kernel=self._seen(posterior.kernel.rescaled(self.scale, self.shift)),
            feature_names=None,
            spread=spread,
            slope=placed(slope),
            offset=posterior.offset - posterior.scale * (slope @ self.shift),
        )

    def _seen(self, kernel: Kernel) -> Kernel:
        """The kernel of the inputs at `index`.

        One of all of them, in another order, stays of its kind where it can: its own bounds serve.
        """
        if np.array_equal(self.index, np.arange(self.inputs)):
            return kernel
        reordered = kernel.reordered(self.index) if len(self.index) == self.inputs else None
        return reordered or ActiveDimensions(kernel, tuple(self.index.tolist()))


AnyMap = FeatureMap | LinearMap


def linear(features: AnyMap) -> LinearMap:
    """The map as a matrix."""
    return features.linear if isinstance(features, FeatureMap) else features


def joined(first: AnyMap, second: AnyMap) -> AnyMap:
    """One map and another after it."""
    if isinstance(first, FeatureMap) and isinstance(second, FeatureMap):
        return first.then(second)
    return linear(first).then(linear(second))


def folded(step: AnyMap, model: Model) -> Model:
    """A model of x' as one of x; a committee member by member."""
    if isinstance(model, ModelCollection):
        members = (folded(step, member) for member in model.members)
        return replace(model, members=tuple(m for m in members if isinstance(m, Posterior)))
    if model.dim != len(step.shift):
        raise UnsupportedModelError(
            f"pipeline: expected a model of {len(step.shift)} features, got {model.dim}"
        )
    if isinstance(step, FeatureMap) and model.features is None:
        return step.fold(model)
    combined = step if model.features is None else joined(step, model.features)
    assert isinstance(combined, LinearMap), "a feature map without features was folded above"
    return replace(model, features=combined, feature_names=None, spread=None)


def feature_map(name: str, step: Any, inputs: int) -> AnyMap:
    """The map of a fitted step with so many inputs, or a refusal that names it."""
    function = type(step) is FunctionTransformer
    passed = step is None or (isinstance(step, str) and step == "passthrough")
    if passed or (function and step.func is None):
        return FeatureMap.select(inputs)
    if not function and not hasattr(step, "n_features_in_"):
        raise InputError(
            f"pipeline step {name!r}: expected a fitted {type(step).__name__}, got an unfitted "
            "one; call fit(X, y) on the pipeline first"
        )
    if type(step) in CONVERTERS:
        return CONVERTERS[type(step)](name, step, inputs)
    if type(step) in LINEAR:
        return LINEAR[type(step)](step)
    if isinstance(step, SelectorMixin) and type(step).__module__.startswith("sklearn."):
        return FeatureMap.select(inputs, step.get_support(indices=True))
    kind = type(step).__name__
    raise UnsupportedModelError(
        f"pipeline step {name!r}: {kind} is not supported (supported: {', '.join(STEPS)}): "
        f"{ADVICE.get(kind, NO_IMAGE)}"
    )


def _scaled(name: str, step: Any, inputs: int) -> FeatureMap:
    kind = type(step).__name__
    if getattr(step, "clip", False):
        raise UnsupportedModelError(
            f"pipeline step {name!r}: {kind}(clip=True) is not supported, because clipping is not "
            f"affine; fit with {kind}(clip=False)"
        )
    return FeatureMap.scaled(inputs, *SCALERS[type(step)](step), "scaler")


def _imputed(name: str, step: SimpleImputer, inputs: int) -> FeatureMap:
    """Inputs of a region are not missing: they pass as they are."""
    numbers = isinstance(step.missing_values, float) and np.isnan(step.missing_values)
    if not numbers or step.add_indicator or step.get_feature_names_out().size != inputs:
        raise UnsupportedModelError(
            f"pipeline step {name!r}: SimpleImputer is supported for missing_values=nan, without "
            "indicators and empty columns; apply it to the data first"
        )
    return FeatureMap.select(inputs)


def _steps(name: str, step: Pipeline, inputs: int) -> AnyMap:
    combined: AnyMap = FeatureMap.select(inputs)
    for part, inner in step.steps:
        combined = joined(combined, feature_map(f"{name}.{part}", inner, len(combined.shift)))
    return combined


def _parts(step: ColumnTransformer | FeatureUnion, inputs: int) -> list[tuple[str, Any, Any]]:
    """Names, steps and columns of the parts that are not dropped."""
    if isinstance(step, FeatureUnion):
        parts = [(part, inner, np.arange(inputs)) for part, inner in step.transformer_list]
    else:
        columns = step._transformer_to_input_indices
        parts = [(part, inner, columns[part]) for part, inner, _ in step.transformers_]
    kept = ((part, inner, chosen) for part, inner, chosen in parts if len(chosen) > 0)
    return [each for each in kept if not (isinstance(each[1], str) and each[1] == "drop")]


def _side_by_side(name: str, step: ColumnTransformer | FeatureUnion, inputs: int) -> AnyMap:
    """The parts, each behind the selection of its columns. Scalings and selections of distinct
    inputs stay what they are; all others have a matrix."""
    if step.transformer_weights:
        raise UnsupportedModelError(
            f"pipeline step {name!r}: {type(step).__name__}(transformer_weights=...) is not "
            "supported; put a scaler into the transformers instead"
        )
    maps = []
    for part, inner, chosen in _parts(step, inputs):
        inner_map = feature_map(f"{name}.{part}", inner, len(chosen))
        maps.append(joined(FeatureMap.select(inputs, chosen), inner_map))
    if not maps:
        raise UnsupportedModelError(
            f"pipeline step {name!r}: expected a {type(step).__name__} with at least one column"
        )
    plain = [each for each in maps if isinstance(each, FeatureMap)]
    index = np.concatenate([each.index for each in plain] or [np.zeros(0, dtype=int)])
    if len(plain) < len(maps) or len(np.unique(index)) != len(index):
        return LinearMap.stacked([linear(each) for each in maps])
    shift, scale = (np.concatenate([getattr(m, n) for m in plain]) for n in ("shift", "scale"))
    return FeatureMap(inputs, index, shift, scale)


def spread_before(steps: Sequence[tuple[str, Any]], inputs: int) -> np.ndarray:
    """(inputs,): the standard deviations of the training data that scalers among the steps know;
    0 of categories, which stay fixed, NaN where none knows."""
    spread, seen = np.full(inputs, np.nan), FeatureMap.select(inputs)
    for name, step in steps:
        step_spread = _known_spread(step, len(seen.shift)) * seen.scale
        spread[seen.index] = np.where(np.isnan(spread[seen.index]), step_spread, spread[seen.index])
        after = feature_map(name, step, len(seen.shift))
        if not isinstance(after, FeatureMap):
            break
        seen = seen.then(after)
    return spread


def _known_spread(step: Any, inputs: int) -> np.ndarray:
    """(inputs,): as `spread_before`, of one step."""
    spread = np.full(inputs, np.nan)
    if type(step) is StandardScaler and step.var_ is not None:
        deviation = np.sqrt(step.var_)  # that of a constant feature is rounding
        spread = np.where(step.scale_ == deviation, deviation, 0.0)
    elif type(step) in (OneHotEncoder, OrdinalEncoder):
        spread = np.zeros(inputs)
    elif type(step) is Pipeline:
        spread = spread_before(step.steps, inputs)
    elif isinstance(step, ColumnTransformer | FeatureUnion):
        for _, inner, chosen in _parts(step, inputs):
            inner_spread = _known_spread(inner, len(chosen))
            spread[chosen] = np.where(np.isnan(spread[chosen]), inner_spread, spread[chosen])
    return spread


CONVERTERS: dict[type, Callable[[str, Any, int], AnyMap]] = {
    **dict.fromkeys((OneHotEncoder, OrdinalEncoder), categories),
    **dict.fromkeys(SCALERS, _scaled),
    **dict.fromkeys((ColumnTransformer, FeatureUnion), _side_by_side),
    Pipeline: _steps,
    SimpleImputer: _imputed,
}
