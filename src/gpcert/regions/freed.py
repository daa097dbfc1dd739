"""Balls in which some features take any of a few values: free categories."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import Annotated

import numpy as np

from gpcert.errors import InputError
from gpcert.regions.base import Region
from gpcert.regions.discrete import Discrete
from gpcert.regions.shapes import Ball
from gpcert.regions.union import Union

MOST_PARTS = 1024
"""Balls of a union at most: every batch of cells asks each of them."""


def with_values(ball: Ball, values: Mapping[int, Annotated[np.ndarray, "_"]]) -> Region:
    """The points of a ball with any of some values of features that are fixed in it.

    Such features are no part of the distance: a box becomes a larger box at these values, a ball of
    another norm the union of the balls around each combination of values.

    >>> freed = with_values(Ball([0.5, 1.0], [0.1, 0.0]), {1: np.array([0.0, 1.0, 2.0])})
    >>> freed.contains([[0.6, 2.0], [0.6, 1.5]]).tolist()
    [True, False]
    """
    if ball.norm_constraint is None:
        moved = np.union1d(ball.features, list(values)).astype(int)
        radius = np.zeros(ball.dim)
        radius[ball.features] = np.broadcast_to(ball.radius, ball.center.shape)[ball.features]
        ends = ball.domain or (np.full(ball.dim, -math.inf), np.full(ball.dim, math.inf))
        low, high = (np.array(end) for end in ends)
        for j, each in values.items():
            radius[j] = 1.0 + 2.0 * np.max(np.abs(each - ball.center[j]))  # the values decide
            low[j], high[j] = -math.inf, math.inf
        whole = Ball(ball.center, radius, math.inf, moved, (low, high))
        return Discrete(whole, values=values)
    count = math.prod(map(len, values.values()))
    if count > MOST_PARTS:
        raise InputError(
            f"norm: expected at most {MOST_PARTS} combinations of categories in a ball of the norm "
            f"{ball.norm:g}, got {count}; free fewer of them, or take norm=inf"
        )
    balls = []
    for combination in product(*values.values()):
        center = ball.center.copy()
        center[list(values)] = combination
        balls.append(Ball(center, ball.radius, ball.norm, ball.features, ball.domain))
    return Union(balls)
