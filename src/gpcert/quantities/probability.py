"""The predicted probability F(mu, v) of the positive class, or its negative.

Proofs: docs/mathematics.md, statement 7.2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpcert.arrays import Array, PerCell, Reals, namespace
from gpcert.likelihoods import ScalarLikelihood
from gpcert.likelihoods.base import LARGEST_SEGMENT
from gpcert.quantities.output import OutputQuantity

WORTHWHILE_GAIN = 1e-3
"""Probability that further lines must gain on some cell of a batch to be worth their time."""


@dataclass(frozen=True)
class Probability(OutputQuantity):
    """`sign F(mu_c, v_c)` for a binary likelihood: `F(q, v)`, or `-F(-q, v)`."""

    likelihood: ScalarLikelihood
    output: int
    sign: int

    @property
    def known(self) -> tuple[float, float]:
        """A probability, or its negative."""
        return (0.0, 1.0) if self.sign > 0 else (-1.0, 0.0)

    def lowest(self, alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """The likelihood's own; for sign = -1 that of -F(-q, v), the maximum of F on the line."""
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
        return xp.where(usable, value, xp.full_like(value, self.known[0]))

    def highest(self, q: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """Minus the lowest of the negative."""
        return -replace(self, sign=-self.sign).lowest(-q, namespace(q).zeros_like(q), v_low, v_high)

    def value(self, q: Reals, v: Reals) -> Reals:
        """`sign F(sign q, v)`."""
        return self.sign * self.likelihood.value(self.sign * q, v)

    def slopes(self, q: Reals, v: Reals) -> tuple[Reals, Reals]:
        """Those of F at mu = sign q."""
        by_mu, by_v = self.likelihood.slopes(self.sign * q, v)
        return by_mu, self.sign * by_v

    def level_slope(self, q: Reals, v: Reals) -> Reals:
        """That of F at mu = sign q, mirrored."""
        return self.sign * self.likelihood.level_slope(self.sign * q, v)

    def worthwhile(self, v_high: PerCell) -> Array | float:
        """A probability."""
        del v_high
        return WORTHWHILE_GAIN
