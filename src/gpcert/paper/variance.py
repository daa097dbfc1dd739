"""Proved bounds of `|P r|^2 - |Q r|^2` over a relaxation: both variance bounds of the paper.

    v = k(x, x) - |A r|^2 + |C r|^2 <= max k(x, x) - min(|A r|^2 - |C r|^2),
                                  v >= min k(x, x) + min(|C r|^2 - |A r|^2).

Proposition "variance upper" minimises the convex part, "variance lower" replaces the concave part
by chords over the ranges of u_j.r (2N linear programs) and solves one more; multipliers by closed
forms here, or by solvers (`programs`). The linear functions below and above, a tangent and chords:

    |A r|^2 >= 2 p.(A r) - |p|^2                     for every p      (as |A r - p|^2 >= 0),
    |A r|^2 <= sum_j lambda_j ((l_j + h_j) u_j.r - l_j h_j) + r^T E r  for l_j <= u_j.r <= h_j,

lambda and u the rounded eigenvalues and eigenvectors of S = A^T A, E = S - sum_j lambda_j u_j u_j^T
what the rounding of these leaves.

Proofs: docs/mathematics.md, statements 12.7 and 12.8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
import scipy.linalg

from gpcert.enclosures.polynomials import Minimum
from gpcert.numerics.arrays import Array, Backend, PerCell, PerCellAndPoint, namespace
from gpcert.numerics.rounding import TINY, gamma, nonnegative, up
from gpcert.paper.lifted import finite_or_none
from gpcert.paper.relaxation import (
    Multipliers,
    Relaxation,
    dual_bound,
    interval_bound,
    sign_multipliers,
)
from gpcert.utils.processes import checkpoint

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
        xp, (r, N) = namespace(p), self.factor.shape
        off = gamma(r + 4) * 2.0 * (xp.abs(p) @ xp.abs(self.factor)) + TINY
        lost = xp.sum(off * sizes, axis=1) + xp.sum(p * p, axis=1)
        return LinearForm(2.0 * (p @ self.factor), -up(lost, N + 2 * r + 16) - TINY)

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
        square = gamma(M + 16) * 4.0 * xp.sum(values * furthest * furthest, axis=1)
        lost = xp.sum(off * sizes, axis=1) + square + self._residual(sizes)
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


LARGEST_CHUNK = 4.0e6
"""Numbers held at once while many objectives are bounded."""


@dataclass(eq=False)
class ClosedForms:
    """The programs of a relaxation, where multipliers come from: any will do for the bounds. Here
    by the objective's signs, and tangents at k(c): no solver."""

    relaxation: Relaxation

    def linear(self, c: Annotated[Array, "... N"]) -> Multipliers | None:
        """Multipliers for `min c.r`, c (M, N) or (B, M, N); None: no better ones than signs."""
        return None

    def quadratic(self, form: SquareForm, c: PerCellAndPoint) -> tuple[Array, Multipliers | None]:
        """For `min |A r|^2 + c.r`, c (B, N): a point A r (B, r) near the minimum, multipliers."""
        return self.relaxation.center @ form.factor.T, None


def best_linear(
    programs: ClosedForms,
    c: Array,
    slope: Annotated[Array, "f"] | None = None,
    multipliers: Multipliers | None = None,
) -> Minimum:
    """Lower bounds (B, M) of `c.r + slope.e`, best of signs, intervals and the multipliers, by
    default those of the programs.

    `slope` (f,), or None, meets the displacements e of the features, in frame units.
    """
    xp, relaxation = namespace(c), programs.relaxation
    bound = dual_bound(relaxation, c, sign_multipliers(c), slope)
    if slope is None:
        flat = interval_bound(relaxation, c)
    else:  # multipliers zero: the slope has its own minimum
        zero = xp.zeros_like(c)
        flat = dual_bound(relaxation, c, Multipliers(zero, zero), slope).lower
    best = Minimum(xp.maximum(bound.lower, flat), bound.point)
    multipliers = programs.linear(c) if multipliers is None else multipliers
    if multipliers is None:
        return best
    return best.or_better(dual_bound(relaxation, c, multipliers, slope))


