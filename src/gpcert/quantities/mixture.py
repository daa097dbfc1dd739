"""Mean and spread of a mixture of models, of the members' means and variances.

Proofs: docs/mathematics.md, statement 7.9.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from gpcert.numerics.arrays import Array, PerCell, PerRow, namespace
from gpcert.numerics.rounding import down, nonnegative, up, up_float
from gpcert.quantities.compound import Compound, Ends, Values, Weights, row_sum
from gpcert.quantities.output import Mean, Variance


@dataclass(frozen=True)
class MixtureMoment(Compound):
    """`mean m + std s + variance s^2` of a mixture with these weights, m its mean and s^2 its
    variance, `sum_k w_k v_k + sum_(j<k) w_j w_k (mu_j - mu_k)^2`; the factors may have any sign.

    >>> moment = MixtureMoment((0.5, 0.5), mean=1.0, std=2.0)
    >>> moment.value(np.array([[0.0, 2.0, 1.0, 1.0]])).round(3)
    array([3.828])
    """

    weights: Weights
    mean: float = 0.0
    std: float = 0.0
    variance: float = 0.0

    @property
    def parts(self) -> tuple[Mean | Variance, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """All means, then all variances."""
        count = range(len(self.weights))
        return (*(Mean(k, 1) for k in count), *(Variance(k, 1) for k in count))

    @property
    def negative(self) -> MixtureMoment:
        """With the other signs."""
        return replace(self, mean=-self.mean, std=-self.std, variance=-self.variance)

    @property
    def known(self) -> tuple[float, float]:
        """No spread is negative."""
        if self.mean:
            return -math.inf, math.inf
        signs = [factor for factor in (self.std, self.variance) if factor]
        low = 0.0 if all(factor > 0 for factor in signs) else -math.inf
        return low, 0.0 if all(factor < 0 for factor in signs) else math.inf

    def lowest(self, low: Ends, high: Ends) -> PerCell:
        """Every term on the side of its factor, products and sums rounded down."""
        K = len(self.weights)
        means = [low[k] for k in range(K)], [high[k] for k in range(K)]
        xp = namespace(means[0][0])
        total = xp.zeros_like(means[0][0])
        if self.mean:
            least = row_sum(self.weights, *means)
            most = -row_sum(tuple(-w for w in self.weights), *means)
            total = total + down(self.mean * (least if self.mean > 0 else most), 1)
        for factor, rooted in ((self.std, True), (self.variance, False)):
            if not factor:
                continue
            ends = [low[K + k] for k in range(K)], [high[K + k] for k in range(K)]
            side = self._least(means, ends[0]) if factor > 0 else self._most(means, ends[1])
            if rooted:
                root = xp.sqrt(nonnegative(side))
                side = nonnegative(down(root, 1)) if factor > 0 else up(root, 1)
            total = down(total + down(factor * side, 1), 1)
        return xp.where(xp.isnan(total), xp.full_like(total, -math.inf), total)

    def highest(self, low: Ends, high: Ends) -> PerCell:
        """Minus the lowest of the negative."""
        return -self.negative.lowest(low, high)

    def _least(self, means: tuple[list[Array], list[Array]], variances: list[Array]) -> PerCell:
        """Lower bound of the variance: the gaps of the means' ranges for their differences."""
        low, high = means
        xp = namespace(low[0])
        total = row_sum(self.weights, variances, variances)
        for j, wj in enumerate(self.weights):
            for k in range(j):
                gap = xp.maximum(down(low[j] - high[k], 1), down(low[k] - high[j], 1))
                gap = nonnegative(gap)
                total = down(total + down(wj * self.weights[k] * (gap * gap), 4), 1)
        return total

    def _most(self, means: tuple[list[Array], list[Array]], variances: list[Array]) -> PerCell:
        """Upper bound: `sum w_k v_k + W sum w_k (mu_k - c)^2` for any float c, W the weights' sum;
        least at the mean."""
        low, high = means
        xp = namespace(low[0])
        middles = [0.5 * a + 0.5 * b for a, b in zip(low, high, strict=True)]
        c = sum(w * m for w, m in zip(self.weights, middles, strict=True))
        c = xp.where(xp.isfinite(c), c, xp.zeros_like(c))
        total = -row_sum(tuple(-w for w in self.weights), variances, variances)
        apart, whole = xp.zeros_like(c), up_float(math.fsum(self.weights), 1)
        for w, a, b in zip(self.weights, low, high, strict=True):
            far = xp.maximum(up(b - c, 1), up(c - a, 1))
            apart = up(apart + up(w * (far * far), 3), 1)
        return up(total + up(whole * apart, 1), 1)

    def value(self, y: Values) -> PerRow:
        """In plain floating point."""
        m, variance = self._moments(y)
        return self.mean * m + self.std * np.sqrt(variance) + self.variance * variance

    def slopes(self, y: Values) -> Values:
        """By the chain rule."""
        K = len(self.weights)
        m, variance = self._moments(y)
        root = np.sqrt(variance)
        outer = self.variance + np.where(root > 0, 0.5 * self.std / np.where(root > 0, root, 1), 0)
        w = np.asarray(self.weights)
        by_mean = w * (self.mean + 2.0 * outer[:, None] * (y[:, :K] - m[:, None]))
        return np.concatenate([by_mean, w * outer[:, None]], axis=1)

    def _moments(self, y: Values) -> tuple[np.ndarray, np.ndarray]:
        K, w = len(self.weights), np.asarray(self.weights)
        means, variances = np.asarray(y)[:, :K], np.asarray(y)[:, K:]
        m = means @ w
        return m, np.maximum(variances @ w + np.square(means - m[:, None]) @ w, 0.0)
