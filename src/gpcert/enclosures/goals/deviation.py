"""Goal: minus the distance of the mean from a reference value, over several outputs.

Proofs: docs/mathematics.md, statement 7.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpcert.arrays import Array, namespace, to_numpy
from gpcert.attacks.functions import PlainFunction, deviation_function
from gpcert.committee import Committee, Model
from gpcert.enclosures.evaluation import Evaluation, evaluation_at
from gpcert.enclosures.goals.base import Goal, GoalBound
from gpcert.enclosures.goals.scalar import least_mean
from gpcert.regions.norms import norm_lower, norm_upper
from gpcert.rounding import down, nonnegative, up, up_float
from gpcert.several import Outputs


@dataclass(frozen=True)
class DeviationGoal(Goal):
    """`-|| mu(x) - reference ||_p`: the paper's delta-robustness asks whether it is >= -delta."""

    reference: tuple[float, ...]
    errors: tuple[float, ...]
    """The real reference lies within these of the floats above; counted on the safe side."""

    norm: float

    needs_variance = False

    @staticmethod
    def around(posterior: Outputs, x: np.ndarray, norm: float) -> DeviationGoal:
        """The deviation from the certified mean at x: floats, and how far off they are."""
        evaluation = evaluation_at(posterior, x, variance=False)
        values, errors = [], []
        for c in range(posterior.outputs):
            low, high = (float(to_numpy(end)[0]) for end in _at_center(evaluation, c))
            values.append(0.5 * (low + high))
            errors.append(up_float(max(high - values[c], values[c] - low), 2))
        return DeviationGoal(tuple(values), tuple(errors), norm)

    @property
    def known(self) -> tuple[float, float]:
        """A distance is not negative."""
        return -math.inf, 0.0

    def bound(self, evaluation: Evaluation, target: float | None) -> GoalBound:
        """Norm of the coordinates' largest deviations.

        Reason: an l_p norm does not decrease in |coordinates|. One output: exact.
        """
        del target
        xp = namespace(evaluation.cells.lower)
        spreads, points, scores = [], [], []
        for c, value in enumerate(self.reference):
            sides = [least_mean(*evaluation.output(c), sign) for sign in (1, -1)]
            below = up(up(value - sides[0].lower, 2) + self.errors[c], 1)
            above = up(up(-sides[1].lower - value, 2) + self.errors[c], 1)
            wide = above > below
            spreads.append(nonnegative(xp.where(wide, above, below)))
            points.append(xp.where(wide[:, None], sides[1].point, sides[0].point))
            scores.append(sides[0].scores)
        spread = xp.stack(spreads, axis=1)
        worst = xp.argmax(spread, axis=1)
        rows = xp.arange(len(worst), device=worst.device)
        return GoalBound(
            -self._length_up(spread),
            xp.stack(points, axis=1)[rows, worst],
            xp.stack(scores, axis=1)[rows, worst],
        )

    def ceiling(self, evaluation: Evaluation) -> Array:
        """Minus a lower bound of the deviation at the centre."""
        xp = namespace(evaluation.cells.lower)
        gaps = []
        for c, value in enumerate(self.reference):
            low, high = _at_center(evaluation, c)
            gap = xp.maximum(down(low - value, 2), down(value - high, 2))
            gaps.append(nonnegative(down(gap - self.errors[c], 1)))
        return -norm_lower(xp.stack(gaps, axis=1), self.norm)

    def function(self, model: Model) -> PlainFunction:
        """The goal and its gradient in plain floating point."""
        assert not isinstance(model, Committee), "a goal of regressions"
        return deviation_function(model, self.reference, self.norm)

    def _length_up(self, gaps: Array) -> Array:
        xp = namespace(gaps)
        finite = xp.all(xp.isfinite(gaps), axis=1)
        safe = xp.where(finite[:, None], gaps, xp.zeros_like(gaps))
        return xp.where(finite, norm_upper(safe, self.norm), math.inf)


def _at_center(evaluation: Evaluation, output: int) -> tuple[Array, Array]:
    own, c = evaluation.output(output)
    return own.mean_at_center(c)
