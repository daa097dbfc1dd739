"""Proved upper bounds of norms and eigenvalues of a posterior's matrices.

LAPACK's eigenvalues and factorisations are estimates here, never bounds: what counts is proved from
them, and a routine that fails or returns nonsense costs tightness only.

Proofs: docs/mathematics.md, statements 1.4 and 1.5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy.linalg

from gpcert.errors import InputError
from gpcert.rounding import TINY, gamma, raised_power, scaled_to_one, up_float

__all__ = ["absolute_norm", "largest_eigenvalue", "symmetric_eigh"]

DRIVERS = ("evd", "ev", "evr")
"""LAPACK's routines for symmetric eigenproblems, in the order in which they are tried."""


def absolute_norm(A: np.ndarray) -> float:
    """Upper bound of `|| |A| ||_2`.

    Reason (Collatz-Wielandt): M = |A|^T |A| has no negative entries, so for every x > 0 its
    largest eigenvalue is at most `max_i (M x)_i / x_i`; a few power steps make x a good one.
    """
    absolute, exponent = scaled_to_one(np.abs(A))  # entries of size one: nothing overflows
    if not absolute.any():
        return 0.0
    x = np.ones(A.shape[1])
    for _ in range(12):
        x = absolute.T @ (absolute @ x)
        x = x / x.max() + 1e-6  # strictly positive, as the bound needs
    ratio = float((absolute.T @ (absolute @ x) / x).max())
    return raised_power(up_float(np.sqrt(up_float(ratio, sum(A.shape) + 8)), 8), exponent)


def largest_eigenvalue(factors: Sequence[np.ndarray], K: np.ndarray, errors: np.ndarray) -> float:
    """Upper bound of the largest eigenvalue of `sum_c A_c K A_c^T`; K is known up to `errors`.

    Reason: if Cholesky of `H = h I - M` ends, `R^T R = H + E` with
    `|E|_2 <= gamma(r+1)/(1 - gamma(r+1)) trace H` (Demmel 1989; Rump 2006), so
    `lambda_max(M) <= h + |E|_2`; the rounding of M itself is bounded in Frobenius norm. Whatever
    LAPACK does, no eigenvalue exceeds the largest row sum of |M| (Gershgorin), the last resort.
    All on factors of size one: a power of two 2^e of A is one of 2^(2e) of M.
    """
    r, N = factors[0].shape
    if r == 0:
        return 0.0
    scaled, exponent = scaled_to_one(np.stack(factors))
    M = np.zeros((r, r))
    size = np.zeros((r, r))
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = gamma(2 * N + 4 + len(factors)) * np.abs(K) + 2.0 * errors + TINY
        for A in scaled:
            M += A @ K @ A.T
            size += np.abs(A) @ rounded @ np.abs(A).T
        error = up_float(_frobenius(size), 2 * N + 4 + len(factors))
        M = M / 2 + M.T / 2
        row_sum = up_float(float(np.abs(M).sum(axis=1).max()), r + 4)
        proved = _proved_height(M, row_sum) if math.isfinite(row_sum) else math.inf
        found = raised_power(up_float(proved + error, 2), 2 * exponent)
    if not math.isfinite(found):
        raise InputError(
            "factor: |A K A^T| is beyond float64, so nothing can be proved of the variance; "
            "expected a factor A of the precision (K + noise)^-1 with A K A^T about 1 or below"
        )
    return found


def _proved_height(M: np.ndarray, row_sum: float) -> float:
    """Upper bound of the largest eigenvalue of the symmetric floats M; see `largest_eigenvalue`."""
    r = len(M)
    diagonal = np.diag(M)
    # between the largest diagonal entry and the row sum lies the truth, and so does the estimate
    estimate = min(max(_estimated_eigenvalue(M, row_sum), float(diagonal.max())), row_sum)
    margin = max(16 * gamma(r + 2) * abs(estimate) * r, TINY)
    while estimate + margin < row_sum:
        height = estimate + margin
        H = np.diag(np.full(r, height)) - M
        try:
            scipy.linalg.cholesky(H, lower=True)
        except np.linalg.LinAlgError:
            margin *= 4
            continue
        backward = up_float(gamma(r + 1) / (1 - gamma(r + 1)) * float(np.abs(np.diag(H)).sum()), r)
        rounding = gamma(2) * (abs(height) + float(np.abs(diagonal).max()))
        return min(up_float(height + backward + rounding, 8), row_sum)
    return row_sum


def _estimated_eigenvalue(M: np.ndarray, otherwise: float) -> float:
    """About the largest eigenvalue, or `otherwise` where LAPACK finds none."""
    for driver in DRIVERS:
        try:
            found = float(scipy.linalg.eigvalsh(M, driver=driver)[-1])
        except np.linalg.LinAlgError:
            continue
        if math.isfinite(found):
            return found
    return otherwise


def _frobenius(matrix: np.ndarray) -> float:
    """Frobenius norm of a matrix with entries >= 0; what underflows is counted by its largest."""
    scaled, exponent = scaled_to_one(matrix)
    return raised_power(up_float(np.sqrt(up_float(float(np.square(scaled).sum()), 4)), 4), exponent)


def symmetric_eigh(S: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors in plain floating point, or an `InputError` that names S."""
    scaled, exponent = scaled_to_one(S)
    for driver in DRIVERS if np.all(np.isfinite(scaled)) else ():
        try:
            values, vectors = scipy.linalg.eigh(scaled, driver=driver)
        except np.linalg.LinAlgError:
            continue
        if np.all(np.isfinite(values)) and np.all(np.isfinite(vectors)):
            return np.ldexp(values, exponent), vectors
    raise InputError(
        f"{name}: LAPACK found no eigenvalues of this {S.shape} matrix; expected a symmetric one "
        "that can be factored: pass a factor A with S = A^T A instead"
    )
