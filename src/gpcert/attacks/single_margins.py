"""Margins of one number against a level, and of deviations from the prediction at x."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpcert.attacks.functions import mean_and_gradient, plain_function
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
        """`sign (pi - threshold)`."""
        value, gradient = self.probability(X)
        return self.signs[rows] * (value - self.threshold), self.signs[rows, None] * gradient

    def values(self, X: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both margins."""
        mean, variance = self.posterior.predict(X)
        value = np.asarray(self.likelihood.value(mean, variance))[:, 0]
        return self.signs[rows] * (value - self.threshold), self.signs[rows] * mean[:, 0]

    def shown(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The probability of the second class."""
        return self.posterior.prediction(X)[:, 0]

    def decided(self, X: np.ndarray) -> list[Any]:
        """The label of the class that is decided on."""
        return [self.posterior.labels[int(second)] for second in self._second(X)]

    def _second(self, X: np.ndarray) -> np.ndarray:
        if self.by_latent:
            return self.posterior.predict(X)[0][:, 0] > 0
        return self.posterior.prediction(X)[:, 0] > self.threshold


class LevelMargins(Margins):
    """Regression: `sign (mu - level)`."""

    quantity = "mean"

    def __init__(self, posterior: Outputs, X: np.ndarray, level: float) -> None:
        self.posterior, self.level = posterior, level
        self.signs = np.where(posterior.predict(X)[0][:, 0] > level, 1.0, -1.0)

    def latent(self, X: np.ndarray, rows: np.ndarray) -> Judged:
        """`sign (mu - level)`."""
        value, gradient = mean_and_gradient(self.posterior, X, 0)
        return self.signs[rows] * (value - self.level), self.signs[rows, None] * gradient

    predicted = latent

    def values(self, X: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same twice: the mean is the prediction."""
        margin = self.signs[rows] * (self.shown(X, rows) - self.level)
        return margin, margin

    def shown(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The mean."""
        return self.posterior.mean(X)[:, 0]

    def decided(self, X: np.ndarray) -> list[Any]:
        """Regression has no labels."""
        return [None] * len(X)


class DeviationMargins(Margins):
    """Regression: `delta - ||mu(x') - mu(x)||_p` over the outputs."""

    def __init__(self, posterior: Outputs, X: np.ndarray, delta: float, norm: float) -> None:
        self.posterior, self.delta, self.norm = posterior, delta, norm
        self.reference = self._means(X)
        self.quantity = "mean" if posterior.outputs == 1 else "deviation of the mean"

    def latent(self, X: np.ndarray, rows: np.ndarray) -> Judged:
        """`delta - deviation` and a (sub)gradient."""
        parts = [mean_and_gradient(self.posterior, X, c) for c in range(self.posterior.outputs)]
        gaps = np.stack([value for value, _ in parts], axis=1) - self.reference[rows]
        slopes = np.stack([gradient for _, gradient in parts], axis=1)
        value, weight = deviation_of(gaps, self.norm)
        return self.delta - value, -np.einsum("kc,kcd->kd", weight, slopes)

    predicted = latent

    def values(self, X: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same twice: the mean is the prediction."""
        margin = self.delta - deviation_of(self._means(X) - self.reference[rows], self.norm)[0]
        return margin, margin

    def shown(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The mean of one output; of several the size of the deviation."""
        if self.posterior.outputs == 1:
            return self._means(X)[:, 0]
        return self.delta - self.values(X, rows)[0]

    def decided(self, X: np.ndarray) -> list[Any]:
        """Regression has no labels."""
        return [None] * len(X)

    def first_gradients(
        self, X: np.ndarray, rows: np.ndarray, *, latent: bool
    ) -> Sequence[np.ndarray]:
        """At x itself the deviation has no slope: every mean may be raised or lowered."""
        slopes = [mean_and_gradient(self.posterior, X, c)[1] for c in range(self.posterior.outputs)]
        return [sign * slope for slope in slopes for sign in (1.0, -1.0)]

    def _means(self, X: np.ndarray) -> np.ndarray:
        return self.posterior.mean(X)
