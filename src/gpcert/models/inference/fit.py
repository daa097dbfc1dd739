"""What every inference returns, triangular factors with the jitter they need, exact regression."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from scipy.linalg import get_lapack_funcs

from gpcert.errors import InputError
from gpcert.numerics.triangular import square, triangular_inverse


@dataclass(frozen=True, eq=False)
class EvidenceGradient:
    """The evidence's derivative in any hyper-parameter, as contractions with covariances.

    dense:   `dE = sum_ij square_ij dK_ij`, K the training covariance without observation noise;
             softmax: `square` is (m, N, N), one for each class's covariance, or (1, N, N) where
             the classes share one;
    sparse:  `dE = sum inducing * dK(Z, Z) + sum cross * dK(X, Z) + sum diagonal * d diag k(X, X)`;
    noise:   `dE / d log(noise variance)`, exact regression only.

    So no array of shape (N, N, parameters) is ever formed. A part that does not apply is None.
    """

    square: np.ndarray | None = None
    inducing: np.ndarray | None = None
    cross: np.ndarray | None = None
    diagonal: np.ndarray | None = None
    noise: float | None = None


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted latent posterior, `mean = k(x, Z) t`, `variance = k(x, x) - |A k(Z, x)|^2`.

    `evidence`: log marginal likelihood, its approximation or bound; `weights` t: (N,) or (m, N);
    `factor` A: (r, N) with `S = A^T A`; softmax: (m, r, N) with `S_cc' = A_c^T A_c'` (r is shared,
    so the outputs are coupled), or None where only the evidence was asked for; `coupling` C:
    (m, r, N) where many classes are coupled by it, `S_cc' = [c = c'] A_c^T A_c - C_c^T C_c'`;
    `jitter`: what was added to the covariance's diagonal (part of the model); `noise`: a number, or
    one per point, with `S = (K + jitter I + diag noise)^-1`, None where S has no such form;
    `start`: what the next call may take as its `start`.
    """

    weights: np.ndarray
    factor: np.ndarray | None
    coupling: np.ndarray | None = None
    _: KW_ONLY
    evidence: float
    gradient: EvidenceGradient = field(default_factory=EvidenceGradient)
    converged: bool = True
    iterations: int = 0
    jitter: float = 0.0
    noise: Any = None
    start: Any = None

    def light(self) -> Fit:
        """Without what only training needs: models are stored and sent."""
        return replace(self, gradient=EvidenceGradient(), start=None)


_potrf, _potrs, _trtrs = get_lapack_funcs(("potrf", "potrs", "trtrs"), dtype=np.float64)

JITTERS = (0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4)
"""Tried in turn, times the covariance's mean variance; 1e-4 is a tenth of a digit of it."""


def lower_factor(matrix: np.ndarray) -> np.ndarray:
    """L with `L L^T = matrix`, zero above the diagonal; `matrix` may be overwritten."""
    L, info = _potrf(matrix.T, lower=1, clean=1, overwrite_a=1)  # symmetric: .T is free
    if info != 0:
        raise np.linalg.LinAlgError(f"not positive definite at row {info}")
    return L


def solve(L: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`(L L^T)^-1 b`."""
    return _potrs(L, b, lower=1)[0]


def lower_solve(L: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`L^-1 b`."""
    return _trtrs(L, b, lower=1)[0]


def scaled_factor(K: np.ndarray, root: np.ndarray) -> np.ndarray:
    """L with `L L^T = I + W^1/2 K W^1/2`, root = W^1/2."""
    B = K * root
    B *= root[:, None]
    B[np.diag_indices(len(root))] += 1.0
    return lower_factor(B)


def checked_covariance(K: Any, shape: tuple[int, ...], name: str = "K") -> np.ndarray:
    """K as a finite float64 array of the expected shape."""
    K = np.asarray(K, dtype=np.float64)
    if K.shape != shape:
        raise InputError(f"{name}: expected shape {shape}, got {K.shape}")
    if not np.isfinite(K).all():
        raise InputError(f"{name}: expected finite numbers, got NaN or infinity; check the kernel")
    return K


_Computed = TypeVar("_Computed")


def with_jitter(
    K: np.ndarray,
    compute: Callable[[np.ndarray, float], _Computed],
    jitters: tuple[float, ...] = JITTERS,
    name: str = "K",
) -> _Computed:
    """`compute(K + jitter I, jitter)` with the smallest of the jitters whose factors exist.

    The jitter is recorded in the result: it is part of the model, not a secret of the solver.
    """
    size = float(np.mean(np.diagonal(K, axis1=-2, axis2=-1)))
    for relative in jitters:
        jitter = relative * size
        try:
            return compute(K + jitter * np.eye(K.shape[-1]) if jitter else K, jitter)
        except np.linalg.LinAlgError:
            continue
    raise InputError(
        f"{name}: expected a positive semi-definite covariance, but its factorisation fails even "
        f"with jitter {jitters[-1] * size:.3g}; add noise to the kernel or remove duplicated points"
    )


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
    y = np.asarray(y, dtype=np.float64)
    targets = np.atleast_2d(y)
    m, N = targets.shape

    def fit(covariance: np.ndarray, jitter: float) -> Fit:
        C = covariance.copy()
        C[np.diag_indices(N)] += noise
        L = lower_factor(C)
        A = triangular_inverse(L)
        white = targets @ A.T
        weights = white @ A
        log_determinant = 2.0 * float(np.log(np.diag(L)).sum())
        size = float(np.square(white).sum())
        W = 0.5 * (weights.T @ weights - m * square(A))
        return Fit(
            weights.reshape(y.shape),
            A,
            evidence=-0.5 * (size + m * log_determinant + m * N * math.log(2.0 * math.pi)),
            gradient=EvidenceGradient(square=W, noise=noise * float(np.trace(W))),
            jitter=jitter,
            noise=noise,
        )

    return with_jitter(checked_covariance(K, (N, N)), fit)
