"""The outline of a two-dimensional region, from the description that a certificate keeps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from gpcert.errors import InputError

CORNERS = 128
"""Points of the outline of a round ball; a multiple of 8, so that corners are met exactly."""


def outline(region: Mapping[str, Any]) -> np.ndarray:
    """Closed polygon (k, 2) around a box or a p-norm ball of the plane.

    The outline of a ball inside a domain is the ball's own, clipped coordinate by coordinate:
    clipping towards the centre shortens `|x_j - c_j|`, so clipped points stay in the ball.

    >>> outline({"kind": "box", "lower": [0, 0], "upper": [1, 2]}).tolist()
    [[0.0, 0.0], [1.0, 0.0], [1.0, 2.0], [0.0, 2.0]]
    """
    if region.get("kind") == "box":
        low, high = _pair("lower", region["lower"]), _pair("upper", region["upper"])
    elif region.get("kind") == "ball":
        center, radius = _pair("center", region["center"]), np.asarray(region["radius"], float)
        if float(region["norm"]) != math.inf:
            return _clipped(center + radius * _directions(region), region)
        low, high = _clipped(center + radius * np.outer([-1.0, 1.0], _movable(region)), region)
    else:
        raise InputError(f"region: expected a described Box or Ball, got {region!r}")
    return np.array([low, [high[0], low[1]], high, [low[0], high[1]]])


def _directions(region: Mapping[str, Any]) -> np.ndarray:
    """Points of norm 1, off the features that may not move."""
    angles = np.linspace(0.0, 2.0 * np.pi, CORNERS, endpoint=False)
    around = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    size = np.linalg.norm(around, ord=float(region["norm"]), axis=1, keepdims=True)
    return around / size * _movable(region)


def _movable(region: Mapping[str, Any]) -> np.ndarray:
    features = region.get("features")
    return np.ones(2) if features is None else np.isin(np.arange(2), features).astype(float)


def _clipped(points: np.ndarray, region: Mapping[str, Any]) -> np.ndarray:
    if region.get("domain") is None:
        return points
    low, high = (np.asarray(end, dtype=float) for end in region["domain"])
    return np.clip(points, low, high)


def _pair(name: str, values: Any) -> np.ndarray:
    point = np.asarray(values, dtype=float)
    if point.shape != (2,):
        raise InputError(f"{name}: expected two features to draw in the plane, got {point.shape}")
    return point
