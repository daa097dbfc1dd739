"""A goal: a quantity whose minimum over a region is asked for, and how it is bounded.

What bounds a kind of quantity over cells and at their centres registers itself here, one
interpreter a file; attacks have their own (`attacks.functions`), and so has the paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Protocol

import numpy as np

from gpcert.attacks.functions import PlainFunction, plain_function
from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.mean import Units
from gpcert.enclosures.polynomials import Minimum
from gpcert.model.committee import Model
from gpcert.model.unit_form import UnitForm
from gpcert.numerics.arrays import Inputs, PerCell, PerCellAndFeature, namespace
from gpcert.quantities import Quantity
from gpcert.regions.scaled import ScaledCells


@dataclass(frozen=True, eq=False)
class GoalBound:
    """For each cell: `lower` <= goal on the cell; `point`, a displacement from the centre (user's
    units) where the goal may be small; `scores`, what halving each axis would gain."""

    lower: PerCell
    point: PerCellAndFeature
    scores: PerCellAndFeature

    @staticmethod
    def of(geometry: ScaledCells, least: Minimum, units: Units | None = None) -> GoalBound:
        """From a minimum in a geometry's displacements, to an output's units."""
        lower = least.lower if units is None else units.below(least.lower)
        return GoalBound(lower, geometry.unscaled(least.point), geometry.split_scores())


@singledispatch
def lower_bound(quantity: Quantity, evaluation: Evaluation, target: float | None) -> GoalBound:
    """Certified lower bound of a quantity over each cell, best near `target` where one is given."""
    raise NotImplementedError(f"no bound over cells is known for {type(quantity).__name__}")


@singledispatch
def upper_at_center(quantity: Quantity, evaluation: Evaluation) -> PerCell:
    """Certified upper bound of a quantity at each cell's centre point."""
    raise NotImplementedError(f"no value at points is known for {type(quantity).__name__}")


class CellMethod(Protocol):
    """Another method that bounds quantities over cells."""

    def most_cells(self, quantity: Quantity, model: Model, f: int) -> int:
        """How many boxes of f free features a search should split at a time."""
        ...

    def bound(
        self, quantity: Quantity, evaluation: Evaluation
    ) -> tuple[PerCell, PerCellAndFeature, PerCellAndFeature]:
        """What a `GoalBound` consists of."""
        ...


@dataclass(frozen=True, eq=False)
class QuantityGoal:
    """A quantity to minimise, bounded over cells by Taylor enclosures, by the paper's intervals
    (with `paper` and without `taylor`), or by both: the larger bound holds, points and splits are
    Taylor's. `paper` is a `gpcert.paper.method.PaperMethod`."""

    quantity: Quantity
    paper: CellMethod | None = None
    taylor: bool = True
    paper_pays: Callable[[int, Sequence[UnitForm]], bool] | None = None
    """Whether the paper's intervals pay beside the Taylor enclosures, for a number of free features
    and the members of a model; None where they are taken whatever they cost."""

    @property
    def needs_variance(self) -> bool:
        """Whether the quantity depends on it."""
        return self.quantity.by_variance

    @property
    def known(self) -> tuple[float, float]:
        """Bounds of the goal that hold for every x whatever the model: a search that ends before
        its first box still knows them."""
        return self.quantity.known

    def most_cells(self, model: Model, f: int) -> int | None:
        """How many boxes of f free features a search should split at a time: few where the paper's
        method bounds variances, as budgets are looked at between batches; None leaves it open."""
        if self.paper is None or not self.needs_variance:
            return None
        if not self._takes_paper(f, [part.unit for part in model.members]):
            return None
        return self.paper.most_cells(self.quantity, model, f)

    @np.errstate(over="ignore", invalid="ignore")  # huge models: bounds become trivial
    def bound(self, evaluation: Evaluation, target: float | None) -> GoalBound:
        """Certified lower bound over each cell, the better of what was asked for."""
        taylor = lower_bound(self.quantity, evaluation, target) if self.taylor else None
        if self.paper is None:
            assert taylor is not None, "bounded by neither method"
            return taylor
        units = [part.unit for part in evaluation.members]
        sliced = evaluation.cells.choice is not None  # of which the paper's intervals know nothing
        if taylor and (sliced or not self._takes_paper(evaluation.cells.lower.shape[1], units)):
            return taylor
        paper = GoalBound(*self.paper.bound(self.quantity, evaluation))
        if taylor is None:
            return paper
        return replace(taylor, lower=namespace(taylor.lower).maximum(taylor.lower, paper.lower))

    def _takes_paper(self, f: int, units: Sequence[UnitForm]) -> bool:
        return self.paper_pays is None or self.paper_pays(f, units)

    @np.errstate(over="ignore", invalid="ignore")
    def ceiling(self, evaluation: Evaluation) -> PerCell:
        """Certified upper bound at each cell's centre point, which owes nothing to a method."""
        return upper_at_center(self.quantity, evaluation)

    def function(self, model: Model) -> PlainFunction:
        """The goal and its gradient in plain floating point, for local search."""
        return plain_function(model, self.quantity)

    def plain_values(self, model: Model, X: Inputs) -> list[float | None]:
        """The goal at points (n, d), for pictures, never for verdicts; None where plain floating
        point has no finite value."""
        with np.errstate(all="ignore"):  # extreme models overflow; bounds do not rest on this
            values = self.function(model)(X)[0].tolist()
        return [value if math.isfinite(value) else None for value in values]


Goal = QuantityGoal
"""What a search minimises."""


def chosen(bounds: Sequence[GoalBound], number: PerCell) -> GoalBound:
    """For each cell the bound with that number (B,)."""
    xp = namespace(number)
    rows = xp.arange(len(number), device=number.device)
    parts = zip(*((bound.lower, bound.point, bound.scores) for bound in bounds), strict=True)
    return GoalBound(*(xp.stack(part, axis=1)[rows, number] for part in parts))


def worst_of(bounds: Sequence[GoalBound]) -> GoalBound:
    """The bound of the minimum of several goals; point and scores are those of the least one."""
    xp = namespace(bounds[0].lower)
    lower = xp.stack([bound.lower for bound in bounds], axis=1)
    return chosen(bounds, xp.argmin(lower, axis=1))
