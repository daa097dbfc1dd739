"""Means of class links over Gaussian latent values, for many points at once. Proves nothing.

The links and the slopes of their weighted sums; nodes and weights of standard normals; the means.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri, softmax

from gpcert.errors import InputError
from gpcert.likelihoods import ClassLikelihood, MultinomialProbit, Softmax

NOISE_STEP = 0.55
NOISE_NODES = np.arange(-9, 12) * NOISE_STEP
"""Nodes for the largest noisy value, in standard deviations of the noise from the largest latent
value: from -5 to 6."""

FARTHEST = 30.0
"""Deviations beyond which a class is neglected."""

Slope = Callable[[np.ndarray], np.ndarray]


def link_and_slope(likelihood: ClassLikelihood, f: np.ndarray) -> tuple[np.ndarray, Slope]:
    """Links (Q, m) at latent values f (Q, m), and `w -> gradient (Q, m) in f of sum_c w_c link_c`,
    w the same for all rows (m,) or one per row (Q, m).

    >>> links, slope = link_and_slope(Softmax(), np.zeros((1, 2)))
    >>> links.tolist(), slope(np.array([1.0, 0.0])).tolist()
    ([[0.5, 0.5]], [[0.25, -0.25]])
    """
    if isinstance(likelihood, Softmax):
        shares = softmax(f, axis=1)
        return shares, lambda w: shares * (w - _means(shares, w)[:, None])
    if isinstance(likelihood, MultinomialProbit):
        return _largest(f, math.sqrt(likelihood.noise))
    raise InputError(
        f"likelihood: local search supports the links of Softmax and MultinomialProbit, got "
        f"{type(likelihood).__name__}; add its link to gpcert.attacks.class_means"
    )


def _largest(f: np.ndarray, deviation: float) -> tuple[np.ndarray, Slope]:
    """`P(f_c + e_c is the largest) = int g_c prod_(k != c) Phi_k dt`, g_k and Phi_k the density and
    distribution of `f_k + e_k`: a trapezoidal sum over t around the largest f.

    With `P = prod Phi_k`, `r_k = g_k / Phi_k`, `R = sum r_k` and `S = sum w_k r_k` the derivative
    of `sum_c w_c link_c` in f_j is `int P r_j (w_j R - S) dt`.
    """
    x = (f.max(axis=1, keepdims=True) - f) / deviation + NOISE_NODES[:, None, None]  # (T, Q, m)
    x = np.minimum(x, FARTHEST)
    below = ndtr(x)
    r = np.exp(-0.5 * x * x) / (math.sqrt(2.0 * math.pi) * below)
    P = NOISE_STEP * below.prod(axis=2, keepdims=True)
    links = (P * r).sum(axis=0)

    def slope(w: np.ndarray) -> np.ndarray:
        R, S = r.sum(axis=2, keepdims=True), _means(r, w)[..., None]
        return (P * r * (w * R - S)).sum(axis=0) / deviation

    return links, slope


def _means(r: np.ndarray, w: np.ndarray) -> np.ndarray:
    """`sum_c r_c w_c` over the last axis, w the same for all rows or one per row."""
    return r @ w if w.ndim == 1 else np.einsum("...m,...m->...", r, w)


FEW = 2
"""Largest dimension with a grid of nodes; quasi-random points beyond."""

REACH = 6.5
"""Half-width of a grid in standard deviations."""

MAX_NODES = 97
"""Largest number of nodes on each axis of a grid."""


def normal_nodes(dimension: int, spread: float, points: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (Q, dimension) and weights (Q,), symmetric about 0.

    `spread` is one standard deviation in units of the link's width: the larger it is, the finer the
    grid. `points`, a power of two, is the number of quasi-random points.

    >>> z, mass = normal_nodes(1, 1.0, 1024)
    >>> round(float(mass @ z[:, 0] ** 2), 8)
    1.0
    """
    if dimension > FEW:
        return _quasi_random(dimension, points)
    # trapezoidal rule: exponentially accurate if the step is below 1 / spread
    step = min(0.6, 1.6 / min(max(spread, 1e-3), 1e9))
    return _grid(dimension, min(math.ceil(REACH / step), MAX_NODES // 2))


@lru_cache(maxsize=128)
def _grid(dimension: int, half: int) -> tuple[np.ndarray, np.ndarray]:
    axis = np.linspace(-REACH, REACH, 2 * half + 1)
    weight = np.exp(-0.5 * axis**2)
    weight /= weight.sum()
    grid = np.meshgrid(*[axis] * dimension, indexing="ij")
    mass = np.prod(np.meshgrid(*[weight] * dimension, indexing="ij"), axis=0).ravel()
    used = mass > 1e-12 * mass.max()
    return np.stack([g.ravel() for g in grid], axis=1)[used], mass[used] / mass[used].sum()


@lru_cache(maxsize=32)
def _quasi_random(dimension: int, points: int) -> tuple[np.ndarray, np.ndarray]:
    """Sobol points and their reflections, with the covariance of a standard normal exactly."""
    from scipy.stats import qmc  # half a second to import, needed for many classes only

    sequence = qmc.Sobol(dimension, scramble=False)
    even = sequence.random_base2(int(math.log2(points // 2)))
    even = (even + np.random.default_rng(0).uniform(size=dimension)) % 1.0
    z = ndtri(np.clip(even, 1e-9, 1.0 - 1e-9))
    z = np.concatenate([z, -z])
    z = z @ np.linalg.inv(np.linalg.cholesky(z.T @ z / len(z))).T
    return z, np.full(len(z), 1.0 / len(z))


SMALLEST_DEVIATION = 1e-3
"""Smallest eigenvalue of the root of the latent covariance, so that it can be differentiated."""

MAX_NUMBERS = 4_000_000
"""Largest number of latent values in memory."""


class ClassMeans(NamedTuple):
    """`probabilities` (b, m), and `slopes`: weights (b, m) to the derivatives of the weighted sums
    in the mean (b, n) and in the covariance (b, n, n) of the latent differences."""

    probabilities: np.ndarray
    slopes: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def class_means(likelihood: ClassLikelihood, a: np.ndarray, V: np.ndarray) -> ClassMeans:
    """Class probabilities where `f_k - f_0`, k = 1..n, has mean a (b, n) and covariance V.

    The links are averaged over nodes `d = a + S z`, `S = V^(1/2)`. `S dS + dS S = dV`, so in the
    eigenvectors of V `dS_ij = dV_ij / (s_i + s_j)`.

    >>> from gpcert.likelihoods import Softmax
    >>> means = class_means(Softmax(), np.zeros((1, 2)), np.eye(2)[None])
    >>> means.probabilities.sum().round(12).item()
    1.0
    """
    known = np.all(np.isfinite(V), axis=(1, 2), keepdims=True)  # huge latent functions overflow
    V = np.where(known, V, np.eye(V.shape[1]))
    values, vectors = np.linalg.eigh(0.5 * (V + np.swapaxes(V, 1, 2)))
    s = np.sqrt(np.maximum(values, SMALLEST_DEVIATION**2))
    S = (vectors * s[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    b, n = a.shape
    widest = float(s.max(initial=0.0)) / (math.sqrt(likelihood.noise) or 1.0)
    points = 512 if isinstance(likelihood, MultinomialProbit) else 2048  # its link is expensive
    z, mass = normal_nodes(n, widest, points)
    rows = max(1, MAX_NUMBERS // (len(z) * (n + 1)))
    blocks = [slice(start, start + rows) for start in range(0, b, rows)]

    def links_of(block: slice) -> tuple[np.ndarray, Slope]:
        d = a[block, None, :] + z @ S[block]
        f = np.zeros((*d.shape[:2], n + 1))
        f[:, :, 1:] = d
        links, slope_of = link_and_slope(likelihood, f.reshape(-1, n + 1))
        return links.reshape(f.shape), slope_of

    cached = links_of(blocks[0]) if len(blocks) == 1 else None
    parts = [mass @ (cached or links_of(block))[0] for block in blocks]

    def slopes(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p, by_root = np.empty((b, n)), np.empty((b, n, n))
        for block in blocks:
            _, slope_of = cached or links_of(block)
            row_weights = weights[block]
            row_weights = (
                row_weights[0] if len(row_weights) == 1 else np.repeat(row_weights, len(z), axis=0)
            )
            slope = slope_of(row_weights)[:, 1:].reshape(-1, len(z), n) * mass[:, None]
            p[block] = slope.sum(axis=1)
            by_root[block] = np.swapaxes(slope, 1, 2) @ z
        moved = np.swapaxes(vectors, 1, 2) @ by_root @ vectors
        moved = 0.5 * (moved + np.swapaxes(moved, 1, 2)) / (s[:, :, None] + s[:, None, :])
        return p, vectors @ moved @ np.swapaxes(vectors, 1, 2)

    return ClassMeans(np.concatenate(parts) if parts else np.zeros((0, n + 1)), slopes)
