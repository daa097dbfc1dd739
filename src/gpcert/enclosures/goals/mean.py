"""Goal: the latent mean of one output, or its negative.

Proofs: docs/mathematics.md, statements 1.1, 2.1 and 7.1.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

from gpcert.arrays import Array, namespace
from gpcert.attacks.functions import PlainFunction, mean_function
from gpcert.committee import Model
from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.goals.base import Goal, GoalBound
from gpcert.kernels.expansions.base import finite_product
from gpcert.rounding import down, gamma, up

__all__ = ["MeanGoal", "affine_down"]


@dataclass(frozen=True)
class MeanGoal(Goal):
    """`sign * mu_c(x)`, sign = 1 for the minimum, -1 for the maximum."""

    output: int
    sign: int

    needs_variance = False

    def bound(self, evaluation: Evaluation, target: float | None) -> GoalBound:
        """The best of the orders 2, 1 and 0 and the paper's bound of q = sign g.

        `sign mu = sign offset + scale q`.

        Order 1: `q >= q(c) + min grad.d - B R1(rho2)`; order 0: `q >= q(c) - B R0(rho2)` and
        `q >= -B s`; all Cauchy-Schwarz. They matter on large cells only, where the second order's
        weight has grown: below, it dominates order 1 term by term.
        """
        enclosure = evaluation.mean(self.output)
        geometry = evaluation.expansion.geometry
        local = evaluation.local
        xp = namespace(enclosure.center)
        model = enclosure.below if self.sign > 0 else enclosure.above
        offset, scale = self._affine(evaluation)
        if target is None:
            best = model.bound(geometry)
        else:
            level = xp.full_like(model.value, (target - offset) / scale)
            best = model.bound_at(geometry, level)
        norm = local.norms[self.output]
        reach = finite_product(
            xp.full_like(geometry.rho2, norm), local.kernel.remainder(evaluation.expansion, 0)
        )
        rounding = gamma(8) * (xp.abs(model.value) + enclosure.center_error + reach)
        zeroth = down(model.value - enclosure.center_error - reach - rounding, 2)
        largest = local.kernel.largest_variance(evaluation.expansion)
        floor = -up(norm * xp.sqrt(largest), 4)
        linear = geometry.cells.linear_minimum(geometry.unscaled_gradient(model.gradient))
        lost = enclosure.linear_error
        slopes = xp.sum(xp.abs(model.gradient) * geometry.half, axis=1)
        first = down(model.value + linear - lost - gamma(8) * (slopes + xp.abs(model.value)), 4)
        q = floor
        for other in (zeroth, first, best.lower):
            q = xp.where(other > q, other, q)  # an overflow to NaN on huge cells loses
        if evaluation.optional and local.portfolio.wants("paper"):
            paper = local.paper_mean(evaluation.expansion, self.output, self.sign)
            local.portfolio.report("paper", bool(xp.any(paper > q)))
            q = xp.where(paper > q, paper, q)
        point = geometry.unscaled(best.point)
        return GoalBound(affine_down(offset, scale, q), point, geometry.split_scores())

    def ceiling(self, evaluation: Evaluation) -> Array:
        """Mean at the centre plus its rounding error."""
        enclosure = evaluation.mean(self.output)
        offset, scale = self._affine(evaluation)
        q = -self.sign * enclosure.center - enclosure.center_error
        return -affine_down(-offset, scale, down(q, 2))

    def function(self, model: Model) -> PlainFunction:
        """The goal and its gradient in plain floating point."""
        return mean_function(model.members[0], self.output, self.sign)

    def _affine(self, evaluation: Evaluation) -> tuple[float, float]:
        local, c = evaluation.local, self.output
        return self.sign * float(local.posterior.offset[c]), local.unit.mean_scale[c]


def affine_down(offset: float | Array, scale: float | Array, q: Array) -> Array:
    """`offset + scale q` for a scale of at most one rounding, rounded down; never +inf."""
    xp = namespace(q)
    lower = down(offset + down(scale * q, 2), 1)
    return xp.where(lower == math.inf, xp.full_like(lower, sys.float_info.max), lower)
