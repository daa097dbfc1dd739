"""Proved upper bounds of norms and eigenvalues of a posterior's matrices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.linalg

from gpcert.errors import InputError
from gpcert.rounding import TINY, gamma, up_float

__all__ = ["absolute_norm", "largest_eigenvalue"]


def absolute_norm(A: np.ndarray) -> float:
    """Upper bound of `|| |A| ||_2`.

    Reason (Collatz-Wielandt): M = |A|^T |A| has no negative entries, so for every x > 0 its
    largest eigenvalue is at most `max_i (M x)_i / x_i`; a few power steps make x a good one.
    """
    absolute = np.abs(A)
    largest = float(absolute.max(initial=0.0))
    if largest == 0.0:
        return 0.0
    absolute = absolute / largest  # entries of size one: no overflow, one rounding each
    x = np.ones(A.shape[1])
    for _ in range(12):
        x = absolute.T @ (absolute @ x)
        x = x / x.max() + 1e-6  # strictly positive, as the bound needs
    ratio = float((absolute.T @ (absolute @ x) / x).max())
    return up_float(largest * np.sqrt(up_float(ratio, sum(A.shape) + 8)), 8)


def largest_eigenvalue(factors: Sequence[np.ndarray], K: np.ndarray, errors: np.ndarray) -> float:
    """Upper bound of the largest eigenvalue of `sum_c A_c K A_c^T`; K is known up to `errors`.

    Reason: if Cholesky of `H = h I - M` ends, `R^T R = H + E` with
    `|E|_2 <= gamma(r+1)/(1 - gamma(r+1)) trace H` (Demmel 1989; Rump 2006), so
    `lambda_max(M) <= h + |E|_2`; the rounding of M itself is bounded in Frobenius norm.
    """
    r, N = factors[0].shape
    if r == 0:
        return 0.0
    M = np.zeros((r, r))
    size = np.zeros((r, r))
    rounded = gamma(2 * N + 4 + len(factors)) * np.abs(K) + 2.0 * errors + TINY
    for A in factors:
        M += A @ K @ A.T
        size += np.abs(A) @ rounded @ np.abs(A).T
    error = up_float(float(np.linalg.norm(size)), 2 * N + 4 + len(factors))
    M = (M + M.T) / 2
    estimate = scipy.linalg.eigvalsh(M, subset_by_index=[r - 1, r - 1])[0]
    margin = 16 * gamma(r + 2) * max(1.0, abs(estimate)) * r
    for _ in range(64):
        height = estimate + margin
        H = np.diag(np.full(r, height)) - M
        try:
            scipy.linalg.cholesky(H, lower=True)
        except np.linalg.LinAlgError:
            margin *= 4
            continue
        backward = up_float(gamma(r + 1) / (1 - gamma(r + 1)) * float(np.abs(np.diag(H)).sum()), r)
        rounding = gamma(2) * (abs(height) + float(np.abs(np.diag(M)).max()))
        return up_float(height + backward + rounding + error, 8)
    raise InputError("factor: no bound of |A K A^T| could be proved; are its entries too large?")
