"""Numbers of a posterior in units of the kernel and of the points, and norms summed by blocks.

Proofs: docs/mathematics.md, statements 1.6 and 16.9.
"""

from __future__ import annotations

import math

import numpy as np

from gpcert.errors import InputError
from gpcert.numerics.rounding import TINY, gamma, raised_power, scaled, scaled_to_one, up_float
from gpcert.numerics.spectral import GramBlock


class NormSums:
    """`t^T K_ZZ t` of every output, summed block by block.

    Computed on weights whose largest is about one, so that what underflows in the products is
    below N^2 2^-1022, which TINY (an entry of K) times the largest weight squared covers.
    """

    def __init__(self, weights: np.ndarray) -> None:
        self._scaled = [scaled_to_one(t) for t in weights]
        self._T = np.stack([t for t, _ in self._scaled])
        self._sizes = np.abs(self._T)
        self._squares, self._error = np.zeros(len(weights)), np.zeros(len(weights))

    def add(self, block: GramBlock) -> None:
        """The part of a block, and of the one above the diagonal that is the same."""
        both = 1.0 if block.diagonal else 2.0
        T = self._T[:, block.rows], self._T[:, block.columns]
        self._squares += both * np.sum((T[0] @ block.K) * T[1], axis=1)
        left, right = self._sizes[:, block.rows], self._sizes[:, block.columns]
        # sums of at most N rows, N columns and N blocks
        rounded = gamma(3 * self._T.shape[1] + 16) * (left @ np.abs(block.K))
        rounded += 2.0 * (left @ block.errors) + TINY * left.sum(axis=1)[:, None]
        self._error += both * np.sum(rounded * right, axis=1)

    def bounds(self) -> np.ndarray:
        """(m,) upper bounds of the roots."""
        bounds, roundings = np.zeros(len(self._scaled)), 3 * self._T.shape[1] + 16
        for c, (t, exponent) in enumerate(self._scaled):
            square = float(self._squares[c]) + up_float(float(self._error[c]), roundings)
            if np.any(t):
                length = math.sqrt(max(square, 0.0))
                bounds[c] = raised_power(up_float(length, 4), exponent)
        return bounds


def in_units(values: np.ndarray, exponent: int) -> np.ndarray:
    """`2^exponent values`, off by 2^-1075 where an entry underflows.

    That is counted: N such errors of weights meet kernel values below 2^51 (`LARGEST_VARIANCE`) and
    stay under TINY, which every enclosure adds; those of a factor are below the rounding
    `gamma(N) || |A| ||` of its products, or `|A k|^2` itself is below TINY; those of a slope are
    counted where it is used (`gpcert.enclosures.mean`).
    """
    if exponent == 0:
        return values
    with np.errstate(over="ignore", under="ignore"):
        converted = scaled(values, exponent)
    if not np.all(np.isfinite(converted)):
        raise InputError(
            "factor or slope: it is beyond float64 in units of the kernel and of the points; "
            "expected a factor A of the precision (K + noise)^-1, of size about 1 / sqrt(noise), "
            "and a slope of about the outputs' size over the points'"
        )
    return converted


def noise_in_units(noise: np.ndarray | None, exponent: int) -> np.ndarray | None:
    """`2^exponent noise`, exactly; an `InputError` where that is beyond float64."""
    if noise is None or exponent == 0:
        return noise
    with np.errstate(over="ignore", under="ignore"):
        converted = np.ldexp(noise, exponent)
        same = np.array_equal(np.ldexp(converted, -exponent), noise)
    if not same:
        raise InputError(
            "training_noise: it is beyond float64 in units of the kernel; expected 1e-300 to 1e300 "
            f"times the kernel's variance, got {noise.min():.3g} to {noise.max():.3g}"
        )
    return converted


def slope_exponent(slope: np.ndarray, points: np.ndarray) -> int | None:
    """e with 2^e about the largest `|slope_j z_j|` over the points; None without a slope.

    A feature that is 0 at all points counts as 1.
    """
    (used,) = np.nonzero(slope)
    if not len(used):
        return None
    sizes = np.abs(points[:, used]).max(axis=0)
    sizes = np.where(sizes > 0, sizes, 1.0)
    return int((np.frexp(slope[used])[1] + np.frexp(sizes)[1]).max())
