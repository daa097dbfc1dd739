"""Values of the squared exponential, and the errors of all values that a table computes.

Proofs: docs/mathematics.md, statements 16.5 and 16.6.
"""

from __future__ import annotations

import numpy as np

from gpcert.errors import InputError
from gpcert.numerics.arrays import Array, PerCell, PerCellAndPoint, Reals, namespace
from gpcert.numerics.compilation import fused
from gpcert.numerics.rounding import EXP_ULPS, U, gamma, nonnegative, up

FARTHEST = 2.0**20
"""Squared distances in the fixed features end here: k is below TINY there and beyond, which every
value allows, and an infinite one would make NaN of a slope of 0."""

UNDERFLOW_RADIUS = 40.0
"""A point further than 40 scaled units has k < s^2 exp(-800) < s^2 TINY."""

LARGEST_DISTANCE_ERROR = 0.1
"""exp(e/2) - 1 <= 0.6 e holds for absolute errors e of r^2 up to here (convexity, and at 0.1)."""


def subtraction_error(extent: Reals, f: int) -> Reals:
    """Error of the squared distance in f free features by subtracting coordinates first.

    Both coordinates carry 3 roundings and `|c| + |z_i| <= extent`: the difference, at most r long,
    is off by 3 U extent, its square by `6 U r extent + 9 U^2 extent^2`, and r <= UNDERFLOW_RADIUS
    where k is not below TINY.
    """
    r = UNDERFLOW_RADIUS
    return (f + 12) * U * r**2 + 6 * U * r * extent + 9 * U**2 * np.square(extent)


def kernel_errors(distance_error: Reals, fixed_distances: Reals, d: int, extent: Reals) -> Reals:
    """`relative_error` of the table, from the error of r^2 in the free features.

    The fixed features add gamma(d + 8) of their share, of which no more than twice
    UNDERFLOW_RADIUS^2 matters; `exp(e/2) - 1 <= 0.6 e` for errors e up to LARGEST_DISTANCE_ERROR.
    """
    share = np.minimum(fixed_distances, 2 * UNDERFLOW_RADIUS**2)
    distance_error = distance_error + gamma(d + 8) * share
    relative = np.where(
        distance_error <= LARGEST_DISTANCE_ERROR,
        0.6 * distance_error + gamma(EXP_ULPS + 4),
        np.inf,
    )
    if not np.all(np.isfinite(relative)):
        raise InputError(
            f"region: it and the points span {extent.max():.3g} length-scales, too many for "
            "float64 to tell the points apart; expected at most about 1e12: take a smaller "
            "region, or check the kernel's length-scales"
        )
    return np.asarray(up(relative, 8))


@fused
def expanded_values(
    scaled: Array, opposite: Array, squares: Array, fixed: Array, scale: Array
) -> tuple[PerCellAndPoint, PerCellAndPoint]:
    """`values` by expanding the square."""
    xp = namespace(scaled)
    product = scaled @ opposite
    product += squares[None, :]
    product += xp.sum(scaled**2, axis=1)[:, None]
    if isinstance(product, np.ndarray):  # in place: new memory costs more than the arithmetic
        np.maximum(product, 0.0, out=product)
        K = -0.5 * (product + fixed)
        np.exp(K, out=K)
        K *= scale
        return product, K
    distances = nonnegative(product)
    return distances, scale * xp.exp(-0.5 * (distances + fixed))


@fused
def length_below(x: Array, dims: int) -> PerCell:
    """Lower bound of the Euclidean (Frobenius) norm over the last `dims` axes."""
    xp = namespace(x)
    axes = tuple(range(1, 1 + dims))
    total = xp.sqrt(xp.sum(x**2, axis=axes))
    return total * (1.0 - gamma(x.shape[-1] ** dims + 8))
