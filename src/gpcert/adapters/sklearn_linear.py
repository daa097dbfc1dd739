"""scikit-learn's transformers that mix their inputs linearly, as a matrix and a shift."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.cluster import FeatureAgglomeration
from sklearn.decomposition import PCA, FactorAnalysis, FastICA, IncrementalPCA, TruncatedSVD
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from gpcert.errors import UnsupportedModelError
from gpcert.regions import LinearMap


def _pca(step: Any) -> LinearMap:
    W = np.asarray(step.components_, dtype=np.float64)
    if step.whiten:
        scale = np.sqrt(step.explained_variance_)
        W = W / np.maximum(scale, np.finfo(scale.dtype).eps)[:, None]
    return LinearMap(W, None if step.mean_ is None else -W @ step.mean_)


def _components(step: Any) -> LinearMap:
    return LinearMap(_dense(step.components_))


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


def _dense(matrix: Any) -> np.ndarray:
    """Components, which a sparse projection stores as a sparse matrix."""
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=np.float64)


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
