"""Random models: kernels of every class, nested; posteriors and committees of every likelihood."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gpcert
from gpcert import kernels, likelihoods
from gpcert.model.committee import Committee
from tests.hunt.hunt_kernels import covariance
from tests.hunt.hunt_links import OWN_LINKS
from tests.hunt.hunt_numbers import Floats

Rng = np.random.Generator


def one_of(rng: Rng, items: Any) -> Any:
    """One of the items."""
    return items[int(rng.integers(len(items)))]


def _size(rng: Rng, low: float = 0.3, high: float = 3.0) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _lengths(rng: Rng, d: int) -> Any:
    return _size(rng) if rng.random() < 0.5 else [_size(rng) for _ in range(d)]


def _rates(rng: Rng, d: int, size: float = 1.0) -> list[float]:
    return (size * rng.normal(size=d)).tolist()


def _polynomial(rng: Rng, d: int) -> Any:
    center = _rates(rng, d) if rng.random() < 0.5 else 0.0
    return kernels.Polynomial(int(rng.integers(1, 5)), _size(rng), one_of(rng, (0.0, 0.5)), center)


def _generalised_spectral(rng: Rng, d: int) -> Any:
    Q = int(rng.integers(1, 3))
    rows = [[_rates(rng, d, s) for _ in range(Q)] for s in (0.3, 1.0, 1.0)]
    phases = rng.normal(size=(Q, 2)).tolist() if rng.random() < 0.5 else None
    return kernels.GeneralisedSpectral([_size(rng, 0.1, 1.0) for _ in range(Q)], *rows, phases)


def _spectral_mixture(rng: Rng, d: int) -> Any:
    Q = int(rng.integers(1, 4))
    lengths = [[_size(rng) for _ in range(d)] for _ in range(Q)]
    variances = [_size(rng, 0.1, 1.0) for _ in range(Q)]
    return kernels.SpectralMixture(variances, [_rates(rng, d, 2.0) for _ in range(Q)], lengths)


LEAVES: dict[str, Callable[[Rng, int], Any]] = {
    "SquaredExponential": lambda r, d: kernels.SquaredExponential(_lengths(r, d), _size(r)),
    "RationalQuadratic": lambda r, d: kernels.RationalQuadratic(
        _lengths(r, d), _size(r, 0.1, 30.0), _size(r)
    ),
    "Matern": lambda r, d: kernels.Matern(_lengths(r, d), int(r.integers(0, 11)) + 0.5, _size(r)),
    "rough Matern": lambda r, d: kernels.Matern(_lengths(r, d), one_of(r, (0.5, 1.5, 2.5))),
    "Periodic": lambda r, d: kernels.Periodic(_lengths(r, d), _lengths(r, d), _size(r)),
    "Cosine": lambda r, d: kernels.Cosine(_rates(r, d), _size(r)),
    "SpectralMixture": _spectral_mixture,
    "GeneralisedSpectral": _generalised_spectral,
    "ExponentialTilt": lambda r, d: kernels.ExponentialTilt(_rates(r, d, 0.4), r.normal()),
    "CosinePair": lambda r, d: kernels.CosinePair(_rates(r, d), _rates(r, d), _rates(r, 2)),
    "Linear": lambda r, d: kernels.Linear([_size(r) for _ in range(d)], _rates(r, d)),
    "Polynomial": _polynomial,
    "Constant": lambda r, d: kernels.Constant(_size(r)),
    "White": lambda r, d: kernels.White(_size(r)),
}


def draw_kernel(rng: Rng, d: int, depth: int = 2) -> Any:
    """Any kernel of d inputs; expressions nest to the given depth."""
    kind = rng.random()
    if depth == 0 or kind < 0.5:
        return one_of(rng, list(LEAVES.values()))(rng, d)
    if kind < 0.65:
        parts = [draw_kernel(rng, d, depth - 1) for _ in range(int(rng.integers(1, 4)))]
        return kernels.Sum(parts)
    if kind < 0.78:
        return kernels.Product([draw_kernel(rng, d, depth - 1) for _ in range(2)])
    if kind < 0.85:
        return kernels.Scale(draw_kernel(rng, d, depth - 1), _size(rng))
    if kind < 0.92:
        k = int(rng.integers(1, d + 1))
        chosen = tuple(int(j) for j in rng.permutation(d)[:k])
        return kernels.ActiveDimensions(draw_kernel(rng, k, depth - 1), chosen)
    first, second = (draw_kernel(rng, d, depth - 1) for _ in range(2))
    return first + second if kind < 0.95 else 0.5 * first * second


def gram(kernel: Any, Z: np.ndarray) -> np.ndarray:
    """K_ZZ in floats, by the hunt's own formulas."""
    left, right = (
        [Z[:, j, None] for j in range(Z.shape[1])],
        [Z[None, :, j] for j in range(Z.shape[1])],
    )
    with np.errstate(all="ignore"):
        return np.array(np.broadcast_to(covariance(kernel, left, right, Floats), (len(Z),) * 2))


