"""The domain of an optimisation: bounds as scikit-optimize, BoTorch and data frames write them,
categories by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpcert.api.regions import check_held, feature_number, held_by, read_region
from gpcert.errors import InputError
from gpcert.model.committee import Model
from gpcert.numerics.arrays import finite_array
from gpcert.regions import Box, OneHot, Region


def domain_of(model: Model, bounds: Any, fixed: Mapping[Any, Any] | None = None) -> Region:
    """The region that `bounds` mean, with some features `fixed` at values."""
    held = dict(fixed or {})
    if isinstance(bounds, Mapping):  # categories by name
        for label, each in list(bounds.items()):
            columns = _categories(model, label, each) if label in held else []
            if columns:
                value, labels = held.pop(label), list(dict.fromkeys(each))
                if value not in labels:
                    raise InputError(
                        f"fixed: expected one of {labels} for {label!r}, got {value!r}"
                    )
                names = [(model.feature_names or ())[j] for j in columns]
                ends = {name: float(x == value) for name, x in zip(names, labels, strict=True)}
                bounds = {**{k: v for k, v in bounds.items() if k != label}, **ends}
    region = read_region(model, bounds) if isinstance(bounds, Region) else _box(model, bounds)
    if held:
        region = _with_fixed(model, region, held)
    return check_held(held_by(model), region)


def _with_fixed(model: Model, region: Region, fixed: Mapping[Any, Any]) -> Region:
    box = region.region if isinstance(region, OneHot) else region
    if not isinstance(box, Box):
        raise InputError(
            "fixed: belongs to bounds, got a region with a shape of its own; fix the features there"
        )
    ends = np.stack([box.lower, box.upper])
    for label, value in fixed.items():
        j = feature_number(model, "fixed", label)
        at = float(finite_array(f"fixed {label!r}", value, ndim=0))
        if not ends[0, j] <= at <= ends[1, j]:
            raise InputError(
                f"fixed: expected {label!r} within its bounds [{ends[0, j]:g}, "
                f"{ends[1, j]:g}], got {at:g}"
            )
        ends[:, j] = at
    whole = Box(*ends)
    if not isinstance(region, OneHot):
        return whole
    groups = [group.tolist() for group in region.groups.columns]
    return OneHot(whole, groups, region.groups.dropped)


def _box(model: Model, bounds: Any) -> Region:
    if isinstance(bounds, Mapping):
        pairs, groups = _by_name(model, bounds)
        box = Box(*np.array(pairs).T)
        return OneHot(box, groups) if groups else box
    d = model.dim
    wanted = (
        f"bounds: expected a gpcert.Region, {d} pairs (low, high), {{name: (low, high)}}, or an "
        f"array of shape (2, {d}) with the lower ends first"
    )
    if not hasattr(bounds, "shape") and isinstance(bounds, Sequence) and len(bounds) == d:
        pairs = [_pair(f"bounds of feature {j}", each) for j, each in enumerate(bounds)]
        return Box(*np.array(pairs).T)
    try:
        ends = finite_array("bounds", bounds, ndim=2)
    except InputError as error:
        raise InputError(f"{wanted} ({error})") from error
    if ends.shape != (2, d):
        raise InputError(f"{wanted}, got shape {ends.shape}")
    return Box(*ends)


def _by_name(
    model: Model, bounds: Mapping[Any, Any]
) -> tuple[list[tuple[float, float]], list[list[int]]]:
    """A pair for every feature of the model, and groups of one-hot columns; an `InputError` for a
    feature that is left out."""
    pairs: dict[int, tuple[float, float]] = {}
    groups, count = [], 0
    for label, each in bounds.items():
        columns = _categories(model, label, each)
        if columns:
            pairs |= dict.fromkeys(columns, (0.0, 1.0) if len(columns) > 1 else (1.0, 1.0))
            groups += [columns] if len(columns) > 1 else []
        else:
            columns = [feature_number(model, "bounds", label)]
            pairs[columns[0]] = _pair(repr(label), each)
        count += len(columns)
    names = model.feature_names or range(model.dim)
    missing = [name for j, name in enumerate(names) if j not in pairs]
    if missing or len(pairs) < count:
        raise InputError(
            f"bounds: expected one entry for every feature, got none for {missing}; a category "
            "that is left out has a column of 0"
            if missing
            else "bounds: expected every feature once"
        )
    return [pairs[j] for j in range(model.dim)], groups


def _categories(model: Model, label: Any, each: Any) -> list[int]:
    """The columns of a feature's categories, `{"colour": ["red", "blue"]}`, where the model has
    one-hot columns called "colour_red" or "colour=red"; none where it means something else."""
    names = list(model.feature_names or ())
    listed = isinstance(each, list | tuple) and not isinstance(label, int) and label not in names
    for sign in "_=" if listed else "":
        wanted = [f"{label}{sign}{category}" for category in each]
        if wanted and all(name in names for name in wanted):
            return [names.index(name) for name in dict.fromkeys(wanted)]
    return []


def _pair(name: str, given: Any) -> tuple[float, float]:
    """Two ends, or one number, which fixes a feature."""
    ends = finite_array(name, given)
    if ends.shape == ():
        return float(ends), float(ends)
    if ends.shape != (2,) or ends[0] > ends[1]:
        raise InputError(f"{name}: expected (low, high) with low <= high, got {given!r}")
    return float(ends[0]), float(ends[1])
