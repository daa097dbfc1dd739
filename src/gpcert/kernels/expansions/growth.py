"""Chords of the weight exp(rate |d|^2) over a cell."""

from __future__ import annotations

from gpcert.arrays import Array, namespace
from gpcert.rounding import EXP_ULPS, up

__all__ = ["EXPONENT_CAP", "growth_chord"]

EXPONENT_CAP = 200.0
"""exp() of anything larger is not formed; weighted models of such cells are void."""


def growth_chord(rate: float, rho2: Array) -> Array:
    """`(exp(rate rho2) - 1) / rho2`, rounded up: exp(rate r) - 1 <= chord * r for 0 <= r <= rho2.

    For rate <= 1 and rho2 <= EXPONENT_CAP; beyond, weighted models are void.

    Reason: exp is convex, so the chord lies above; at rho2 = 0 the limit is `rate`.
    """
    xp = namespace(rho2)
    x = xp.minimum(rate * rho2, xp.full_like(rho2, EXPONENT_CAP))
    safe = xp.where(x > 1e-8, x, xp.ones_like(x))
    # below 1e-8 the quotient expm1(x)/x is at most 1 + x
    quotient = xp.where(x > 1e-8, xp.expm1(safe) / safe, 1.0 + x)
    return up(rate * quotient, EXP_ULPS + 8)
