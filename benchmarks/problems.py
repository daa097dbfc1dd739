"""Regression problems drawn from the prior: the ones that gpcert and MAiNGO both solve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

import gpcert
from gpcert.kernels import Kernel, SquaredExponential
from gpcert.likelihoods import Gaussian, Likelihood

NOISE = 0.01
"""Variance of the observation noise."""

MEAN_SHAPES = [(2, 1000, 0.1), (5, 500, 0.1), (10, 200, 0.05), (10, 1000, 0.05)]
"""(d, N, g): features, points, half-width of the box."""

PROBABILITY_SHAPES = [
    (2, 1000, 0.1),
    (5, 100, 0.1),
    (5, 500, 0.1),
    (10, 200, 0.05),
    (10, 1000, 0.05),
]


def exact(kernel: Kernel, X: np.ndarray, y: np.ndarray, noise: Any) -> tuple[np.ndarray, ...]:
    """Weights and factor of exact regression; `noise` is a variance, or one for each point."""
    K = kernel.value(X, X) + noise * np.eye(len(X))
    L = scipy.linalg.cholesky(K, lower=True)
    A = scipy.linalg.solve_triangular(L, np.eye(len(X)), lower=True)
    return A.T @ (A @ y), A


@dataclass(frozen=True)
class Regression:
    """One GP regression problem and the box over which a minimum is asked for."""

    shape: tuple[int, int, float]
    seed: int
    lengths: np.ndarray
    points: np.ndarray
    observations: np.ndarray
    center: np.ndarray

    @property
    def key(self) -> str:
        d, N, g = self.shape
        return f"d={d} N={N} g={g} seed={self.seed}"

    @property
    def kernel(self) -> SquaredExponential:
        return SquaredExponential(self.lengths, 1.0)

    @property
    def box(self) -> gpcert.Box:
        g = self.shape[2]
        return gpcert.Box(self.center - g, self.center + g)

    def posterior(self, likelihood: Likelihood | None = None) -> gpcert.Posterior:
        """The exact posterior in canonical form."""
        weights, factor = exact(self.kernel, self.points, self.observations, NOISE)
        return gpcert.Posterior(
            self.kernel, self.points, weights, factor, likelihood=likelihood or Gaussian()
        )

    def for_maingo(self) -> dict[str, Any]:
        """Plain lists: MAiNGO's interpreter need not have NumPy."""
        K = self.kernel.value(self.points, self.points) + NOISE * np.eye(len(self.points))
        rng = np.random.default_rng(self.seed + 1)
        g = self.shape[2]
        checks = self.center + g * rng.uniform(-1, 1, (4, len(self.center)))
        posterior = self.posterior()
        mean, variance = posterior.predict(checks)
        return {
            "lengths": self.lengths.tolist(),
            "X": self.points.tolist(),
            "Y": self.observations.tolist(),
            "K": K.tolist(),
            "invK": posterior.precision().tolist(),
            "factor": np.asarray(posterior.factors_of(0)[0]).tolist(),
            "weights": posterior.weights[0].tolist(),
            "lower": self.box.lower.tolist(),
            "upper": self.box.upper.tolist(),
            "checks": checks.tolist(),
            "check_mean": mean[:, 0].tolist(),
            "check_variance": variance[:, 0].tolist(),
        }


def draw(shape: tuple[int, int, float], seed: int = 0) -> Regression:
    """Points uniform in [0, 1]^d, length-scales in [0.3, 0.5], observations from the prior."""
    d, N, g = shape
    rng = np.random.default_rng(seed)
    lengths = rng.uniform(0.3, 0.5, d)
    points = rng.uniform(0, 1, (N, d))
    K = SquaredExponential(lengths, 1.0).value(points, points)
    # the jitter lets the factorisation end; it is far below the noise
    values = scipy.linalg.cholesky(K + 1e-8 * np.eye(N), lower=True) @ rng.normal(size=N)
    observations = values + np.sqrt(NOISE) * rng.normal(size=N)
    center = rng.uniform(g, 1 - g, d)
    return Regression(shape, seed, lengths, points, observations, center)
