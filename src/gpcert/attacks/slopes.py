"""Slopes of predictions in plain floating point, for local search: nothing is proved here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import numpy as np

from gpcert.model.multi_output import ModelCollection
from gpcert.numerics.arrays import Inputs, PerRow
from gpcert.quantities import PredictionSlope, PredictionSteepness
from gpcert.quantities.compound import deviation_of

STEP = 2.0**-18
"""Of differences that stand for second derivatives, in widths of the points that are known."""


def prediction_slopes(
    model: ModelCollection, quantity: PredictionSlope | PredictionSteepness, X: Inputs
) -> Annotated[np.ndarray, "n k"]:
    """`D_j G(mu, V)` along every direction of a model `slopes_beside`."""
    steep = isinstance(quantity, PredictionSteepness)
    count = quantity.directions if steep else len(quantity.weights)
    base, *slopes = model.members[quantity.base : quantity.base + count + 1]
    mean, variance = base.predict(X)
    by_mean, by_variance = quantity.function.slopes(mean[:, 0], variance[:, 0])
    K, rows = base.cross(X), []
    parts = [(F, K @ F.T, sign) for F, sign in zip(base.factors_of(0), (-2.0, 2.0), strict=True)]
    for slope in slopes:
        turned = slope.cross(X)
        v = sum(sign * np.sum(known * (turned @ F.T), axis=1) for F, known, sign in parts)
        rows.append(
            by_mean * slope.mean(X)[:, 0] + by_variance * base.scale[0] * slope.scale[0] * v
        )
    return np.stack(rows, axis=1)


def slope_function(
    model: ModelCollection, quantity: PredictionSlope | PredictionSteepness
) -> Callable[[Inputs], tuple[PerRow, Callable[[], Inputs]]]:
    """The quantity, and its gradient by differences."""
    places = model.members[quantity.base].places
    steps = STEP * np.maximum(np.ptp(places, axis=0), 1e-8 + 1e-8 * np.abs(places).max(axis=0))

    @np.errstate(all="ignore")
    def value(X: Inputs) -> PerRow:
        slopes = prediction_slopes(model, quantity, X)
        if isinstance(quantity, PredictionSlope):
            return slopes @ np.array(quantity.weights)
        return -deviation_of(slopes, quantity.norm)[0]

    def function(X: Inputs) -> tuple[PerRow, Callable[[], Inputs]]:
        def gradient() -> Inputs:
            moves = np.concatenate([np.diag(steps), -np.diag(steps)])
            values = value((X[:, None, :] + moves).reshape(-1, X.shape[1])).reshape(len(X), 2, -1)
            slopes = (values[:, 0] - values[:, 1]) / (2.0 * steps)
            return np.where(np.isfinite(slopes), slopes, 0.0)

        return value(X), gradient

    return function
