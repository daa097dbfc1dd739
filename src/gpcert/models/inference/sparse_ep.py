"""Sparse expectation propagation for two classes: FIC, DTC and VAR, in O(N m^2)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gpcert.errors import InputError
from gpcert.models.inference.ep import Mixing
from gpcert.models.inference.record import Fit
from gpcert.models.inference.sparse_gaussian import SparsePosterior, SparsePrior
from gpcert.models.inference.sparse_gradient import evidence_gradient
from gpcert.models.links import Link

TOLERANCE = 1e-8


def sparse_ep(
    K_uu: Any,
    K_fu: Any,
    k_diag: Any,
    y: Any,
    link: Link,
    kind: str,
    start: Any = None,
    *,
    max_sweeps: int = 200,
) -> Fit:
    """EP for y in {-1, +1} (N,) with m inducing points Z: K(Z, Z), K(X, Z), diagonal k(x, x).

    With `Q = K_fu (K_uu + jitter)^-1 K_uf`, the latent values at X have the prior covariance

        fic:  Q + diag(k - Q), what EP maximises is its approximation E of the log evidence
              (generalised FITC; Naish-Guzman & Holden 2008);
        dtc:  Q, with the same E (deterministic training conditional);
        var:  Q, with `E - sum_i precision_i (k_ii - Q_ii) / 2` at EP's own sites: Titsias's (2009)
              trace term for the Gaussian likelihood that the sites stand for, as in GPstuff. It
              is a bound of the log evidence for a Gaussian likelihood only.

    All three predict with k(x, x) - Q(x, x) added to the variance (GPstuff's DTC and VAR subtract
    a term there that should be added). The sites are those of `SparsePosterior`, updated all at
    once; a step is damped where the mismatch of the moments has grown. Converged: tilted and
    Gaussian means differ by at most 1e-8 standard deviations, variances by 1e-8 of themselves, and
    the evidence has settled. `start`: sites of a similar fit, (2, N); only the number of sweeps
    depends on it. The weights and the factor of the result belong to Z.
    """
    prior = SparsePrior.of(kind, K_uu, K_fu, k_diag)
    y = np.asarray(y, dtype=np.float64)
    if y.shape != prior.residual.shape:
        raise InputError(f"y: expected {len(prior.residual)} targets, got shape {y.shape}")
    return _sparse_ep(prior, y, link, kind, start, max_sweeps)


def _sparse_ep(
    prior: SparsePrior, y: np.ndarray, link: Link, kind: str, start: Any, max_sweeps: int
) -> Fit:
    sites = _first_sites(prior, y, link, start)
    mixing = Mixing()
    converged, mismatch, evidence, previous, sweep = False, np.inf, -np.inf, -np.inf, 0
    while True:
        sweep += 1
        state = SparsePosterior.of(prior, sites)
        moments = state.moments(y, link)
        previous, evidence = evidence, state.evidence(moments)
        mismatch = state.mismatch(moments)
        settled = abs(evidence - previous) <= TOLERANCE * (1.0 + abs(evidence)) or sweep == 1
        converged = mismatch <= TOLERANCE and settled
        if converged or sweep >= max_sweeps:
            break
        sites = mixing.next(sites, state.target(moments), mismatch)
    if not converged:
        warnings.warn(
            f"sparse EP ({kind}): moments still differ by {mismatch:.3g} (tolerance "
            f"{TOLERANCE:.3g}) after {sweep} sweeps, evidence {evidence:.6g}, last change "
            f"{evidence - previous:.3g}",
            ConvergenceWarning,
            stacklevel=3,
        )
    if kind == "var":
        evidence -= 0.5 * float(state.precision @ prior.residual)
    weights, factor = state.canonical()
    return Fit(
        evidence=evidence,
        weights=weights,
        factor=factor,
        gradient=evidence_gradient(state, y, link),
        converged=converged,
        iterations=sweep,
        jitter=prior.jitter,
        start=sites,
    )


def _first_sites(prior: SparsePrior, y: np.ndarray, link: Link, start: Any) -> np.ndarray:
    """The start, or the sites that the prior's own marginals give."""
    if start is not None and np.shape(start) == (2, len(y)):
        return np.array(start, dtype=np.float64)
    nothing = SparsePosterior.of(prior, np.zeros((2, len(y))))
    return nothing.target(nothing.moments(y, link))
