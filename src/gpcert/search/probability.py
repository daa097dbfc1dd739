"""Probabilities that a function of random inputs lies below a threshold: what `partition` adds up.

Proofs: docs/mathematics.md, statement 22.4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpcert.enclosures import Evaluation
from gpcert.enclosures.affine import has_affine, least_affine
from gpcert.enclosures.crossing import affine_polynomial, mean_polynomial, negative_shares
from gpcert.enclosures.goals import Goal
from gpcert.integrals.input_law import InputLaw
from gpcert.model.committee import Model
from gpcert.numerics.arrays import Backend, PerRow, Rows, running_on, to_numpy
from gpcert.numerics.rounding import down, up
from gpcert.quantities import Mean, OutputQuantity
from gpcert.regions import Box
from gpcert.search.partition import CellData, Contributions, PartitionProblem
from gpcert.search.problem import Budget, Progress, bound_of
from gpcert.search.region_evaluator import RegionEvaluator
from gpcert.utils.archive import digest

OPEN, BELOW, ABOVE = 0, 1, 2
"""What a cell's data says: the threshold lies between its values, above them or not above them."""


def cell_status(data: CellData) -> PerRow:
    """Which of `OPEN`, `BELOW` and `ABOVE` the cells are."""
    return data[:, 0]


def cell_masses(data: CellData) -> PerRow:
    """About the cells' probabilities."""
    return np.ascontiguousarray(data[:, 1:9]).view(np.float64)[:, 0]


@dataclass(frozen=True, eq=False)
class BelowThreshold:
    """P[q(X) < threshold] for X in `region`: `goals` are q and its negative, `law` that of the
    region's free features. If not `exact` the threshold is the least float not below the one that
    is meant: values that are floats lie on the same side of both."""

    model: Model
    region: Box
    law: InputLaw
    goals: Sequence[Goal]
    threshold: float
    backend: Backend
    exact: bool = True

    def problem(
        self,
        enough: Callable[[float, float], bool],
        budget: Budget,
        progress: Progress,
        record: bool = False,
        about: Any = None,
    ) -> PartitionProblem:
        """What `partition` is asked; `about` tells it from the same with another `enough`."""
        evaluator = RegionEvaluator(self.model, self.region, self.goals, self.backend)
        free = self.region.free
        return PartitionProblem(
            self.region.lower[None, free],
            self.region.upper[None, free],
            lambda low, high, data: self._contributions(evaluator, low, high),
            enough,
            evaluator.batch_size,
            evaluator.bytes_per_box,
            data=np.zeros(9, dtype=np.uint8),
            record=record,
            budget=budget,
            progress=progress,
            key=digest("below", self._asked, record, about),
        )

    @property
    def _asked(self) -> tuple[Any, ...]:
        """The question."""
        event = (self.threshold, self.exact)
        return (self.model, self.region, self.law, list(self.goals), *event)

    def _contributions(self, evaluator: RegionEvaluator, low: Rows, high: Rows) -> Contributions:
        """Statement 22.4: decided cells count whole or not at all; of others the share is bounded
        where the quantity's level set is known well enough."""
        evaluation = evaluator.evaluation(np.zeros(len(low)), low, high, True)
        with running_on(evaluator.backend):
            least, most, scores = self._ends(evaluation)
            lower, upper = self.law.masses(low, high)
            below = most < self.threshold
            above = least >= self.threshold
            crossed = np.flatnonzero(~(below | above) & (upper > 0))
            shares = np.where(below, 1.0, 0.0), np.where(above, 0.0, 1.0)
            quantity = self.goals[0].quantity
            known = isinstance(quantity, OutputQuantity) and has_affine(quantity)
            if known and self.exact and len(crossed):
                rows = self._crossed(evaluation, crossed, low, high, scores)
                for share, row in zip(shares, rows[:2], strict=True):
                    share[crossed] = row
                usable = np.isfinite(rows[2]).all(axis=1) & (rows[2].max(axis=1) > 0)
                # both kinds of scores as parts of a cell's own gap
                scores[crossed[usable]] = rows[2][usable]
        status = np.where(below, BELOW, np.where(above, ABOVE, OPEN)).astype(np.uint8)[:, None]
        data = np.concatenate([status, np.ascontiguousarray(upper)[:, None].view(np.uint8)], axis=1)
        lower = np.where(shares[0] > 0, down(lower * shares[0], 1), 0.0)
        upper = np.where(shares[1] > 0, up(upper * shares[1], 1), 0.0)
        return Contributions(
            np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0), below | above, scores, data
        )

    def _ends(self, evaluation: Evaluation) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Proved ends of the quantity on every cell, and what halving each axis may gain."""
        first = bound_of(self.goals[0], evaluation, self.threshold)
        last = bound_of(self.goals[1], evaluation, -self.threshold)
        return to_numpy(first.lower), -to_numpy(last.lower), to_numpy(first.scores).copy()

    def _crossed(
        self, evaluation: Evaluation, rows: np.ndarray, low: Rows, high: Rows, scores: Rows
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Shares of the cells that the level set may cross."""
        quantity = self.goals[0].quantity
        if type(quantity) is Mean:
            member, output = evaluation.output(quantity.output)
            mean = member.mean(output)
            whole = mean_polynomial(mean, evaluation.cells, self.threshold, quantity.sign)
        else:
            first, second = (least_affine(evaluation, goal.quantity) for goal in self.goals)
            whole = affine_polynomial(first, second, evaluation.cells, self.threshold)
        low, high = low[rows], high[rows]
        center = to_numpy(evaluation.cells.center)[rows]
        moments = self.law.moments(low, high)
        assert np.array_equal(moments.center, center), "cells and moments have other centres"
        part = type(whole)(*(each[rows] for each in whole))
        return negative_shares(part, self.law, low, high, moments, scores[rows])
