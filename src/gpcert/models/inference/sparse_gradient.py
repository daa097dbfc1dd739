"""Derivatives of sparse EP's evidence in the covariances, in O(N m^2).

A function of `Q = K_fu K_uu^-1 K_uf` with the symmetric derivative G, `dE = sum_ij G_ij dQ_ij`, has

    dE = sum 2 (G P) * dK_fu - sum (P^T G P) * dK_uu,    P = K_fu K_uu^-1 = V^T L^-1.

G is N x N and never formed: what is needed is `G V^T` (N, m) and `V G V^T` (m, m).

EP's evidence is stationary in its sites; where it is not (VAR), `site_response` says how they
follow the prior. For `J = sum_i c_i precision_i` its multipliers (w1, w2) say what a change of the
marginals at fixed sites does to J in the end: `dJ = w1 . d mean + w2 . d variance`.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import LinearOperator, gmres
from sklearn.exceptions import ConvergenceWarning

from gpcert.models.inference.record import EvidenceGradient
from gpcert.models.inference.sparse_gaussian import SMALLEST_VARIANCE, SparsePosterior, SparsePrior
from gpcert.models.links import Link

_STEP = 0.02
"""Of the differences that give the third and fourth derivatives of log Z, in its own length-scale
`sqrt(1 + variance)`: their errors are of order step^4 = 2e-7, and 1e-11 / step^2 for moments by
quadrature."""

_TOLERANCE = 1e-7
_PRODUCTS = 100


@dataclass(frozen=True, eq=False)
class _Local:
    """How a point's site follows its own marginal at a fixed point of EP.

    With `nu = d shift - mean d precision`:
    d precision = of_mean d mean + of_variance d variance,
    nu = slope (d variance growth^2 + c^2 d precision), c the cavity's variance.
    """

    of_mean: np.ndarray
    of_variance: np.ndarray
    slope: np.ndarray
    growth2: np.ndarray
    cavity2: np.ndarray

    def transposed(self, on_precision: np.ndarray, on_nu: np.ndarray) -> np.ndarray:
        """Multipliers of (mean, variance) from those of (precision, nu)."""
        total = on_precision + self.slope * self.cavity2 * on_nu
        on_variance = self.of_variance * total + self.slope * self.growth2 * on_nu
        return np.stack([self.of_mean * total, on_variance])


def site_response(
    state: SparsePosterior, y: np.ndarray, link: Link, c: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(w1, w2) for `J = c . precision`, priors without an own part.

    Globally `d mean = Sigma nu` and `d variance = -(Sigma * Sigma) d precision`, `Sigma = V^T B^-1
    V`; the adjoint `w = local^T (c, 0) + local^T global^T w` is solved by GMRES, whose products
    cost O(N m^2) each.
    """
    local = _local(state, y, link)
    N = len(y)
    right = local.transposed(c, np.zeros(N))

    def product(flat: np.ndarray) -> np.ndarray:
        w = flat.reshape(2, N)
        solved = state.solved
        on_nu = solved.T @ (solved @ w[0])
        gram = (solved * w[1]) @ solved.T
        on_precision = -np.einsum("ij,ij->j", solved, gram @ solved)
        return (w - local.transposed(on_precision, on_nu)).ravel()

    operator = LinearOperator((2 * N, 2 * N), matvec=product, dtype=np.float64)  # type: ignore
    found, info = gmres(operator, right.ravel(), rtol=_TOLERANCE, restart=_PRODUCTS, maxiter=1)
    if info != 0:
        left = np.linalg.norm(right.ravel() - product(found)) / np.linalg.norm(right)
        warnings.warn(
            f"sparse EP (var): the response of the sites was solved to {left:.3g} only (tolerance "
            f"{_TOLERANCE:.3g}) with {_PRODUCTS} products; the gradient is as inexact",
            ConvergenceWarning,
            stacklevel=4,
        )
    w1, w2 = found.reshape(2, N)
    return w1, w2


def _local(state: SparsePosterior, y: np.ndarray, link: Link) -> _Local:
    """With l3, l4 the derivatives of log Z in the cavity's mean m, and `g = growth = 1 + p c`:

        d precision = -l3 g^3 d mean + rho dc,   rho = g^2 (c g l3^2 - l4) / 2,
        nu = l3 g dc / 2,                        dc = g^2 d variance + c^2 d precision.

    Reason: `precision = kappa / (1 - c kappa)`, `kappa = -l2`, `shift = slope g + m precision`,
    the variance acts by the heat equation, `d l_n / dc = (l_{n+2} + D^n l1^2) / 2`, and
    `dm = g d mean - slope dc - c nu`; the terms in the slope cancel.
    """
    third, fourth = _higher(state, y, link)
    g, c = state.growth, state.cavity_variance
    rho = 0.5 * g * g * (c * g * third * third - fourth)
    solved = 1.0 - rho * c * c
    return _Local(-third * g**3 / solved, rho * g * g / solved, 0.5 * third * g, g * g, c * c)


