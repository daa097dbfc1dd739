"""Plain values and gradients of what is bounded, for local search. Nothing here proves anything."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from gpcert.likelihoods import ScalarLikelihood
from gpcert.posterior import Posterior
from gpcert.several import Outputs

__all__ = [
    "PlainFunction",
    "band_function",
    "cross_gradient",
    "deviation_function",
    "deviation_of",
    "diagonal_gradient",
    "mean_and_gradient",
    "mean_function",
    "probability_function",
    "std_and_gradient",
    "std_function",
    "variance_and_gradient",
    "variance_function",
]

PlainFunction = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Points (n, d) to values (n,) and gradients (n, d)."""

BLOCK = 32
"""Rows whose own kernel values are taken at once."""


def mean_and_gradient(model: Outputs, X: np.ndarray, c: int) -> tuple[np.ndarray, np.ndarray]:
    """Latent mean (n,) of output c and its gradient (n, d)."""
    posterior, c = model.output(c)
    K = posterior.cross(X)
    t = posterior.weights[c]
    gradient = cross_gradient(posterior, X, np.tile(t, (len(X), 1)))
    return posterior.offset[c] + posterior.scale[c] * (K @ t), posterior.scale[c] * gradient


def variance_and_gradient(model: Outputs, X: np.ndarray, c: int) -> tuple[np.ndarray, np.ndarray]:
    """Latent variance (n,) of output c and its gradient (n, d)."""
    posterior, c = model.output(c)
    K = posterior.cross(X)
    A, C = posterior.factors_of(c)
    q, added = K @ A.T, K @ C.T
    prior = posterior.prior(X)
    variance = np.maximum(prior - np.square(q).sum(1) + np.square(added).sum(1), 0.0)
    weights = added @ C - q @ A
    gradient = 2.0 * cross_gradient(posterior, X, weights)
    # of k(x, x): both arguments move, alike by symmetry
    gradient += 2.0 * diagonal_gradient(posterior, X)
    scale = posterior.scale[c]  # its square may leave float64 where the products do not
    with np.errstate(over="ignore"):
        return scale * (scale * variance) + posterior.noise[c], scale * (scale * gradient)


def mean_function(posterior: Posterior, output: int, sign: int) -> PlainFunction:
    """`sign * mu_c`."""

    def function(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value, gradient = mean_and_gradient(posterior, X, output)
        return sign * value, sign * gradient

    return function


def variance_function(posterior: Posterior, output: int, sign: int) -> PlainFunction:
    """`sign * v_c`."""

    def function(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value, gradient = variance_and_gradient(posterior, X, output)
        return sign * value, sign * gradient

    return function


def std_function(posterior: Posterior, output: int, sign: int) -> PlainFunction:
    """`sign * sqrt(v_c)`; no gradient where the variance vanishes."""

    def function(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value, gradient = std_and_gradient(posterior, X, output)
        return sign * value, sign * gradient

    return function


def band_function(posterior: Posterior, output: int, sign: int, beta: float) -> PlainFunction:
    """`sign * mu_c - beta sqrt(v_c)`: the band's lower end, or minus its upper one."""

    def function(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, by_x = mean_and_gradient(posterior, X, output)
        std, std_by_x = std_and_gradient(posterior, X, output)
        with np.errstate(over="ignore", invalid="ignore"):
            return sign * mean - beta * std, sign * by_x - beta * std_by_x

    return function


def std_and_gradient(posterior: Posterior, X: np.ndarray, c: int) -> tuple[np.ndarray, np.ndarray]:
    """Standard deviation (n,) of output c, noise included, and its gradient (n, d), 0 at kinks."""
    variance, gradient = variance_and_gradient(posterior, X, c)
    std = np.sqrt(variance)
    with np.errstate(over="ignore", invalid="ignore"):
        slope = gradient / (2.0 * np.where(std > 0, std, 1.0))[:, None]
    return std, np.where((std > 0)[:, None], slope, 0.0)


def probability_function(
    posterior: Posterior, likelihood: ScalarLikelihood, output: int, sign: int
) -> PlainFunction:
    """`sign * F(mu_c, v_c)`, the gradient by the chain rule."""

    def function(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mu, by_x = mean_and_gradient(posterior, X, output)
        v, v_by_x = variance_and_gradient(posterior, X, output)
        by_mu, by_v = likelihood.slopes(mu, v)
        gradient = by_mu[:, None] * by_x + by_v[:, None] * v_by_x
        return sign * likelihood.value(mu, v), sign * gradient

    return function


def deviation_function(
    posterior: Outputs, reference: Sequence[float], norm: float
) -> PlainFunction:
    """`-||mu(x) - reference||_p` and a (sub)gradient."""

    def function(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        parts = [mean_and_gradient(posterior, X, c) for c in range(len(reference))]
        gaps = np.stack([value for value, _ in parts], axis=1) - np.asarray(reference)
        slopes = np.stack([gradient for _, gradient in parts], axis=1)
        value, weight = deviation_of(gaps, norm)
        gradient = np.einsum("nc,ncd->nd", weight, slopes)
        return -value, -gradient

    return function


def deviation_of(gaps: np.ndarray, norm: float) -> tuple[np.ndarray, np.ndarray]:
    """`||gaps||_p` of rows (n, m), and a (sub)gradient (n, m) of it.

    >>> deviation_of(np.array([[3.0, -4.0]]), 2.0)
    (array([5.]), array([[ 0.6, -0.8]]))
    """
    size = np.abs(gaps)
    if math.isinf(norm):
        value = size.max(axis=1)
        weight = (size == value[:, None]).astype(float)
    else:
        value = np.linalg.norm(gaps, ord=norm, axis=1)
        safe = np.where(value > 0, value, 1.0)[:, None]
        weight = (size / safe) ** (norm - 1.0)
    return value, weight * np.sign(gaps)


def cross_gradient(posterior: Posterior, X: np.ndarray, C: np.ndarray) -> np.ndarray:
    """`sum_j C_ij d k(x_i, z_j) / d x_i`, (n, d)."""
    found = posterior.kernel.gradient_product(posterior.seen(X), posterior.points, C)
    return _pulled(posterior, found)


def diagonal_gradient(posterior: Posterior, X: np.ndarray) -> np.ndarray:
    """(n, d) half the gradient of k(x, x), in small blocks: pairs of other rows are not needed."""
    seen = posterior.seen(X)
    blocks = [seen[i : i + BLOCK] for i in range(0, len(X), BLOCK)]
    parts = [posterior.kernel.gradient_product(own, own, np.eye(len(own))) for own in blocks]
    return _pulled(posterior, np.concatenate(parts) if parts else np.zeros_like(seen))


def _pulled(posterior: Posterior, gradient: np.ndarray) -> np.ndarray:
    """By the chain rule through linear features, where there are some."""
    return gradient if posterior.features is None else gradient @ posterior.features.matrix
