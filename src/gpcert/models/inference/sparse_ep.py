"""Sparse expectation propagation for two classes: FIC, DTC and VAR, in O(N m^2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpcert.errors import InputError
from gpcert.models.inference.ep import Sweep, propagate
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

    def at(sites: np.ndarray) -> Sweep:
        state = SparsePosterior.of(prior, sites)
        moments = state.moments(y, link)
        found = state.evidence(moments), state.mismatch(moments), state.target(moments)
        return Sweep(state, *found)

    (state, evidence, *_), sites, converged, sweep = propagate(
        f"sparse EP ({kind})", _first_sites(prior, y, link, start), at, TOLERANCE, max_sweeps
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
