"""Derivatives of sparse EP's evidence in the covariances, in O(N m^2).

A function of `Q = K_fu K_uu^-1 K_uf` with the symmetric derivative G, `dE = sum_ij G_ij dQ_ij`, has

    dE = sum 2 (G P) * dK_fu - sum (P^T G P) * dK_uu,    P = K_fu K_uu^-1 = V^T L^-1.

G is N x N and never formed: what is needed is `G V^T` (N, m) and `V G V^T` (m, m).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from gpcert.models.inference.record import EvidenceGradient
from gpcert.models.inference.sparse_posterior import SparsePosterior
from gpcert.models.inference.sparse_prior import SparsePrior
from gpcert.models.inference.sparse_response import site_response
from gpcert.models.links import Link


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
