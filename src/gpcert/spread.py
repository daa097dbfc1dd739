"""How far each feature spreads in the training data: the unit of `scale="std"`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpcert.arrays import finite_array
from gpcert.errors import InputError


def spread_of(X: Any) -> np.ndarray:
    """(d,) standard deviations of the columns of X (n, d), divided by n as scikit-learn's scalers
    do; exactly 0 for a feature that has one value, whatever the mean's rounding.

    >>> spread_of([[0.1, 1.0], [0.1, 3.0], [0.1, 2.0]]).round(3).tolist()
    [0.0, 0.816]
    """
    values = finite_array("X", X, ndim=2)
    with np.errstate(over="ignore"):
        found = values.std(axis=0)
    return np.where(values.min(axis=0) == values.max(axis=0), 0.0, found)


def checked_spread(spread: Any, d: int) -> np.ndarray | None:
    """d finite numbers >= 0 that can only be read, or None where they are not known."""
    if spread is None:
        return None
    found = finite_array("spread", spread)
    if found.shape != (d,) or np.any(found < 0):
        raise InputError(f"spread: expected {d} numbers >= 0, one per feature, got {spread!r}")
    found.setflags(write=False)
    return found
