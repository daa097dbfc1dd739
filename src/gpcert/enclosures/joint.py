"""Mean and variance together: a lower bound of `q - beta v` on a cell.

Bounding mean and variance apart and combining the extremes is only first-order accurate, since
they are attained at different points; one quadratic model of the combination is not.

Proofs: docs/mathematics.md, statements 4.5 and 5.5.
"""

from __future__ import annotations

from gpcert.arrays import Array, namespace
from gpcert.enclosures.local_quadratic import LocalQuadratic, add_identity
from gpcert.enclosures.variance import VarianceEnclosure
from gpcert.kernels.expansions.geometry import Geometry
from gpcert.kernels.exponentials import growth_chord
from gpcert.rounding import EXP_ULPS, down, gamma, nonnegative, up

__all__ = ["combine"]


def combine(
    mean: LocalQuadratic,
    variance: VarianceEnclosure,
    beta: Array,
    v_low: Array,
    dip: float,
    geometry: Geometry,
) -> LocalQuadratic:
    """Lower model of `q - beta v` with the mean's weight omega, from models of q and of +-v.

    The variance is modelled with weight omega^2, w = omega^2 v; with r the rate of omega:

        beta > 0:  -w/omega = -w + w (1 - 1/omega) >= -w + v_low fall |d|^2,
        beta < 0:   w/omega >= w exp(-r rho2),

    as w >= v_low >= 0, omega <= exp(r rho2), and `fall |d|^2 <= 1 - exp(-r |d|^2)` with
    fall = (1 - exp(-r rho2)) / rho2 (chord of a concave function). The second is exact where the
    cell is farthest from its centre, which is where a minimum usually lies. A rounded model may
    have negative variances down to -dip: the first line then loses at most
    dip exp(2 r rho2) r rho2, the second dip exp(2 r rho2); both are added to the error.
    """
    xp = namespace(beta)
    positive = beta > 0
    x = up(mean.rate * geometry.rho2, 2)
    shrink = nonnegative(down(xp.exp(-x), EXP_ULPS + 4))
    # any factor between 0 and |beta| exp(-r rho2) is valid for beta < 0: no rounding to add
    size = xp.where(positive, xp.abs(beta), nonnegative(down(xp.abs(beta) * shrink, 2)))
    below, above = variance.below, variance.above
    value = xp.where(positive, above.value, below.value)
    gradient = xp.where(positive[:, None], above.gradient, below.gradient)
    hessian = xp.where(positive[:, None, None], above.hessian, below.hessian)
    error = xp.where(positive, above.error, below.error)

    shift = xp.where(positive, v_low * _fall(mean.rate, geometry.rho2), xp.zeros_like(v_low))
    growth = up(1.0 + geometry.rho2 * growth_chord(2 * mean.rate, geometry.rho2), 4)
    negative = up(dip * growth * xp.abs(beta) * xp.where(positive, x, xp.ones_like(x)), 8)
    total = mean.hessian + size[:, None, None] * add_identity(hessian, 2.0 * shift)
    spread = geometry.half[:, :, None] * geometry.half[:, None, :]
    bends = xp.abs(mean.hessian) + size[:, None, None] * xp.abs(hessian)
    magnitude = xp.sum(spread * bends, axis=(1, 2))
    slopes = xp.abs(mean.gradient) + size[:, None] * xp.abs(gradient)
    magnitude = magnitude + xp.sum(slopes * geometry.half, axis=1) + xp.abs(mean.value)
    magnitude = magnitude + size * (xp.abs(value) + 2.0 * xp.abs(shift) * geometry.rho2)
    known = xp.isfinite(error)  # an infinite error stays infinite even for beta = 0
    scaled_error = xp.where(known, size * xp.where(known, error, xp.zeros_like(error)), error)
    return LocalQuadratic(
        mean.value + size * value,
        mean.gradient + size[:, None] * gradient,
        total,
        up(mean.error + scaled_error + negative + gamma(16) * magnitude, 8),
        mean.rate,
    )


def _fall(rate: float, rho2: Array) -> Array:
    """`(1 - exp(-rate rho2)) / rho2`, rounded down; `rate (1 - x/2)` in the limit of small x."""
    xp = namespace(rho2)
    x = rate * rho2
    safe = xp.where(x > 1e-8, x, xp.ones_like(x))
    quotient = xp.where(x > 1e-8, -xp.expm1(-safe) / safe, 1.0 - 0.5 * x)
    return nonnegative(down(rate * quotient, EXP_ULPS + 8))
