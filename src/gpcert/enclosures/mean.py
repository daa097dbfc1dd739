"""Second-order enclosure of the latent mean g = sum_i t_i k(., z_i) over cells."""

from __future__ import annotations

from dataclasses import dataclass

from gpcert.arrays import Array, namespace
from gpcert.enclosures.geometry import Geometry
from gpcert.enclosures.local_quadratic import LocalQuadratic, usable_error
from gpcert.kernels import LocalKernel
from gpcert.kernels.higher_degrees import HigherTerms
from gpcert.rounding import gamma, nonnegative, up

__all__ = [
    "Expansion",
    "MeanEnclosure",
    "expand",
    "finite_product",
    "length_below",
    "mean_enclosure",
    "tail_bound",
]


@dataclass(frozen=True, eq=False)
class Expansion:
    """Kernel values (B, N) at the centres of a batch of cells, shared by mean and variance."""

    geometry: Geometry
    scaled: Array
    distances: Array
    K: Array


@dataclass(frozen=True, eq=False)
class MeanEnclosure:
    """Lower models of g and of -g on every cell, and g at the centres with its error."""

    below: LocalQuadratic
    above: LocalQuadratic
    center: Array
    center_error: Array
    rounding: Array
    """(B,) rounding of the quadratic polynomial on each cell; part of the models' errors."""

    pointwise_gained: bool = False
    """Whether the point-by-point remainder was the smaller one on any cell."""


def expand(local: LocalKernel, geometry: Geometry) -> Expansion:
    """Evaluate the kernel at the centres of the cells."""
    scaled = local.scaled_centers(geometry.cells.center)
    distances = local.squared_distances(scaled)
    return Expansion(geometry, scaled, distances, local.matrix(distances))


def mean_enclosure(
    local: LocalKernel, expansion: Expansion, weights: Array, norm: float, pointwise: bool
) -> MeanEnclosure:
    """`omega g = g(c) + grad.d + d^T H d/2 + e` with |e| below the better of two remainders.

    Global: `|e| <= sqrt(B^2 - |P g|^2) tail_2(rho2)`, B the RKHS norm of g and P the projection on
    phi(c) and its derivatives up to order 2: Cauchy-Schwarz, and the tail is orthogonal to them.
    Pointwise (`pointwise=True`): see `pointwise_remainder`. MATH.md parts 2 and 4.
    """
    xp = namespace(expansion.K)
    geometry = expansion.geometry
    coefficients = expansion.K * weights
    magnitudes = xp.abs(coefficients)
    value, gradient, hessian = local.moments(coefficients, expansion.scaled)
    underflow = local.floor * float(xp.sum(xp.abs(weights)))
    errors = local.moment_errors(magnitudes) + underflow
    known = local.known_squared_norm(
        xp.abs(value) - errors[:, 0],
        length_below(gradient, 1) - errors[:, 1],
        length_below(hessian, 2) - errors[:, 2],
    )
    higher = local.higher_terms(
        coefficients, expansion.scaled, (value, gradient, hessian), (geometry.half, geometry.rho)
    )
    remainder = tail_bound(local, geometry, norm * norm, known, higher)
    lower_error = upper_error = remainder
    gained = False
    if pointwise:
        below, above = local.pointwise_remainder(expansion.distances, weights, geometry.rho)
        gained = bool(xp.any((below < remainder) | (above < remainder)))
        lower_error = xp.minimum(lower_error, below)
        upper_error = xp.minimum(upper_error, above)
    rho = geometry.rho
    rounding = up(errors[:, 0] + errors[:, 1] * rho + errors[:, 2] * geometry.rho2, 8)
    lower_error = usable_error(up(lower_error + rounding, 2), geometry)
    upper_error = usable_error(up(upper_error + rounding, 2), geometry)
    rate = local.weight_rate
    return MeanEnclosure(
        LocalQuadratic(value, gradient, hessian, lower_error, rate),
        LocalQuadratic(-value, -gradient, -hessian, upper_error, rate),
        value,
        errors[:, 0],
        rounding,
        gained,
    )


def length_below(x: Array, dims: int) -> Array:
    """Lower bound of the Euclidean (Frobenius) norm over the last `dims` axes."""
    xp = namespace(x)
    axes = tuple(range(1, 1 + dims))
    total = xp.sqrt(xp.sum(x**2, axis=axes))
    return total * (1.0 - gamma(x.shape[-1] ** dims + 8))


def tail_bound(
    local: LocalKernel,
    geometry: Geometry,
    squared_norm: float | Array,
    known: Array,
    higher: HigherTerms | None,
) -> Array:
    """Bound of all terms beyond the second degree, for a function of the given squared norm.

    Known degrees are bounded one by one; the rest, orthogonal to them, has squared norm at most
    `squared_norm - known - higher.known / s^2` and meets a tail of length `tail_order`.
    """
    xp = namespace(known)
    plain = finite_product(
        xp.sqrt(nonnegative((squared_norm - known) + gamma(8) * squared_norm)),
        local.tail(2, geometry.rho2),
    )
    if higher is None:
        return plain
    left = squared_norm - known - higher.known / local.variance
    rest = xp.sqrt(nonnegative(left + gamma(16) * squared_norm))
    finer = up(higher.size + finite_product(rest, local.tail(higher.order, geometry.rho2)), 4)
    return xp.minimum(plain, finer)


def finite_product(size: Array, tail: Array) -> Array:
    """`size * tail`, rounded up, where an infinite tail stays infinite even for size 0."""
    xp = namespace(size)
    product = size * xp.where(xp.isfinite(tail), tail, xp.zeros_like(tail))
    return xp.where(xp.isfinite(tail), up(product, 6), tail)
