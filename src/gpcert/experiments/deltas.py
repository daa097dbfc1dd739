"""The paper's delta of many points, each in a ball of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import gpcert
from gpcert.experiments.base import Row
from gpcert.experiments.fits import ball_words
from gpcert.experiments.results import Cell, ResultTable
from gpcert.experiments.statistics import Estimate, bootstrap
from gpcert.models import GPClassifier

SMALLEST = 1e-12
"""A delta that is taken for no movement at all: ratios to less would say nothing."""


def delta_rows(
    model: GPClassifier, name: str, X: np.ndarray, settings: Any, key: Mapping[str, Cell]
) -> list[Row]:
    """Attained and proved delta around each row of X; of images a patch of pixels moves. The
    settings have `radius`, `pixels`, `tol` and `boxes`."""
    posterior = gpcert.as_posterior(model)
    budget = gpcert.Budget(seconds=None, boxes=settings.boxes)
    rows: list[Row] = []
    for k, x in enumerate(X):
        words = ball_words(name, x, settings.pixels)
        (found,) = gpcert.robustness(
            posterior, x[None], settings.radius, tol=settings.tol, budget=budget, **words
        )
        rows.append({**key, "point": k, "attained": found.delta.lower, "proved": found.delta.upper})
    return rows


def deltas_of(table: ResultTable, **chosen: Cell) -> np.ndarray:
    """(points,) the proved deltas of one model, in the order of the points."""
    return table.where(**chosen).numbers("proved")


def ratio_of(middle: Callable[..., np.ndarray], above: np.ndarray, below: np.ndarray) -> Estimate:
    """Mean (or median) of one over that of the other at the same points, which are resampled
    together.

    >>> ratio_of(np.mean, np.array([2.0, 4.0]), np.array([1.0, 2.0])).value
    2.0
    """

    def ratio(values: np.ndarray, axis: int) -> np.ndarray:
        found = middle(values, axis=axis)
        return found[..., 0] / np.maximum(found[..., 1], SMALLEST)

    return bootstrap(np.stack([above, below], axis=1), ratio)
