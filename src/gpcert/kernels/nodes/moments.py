"""Weighted moments of points about many centres, by matrix products.

Proofs: docs/mathematics.md, statements 4.1 and 16.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from gpcert.arrays import Array, PerCell, PerCellMatrix, namespace, to_numpy
from gpcert.fusion import fused
from gpcert.kernels.nodes.symmetric_tensors import sorted_index

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
    def _quadratic(self) -> Array:
        """(N, 1 + f + f (f + 1) / 2): the columns 1, z, z_j z_k of every point."""
        return namespace(self.points).concat([self._linear, self._products(2)], axis=1)

    @cached_property
    def _cubic(self) -> Array:
        """`_quadratic` and the columns z_j z_k z_l."""
        return namespace(self.points).concat([self._quadratic, self._products(3)], axis=1)

    def _products(self, degree: int) -> Array:
        """(N, n): the products of `degree` sorted features."""
        xp, z = namespace(self.points), self.points
        index = xp.asarray(sorted_index(z.shape[1], degree).entries, device=z.device)
        return math.prod((z[:, index[:, i]] for i in range(1, degree)), start=z[:, index[:, 0]])

    @cached_property
    def _place(self) -> Array:
        """(f^2,): where the products of degree 2 stand in a matrix."""
        f = self.points.shape[1]
        first, second = np.triu_indices(f)
        place = np.zeros((f, f), dtype=np.int32)
        place[first, second] = place[second, first] = np.arange(len(first))
        return namespace(self.points).asarray(place.reshape(-1), device=self.points.device)

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
        if self.points.shape[1] <= MOST_FEATURES_AT_ONCE:
            return _centred_product(coefficients @ self._quadratic, self._place, centers)
        # few boxes of many features: z z^T of all points would fill the memory
        zeroth = namespace(centers).sum(coefficients, axis=1)
        return _centred(zeroth, coefficients @ self.points, self._second(coefficients), centers)

    def moments_and_cubes(
        self, coefficients: Array, centers: Array
    ) -> tuple[tuple[Array, Array, PerCellMatrix], Array]:
        """`moments`, and `sum a z_j z_k z_l` (B, n) over the sorted triples, by one product."""
        raw, count = coefficients @ self._cubic, self._quadratic.shape[1]
        return _centred_product(raw[:, :count], self._place, centers), raw[:, count:]


@fused
def _centred_product(raw: Array, place: Array, centers: Array) -> tuple[Array, Array, Array]:
    """`_centred` of the moments side by side, those of degree 2 where `place` says."""
    f, xp = centers.shape[1], namespace(raw)
    second = xp.reshape(xp.take(raw[:, 1 + f :], place, axis=1), (raw.shape[0], f, f))
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
