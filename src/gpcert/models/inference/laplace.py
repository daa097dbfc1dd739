"""Laplace's approximation for two classes (GPML Alg. 3.1, 3.2 and 5.1), any log-concave link."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gpcert.models.inference.cholesky import (
    checked_covariance,
    lower_factor,
    solve,
    with_jitter,
)
from gpcert.models.inference.record import EvidenceGradient, Fit
from gpcert.models.links import Derivatives, Link
from gpcert.rounding import U
from gpcert.triangular import square, triangular_inverse

MODE_TOLERANCE = 1e-10
"""On `|a - grad log p(y | K a)|`, relative to the gradient. Newton is quadratic: the gap is mostly
far smaller when it passes the test."""

_HALVINGS = 40


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
        return _laplace(covariance, y, link, start, max_iterations)

    return with_jitter(K, fit)


@dataclass(frozen=True, eq=False)
class _Mode:
    """Where Newton stopped: the objective and the link's derivatives there."""

    objective: float
    derivatives: Derivatives
    steps: int
    converged: bool


def _laplace(K: np.ndarray, y: np.ndarray, link: Link, start: Any, max_iterations: int) -> Fit:
    a, f = _first_iterate(K, y, link, start)
    largest_variance = float(np.diag(K).max())
    steps = 0
    while True:
        objective, derivatives = _objective(a, f, y, link), link.derivatives(y, f)
        gap, floor = _mode_gap(K, a, derivatives)
        if gap <= floor or steps == max_iterations:
            break
        step = _newton_step(K, derivatives.first - a, derivatives.curvature)
        # rounding of a^T K a: a decrease below it means nothing
        size = float(np.abs(a).sum() + np.abs(step).sum())
        slack = 4.0 * U * (abs(objective) + largest_variance * size**2)
        a = _search(a, f, step, K @ step, y, link, objective - slack)
        f = K @ a
        steps += 1
    if gap > floor:
        warnings.warn(
            f"Laplace: Newton stopped after {steps} steps with |a - grad log p| = {gap:.3g} "
            f"(tolerance {floor:.3g})",
            ConvergenceWarning,
            stacklevel=4,
        )
    return _fit_at_mode(K, _Mode(objective, derivatives, steps, converged=gap <= floor))


def _first_iterate(
    K: np.ndarray, y: np.ndarray, link: Link, start: Any
) -> tuple[np.ndarray, np.ndarray]:
    """The start, if its objective beats that of f = 0."""
    zero = np.zeros(len(y))
    if start is None or np.shape(start) != y.shape:
        return zero, zero
    a = np.array(start, dtype=np.float64)
    f = K @ a
    return (a, f) if _objective(a, f, y, link) > _objective(zero, zero, y, link) else (zero, zero)


def _objective(a: np.ndarray, f: np.ndarray, y: np.ndarray, link: Link) -> float:
    return float(link.log_likelihood(y, f).sum() - 0.5 * (a @ f))


def _mode_gap(K: np.ndarray, a: np.ndarray, derivatives: Derivatives) -> tuple[float, float]:
    """Residual of the mode's equation, and what is asked of it: tolerance plus rounding of K a."""
    size = 1.0 + float(np.abs(derivatives.first).max())
    rounding = float((derivatives.curvature * np.diag(K)).max()) * float(np.abs(a).sum())
    gap = float(np.abs(a - derivatives.first).max())
    return gap, MODE_TOLERANCE * size + 4.0 * U * rounding


def _factor(K: np.ndarray, root: np.ndarray) -> np.ndarray:
    """L with `L L^T = I + W^1/2 K W^1/2`, root = W^1/2."""
    B = K * root
    B *= root[:, None]
    B[np.diag_indices(len(root))] += 1.0
    return lower_factor(B)


def _newton_step(K: np.ndarray, gap: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    """Newton's step in `a = K^-1 f` (GPML Alg. 3.1, lines 5-7) from `gap = grad log p - a`:

    `(I + W K)^-1 gap = gap - W^1/2 B^-1 W^1/2 K gap`. Its rounding error is relative to the gap,
    so that the iteration corrects it; the book's form for the next a itself does not.
    """
    root = np.sqrt(curvature)
    return gap - root * solve(_factor(K, root), root * (K @ gap))


def _search(
    a: np.ndarray,
    f: np.ndarray,
    da: np.ndarray,
    df: np.ndarray,
    y: np.ndarray,
    link: Link,
    least: float,
) -> np.ndarray:
    """a after the longest of the steps 1, 1/2, 1/4, ... whose objective is at least `least`."""
    length = 1.0
    for _ in range(_HALVINGS):
        if _objective(a + length * da, f + length * df, y, link) >= least:
            return a + length * da
        length *= 0.5
    return a


def _fit_at_mode(K: np.ndarray, mode: _Mode) -> Fit:
    """Evidence, posterior and gradient, with `R = W^1/2 B^-1 W^1/2 = A^T A` (GPML 5.20-5.24).

    The mode moves with K: `df = (I - K R) dK t`, and `dE/df_i = Sigma_ii d^3_i / 2` with
    `W_ii Sigma_ii = 1 - (B^-1)_ii`, so this part adds `u t^T`, `u = (I - R K) dE/df`, symmetrised.
    """
    curvature, t = mode.derivatives.curvature, mode.derivatives.first
    root = np.sqrt(curvature)
    L = _factor(K, root)
    inverse = triangular_inverse(L)
    half_log_determinant = float(np.log(np.diag(L)).sum())
    explained = 1.0 - np.einsum("ij,ij->j", inverse, inverse)
    slope = np.zeros_like(curvature)
    np.divide(mode.derivatives.third, curvature, out=slope, where=curvature > 0)
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
