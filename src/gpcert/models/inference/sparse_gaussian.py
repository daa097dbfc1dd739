"""The Gaussians of sparse EP: priors of rank m plus a diagonal, and posteriors for given sites.

Coordinates are those in which the inducing values are white.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from gpcert.errors import InputError
from gpcert.models.inference.cholesky import checked_covariance, lower_factor, lower_solve
from gpcert.models.inference.ep import site_evidence
from gpcert.models.links import Link, Moments
from gpcert.rounding import U

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


SMALLEST_VARIANCE = 1e-30
"""Of a cavity for which moments are asked: a point that no inducing point explains has 0."""


@dataclass(frozen=True, eq=False)
class SparsePosterior:
    """Of w, where `a = V^T w`, given sites `exp(shift_i a_i - precision_i a_i^2 / 2)`.

    With T their precisions: `cov(w) = B^-1`, `B = I + V T V^T = R R^T` (m, m), eigenvalues at
    least 1, and `mean(w) = B^-1 V shift` = `center`. `weights = shift - T mean` is `Q^-1 mean` on
    the range of Q. `growth = 1 / (1 - precision * variance) = 1 + precision * cavity_variance`.
    """

    prior: SparsePrior
    precision: np.ndarray
    shift: np.ndarray
    B: np.ndarray
    R: np.ndarray
    solved: np.ndarray
    center: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    growth: np.ndarray

    @staticmethod
    def of(prior: SparsePrior, sites: np.ndarray) -> SparsePosterior:
        """O(N m^2): one symmetric product, one triangular solve."""
        precision, shift = sites
        V = prior.V
        B = _weighted_gram(V, precision)
        B[np.diag_indices(len(B))] += 1.0
        R = lower_factor(B.copy())
        solved = lower_solve(R, V)
        center = scipy.linalg.solve_triangular(R, solved @ shift, lower=True, trans=1)
        variance = np.einsum("ij,ij->j", solved, solved)
        # a cavity has at most the prior's variance: that bounds what rounding makes of 1 - p v
        left = np.maximum(1.0 - precision * variance, 1.0 / (1.0 + precision * prior.explained))
        return SparsePosterior(
            prior, precision, shift, B, R, solved, center, V.T @ center, variance, 1.0 / left
        )

    @property
    def weights(self) -> np.ndarray:
        """(N,): `shift - precision * mean`."""
        return self.shift - self.precision * self.mean

    @property
    def cavity_variance(self) -> np.ndarray:
        """Variance of a_i with its own site taken out."""
        return self.variance * self.growth

    @property
    def cavity_mean(self) -> np.ndarray:
        """Mean of a_i with its own site taken out."""
        return self.mean - self.cavity_variance * self.weights

    def moments(self, y: np.ndarray, link: Link) -> Moments:
        """Of the tilted laws of f = a + e."""
        variance = np.maximum(self.cavity_variance + self.prior.own, SMALLEST_VARIANCE)
        return link.moments(y, self.cavity_mean, variance)

    def target(self, moments: Moments) -> np.ndarray:
        """Sites (2, N) that give a_i the tilted mean and variance.

        `moments` are those of `f_i = a_i + e_i`. The link averaged over e is a likelihood of a_i
        with the same Z, slope and curvature, and `1 - c curvature = shrinkage + own * curvature`
        for the variance c of a_i's cavity: no cancellation.
        """
        kept = moments.shrinkage + self.prior.own * moments.curvature
        shift = (moments.slope + self.cavity_mean * moments.curvature) / kept
        return np.stack([moments.curvature / kept, shift])

    def mismatch(self, moments: Moments) -> float:
        """Largest difference of tilted and Gaussian marginals, in the latter's own units."""
        kept = moments.shrinkage + self.prior.own * moments.curvature
        c = self.cavity_variance
        of_mean = np.sqrt(c * self.growth) * np.abs(self.weights - moments.slope)
        of_variance = np.abs(kept * self.growth - 1.0)
        return float(np.maximum(of_mean, of_variance).max())

    @property
    def half_log_determinant(self) -> float:
        """`log|B| / 2`."""
        return float(np.log(np.diag(self.R)).sum())

    def evidence(self, moments: Moments) -> float:
        """For a ~ N(0, Q) and the link averaged over e; for FIC it equals that of
        f ~ N(0, Q + own) with sites on f: `|I + T_f (Q + own)|` factors likewise.
        """
        sites = np.stack([self.precision, self.shift])
        return site_evidence(sites, self, self.growth, moments.log_z)

    def canonical(self) -> tuple[np.ndarray, np.ndarray]:
        """t (m,) and A (r, m): at a new x, `mean = k(x, Z) t`, `variance = k - |A k(Z, x)|^2`.

        As `E[f(x) | w] = k(x, Z) L^-T w` with variance `k(x, x) - |L^-1 k(Z, x)|^2`:

            t = L^-T mean(w),   S = L^-T (I - B^-1) L^-1,

        positive semi-definite since B >= I. With `B - I = U diag(e) U^T`, e >= 0,
        `A = diag(sqrt(e / (1 + e))) U^T L^-1`: no difference is formed. Eigenvalues that are
        rounding of the largest are left out: r <= m.
        """
        L = self.prior.L
        e, vectors = scipy.linalg.eigh(self.B - np.eye(len(L)))
        known = e > len(e) * U * max(e[-1], 0.0)
        rows = vectors[:, known] * np.sqrt(e[known] / (1.0 + e[known]))
        both = np.column_stack([self.center, rows])
        found = scipy.linalg.solve_triangular(L, both, lower=True, trans=1)
        return found[:, 0], found[:, 1:].T


def _weighted_gram(V: np.ndarray, precision: np.ndarray) -> np.ndarray:
    """`V diag(precision) V^T` for precision >= 0, at half the cost of a product."""
    scaled = V * np.sqrt(precision)
    syrk: Any = scipy.linalg.get_blas_funcs("syrk", (scaled,))
    lower = syrk(1.0, scaled, lower=1)
    return lower + np.tril(lower, -1).T
