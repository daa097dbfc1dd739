"""Goal: the latent mean of one output, or its negative.

Proofs: docs/mathematics.md, statements 1.1, 2.1 and 7.1.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpcert.arrays import Array, namespace
from gpcert.attacks.functions import PlainFunction, mean_function
from gpcert.committee import Model
from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.goals.base import Goal, GoalBound
from gpcert.kernels.expansions.base import finite_product
from gpcert.rounding import down, gamma, up

__all__ = ["MeanGoal"]


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
        model, units = enclosure.side(self.sign), enclosure.units.signed(self.sign)
        level = None if target is None else xp.full_like(model.value, units.level(target))
        best = model.minimum(level)
        norm = local.norms[self.output]
        reach = finite_product(
            xp.full_like(geometry.rho2, norm), local.kernel.remainder(evaluation.expansion, 0)
        )
        rounding = gamma(8) * (xp.abs(model.value) + enclosure.center_error + reach)
        zeroth = down(model.value - enclosure.center_error - reach - rounding, 2)
        largest = local.kernel.largest_variance(evaluation.expansion)
        floor = -up(norm * xp.sqrt(largest), 4)
        linear = geometry.cells.linear_minimum(geometry.unscaled_gradient(model.gradient))
        size = model.slopes + xp.abs(model.value)
        first = down(model.value + linear - enclosure.linear_error - gamma(8) * size, 4)
        q = floor
        for other in (zeroth, first, best.lower):
            q = xp.where(other > q, other, q)  # an overflow to NaN on huge cells loses
        if evaluation.optional and local.portfolio.wants("paper"):
            paper = local.paper_mean(evaluation.expansion, self.output, self.sign)
            local.portfolio.report("paper", bool(xp.any(paper > q)))
            q = xp.where(paper > q, paper, q)
        point = geometry.unscaled(best.point)
        return GoalBound(units.below(q), point, geometry.split_scores())

    def ceiling(self, evaluation: Evaluation) -> Array:
        """Mean at the centre plus its rounding error."""
        enclosure = evaluation.mean(self.output)
        low, high = enclosure.at_center
        return enclosure.units.signed(self.sign).above(high if self.sign > 0 else -low)

    def function(self, model: Model) -> PlainFunction:
        """The goal and its gradient in plain floating point."""
        return mean_function(model.members[0], self.output, self.sign)
