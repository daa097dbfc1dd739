"""Values of radial kernels as sums of two floats: about 20 digits.

Proofs: docs/mathematics.md, statements 16.13 and 16.14.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import numpy as np

from gpcert.numerics.arrays import Inputs, Points
from gpcert.numerics.pairs import PAIR_ERROR, Pair
from gpcert.numerics.rounding import TINY, U, given, two_product, two_sum, up

if TYPE_CHECKING:
    from gpcert.kernels.radial import RadialKernel

LARGEST = 1e100
"""Lengths from here to its inverse, and coordinates below, have exact products."""

SMALLEST_EXTENT = 2.0**-200
"""Of all points together, in lengths: values at smaller ones are those at one point."""

AT_ONCE = 2**14
"""Kernel values whose sixty arrays or so stay in a cache."""

FAR_BELOW = 2.0**-40
"""Relative errors of pairs that are worth a look."""


def radial_pairs(
    kernel: RadialKernel, X: Inputs, Z: Points
) -> tuple[Pair, Annotated[np.ndarray, "n N"]]:
    """`k(x_i, z_j)` and a bound of the absolute error of each entry: where that is smaller than the
    error of `sharp_values`, which stand elsewhere."""
    rows = max(1, AT_ONCE // max(1, len(Z)))
    blocks = [_block(kernel, X[i : i + rows], Z) for i in range(0, len(X), rows)]
    high, low, error = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return Pair(high, low), error


@np.errstate(divide="ignore", invalid="ignore")
def _block(kernel: RadialKernel, X: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, ...]:
    """High and low parts and errors.

    An error E of r^2 moves log F_0 by at most `F_1(0) E / 2`, or by the steepness times E / r
    (Statement 16.14).
    """
    squares = _squares(np.broadcast_to(kernel.length_scale, (X.shape[1],)), X, Z)
    shape = None if squares is None else kernel.profile.pair_at_squares(squares[0])
    if squares is None or shape is None:
        value, error = kernel.sharp_values(X, Z)
        return value, np.zeros_like(value), error
    r2, (constant, rate) = squares
    change = constant + rate * r2.high
    slope = kernel.profile.at_zero[1]
    if math.isfinite(slope):
        change *= 0.5 * slope
    else:
        r = np.sqrt(r2.high)
        change *= kernel.profile.steepness(0, r, r) / r
    pair, relative = shape[0] * Pair.of(kernel.variance), 1.1 * change + shape[1] + PAIR_ERROR
    smaller = up(relative * pair.high, 12) + TINY * max(1.0, kernel.variance)
    if np.all((relative <= U) & np.isfinite(smaller)):
        return given(pair.high), given(pair.low), smaller
    value, error = kernel.sharp_values(X, Z)
    better = (relative < FAR_BELOW) & (smaller < error)
    high, low = np.where(better, pair.high, value), np.where(better, pair.low, 0.0)
    return given(high), given(low), np.where(better, smaller, error)


def _squares(
    lengths: np.ndarray, X: np.ndarray, Z: np.ndarray
) -> tuple[Pair, tuple[float, float]] | None:
    """Scaled squared distances, and a and b of their errors `a + b r^2`; None where numbers are too
    large or small.

    Scaled coordinates are a whole multiple of g, of at most 25 digits, and a rest, so that the
    squares of differences of the former have an exact sum (Statement 16.14).
    """
    points, (n, d) = np.concatenate([X, Z]), X.shape
    largest = np.abs(points).max(axis=0, initial=0.0)
    if not np.all((lengths > 1.0 / LARGEST) & (lengths < LARGEST) & (largest < LARGEST)):
        return None
    size = 2.1 * math.sqrt(float(np.sum(np.square(largest / lengths))))
    if not size < LARGEST:
        return None
    g = 2.0 ** (math.frexp(max(size, SMALLEST_EXTENT))[1] - 26)
    whole = np.rint(points / lengths / g) * g
    product, rounded = two_product(whole, lengths)
    rest = ((points - product) - rounded) / lengths
    high, low = np.zeros((n, len(Z))), np.zeros((n, len(Z)))
    for j in range(d):
        far = whole[:n, j, None] - whole[n:, j]
        near = rest[:n, j, None] - rest[n:, j]
        high += far * far
        low += (2.0 * far + near) * near
    rate = 1.1 * U * g * (12 + d) * math.sqrt(d)
    return Pair(*two_sum(high, low)), (rate + 5.0 * U * g * g * (12 + d) * d, rate)
