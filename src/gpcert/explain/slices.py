"""A region with some of its features held at a point."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpcert.regions import Ball, Box, Region


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
