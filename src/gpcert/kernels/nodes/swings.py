"""How far |sin| can go when its argument moves: certified ends over an interval of phases.

Proofs: docs/mathematics.md, statement 3.3.
"""

from __future__ import annotations

from gpcert.arrays import Array, namespace
from gpcert.rounding import SIN_COS_ULPS, gamma, nonnegative

__all__ = ["QUARTER_TURN", "swing"]

QUARTER_TURN = 1.5707963267948966
"""pi/2 rounded down: an interval of at least this half-width may hold everything."""

ROUNDING = 2.0 * gamma(4 * SIN_COS_ULPS + 8)
"""Of `s cos e +- c sin e` from computed sines and cosines, all at most 1."""


def swing(sine: Array, cosine: Array, spread: Array) -> tuple[Array, Array]:
    """`low <= |sin t'| <= high` for all `|t' - t| <= spread`, from computed sin t and cos t.

    With `|sin t| = sin a`, `|cos t| = cos a`, 0 <= a <= pi/2: the infimum is `sin(a - e)`, or 0
    once e >= a; the supremum `sin(a + e)`, or 1 once that has passed its peak, where
    `cos(a + e) <= 0`. For |cos|, exchange the first two arguments.

    >>> import numpy as np
    >>> low, high = swing(np.asarray(0.0), np.asarray(1.0), np.asarray(0.5))
    >>> float(low), bool(high >= np.sin(0.5))
    (0.0, True)
    """
    xp = namespace(spread)
    s, c = xp.abs(sine), xp.abs(cosine)
    e = xp.minimum(spread, xp.full_like(spread, QUARTER_TURN))
    along, across = xp.cos(e), xp.sin(e)
    low = nonnegative(s * along - c * across - ROUNDING)
    high = s * along + c * across + ROUNDING
    whole = spread >= QUARTER_TURN
    peak = whole | (c * along - s * across <= ROUNDING) | (high > 1.0)
    return xp.where(whole, xp.zeros_like(low), low), xp.where(peak, xp.ones_like(high), high)
