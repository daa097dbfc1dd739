"""Mean and variance together: a lower bound of `q - beta v` on a cell.

Bounding mean and variance apart and combining the extremes is only first-order accurate, since
they are attained at different points; one quadratic model of the combination is not.
"""

from __future__ import annotations

from gpcert.arrays import Array, namespace
from gpcert.enclosures.geometry import Geometry
from gpcert.enclosures.local_quadratic import LocalQuadratic, add_identity, growth_chord
from gpcert.enclosures.variance import VarianceEnclosure
from gpcert.rounding import EXP_ULPS, down, gamma, nonnegative, up

__all__ = ["combine"]


def combine(
    mean: LocalQuadratic,
    variance: VarianceEnclosure,
    beta: Array,
    v_range: tuple[Array, Array],
    dip: float,
    geometry: Geometry,
) -> LocalQuadratic:
    """Lower model of `q - beta v` with the mean's weight omega, from models of q and of +-v.

    The variance is modelled with weight omega^2, w = omega^2 v; with r the rate of omega:

        beta > 0:  -w/omega = -w + w (1 - 1/omega) >= -w + v_low fall |d|^2,
        beta < 0:   w/omega =  w - w (1 - 1/omega) >=  w - v_high exp(2 r rho2) r |d|^2,

    as w >= v_low >= 0, `fall |d|^2 <= 1 - exp(-r |d|^2) <= r |d|^2` with
    fall = (1 - exp(-r rho2)) / rho2 (chord of a concave function). A rounded model may have
    negative variances down to -dip; there the first line loses at most dip exp(2 r rho2) r rho2,
    which is added to its error, and the second holds as it stands.
    """
    xp = namespace(beta)
    v_low, v_high = v_range
    size = xp.abs(beta)
    positive = beta > 0
    below, above = variance.below, variance.above
    value = xp.where(positive, above.value, below.value)
    gradient = xp.where(positive[:, None], above.gradient, below.gradient)
    hessian = xp.where(positive[:, None, None], above.hessian, below.hessian)
    error = xp.where(positive, above.error, below.error)

    growth = up(1.0 + geometry.rho2 * growth_chord(2 * mean.rate, geometry.rho2), 4)
    lost = mean.rate * up(v_high * growth, 4)
    shift = xp.where(positive, v_low * _fall(mean.rate, geometry.rho2), -lost)
    negative = up(dip * growth * (mean.rate * geometry.rho2), 8)
    error = error + xp.where(positive, negative, xp.zeros_like(error))
    total = mean.hessian + size[:, None, None] * add_identity(hessian, 2.0 * shift)
    spread = geometry.half[:, :, None] * geometry.half[:, None, :]
    bends = xp.abs(mean.hessian) + size[:, None, None] * xp.abs(hessian)
    magnitude = xp.sum(spread * bends, axis=(1, 2))
    slopes = xp.abs(mean.gradient) + size[:, None] * xp.abs(gradient)
    magnitude = magnitude + xp.sum(slopes * geometry.half, axis=1) + xp.abs(mean.value)
    magnitude = magnitude + size * (xp.abs(value) + 2.0 * xp.abs(shift) * geometry.rho2)
    known = xp.isfinite(error)  # an infinite error stays infinite even for beta = 0
    scaled_error = xp.where(known, size * xp.where(known, error, xp.zeros_like(error)), error)
    # void models (infinite errors) stay void, whatever beta is
    usable = xp.isfinite(error)
    error = xp.where(usable, size * xp.where(usable, error, xp.zeros_like(error)), error)
    return LocalQuadratic(
        mean.value + size * value,
        mean.gradient + size[:, None] * gradient,
        total,
        up(mean.error + scaled_error + gamma(16) * magnitude, 8),
        mean.rate,
    )


def _fall(rate: float, rho2: Array) -> Array:
    """`(1 - exp(-rate rho2)) / rho2`, rounded down; `rate (1 - x/2)` in the limit of small x."""
    xp = namespace(rho2)
    x = rate * rho2
    safe = xp.where(x > 1e-8, x, xp.ones_like(x))
    quotient = xp.where(x > 1e-8, -xp.expm1(-safe) / safe, 1.0 - 0.5 * x)
    return nonnegative(down(rate * quotient, EXP_ULPS + 8))
