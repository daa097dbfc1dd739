"""Checks of what the verbs of `gpcert.explain` are given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpcert.arrays import finite_array
from gpcert.committee import Model
from gpcert.errors import InputError
from gpcert.explain.record import named
from gpcert.regions.arguments import check_domain, check_features

__all__ = ["check_points", "feature_indices", "feature_radius", "full_domain", "one_point"]


def check_points(model: Model, X: Any) -> np.ndarray:
    """X as (n, d); one point may be given as (d,)."""
    given = finite_array("X", X)
    return model.check_inputs(given[None] if given.ndim == 1 else given)


def one_point(model: Model, x: Any) -> np.ndarray:
    """x as (d,)."""
    point = finite_array("x", x)
    if point.ndim != 1 or len(point) != model.dim:
        raise InputError(f"x: expected one point of {model.dim} features, got {point.shape}")
    return point


def feature_indices(model: Model, features: Any) -> np.ndarray:
    """Sorted indices, from names, indices, a mask, or None for all."""
    if features is not None and any(isinstance(each, str) for each in np.atleast_1d(features)):
        names = named(model.feature_names, model.dim)
        unknown = [each for each in features if each not in names]
        if unknown:
            raise InputError(
                f"features: expected names of the model's features, got {unknown[:3]}; it knows "
                f"{list(names[:5])}{'...' if len(names) > 5 else ''}"
            )
        features = [names.index(each) for each in features]
    return check_features(features, model.dim)


def feature_radius(model: Model, radius: Any, features: Any) -> tuple[np.ndarray, np.ndarray]:
    """The features to move (F,) and their positive radii (F,).

    `radius` is a number, one per feature of the model, or a dict by feature (name or index), which
    leaves out what it does not name. `features` as in `feature_indices`.
    """
    chosen = feature_indices(model, features)
    if isinstance(radius, Mapping):
        named_features = [feature_indices(model, [key])[0] for key in radius]
        values = np.full(model.dim, np.nan)
        for place, value in zip(named_features, radius.values(), strict=True):
            values[place] = float(finite_array("radius", value, ndim=0))
        chosen = np.intersect1d(chosen, named_features)
    else:
        values = finite_array("radius", radius)
        if values.shape not in {(), (model.dim,)}:
            raise InputError(
                f"radius: expected a number or one per feature ({model.dim}), got shape "
                f"{values.shape}"
            )
        values = np.broadcast_to(values, (model.dim,))
    found = np.array(values[chosen], dtype=np.float64)
    if np.any(found <= 0):
        raise InputError(f"radius: expected positive numbers, got {float(found.min())!r}")
    return chosen, found


def full_domain(domain: Any, X: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The ends of the valid inputs (d,), every point inside."""
    found = None
    for x in X:
        found = check_domain(domain, x)
    return found
