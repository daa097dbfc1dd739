"""Proved upper bounds of norms and eigenvalues of a posterior's matrices.

LAPACK's eigenvalues and factorisations are estimates here, never bounds: what counts is proved from
them, and a routine that fails or returns nonsense costs tightness only.

Proofs: docs/mathematics.md, statements 1.4, 1.5, 1.9 and 1.11.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from gpcert.errors import InputError
from gpcert.numerics.rounding import (
    TINY,
    gamma,
    given,
    raised_power,
    scaled,
    scaled_to_one,
    up,
    up_float,
)
from gpcert.numerics.triangular import Inverse, blocks, is_triangular, largest_entry

ORDINARY = 300
"""Exponents of numbers whose squares stay far inside float64."""

DRIVERS = ("evd", "ev", "evr")
"""LAPACK's routines for symmetric eigenproblems, in the order in which they are tried."""


class GramBlock(NamedTuple):
    """A block of K_ZZ on or below its diagonal, and bounds of the errors of its entries."""

    rows: slice
    columns: slice
    K: np.ndarray
    errors: np.ndarray

    @property
    def diagonal(self) -> bool:
        """Whether it lies on the diagonal."""
        return self.rows.start == self.columns.start

    @property
    def trace(self) -> float:
        """Upper bound of the sum of a block's own diagonal."""
        return up_float(float(np.sum(np.diag(self.K) + np.diag(self.errors))), len(self.K) + 4)


def absolute_norm(A: np.ndarray, *, lower: bool | None = None) -> float:
    """Upper bound of `|| |A| ||_2`; `lower`: whether A is lower triangular, where it is known.

    Reason (Collatz-Wielandt): M = |A|^T |A| has no negative entries, so for every x > 0 its
    largest eigenvalue is at most `max_i (M x)_i / x_i`; a few power steps make x a good one.
    """
    largest = largest_entry(A)
    if largest == 0.0:
        return 0.0
    lower = is_triangular(A) if lower is None else lower
    exponent = math.frexp(largest)[1]  # entries of size one: nothing overflows
    exponent = exponent if abs(exponent) > ORDINARY else 0
    x, ratio, before = np.ones(A.shape[1]), math.inf, math.inf
    for _ in range(12):
        after = np.zeros(A.shape[1])
        for rows in blocks(len(A)):  # |A| is never held as a whole
            seen = slice(0, rows.stop) if lower else slice(None)
            part = np.abs(scaled(A[rows, seen], -exponent) if exponent else A[rows, seen])
            after[seen] += (part @ x[seen]) @ part
        ratio = min(ratio, float((after / x).max()))
        if ratio > 0.98 * before:  # further steps gain little
            break
        x, before = after / after.max() + 1e-6, ratio  # strictly positive, as the bound needs
    return raised_power(up_float(np.sqrt(up_float(ratio, sum(A.shape) + 8)), 8), exponent)


def largest_eigenvalue(factors: Sequence[np.ndarray], K: np.ndarray, errors: np.ndarray) -> float:
    """Upper bound of the largest eigenvalue of `sum_c A_c K A_c^T`; K is known up to `errors`.

    Reason: if Cholesky of `H = h I - M` ends, its backward error E has
    `|E|_2 <= gamma(r+1)/(1 - gamma(r+1)) trace H` (Statement 1.4; Demmel 1989; Rump 2006). No
    eigenvalue exceeds the largest row sum of |M| (Gershgorin), the last resort. All on factors of
    size one: a power of two 2^e of A is one of 2^(2e) of M.
    """
    r, N = factors[0].shape
    if r == 0:
        return 0.0
    units, exponent = scaled_to_one(np.stack(factors))
    M = np.zeros((r, r))
    size = np.zeros((r, r))
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = gamma(2 * N + 4 + len(factors)) * np.abs(K) + 2.0 * errors + TINY
        for A in units:
            M += A @ K @ A.T
            size += np.abs(A) @ rounded @ np.abs(A).T
        error = up_float(frobenius(size), 2 * N + 4 + len(factors))
        M = M / 2 + M.T / 2
        row_sum = up_float(float(np.abs(M).sum(axis=1).max()), r + 4)
        proved = _proved_height(M, row_sum) if math.isfinite(row_sum) else math.inf
        norm = raised_power(up_float(proved + error, 2), 2 * exponent)
    if not math.isfinite(norm):
        raise InputError(
            "factor: |A K A^T| is beyond float64, so nothing can be proved of the variance; "
            "expected a factor A of the precision (K + noise)^-1 with A K A^T about 1 or below"
        )
    return norm


