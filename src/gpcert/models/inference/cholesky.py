"""Triangular factors, in place and without copies; jitter where they fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import get_lapack_funcs

from gpcert.errors import InputError
from gpcert.models.inference.record import Fit

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


def with_jitter(K: np.ndarray, fit: Callable[[np.ndarray], Fit]) -> Fit:
    """`fit(K)`, or `fit(K + jitter I)` with the smallest of `JITTERS` whose factors exist.

    The jitter is recorded in the result: it is part of the model, not a secret of the solver.
    """
    size = float(np.mean(np.diagonal(K, axis1=-2, axis2=-1)))
    for relative in JITTERS:
        jitter = relative * size
        try:
            if jitter == 0.0:
                return fit(K)
            return replace(fit(K + jitter * np.eye(K.shape[-1])), jitter=jitter)
        except np.linalg.LinAlgError:
            continue
    raise InputError(
        f"K: expected a positive semi-definite covariance, but its factorisation fails even with "
        f"jitter {JITTERS[-1] * size:.3g}; add noise to the kernel or remove duplicated points"
    )
