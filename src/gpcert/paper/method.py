"""`method="paper"`: Algorithm 1 of the paper behind the search that all methods share.

Lines 4 and 5 of Algorithm 1 are the bound; line 6 evaluates the quantity at the extremal points of
the mean's and the variance's programs; line 8 splits a random feature in the middle.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gpcert.attacks.functions import plain_function
from gpcert.enclosures.evaluation import Evaluation
from gpcert.model.committee import Model
from gpcert.numerics.arrays import Array, PerCell, PerCellAndFeature, namespace, to_numpy
from gpcert.paper import class_grid  # noqa: F401  (it registers)
from gpcert.paper.intervals import CellIntervals, Side, bounded
from gpcert.paper.programs import SolverPrograms
from gpcert.paper.variance import ClosedForms
from gpcert.quantities import ClassSums, Quantity
from gpcert.utils.option_names import VarianceBound

SOLVER_CELLS = 1
"""Parents split at a time with solvers, so that a budget is looked at between boxes."""

GRID_CELLS = 2
"""The same where the latent space is discretised: up to a second for every box."""

ANALYTIC_WORK = 1.0e9
"""Multiplications of a batch by closed forms (about half a second): budgets are met in between."""


class PaperMethod:
    """The paper's method for one search: how the variance is bounded, and the random splits.

    Shared by the goals of a search, so that the intervals of a batch are computed once.
    """

    def __init__(self, variance: VarianceBound = "solver", random_state: int | None = 0) -> None:
        self.kind = SolverPrograms if variance == "solver" else ClosedForms
        self.rng = np.random.default_rng(random_state)

    def most_cells(self, quantity: Quantity, model: Model, f: int) -> int:
        """How many parents a search should split at a time where variances are bounded.

        2N eigenvectors' ranges from planes of 2f slopes, for both children, four products each.
        """
        N = max(len(member.points) for member in model.members)
        closed = max(1, int(ANALYTIC_WORK / (32.0 * N * N * (f + 1))))
        most = SOLVER_CELLS if self.kind is SolverPrograms else closed
        return min(most, GRID_CELLS) if isinstance(quantity, ClassSums) else most

    def of(self, evaluation: Evaluation) -> CellIntervals:
        """The intervals of a batch."""
        return CellIntervals(evaluation, self.kind)

    def bound(
        self, quantity: Quantity, evaluation: Evaluation
    ) -> tuple[PerCell, PerCellAndFeature, PerCellAndFeature]:
        """Lower bounds (B,), the best of the extremal points, and the axes to be split."""
        lower, sides = bounded(quantity, self.kind, evaluation)
        xp = namespace(lower)
        lower = xp.where(xp.isnan(lower), xp.full_like(lower, -math.inf), lower)
        point = _best_point(quantity, evaluation, lower, sides)
        return lower, point, self.random_axes(evaluation)

    def random_axes(self, evaluation: Evaluation) -> PerCellAndFeature:
        """(B, f) scores whose largest is a random feature that has some width (Algorithm 1)."""
        half = to_numpy(evaluation.cells.half)
        scores = np.where(half > 0, 1.0 + self.rng.random(half.shape), 0.0)
        return namespace(evaluation.cells.half).asarray(scores, device=evaluation.cells.half.device)


def _best_point(
    quantity: Quantity, evaluation: Evaluation, lower: Array, sides: Sequence[Side]
) -> Array:
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
    values, _ = plain_function(evaluation.model, quantity)(points)
    best = int(np.argmin(np.where(np.isnan(values), np.inf, values)))
    xp = namespace(shift)
    row = xp.asarray(np.arange(len(cells)) == b, device=shift.device)[:, None]
    return xp.where(row, sides[best].shift, shift)
