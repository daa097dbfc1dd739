"""Means of class links over Gaussian latent values, for many points at once. Proves nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gpcert.attacks.class_links import link_and_slope, points_for
from gpcert.attacks.normal_nodes import normal_nodes
from gpcert.likelihoods import ClassLikelihood

SMALLEST_DEVIATION = 1e-3
"""Smallest eigenvalue of the root of the latent covariance, so that it can be differentiated."""

MOST_NUMBERS = 4_000_000
"""Latent values held at once."""


@dataclass(frozen=True, eq=False)
class ClassMeans:
    """`probabilities` (b, m), and `slopes`: weights (b, m) to the derivatives of the weighted sums
    in the mean (b, n) and in the covariance (b, n, n) of the latent differences."""

    probabilities: np.ndarray
    slopes: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def class_means(likelihood: ClassLikelihood, a: np.ndarray, V: np.ndarray) -> ClassMeans:
    """Class probabilities where `f_k - f_0`, k = 1..n, has mean a (b, n) and covariance V.

    The links are averaged over nodes `d = a + S z`, `S = V^(1/2)`. `S dS + dS S = dV`, so in the
    eigenvectors of V `dS_ij = dV_ij / (s_i + s_j)`.

    >>> from gpcert.likelihoods import Softmax
    >>> found = class_means(Softmax(), np.zeros((1, 2)), np.eye(2)[None])
    >>> found.probabilities.sum().round(12).item()
    1.0
    """
    known = np.all(np.isfinite(V), axis=(1, 2), keepdims=True)  # huge latent functions overflow
    V = np.where(known, V, np.eye(V.shape[1]))
    values, vectors = np.linalg.eigh(0.5 * (V + np.swapaxes(V, 1, 2)))
    s = np.sqrt(np.maximum(values, SMALLEST_DEVIATION**2))
    S = (vectors * s[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    scale = math.sqrt(likelihood.noise) if likelihood.noise > 0 else 1.0
    b, n = a.shape
    widest = float(s.max(initial=0.0)) / scale
    z, mass = normal_nodes(n, widest, points_for(likelihood))
    rows = max(1, MOST_NUMBERS // (len(z) * (n + 1)))
    blocks = [slice(start, start + rows) for start in range(0, b, rows)]

    def links_of(block: slice) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        d = a[block, None, :] + z @ S[block]
        f = np.zeros((*d.shape[:2], n + 1))
        f[:, :, 1:] = d
        links, slope_of = link_and_slope(likelihood, f.reshape(-1, n + 1))
        return links.reshape(f.shape), slope_of

    kept = [links_of(block) for block in blocks] if len(blocks) == 1 else None
    found = [(kept[0] if kept else links_of(block))[0] for block in blocks]
    parts = [mass @ links for links in found]

    def slopes(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p, by_root = np.empty((b, n)), np.empty((b, n, n))
        for block in blocks:
            _, slope_of = kept[0] if kept else links_of(block)
            own = weights[block]
            own = own[0] if len(own) == 1 else np.repeat(own, len(z), axis=0)
            slope = slope_of(own)[:, 1:].reshape(-1, len(z), n) * mass[:, None]
            p[block] = slope.sum(axis=1)
            by_root[block] = np.swapaxes(slope, 1, 2) @ z
        moved = np.swapaxes(vectors, 1, 2) @ by_root @ vectors
        moved = 0.5 * (moved + np.swapaxes(moved, 1, 2)) / (s[:, :, None] + s[:, None, :])
        return p, vectors @ moved @ np.swapaxes(vectors, 1, 2)

    return ClassMeans(np.concatenate(parts) if parts else np.zeros((0, n + 1)), slopes)
