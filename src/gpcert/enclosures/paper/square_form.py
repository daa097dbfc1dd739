"""|A r|^2 between linear functions of r: a tangent plane below it, chords above it.

The paper's variance programs are those of r^T S r. With S = A^T A stored by its factor,

    |A r|^2 >= 2 p.(A r) - |p|^2                     for every p      (as |A r - p|^2 >= 0),
    |A r|^2 <= sum_j lambda_j ((l_j + h_j) u_j.r - l_j h_j) + r^T E r  for l_j <= u_j.r <= h_j,

lambda and u the rounded eigenvalues and eigenvectors of S, E = S - sum_j lambda_j u_j u_j^T what
the rounding of these leaves.

Proofs: docs/mathematics.md, statement 12.7.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
import scipy.linalg

from gpcert.arrays import Array, Backend, PerCell, PerCellAndPoint, namespace
from gpcert.rounding import TINY, gamma, up

LARGEST_RESIDUAL = 1e-6
"""Relative to k(x, x), for the worst kernel row: above it the rows of A take the place of the
eigenvectors, for which nothing is left over. A choice of tightness only."""


class LinearForm(NamedTuple):
    """`c.r + constant`, (B, N) and (B,)."""

    c: Array
    constant: Array


@dataclass(frozen=True, eq=False)
class SquareForm:
    """`factor` A (r, N); `vectors` u (M, N), `values` lambda (M,) >= 0, `residual` (N, N).

    The residual is entrywise at least |E|, or None where E = 0.
    """

    factor: Array
    vectors: Array
    values: Array
    residual: Array | None

    @staticmethod
    def build(A: Annotated[np.ndarray, "r N"], variance: float, backend: Backend) -> SquareForm:
        """Eigenvectors of A^T A by a singular value decomposition of A."""
        r, N = A.shape
        place = backend.asarray
        rows = SquareForm(place(A), place(A), place(np.ones(r)), None)
        if r == 0:
            return rows
        try:
            _, singular, vectors = scipy.linalg.svd(A, full_matrices=False)
        except np.linalg.LinAlgError:
            return rows
        values = singular**2
        count = len(values)
        absolute = np.abs(vectors)
        residual = np.abs(A.T @ A - (vectors.T * values) @ vectors)
        sizes = gamma(r + 4) * (np.abs(A).T @ np.abs(A))
        sizes = sizes + gamma(count + 8) * ((absolute.T * values) @ absolute)
        residual = np.asarray(up(residual + 2.0 * sizes, N + 8)) + TINY
        if not residual.sum() * variance <= LARGEST_RESIDUAL:
            return rows
        return SquareForm(place(A), place(vectors), place(values), place(residual))

    def __len__(self) -> int:
        return int(self.factor.shape[0])

    @np.errstate(over="ignore", invalid="ignore")
    def tangent(self, p: Annotated[Array, "B r"], sizes: PerCellAndPoint) -> LinearForm:
        """A linear function below |A r|^2 for p (B, r) and |r_i| <= sizes (B, N)."""
        xp = namespace(p)
        r = self.factor.shape[0]
        c = 2.0 * (p @ self.factor)
        off = gamma(r + 4) * 2.0 * (xp.abs(p) @ xp.abs(self.factor)) + TINY
        lost = xp.sum(off * sizes, axis=1) + xp.sum(p * p, axis=1)
        N = sizes.shape[1]
        return LinearForm(c, -up(lost, N + 2 * r + 16) - TINY)

    @np.errstate(over="ignore", invalid="ignore")
    def chords(self, low: Array, high: Array, sizes: PerCellAndPoint) -> LinearForm:
        """A linear function above |A r|^2 where `low <= u_j.r <= high` (B, M), |r_i| <= sizes.

        `t^2 <= (l + h) t - l h`, as (t - l)(h - t) >= 0; the rounding of l + h meets max |t|.
        """
        xp = namespace(sizes)
        M, N = self.vectors.shape
        values = self.values[None, :]
        furthest = xp.maximum(xp.abs(low), xp.abs(high))
        step = values * (low + high)
        c = step @ self.vectors
        off = gamma(M + 8) * (xp.abs(step) @ xp.abs(self.vectors)) + TINY
        lost = xp.sum(off * sizes, axis=1)
        square = values * furthest * furthest
        lost = lost + gamma(M + 16) * 4.0 * xp.sum(square, axis=1)
        lost = lost + self._residual(sizes)
        constant = -xp.sum(values * low * high, axis=1) + up(lost, N + M + 32) + TINY
        return LinearForm(c, constant)

    @np.errstate(over="ignore", invalid="ignore")
    def largest(self, low: Array, high: Array, sizes: PerCellAndPoint) -> PerCell:
        """(B,): `sum_j lambda_j max(l_j^2, h_j^2)` and what is left over: above |A r|^2."""
        xp = namespace(sizes)
        furthest = xp.maximum(xp.abs(low), xp.abs(high))
        total = xp.sum(self.values[None, :] * furthest * furthest, axis=1)
        return up(total + self._residual(sizes), self.vectors.shape[0] + 16) + TINY

    def _residual(self, sizes: Array) -> Array:
        """(B,): `|r|^T |E| |r|`, rounded up."""
        xp = namespace(sizes)
        if self.residual is None:
            return xp.zeros_like(sizes[:, 0])
        return up(xp.sum((sizes @ self.residual) * sizes, axis=1), 2 * sizes.shape[1] + 8)


def difference(below: LinearForm, above: LinearForm, sizes: PerCellAndPoint) -> LinearForm:
    """A linear function below `f - g` from one below f and one above g."""
    xp = namespace(sizes)
    c = below.c - above.c
    lost = gamma(2) * xp.sum((xp.abs(below.c) + xp.abs(above.c)) * sizes, axis=1)
    lost = lost + gamma(2) * (xp.abs(below.constant) + xp.abs(above.constant))
    return LinearForm(c, below.constant - above.constant - up(lost, sizes.shape[1] + 8) - TINY)
