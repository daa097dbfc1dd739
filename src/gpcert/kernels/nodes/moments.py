"""Weighted moments of points about many centres, by matrix products.

Proofs: docs/mathematics.md, statements 4.1 and 16.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from gpcert.arrays import Array, PerCell, PerCellMatrix, namespace, to_numpy
from gpcert.fusion import fused

MOST_FEATURES_AT_ONCE = 32
"""Up to here the second moments of all boxes are one matrix product."""


@dataclass(frozen=True, eq=False)
class MomentTable:
    """`sum_i a_bi (1, u_i, u_i u_i^T)` with u_i = z_i - c_b, for points z (N, f).

    Rounding: dot products of N terms whose factors carry at most 8 further roundings, and shifts;
    terms and shifts of degree n are bounded by `|a_i| (|z_i| + |c|)^n`, so the errors (Euclidean,
    Frobenius) are at most `gamma(N + 2 f + 32) sum_i |a_i| (|z_i| + |c|)^n`.
    """

    points: Annotated[Array, "N d"]

    @cached_property
    def _monomials(self) -> Array:
        """(N, 1 + f + f^2): the columns 1, z, z z^T of every point, for one matrix product."""
        xp = namespace(self.points)
        N, f = self.points.shape
        outer = xp.reshape(self.points[:, :, None] * self.points[:, None, :], (N, f * f))
        return xp.concat([self._linear, outer], axis=1)

    @cached_property
    def _linear(self) -> Array:
        """(N, 1 + f): the columns 1, z."""
        xp = namespace(self.points)
        ones = xp.ones((self.points.shape[0], 1), dtype=xp.float64, device=self.points.device)
        return xp.concat([ones, self.points], axis=1)

    def first_moments(self, coefficients: Array, centers: Array) -> tuple[PerCell, Array]:
        """`sum a` (B,) and `sum a u` (B, f)."""
        raw = coefficients @ self._linear
        return raw[:, 0], raw[:, 1:] - raw[:, :1] * centers

    @cached_property
    def _used(self) -> np.ndarray:
        """Features that are not 0 at all points: images have margins."""
        return np.flatnonzero(np.any(to_numpy(self.points) != 0.0, axis=0))

    def _second(self, coefficients: Array) -> Array:
        """`sum a z z^T` (B, f, f); in NumPy as a difference of two squares R^T R, which BLAS forms
        in half the time. The rows `sqrt|a_i| z_i` of R carry two roundings each."""
        xp, f = namespace(coefficients), self.points.shape[1]
        if not isinstance(coefficients, np.ndarray):
            return (coefficients[:, None, :] * self.points.T[None]) @ self.points
        used, found = self._used, np.zeros((len(coefficients), f, f))
        points = self.points if len(used) == f else self.points[:, used]
        place = np.ix_(used, used)
        for square, own in zip(found, coefficients, strict=True):
            sides = []
            for rows in (own > 0, own < 0):
                R = xp.sqrt(np.abs(own[rows]))[:, None] * points[rows]
                sides.append(R.T @ R)
            square[place] = sides[0] - sides[1]
        return found

    def moments(self, coefficients: Array, centers: Array) -> tuple[Array, Array, PerCellMatrix]:
        """`sum a`, `sum a u` and `sum a u u^T` (B, f, f), exactly symmetric."""
        f = self.points.shape[1]
        if f <= MOST_FEATURES_AT_ONCE:
            return _centred_product(coefficients @ self._monomials, centers)
        # few boxes of many features: z z^T of all points would fill the memory
        zeroth = namespace(centers).sum(coefficients, axis=1)
        return _centred(zeroth, coefficients @ self.points, self._second(coefficients), centers)


@fused
def _centred_product(raw: Array, centers: Array) -> tuple[Array, Array, Array]:
    """`_centred` of the moments side by side (B, 1 + f + f^2)."""
    f = centers.shape[1]
    second = namespace(raw).reshape(raw[:, 1 + f :], (raw.shape[0], f, f))
    return _centred(raw[:, 0], raw[:, 1 : 1 + f], second, centers)


def _centred(
    zeroth: Array, first: Array, second: Array, centers: Array
) -> tuple[Array, Array, Array]:
    """`sum a (1, u, u u^T)` about the centres from `sum a (1, z, z z^T)`."""
    gradient = first - zeroth[:, None] * centers
    # sum a (z-c)(z-c)^T = sum a z z^T - c (sum a z)^T - (sum a (z-c)) c^T
    hessian = second - centers[:, :, None] * first[:, None, :]
    hessian = hessian - gradient[:, :, None] * centers[:, None, :]
    transposed = namespace(hessian).matrix_transpose(hessian)
    return zeroth, gradient, 0.5 * (hessian + transposed)
