"""Names of features in the options of a verb, replaced by their numbers.

Only the model knows the names of its features; regions know numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from gpcert.errors import InputError
from gpcert.model.committee import Model
from gpcert.numerics.arrays import finite_array
from gpcert.regions.shapes import check_ends, check_features


def feature_number(model: Model, name: str, label: Any) -> int:
    """The number of a feature, from its name or its number."""
    names = model.feature_names
    if isinstance(label, str):
        if names is None:
            raise InputError(
                f"{name}: expected numbers of features, got the name {label!r}; the model was "
                "fitted without names (fit it on a data frame to use them)"
            )
        if label not in names:
            raise InputError(f"{name}: expected names out of {list(names)}, got {label!r}")
        return names.index(label)
    whole = isinstance(label, int | np.integer) and not isinstance(label, bool)
    if not whole or not 0 <= label < model.dim:
        raise InputError(
            f"{name}: expected names or numbers 0 to {model.dim - 1} of features, got {label!r}"
        )
    return int(label)


def as_mapping(name: str, value: Any) -> Mapping[Any, Any] | None:
    """A mapping by feature: one itself, or a series of a data frame with names; else None."""
    if isinstance(value, Mapping):
        return value
    series = hasattr(value, "iloc") and hasattr(value, "index") and not hasattr(value, "columns")
    if series and any(isinstance(label, str) for label in value.index):
        by_name = dict(zip(value.index, value.tolist(), strict=True))
        if len(by_name) < len(value):
            raise InputError(f"{name}: expected every name once, got {list(value.index)}")
        return by_name
    return None


def labels_by_number(model: Model, name: str, labels: Iterable[Any]) -> dict[int, Any]:
    """Labels by the numbers of their features; an `InputError` where two mean the same one."""
    by_number: dict[int, Any] = {}
    for label in labels:
        j = feature_number(model, name, label)
        if j in by_number:
            raise InputError(
                f"{name}: expected every feature once, got {by_number[j]!r} and {label!r} for the "
                "same"
            )
        by_number[j] = label
    return by_number


def number_per_feature(model: Model, name: str, given: Mapping[Any, Any]) -> np.ndarray:
    """(d,) numbers from `{name: number}`; 0 for features that are left out, and for those of "any"
    category."""
    values = np.zeros(model.dim)
    for j, label in labels_by_number(model, name, given).items():
        if isinstance(given[label], str) and given[label] == "any" and j in model.levels:
            continue
        values[j] = float(finite_array(f"{name} of {label!r}", given[label], ndim=0))
    return values


def read_features(model: Model, features: Any) -> np.ndarray | None:
    """Numbers of the features that may move, from names, numbers or a mask."""
    if features is None:
        return None
    if isinstance(features, str):
        features = [features]
    wanted = f"features: expected names or numbers of features, or a mask, got {features!r}"
    if np.ma.is_masked(features) or isinstance(features, Mapping):
        raise InputError(f"{wanted}; radii by name are given as radius=")
    try:
        labels = list(features)
    except TypeError as error:
        raise InputError(wanted) from error
    if any(isinstance(label, str) for label in labels):
        labels = [feature_number(model, "features", label) for label in labels]
    return check_features(labels, model.dim)


def read_domain(model: Model, domain: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """The ends (d,), (d,) of the valid inputs, from `(low, high)` or `{name: (low, high)}`."""
    if domain is None:
        return None
    named = as_mapping("domain", domain)
    if named is not None:
        ends = np.tile([[-math.inf], [math.inf]], model.dim)
        for j, label in labels_by_number(model, "domain", named).items():
            ends[:, j] = check_ends(f"domain of {label!r}", named[label], ())
        return ends[0], ends[1]
    return check_ends("domain", domain, (model.dim,))