def draw_factor(rng: Rng, K: np.ndarray, outputs: int = 1) -> Any:
    """A with `A K A^T <= 1` about, as a posterior has; a few are too large, so that v < 0."""
    N = len(K)
    size = float(np.abs(np.diag(K)).max()) or 1.0
    if outputs == 1 and rng.random() < 0.6:
        try:
            noise = size * 10.0 ** rng.uniform(-10, 0)
            return np.linalg.inv(np.linalg.cholesky(K + noise * np.eye(N)))
        except np.linalg.LinAlgError:
            pass
    r = int(rng.integers(1, N + 1))
    A = rng.normal(size=(outputs * r, N))
    top = float(np.linalg.eigvalsh(A @ K @ A.T)[-1])
    if not (np.isfinite(top) and top > 0):
        return None if outputs == 1 else np.zeros((outputs, r, N))
    room = 1.3 if outputs == 1 and rng.random() < 0.05 else rng.uniform(0.2, 0.999)
    A *= np.sqrt(room / top)
    return A if outputs == 1 else A.reshape(outputs, r, N)


def draw_binary_likelihood(rng: Rng) -> Any:
    """One of two classes, or a user's own link."""
    if rng.random() < 0.2:
        link = OWN_LINKS[one_of(rng, sorted(OWN_LINKS))][0]
        return likelihoods.Discretised(link, pieces=one_of(rng, (16, 64, 200)))
    kinds = (likelihoods.Probit, likelihoods.Logistic, likelihoods.SklearnLogistic)
    return one_of(rng, kinds)()


def _interpolating(rng: Rng, K: np.ndarray, m: int) -> np.ndarray:
    """Weights (m, N) that fit random values nearly exactly: large, of both signs."""
    noise = (float(np.abs(np.diag(K)).max()) or 1.0) * 10.0 ** rng.uniform(-10, -3)
    y = rng.normal(size=(len(K), m))
    found = np.linalg.lstsq(K + noise * np.eye(len(K)), y, rcond=None)[0].T
    return found if np.all(np.isfinite(found)) else np.zeros((m, len(K)))


def draw_posterior(rng: Rng, d: int, kind: str) -> Any:
    """A posterior: "regression", "targets", "binary", "classes" or "coupled"."""
    kernel = draw_kernel(rng, d)
    N = int(rng.integers(1, 11))
    Z = rng.normal(size=(N, d)).round(int(rng.integers(1, 6)))
    K = gram(kernel, Z)
    size = np.sqrt(max(float(np.diag(K).max()), 0.0)) or 1.0
    m = {"regression": 1, "binary": 1, "targets": int(rng.integers(2, 4))}.get(kind)
    m = int(rng.integers(2, 7)) if m is None else m
    options: dict[str, Any] = {"offset": rng.normal(size=m) * 0.3}
    weights = rng.normal(size=(m, N)) * _size(rng) / size / np.sqrt(N)
    weights *= one_of(rng, (1.0,) * 8 + (10.0, 60.0))
    if rng.random() < 0.15:
        weights = _interpolating(rng, K, m)
    if kind == "coupled":
        factor = draw_factor(rng, K, m)
        options |= {"coupled": True, "scale": one_of(rng, (1.0, 0.7))}
    else:
        options["scale"] = [_size(rng, 0.5, 2.0) for _ in range(m)]
        factor = draw_factor(rng, K)
        if m > 1 and rng.random() < 0.4:
            several = [draw_factor(rng, K, 2) for _ in range(m)]
            factor = (
                np.stack([A[0] for A in several])
                if len({A.shape for A in several}) == 1
                else factor
            )
        if rng.random() < 0.15:
            options["negative_factor"] = 0.3 * rng.normal(size=(2, N)) / size
    if rng.random() < 0.3:
        options["noise"] = rng.random(m) * 0.3
    apart = rng.spawn(1)[0]  # the other draws of a seed stay what they were
    if apart.random() < 0.25:
        options["slope"] = apart.normal(size=(m, d)) * one_of(apart, (1.0, 1.0, 0.1, 30.0, 1e-300))
    if kind == "binary":
        options["likelihood"] = draw_binary_likelihood(rng)
        options["classes"] = one_of(rng, (None, ("no", "yes"), (0, 1), (1, 0)))
    elif kind in {"classes", "coupled"}:
        options["likelihood"] = _class_likelihood(rng)
        options["classes"] = one_of(rng, (None, tuple("abcdef"[:m])))
    return gpcert.Posterior(kernel, Z, weights, factor, **options)


def _class_likelihood(rng: Rng) -> Any:
    if rng.random() < 0.6:
        return likelihoods.Softmax()
    return likelihoods.MultinomialProbit(one_of(rng, (1.0, 0.25)))


def draw_committee(rng: Rng, d: int) -> Any:
    """One-vs-rest or one-vs-one, kernels of each member's own."""
    m = int(rng.integers(2, 5))
    scheme = one_of(rng, ("one_vs_rest", "one_vs_one"))
    count = m if scheme == "one_vs_rest" else m * (m - 1) // 2
    members = tuple(draw_posterior(rng, d, "binary") for _ in range(count))
    return Committee(members, tuple("abcd"[:m]), scheme)


KINDS = ("regression", "targets", "binary", "classes", "coupled", "committee")
SHARES = (0.3, 0.08, 0.42, 0.08, 0.04, 0.08)


def draw_model(rng: Rng, d: int) -> tuple[str, Any]:
    """A model of any kind, and its kind."""
    kind = str(rng.choice(KINDS, p=SHARES))
    return kind, draw_committee(rng, d) if kind == "committee" else draw_posterior(rng, d, kind)
