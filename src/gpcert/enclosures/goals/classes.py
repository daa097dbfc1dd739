"""Bounds of the least of several weighted sums of class probabilities.

Proofs: docs/mathematics.md, statement 10.10.
"""

from __future__ import annotations

from gpcert.arrays import Array, least_of
from gpcert.enclosures.classes.bounds import ClassBounds
from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.goals.base import GoalBound, lower_bound, upper_at_center, worst_of
from gpcert.quantities import ClassSums


def classes_of(quantity: ClassSums, evaluation: Evaluation) -> ClassBounds:
    """The batch's enclosures of class probabilities."""
    return ClassBounds(evaluation, quantity.layout, quantity.likelihood)


@lower_bound.register(ClassSums)
def _class_sums(quantity: ClassSums, evaluation: Evaluation, target: float | None) -> GoalBound:
    """The least of the sums' own lower bounds."""
    own = classes_of(quantity, evaluation)
    geometry, scores = own.latent.geometry, own.split_scores()
    found = (own.lower(weights, target) for weights in quantity.weights)
    return worst_of(
        [GoalBound(each.lower, geometry.unscaled(each.point), scores) for each in found]
    )


@upper_at_center.register(ClassSums)
def _class_sums_at_center(quantity: ClassSums, evaluation: Evaluation) -> Array:
    """The least of the sums' upper bounds at the centres."""
    own = classes_of(quantity, evaluation)
    return least_of([own.upper_at_center(weights) for weights in quantity.weights])