def _higher(state: SparsePosterior, y: np.ndarray, link: Link) -> tuple[np.ndarray, np.ndarray]:
    """Third and fourth derivative of log Z in m: five-point differences of its curvature."""
    m, c = state.cavity_mean, np.maximum(state.cavity_variance, SMALLEST_VARIANCE)
    h = _STEP * np.sqrt(1.0 + c)
    a2, a1, a0, b1, b2 = (-link.moments(y, m + j * h, c).curvature for j in (-2, -1, 0, 1, 2))
    third = (8.0 * (b1 - a1) - (b2 - a2)) / (12.0 * h)
    fourth = (16.0 * (a1 + b1) - (a2 + b2) - 30.0 * a0) / (12.0 * h * h)
    return third, fourth


@dataclass(frozen=True, eq=False)
class _Whitened:
    """`rows = G V^T` and `square = V G V^T` of one derivative G."""

    rows: np.ndarray
    square: np.ndarray

    def __add__(self, other: _Whitened) -> _Whitened:
        return _Whitened(self.rows + other.rows, self.square + other.square)


def evidence_gradient(state: SparsePosterior, y: np.ndarray, link: Link) -> EvidenceGradient:
    """Of the evidence that `sparse_ep` names for each kind.

    EP's evidence is stationary in the sites (Seeger 2005), so only its explicit dependence counts:
    `G = (weights weights^T - M) / 2`, `M = T - T V^T B^-1 V T`, as if `a ~ N(0, Q)` were a dense
    prior; FIC: the diagonal of the prior is k(x, x), so that of G goes to `diagonal`. The trace
    term of VAR is not stationary: the sites' response is added (`sparse_response`).
    """
    G = _stationary(state)
    diagonal = np.zeros_like(state.mean)
    if state.prior.kind == "fic":
        # M_ii = precision (1 - precision variance)
        diagonal = 0.5 * (state.weights**2 - state.precision / state.growth)
        G = G + _diagonal(state, -diagonal)
    elif state.prior.kind == "var":
        diagonal = -0.5 * state.precision
        G = G + _diagonal(state, -diagonal) + _responding(state, y, link)
    return _contracted(state.prior, G, diagonal)


def _stationary(state: SparsePosterior) -> _Whitened:
    """`V weights = center` and `M V^T = T V^T B^-1`, so V M V^T = I - B^-1."""
    inverse = _inverse(state)
    rows = np.outer(state.weights, state.center) - _solved_rows(state) * state.precision[:, None]
    square = np.outer(state.center, state.center) - np.eye(len(inverse)) + inverse
    return _Whitened(0.5 * rows, 0.5 * square)


def _diagonal(state: SparsePosterior, values: np.ndarray) -> _Whitened:
    rows = state.prior.V.T * values[:, None]
    return _Whitened(rows, state.prior.V @ rows)


def _responding(state: SparsePosterior, y: np.ndarray, link: Link) -> _Whitened:
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
    return _Whitened(rows, 0.5 * (outer + outer.T) + inverse @ middle)


def _solved_rows(state: SparsePosterior) -> np.ndarray:
    """`V^T B^-1` (N, m)."""
    return scipy.linalg.solve_triangular(state.R, state.solved, lower=True, trans=1).T


def _inverse(state: SparsePosterior) -> np.ndarray:
    """`B^-1` (m, m)."""
    return scipy.linalg.cho_solve((state.R, True), np.eye(len(state.R)))


def _contracted(prior: SparsePrior, G: _Whitened, diagonal: np.ndarray) -> EvidenceGradient:
    """Back from whitened coordinates; the jitter moves with the mean of diag K_uu."""
    cross = 2.0 * scipy.linalg.solve_triangular(prior.L, G.rows.T, lower=True, trans=1).T
    half = scipy.linalg.solve_triangular(prior.L, G.square, lower=True, trans=1)
    inducing = -scipy.linalg.solve_triangular(prior.L, half.T, lower=True, trans=1)
    m = len(inducing)
    inducing[np.diag_indices(m)] += prior.relative_jitter * np.trace(inducing) / m
    return EvidenceGradient(inducing=inducing, cross=cross, diagonal=diagonal)
