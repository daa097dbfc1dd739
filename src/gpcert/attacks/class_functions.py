"""Plain values and gradients of class probabilities, for local search. Proves nothing.

Nothing here comes from a certified integral: the latent differences are put on a fixed set of nodes
and the links averaged, so that a bound and an attack cannot err alike.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpcert.attacks.class_means import class_means
from gpcert.attacks.functions import PlainFunction, cross_gradient, diagonal_gradient
from gpcert.likelihoods import ClassLikelihood
from gpcert.posterior import Posterior
from gpcert.several import Outputs

Pairs = Sequence[tuple[tuple[int, float], ...]]
Differences = tuple[np.ndarray, Pairs]
"""(J, n, n) what every output's variance adds to the covariance of the latent differences, and the
outputs (with coefficients) that make each difference."""


def class_function(
    model: Outputs, likelihood: ClassLikelihood, weights: np.ndarray, how: Differences
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
        prior = posterior.prior(X)
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
        factors = posterior.scale * by_mean
        weights = factors @ posterior.weights
        for c in range(posterior.outputs):
            own = self.slopes[c if len(self.slopes) > 1 else 0]
            weights = weights + factor[:, c : c + 1] * own
        gradient = cross_gradient(posterior, X, weights, factors @ posterior.slope)
        # of k(x, x): both arguments move, alike by symmetry
        return gradient + diagonal_gradient(posterior, X) * factor.sum(axis=1)[:, None]
