"""Probabilities of several classes, from the law of the latent outputs, by quadrature in floats.

All sums have terms >= 0 and weights that sum to 1, so their rounding is a few 1e-15; the
trapezoidal rule has the error proved in `hunt_links`, one dimension after the other. Every answer
carries at least `ROUNDING`.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from flint import arb
from scipy.special import ndtr

from tests.hunt.hunt_links import NoReferenceError
from tests.hunt.hunt_numbers import around

ROUNDING = 1e-12
FINE = 30.0
"""Logarithm of one over the error of the rule: 1e-13."""

TENSOR = {2: FINE, 3: FINE, 4: 18.0, 5: 9.0, 6: 7.0}
"""The same for so many coupled classes: nodes multiply, so many dimensions are known less well."""

MAX_NODES = 400_000


def class_probabilities(likelihood: Any, mean: list[arb], cov: list[list[arb]]) -> list[arb]:
    """pi_c for every class, each with its error."""
    mu = np.array([float(x.mid()) for x in mean])
    V = np.array([[float(x.mid()) for x in row] for row in cov])
    width = max(float(x.rad()) for row in [mean, *cov] for x in row)
    if not (np.all(np.isfinite(mu)) and np.all(np.isfinite(V)) and width < 1e-13):
        raise NoReferenceError("latent moments are not finite or not known well")
    # a change of the moments by so much changes a probability by less: derivatives are below 1
    moved = 4e-16 * len(mu) ** 2 * (np.abs(mu).max() + np.abs(V).max()) + width
    noise = getattr(likelihood, "noise", 0.0) if _is_probit(likelihood) else None
    if noise is not None:
        moved /= min(1.0, noise)  # derivatives in units of the noise
    if np.any(V - np.diag(np.diag(V))):
        found, error = _coupled(mu, V, noise)
    else:
        found, error = _independent(mu, np.sqrt(np.maximum(np.diag(V), 0.0)), noise)
    return [around(p, error + moved + ROUNDING) for p in found]


def _is_probit(likelihood: Any) -> bool:
    return type(likelihood).__name__ == "MultinomialProbit"


def _nodes(a: float, grow: float, digits: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Nodes, weights and error of the rule for N(0, 1) and a strip of half-width a, in which the
    integrand without its density is at most e^grow."""
    h = 2.0 * np.pi * a / (digits + a * a / 2.0 + grow)
    cut = np.sqrt(2.0 * digits) + h
    count = int(np.ceil(cut / h))
    if count > MAX_NODES:
        raise NoReferenceError("latent variance too large for the trapezoidal rule")
    z = h * np.arange(-count, count + 1)
    weights = h * np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    return z, weights, 3.0 * np.exp(-digits)


def _independent(mu: np.ndarray, s: np.ndarray, noise: float | None) -> tuple[np.ndarray, float]:
    if noise is None:
        return _gumbel(mu, s)
    found = np.empty(len(mu))
    spread = np.sqrt(s**2 + noise)
    for c in range(len(mu)):
        others = np.arange(len(mu)) != c
        ratio = spread[c] / spread[others]  # |Phi(x + iy)| <= e^(y^2 / 2)
        a = min(4.0, 2.0 / np.sqrt((ratio**2).sum()))
        z, weights, error = _nodes(a, 2.0, FINE)
        beaten = (mu[c] + spread[c] * z)[:, None] - mu[others]
        found[c] = weights @ np.prod(ndtr(beaten / spread[others]), axis=1)
    return found, error


