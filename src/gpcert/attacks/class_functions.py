"""Plain values and gradients of class probabilities, for local search. Proves nothing.

Nothing here comes from a certified integral: the latent differences are put on a fixed set of nodes
and the links averaged, so that a bound and an attack cannot err alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gpcert.attacks.class_links import link_and_slope, points_for
from gpcert.attacks.functions import PlainFunction
from gpcert.attacks.normal_nodes import normal_nodes
from gpcert.likelihoods import ClassLikelihood
from gpcert.posterior import Posterior

__all__ = ["Differences", "class_function"]

SMALLEST_DEVIATION = 1e-3
"""Smallest eigenvalue of the root of the latent covariance, so that it can be differentiated."""

Pairs = Sequence[tuple[tuple[int, int], ...]]
Differences = tuple[np.ndarray, Pairs]
"""(J, n, n) what every output's variance adds to the covariance of the latent differences, and the
outputs (with signs) that make each difference."""


def class_function(
    posterior: Posterior, likelihood: ClassLikelihood, weights: np.ndarray, how: Differences
) -> PlainFunction:
    """`min_j sum_c weights_jc pi_c(x)` and the gradient of the least sum.

    With p and Q / 2 its derivatives in the differences' mean a and covariance V, the gradient is
    that of a kernel expansion, `sum_k p_k d a_k + <Q, dV> / 2`, with all weights added up first.
    """
    matrices, pairs = how
    signs = np.zeros((len(pairs), posterior.outputs))
    for k, pair in enumerate(pairs):
        for output, sign in pair:
            signs[k, output] = sign

    @np.errstate(all="ignore")
    def function(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        latent = _Latent(posterior, X)
        a, V = latent.mean @ signs.T, np.einsum("bj,jkl->bkl", latent.variance, matrices)
        value, p, Q_half = _expected(likelihood, weights, a, V)
        return value, latent.gradient(p @ signs, np.einsum("bkl,jkl->bj", Q_half, matrices))

    return function


class _Latent:
    """Latent means and variances (n, J) at points, and gradients of sums of them."""

    def __init__(self, posterior: Posterior, X: np.ndarray) -> None:
        self.posterior, self.X = posterior, X
        K = posterior.kernel.value(X, posterior.points)
        self.mean = posterior.offset + posterior.scale * (K @ posterior.weights.T)
        prior = posterior.kernel.diagonal(X)
        variances, self.slopes = [], []
        for c in range(posterior.precision_count):
            A, C = posterior.factors_of(c)
            q, added = K @ A.T, K @ C.T
            v = prior - np.square(q).sum(1) + np.square(added).sum(1)
            variances.append(np.maximum(v, 0.0))
            self.slopes.append(added @ C - q @ A)  # half the weights of the variance's gradient
        v = np.stack(variances, axis=1) * np.ones(posterior.outputs)
        self.variance = posterior.scale**2 * v + posterior.noise

    def gradient(self, by_mean: np.ndarray, by_variance: np.ndarray) -> np.ndarray:
        """(n, d) of `sum_j by_mean_j mean_j + by_variance_j variance_j`, factors (n, J)."""
        posterior, X = self.posterior, self.X
        factor = 2.0 * posterior.scale**2 * by_variance
        weights = (posterior.scale * by_mean) @ posterior.weights
        for c in range(posterior.outputs):
            own = self.slopes[c if len(self.slopes) > 1 else 0]
            weights = weights + factor[:, c : c + 1] * own
        gradient = posterior.kernel.gradient_product(X, posterior.points, weights)
        # of k(x, x): both arguments move, alike by symmetry
        prior = np.diag(factor.sum(axis=1))
        return gradient + posterior.kernel.gradient_product(X, X, prior)


def _expected(
    likelihood: ClassLikelihood, weights: np.ndarray, a: np.ndarray, V: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The least of the sums' means over nodes `d = a + S z`, `S = V^(1/2)`, and its derivatives in
    a (b, n) and V (b, n, n).

    `S dS + dS S = dV`, so in the eigenvectors of V `dS_ij = dV_ij / (s_i + s_j)`.
    """
    known = np.all(np.isfinite(V), axis=(1, 2), keepdims=True)  # huge latent functions overflow
    V = np.where(known, V, np.eye(V.shape[1]))
    values, vectors = np.linalg.eigh(0.5 * (V + np.swapaxes(V, 1, 2)))
    s = np.sqrt(np.maximum(values, SMALLEST_DEVIATION**2))
    S = (vectors * s[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    found = [_row(likelihood, weights, a[b], S[b], float(s[b].max())) for b in range(len(a))]
    value = np.array([part[0] for part in found])
    p = np.stack([part[1] for part in found])
    moved = np.swapaxes(vectors, 1, 2) @ np.stack([part[2] for part in found]) @ vectors
    moved = 0.5 * (moved + np.swapaxes(moved, 1, 2)) / (s[:, :, None] + s[:, None, :])
    return value, p, vectors @ moved @ np.swapaxes(vectors, 1, 2)


def _row(
    likelihood: ClassLikelihood, weights: np.ndarray, a: np.ndarray, S: np.ndarray, widest: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """Least sum at one point, its gradient (n,) in a, and `mean of gradient z^T` (n, n)."""
    scale = math.sqrt(likelihood.noise) if likelihood.noise > 0 else 1.0
    z, mass = normal_nodes(len(a), widest / scale, points_for(likelihood))
    f = np.zeros((len(z), len(a) + 1))
    f[:, 1:] = a + z @ S
    links, slope_of = link_and_slope(likelihood, f)
    sums = weights @ (mass @ links)
    least = int(np.argmin(sums))
    slope = mass[:, None] * slope_of(weights[least])[:, 1:]
    return float(sums[least]), slope.sum(axis=0), slope.T @ z
