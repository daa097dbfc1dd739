"""Second-order enclosure of the latent variance v = k(x, x) - k(x, Z) S k(Z, x) over cells.

With P = I - Phi S Phi* (the posterior covariance operator, -kappa I <= P <= I) and
Psi(d) = omega(d) phi(c+d) = e0 + D d + ..., the weighted variance is

    omega^2 v = <Psi, P Psi> = <e0, P e0> + 2 <e0, P (Psi - e0)> + <Psi - e0, P (Psi - e0)>.

The middle term is the posterior covariance function p(d) = omega k~(c, c+d), itself a combination
of kernel functions with weights -S k(c): it is expanded to second order exactly like a mean, with
the remainder 2 nu tail_2. The last term is the `Square` of square.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpcert.arrays import Array, namespace
from gpcert.enclosures.geometry import Geometry
from gpcert.enclosures.local_quadratic import LocalQuadratic, usable_error
from gpcert.enclosures.mean import Expansion, length_below, tail_bound
from gpcert.enclosures.precision import LocalPrecision
from gpcert.enclosures.square import posterior_square, prior_square
from gpcert.kernels import LocalKernel
from gpcert.rounding import down, gamma, nonnegative, up

__all__ = ["VarianceEnclosure", "variance_enclosure", "variance_range"]


@dataclass(frozen=True, eq=False)
class VarianceEnclosure:
    """Lower models of v and of -v on every cell, and v at the centres with its error."""

    below: LocalQuadratic
    above: LocalQuadratic
    center: Array
    center_error: Array
    derivatives_used: bool = False
    derivatives_gained: bool = False
    """Whether the posterior's derivative covariance was the better one on any cell."""


def variance_enclosure(
    local: LocalKernel,
    expansion: Expansion,
    precision: LocalPrecision,
    excess: float,
    derivatives: bool,
) -> VarianceEnclosure:
    """Lower models of v and -v with weight rate `2 * local.weight_rate`.

    `nu^2 = max(1, kappa) (v(c) + 2 kappa s^2) - |P_2 p|^2`: Cauchy-Schwarz on <P e0, tail>, where
    `|P e0|^2 <= |P| <e0, |P| e0>` and the tail is orthogonal to the derivatives up to order 2, so
    that what (p, grad p, Hess p) at c already determine, P_2 p, may be subtracted.
    """
    xp = namespace(expansion.K)
    geometry = expansion.geometry
    K, s2 = expansion.K, local.variance
    y, y_error, explained, explained_error = precision.apply(local, K)
    coefficients = -(y * K)
    zeroth, gradient, hessian = local.moments(coefficients, expansion.scaled)
    value = s2 - explained
    error0 = up(explained_error + gamma(2) * (s2 + explained), 4)
    sizes2, _ = local.squared_sizes(K)
    errors = local.moment_errors(xp.abs(coefficients))[:, :3]
    errors = errors + up(y_error[:, None] * xp.sqrt(sizes2), 8)
    error1, error2 = errors[:, 1], errors[:, 2]

    known = local.known_squared_norm(
        xp.abs(value) - error0,
        length_below(gradient, 1) - error1,
        length_below(hessian, 2) - error2,
    )
    whole = max(1.0, excess) * (nonnegative(value + error0) + 2.0 * excess * s2)
    higher = local.higher_terms(
        coefficients,
        expansion.scaled,
        (zeroth, gradient, hessian),
        (geometry.half, geometry.rho),
        up(y_error * xp.sqrt(sizes2[:, 2]), 8),
    )
    remainder = 2.0 * tail_bound(local, geometry, whole, known, higher)
    rounding = error0 + 2.0 * error1 * geometry.rho + error2 * geometry.rho2
    # adding the square to the Hessian rounds every entry; the square counts its own size itself
    bend = gamma(8) * _reach(hessian, geometry)
    error = usable_error(up(remainder + up(rounding + bend, 8), 2), geometry)
    rate = 2.0 * local.weight_rate
    square, gained = prior_square(local, geometry, rate, excess), False
    if derivatives:
        own = posterior_square(local, expansion, precision, excess)
        square, gained = square.better(own, geometry)
    below, above = 2.0 * (hessian + square.below), -2.0 * (hessian + square.above)
    below_error, above_error = up(error + square.below_error), up(error + square.above_error)
    return VarianceEnclosure(
        LocalQuadratic(value, 2.0 * gradient, below, below_error, rate),
        LocalQuadratic(-value, -2.0 * gradient, above, above_error, rate),
        value,
        error0,
        derivatives,
        gained,
    )


def variance_range(
    enclosure: VarianceEnclosure, local: LocalKernel, geometry: Geometry, excess: float
) -> tuple[Array, Array]:
    """Certified `low <= max(v, 0) <= high` on every cell: the best of three.

    The quadratic models; `0 <= max(v, 0) <= s^2` (P <= I); and the order-0 form
    `sqrt(v + kappa s^2)` within `sqrt(1 + kappa) R0` of its value at the centre, since
    P + kappa I is positive and at most 1 + kappa.
    """
    xp = namespace(enclosure.center)
    s2 = local.variance
    low = enclosure.below.bound(geometry).lower
    high = -enclosure.above.bound(geometry).lower
    shift = excess * s2
    reach = up(local.zeroth_remainder(geometry.rho2) * (1.0 + excess), 4)
    # differences may cancel: their rounding is counted by the size of the terms
    center, error = enclosure.center, enclosure.center_error
    rounding = gamma(8) * (xp.abs(center) + error + shift)
    root_low = down(xp.sqrt(nonnegative(center - error + shift - rounding)), 2)
    root_high = up(xp.sqrt(nonnegative(center + error + shift + rounding)), 2)
    nearer, farther = nonnegative(root_low - reach) ** 2, (root_high + reach) ** 2
    low = xp.maximum(nonnegative(low), nearer - shift - gamma(16) * (nearer + shift))
    high = xp.minimum(high, farther - shift + gamma(16) * (farther + shift))
    high = xp.minimum(nonnegative(high), xp.full_like(high, s2))
    return nonnegative(low), high


def _reach(hessian: Array, geometry: Geometry) -> Array:
    """`sum_jk |H_jk| w_j w_k`."""
    xp = namespace(hessian)
    spread = geometry.half[:, :, None] * geometry.half[:, None, :]
    return xp.sum(xp.abs(hessian) * spread, axis=(1, 2))
