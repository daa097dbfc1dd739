"""Sparse expectation propagation for two classes: FIC, DTC and VAR, with the derivatives of its
evidence in the covariances, all in O(N m^2).

Its Gaussians are priors of rank m plus a diagonal, and posteriors for given sites, in coordinates
in which the inducing values are white.

A function of `Q = K_fu K_uu^-1 K_uf` with the symmetric derivative G, `dE = sum_ij G_ij dQ_ij`, has

    dE = sum 2 (G P) * dK_fu - sum (P^T G P) * dK_uu,    P = K_fu K_uu^-1 = V^T L^-1.

G is N x N and never formed: what is needed is `G V^T` (N, m) and `V G V^T` (m, m).

EP's evidence is stationary in its sites; where it is not (VAR), `site_response` says how they
follow the prior. For `J = sum_i c_i precision_i` its multipliers (w1, w2) say what a change of the
marginals at fixed sites does to J in the end: `dJ = w1 . d mean + w2 . d variance`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import LinearOperator, gmres
from sklearn.exceptions import ConvergenceWarning

from gpcert.errors import InputError
from gpcert.models.inference import fit as fitting
from gpcert.models.inference.ep import Sweep, propagate
from gpcert.models.inference.fit import EvidenceGradient, Fit
from gpcert.models.links import Link
from gpcert.numerics.rounding import U

TOLERANCE = 1e-8

KINDS = ("fic", "dtc", "var")

JITTERS = (1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4)
"""Tried in turn, times the mean of diag K_uu. Never 0: the gradient contracts with K_uu^-1 from
both sides, terms that cancel and whose rounding a factorisation that barely works would show."""

SMALLEST_VARIANCE = 1e-30
"""Of a cavity for which moments are asked: a point that no inducing point explains has 0."""

_STEP = 0.02
"""Of the differences that give the third and fourth derivatives of log Z, in its own length-scale
`sqrt(1 + variance)`: their errors are of order step^4 = 2e-7, and 1e-11 / step^2 for moments by
quadrature."""

_TOLERANCE = 1e-7
_PRODUCTS = 100


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
        K_uu, K_fu, k_diag = (np.asarray(K, dtype=np.float64) for K in (K_uu, K_fu, k_diag))
        N, m = K_fu.shape if K_fu.ndim == 2 else (len(k_diag), len(K_uu))
        K_uu = fitting.checked_covariance(K_uu, (m, m), "K_uu")
        K_fu = fitting.checked_covariance(K_fu, (N, m), "K_fu")
        k_diag = fitting.checked_covariance(k_diag, (N,), "k_diag")

        def factored(K: np.ndarray, jitter: float) -> tuple[np.ndarray, float]:
            return fitting.lower_factor(K), jitter

        L, jitter = fitting.with_jitter(K_uu, factored, JITTERS, "K_uu")
        V = fitting.lower_solve(L, K_fu.T)
        explained = np.einsum("ij,ij->j", V, V)
        residual = np.maximum(k_diag - explained, 0.0)  # below 0 by rounding only
        relative = jitter / float(np.diag(K_uu).mean())
        return SparsePrior(kind, L, V, explained, residual, jitter, relative)

    @property
    def independent(self) -> np.ndarray:
        """Variances of e."""
        return self.residual if self.kind == "fic" else np.zeros_like(self.residual)


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
        R = fitting.lower_factor(B.copy())
        solved = fitting.lower_solve(R, V)
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

    @property
    def half_log_determinant(self) -> float:
        """`log|B| / 2`."""
        return float(np.log(np.diag(self.R)).sum())

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
        solution = scipy.linalg.solve_triangular(L, both, lower=True, trans=1)
        return solution[:, 0], solution[:, 1:].T


def _weighted_gram(V: np.ndarray, precision: np.ndarray) -> np.ndarray:
    """`V diag(precision) V^T` for precision >= 0, at half the cost of a product."""
    scaled = V * np.sqrt(precision)
    syrk: Any = scipy.linalg.get_blas_funcs("syrk", (scaled,))
    lower = syrk(1.0, scaled, lower=1)
    return lower + np.tril(lower, -1).T


def sparse_ep(
    K_uu: Any,
    K_fu: Any,
    k_diag: Any,
    y: Any,
    link: Link,
    kind: str,
    start: Any = None,
    *,
    max_sweeps: int = 200,
) -> Fit:
    """EP for y in {-1, +1} (N,) with m inducing points Z: K(Z, Z), K(X, Z), diagonal k(x, x).

    With `Q = K_fu (K_uu + jitter)^-1 K_uf`, the latent values at X have the prior covariance

        fic:  Q + diag(k - Q), what EP maximises is its approximation E of the log evidence
              (generalised FITC; Naish-Guzman & Holden 2008);
        dtc:  Q, with the same E (deterministic training conditional);
        var:  Q, with `E - sum_i precision_i (k_ii - Q_ii) / 2` at EP's own sites: Titsias's (2009)
              trace term for the Gaussian likelihood that the sites stand for, as in GPstuff. It
              is a bound of the log evidence for a Gaussian likelihood only.

    All three predict with k(x, x) - Q(x, x) added to the variance (GPstuff's DTC and VAR subtract
    a term there that should be added). The sites are those of `SparsePosterior`, updated all at
    once; a step is damped where the mismatch of the moments has grown. Converged: tilted and
    Gaussian means differ by at most 1e-8 standard deviations, variances by 1e-8 of themselves, and
    the evidence has settled. `start`: sites of a similar fit, (2, N); only the number of sweeps
    depends on it. The weights and the factor of the result belong to Z.
    """
    prior = SparsePrior.of(kind, K_uu, K_fu, k_diag)
    y = np.asarray(y, dtype=np.float64)
    if y.shape != prior.residual.shape:
        raise InputError(f"y: expected {len(prior.residual)} targets, got shape {y.shape}")

    def at(sites: np.ndarray) -> Sweep:
        # the link averaged over e is a likelihood of a_i with the same Z, slope and curvature; for
        # FIC the evidence is that of f ~ N(0, Q + own): `|I + T_f (Q + own)|` factors
        state = SparsePosterior.of(prior, sites)
        variance = np.maximum(state.cavity_variance + prior.independent, SMALLEST_VARIANCE)
        return Sweep.of(
            sites, state, link.moments(y, state.cavity_mean, variance), prior.independent
        )

    state, outcome = propagate(f"sparse EP ({kind})", len(y), start, at, TOLERANCE, max_sweeps)
    if kind == "var":
        outcome["evidence"] -= 0.5 * float(state.precision @ prior.residual)
    gradient = evidence_gradient(state, y, link)
    return Fit(*state.canonical(), gradient=gradient, jitter=prior.jitter, **outcome)


def site_response(
    state: SparsePosterior, y: np.ndarray, link: Link, c: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(w1, w2) for `J = c . precision`, priors without an own part.

    Globally `d mean = Sigma nu` and `d variance = -(Sigma * Sigma) d precision`, `Sigma = V^T B^-1
    V`; the adjoint `w = local^T (c, 0) + local^T global^T w` is solved by GMRES, whose products
    cost O(N m^2) each.
    """
    transposed, N, solved = _local(state, y, link), len(y), state.solved
    right = transposed(c, np.zeros(N))

    def product(flat: np.ndarray) -> np.ndarray:
        w = flat.reshape(2, N)
        on_nu = solved.T @ (solved @ w[0])
        gram = (solved * w[1]) @ solved.T
        on_precision = -np.einsum("ij,ij->j", solved, gram @ solved)
        return (w - transposed(on_precision, on_nu)).ravel()

    operator = LinearOperator((2 * N, 2 * N), matvec=product, dtype=np.float64)  # type: ignore
    solution, info = gmres(operator, right.ravel(), rtol=_TOLERANCE, restart=_PRODUCTS, maxiter=1)
    if info != 0:
        left = np.linalg.norm(right.ravel() - product(solution)) / np.linalg.norm(right)
        warnings.warn(
            f"sparse EP (var): the response of the sites was solved to {left:.3g} only (tolerance "
            f"{_TOLERANCE:.3g}) with {_PRODUCTS} products; the gradient is as inexact",
            ConvergenceWarning,
            stacklevel=4,
        )
    w1, w2 = solution.reshape(2, N)
    return w1, w2


