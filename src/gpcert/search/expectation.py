"""Means of a function of random inputs: what `partition` adds up.

Proofs: docs/mathematics.md, statements 22.8 and 22.9.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpcert.enclosures import Evaluation
from gpcert.enclosures.affine import has_affine, least_affine
from gpcert.enclosures.crossing import Polynomial
from gpcert.enclosures.expected import (
    Cell,
    mean_over_cells,
    plain_polynomial,
    predicted_shares,
    variance_polynomial,
)
from gpcert.enclosures.goals import Goal
from gpcert.enclosures.goals.goal import least_mean
from gpcert.integrals.families import product
from gpcert.integrals.input_law import InputLaw, Moments
from gpcert.model.committee import Model
from gpcert.numerics.arrays import Backend, Rows, running_on, to_numpy
from gpcert.numerics.rounding import down, up
from gpcert.quantities import Mean, OutputQuantity
from gpcert.quantities.improvement import ProbabilityOfImprovement
from gpcert.regions import Box
from gpcert.search.partition import Contributions, PartitionProblem
from gpcert.search.problem import Budget, Progress, bound_of
from gpcert.search.region_evaluator import RegionEvaluator
from gpcert.utils.archive import digest

Found = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Bounds of the quantity's mean given each cell, and what halving each axis may gain."""


@dataclass(frozen=True, eq=False)
class Expected:
    """E[q(X); X in region]: `goals` are q and its negative, `law` that of the free features."""

    model: Model
    region: Box
    law: InputLaw
    goals: Sequence[Goal]
    backend: Backend

    def problem(
        self,
        enough: Callable[[float, float], bool],
        budget: Budget,
        progress: Progress,
        about: Any = None,
    ) -> PartitionProblem:
        """What `partition` is asked; `about` tells it from the same with another `enough`."""
        evaluator, free = self._evaluator, self.region.free
        low, high = self.region.lower[None, free], self.region.upper[None, free]
        return PartitionProblem(
            low,
            high,
            self._contributions,
            enough,
            evaluator.batch_size,
            evaluator.bytes_per_box,
            budget=budget,
            progress=progress,
            key=digest("mean", self.model, self.region, self.law, list(self.goals), about),
        )

    @cached_property
    def _evaluator(self) -> RegionEvaluator:
        return RegionEvaluator(self.model, self.region, self.goals, self.backend)

    @np.errstate(invalid="ignore", over="ignore")
    def _contributions(self, low: Rows, high: Rows, data: np.ndarray) -> Contributions:
        evaluation = self._evaluator.evaluation(np.zeros(len(low)), low, high, True)
        with running_on(self._evaluator.backend):
            least, most, scores = self._given_the_cell(evaluation, low, high)
        masses = self.law.masses(low, high)
        lower, upper = product((least, most), masses)
        none = masses[1] == 0
        lower, upper = np.where(none, 0.0, lower), np.where(none, 0.0, upper)
        return Contributions(lower, upper, none, scores, data)

    def _given_the_cell(self, evaluation: Evaluation, low: Rows, high: Rows) -> Found:
        quantity, moments = self.goals[0].quantity, self.law.moments(low, high)
        center = to_numpy(evaluation.cells.center)
        assert np.array_equal(moments.center, center), "cells and moments have other centres"
        if type(quantity) is ProbabilityOfImprovement:
            return _predicted(quantity, evaluation, self.law, moments, low, high)
        bounds = [bound_of(goal, evaluation, None) for goal in self.goals]
        least, most = to_numpy(bounds[0].lower), -to_numpy(bounds[1].lower)
        scores = to_numpy(bounds[0].scores).copy()
        ends = None
        if type(quantity) is Mean:
            member, output = evaluation.output(quantity.output)
            p = plain_polynomial(member.mean(output), evaluation.cells, quantity.sign)
            ends = mean_over_cells(p, moments)
        elif isinstance(quantity, OutputQuantity) and has_affine(quantity):
            below, above = (_lines(evaluation, goal, moments) for goal in self.goals)
            ends = below, -above
        if ends is not None:
            least, most = np.fmax(least, ends[0]), np.fmin(most, ends[1])
        return least, np.maximum(most, least), scores


def _lines(evaluation: Evaluation, goal: Goal, moments: Moments) -> np.ndarray:
    """At least the goal's mean on each cell, by an affine function below it."""
    line = least_affine(evaluation, goal.quantity)
    value, slope = to_numpy(line.value), to_numpy(line.slope)
    zero = np.zeros_like(value)
    flat = np.zeros((*slope.shape, slope.shape[1]))
    return mean_over_cells(Polynomial(value, slope, flat, zero, zero, moments.half), moments)[0]


def _predicted(
    quantity: ProbabilityOfImprovement,
    evaluation: Evaluation,
    law: InputLaw,
    moments: Moments,
    low: Rows,
    high: Rows,
) -> Found:
    """Of `P(f < best_f)`, or `P(f > best_f)`, for f of the model's own distribution at x."""
    member, output = evaluation.output(quantity.output)
    mean, variance = member.mean(output), member.variance(output)
    sign = -1 if quantity.maximize else 1
    level = sign * quantity.best_f
    f = plain_polynomial(mean, evaluation.cells, sign, level)
    v_low, v_high = map(to_numpy, variance.units.range(*variance.range))
    ends = (
        down(to_numpy(least_mean(member, output, sign).lower) - level, 1),
        up(-to_numpy(least_mean(member, output, -sign).lower) - level, 1),
        v_low,
        v_high,
    )
    scores = mean.geometry.split_scores() if mean.geometry.is_plain else moments.half**2
    scores = to_numpy(scores).copy()
    v = variance_polynomial(variance, evaluation.cells)
    least, most, gains = predicted_shares(f, v, ends, Cell(law, low, high, moments, scores))
    usable = np.isfinite(gains).all(axis=1) & (gains.max(axis=1, initial=0.0) > 0)
    scores[usable] = gains[usable]
    return least, np.maximum(least, most), scores
