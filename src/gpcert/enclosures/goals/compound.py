"""Bounds of a quantity of several others, H(y_1, ..., y_k), from the ranges of its parts.

Proofs: docs/mathematics.md, statement 7.5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpcert.arrays import Array, PerCell, PerFeature, namespace, to_numpy
from gpcert.enclosures.evaluation import Evaluation, evaluation_at
from gpcert.enclosures.goals.base import GoalBound, lower_bound, upper_at_center
from gpcert.enclosures.goals.scalar import least_mean, output_at_center, output_bound
from gpcert.quantities import Compound, Deviation, Mean, OutputQuantity
from gpcert.rounding import up
from gpcert.several import Outputs


class Lazily(Sequence[Array]):
    """Ends (B,) of the ranges of parts, each computed when it is looked at."""

    def __init__(self, compute: Callable[[int], Array], count: int) -> None:
        self._compute, self._count = compute, count

    def __getitem__(self, part: Any) -> Any:
        if not 0 <= part < self._count:
            raise IndexError(part)
        return self._compute(part)

    def __len__(self) -> int:
        return self._count


def part_bound(
    evaluation: Evaluation, part: OutputQuantity, sign: int, target: float | None = None
) -> GoalBound:
    """Lower bound of `sign y` of a part over each cell, within what is known of it."""
    own, c = evaluation.output(part.output)
    if isinstance(part, Mean):
        return least_mean(own, c, sign * part.sign, target)
    quantity = part if sign > 0 else part.negative

    def compute() -> GoalBound:
        bound = output_bound(quantity, evaluation, None)
        lower = namespace(bound.lower).clip(bound.lower, *quantity.known)
        return GoalBound(lower, bound.point, bound.scores)

    return own.once(("part", quantity), compute)


def ranges(evaluation: Evaluation, quantity: Compound) -> tuple[Lazily, Lazily]:
    """Ends of all parts over each cell."""
    parts, level = quantity.parts, quantity.level

    def end(p: int, sign: int) -> Array:
        return sign * part_bound(evaluation, parts[p], sign, level).lower

    return Lazily(lambda p: end(p, 1), len(parts)), Lazily(lambda p: end(p, -1), len(parts))


def ranges_at_center(evaluation: Evaluation, quantity: Compound) -> tuple[Lazily, Lazily]:
    """Ends of all parts at each cell's centre."""
    parts = quantity.parts

    def end(p: int, sign: int) -> Array:
        part = parts[p] if sign > 0 else parts[p].negative
        own, _ = evaluation.output(part.output)
        value = own.once(("at center", part), lambda: output_at_center(part, evaluation))
        return namespace(value).clip(sign * value, *parts[p].known)

    return Lazily(lambda p: end(p, -1), len(parts)), Lazily(lambda p: end(p, 1), len(parts))


@lower_bound.register(Compound)
def compound_bound(quantity: Compound, evaluation: Evaluation, target: float | None) -> GoalBound:
    """From the parts' own ranges; one part's point and scores say where to look and split."""
    del target
    low, high = ranges(evaluation, quantity)
    part, large = quantity.pulled(low, high)
    xp = namespace(part)
    rows = xp.arange(len(part), device=part.device)
    sides = [
        [part_bound(evaluation, each, sign, quantity.level) for each in quantity.parts]
        for sign in (1, -1)
    ]
    point, least = (
        xp.stack([bound.point for bound in side], axis=1)[rows, part] for side in reversed(sides)
    )
    scores = xp.stack([bound.scores for bound in sides[0]], axis=1)[rows, part]
    return GoalBound(quantity.lowest(low, high), xp.where(large[:, None], point, least), scores)


@upper_at_center.register(Compound)
def compound_at_center(quantity: Compound, evaluation: Evaluation) -> PerCell:
    """From the parts' values at the centre, on either side of their errors."""
    return quantity.highest(*ranges_at_center(evaluation, quantity))


def deviation_around(posterior: Outputs, x: PerFeature, norm: float) -> Deviation:
    """The deviation from the certified mean at x: floats, and how far off they are."""
    return deviations_at(evaluation_at(posterior, x, variance=False), posterior, norm)[0]


def deviations_at(evaluation: Evaluation, posterior: Outputs, norm: float) -> list[Deviation]:
    """`deviation_around` the centre of each cell."""
    values, errors = [], []
    for c in range(posterior.outputs):
        own, number = evaluation.output(c)
        low, high = (to_numpy(end) for end in own.mean_at_center(number))
        values.append(0.5 * (low + high))
        errors.append(up(np.maximum(high - values[c], values[c] - low), 2))
    cells = zip(np.stack(values, axis=1).tolist(), np.stack(errors, axis=1).tolist(), strict=True)
    return [Deviation(tuple(value), tuple(error), norm) for value, error in cells]
