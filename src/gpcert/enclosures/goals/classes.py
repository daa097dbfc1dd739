"""Goal: the least of several weighted sums of class probabilities.

Proofs: docs/mathematics.md, statement 10.10.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpcert.arrays import Array, namespace
from gpcert.attacks.class_functions import class_function
from gpcert.attacks.functions import PlainFunction
from gpcert.class_layout import ClassLayout
from gpcert.committee import Committee, Model
from gpcert.enclosures.classes.bounds import ClassEvaluation
from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.goals.base import Goal, GoalBound, worst_of
from gpcert.likelihoods import ClassLikelihood

Weights = tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Classes:
    """A classifier of several classes as the goals of one search see it."""

    layout: ClassLayout
    likelihood: ClassLikelihood

    def of(self, evaluation: Evaluation) -> ClassEvaluation:
        """The batch's enclosures of class probabilities."""
        return ClassEvaluation(evaluation, self.layout, self.likelihood)


@dataclass(frozen=True, eq=False)
class ClassGoal(Goal):
    """`min_j sum_c weights_jc pi_c(x)`: a probability, its negative, or a decision's margin."""

    classes: Classes
    weights: tuple[Weights, ...]

    needs_variance = True

    @property
    def known(self) -> tuple[float, float]:
        """The probabilities add up to one, so a sum lies between its least and greatest weight."""
        return min(map(min, self.weights)), min(map(max, self.weights))

    @np.errstate(over="ignore", invalid="ignore")  # huge latent functions: bounds become trivial
    def bound(self, evaluation: Evaluation, target: float | None) -> GoalBound:
        """The least of the sums' own lower bounds."""
        own = self.classes.of(evaluation)
        geometry, scores = own.latent.geometry, own.split_scores()
        found = (own.lower(weights, target) for weights in self.weights)
        return worst_of(
            [GoalBound(each.lower, geometry.unscaled(each.point), scores) for each in found]
        )

    @np.errstate(over="ignore", invalid="ignore")
    def ceiling(self, evaluation: Evaluation) -> Array:
        """The least of the sums' upper bounds at the centres."""
        own = self.classes.of(evaluation)
        xp = namespace(evaluation.cells.lower)
        found = [own.upper_at_center(weights) for weights in self.weights]
        best = found[0]
        for other in found[1:]:
            best = xp.minimum(best, other)
        return best

    def function(self, model: Model) -> PlainFunction:
        """The goal and a (sub)gradient in plain floating point."""
        layout = self.classes.layout
        assert not isinstance(model, Committee), "a goal of one likelihood"
        return class_function(
            model,
            self.classes.likelihood,
            np.asarray(self.weights),
            (layout.matrices, [layout.pair(0, k) for k in range(1, layout.classes)]),
        )


def margins(classes: int, winner: int, costs: Weights) -> tuple[Weights, ...]:
    """Weights of `costs_i pi_i - costs_j pi_j` for all j != i.

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
