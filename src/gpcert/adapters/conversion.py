"""What an adapter hands over: the posterior, and the library's own predictions beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpcert.committee import Committee, Model

__all__ = ["Conversion", "LibraryPrediction", "fitted_names", "with_names"]


@dataclass(frozen=True, eq=False)
class LibraryPrediction:
    """What the library itself says at n points; None where it does not say.

    `mean` and `variance` have shape (n, m) like those of `Posterior.predict`; `probability` (n,)
    is that of the second class. Of a committee: `probability` (n, members) is each member's own,
    `classes` (n, m) the probabilities of the classes, `decision` (n,) the index of the class.
    """

    mean: np.ndarray | None = None
    variance: np.ndarray | None = None
    probability: np.ndarray | None = None
    classes: np.ndarray | None = None
    decision: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Conversion:
    """A posterior, or a committee of them, and the function X (n, d) -> `LibraryPrediction` of the
    model it came from.

    Both take X in the units of the user: scalings in front of the model are folded into both.
    `predict` evaluates the library's own formulas in float64. Where the user's model computes
    otherwise (in float32, by conjugate gradients, on a GPU), `native` is what it itself returns:
    its distance is measured and reported, not refused.
    """

    posterior: Model
    predict: Callable[[np.ndarray], LibraryPrediction]
    native: Callable[[np.ndarray], LibraryPrediction] | None = None


def fitted_names(model: Any) -> tuple[str, ...] | None:
    """Names of the features that a model in scikit-learn's manner was fitted with, if any."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(map(str, names))


def with_names(model: Model, names: tuple[str, ...] | None) -> Model:
    """The model with these names of its features."""
    if isinstance(model, Committee):
        members = tuple(with_names(member, names) for member in model.members)
        return replace(model, members=members)
    return model if model.feature_names == names else replace(model, feature_names=names)
