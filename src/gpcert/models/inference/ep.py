"""Expectation propagation for two classes (GPML Alg. 3.5, 3.6 and 5.2), with parallel updates."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gpcert.model.posterior_parts import noise_of_sites
from gpcert.models.inference import fit as fitting
from gpcert.models.inference.fit import EvidenceGradient, Fit
from gpcert.models.links import Link, Moments
from gpcert.numerics.rounding import U
from gpcert.numerics.triangular import square, triangular_inverse

_TRUSTED = 1e-6
"""`precision * variance = 1 - (B^-1)_ii` below this has lost ten of its sixteen digits: such
variances are computed from K itself."""

_SMALLEST_DAMPING = 1.0 / 16.0


@dataclass(frozen=True, eq=False)
class _State:
    """The Gaussian for the current sites, `factor` = L^-1 T^1/2, and its marginals."""

    factor: np.ndarray
    precision: np.ndarray
    half_log_determinant: float
    weights: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    cavity_mean: np.ndarray
    cavity_variance: np.ndarray
    growth: np.ndarray


def ep(
    K: Any,
    y: Any,
    link: Link,
    start: Any = None,
    *,
    tolerance: float = 1e-8,
    max_sweeps: int = 200,
) -> Fit:
    """Gaussian whose marginals match the moments of its tilted laws, y in {-1, +1}.

    Sites `exp(shift f - precision f^2 / 2)`, T their precisions, `B = I + T^1/2 K T^1/2 = L L^T`:

        t = shift - T mean,   A = L^-1 T^1/2,   dE = sum_ij W_ij dK_ij,   W = (t t^T - A^T A) / 2

    (the sites' own change does not count: the evidence is stationary in them, Seeger 2005).
    A sweep updates all sites at once and costs two thirds of N^3; a step is damped where the
    mismatch of the moments has grown. Converged: tilted and Gaussian means differ by at most
    `tolerance` standard deviations, variances by `tolerance` of themselves, and the evidence has
    settled, all up to the rounding of `K t`. Log-concave links never have a site of negative
    precision. `start`: sites of a fit to a similar K, (2, N); only the number of sweeps depends
    on it.
    """
    y = np.asarray(y, dtype=np.float64)
    K = fitting.checked_covariance(K, (len(y), len(y)))

    def fit(covariance: np.ndarray, jitter: float) -> Fit:
        largest = float(np.diag(covariance).max())

        def at(sites: np.ndarray) -> Sweep:
            state = _posterior(covariance, sites)
            moments = link.moments(y, state.cavity_mean, state.cavity_variance)
            # of `mean = K weights`, the largest of all where K is nearly singular and large
            rounding = 16.0 * U * largest * float(np.abs(state.weights).sum())
            return Sweep.of(sites, state, moments, rounding=rounding)

        state, outcome = propagate("EP", len(y), start, at, tolerance, max_sweeps)
        W = 0.5 * (np.outer(state.weights, state.weights) - square(state.factor))
        gradient = EvidenceGradient(square=W)
        noise = noise_of_sites(state.precision)
        return Fit(
            state.weights, state.factor, gradient=gradient, jitter=jitter, noise=noise, **outcome
        )

    return fitting.with_jitter(K, fit)


class Sweep(NamedTuple):
    """What is known at some sites: the Gaussian, its evidence, the largest difference of tilted and
    Gaussian marginals in the latter's own units, the sites that would match them, and what rounding
    leaves: of the evidence, and of means in units of the smallest deviation."""

    state: Any
    evidence: float
    mismatch: float
    target: np.ndarray
    rounding: float

    @staticmethod
    def of(
        sites: np.ndarray,
        state: Any,
        moments: Moments,
        independent: Any = 0.0,
        rounding: float = 0.0,
    ) -> Sweep:
        """From the moments of the tilted laws; `independent`: see `Moments.sites`.

        The evidence is GPML Eq. 3.65 with every division by a site's precision cancelled by hand:

        E = sum log Z_i + sum log(1 + p v) / 2 - log|B| / 2 + s^T mean / 2
            + sum (p m^2 - 2 m s - s^2 v) / (1 + p v) / 2,

        p, s precision and shift of the sites, m, v mean and variance of the cavities.
        """
        (p, s), growth = sites, state.growth
        m, v = state.cavity_mean, state.cavity_variance
        evidence = float(
            moments.log_z.sum()
            + 0.5 * np.log(growth).sum()
            - state.half_log_determinant
            + 0.5 * (s @ state.mean)
            + 0.5 * ((p * m * m - 2.0 * m * s - s * s * v) / growth).sum()
        )
        of_mean = np.sqrt(v * growth) * np.abs(state.weights - moments.slope)
        of_variance = np.abs((moments.shrinkage + independent * moments.curvature) * growth - 1.0)
        mismatch = float(np.maximum(of_mean, of_variance).max())
        return Sweep(state, evidence, mismatch, moments.sites(m, independent), rounding)


def propagate(
    label: str,
    points: int,
    start: Any,
    at: Callable[[np.ndarray], Sweep],
    tolerance: float,
    max_sweeps: int,
) -> tuple[Any, dict[str, Any]]:
    """Steps towards the target, damped where the mismatch has grown, until both it and the evidence
    have settled: the Gaussian at the last sites, and fields of the `Fit`.

    Sites (2, points) and targets have precisions >= 0, so have their means. The first ones are
    `start`, or, where that is not of their shape, those of the prior's own marginals.
    """
    given = start is not None and np.shape(start) == (2, points)
    sites = np.array(start, dtype=np.float64) if given else at(np.zeros((2, points))).target
    damping, mismatch, previous, sweep = 1.0, np.inf, -np.inf, 1
    while True:
        now = at(sites)
        # a warm start may be there at once: then there is no earlier evidence to compare with
        asked = tolerance * (1.0 + abs(now.evidence)) + now.rounding
        settled = sweep == 1 or abs(now.evidence - previous) <= asked
        spread = float(np.sqrt(now.state.variance.min())) if now.rounding else 1.0
        converged = now.mismatch <= tolerance + now.rounding / spread and settled
        if converged or sweep == max_sweeps:
            break
        worse = now.mismatch > mismatch
        damping = max(0.5 * damping, _SMALLEST_DAMPING) if worse else min(1.2 * damping, 1.0)
        sites = sites + damping * (now.target - sites)
        mismatch, previous, sweep = now.mismatch, now.evidence, sweep + 1
    if not converged:
        change = now.evidence - previous
        warnings.warn(
            f"{label}: moments still differ by {now.mismatch:.3g} (tolerance {tolerance:.3g}) "
            f"after {sweep} sweeps, evidence {now.evidence:.6g}, last change {change:.3g}",
            ConvergenceWarning,
            stacklevel=5,
        )
    outcome = {"evidence": now.evidence, "converged": converged, "iterations": sweep}
    return now.state, outcome | {"start": sites}


def _posterior(K: np.ndarray, sites: np.ndarray) -> _State:
    """Marginals for the given sites; with `b = diag B^-1 = 1 - precision * variance`:

    variance = (1 - b) / precision and cavity variance = variance / b, without cancellation in b.
    """
    precision, shift = sites
    root = np.sqrt(precision)
    L = fitting.scaled_factor(K, root)
    inverse = triangular_inverse(L)
    b = np.einsum("ij,ij->j", inverse, inverse)
    explained = 1.0 - b
    inverse *= root

    weights = shift - inverse.T @ (inverse @ (K @ shift))
    mean = K @ weights
    variance = np.empty_like(b)
    weak = explained < _TRUSTED
    variance[~weak] = explained[~weak] / precision[~weak]
    if np.any(weak):
        V = inverse @ K[:, weak]
        direct = np.diag(K)[weak] - np.einsum("ij,ij->j", V, V)
        variance[weak] = np.maximum(direct, np.finfo(float).tiny)
        b[weak] = np.maximum(1.0 - precision[weak] * variance[weak], b[weak])
    cavity_variance = variance / b
    return _State(
        factor=inverse,
        precision=precision,
        half_log_determinant=float(np.log(np.diag(L)).sum()),
        weights=weights,
        mean=mean,
        variance=variance,
        cavity_mean=mean - cavity_variance * weights,
        cavity_variance=cavity_variance,
        growth=1.0 + precision * cavity_variance,
    )
