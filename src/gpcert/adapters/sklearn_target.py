"""Scaled targets: scikit-learn's `TransformedTargetRegressor`, where the transform is affine.

The library fits on `y' = (y - shift) / scale` and predicts `y = shift + scale y'`, target by
target: a Gaussian process of y' with offset o, scale s and noise n is one of y with offset
`shift + scale o`, scale `scale s` and noise `scale^2 n`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.preprocessing import FunctionTransformer

from gpcert.adapters.conversion import Conversion, LibraryPrediction, unsupported
from gpcert.adapters.sklearn_features import SCALERS, Scaling
from gpcert.arrays import finite_array
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.posterior import Posterior

NOT_GAUSSIAN = (
    "its prediction is not Gaussian in the user's units; ask about the regressor_ inside, whose "
    "targets are the transformed ones"
)


def convert_target(
    model: TransformedTargetRegressor, convert: Callable[[Any], Conversion]
) -> Conversion:
    """Convert the regressor inside with `convert`, and fold the transform of its targets."""
    inner = convert(model.regressor_)
    posterior = inner.posterior
    if not isinstance(posterior, Posterior) or posterior.likelihood.classifies:
        raise UnsupportedModelError("TransformedTargetRegressor: expected a regressor inside")
    shift, scale = _numbers(_scaling(model.transformer_), posterior.outputs)

    def predict(X: np.ndarray) -> LibraryPrediction:
        library = inner.predict(X)
        variance = None if library.variance is None else library.variance * scale**2
        return LibraryPrediction(np.reshape(model.predict(X), (len(X), -1)), variance)

    folded = replace(
        posterior,
        offset=shift + scale * posterior.offset,
        scale=scale * posterior.scale,
        noise=scale**2 * posterior.noise,
    )
    return Conversion(folded, predict, inner.tolerance)


def _scaling(transformer: Any) -> Scaling:
    if type(transformer) is FunctionTransformer:
        if transformer.func is None and transformer.inverse_func is None:
            return Scaling()
        raise UnsupportedModelError(
            f"TransformedTargetRegressor with func= and inverse_func= is not supported: "
            f"{NOT_GAUSSIAN}"
        )
    converter = SCALERS.get(type(transformer))
    if converter is None:
        why = f": {NOT_GAUSSIAN}"
        raise unsupported("TransformedTargetRegressor", transformer, SCALERS, why)
    return converter(transformer)


def _numbers(scaling: Scaling, outputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Shift and scale of every target."""
    shift = 0.0 if scaling.shift is None else finite_array("shift of a target", scaling.shift)
    scale = 1.0 if scaling.scale is None else finite_array("scale of a target", scaling.scale)
    if np.any(np.asarray(scale) <= 0):
        raise InputError(f"scale of a target: expected positive numbers, got {scale}")
    return np.broadcast_to(shift, (outputs,)), np.broadcast_to(scale, (outputs,))
