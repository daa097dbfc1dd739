"""Margins of one number against a level, and of deviations from the prediction at x."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpcert.attacks.functions import mean_and_gradient, means_and_gradients, plain_function
from gpcert.attacks.margins import Judged, Margins
from gpcert.likelihoods import ScalarLikelihood
from gpcert.posterior import Posterior
from gpcert.quantities import Probability
from gpcert.quantities.deviation import deviation_of
from gpcert.several import Outputs


class BinaryMargins(Margins):
    """Two classes: `sign (pi - threshold)`, by default the sign of the latent mean.

    Of a model that is a mean alone pi is that mean, and the threshold 0 by default.
    """

    def __init__(self, posterior: Posterior, X: np.ndarray, threshold: float | None) -> None:
        assert isinstance(posterior.likelihood, ScalarLikelihood)
        self.posterior, self.likelihood = posterior, posterior.likelihood
        self.by_latent = threshold is None and self.likelihood.symmetric
        probable = self.likelihood.has_variance
        default = 0.5 if probable else 0.0
        self.threshold = default if threshold is None else threshold
        self.quantity = (
            f"probability of class {posterior.labels[1]}" if probable else "decision function"
        )
        self.signs = np.where(self._second(X), 1.0, -1.0)
        self.probability = plain_function(posterior, Probability(self.likelihood, 0, 1))

    def latent(self, X: np.ndarray, rows: np.ndarray) -> Judged:
        """`sign mu`."""
        value, gradient = mean_and_gradient(self.posterior, X, 0)
        return self.signs[rows] * value, self.signs[rows, None] * gradient

    def predicted(self, X: np.ndarray, rows: np.ndarray) -> Judged:
        value, gradient = self.probability(X)
        return self.signs[rows] * (value - self.threshold), self.signs[rows, None] * gradient

    def values(self, X: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, variance = self.posterior.predict(X)
        value = np.asarray(self.likelihood.value(mean, variance))[:, 0]
        return self.signs[rows] * (value - self.threshold), self.signs[rows] * mean[:, 0]

    def shown(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return self.posterior.prediction(X)[:, 0]

    def decided(self, X: np.ndarray) -> list[Any]:
        return [self.posterior.labels[int(second)] for second in self._second(X)]

    def _second(self, X: np.ndarray) -> np.ndarray:
        if self.by_latent:
            return self.posterior.predict(X)[0][:, 0] > 0
        return self.posterior.prediction(X)[:, 0] > self.threshold


class RegressionMargins(Margins):
    """Of means, which are latent and predicted alike; regression has no labels."""

    posterior: Outputs
    quantity = "mean"

    @abstractmethod
    def judged(self, means: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(k,) the margin from the means (k, m)."""

    def predicted(self, X: np.ndarray, rows: np.ndarray) -> Judged:
        return self.latent(X, rows)

    def values(self, X: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same twice: the mean is the prediction."""
        margin = self.judged(self.posterior.mean(X), rows)
        return margin, margin

    def shown(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return self.posterior.mean(X)[:, 0]

    def decided(self, X: np.ndarray) -> list[Any]:
        return [None] * len(X)


class LevelMargins(RegressionMargins):
    """Regression: `sign (mu - level)`."""

    def __init__(self, posterior: Outputs, X: np.ndarray, level: float) -> None:
        self.posterior, self.level = posterior, level
        self.signs = np.where(posterior.predict(X)[0][:, 0] > level, 1.0, -1.0)

    def judged(self, means: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return self.signs[rows] * (means[:, 0] - self.level)

    def latent(self, X: np.ndarray, rows: np.ndarray) -> Judged:
        value, gradient = mean_and_gradient(self.posterior, X, 0)
        return self.signs[rows] * (value - self.level), self.signs[rows, None] * gradient


class DeviationMargins(RegressionMargins):
    """Regression: `delta - ||mu(x') - mu(x)||_p` over the outputs."""

    def __init__(self, posterior: Outputs, X: np.ndarray, delta: float, norm: float) -> None:
        self.posterior, self.delta, self.norm = posterior, delta, norm
        self.reference = posterior.mean(X)
        self.quantity = "mean" if posterior.outputs == 1 else "deviation of the mean"

    def judged(self, means: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return self.delta - deviation_of(means - self.reference[rows], self.norm)[0]

    def latent(self, X: np.ndarray, rows: np.ndarray) -> Judged:
        means, slopes = means_and_gradients(self.posterior, X)
        value, weight = deviation_of(means - self.reference[rows], self.norm)
        return self.delta - value, -np.einsum("kc,kcd->kd", weight, slopes)

    def shown(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The mean of one output; of several the size of the deviation."""
        one = self.posterior.outputs == 1
        return super().shown(X, rows) if one else self.delta - self.values(X, rows)[0]

    def first_gradients(
        self, X: np.ndarray, rows: np.ndarray, *, latent: bool
    ) -> Sequence[np.ndarray]:
        """At x itself the deviation has no slope: every mean may be raised or lowered."""
        slopes = means_and_gradients(self.posterior, X)[1]
        return [sign * slopes[:, c] for c in range(slopes.shape[1]) for sign in (1.0, -1.0)]
