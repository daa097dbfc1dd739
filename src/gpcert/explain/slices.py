"""A region with some of its features held at a point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpcert.errors import InputError
from gpcert.regions import Ball, Box, Region

__all__ = ["movable", "region_around", "with_free"]


def region_around(
    x: np.ndarray,
    radius: Any,
    region: Region | None,
    options: dict[str, Any],
) -> Region:
    """`region`, or `Ball(x, radius, **options)`; x must lie in it."""
    if (radius is None) == (region is None):
        raise InputError("expected exactly one of radius= and region=")
    found = Ball(x, radius, **options) if region is None else region
    if not isinstance(found, Region):
        raise InputError(f"region: expected a gpcert.Box or gpcert.Ball, got {found!r}")
    if found.dim != len(x):
        raise InputError(f"region: expected {len(x)} features, got {found.dim}")
    if not bool(found.contains(x)):
        raise InputError("x: expected a point of the region")
    if isinstance(found, Ball) and not np.array_equal(found.center, x):
        raise InputError(
            "region: expected a ball around x itself, or a Box: with features held at x, a ball "
            "about another point is no ball"
        )
    return found


def movable(region: Region) -> np.ndarray:
    """Features that the region leaves free."""
    return np.asarray(region.free)


def with_free(region: Region, x: np.ndarray, free: Sequence[int]) -> Region:
    """The points of the region that agree with x but for the features `free`.

    >>> with_free(Box([0.0, 0.0], [1.0, 2.0]), np.array([0.5, 1.0]), [1]).lower
    array([0.5, 0. ])
    """
    index = np.asarray(sorted(free), dtype=int)
    if isinstance(region, Ball):
        chosen = np.intersect1d(index, region.features)
        return Ball(region.center, region.radius, region.norm, chosen, region.domain)
    low, high = x.copy(), x.copy()
    low[index], high[index] = region.lower[index], region.upper[index]
    return Box(low, high)