def _gumbel(mu: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, float]:
    """Independent outputs, softmax: `pi_c = int A_c(t) prod_(k != c) B_k(t) dt` with
    `B_k(t) = E exp(-e^(t + f_k))` and `A_c = -B_c'`.

    Reason: `1 / S = int e^(-sS) ds` with `S = sum_k e^(f_k)` and `s = e^t`. For |Im t| <= y + the
    inner strip's b <= pi / 2 - 0.17: |B| <= 1 and `int |A_c(t + iy)| dt <= 1 / cos(1.4) < 6`; the
    inner integrands are at most 1 (B) and `1 / (e cos 1.4) < 2.2` (A).
    """
    step = 2.0 * np.pi * 0.7 / (FINE + 2.0)
    cut = np.sqrt(2.0 * FINE) + 1.0
    low, high = (-mu - cut * s).min() - FINE - 3.0, (-mu + cut * s).max() + 4.0
    rules = [_nodes(min(4.0, 0.7 / max(w, 1e-3)), 1.0, FINE) for w in s]
    count = int(np.ceil((high - low) / step))
    if count * max(len(rule[0]) for rule in rules) > 1e6:
        raise NoReferenceError("latent variance too large for the nested rule")
    t = low + step * np.arange(count + 1)
    kept, density = np.empty((2, len(mu), len(t)))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for k, (z, weights, _) in enumerate(rules):
            power = np.exp(t[:, None] + (mu[k] + s[k] * z))
            alone = np.exp(-power)
            kept[k] = alone @ weights
            density[k] = np.where(alone > 0, power * alone, 0.0) @ weights
    found = np.empty(len(mu))
    for c in range(len(mu)):
        found[c] = step * float(density[c] @ np.prod(np.delete(kept, c, axis=0), axis=0))
    inner = max(own for _, _, own in rules)
    return found, 12.0 * np.exp(-FINE) + 3.0 * len(mu) * inner * (1.0 + count * step)


def _coupled(mu: np.ndarray, V: np.ndarray, noise: float | None) -> tuple[np.ndarray, float]:
    """A tensor rule for the differences from each class; they have m - 1 dimensions."""
    m = len(mu)
    digits = TENSOR[m]
    found, worst = np.empty(m), 0.0
    for c in range(m):
        others = [k for k in range(m) if k != c]
        a = mu[c] - mu[others]
        D = V[c, c] + V[np.ix_(others, others)] - V[c, others][:, None] - V[c, others]
        if noise is not None:
            D = D + noise  # the noise of class c is common to all differences
        values, vectors = np.linalg.eigh(D)
        if values[0] < -1e-12 * max(1.0, values[-1]):
            raise NoReferenceError("the covariance of the classes is not positive semi-definite")
        L = vectors * np.sqrt(np.maximum(values, 0.0))
        found[c], error = _tensor(a, L, noise, digits)
        worst = max(worst, error)
    return found, worst


def _tensor(
    a: np.ndarray, L: np.ndarray, noise: float | None, digits: float
) -> tuple[float, float]:
    n = len(a)
    rules = []
    for column in L.T:
        if noise is None:
            # imaginary parts differ from each other and from 0 by at most pi / 2
            size = max(column.max(), 0.0) - min(column.min(), 0.0)
            rules.append(_nodes(min(3.0, 1.57 / max(size, 1e-3)), 0.0, digits))
        else:
            size = np.sqrt(np.square(column).sum() / noise)
            rules.append(_nodes(min(3.0, 2.0 / max(size, 1e-3)), 2.0, digits))
    total = int(np.prod([len(z) for z, _, _ in rules]))
    if total > MAX_NODES:
        raise NoReferenceError("too many nodes of the tensor rule")
    u = np.broadcast_to(a, (1, n))
    weights = np.ones(1)
    for (z, own, _), column in zip(rules, L.T, strict=True):
        u = (u[:, None, :] + z[:, None] * column).reshape(-1, n)
        weights = (weights[:, None] * own).reshape(-1)
    with np.errstate(over="ignore"):
        if noise is None:
            links = 1.0 / (1.0 + np.exp(-u).sum(axis=1))
        else:
            links = np.prod(ndtr(u / np.sqrt(noise)), axis=1)
    return float(weights @ links), n * 3.0 * float(np.exp(-digits))


def class_grid(m: int) -> list[tuple[int, int]]:
    """Pairs j < k in lexicographic order."""
    return [(j, k) for j, k in product(range(m), range(m)) if j < k]
