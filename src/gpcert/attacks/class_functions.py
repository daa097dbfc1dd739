"""Plain values and gradients of class probabilities, for local search. Proves nothing.

Nothing here comes from a certified integral: the latent differences are put on a fixed set of nodes
and the links averaged, so that a bound and an attack cannot err alike.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpcert.attacks.class_means import class_means
from gpcert.attacks.functions import PlainFunction, cross_gradient, diagonal_gradient
from gpcert.differences import Differences
from gpcert.likelihoods import ClassLikelihood
from gpcert.posterior import Posterior
from gpcert.several import Outputs

Pairs = Sequence[tuple[tuple[int, float], ...]]
Made = tuple[np.ndarray, Pairs]
"""(J, n, n) what every output's variance adds to the covariance of the latent differences, and the
outputs (with coefficients) that make each difference."""


def class_function(
    model: Outputs, likelihood: ClassLikelihood, weights: np.ndarray, how: Made
) -> PlainFunction:
    """`min_j sum_c weights_jc pi_c(x)` and the gradient of the least sum.

    With p and Q / 2 its derivatives in the differences' mean a and covariance V, the gradient is
    that of a kernel expansion, `sum_k p_k d a_k + <Q, dV> / 2`, with all weights added up first.
    """
    matrices, pairs = how
    mixing = np.zeros((len(pairs), model.outputs))
    for k, pair in enumerate(pairs):
        for output, factor in pair:
            mixing[k, output] = factor

    @np.errstate(all="ignore")
    def function(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        parts = [_Latent(member, X) for member in model.members]
        mean, variance = (
            np.concatenate([getattr(part, name) for part in parts], axis=1)
            for name in ("mean", "variance")
        )
        a, V = mean @ mixing.T, np.einsum("bj,jkl->bkl", variance, matrices)
        means = class_means(likelihood, a, V)
        sums = means.probabilities @ weights.T
        least = np.argmin(sums, axis=1)
        p, Q_half = means.slopes(weights[least])
        value = sums[np.arange(len(X)), least]
        return value, _gradient(parts, p @ mixing, np.einsum("bkl,jkl->bj", Q_half, matrices))

    return function


def _gradient(parts: Sequence[_Latent], by_mean: np.ndarray, by_variance: np.ndarray) -> np.ndarray:
    """(n, d) of `sum_j by_mean_j mean_j + by_variance_j variance_j` over all members' outputs."""
    ends = np.cumsum([part.mean.shape[1] for part in parts])[:-1]
    split = (np.split(factors, ends, axis=1) for factors in (by_mean, by_variance))
    gradients = [part.gradient(*own) for part, *own in zip(parts, *split, strict=True)]
    return np.sum(gradients, axis=0)


class _Latent:
    """Latent means and variances (n, J) at points, and gradients of sums of them."""

    def __init__(self, posterior: Posterior, X: np.ndarray) -> None:
        self.posterior, self.X = posterior, X
        K = posterior.cross(X)
        self.mean = posterior.mean_from(X, K)
        if isinstance(posterior, Differences):
            self.explained = _Pairs(posterior, K)
        else:
            self.explained = _Explained(posterior, K)
        v = np.maximum(posterior.prior(X)[:, None] - self.explained.values, 0.0)
        self.variance = posterior.scale**2 * v + posterior.noise

    def gradient(self, by_mean: np.ndarray, by_variance: np.ndarray) -> np.ndarray:
        """(n, d) of `sum_j by_mean_j mean_j + by_variance_j variance_j`, factors (n, J)."""
        posterior, X = self.posterior, self.X
        factor = 2.0 * posterior.scale**2 * by_variance
        factors = posterior.scale * by_mean
        weights = factors @ posterior.weights - self.explained.weights(factor)
        gradient = cross_gradient(posterior, X, weights, factors @ posterior.slope)
        # of k(x, x): both arguments move, alike by symmetry
        return gradient + diagonal_gradient(posterior, X) * factor.sum(axis=1)[:, None]


class _Explained:
    """`k.S_j k` (n, J) of all outputs, and sums of the S_j k."""

    def __init__(self, posterior: Posterior, K: np.ndarray) -> None:
        values, self.products = [], []
        for c in range(posterior.precision_count):
            A, C = posterior.factors_of(c)
            q, added = K @ A.T, K @ C.T
            values.append(np.square(q).sum(1) - np.square(added).sum(1))
            self.products.append(q @ A - added @ C)
        self.values = np.stack(values, axis=1) * np.ones(posterior.outputs)

    def weights(self, factor: np.ndarray) -> np.ndarray:
        """(n, N): `sum_j factor_j S_j k`, factor (n, J)."""
        if len(self.products) == 1:
            return factor.sum(axis=1)[:, None] * self.products[0]
        return np.einsum("nj,jnk->nk", factor, np.stack(self.products))


class _Pairs:
    """The same of pairs of classes, by halves of their own factors: `S_j = E_k + E_l - D^T D`,
    `D = C_l - C_k`, `E = A^T A`; a sum over pairs is one over classes."""

    def __init__(self, posterior: Differences, K: np.ndarray) -> None:
        own = posterior.outputs_of
        self.A, self.C = own.factor, own.negative_factor
        self.first, self.second = np.triu_indices(len(self.A), 1)
        self.q = [0.5 * (K @ A.T) for A in self.A]
        self.w = np.stack([0.5 * (K @ C.T) for C in self.C])  # (m, n, r)
        squares = np.stack([np.square(q).sum(1) for q in self.q], axis=1)
        step = self.w[self.second] - self.w[self.first]
        self.values = squares[:, self.first] + squares[:, self.second]
        self.values -= np.square(step).sum(2).T

    def weights(self, factor: np.ndarray) -> np.ndarray:
        """See `_Explained.weights`."""
        m, n = len(self.A), len(factor)
        laplacian = np.zeros((n, m, m))
        for j, (k, c) in enumerate(zip(self.first, self.second, strict=True)):
            laplacian[:, [k, c], [k, c]] += factor[:, j : j + 1]
            laplacian[:, [k, c], [c, k]] -= factor[:, j : j + 1]
        shared = np.einsum("ncd,dnr->cnr", laplacian, self.w)
        total = np.zeros((n, self.A.shape[2]))
        for c in range(m):
            own = laplacian[:, c, c][:, None] * self.q[c]
            total += own @ self.A[c] - shared[c] @ self.C[c]
        return 0.5 * total
