"""What every inference method returns: the posterior in canonical form, evidence and gradient."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class EvidenceGradient:
    """The evidence's derivative in any hyper-parameter, as contractions with covariances.

    dense:   `dE = sum_ij square_ij dK_ij`, K the training covariance without observation noise;
             softmax: `square` is (m, N, N), one for each class's covariance, or (1, N, N) where
             the classes share one;
    sparse:  `dE = sum inducing * dK(Z, Z) + sum cross * dK(X, Z) + sum diagonal * d diag k(X, X)`;
    noise:   `dE / d log(noise variance)`, exact regression only.

    So no array of shape (N, N, parameters) is ever formed. A part that does not apply is None.
    """

    square: np.ndarray | None = None
    inducing: np.ndarray | None = None
    cross: np.ndarray | None = None
    diagonal: np.ndarray | None = None
    noise: float | None = None


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted latent posterior, `mean = k(x, Z) t`, `variance = k(x, x) - |A k(Z, x)|^2`.

    `evidence`: log marginal likelihood, its approximation or bound; `weights` t: (N,) or (m, N);
    `factor` A: (r, N) with `S = A^T A`; softmax: (m, r, N) with `S_cc' = A_c^T A_c'` (r is shared,
    so the outputs are coupled), or None where only the evidence was asked for; `coupling` C:
    (m, r, N) where many classes are coupled by it, `S_cc' = [c = c'] A_c^T A_c - C_c^T C_c'`;
    `points` Z, where they are not the training points; `jitter`: what was added to the covariance's
    diagonal (part of the model); `start`: what the next call may take as its `start`.
    """

    evidence: float
    weights: np.ndarray
    factor: np.ndarray | None
    coupling: np.ndarray | None = None
    gradient: EvidenceGradient = field(default_factory=EvidenceGradient)
    points: np.ndarray | None = None
    converged: bool = True
    iterations: int = 0
    jitter: float = 0.0
    start: Any = None
