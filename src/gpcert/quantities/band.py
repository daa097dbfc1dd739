"""An end of the credible band, the mean less or plus some standard deviations.

Proofs: docs/mathematics.md, statement 7.6.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

from gpcert.arrays import Array, PerCell, Reals, namespace
from gpcert.quantities.output import OutputQuantity, root_slope
from gpcert.rounding import TINY, down, gamma, nonnegative, up

WORTHWHILE_SHARE = 1e-3
"""Part of the band's half-width that further lines must gain to be worth their time."""

LARGEST = sys.float_info.max


@dataclass(frozen=True)
class Band(OutputQuantity):
    """`sign mu_c - beta sqrt(V_c)`, beta >= 0.

    sign = 1 is the least lower end `mu - beta std`, sign = -1 minus the greatest upper end
    `mu + beta std`: both want an upper bound of the standard deviation.
    """

    output: int
    sign: int
    beta: float

    def lowest(self, alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """Lower bound of `alpha + slope V - beta sqrt(V)` over V in [v_low, v_high], slope the
        argument; the better of two, -inf where nothing is known.

        Statement: for every s > 0 it is at least the smaller value at both ends of
        `alpha - beta s / 2 + (slope - beta / (2 s)) V`; and at least
        `alpha + min(slope v_low, slope v_high) - beta sqrt(v_high)`.
        Reason: the root lies below its tangent at s^2, `sqrt(V) <= (V + s^2) / (2 s)`, and what is
        left is linear in V. With s nearest to `beta / (2 slope)`, where the convex function is
        least, in [sqrt(v_low), sqrt(v_high)] the first is exact but for rounding, which is
        counted by the size of the terms: at most six operations each. v / s is formed first: what
        underflows in it is below `U s`, as s >= TINY.
        """
        xp = namespace(alpha)
        alpha = xp.minimum(alpha, xp.full_like(alpha, LARGEST))
        low, high = xp.sqrt(v_low), up(xp.sqrt(v_high), 1)
        steep = beta > TINY
        vertex = xp.where(steep, 0.5 * self.beta / xp.where(steep, beta, 1.0 + 0.0 * beta), high)
        s = xp.minimum(xp.maximum(xp.maximum(vertex, low), xp.full_like(low, TINY)), high)
        half = self.beta * (0.5 * s)
        tangents = []
        for v in (v_low, v_high):
            along, fall = beta * v, self.beta * (0.5 * (v / s))
            size = xp.abs(alpha) + half + xp.abs(along) + fall
            tangents.append((alpha - half) + (along - fall) - (gamma(8) * size + TINY))
        tangent = down(xp.minimum(*tangents), 1)
        ends = xp.minimum(down(beta * v_low, 1), down(beta * v_high, 1))
        reach = up(self.beta * high, 1)
        size = xp.abs(alpha) + xp.abs(ends) + reach
        apart = down(alpha + ends - reach - (gamma(4) * size + TINY), 1)
        nothing = xp.full_like(alpha, -math.inf)
        found = xp.where(apart > nothing, apart, nothing)  # NaN knows nothing
        found = xp.where(tangent > found, tangent, found)
        return xp.minimum(found, xp.full_like(found, LARGEST))

    def highest(self, q: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """At the least variance."""
        del v_high
        xp = namespace(q)
        largest = xp.full_like(q, LARGEST)  # what overflows is at least that
        reach = xp.minimum(self.beta * xp.sqrt(v_low), largest)
        return up(xp.maximum(q - nonnegative(down(reach, 2)), -largest), 1)

    def value(self, q: Reals, v: Reals) -> Reals:
        """`q - beta sqrt(V)`."""
        return q - self.beta * namespace(v).sqrt(v)

    def slopes(self, q: Reals, v: Reals) -> tuple[Reals, Reals]:
        """1 and `-beta / (2 sqrt(V))`."""
        return 1.0 + 0.0 * q, -self.level_slope(q, v)

    def level_slope(self, q: Reals, v: Reals) -> Reals:
        """`dq/dV = beta / (2 sqrt(V))` where G is constant."""
        del q
        return self.beta * root_slope(v)

    def corners(self, v_low: Reals, v_high: Reals) -> tuple[Reals, Reals]:
        """Where std is greatest, and half-way there: its slope at 0 would be useless."""
        xp = namespace(v_low)
        return v_high, (0.5 * (xp.sqrt(v_low) + xp.sqrt(v_high))) ** 2

    def worthwhile(self, v_high: PerCell) -> Array | float:
        """A share of the half-width."""
        return WORTHWHILE_SHARE * self.beta * namespace(v_high).sqrt(v_high)
