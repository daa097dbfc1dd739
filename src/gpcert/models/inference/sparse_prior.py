"""Priors of rank m plus a diagonal, in coordinates in which the inducing values are white."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpcert.errors import InputError
from gpcert.models.inference.cholesky import checked_covariance, lower_factor, lower_solve

KINDS = ("fic", "dtc", "var")

JITTERS = (1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4)
"""Tried in turn, times the mean of diag K_uu. Never 0: the gradient contracts with K_uu^-1 from
both sides, terms that cancel and whose rounding a factorisation that barely works would show."""


@dataclass(frozen=True, eq=False)
class SparsePrior:
    """`f = a + e`: `a = V^T w`, `w ~ N(0, I)` of length m, and independent `e_i ~ N(0, own_i)`.

    `L L^T = K_uu + jitter I` and `V = L^-1 K_uf` (m, N), so `cov(a) = V^T V = Q`; `explained` is
    diag Q, `residual` is `k(x, x) - diag Q >= 0`. FIC has `own = residual`, DTC and VAR have 0.
    """

    kind: str
    L: np.ndarray
    V: np.ndarray
    explained: np.ndarray
    residual: np.ndarray
    jitter: float
    relative_jitter: float

    @staticmethod
    def of(kind: str, K_uu: Any, K_fu: Any, k_diag: Any) -> SparsePrior:
        """From K(Z, Z), K(X, Z) and the diagonal k(x, x) at X."""
        if kind not in KINDS:
            raise InputError(f"kind: expected one of {', '.join(KINDS)}, got {kind!r}")
        K_uu, K_fu, k_diag = _checked(K_uu, K_fu, k_diag)
        L, jitter, relative = _factored(K_uu)
        V = lower_solve(L, K_fu.T)
        explained = np.einsum("ij,ij->j", V, V)
        residual = np.maximum(k_diag - explained, 0.0)  # below 0 by rounding only
        return SparsePrior(kind, L, V, explained, residual, jitter, relative)

    @property
    def own(self) -> np.ndarray:
        """Variances of e."""
        return self.residual if self.kind == "fic" else np.zeros_like(self.residual)


def _checked(K_uu: Any, K_fu: Any, k_diag: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    K_uu, K_fu, k_diag = (np.asarray(K, dtype=np.float64) for K in (K_uu, K_fu, k_diag))
    N, m = K_fu.shape if K_fu.ndim == 2 else (len(k_diag), len(K_uu))
    return (
        checked_covariance(K_uu, (m, m), "K_uu"),
        checked_covariance(K_fu, (N, m), "K_fu"),
        checked_covariance(k_diag, (N,), "k_diag"),
    )


def _factored(K_uu: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Factor of K_uu with the smallest jitter that works, the jitter, and that over the mean."""
    size = float(np.diag(K_uu).mean())
    for relative in JITTERS:
        jitter = relative * size
        try:
            return lower_factor(K_uu + jitter * np.eye(len(K_uu))), jitter, relative
        except np.linalg.LinAlgError:
            continue
    raise InputError(
        f"K_uu: expected a positive semi-definite covariance of the inducing points, but its "
        f"factorisation fails even with jitter {JITTERS[-1] * size:.3g}; check the kernel"
    )
