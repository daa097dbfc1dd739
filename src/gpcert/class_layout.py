"""Which outputs of the searched posterior make up the latent differences and their covariance.

Proofs: docs/mathematics.md, statements 9.1 and 10.1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpcert.likelihoods import ClassLikelihood
from gpcert.posterior import Posterior


@dataclass(frozen=True, eq=False)
class ClassLayout:
    """Latent differences `d_k = f_k - f_0`, k = 1..n, and their covariance V, from outputs.

    The variance of a difference of two classes is a sum of outputs' variances y_j:

        mean of f_l - f_k = sum of sign * mean_j,     var(f_l - f_k) = sum of y_j,

    j and sign from `pair(k, l)`. With `D_kl = var(f_l - f_k)` and d_0 = 0 the covariance is
    `V_kl = (D_k0 + D_l0 - D_kl) / 2`, so `V = sum_j y_j matrices_j`.

    Coupled outputs: the searched posterior is `Posterior.differences`, one output a pair.
    Independent outputs: the posterior itself, `D_kl = v_k + v_l`.
    """

    classes: int
    independent: bool

    @property
    def n(self) -> int:
        """Number of differences."""
        return self.classes - 1

    @property
    def outputs(self) -> int:
        """Number of outputs of the searched posterior."""
        return self.classes if self.independent else self.classes * self.n // 2

    def pair(self, first: int, second: int) -> tuple[tuple[int, int], ...]:
        """Outputs and signs whose sum is `f_second - f_first`.

        >>> ClassLayout(3, independent=True).pair(0, 2)
        ((2, 1), (0, -1))
        >>> ClassLayout(3, independent=False).pair(2, 1)
        ((2, -1),)
        """
        if self.independent:
            return ((second, 1), (first, -1))
        low, high = min(first, second), max(first, second)
        index = low * self.classes - low * (low + 1) // 2 + high - low - 1
        return ((index, 1 if first < second else -1),)

    @property
    def matrices(self) -> np.ndarray:
        """(J, n, n): what every output's variance contributes to V."""
        m = self.classes
        D = np.zeros((self.outputs, m, m))
        for k in range(m):
            for other in range(m):
                if other != k:
                    for j, _ in self.pair(k, other):
                        D[j, k, other] = 1.0
        own = D[:, 1:, 0]
        return 0.5 * (own[:, :, None] + own[:, None, :] - D[:, 1:, 1:])

    @property
    def ranks(self) -> np.ndarray:
        """(J,): ranks of `matrices`, or more: 1 for independent outputs, else at most 2."""
        return np.full(self.outputs, 1.0 if self.independent else 2.0)


def class_layout(posterior: Posterior) -> tuple[ClassLayout, Posterior]:
    """The layout of a classifier of several classes, and the posterior that is searched."""
    return ClassLayout(posterior.outputs, not posterior.coupled), searched(posterior)


def searched(posterior: Posterior) -> Posterior:
    """What is searched for a decision: the differences of coupled classes, or the posterior."""
    several = isinstance(posterior.likelihood, ClassLikelihood)
    return posterior.differences if several and posterior.coupled else posterior
