"""Weighted sums of means: differences of outputs, and of one function at two places; whether
several means lie on one side of a threshold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpcert.numerics.arrays import Array, PerCell, PerRow, least_of, namespace
from gpcert.numerics.rounding import down, up
from gpcert.quantities.compound import Compound, Ends, LeastOfSums, Values, Weights, row_sum
from gpcert.quantities.output import Mean


def _ends(low: Ends, high: Ends) -> tuple[Array, Array, Any]:
    """Both ends (B, k), and their namespace."""
    xp = namespace(low[0])
    return xp.stack(list(low), axis=1), xp.stack(list(high), axis=1), xp


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


@dataclass(frozen=True)
class LeastMeans(LeastOfSums, Compound):
    """`min_j sum_c w_jc mu_c(x)`, each sum bounded as one function.

    >>> LeastMeans(((1.0, -1.0), (-1.0, 1.0))).value(np.array([[3.0, 1.0]]))  # -|mu_0 - mu_1|
    array([-2.])
    """

    weights: tuple[Weights, ...]

    @property
    def parts(self) -> tuple[Mean, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The means."""
        return tuple(Mean(c, 1) for c in range(len(self.weights[0])))

    def lowest(self, low: Ends, high: Ends) -> PerCell:
        """The least of the sums'."""
        return least_of([row_sum(row, low, high) for row in self.weights])

    def highest(self, low: Ends, high: Ends) -> PerCell:
        """Minus the lowest of the negatives."""
        return least_of([-row_sum(tuple(-w for w in row), low, high) for row in self.weights])

    def leading_part(self, low: Ends, high: Ends) -> tuple[PerCell, PerCell]:
        """Of the sum that is least in the middle of the ranges, what varies most."""
        least, most, xp = _ends(low, high)
        weights = xp.asarray(np.array(self.weights), device=least.device)
        sums = 0.5 * (least + most) @ xp.matrix_transpose(weights)
        chosen = weights[xp.argmin(sums, axis=1)]
        part = xp.argmax(xp.abs(chosen) * (most - least), axis=1)
        return part, chosen[xp.arange(len(part), device=part.device), part] < 0


@dataclass(frozen=True)
class SameSide(Compound):
    """`max(min_c mu_c - t, t - max_c mu_c)` for a threshold t: positive exactly where all means lie
    on one side of it, negative where one lies below and another above.

    >>> SameSide(2, 0.5).value(np.array([[1.0, 2.0], [0.0, 1.0]]))
    array([ 0.5, -0.5])
    """

    outputs: int
    threshold: float = 0.0

    @property
    def parts(self) -> tuple[Mean, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The means."""
        return tuple(Mean(c, 1) for c in range(self.outputs))

    @property
    def level(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The threshold."""
        return self.threshold

    def lowest(self, low: Ends, high: Ends) -> PerCell:
        """From the least lower and the greatest upper end."""
        return self._between(least_of(list(low)), -least_of([-end for end in high]), down)

    def highest(self, low: Ends, high: Ends) -> PerCell:
        """From the least upper and the greatest lower end."""
        return self._between(least_of(list(high)), -least_of([-end for end in low]), up)

    def leading_part(self, low: Ends, high: Ends) -> tuple[PerCell, PerCell]:
        """The mean that varies most, towards the threshold from where most of them lie."""
        least, most, xp = _ends(low, high)
        above = xp.mean(0.5 * (least + most), axis=1) > self.threshold
        return xp.argmax(most - least, axis=1), ~above

    def _between(self, least: PerCell, most: PerCell, rounded: Callable[..., Array]) -> PerCell:
        above, below = rounded(least - self.threshold, 1), rounded(self.threshold - most, 1)
        return namespace(least).maximum(above, below)

    def value(self, y: Values) -> PerRow:
        """The larger of both."""
        return np.maximum(np.min(y, axis=1) - self.threshold, self.threshold - np.max(y, axis=1))

    def slopes(self, y: Values) -> Values:
        """Of the mean that decides."""
        rows, slopes = np.arange(len(y)), np.zeros_like(y)
        above = np.min(y, axis=1) - self.threshold >= self.threshold - np.max(y, axis=1)
        slopes[rows, np.where(above, np.argmin(y, axis=1), np.argmax(y, axis=1))] = np.where(
            above, 1.0, -1.0
        )
        return slopes


@dataclass(frozen=True)
class SameDecision(Compound):
    """`max_c min (w.mu_g)` over all groups g and rows w of `rows[c]`, weights of one group's means:
    positive only where one class c is decided in every group. Output `g functions + i` is function
    i of group g.

    >>> argmax = ((((1.0, -1.0),), ((-1.0, 1.0),)))  # of two functions, the larger one decides
    >>> SameDecision(argmax, 2).value(np.array([[3.0, 1.0, 2.0, 1.5], [3.0, 1.0, 0.0, 1.0]]))
    array([ 0.5, -1. ])
    """

    rows: tuple[tuple[Weights, ...], ...]
    groups: int

    @property
    def functions(self) -> int:
        """Of one group."""
        return len(self.rows[0][0])

    @property
    def parts(self) -> tuple[Mean, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The means."""
        return tuple(Mean(c, 1) for c in range(self.groups * self.functions))

    def of_class(self, c: int) -> list[Weights]:
        """The rows of a class for all groups, over all outputs."""
        f, rows = self.functions, []
        for g in range(self.groups):
            for row in self.rows[c]:
                rows.append((0.0,) * (g * f) + row + (0.0,) * ((self.groups - 1 - g) * f))
        return rows

    def margins(self, low: Ends, high: Ends) -> list[PerCell]:
        """Lower bounds (B,) of each class's least row."""
        classes = range(len(self.rows))
        return [least_of([row_sum(w, low, high) for w in self.of_class(c)]) for c in classes]

    def lowest(self, low: Ends, high: Ends) -> PerCell:
        """The largest of the classes'."""
        return -least_of([-margin for margin in self.margins(low, high)])

    def highest(self, low: Ends, high: Ends) -> PerCell:
        """Each row at most minus the lowest of its negative."""
        margins = []
        for c in range(len(self.rows)):
            negatives = (tuple(-v for v in row) for row in self.of_class(c))
            margins.append(least_of([-row_sum(w, low, high) for w in negatives]))
        return -least_of([-margin for margin in margins])

    def value(self, y: Values) -> PerRow:
        """Of rows y (n, k)."""
        each = [np.min(y @ np.transpose(self.of_class(c)), axis=1) for c in range(len(self.rows))]
        return np.max(each, axis=0)

    def slopes(self, y: Values) -> Values:
        """The weights of the row that decides."""
        slopes, best = np.zeros_like(y), np.full(len(y), -np.inf)
        for c in range(len(self.rows)):
            weights = np.array(self.of_class(c))
            sums = y @ weights.T
            least = np.argmin(sums, axis=1)
            value = sums[np.arange(len(y)), least]
            slopes = np.where((value > best)[:, None], weights[least], slopes)
            best = np.maximum(best, value)
        return slopes
