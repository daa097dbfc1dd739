"""scikit-learn's linear transformers: scalers, selections, columns, PCA and its like.

A step computes `x'_k = (x_j(k) - shift_k) / scale_k`, each output from an input of its own (a
`FeatureMap`, folded into kernel and points), or `x' = W x + b` (a `LinearMap`, kept in front of the
kernel). An encoder of categories is a map of indicators: a region must keep its columns fixed.
Functions of single features that do not decrease (`sklearn_curves`) take a box to a box. Everything
else is refused by name: a region in the user's units has no exact image there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from gpcert.adapters.sklearn_curves import CURVED, NAMES, input_curves
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.functions import Clip, Curve
from gpcert.kernels import ActiveDimensions, Kernel
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
    "PowerTransformer",
    "QuantileTransformer",
    f"FunctionTransformer of {NAMES} or a gpcert.functions.Curve",
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
    try:
        return linear(first).then(linear(second))
    except InputError as error:
        raise UnsupportedModelError(f"pipeline: {error}") from None


def dropping(step: AnyMap, column: int) -> AnyMap:
    """The map of all inputs but one, which it must leave as it is."""
    whole = linear(step)
    same = np.eye(whole.inputs)[column]
    rows = whole.matrix
    alone = len(rows) > column and np.array_equal(rows[column], same)
    if not (alone and np.array_equal(rows[:, column], np.eye(len(rows))[column])) or (
        whole.shift[column] != 0.0 or column in whole.curves
    ):
        raise UnsupportedModelError(
            f"input_transform: expected column {column}, which holds the task, as it is; give "
            "the transform the indices of the other columns"
        )
    if isinstance(step, FeatureMap):
        at = int(np.flatnonzero(step.index == column)[0])
        index, shift, scale = (np.delete(p, at) for p in (step.index, step.shift, step.scale))
        return FeatureMap(step.inputs - 1, index - (index > column), shift, scale)
    curves = {j - (j > column): curve for j, curve in whole.curves.items()}
    matrix = np.delete(np.delete(rows, column, axis=0), column, axis=1)
    return LinearMap(matrix, np.delete(whole.shift, column), curves=curves)


def folded(step: AnyMap, model: Any) -> Any:
    """A model of x' as one of x; a committee member by member."""
    if isinstance(model, ModelCollection):
        members = (folded(step, member) for member in model.members)
        return replace(model, members=tuple(m for m in members if isinstance(m, Posterior)))
    if model.dim != len(step.shift):
        raise UnsupportedModelError(
            f"pipeline: expected a model of {len(step.shift)} features, got {model.dim}"
        )
    if isinstance(step, FeatureMap) and model.mean_function is not None and model.features is None:
        model = replace(model, features=LinearMap(np.eye(model.dim)))
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


def _scaled(name: str, step: Any, inputs: int) -> AnyMap:
    scaled = FeatureMap.scaled(inputs, *SCALERS[type(step)](step), "scaler")
    if not getattr(step, "clip", False):
        return scaled
    low, high = getattr(step, "feature_range", (-1.0, 1.0))
    clipped = Curve((Clip(float(low), float(high)),))
    return joined(scaled, of_curves(dict.fromkeys(range(inputs), clipped), inputs))


def of_curves(curves: Mapping[int, Curve], inputs: int) -> LinearMap:
    """Functions of single inputs as a map."""
    return LinearMap(np.eye(inputs), curves=curves)


def _curved(name: str, step: Any, inputs: int) -> LinearMap:
    return of_curves(input_curves(f"pipeline step {name!r}", step, inputs), inputs)


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
        try:
            return LinearMap.stacked([linear(each) for each in maps])
        except InputError as error:
            raise UnsupportedModelError(f"pipeline step {name!r}: {error}") from None
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
    **dict.fromkeys(CURVED, _curved),
    **dict.fromkeys((ColumnTransformer, FeatureUnion), _side_by_side),
    Pipeline: _steps,
    SimpleImputer: _imputed,
}
