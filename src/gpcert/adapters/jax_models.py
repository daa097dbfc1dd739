"""What the adapters of JAX libraries share.

JAX computes in float32 unless told otherwise. The numbers that a conditioned model stores are what
its formulas use, so they are taken as they are; what is certified is the float64 function of them,
and the distance to what the model itself returns is measured (`Conversion.native`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpcert.adapters.adapter import Conversion, LibraryPrediction, in_blocks
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import finite_array
from gpcert.utils.optional_imports import library

jax: Any = library("jax")

PredictionFunction = Callable[[Any, Any], LibraryPrediction]
"""What a model predicts at points (n, d)."""


def points(name: str, value: Any) -> np.ndarray:
    """Inputs (N, d); plain numbers (N,) are one feature."""
    X = finite_array(name, value)
    return X[:, None] if X.ndim == 1 else X


def compared(posterior: Posterior, model: Any, predictions: PredictionFunction) -> Conversion:
    """The conversion of a model whose predictions are `said`: in float64, and as the model does."""

    def asked(library_model: Any, X: np.ndarray) -> LibraryPrediction:
        return in_blocks(lambda rows: predictions(library_model, rows), jax.numpy.asarray(X))

    def predict(X: np.ndarray) -> LibraryPrediction:
        with jax.enable_x64(True):
            return asked(jax.tree_util.tree_map(_double, model), X)

    leaves = [np.asarray(leaf).dtype for leaf in jax.tree_util.tree_leaves(model)]
    if np.float32 not in leaves:
        return Conversion(posterior, predict)
    return Conversion(posterior, predict, native=lambda X: asked(model, X))


def _double(leaf: Any) -> Any:
    floats = np.issubdtype(np.asarray(leaf).dtype, np.floating)
    return jax.numpy.asarray(np.asarray(leaf, dtype=np.float64)) if floats else leaf
