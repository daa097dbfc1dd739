"""Goals bounded by the paper's intervals of mean and variance, with its random splits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch

import numpy as np

from gpcert.arrays import Array, namespace, to_numpy
from gpcert.attacks.functions import PlainFunction
from gpcert.committee import Model
from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.goals.base import Goal, GoalBound
from gpcert.enclosures.goals.classes import ClassGoal
from gpcert.enclosures.goals.deviation import DeviationGoal
from gpcert.enclosures.goals.scalar import ScalarGoal
from gpcert.enclosures.paper.class_bound import class_ranges, weighted_lower
from gpcert.enclosures.paper.intervals import CellIntervals, PaperEnclosures, Side
from gpcert.errors import InputError
from gpcert.rounding import nonnegative, up

GRID_CELLS = 2
"""Parents split at a time where the latent space is discretised: up to a second for every box."""


@dataclass(frozen=True, eq=False)
class PaperGoal(Goal):
    """The goal `plain`, bounded over cells by the paper's propositions.

    Line 4 and 5 of Algorithm 1 are `bound`; line 6 evaluates the goal at the extremal points of the
    mean's and the variance's programs; line 8 splits a random feature in the middle.
    """

    plain: Goal
    enclosures: PaperEnclosures

    @property
    def needs_variance(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """That of the plain goal."""
        return self.plain.needs_variance

    @property
    def cells_at_once(self) -> int | None:
        """Few where variances are bounded: each box takes its time."""
        if not self.needs_variance:
            return None
        most = self.enclosures.cells_at_once
        return min(most, GRID_CELLS) if isinstance(self.plain, ClassGoal) else most

    @property
    def known(self) -> tuple[float, float]:
        """That of the plain goal."""
        return self.plain.known

    def bound(self, evaluation: Evaluation, target: float | None) -> GoalBound:
        """The proposition of the goal's kind, and the best of the extremal points."""
        del target
        lower, sides = bounded(self.plain, self.enclosures.of(evaluation), evaluation)
        xp = namespace(lower)
        lowest = xp.full_like(lower, -math.inf)
        lower = xp.where(xp.isnan(lower), lowest, lower)
        point = self._best_point(evaluation, lower, sides)
        return GoalBound(lower, point, self.enclosures.random_axes(evaluation))

    def _best_point(self, evaluation: Evaluation, lower: Array, sides: Sequence[Side]) -> Array:
        """(B, f): extremal points; where the bound is least, the one with the best value."""
        cells = evaluation.cells
        if cells.lower.shape[1] == 0:
            return cells.half
        shift = sides[0].shift
        b = int(np.argmin(to_numpy(lower)))
        moves = np.stack([to_numpy(side.shift)[b] for side in sides])
        low, high = to_numpy(cells.lower)[b], to_numpy(cells.upper)[b]
        free = np.clip(to_numpy(cells.center)[b] + moves, low, high)
        points = cells.region.project(cells.points_full(free))
        values, _ = self.function(evaluation.local.posterior)(points)
        best = int(np.argmin(np.where(np.isnan(values), np.inf, values)))
        xp = namespace(shift)
        row = xp.asarray(np.arange(len(cells)) == b, device=shift.device)[:, None]
        return xp.where(row, sides[best].shift, shift)

    def ceiling(self, evaluation: Evaluation) -> Array:
        """That of the plain goal: a value at a point owes nothing to a method."""
        return self.plain.ceiling(evaluation)

    def function(self, model: Model) -> PlainFunction:
        """That of the plain goal."""
        return self.plain.function(model)


@singledispatch
def bounded(
    plain: Goal, intervals: CellIntervals, evaluation: Evaluation
) -> tuple[Array, list[Side]]:
    """Lower bound (B,) of the goal, and the extremal points it came from."""
    del intervals, evaluation
    raise InputError(
        f"method: the paper's method has no bound for {type(plain).__name__}; use method='taylor'"
    )


@bounded.register
def _scalar(
    plain: ScalarGoal, intervals: CellIntervals, evaluation: Evaluation
) -> tuple[Array, list[Side]]:
    """The monotone propositions: worst mean, worst variance of the range, whichever G looks at.

    The line of slope 0 through the least mean is exactly that, and so is the band's worst end.
    """
    quantity, local = plain.quantity, evaluation.local
    rho2 = evaluation.expansion.geometry.rho2
    q = zero = v_low = v_high = namespace(rho2).zeros_like(rho2)
    sides: list[Side] = []
    if quantity.by_mean:
        q = _least_mean(quantity.output, quantity.sign, intervals, evaluation)
        sides += [intervals.mean(quantity.output, s) for s in (quantity.sign, -quantity.sign)]
    if quantity.by_variance:
        low, high = intervals.variance(quantity.output)
        v_low, v_high = local.variance_units(quantity.output).range(low.bound, high.bound)
        sides += [low, high] if quantity.by_mean or quantity.sign > 0 else [high, low]
    return quantity.lowest(q, zero, v_low, v_high), sides


def _least_mean(output: int, sign: int, intervals: CellIntervals, evaluation: Evaluation) -> Array:
    """Proposition "mean bound"."""
    units = evaluation.local.mean_units(output, evaluation.expansion).signed(sign)
    return units.below(intervals.mean(output, sign).bound)


@bounded.register
def _deviation(
    plain: DeviationGoal, intervals: CellIntervals, evaluation: Evaluation
) -> tuple[Array, list[Side]]:
    """Section "bounds for regression": the norm of the outputs' largest deviations."""
    xp = namespace(evaluation.cells.lower)
    spreads, all_sides = [], []
    for c, value in enumerate(plain.reference):
        least, most = (_least_mean(c, sign, intervals, evaluation) for sign in (1, -1))
        below = up(up(value - least, 2) + plain.errors[c], 1)
        above = up(up(-most - value, 2) + plain.errors[c], 1)
        spreads.append(nonnegative(xp.maximum(below, above)))
        all_sides += [intervals.mean(c, sign) for sign in (1, -1)]
    return -plain._length_up(xp.stack(spreads, axis=1)), all_sides


@bounded.register
def _classes(
    plain: ClassGoal, intervals: CellIntervals, evaluation: Evaluation
) -> tuple[Array, list[Side]]:
    """The discretised integral for two or three classes, each class by itself.

    A decision is thus bounded by the paper's condition, the least probability of one class against
    the greatest of another, and not by their difference.
    """
    classes = plain.classes
    ranges = class_ranges(intervals, evaluation, classes.layout, classes.likelihood)
    found = [weighted_lower(ranges, weights) for weights in plain.weights]
    lower = found[0]
    for other in found[1:]:
        lower = namespace(lower).minimum(lower, other)
    outputs = range(classes.layout.outputs)
    sides = [intervals.mean(j, sign) for j in outputs for sign in (1, -1)]
    return lower, sides + [side for j in outputs for side in intervals.variance(j)]
