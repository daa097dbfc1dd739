"""The law of independent classes that is nearest to a given one, up to a shift of all of them.

Class probabilities do not see a shift that all latent values share, and the likelihood does not
inform it: the posterior covariance of coupled classes is nearly a diagonal plus a multiple of
`1 1^T`. Any variances are sound; the closer, the less is left to the expansion.

Proofs: docs/mathematics.md, statement 10.13.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from gpcert.arrays import Array, PerCellAndClass, namespace

LEAST_VARIANCE = 1e-2
"""Smallest variance of a class: derivatives are averages over it."""

LEAST_PART = 1e-8
"""The same relative to the largest, so that whitening stays well conditioned."""

RIDGE = 1e-9
"""Keeps the equations regular where one class has next to no variance."""

ROUNDS = 3
"""Least-squares steps in the metric of the law found before; two are enough where it is near."""


def nearest_variances(V: Annotated[Array, "B n n"]) -> PerCellAndClass:
    """(B, m): variances D of independent classes whose differences `f_k - f_0` have a covariance
    near V (B, n, n), in the Frobenius norm of its own metric.

    With C the matrix of the differences, `C^T (C D C^T)^-1 C = D^-1/2 Pi D^-1/2` and
    `Pi = I - u u^T`, u the unit vector along `D^-1/2 1`. The squared distance of a difference E is
    `trace(Pi E' Pi E')`, `E' = D^-1/2 E D^-1/2`; a change of D by `D x` makes it least where
    `(Pi * Pi) x = diag(Pi E' Pi)`, products entry by entry.
    """
    xp = namespace(V)
    m = V.shape[1] + 1
    full = _with_first(V)
    one = xp.asarray(np.eye(m), device=V.device)
    D = xp.ones_like(full[:, 0])
    for _ in range(ROUNDS):
        scale = 1.0 / xp.sqrt(D)
        u = scale / xp.sqrt(xp.sum(scale * scale, axis=1, keepdims=True))
        Pi = one - u[:, :, None] * u[:, None, :]
        E = scale[:, :, None] * full * scale[:, None, :] - one
        right = xp.linalg.diagonal(Pi @ E @ Pi)
        change = xp.linalg.solve(Pi * Pi + RIDGE * one, right[:, :, None])[:, :, 0]
        D = _positive(D * (1.0 + change))
    return D


def _with_first(V: Array) -> Array:
    """(B, m, m): the covariance with class 0, of which nothing is known, at 0."""
    xp = namespace(V)
    wide = xp.concat([0.0 * V[:, :, :1], V], axis=2)
    return xp.concat([0.0 * wide[:, :1], wide], axis=1)


def _positive(D: Array) -> Array:
    """Raised to the smallest that is allowed; 1 where something is not a number."""
    xp = namespace(D)
    known = xp.all(xp.isfinite(D), axis=1)[:, None]
    D = xp.where(known, D, xp.ones_like(D))
    largest = xp.max(D, axis=1, keepdims=True)
    least = xp.maximum(LEAST_PART * largest, xp.full_like(largest, LEAST_VARIANCE))
    return xp.maximum(D, least + 0.0 * D)
