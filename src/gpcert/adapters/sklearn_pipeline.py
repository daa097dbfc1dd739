"""Scalers in front of a model, folded into its posterior: regions stay in the user's own units.

A scaler computes `x' = (x - shift) / scale`, feature by feature, so a posterior in x' is one in x
with points `z = z' scale + shift` and the kernel `k((x - shift) / scale, ...)`. The folded float64
arrays define the certified model; `gpcert.adapters.agreement` measures what their rounding changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from gpcert.adapters.conversion import (
    Conversion,
    LibraryPrediction,
    fitted_names,
    with_names,
)
from gpcert.arrays import finite_array
from gpcert.committee import Committee, Model
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.posterior import Posterior

__all__ = ["Scaling", "SCALERS", "convert_pipeline"]


@dataclass(frozen=True, eq=False)
class Scaling:
    """`x' = (x - shift) / scale`; None stands for no shift, no scale."""

    shift: Any = None
    scale: Any = None

    def fold(self, model: Model) -> Model:
        """The posterior of x' as a posterior of x; a committee member by member."""
        if isinstance(model, Committee):
            return replace(model, members=tuple(self._fold(member) for member in model.members))
        return self._fold(model)

    def _fold(self, posterior: Posterior) -> Posterior:
        d = posterior.dim
        scale = np.ones(d) if self.scale is None else finite_array("scale of a scaler", self.scale)
        shift = np.zeros(d) if self.shift is None else finite_array("shift of a scaler", self.shift)
        if np.any(scale <= 0):
            raise InputError(f"scale of a scaler: expected positive numbers, got {scale}")
        return replace(
            posterior,
            points=posterior.points * scale + shift,
            kernel=posterior.kernel.rescaled(scale, shift),
            spread=None if posterior.spread is None else posterior.spread * scale,
        )


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


def convert_pipeline(pipeline: Pipeline, convert: Callable[[Any], Conversion]) -> Conversion:
    """Convert the last step with `convert`, and fold the scalers before it from last to first."""
    steps = [
        (name, step) for name, step in pipeline.steps[:-1] if step not in (None, "passthrough")
    ]
    scalings = [_scaling(name, step) for name, step in steps]
    inner = convert(pipeline.steps[-1][1])
    posterior = inner.posterior
    for scaling in reversed(scalings):
        posterior = scaling.fold(posterior)
    # the last step may know names too: those of what the scalers hand on
    first = steps[0][1] if steps else pipeline.steps[-1][1]
    posterior = with_names(posterior, fitted_names(first))

    def predict(X: np.ndarray) -> LibraryPrediction:
        for _, step in steps:
            X = step.transform(X)
        return inner.predict(X)

    return Conversion(posterior, predict)


def _scaling(name: str, step: Any) -> Scaling:
    kind = type(step).__name__
    converter = SCALERS.get(type(step))
    if converter is None:
        supported = ", ".join(cls.__name__ for cls in SCALERS)
        raise UnsupportedModelError(
            f"pipeline step {name!r}: {kind} is not supported (supported: {supported}), since a "
            f"region in the user's units has no exact image under it; apply {kind} to the data "
            "first and ask about regions of its output"
        )
    if getattr(step, "clip", False):
        raise UnsupportedModelError(
            f"pipeline step {name!r}: {kind}(clip=True) is not supported, because clipping is not "
            f"affine; fit with {kind}(clip=False)"
        )
    if not hasattr(step, "n_features_in_"):
        raise InputError(
            f"pipeline step {name!r}: expected a fitted {kind}, got an unfitted one; "
            "call fit(X, y) on the pipeline first"
        )
    return converter(step)
