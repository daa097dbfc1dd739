"""Checks of the arguments of a ball: its norm, radius, features and domain."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpcert.arrays import finite_array, number_array
from gpcert.errors import InputError


def check_norm(norm: float | str, name: str = "norm") -> float:
    """The exponent p in [1, inf] of a norm given as a number or `"inf"`."""
    try:
        p = float("nan" if isinstance(norm, bool | bytes) else norm)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name}: expected a number >= 1 or 'inf', got {norm!r}") from error
    if not p >= 1.0:
        raise InputError(f"{name}: expected p >= 1 (below, the ball is not convex), got {norm!r}")
    return p


def check_radius(radius: Any, dim: int) -> float | np.ndarray:
    """A finite radius >= 0, or one per feature: an array (dim,)."""
    values = finite_array("radius", radius)
    if values.shape not in {(), (dim,)}:
        raise InputError(
            f"radius: expected a number or {dim} numbers, one per feature (0 keeps a feature "
            f"fixed), got shape {values.shape}"
        )
    if np.any(values < 0):
        raise InputError(f"radius: expected numbers >= 0, got {radius!r}")
    if values.ndim == 0:
        return float(values)
    values.setflags(write=False)
    return values


def check_features(features: Any, dim: int) -> np.ndarray:
    """Sorted indices of the features that may move, from indices, a mask, or None for all."""
    if features is None:
        return np.arange(dim)
    if isinstance(features, str | bytes):
        raise InputError(
            f"features: expected a list of numbers or a mask, got {features!r}; names are "
            "understood by certify and the other verbs, which know the model's"
        )
    if np.ma.is_masked(features):
        raise InputError("features: expected a list of integers or a mask, got masked entries")
    try:
        given = np.asarray(features)
    except (TypeError, ValueError) as error:
        raise InputError(f"features: expected a list of integers, got {features!r}") from error
    if given.dtype == bool:
        if given.shape != (dim,):
            raise InputError(f"features: expected a mask of shape ({dim},), got {given.shape}")
        return np.flatnonzero(given)
    if given.shape == (0,):
        return np.arange(0)
    if given.ndim != 1 or not np.issubdtype(given.dtype, np.integer):
        raise InputError(
            f"features: expected a list of integers or a mask of length {dim}, got {features!r}"
        )
    bad = given[(given < 0) | (given >= dim)]
    if bad.size:
        raise InputError(f"features: expected indices in 0..{dim - 1}, got {int(bad[0])}")
    index = np.unique(given)
    if index.size != given.size:
        raise InputError("features: expected distinct indices, got some twice")
    return index


def check_domain(domain: Any, center: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The ends (d,), (d,) of the valid inputs; infinite ends are allowed, the centre is inside."""
    if domain is None:
        return None
    try:
        low, high = (
            np.array(np.broadcast_to(number_array("domain", end), center.shape)) for end in domain
        )
    except (TypeError, ValueError) as error:
        raise InputError(
            f"domain: expected (low, high), numbers or arrays of shape {center.shape}, got "
            f"{domain!r}; {error}"
        ) from error
    if np.any(np.isnan(low)) or np.any(np.isnan(high)):
        raise InputError("domain: expected numbers, got NaN; use -inf or inf for an open side")
    for side, excess in (("below", low - center), ("above", center - high)):
        if np.any(excess > 0):
            j = int(np.argmax(excess))
            raise InputError(
                f"center: expected inside the domain [{low[j]}, {high[j]}], got "
                f"center[{j}] = {center[j]}, {side} it by {excess[j]}; "
                "move the point or widen the domain"
            )
    return low, high


def number_or_text(value: float) -> float | str:
    """The number, or its name where JSON has none for it.

    >>> number_or_text(2.5), number_or_text(-math.inf)
    (2.5, '-inf')
    """
    return value if math.isfinite(value) else str(value)
