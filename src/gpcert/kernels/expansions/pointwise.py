"""The third-order remainder of a sum of exponentials, bounded point by point.

Proofs: docs/mathematics.md, statement 4.6.
"""

from __future__ import annotations

import math

from gpcert.arrays import Array, namespace
from gpcert.kernels.expansions.exponential_tail import LARGEST_EXPONENT
from gpcert.rounding import U, nonnegative, up

__all__ = ["pointwise_remainder"]


def pointwise_remainder(
    distances: Array, fixed: Array, weights: Array, relative_error: Array, rho: Array
) -> tuple[Array, Array]:
    """What degrees three and more of `sum_i t_i e^(-r_i^2/2) e^(u_i.d)` take at most, and add.

    `distances` (B, N) are |u_i|^2, `fixed` (N,) the rest of r_i^2, known up to `relative_error` as
    in `LocalSquaredExponential`; |d| <= rho (B,), so |u_i.d| <= Y_i = |u_i| rho. Statement:
    `e^y - 1 - y - y^2/2` lies in [-Y^3/6, psi(Y)] with
    `psi(Y) = (Y^3/6) min(1 + Y/4 + Y^2/20 + Y^3 e^Y/120, e^Y)` (Taylor with Lagrange remainder),
    so positive weights take at most k Y^3/6 and negative ones |t| k psi(Y). `k e^Y` is formed as
    one exponential, as k alone may underflow. Infinite beyond `LARGEST_EXPONENT`, like the tails.
    """
    xp = namespace(distances)
    spread = 2.0 * (relative_error + U)  # r^2 is known up to this, and then some
    Y = up(xp.sqrt(distances + spread * (1.0 + distances)), 4) * rho[:, None]
    half = 0.5 * (distances + fixed)
    exponent = Y - half
    usable = (exponent < LARGEST_EXPONENT) & (rho * rho <= LARGEST_EXPONENT)[:, None]
    exponent = xp.where(usable, exponent, xp.full_like(exponent, LARGEST_EXPONENT))
    far, near = xp.exp(exponent), xp.exp(-half)
    cube = Y * Y * Y  # a power is far slower than products
    cubic = cube / 6.0
    psi = xp.minimum(near * (1.0 + Y / 4.0 + Y**2 / 20.0) + far * (cube / 120.0), far)
    # the exponent is rounded: |Y| + r^2/2 <= 2 Y + 800 where the result does not underflow
    slack = (1.0 + relative_error) * (1.0 + (2.0 * Y + 800.0) * (8.0 * U))
    rises, falls = cubic * psi * slack, cubic * near * slack
    rises = xp.where(usable, rises, xp.full_like(rises, math.inf))
    gains, losses = nonnegative(weights), nonnegative(-weights)
    count = len(weights) + 32
    below = up(falls @ gains + _sum_to_infinity(rises, losses), count)
    return below, up(falls @ losses + _sum_to_infinity(rises, gains), count)


def _sum_to_infinity(terms: Array, weights: Array) -> Array:
    """`terms @ weights` for terms in [0, inf] and weights >= 0, with inf * 0 counted as inf."""
    xp = namespace(terms)
    finite = xp.isfinite(terms)
    total = xp.where(finite, terms, xp.zeros_like(terms)) @ weights
    return xp.where(xp.all(finite, axis=1), total, xp.full_like(total, math.inf))
