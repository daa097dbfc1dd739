"""Laplace's approximation for two classes (GPML Alg. 3.1, 3.2 and 5.1), any log-concave link."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpcert.models.inference.cholesky import checked_covariance, scaled_factor, solve, with_jitter
from gpcert.models.inference.newton import Mode, Problem, find_mode
from gpcert.models.inference.record import EvidenceGradient, Fit
from gpcert.models.links import Derivatives, Link
from gpcert.triangular import square, triangular_inverse


def laplace(K: Any, y: Any, link: Link, start: Any = None, *, max_iterations: int = 100) -> Fit:
    """Gaussian at the mode of `log p(y | f) - f^T K^-1 f / 2`, y in {-1, +1}.

    With `W = -d^2 log p / df^2` at the mode and `B = I + W^1/2 K W^1/2 = L L^T` (eigenvalues at
    least 1, whatever K is):

        t = grad log p(y | f),   A = L^-1 W^1/2,   E = log p(y | f) - t^T K t / 2 - log|B| / 2.

    Newton's steps are halved until the objective does not decrease. `start`: weights of a fit to a
    similar K; only the number of steps depends on it.
    """
    y = np.asarray(y, dtype=np.float64)
    K = checked_covariance(K, (len(y), len(y)))

    def fit(covariance: np.ndarray) -> Fit:
        mode = find_mode(_problem(covariance, y, link), start, max_iterations)
        return _fit_at_mode(covariance, mode)

    return with_jitter(K, fit)


def _problem(K: np.ndarray, y: np.ndarray, link: Link) -> Problem:
    variances = np.diag(K)

    def step(local: Derivatives, gap: np.ndarray, steps: int) -> np.ndarray:
        """`gap - W^1/2 B^-1 W^1/2 K gap` (GPML Alg. 3.1, lines 5-7)."""
        root = np.sqrt(local.curvature)
        return gap - root * solve(scaled_factor(K, root), root * (K @ gap))

    return Problem(
        "Laplace",
        variances,
        times=lambda a: K @ a,
        log_likelihood=lambda f: link.log_likelihood(y, f),
        at=lambda f: link.derivatives(y, f),
        gradient=lambda local: local.first,
        step=step,
        rounding=lambda local, a: float((local.curvature * variances).max() * np.abs(a).sum()),
        size=lambda local: 1.0 + float(np.abs(local.first).max()),
    )


def _fit_at_mode(K: np.ndarray, mode: Mode) -> Fit:
    """Evidence, posterior and gradient, with `R = W^1/2 B^-1 W^1/2 = A^T A` (GPML 5.20-5.24).

    The mode moves with K: `df = (I - K R) dK t`, and `dE/df_i = Sigma_ii d^3_i / 2` with
    `W_ii Sigma_ii = 1 - (B^-1)_ii`, so this part adds `u t^T`, `u = (I - R K) dE/df`, symmetrised.
    """
    curvature, t = mode.local.curvature, mode.local.first
    root = np.sqrt(curvature)
    L = scaled_factor(K, root)
    inverse = triangular_inverse(L)
    half_log_determinant = float(np.log(np.diag(L)).sum())
    explained = 1.0 - np.einsum("ij,ij->j", inverse, inverse)
    slope = np.zeros_like(curvature)
    np.divide(mode.local.third, curvature, out=slope, where=curvature > 0)
    slope *= 0.5 * explained

    inverse *= root
    R = square(inverse)
    u = slope - R @ (K @ slope)
    moved = np.outer(u + 0.5 * t, t)
    W = 0.5 * (moved + moved.T - R)
    return Fit(
        evidence=mode.objective - half_log_determinant,
        weights=t,
        factor=inverse,
        gradient=EvidenceGradient(square=W),
        converged=mode.converged,
        iterations=mode.steps,
        start=t,
    )
