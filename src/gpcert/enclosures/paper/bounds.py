"""The paper's bounds of quantities: its propositions for intervals of mean and variance.

Line 4 and 5 of Algorithm 1 are the bound; line 6 evaluates the quantity at the extremal points of
the mean's and the variance's programs; line 8 splits a random feature in the middle.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import singledispatch

import numpy as np

from gpcert.arrays import Array, PerCell, namespace, to_numpy
from gpcert.attacks.functions import plain_function
from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.paper.class_bound import class_ranges
from gpcert.enclosures.paper.intervals import PaperEnclosures, Side
from gpcert.errors import InputError
from gpcert.quantities import ClassSums, Compound, OutputQuantity, Quantity


def paper_bound(
    quantity: Quantity, enclosures: PaperEnclosures, evaluation: Evaluation
) -> tuple[PerCell, Array, Array]:
    """Lower bounds (B,), the best of the extremal points, and the axes to be split."""
    lower, sides = bounded(quantity, enclosures, evaluation)
    xp = namespace(lower)
    lower = xp.where(xp.isnan(lower), xp.full_like(lower, -math.inf), lower)
    point = _best_point(quantity, evaluation, lower, sides)
    return lower, point, enclosures.random_axes(evaluation)


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


@singledispatch
def bounded(
    quantity: Quantity, enclosures: PaperEnclosures, evaluation: Evaluation
) -> tuple[PerCell, list[Side]]:
    """Lower bound (B,) of the quantity, and the extremal points it came from."""
    del enclosures, evaluation
    raise InputError(
        f"method: the paper's method has no bound for {type(quantity).__name__}; use "
        "method='taylor'"
    )


@bounded.register
def _output(
    quantity: OutputQuantity, enclosures: PaperEnclosures, evaluation: Evaluation
) -> tuple[Array, list[Side]]:
    """The monotone propositions: worst mean, worst variance of the range, whichever G looks at.

    The line of slope 0 through the least mean is exactly that, and so is the band's worst end.
    """
    own, c = evaluation.output(quantity.output)
    intervals, local, sign = enclosures.of(own), own.local, quantity.sign
    rho2 = own.expansion.geometry.rho2
    q = zero = v_low = v_high = namespace(rho2).zeros_like(rho2)
    sides: list[Side] = []
    if quantity.by_mean:  # Proposition "mean bound"
        units = local.mean_units(c, own.expansion).signed(sign)
        q = units.below(intervals.mean(c, sign).bound)
        sides += [intervals.mean(c, s) for s in (sign, -sign)]
    if quantity.by_variance:
        low, high = intervals.variance(c)
        v_low, v_high = local.variance_units(c).range(low.bound, high.bound)
        sides += [low, high] if quantity.by_mean or sign > 0 else [high, low]
    return quantity.lowest(q, zero, v_low, v_high), sides


@bounded.register
def _compound(
    quantity: Compound, enclosures: PaperEnclosures, evaluation: Evaluation
) -> tuple[Array, list[Side]]:
    """From the parts' intervals: Section "bounds for regression" for deviations."""
    low, high, sides = [], [], []
    for part in quantity.parts:
        for each, sign, ends in ((part, 1, low), (part.negative, -1, high)):
            lower, own = _output(each, enclosures, evaluation)
            ends.append(sign * lower)
            sides.append(own[0])
    return quantity.lowest(low, high), sides


@bounded.register
def _classes(
    quantity: ClassSums, enclosures: PaperEnclosures, evaluation: Evaluation
) -> tuple[Array, list[Side]]:
    """The discretised integral for two or three classes, each class by itself.

    A decision is thus bounded by the paper's condition, the least probability of one class against
    the greatest of another, and not by their difference.
    """
    intervals = enclosures.of(evaluation)
    lower = quantity.lowest(*class_ranges(intervals, quantity.layout, quantity.likelihood))
    outputs = range(quantity.layout.outputs)
    sides = [intervals.mean(j, sign) for j in outputs for sign in (1, -1)]
    return lower, sides + [side for j in outputs for side in intervals.variance(j)]
