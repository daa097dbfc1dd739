"""Goal: the predicted probability F(mu, v) of the positive class, or its negative.

Proofs: docs/mathematics.md, statement 7.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpcert.arrays import Array, namespace
from gpcert.attacks.functions import PlainFunction, probability_function
from gpcert.committee import Model
from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.goals.latent import LatentGoal
from gpcert.enclosures.goals.mean import MeanGoal
from gpcert.likelihoods import ScalarLikelihood
from gpcert.likelihoods.segments import LARGEST_SEGMENT

__all__ = ["ProbabilityGoal"]

WORTHWHILE_GAIN = 1e-3
"""Probability that further lines must gain on some cell of a batch to be worth their time."""


@dataclass(frozen=True)
class ProbabilityGoal(LatentGoal):
    """`sign * F(mu_c(x), v_c(x))` for a binary likelihood."""

    likelihood: ScalarLikelihood
    output: int
    sign: int

    @property
    def known(self) -> tuple[float, float]:
        """A probability, or its negative."""
        return (0.0, 1.0) if self.sign > 0 else (-1.0, 0.0)

    def ceiling(self, evaluation: Evaluation) -> Array:
        """F at the centre, on the other side of the rounding errors of mean and variance."""
        q_high = MeanGoal(self.output, self.sign).ceiling(evaluation)
        variance = evaluation.variance(self.output)
        v_low, v_high = variance.units.range(*variance.at_center)
        flipped = ProbabilityGoal(self.likelihood, self.output, -self.sign)
        return -flipped._line(-q_high, 0.0 * q_high, v_low, v_high)

    def function(self, model: Model) -> PlainFunction:
        """sign * F and its gradient."""
        return probability_function(model.members[0], self.likelihood, self.output, self.sign)

    def _line(self, alpha: Array, beta: Array, v_low: Array, v_high: Array) -> Array:
        """Lower bound of sign * F; for sign = -1 that of -F(-q, v), the `line_maximum` of F."""
        xp = namespace(alpha)
        # a huge cell may give a line that is infinite, or beyond what the likelihood accepts; a
        # lower line is valid as well
        alpha = xp.minimum(alpha, xp.full_like(alpha, LARGEST_SEGMENT))
        usable = (abs(alpha) <= LARGEST_SEGMENT) & (abs(beta) <= LARGEST_SEGMENT)
        usable = usable & (v_high <= LARGEST_SEGMENT)
        zero = xp.zeros_like(alpha)
        a, b = xp.where(usable, alpha, zero), xp.where(usable, beta, zero)
        v_low, v_high = xp.where(usable, v_low, zero), xp.where(usable, v_high, zero)
        if self.sign > 0:
            value = self.likelihood.line_minimum(a, b, v_low, v_high)
        else:
            value = -self.likelihood.line_maximum(-a, -b, v_low, v_high)
        # a probability lies in [0, 1] whatever the latent bounds are
        return xp.where(usable, value, xp.full_like(value, 0.0 if self.sign > 0 else -1.0))

    def _slopes(self, q: Array, v: Array) -> tuple[Array, Array]:
        return self.likelihood.slopes(q, v)

    def _level(self, q: Array, v: Array) -> Array:
        return self.likelihood.level_slope(q, v)

    def _worthwhile(self, v_high: Array) -> Array | float:
        del v_high
        return WORTHWHILE_GAIN