def rotated_ranges(
    programs: ClosedForms, form: SquareForm
) -> tuple[Annotated[Array, "B M"], Annotated[Array, "B M"]]:
    """Certified ranges (B, M) of u_j.r: the paper's 2N linear programs."""
    xp = namespace(form.vectors)
    B, N, K = programs.relaxation.under.slopes.shape
    rows = max(1, int(LARGEST_CHUNK / (B * (N + 4 * K))))
    low, high = [], []
    for start in range(0, form.vectors.shape[0], rows):
        checkpoint()
        u = form.vectors[start : start + rows]
        least = best_linear(programs, xp.concat([u, -u], axis=0)).lower
        low.append(least[:, : u.shape[0]])
        high.append(-least[:, u.shape[0] :])
    return xp.concat(low, axis=1), xp.concat(high, axis=1)


@np.errstate(over="ignore", invalid="ignore")
def least_difference(programs: ClosedForms, plus: SquareForm, minus: SquareForm) -> Minimum:
    """Certified lower bound of `|P r|^2 - |Q r|^2` over each cell.

    The best of: tangent of the first less chords of the second, one linear function, bounded by
    the dual; and `0 - sum_j lambda_j max(l_j^2, h_j^2)`.
    """
    relaxation = programs.relaxation
    xp, sizes = namespace(relaxation.low), relaxation.sizes
    zero = xp.zeros_like(sizes)
    above, floor = LinearForm(zero, zero[:, 0]), zero[:, 0]
    if len(minus):
        low, high = rotated_ranges(programs, minus)
        above = minus.chords(low, high, sizes)
        floor = -minus.largest(low, high, sizes)
    starts: list[tuple[Array, Multipliers | None]] = [(relaxation.center @ plus.factor.T, None)]
    if len(plus):
        p, multipliers = programs.quadratic(plus, -above.c)
        if multipliers is not None:
            starts.append((p, multipliers))
    floor = xp.where(xp.isnan(floor), xp.full_like(floor, -np.inf), floor)  # 0 times infinity
    lifted = relaxation.lifted
    best = Minimum(floor, xp.zeros_like(lifted.half[:, : lifted.features]))
    for p, multipliers in starts:
        form = difference(plus.tangent(p, sizes), above, sizes)
        best = best.or_better(_bounded(programs, form, multipliers))
    return best


def _bounded(programs: ClosedForms, form: LinearForm, multipliers: Multipliers | None) -> Minimum:
    """Lower bound (B,) of a linear function; NaN and infinities bound nothing."""
    xp = namespace(form.c)
    known = xp.all(xp.isfinite(form.c), axis=1) & xp.isfinite(form.constant)
    c = xp.where(known[:, None], form.c, xp.zeros_like(form.c))[:, None, :]
    best = best_linear(programs, c, multipliers=multipliers)
    lower = best.lower[:, 0]
    total = lower + form.constant - up(gamma(2) * (xp.abs(lower) + xp.abs(form.constant)), 4)
    total = xp.where(known, total, xp.full_like(total, -np.inf))
    return Minimum(finite_or_none(total), best.point[:, 0])


def variance_interval(
    prior: tuple[PerCell, PerCell],
    least: PerCell,
    greatest_loss: PerCell,
    gain: float,
    distance: float = 0.0,
) -> tuple[PerCell, PerCell]:
    """`low <= max(v, 0) <= high` from the prior's range and both least differences.

    `least` bounds |A r|^2 - |C r|^2 from below, `greatest_loss` |C r|^2 - |A r|^2; `distance` is
    that of the factor, see `UnitForm.distances`.
    """
    xp = namespace(least)
    low, high = prior
    apart = up(distance * high, 2) if distance > 0.0 else 0.0 * high
    lower = low + greatest_loss - up(gamma(3) * (xp.abs(low) + xp.abs(greatest_loss)) + apart, 4)
    upper = high - least + up(gamma(3) * (xp.abs(high) + xp.abs(least)) + apart, 4)
    cap = up(gain * high, 1) if gain > 1 else high
    upper = xp.where(xp.isnan(upper), cap, xp.minimum(nonnegative(upper), cap))
    lower = xp.where(xp.isfinite(lower), nonnegative(lower), xp.zeros_like(lower))
    # only a cell without a point of the region can have crossed ends: any range is right there
    return xp.minimum(lower, upper), xp.maximum(lower, upper)
