"""Posteriors given by a normal distribution of the values at inducing points.

With u = f(Z), L L^T = K_ZZ + jitter I and whitened values w = L^-1 (u - m_Z) ~ N(c, Q):

    mean      m(x) + k(x, Z) L^-T c,
    variance  k(x, x) - k(x, Z) L^-T (I - Q) L^-1 k(Z, x).

I - Q = U diag(e) U^T is often indefinite. Rows `sqrt|e_j| u_j^T L^-1` with e_j > 0 are the factor
A, those with e_j < 0 the subtracted factor C: as A K A^T and C K C^T are diagonal (jitter aside),
neither takes back what the other gives. Reference: Hensman et al. 2015, Matthews 2017.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from gpcert.errors import UnsupportedModelError
from gpcert.kernels import Kernel
from gpcert.posterior import Posterior
from gpcert.spectral import symmetric_eigh
from gpcert.triangular import Inverse, triangular_inverse


@dataclass(frozen=True, eq=False)
class Canonical:
    """Weights (N,) and the factors A (r, N) and C (r', N) of a posterior."""

    weights: np.ndarray
    factor: np.ndarray | Inverse
    negative_factor: np.ndarray

    def posterior(
        self, kernel: Kernel, points: np.ndarray, constant: Any, slope: Any, **more: Any
    ) -> Posterior:
        """Of a prior with this kernel and the mean `constant + slope.x`."""
        factors = {"factor": self.factor, "negative_factor": self.negative_factor}
        mean = {"offset": constant, "slope": slope}
        return Posterior(kernel, points, self.weights, **factors, **mean, **more)


def lower_factor(K: np.ndarray, what: str) -> np.ndarray:
    """The Cholesky factor L of K in float64, or an `UnsupportedModelError`."""
    try:
        return scipy.linalg.cholesky(K, lower=True)
    except (np.linalg.LinAlgError, ValueError):
        raise UnsupportedModelError(
            f"{what}: expected a positive definite matrix, but in float64 it has no Cholesky "
            "factor; the library adds jitter of its own choice in such a case. Fit the model with "
            "more noise, or without duplicate points"
        ) from None


def exact_regression(K: np.ndarray, targets: np.ndarray) -> Canonical:
    """From the covariance K of the observations, noise included, and their centred values (N,).

    `t = K^-1 y`, `A = L^-1`: Rasmussen & Williams 2006, Algorithm 2.1.
    """
    L = lower_factor(K, "covariance of the training points, noise included")
    weights = scipy.linalg.cho_solve((L, True), targets)
    return Canonical(weights, Inverse.of(L, owned=True), np.zeros((0, len(L))))


def whitened(L: np.ndarray, center: np.ndarray, spread: np.ndarray | None) -> Canonical:
    """From c (N,) and Q (N, N), None for no spread at all; see the module."""
    weights = scipy.linalg.solve_triangular(L, center, lower=True, trans=1)
    inverse = triangular_inverse(L)
    if spread is None:
        return Canonical(weights, inverse, np.zeros((0, len(L))))
    left = np.eye(len(L)) - (spread / 2 + spread.T / 2)
    eigenvalues, U = symmetric_eigh(left, "I - Q")
    rows = (np.sqrt(np.abs(eigenvalues)) * U).T @ inverse
    return Canonical(weights, rows[eigenvalues > 0], rows[eigenvalues < 0])


def unwhitened(L: np.ndarray, center: np.ndarray, spread: np.ndarray | None) -> Canonical:
    """From the mean (N,), less the prior's, and the covariance (N, N) of u itself."""

    def solve(B: np.ndarray) -> np.ndarray:
        return scipy.linalg.solve_triangular(L, B, lower=True)

    return whitened(L, solve(center), None if spread is None else solve(solve(spread).T))
