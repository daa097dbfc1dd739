"""Weighted sums of the class probabilities of a likelihood of several classes.

Proofs: docs/mathematics.md, statement 10.10.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from gpcert.arrays import Array, PerCell, PerCellAndClass, least_of, namespace
from gpcert.class_layout import ClassLayout
from gpcert.likelihoods import ClassLikelihood
from gpcert.quantities.output import Quantity
from gpcert.rounding import down, gamma

Weights = tuple[float, ...]


@dataclass(frozen=True, eq=False)
class ClassSums(Quantity):
    """`min_j sum_c weights_jc pi_c(x)`: a probability, its negative, or a decision's margin.

    `layout` says which outputs make up the latent differences and their covariance.
    """

    layout: ClassLayout
    likelihood: ClassLikelihood
    weights: tuple[Weights, ...]

    @property
    def known(self) -> tuple[float, float]:
        """The probabilities add up to one, so a sum lies between its least and greatest weight."""
        return min(map(min, self.weights)), min(map(max, self.weights))

    def lowest(self, low: PerCellAndClass, high: PerCellAndClass) -> PerCell:
        """Certified lower bound for all `low_c <= pi_c <= high_c` that add up to one."""
        return least_of([_lowest(weights, low, high) for weights in self.weights])

    # in plain floating point

    def value(self, p: Annotated[np.ndarray, "n m"]) -> Annotated[np.ndarray, "n"]:
        """The least sum (n,) of rows p (n, m)."""
        return np.min(p @ np.transpose(self.weights), axis=1)

    def slopes(self, p: np.ndarray) -> Annotated[np.ndarray, "n m"]:
        """A subgradient (n, m): the weights of that sum."""
        weights = np.asarray(self.weights)
        return weights[np.argmin(p @ weights.T, axis=1)]


def _lowest(weights: Weights, low: Array, high: Array) -> Array:
    """Of `sum_c w_c pi_c`: each probability on the side of its weight."""
    xp = namespace(low)
    total = xp.zeros_like(low[:, 0])
    for c, weight in enumerate(weights):
        if weight != 0.0:
            total = total + down(weight * (low if weight > 0 else high)[:, c], 1)
    total = down(total - gamma(len(weights)) * sum(map(abs, weights)), len(weights))
    return xp.maximum(total, xp.full_like(total, min(weights)))


def margins(classes: int, winner: int, costs: Weights) -> tuple[Weights, ...]:
    """Weights of `costs_i p_i - costs_j p_j` for all j != i.

    >>> margins(3, 1, (1.0, 1.0, 2.0))
    ((-1.0, 1.0, 0.0), (0.0, 1.0, -2.0))
    """
    rows = []
    for other in range(classes):
        if other != winner:
            row = [0.0] * classes
            row[winner], row[other] = costs[winner], -costs[other]
            rows.append(tuple(row))
    return tuple(rows)
