"""What couples many classes: how far the joint posterior covariance can exceed the prior's.

Proofs: docs/mathematics.md, statement 1.11.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy.linalg

from gpcert.rounding import TINY, gamma, up_float
from gpcert.spectral import frobenius
from gpcert.triangular import is_triangular

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
    Reason: `|C u| <= |H| |A u| + |R u|`, and Young with the ratio rho. Of C made of an orthonormal
    basis, H is that basis; it is found by solving, and both residuals are computed.
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
        found = up_float((eta + rho + eta * rho) * (1.0 + kappa) + (1.0 + rho) * rho, 16)
    return found if math.isfinite(found) else math.inf


def _solved(A: np.ndarray, C: np.ndarray) -> np.ndarray | None:
    """About `C A^-1`, A lower triangular; columns of next to no length count as longer."""
    lengths = np.sqrt(np.square(A).sum(axis=0))
    ridge = RIDGE * float(lengths.max())
    if not ridge > 0.0:
        return None
    scaled = C * (lengths / (lengths * lengths + ridge * ridge))
    try:
        found = scipy.linalg.solve_triangular(
            A / lengths, scaled.T, lower=True, trans=1, check_finite=False
        )
    except np.linalg.LinAlgError:
        return None
    return found.T if np.all(np.isfinite(found)) else None
