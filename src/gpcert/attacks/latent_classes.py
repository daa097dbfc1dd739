"""Latent means and covariances of several outputs at many points, and gradients of their sums."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpcert.attacks.functions import cross_gradient, diagonal_gradient
from gpcert.posterior import Posterior
from gpcert.several import Outputs, SeparateOutputs


class LatentClasses:
    """`mean` (k, m) and `covariance` (k, m, m) of the latent outputs at X (k, d).

    With `q_c = A_c k(Z, x)` the covariance of coupled outputs is
    `s_c s_c' (1(c = c') k(x, x) - q_c.q_c') + 1(c = c') noise_c`; where a C couples them, it is
    `w_c.w_c'`, w_c = C_c k(Z, x), in place of `-q_c.q_c'` for c != c'. Outputs that are not coupled
    are independent, and may have the part with C as well.

    >>> from gpcert.kernels import SquaredExponential
    >>> from gpcert.likelihoods import Softmax
    >>> p = Posterior(SquaredExponential(1.0), [[0.0]], [[1.0], [-1.0]], likelihood=Softmax())
    >>> LatentClasses(p, np.zeros((1, 1))).mean.tolist()
    [[1.0, -1.0]]
    """

    def __init__(self, posterior: Posterior, X: np.ndarray) -> None:
        self.posterior, self.X = posterior, X
        K = posterior.cross(X)
        self.mean = posterior.mean_from(X, K)
        m = posterior.outputs
        factors = [posterior.factors_of(c) for c in range(posterior.precision_count)]
        self.explained = [K @ A.T for A, _ in factors]
        self.added = [K @ C.T for _, C in factors]
        prior = posterior.prior(X)
        cov = np.zeros((len(X), m, m))
        for c in range(m):
            for sign, part in ((-1.0, 0), (1.0, 1)):
                for other in self._met(c, part):
                    both = self._of(c)[part], self._of(other)[part]
                    cov[:, c, other] += sign * np.einsum("kr,kr->k", *both)
            cov[:, c, c] = np.maximum(cov[:, c, c] + prior, 0.0)
        scale = posterior.scale
        self.covariance = scale[:, None] * cov * scale + np.diag(posterior.noise)

    def gradient(self, by_mean: np.ndarray, by_covariance: np.ndarray) -> np.ndarray:
        """(k, d) of `sum_c by_mean_c mean_c + sum_cc' by_covariance_cc' covariance_cc'`.

        The factors are (k, m) and (k, m, m), symmetric.
        """
        posterior, X = self.posterior, self.X
        factors = posterior.scale * by_mean
        weights = factors @ posterior.weights
        by_scaled = by_covariance * posterior.scale[:, None] * posterior.scale
        prior = np.zeros(len(X))
        for c in range(posterior.outputs):
            for sign, part in ((-2.0, 0), (2.0, 1)):
                others = self._met(c, part)
                own = sum(by_scaled[:, c, other, None] * self._of(other)[part] for other in others)
                weights = weights + sign * own @ posterior.factors_of(c)[part]
            prior += 2.0 * by_scaled[:, c, c]
        gradient = cross_gradient(posterior, X, weights, factors @ posterior.slope)
        # of k(x, x): both arguments move, alike by symmetry
        return gradient + diagonal_gradient(posterior, X) * prior[:, None]

    def _met(self, c: int, part: int) -> Sequence[int]:
        """The outputs whose products with c count: of A (part 0), or of C (part 1)."""
        joint = 1 if self.posterior.negative_factor.size else 0
        coupled = self.posterior.coupled and part == joint
        return range(self.posterior.outputs) if coupled else (c,)

    def _of(self, c: int) -> tuple[np.ndarray, np.ndarray]:
        place = c if len(self.explained) > 1 else 0
        return self.explained[place], self.added[place]


class SeparateClasses:
    """The same for independent outputs with kernels of their own."""

    def __init__(self, model: SeparateOutputs, X: np.ndarray) -> None:
        self.parts = [LatentClasses(member, X) for member in model.members]
        self.mean = np.concatenate([part.mean for part in self.parts], axis=1)
        variances = np.concatenate([part.covariance[:, 0] for part in self.parts], axis=1)
        self.covariance = variances[:, :, None] * np.eye(len(self.parts))

    def gradient(self, by_mean: np.ndarray, by_covariance: np.ndarray) -> np.ndarray:
        """The sum of the outputs' own."""
        gradients = []
        for j, part in enumerate(self.parts):
            own = slice(j, j + 1)
            gradients.append(part.gradient(by_mean[:, own], by_covariance[:, own, own]))
        return np.sum(gradients, axis=0)


def latent_classes(model: Outputs, X: np.ndarray) -> LatentClasses | SeparateClasses:
    """Of one posterior, or of separate outputs."""
    separate = isinstance(model, SeparateOutputs)
    return SeparateClasses(model, X) if separate else LatentClasses(model, X)
