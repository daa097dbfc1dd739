"""Plain values and gradients of class probabilities, for local search. Proves nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gpcert.attacks.functions import PlainFunction, mean_and_gradient, variance_and_gradient
from gpcert.likelihoods import ClassLikelihood
from gpcert.posterior import Posterior

__all__ = ["Differences", "class_function"]

SMALLEST_VARIANCE = 1e-3
"""Added to the covariance of the latent differences: keeps its factor regular."""

LARGEST_GRID = 4
"""Most classes of coupled outputs whose probabilities are found with their derivatives."""

Pairs = Sequence[tuple[tuple[int, int], ...]]
Differences = tuple[np.ndarray, Pairs]
"""(J, n, n) what every output's variance adds to the covariance of the latent differences, and the
outputs (with signs) that make each difference."""


def class_function(
    posterior: Posterior, likelihood: ClassLikelihood, weights: np.ndarray, how: Differences
) -> PlainFunction:
    """`min_j sum_c weights_jc pi_c(x)` and the gradient of the least sum.

    By the chain rule, `dG = p.da + <Q, dV> / 2` with p, Q the derivatives of G in the means.
    """
    matrices, pairs = how
    m = len(pairs) + 1
    independent = posterior.outputs == m and all(len(pair) == 2 for pair in pairs)
    slopes = _independent(likelihood) if independent else _coupled(likelihood, m)

    def function(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        outputs = range(posterior.outputs)
        means = [mean_and_gradient(posterior, X, c) for c in outputs]
        variances = [variance_and_gradient(posterior, X, c) for c in outputs]
        a = np.stack([sum(s * means[j][0] for j, s in pair) for pair in pairs], axis=1)
        by_x = np.stack([sum(s * means[j][1] for j, s in pair) for pair in pairs], axis=1)
        y = np.stack([v for v, _ in variances], axis=1)
        y_by_x = np.stack([slope for _, slope in variances], axis=1)
        mu = np.stack([value for value, _ in means], axis=1)
        V = np.einsum("bj,jkl->bkl", y, matrices)
        found = [slopes(row, (mu, y) if independent else (a, V)) for row in weights]
        values = np.stack([value for value, _, _ in found], axis=1)
        least, rows = values.argmin(axis=1), np.arange(len(X))
        p = np.stack([slope for _, slope, _ in found], axis=1)[rows, least]
        Q = np.stack([bend for _, _, bend in found], axis=1)[rows, least]
        q = 0.5 * np.einsum("bkl,jkl->bj", Q, matrices)
        gradient = np.einsum("bk,bkd->bd", p, by_x) + np.einsum("bj,bjd->bd", q, y_by_x)
        return values[rows, least], gradient

    return function


Slopes = Callable[
    [np.ndarray, tuple[np.ndarray, np.ndarray]], tuple[np.ndarray, np.ndarray, np.ndarray]
]


def _independent(likelihood: ClassLikelihood) -> Slopes:
    def slopes(
        row: np.ndarray, latent: tuple[np.ndarray, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        mu, y = latent
        found = likelihood.independent_moments(mu, np.maximum(y, SMALLEST_VARIANCE), row)
        return found.value, found.gradient[:, 1:], found.hessian[:, 1:, 1:]

    return slopes


def _coupled(likelihood: ClassLikelihood, m: int) -> Slopes:
    def exact(
        row: np.ndarray, latent: tuple[np.ndarray, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        a, V = latent
        n = m - 1
        noise = likelihood.noise * (np.eye(n) + 1.0)
        known = np.all(np.isfinite(V), axis=(1, 2), keepdims=True)
        values, vectors = np.linalg.eigh(np.where(known, V, np.eye(n)) + noise)
        raised = (vectors * np.maximum(values, SMALLEST_VARIANCE)[:, None]) @ _turned(vectors)
        L = np.linalg.cholesky(raised)
        found = likelihood.moments(a, L, 2)
        R = np.linalg.inv(L)
        Rt = _turned(R)
        first = np.einsum("c,bck->bk", row, found.derivatives[0])
        second = np.einsum("c,bckl->bkl", row, found.derivatives[1])
        return found.value @ row, (Rt @ first[..., None])[..., 0], Rt @ second @ R

    def rough(
        row: np.ndarray, latent: tuple[np.ndarray, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        # many coupled classes: the value by a rule, the slope that of the softmax at the mean
        a, V = latent
        mean = np.concatenate([np.zeros((len(a), 1)), a], axis=1)
        covariance = np.zeros((len(a), m, m))
        covariance[:, 1:, 1:] = V
        probabilities = likelihood.probabilities(mean, covariance)
        value = probabilities @ row
        slope = probabilities * (row - value[:, None])
        return value, slope[:, 1:], np.zeros_like(V)

    return exact if m <= LARGEST_GRID else rough


def _turned(matrices: np.ndarray) -> np.ndarray:
    return np.swapaxes(matrices, 1, 2)
