"""The domain of an optimisation: bounds as scikit-optimize, BoTorch and data frames write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpcert.api.feature_names import feature_number
from gpcert.api.regions import check_held, held_by, read_region
from gpcert.errors import InputError
from gpcert.model.committee import Model
from gpcert.numerics.arrays import finite_array
from gpcert.regions import Box, Region


def domain_of(model: Model, bounds: Any, fixed: Mapping[Any, Any] | None = None) -> Region:
    """The region that `bounds` mean, with some features `fixed` at values."""
    region = read_region(model, bounds) if isinstance(bounds, Region) else _box(model, bounds)
    if fixed:
        if not isinstance(region, Box):
            raise InputError(
                "fixed: belongs to bounds, got a region with a shape of its own; fix the features "
                "there"
            )
        ends = np.stack([region.lower, region.upper])
        for label, value in fixed.items():
            j = feature_number(model, "fixed", label)
            at = float(finite_array(f"fixed {label!r}", value, ndim=0))
            if not ends[0, j] <= at <= ends[1, j]:
                raise InputError(
                    f"fixed: expected {label!r} within its bounds [{ends[0, j]:g}, "
                    f"{ends[1, j]:g}], got {at:g}"
                )
            ends[:, j] = at
        region = Box(*ends)
    return check_held(held_by(model), region)


def _box(model: Model, bounds: Any) -> Box:
    if isinstance(bounds, Mapping):
        return Box(*np.array(_by_name(model, bounds)).T)
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


def _by_name(model: Model, bounds: Mapping[Any, Any]) -> list[tuple[float, float]]:
    """A pair for every feature of the model; an `InputError` for one that is left out."""
    pairs = {
        feature_number(model, "bounds", label): _pair(repr(label), each)
        for label, each in bounds.items()
    }
    names = model.feature_names or range(model.dim)
    missing = [name for j, name in enumerate(names) if j not in pairs]
    if missing or len(pairs) < len(bounds):
        raise InputError(
            f"bounds: expected one entry for every feature, got none for {missing}"
            if missing
            else "bounds: expected every feature once"
        )
    return [pairs[j] for j in range(model.dim)]


def _pair(name: str, given: Any) -> tuple[float, float]:
    """Two ends, or one number, which fixes a feature."""
    ends = finite_array(name, given)
    if ends.shape == ():
        return float(ends), float(ends)
    if ends.shape != (2,) or ends[0] > ends[1]:
        raise InputError(f"{name}: expected (low, high) with low <= high, got {given!r}")
    return float(ends[0]), float(ends[1])
