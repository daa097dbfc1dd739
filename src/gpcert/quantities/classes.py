"""Weighted sums of the class probabilities of a likelihood of several classes.

Proofs: docs/mathematics.md, statement 10.10.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpcert.class_layout import ClassLayout
from gpcert.likelihoods import ClassLikelihood
from gpcert.quantities.output import Quantity

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
