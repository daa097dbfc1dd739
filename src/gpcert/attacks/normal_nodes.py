"""Nodes and weights for plain means over standard normals."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import scipy.special

FEW = 2
"""Up to this many dimensions a grid, beyond quasi-random points."""

REACH = 6.5
"""Standard deviations that a grid covers."""

MOST_NODES = 97
"""On each axis of a grid."""


def normal_nodes(dimension: int, spread: float, points: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (Q, dimension) and weights (Q,), symmetric about 0.

    `spread` says how many units of the link's own width one standard deviation is: the wider, the
    finer a grid. Quasi-random points are `points`, a power of two.

    >>> z, mass = normal_nodes(1, 1.0, 1024)
    >>> round(float(mass @ z[:, 0] ** 2), 8)
    1.0
    """
    if dimension > FEW:
        return _quasi_random(dimension, points)
    # trapezoidal rule: exponentially accurate once the step is a part of 1 / spread
    step = min(0.6, 1.6 / max(spread, 1e-3)) if math.isfinite(spread) else 0.0
    half = (MOST_NODES - 1) // 2 if step <= 0 else min(math.ceil(REACH / step), MOST_NODES // 2)
    return _grid(dimension, half)


@lru_cache(maxsize=128)
def _grid(dimension: int, half: int) -> tuple[np.ndarray, np.ndarray]:
    axis = np.linspace(-REACH, REACH, 2 * half + 1)
    weight = np.exp(-0.5 * axis**2)
    weight /= weight.sum()
    grid = np.meshgrid(*[axis] * dimension, indexing="ij")
    mass = np.prod(np.meshgrid(*[weight] * dimension, indexing="ij"), axis=0).ravel()
    used = mass > 1e-12 * mass.max()
    return np.stack([g.ravel() for g in grid], axis=1)[used], mass[used] / mass[used].sum()


@lru_cache(maxsize=32)
def _quasi_random(dimension: int, points: int) -> tuple[np.ndarray, np.ndarray]:
    """Sobol points and their reflections, with the covariance of a standard normal exactly."""
    from scipy.stats import qmc  # takes half a second to import: only for many classes

    sequence = qmc.Sobol(dimension, scramble=False)
    even = sequence.random_base2(int(math.log2(points // 2)))
    even = (even + np.random.default_rng(0).uniform(size=dimension)) % 1.0
    z = scipy.special.ndtri(np.clip(even, 1e-9, 1.0 - 1e-9))
    z = np.concatenate([z, -z])
    z = z @ np.linalg.inv(np.linalg.cholesky(z.T @ z / len(z))).T
    return z, np.full(len(z), 1.0 / len(z))