class Circles(NamedTuple):
    """Gershgorin's circles of `E = L L^T - K`, rounding included: every eigenvalue of E + D, D
    diagonal, lies within `radius_i` of `center_i + D_i` for some i; `trace` is at least that of
    `L L^T`, so at least `|L|_2^2`."""

    center: np.ndarray
    radius: np.ndarray
    trace: float


def triangular_eigenvalue(inverse: Inverse, circles: Circles) -> float:
    """Upper bound of the largest eigenvalue of `A K A^T`, A lower triangular; inf if none is found.

    Statement: for any L, with `f >= |A L - I|_2` and any mu with `L L^T - K >= mu I`,

        lambda_max(A K A^T) <= (1 + f)^2 - mu ((1 - f) / |L|_2)^2   if mu >= 0 and f < 1,
        lambda_max(A K A^T) <= (1 + f)^2 - mu |A|_2^2               if mu < 0.

    Reason: `A K A^T <= A L L^T A^T - mu A A^T`, `A L = I + F` (Statement 1.9). f is proved with the
    inverse, mu found by Gershgorin's circles of the computed residual.
    """
    f = inverse.residual
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        mu = float((circles.center - circles.radius).min()) if f < 0.5 else math.nan
        if not math.isfinite(mu):
            return math.inf
        if mu >= 0:
            least = 1.0 - f
            less = mu * least * least / circles.trace * (1.0 - gamma(16))
            return up_float(up_float((1.0 + f) ** 2, 8) - less, 1)
        largest = absolute_norm(inverse.matrix)
        return up_float((1.0 + f) ** 2 - mu * largest * largest, 16)


def inverse_distance(inverse: Inverse, circles: Circles, noise: np.ndarray, size: float) -> float:
    """Upper bound of `|A (K + Sigma) A^T - I|_2`, A lower triangular of norm at most `size`,
    Sigma = diag(noise); inf where none is found.

    Reason: with `A L = I + F`, `|F| <= f` and `rho >= |L L^T - K - Sigma|_2`, it is at most
    `2 f + f^2 + size^2 rho`, and with `q = rho / min Sigma < 1` at most `(2 f + f^2 + q) / (1 - q)`
    (Statement 1.12); rho by Gershgorin's circles.
    """
    f = inverse.residual
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        moved = np.abs(circles.center - noise) + gamma(2) * (np.abs(circles.center) + noise)
        rho = float((moved + circles.radius).max())
        inverses = 2.0 * f + f * f
        distance = up_float(inverses + size * size * rho, 16)
        q = up_float(rho / float(noise.min()), 2)
        if q < 0.5:
            distance = min(distance, up_float((inverses + q) / (1.0 - q), 8))
    return distance if math.isfinite(distance) else math.inf


def gram_circles(L: np.ndarray, gram: Iterable[GramBlock]) -> Circles:
    """Of a lower triangular L; of numbers that are not finite where something left float64.

    Reason: no eigenvalue of `E = L L^T - K` is outside the circles about E_ii of radius
    `sum_j |E_ij|`. A computed entry is off by `gamma(N) |L| |L|^T`, by the error of K, and by a
    rounding of its own size.
    """
    N = len(L)
    center, radius, trace = np.empty(N), np.full(N, N * TINY), 0.0
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for rows, columns, K, errors in gram:
            inner = slice(0, columns.stop)  # elsewhere one of the factors is zero
            E = L[rows, inner] @ L[columns, inner].T
            if rows.start == columns.start:
                trace += float(np.trace(E))
            E -= K
            E = given(E)  # off by the last terms of the radius
            if rows.start == columns.start:
                center[rows] = np.diag(E)
                np.fill_diagonal(E, 0.0)
            np.abs(E, out=E)
            E += errors
            radius[rows] += E.sum(axis=1)
            if rows.start != columns.start:
                radius[columns] += E.sum(axis=0)
        sums, around = np.zeros(N), np.zeros(N)
        for rows in blocks(N):
            sums[: rows.stop] += np.abs(L[rows, : rows.stop]).sum(axis=0)
        for rows in blocks(N):
            around[rows] = np.abs(L[rows, : rows.stop]) @ sums[: rows.stop]
        radius += gamma(N + 4) * around
        radius = up(radius, 2 * N + 16) + gamma(4) * np.abs(center)
        return Circles(center, up(radius, 2), up_float(trace, 2 * N + 16))


