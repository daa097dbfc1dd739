"""Weighted sums of means: differences of outputs, and of one function at two places."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpcert.numerics.arrays import PerCell, PerRow, namespace
from gpcert.quantities.compound import Compound, Ends, Values, Weights, row_sum
from gpcert.quantities.output import Mean


@dataclass(frozen=True)
class WeightedMeans(Compound):
    """`sum_c w_c mu_c(x)`, bounded as one function.

    >>> WeightedMeans((1.0, -1.0)).negative
    WeightedMeans(weights=(-1.0, 1.0))
    """

    weights: Weights

    @property
    def parts(self) -> tuple[Mean, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The means."""
        return tuple(Mean(c, 1) for c in range(len(self.weights)))

    @property
    def negative(self) -> WeightedMeans:
        """With the other signs."""
        return replace(self, weights=tuple(-w for w in self.weights))

    def lowest(self, low: Ends, high: Ends) -> PerCell:
        """Each mean on the side of its weight."""
        if not any(self.weights):
            return 0.0 * namespace(low[0]).zeros_like(low[0])
        return row_sum(self.weights, low, high)

    def highest(self, low: Ends, high: Ends) -> PerCell:
        """Minus the lowest of the negative."""
        return -self.negative.lowest(low, high)

    def value(self, y: Values) -> PerRow:
        """The sum."""
        return y @ self.weights

    def slopes(self, y: Values) -> Values:
        """The weights."""
        return 0.0 * y + self.weights
