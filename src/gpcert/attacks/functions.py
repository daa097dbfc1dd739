"""Plain values and gradients of what is bounded, for local search. Nothing here proves anything."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from gpcert.posterior import Posterior
from gpcert.quantities import Quantity
from gpcert.several import Outputs

PlainFunction = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Points (n, d) to values (n,) and gradients (n, d)."""

BLOCK = 32
"""Rows whose own kernel values are taken at once."""


def mean_and_gradient(model: Outputs, X: np.ndarray, c: int) -> tuple[np.ndarray, np.ndarray]:
    """Latent mean (n,) of output c and its gradient (n, d)."""
    posterior, c = model.output(c)
    t, slope = posterior.weights[c], posterior.slope[c]
    g = posterior.cross(X) @ t + posterior.seen(X) @ slope
    gradient = cross_gradient(posterior, X, np.tile(t, (len(X), 1)), slope)
    return posterior.offset[c] + posterior.scale[c] * g, posterior.scale[c] * gradient


def means_and_gradients(model: Outputs, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Latent means (n, m) of all outputs and their gradients (n, m, d)."""
    return stacked([mean_and_gradient(model, X, c) for c in range(model.outputs)])


def stacked(parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Values (n, k) and gradients (n, k, d) of k functions."""
    values, gradients = zip(*parts, strict=True)
    return np.stack(values, axis=1), np.stack(gradients, axis=1)


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


def scalar_function(posterior: Outputs, quantity: Quantity) -> PlainFunction:
    """The quantity, and its gradient by the chain rule."""
    c, sign = quantity.output, quantity.sign

    def function(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        q, q_by_x = np.zeros(len(X)), np.zeros_like(X)
        v, v_by_x = q, q_by_x
        if quantity.by_mean:
            q, q_by_x = (sign * part for part in mean_and_gradient(posterior, X, c))
        if quantity.by_variance:
            v, v_by_x = variance_and_gradient(posterior, X, c)
        by_q, by_v = quantity.slopes(q, v)
        with np.errstate(over="ignore", invalid="ignore"):
            gradient = by_q[:, None] * q_by_x + by_v[:, None] * v_by_x
            return quantity.value(q, v), gradient

    return function


def deviation_function(
    posterior: Outputs, reference: Sequence[float] | np.ndarray, norm: float
) -> PlainFunction:
    """`-||mu(x) - reference||_p` and a (sub)gradient; one reference, or one a row."""

    def function(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        means, slopes = means_and_gradients(posterior, X)
        value, weight = deviation_of(means - np.asarray(reference), norm)
        return -value, -np.einsum("nc,ncd->nd", weight, slopes)

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


def cross_gradient(
    posterior: Posterior,
    X: np.ndarray,
    C: np.ndarray,
    slopes: np.ndarray | float = 0.0,
    K: np.ndarray | None = None,
) -> np.ndarray:
    """Gradients (n, d) of `sum_j C_ij k(x, z_j) + slopes_i.x` at x_i, of features x that the kernel
    sees; C (n, N), slopes (n, q). `K` (n, N) are the k(x_i, z_j), where known."""
    kernel, seen, points = posterior.kernel, posterior.seen(X), posterior.points
    if K is None:
        found = kernel.gradient_product(seen, points, C)
    else:
        found = kernel.known_gradient_product(seen, points, C, K)
    return _pulled(posterior, found + slopes)


def diagonal_gradient(posterior: Posterior, X: np.ndarray) -> np.ndarray:
    """(n, d) half the gradient of k(x, x), in small blocks: pairs of other rows are not needed."""
    seen = posterior.seen(X)
    blocks = [seen[i : i + BLOCK] for i in range(0, len(X), BLOCK)]
    parts = [posterior.kernel.gradient_product(own, own, np.eye(len(own))) for own in blocks]
    return _pulled(posterior, np.concatenate(parts) if parts else np.zeros_like(seen))


def _pulled(posterior: Posterior, gradient: np.ndarray) -> np.ndarray:
    """By the chain rule through linear features, where there are some."""
    return gradient if posterior.features is None else gradient @ posterior.features.matrix