def _proved_height(M: np.ndarray, row_sum: float) -> float:
    """Upper bound of the largest eigenvalue of the symmetric floats M; see `largest_eigenvalue`."""
    r = len(M)
    diagonal = np.diag(M)
    # between the largest diagonal entry and the row sum lies the truth, and so does the estimate
    eigenvalues = _tried(scipy.linalg.eigvalsh, M)
    about = row_sum if eigenvalues is None else float(eigenvalues[-1])
    estimate = min(max(about, float(diagonal.max())), row_sum)
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


def _tried(routine: Callable[..., Any], M: np.ndarray) -> Any:
    """What LAPACK finds by the first driver that gives numbers, or None."""
    for driver in DRIVERS:
        try:
            parts = routine(M, driver=driver)
        except np.linalg.LinAlgError:
            continue
        if all(np.all(np.isfinite(part)) for part in parts):
            return parts
    return None


def frobenius(matrix: np.ndarray) -> float:
    """Upper bound of the Frobenius norm; what underflows is counted by the largest entry.

    Row after row, or by halves: either way at most as many roundings as rows and columns, and 64.
    """
    exponent, total = math.frexp(largest_entry(matrix))[1], 0.0
    for rows in blocks(len(matrix)):  # squares of numbers of size one; no second matrix
        total += float(np.square(scaled(matrix[rows], -exponent)).sum())
    total = up_float(total, 64 + sum(matrix.shape))
    return raised_power(up_float(np.sqrt(total), 4), exponent)


def symmetric_eigh(S: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors in plain floating point, or an `InputError` that names S."""
    unit, exponent = scaled_to_one(S)
    decomposition = _tried(scipy.linalg.eigh, unit) if np.all(np.isfinite(unit)) else None
    if decomposition is not None:
        return np.ldexp(decomposition[0], exponent), decomposition[1]
    raise InputError(
        f"{name}: LAPACK found no eigenvalues of this {S.shape} matrix; expected a symmetric one "
        "that can be factored: pass a factor A with S = A^T A instead"
    )


RIDGE = 1e-8
"""Columns of a factor that are shorter, beside the largest, are not divided by."""


def coupling_excess(
    factors: Sequence[np.ndarray], couplings: Sequence[np.ndarray], kappa: float, trace: float
) -> float:
    """Upper bound of `|sum_c C_c u_c|^2 - sum_c |A_c u_c|^2` over all `u_c = k(Z, .)` of functions
    of joint norm one; inf where the factors are not triangular, or nothing is found.

    Statement: for any H_c let `R_c = C_c - H_c A_c`, `|[H_1 ... H_m]|_2^2 <= 1 + eta` and
    `rho^2 >= trace(K) sum_c |R_c|_F^2`. If `A_c K A_c^T <= 1 + kappa`, the bound is
    `((1 + rho) (1 + eta) - 1) (1 + kappa) + (1 + rho) rho`.
    Reason: `|C u| <= |H| |A u| + |R u|`, and Young with the ratio rho (Statement 1.11). H is found
    by solving, and both residuals are computed.
    """
    if not all(is_triangular(A) for A in factors):
        return math.inf
    left, lost, whole = 0.0, 0.0, np.zeros((len(couplings[0]),) * 2)
    N, count = len(factors[0]), len(factors)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for A, C in zip(factors, couplings, strict=True):
            H = _solved(A, C)
            if H is None:
                return math.inf
            size = frobenius(H)
            R = frobenius(C - H @ A) * (1.0 + gamma(4)) + gamma(N + 4) * size * frobenius(A)
            R = up_float(R + TINY, 8)
            left = up_float(left + R * R, 8)
            whole += H @ H.T
            lost = up_float(lost + size * size, 4)
        eta = frobenius(whole - np.eye(len(whole))) + gamma(N + count + 4) * (lost + 1.0) + TINY
        rho = math.sqrt(up_float(left * trace, 8))
        eta, rho = up_float(eta, 8), up_float(rho, 4)
        excess = up_float((eta + rho + eta * rho) * (1.0 + kappa) + (1.0 + rho) * rho, 16)
    return excess if math.isfinite(excess) else math.inf


def _solved(A: np.ndarray, C: np.ndarray) -> np.ndarray | None:
    """About `C A^-1`, A lower triangular; columns of next to no length count as longer."""
    lengths = np.sqrt(np.square(A).sum(axis=0))
    ridge = RIDGE * float(lengths.max())
    if not ridge > 0.0:
        return None
    scaled = C * (lengths / (lengths * lengths + ridge * ridge))
    try:
        solution = scipy.linalg.solve_triangular(
            A / lengths, scaled.T, lower=True, trans=1, check_finite=False
        )
    except np.linalg.LinAlgError:
        return None
    return solution.T if np.all(np.isfinite(solution)) else None
