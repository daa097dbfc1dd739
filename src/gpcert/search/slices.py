"""Boxes of a region with one-hot columns whose categories are decided, bounded in the coordinates
of the other features alone: a tenth of the features, and a hundredth of the time.

Proofs: docs/mathematics.md, statement 13.16.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from gpcert.enclosures import Evaluation, Portfolio
from gpcert.enclosures.goals import Goal
from gpcert.kernels import Kernel
from gpcert.kernels.active_dimensions import ActiveDimensions
from gpcert.kernels.composite import Expressed, Product, Scale, Sum
from gpcert.kernels.constant import Constant
from gpcert.kernels.radial import RadialKernel
from gpcert.kernels.squared_exponential import SquaredExponential
from gpcert.model.committee import Model
from gpcert.numerics.arrays import Backend, Rows
from gpcert.regions import OneHot, Region
from gpcert.regions.held import Slices
from gpcert.search.region_evaluator import RegionEvaluator
from gpcert.search.state import Boxes, split_order

FEW_COMBINATIONS = 64
"""Boxes of up to so many combinations of categories are divided without a bound of their own: that
would take as long as to bound the combinations."""


class Part(NamedTuple):
    """Some of a batch's boxes, `rows` (n,), and how they are enclosed: in the coordinates `columns`
    (all where that is None), or not at all."""

    rows: np.ndarray
    evaluation: Evaluation | None
    columns: np.ndarray | None = None

    def wide(self, own: Annotated[np.ndarray, "n q"], others: Rows) -> Rows:
        """(n, f): these numbers (n, q) in the columns, the others beside."""
        if self.columns is None:
            return own
        others = others.copy()
        others[:, self.columns] = own
        return others


@dataclass(frozen=True, eq=False)
class SliceEvaluator:
    """What is decided in the coordinates of the other features, what is not by `evaluator`."""

    evaluator: RegionEvaluator
    slices: Slices
    inner: RegionEvaluator

    @staticmethod
    def of(
        evaluator: RegionEvaluator,
        model: Model,
        region: Region,
        goals: Sequence[Goal],
        backend: Backend,
    ) -> SliceEvaluator | None:
        """None where the region has no groups, or a kernel does not know such cells."""
        slices = Slices.of(region) if isinstance(region, OneHot) else None
        known = slices and all(
            _knows(member.unit.kernel) and member.features is None and not member.has_trend
            for member in model.members
        )
        taylor = slices and all(goal.paper is None or goal.paper_pays for goal in goals)
        if slices is None or not known or not taylor:
            return None
        return SliceEvaluator(evaluator, slices, RegionEvaluator(model, slices, goals, backend))

    def parts(self, boxes: Boxes, optional: bool, portfolio: Portfolio) -> list[Part]:
        """Contracted boxes: those whose categories are decided, those of few combinations, and all
        others."""
        choice = self.slices.choices(boxes.low, boxes.high)
        decided = np.all(choice >= 0, axis=1)
        count = self.combinations(boxes)
        few = ~decided & (count <= FEW_COMBINATIONS)
        parts = []
        rows = np.flatnonzero(decided)
        if len(rows):
            columns = self.slices.columns
            ends = boxes.low[rows][:, columns], boxes.high[rows][:, columns]
            question = boxes.question[rows]
            evaluation = self.inner.evaluation(question, *ends, optional, portfolio, choice[rows])
            parts.append(Part(rows, evaluation, columns))
        if few.any():
            parts.append(Part(np.flatnonzero(few), None))
        rows = np.flatnonzero(~decided & ~few)
        if len(rows):
            some = boxes.take(rows)
            ends = some.question, some.low, some.high
            # bounds that pay there say nothing of these: all are tried
            parts.append(Part(rows, self.evaluator.evaluation(*ends, optional, Portfolio())))
        return parts

    def combinations(self, boxes: Boxes) -> Annotated[np.ndarray, "n"]:
        """How many combinations of categories each contracted box holds."""
        groups = self.slices.whole.free_groups.columns
        counts = [np.sum(boxes.high[:, group] >= 1.0, axis=1) for group in groups]
        return np.prod(np.maximum(counts, 1.0), axis=0)

    def axes(self, boxes: Boxes) -> Annotated[np.ndarray, "n halvings"]:
        """Along which undecided boxes are divided: in the group with most categories."""
        scores = np.zeros_like(boxes.low)
        for group in self.slices.whole.free_groups.columns:
            may = boxes.high[:, group] - boxes.low[:, group]
            scores[:, group] = may * np.sum(may, axis=1, keepdims=True)
        return split_order(scores)


def _knows(kernel: Kernel) -> bool:
    """Whether a kernel reads what cells hold at values of their own: radial ones and constants, and
    what is made of them here; not classes from outside with nodes of their own."""
    kind = type(kernel)
    plain = kind.localize in (Kernel.localize, SquaredExponential.localize)
    if isinstance(kernel, Expressed):
        return plain and kind.node is Expressed.node and _knows(kernel.expression)
    if kind in (Sum, Product, Scale, ActiveDimensions):
        return all(map(_knows, kernel.parts))
    radial = isinstance(kernel, RadialKernel) and kind.node is RadialKernel.node
    return (plain and radial) or kind is Constant