def _local(
    state: SparsePosterior, y: np.ndarray, link: Link
) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Multipliers of a point's own (mean, variance) from those of (precision, nu), with
    `nu = d shift - mean d precision`.

    At a fixed point of EP, with l3, l4 the derivatives of log Z in the cavity's mean m, c its
    variance, and `g = growth = 1 + p c`:

        d precision = -l3 g^3 d mean + rho dc,   rho = g^2 (c g l3^2 - l4) / 2,
        nu = l3 g dc / 2,                        dc = g^2 d variance + c^2 d precision.

    Reason: `precision = kappa / (1 - c kappa)`, `kappa = -l2`, `shift = slope g + m precision`,
    the variance acts by the heat equation, `d l_n / dc = (l_{n+2} + D^n l1^2) / 2`, and
    `dm = g d mean - slope dc - c nu`; the terms in the slope cancel.
    """
    third, fourth = _higher(state, y, link)
    g, c = state.growth, state.cavity_variance
    rho = 0.5 * g * g * (c * g * third * third - fourth)
    left, slope = 1.0 - rho * c * c, 0.5 * third * g
    of_mean, of_variance, c2, g2 = -third * g**3 / left, rho * g * g / left, c * c, g * g

    def transposed(on_precision: np.ndarray, on_nu: np.ndarray) -> np.ndarray:
        total = on_precision + slope * c2 * on_nu
        return np.stack([of_mean * total, of_variance * total + slope * g2 * on_nu])

    return transposed


def _higher(state: SparsePosterior, y: np.ndarray, link: Link) -> tuple[np.ndarray, np.ndarray]:
    """Third and fourth derivative of log Z in m: five-point differences of its curvature."""
    m, c = state.cavity_mean, np.maximum(state.cavity_variance, SMALLEST_VARIANCE)
    h = _STEP * np.sqrt(1.0 + c)
    a2, a1, a0, b1, b2 = (-link.moments(y, m + j * h, c).curvature for j in (-2, -1, 0, 1, 2))
    third = (8.0 * (b1 - a1) - (b2 - a2)) / (12.0 * h)
    fourth = (16.0 * (a1 + b1) - (a2 + b2) - 30.0 * a0) / (12.0 * h * h)
    return third, fourth


def evidence_gradient(state: SparsePosterior, y: np.ndarray, link: Link) -> EvidenceGradient:
    """Of the evidence that `sparse_ep` names for each kind.

    EP's evidence is stationary in the sites (Seeger 2005), so only its explicit dependence counts:
    `G = (weights weights^T - M) / 2`, `M = T - T V^T B^-1 V T`, as if `a ~ N(0, Q)` were a dense
    prior; FIC: the diagonal of the prior is k(x, x), so that of G goes to `diagonal`. The trace
    term of VAR is not stationary: the sites' response is added. Last, back from whitened
    coordinates; the jitter moves with the mean of diag K_uu.
    """
    N, L = len(y), state.prior.L
    G = _stationary(state)
    diagonal = np.zeros_like(state.mean)
    if state.prior.kind == "fic":
        # M_ii = precision (1 - precision variance)
        diagonal = 0.5 * (state.weights**2 - state.precision / state.growth)
        G = G + _diagonal(state, -diagonal)
    elif state.prior.kind == "var":
        diagonal = -0.5 * state.precision
        G = G + _diagonal(state, -diagonal) + _responding(state, y, link)
    cross = 2.0 * scipy.linalg.solve_triangular(L, G[:N].T, lower=True, trans=1).T
    half = scipy.linalg.solve_triangular(L, G[N:], lower=True, trans=1)
    inducing = -scipy.linalg.solve_triangular(L, half.T, lower=True, trans=1)
    m = len(inducing)
    inducing[np.diag_indices(m)] += state.prior.relative_jitter * np.trace(inducing) / m
    return EvidenceGradient(inducing=inducing, cross=cross, diagonal=diagonal)


def _stationary(state: SparsePosterior) -> np.ndarray:
    """(N + m, m): the rows of `G V^T`, then those of `V G V^T`, like the two below.

    `V weights = center` and `M V^T = T V^T B^-1`, so V M V^T = I - B^-1.
    """
    inverse = _inverse(state)
    rows = np.outer(state.weights, state.center) - _solved_rows(state) * state.precision[:, None]
    square = np.outer(state.center, state.center) - np.eye(len(inverse)) + inverse
    return 0.5 * np.vstack([rows, square])


def _diagonal(state: SparsePosterior, values: np.ndarray) -> np.ndarray:
    rows = state.prior.V.T * values[:, None]
    return np.vstack([rows, state.prior.V @ rows])


def _responding(state: SparsePosterior, y: np.ndarray, link: Link) -> np.ndarray:
    """The trace term's derivative through the sites: `G = sym(r weights^T) + H diag(w2) H^T`.

    With the multipliers w1, w2 of the posterior's means and variances,
    `d mean = H^T dQ weights` and `d variance = diag(H^T dQ H)` at fixed sites,
    `H = I - T Sigma`, `Sigma = V^T B^-1 V`; `r = H w1` and `V H = B^-1 V`.
    """
    w1, w2 = site_response(state, y, link, -0.5 * state.prior.residual)
    V, solved, inverse = state.prior.V, _solved_rows(state), _inverse(state)
    moved = inverse @ (V @ w1)  # V r
    r = w1 - state.precision * (V.T @ moved)
    scaled = solved * w2[:, None]
    middle = V @ scaled  # V diag(w2) V^T B^-1
    rows = 0.5 * (np.outer(r, state.center) + np.outer(state.weights, moved))
    rows += scaled - (solved @ middle) * state.precision[:, None]
    outer = np.outer(moved, state.center)
    return np.vstack([rows, 0.5 * (outer + outer.T) + inverse @ middle])


def _solved_rows(state: SparsePosterior) -> np.ndarray:
    """`V^T B^-1` (N, m)."""
    return scipy.linalg.solve_triangular(state.R, state.solved, lower=True, trans=1).T


def _inverse(state: SparsePosterior) -> np.ndarray:
    """`B^-1` (m, m)."""
    return scipy.linalg.cho_solve((state.R, True), np.eye(len(state.R)))
