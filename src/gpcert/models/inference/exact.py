"""Exact Gaussian process regression (GPML Alg. 2.1, evidence gradient Eq. 5.9)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpcert.models.inference.cholesky import (
    checked_covariance,
    lower_factor,
    with_jitter,
)
from gpcert.models.inference.record import EvidenceGradient, Fit
from gpcert.triangular import square, triangular_inverse


def exact(K: Any, y: Any, noise: float) -> Fit:
    """Posterior of `y = f + e`, `f ~ N(0, K)`, `e ~ N(0, noise I)`.

    y: (N,), or (m, N) for m independent outputs with one covariance, whose evidences add up; then
    the weights are (m, N). With `C = K + noise I = L L^T`:

        t = C^-1 y,   A = L^-1,   dE = sum_ij W_ij dK_ij,   W = (t t^T - C^-1) / 2,
        dE / d log noise = noise trace W.

    >>> fit = exact([[1.0]], [2.0], noise=1.0)
    >>> round(float(fit.weights[0]), 12), round(float(fit.factor[0, 0]) ** 2, 12)
    (1.0, 0.5)
    """
    targets = np.asarray(y, dtype=np.float64)
    N = targets.shape[-1]
    K = checked_covariance(K, (N, N))

    def fit(covariance: np.ndarray) -> Fit:
        return _exact(covariance, np.atleast_2d(targets), noise, one=targets.ndim == 1)

    return with_jitter(K, fit)


def _exact(K: np.ndarray, targets: np.ndarray, noise: float, *, one: bool) -> Fit:
    m, N = targets.shape
    C = K.copy()
    C[np.diag_indices(N)] += noise
    L = lower_factor(C)
    A = triangular_inverse(L)
    white = targets @ A.T
    weights = white @ A
    log_determinant = 2.0 * float(np.log(np.diag(L)).sum())
    evidence = -0.5 * (
        float(np.square(white).sum()) + m * log_determinant + m * N * math.log(2.0 * math.pi)
    )
    W = 0.5 * (weights.T @ weights - m * square(A))
    return Fit(
        evidence=evidence,
        weights=weights[0] if one else weights,
        factor=A,
        gradient=EvidenceGradient(square=W, noise=noise * float(np.trace(W))),
    )
