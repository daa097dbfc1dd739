"""Small classification problems, finite differences and a sampler, shared by the tests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpcert.kernels import SquaredExponential
from gpcert.models.inference import Fit
from gpcert.models.links import Link


def binary(N: int = 30, d: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, d))
    return X, np.where(X[:, 0] + np.sin(2 * X[:, -1]) + 0.5 * rng.normal(size=N) > 0, 1.0, -1.0)


def covariance(X: np.ndarray, length: float = 1.3, variance: float = 2.0) -> np.ndarray:
    return SquaredExponential(length, variance).value(X, X)


def latent(fit: Fit, K_star: np.ndarray, prior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance at new points from the canonical form, K_star (n, N)."""
    assert fit.factor is not None
    return K_star @ fit.weights, prior - np.square(K_star @ fit.factor.T).sum(1)


def derivative(evidence: Callable[[float], float], at: float, step: float = 1e-3) -> float:
    """Central difference of fourth order."""
    h = step
    ends = evidence(at - 2 * h) - evidence(at + 2 * h)
    return (ends + 8 * (evidence(at + h) - evidence(at - h))) / (12 * h)


def elliptical_slice(
    K: np.ndarray, y: np.ndarray, link: Link, *, chains: int, steps: int, burn: int, seed: int
) -> np.ndarray:
    """(steps, chains, N) samples of the exact posterior (Murray, Adams & MacKay 2010)."""
    rng = np.random.default_rng(seed)
    N = len(y)
    root = np.linalg.cholesky(K + 1e-10 * np.eye(N))
    f = rng.normal(size=(chains, N)) @ root.T
    kept = np.empty((steps, chains, N))
    for step in range(-burn, steps):
        other = rng.normal(size=(chains, N)) @ root.T
        level = link.log_likelihood(y, f).sum(1) + np.log(rng.uniform(size=chains))
        angle = rng.uniform(0.0, 2 * np.pi, size=chains)
        low, high = angle - 2 * np.pi, angle.copy()
        new = f.copy()
        open_ = np.ones(chains, dtype=bool)
        while open_.any():
            i = np.flatnonzero(open_)
            new[i] = f[i] * np.cos(angle[i])[:, None] + other[i] * np.sin(angle[i])[:, None]
            accepted = link.log_likelihood(y, new[i]).sum(1) > level[i]
            open_[i[accepted]] = False
            j = i[~accepted]
            low[j] = np.where(angle[j] < 0, angle[j], low[j])
            high[j] = np.where(angle[j] >= 0, angle[j], high[j])
            angle[j] = rng.uniform(low[j], high[j])
        f = new
        if step >= 0:
            kept[step] = f
    return kept
