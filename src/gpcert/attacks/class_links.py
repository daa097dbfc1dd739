"""The links of several classes in plain floating point, with the slopes of weighted sums."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import ndtr, softmax

from gpcert.errors import InputError
from gpcert.likelihoods import ClassLikelihood, MultinomialProbit, Softmax

NOISE_STEP = 0.55
NOISE_NODES = np.arange(-9, 12) * NOISE_STEP
"""Where the largest of the noisy values may lie, in deviations of the noise from the largest latent
value: from -5 to 6."""

FARTHEST = 30.0
"""Deviations beyond which a class counts for nothing."""

Slope = Callable[[np.ndarray], np.ndarray]


def link_and_slope(likelihood: ClassLikelihood, f: np.ndarray) -> tuple[np.ndarray, Slope]:
    """Links (Q, m) at latent values f (Q, m), and `w -> gradient (Q, m) in f of sum_c w_c link_c`,
    w the same for all rows (m,) or one a row (Q, m).

    >>> links, slope = link_and_slope(Softmax(), np.zeros((1, 2)))
    >>> links.tolist(), slope(np.array([1.0, 0.0])).tolist()
    ([[0.5, 0.5]], [[0.25, -0.25]])
    """
    if isinstance(likelihood, Softmax):
        return _softmax(f)
    if isinstance(likelihood, MultinomialProbit):
        return _largest(f, math.sqrt(likelihood.noise))
    raise InputError(
        f"likelihood: local search knows the links of Softmax and MultinomialProbit, got "
        f"{type(likelihood).__name__}; add its link to gpcert.attacks.class_links"
    )


def points_for(likelihood: ClassLikelihood) -> int:
    """How many latent points a mean over them is worth: fewer where a link takes long."""
    return 512 if isinstance(likelihood, MultinomialProbit) else 2048


def _softmax(f: np.ndarray) -> tuple[np.ndarray, Slope]:
    shares = softmax(f, axis=1)
    return shares, lambda w: shares * (w - _means(shares, w)[:, None])


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
    """`sum_c r_c w_c` over the last axis, w the same for all rows or one a row."""
    return r @ w if w.ndim == 1 else np.einsum("...m,...m->...", r, w)
