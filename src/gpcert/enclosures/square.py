"""The term `<Psi - e0, P (Psi - e0)>` of the variance, between two quadratic forms.

Psi - e0 = D d + r with `||r|| <= tail_1(rho2)`, P the posterior covariance operator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpcert.arrays import Array, namespace
from gpcert.enclosures.geometry import Geometry
from gpcert.enclosures.local_quadratic import add_identity, growth_chord
from gpcert.enclosures.mean import Expansion
from gpcert.enclosures.precision import LocalPrecision
from gpcert.kernels import LocalKernel
from gpcert.rounding import gamma, nonnegative, up

__all__ = ["Square", "posterior_square", "prior_square"]


SMALLEST_RATIO = 1e-6
"""Keeps 1/eta and 1/(1 - theta) finite where the remainder vanishes; any positive value will do."""


@dataclass(frozen=True, eq=False)
class Square:
    """`d^T below d - below_error <= term <= d^T above d + above_error` on every cell."""

    below: Array
    below_error: Array
    above: Array
    above_error: Array

    def better(self, other: Square, geometry: Geometry) -> tuple[Square, bool]:
        """Per cell and side, the form that leaves less room (both are valid); and whether the
        other one was taken anywhere."""
        xp = namespace(self.below_error)

        def reach(matrix: Array) -> Array:
            spread = geometry.half[:, :, None] * geometry.half[:, None, :]
            return xp.sum(xp.abs(matrix) * spread, axis=(1, 2))

        # a lower form is worth about half of what it can reach
        upper = reach(other.above) + other.above_error < reach(self.above) + self.above_error
        lower = 0.5 * reach(other.below) - other.below_error
        lower = lower > 0.5 * reach(self.below) - self.below_error
        best = Square(
            xp.where(lower[:, None, None], other.below, self.below),
            xp.where(lower, other.below_error, self.below_error),
            xp.where(upper[:, None, None], other.above, self.above),
            xp.where(upper, other.above_error, self.above_error),
        )
        return best, bool(xp.any(lower | upper))


def prior_square(local: LocalKernel, geometry: Geometry, rate: float, excess: float) -> Square:
    """`-kappa s^2 chord |d|^2 <= term <= s^2 chord |d|^2`, as -kappa I <= P <= I.

    `||Psi - e0||^2 = s^2 (omega^2 - 1)` and `omega^2 - 1 <= growth_chord |d|^2`.
    """
    xp = namespace(geometry.rho2)
    chord = up(local.variance * growth_chord(rate, geometry.rho2), 2)
    f = geometry.half.shape[1]
    identity = xp.eye(f, dtype=chord.dtype, device=chord.device)
    above = chord[:, None, None] * identity
    rounding = up(gamma(8) * chord * geometry.rho2, 4)  # of adding it to another matrix
    below = -up(excess * above, 2) if excess else 0.0 * above
    return Square(below, excess * rounding, above, rounding)


def posterior_square(
    local: LocalKernel, expansion: Expansion, precision: LocalPrecision, excess: float
) -> Square:
    """With G = D* (P + kappa I) D, R^2 = (1 + kappa) tail_1^2, for any eta > 0, 0 <= theta < 1:

        theta d^T G d - theta/(1-theta) R^2 - kappa s^2 chord |d|^2 <= term
                                        <= (1 + eta) d^T G d + (1 + 1/eta) R^2.

    Reason: P + kappa I >= 0 defines a seminorm, and `2 <a, b> >= -(1-theta)|a|^2 - |b|^2/(1-theta)`
    (Young). eta = R/g and theta = 1 - R/g, g the largest |D d| on the cell, are the best choices at
    the far end: (g + R)^2 and (g - R)^2.
    """
    xp = namespace(expansion.K)
    geometry = expansion.geometry
    G, G_error = precision.derivative_covariance(local, expansion.K, expansion.scaled)
    # the error of G and kappa s^2 I enter as multiples of the identity, on the upper side of G
    G = add_identity(G, up(G_error + excess * local.variance, 4))
    R = up((1.0 + excess) * local.tail(1, geometry.rho2), 4)
    usable = xp.isfinite(R)
    safe = xp.where(usable, R, xp.zeros_like(R))
    spread = geometry.half[:, :, None] * geometry.half[:, None, :]
    g = xp.sqrt(xp.sum(xp.abs(G) * spread, axis=(1, 2)))
    ratio = safe / xp.where(g > 0, g, xp.ones_like(g))
    eta = xp.maximum(ratio, xp.full_like(ratio, SMALLEST_RATIO))
    above_error = up(safe * safe * (1.0 + 1.0 / eta), 8)
    theta = nonnegative(1.0 - eta)
    below_error = up(theta / (1.0 - theta) * (safe * safe), 8)
    rate = 2.0 * local.weight_rate
    chord = up(2.0 * local.variance * growth_chord(rate, geometry.rho2) * excess, 4)
    below = theta[:, None, None] * G
    # below used G on its upper side: take back the error, and the kappa part
    take_back = up(2.0 * (G_error + excess * local.variance) * theta + chord, 8)
    below_error = below_error + up(take_back * geometry.rho2, 2)
    infinite = xp.full_like(R, math.inf)
    rounding = up(gamma(16) * g * g, 4)
    return Square(
        below,
        xp.where(usable, below_error + rounding, infinite),
        (1.0 + eta)[:, None, None] * G,
        xp.where(usable, above_error + rounding * (1.0 + eta), infinite),
    )
