"""The reference of a cell: latent means and covariance about which it is expanded.

Class probabilities do not see a shift that all latent values share, and the likelihood does not
inform it: the posterior covariance of coupled classes is nearly a diagonal plus a multiple of
`1 1^T`. So that of many classes is near one of independent classes; any reference is sound.

Proofs: docs/mathematics.md, statements 1.7, 10.5 and 10.13.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import numpy as np

from gpcert.enclosures.classes.joint_change import Change, joint_bends
from gpcert.enclosures.classes.latent import (
    FirstOrder,
    linear_reach,
    mean_first_order,
    orders_at_center,
    variance_first_order,
)
from gpcert.enclosures.classes.metric import Sizes, measure
from gpcert.enclosures.classes.outputs import LatentOutputs
from gpcert.likelihoods import ClassLikelihood
from gpcert.model.class_layout import ClassLayout
from gpcert.numerics.arrays import Array, PerCell, PerCellAndClass, namespace
from gpcert.numerics.rounding import gamma, root, up
from gpcert.regions.scaled import ScaledCells

SMALLEST_VARIANCE = 1e-2
"""Smallest variance of a class, and eigenvalue of the reference covariance: derivatives are found
as averages over it. A smaller true one is reached by the expansion; links hardly bend over 0.1."""

RELATIVE_VARIANCE = 1e-8
"""The same relative to the largest, so that whitening stays well conditioned."""

RELATIVE_OUTPUT = 1e-11
"""The same for independent outputs, whose variances are the law's: `V_0` of one that has 1e16 times
the variance of the others is, in float64, the singular matrix of it alone."""

LARGEST_VARIANCE = 1e56
"""Latent variances beyond this are no numbers to expand about, nor do the integrals of all links
take them; probabilities are then bounded by the other ways, or not at all."""

RIDGE = 1e-9
"""Keeps the equations regular where one class has next to no variance."""

ROUNDS = 3
"""Least-squares steps in the metric of the law found before; two are enough where it is near."""


def nearest_variances(V: Annotated[Array, "B n n"]) -> PerCellAndClass:
    """(B, m): variances D of independent classes whose differences `f_k - f_0` have a covariance
    near V (B, n, n), in the Frobenius norm of its own metric.

    A change of D by `D x` makes the distance least where `(Pi * Pi) x = diag(Pi E' Pi)`, products
    entry by entry, `Pi = I - u u^T`, u the unit vector along `D^-1/2 1` (Statement 10.13).
    """
    xp = namespace(V)
    m = V.shape[1] + 1
    wide = xp.concat([0.0 * V[:, :, :1], V], axis=2)  # class 0, of which nothing is known, at 0
    full = xp.concat([0.0 * wide[:, :1], wide], axis=1)
    one = xp.asarray(np.eye(m), device=V.device)
    D = xp.ones_like(full[:, 0])
    for _ in range(ROUNDS):
        scale = 1.0 / xp.sqrt(D)
        u = scale / xp.sqrt(xp.sum(scale * scale, axis=1, keepdims=True))
        Pi = one - u[:, :, None] * u[:, None, :]
        E = scale[:, :, None] * full * scale[:, None, :] - one
        right = xp.linalg.diagonal(Pi @ E @ Pi)
        change = xp.linalg.solve(Pi * Pi + RIDGE * one, right[:, :, None])[:, :, 0]
        D = D * (1.0 + change)
        D = _raised(xp.where(xp.all(xp.isfinite(D), axis=1)[:, None], D, xp.ones_like(D)))
    return D


def _raised(variances: Array) -> Array:
    """(B, k) raised to the smallest that are allowed; any choice is sound."""
    xp = namespace(variances)
    largest = xp.max(variances, axis=1, keepdims=True)
    least = xp.maximum(RELATIVE_VARIANCE * largest, xp.full_like(largest, SMALLEST_VARIANCE))
    return xp.maximum(variances, least + 0.0 * variances)


@dataclass(frozen=True, eq=False)
class Reference:
    """Latent differences near `N(a_0, V_0)`, `V_0 = L L^T`, on every cell.

    `outputs` and `change.variances` are the searched outputs' means and variances, `change` the
    differences and covariance made from them; R is about L^-1, and `sizes` measures in its metric.
    Where the integral is that of independent classes (the outputs themselves, or the nearest such
    law), those have means `apart_means` and variances `apart` (B, m): `L L^T` is the covariance of
    their differences, noise of the likelihood added, up to `mismatch` (B,) in Frobenius norm.
    """

    layout: ClassLayout
    likelihood: ClassLikelihood
    geometry: ScaledCells
    outputs: FirstOrder
    apart: Array
    mismatch: Array
    noise: Array
    change: Change
    L: Array
    R: Array
    inflation: Array
    sizes: Sizes

    @property
    def apart_means(self) -> PerCellAndClass:
        """(B, m): only differences matter; 0 for the first class, then those are exact."""
        a = self.change.means.reference
        return namespace(a).concat([0.0 * a[:, :1], a], axis=1)

    @cached_property
    def plain_sizes(self) -> Sizes:
        """Sizes in the links' own metric, `2 |u - mean(u)|^2 >= (max u - min u)^2` on R^m, u_0 = 0:
        with `S = 2 (I - 1 1^T / m) = C C^T`, `|C^T u|^2 = u^T S u`. 1e-12 covers C's rounding."""
        xp = namespace(self.L)
        n = self.L.shape[1]
        C = np.linalg.cholesky(2.0 * (np.eye(n) - 1.0 / (n + 1))) * (1.0 + 1e-12)
        metric = xp.asarray(C.T.copy(), device=self.L.device) + 0.0 * self.L
        return measure(self.change, metric, 0.0 * self.inflation, self.geometry)

    def at_center(self, latent: LatentOutputs) -> tuple[Reference, Annotated[Array, "B n"]]:
        """The same reference for the cells' centres alone, and how well their means `center` are
        known (B, n); the step from the reference's means is part of the bend."""
        both = orders_at_center(latent, self.layout)
        change = _change(self.L, self.noise, both, latent, self.layout)
        # the means are measured from the reference's, not from the centre's
        xp, known = namespace(self.L), change.means.bend
        a, b = change.means.reference, self.change.means.reference
        bend = up(known + xp.abs(a - b) + gamma(2) * (xp.abs(a) + xp.abs(b)), 2)
        change = replace(change, means=replace(change.means, bend=bend, reach=bend, reference=b))
        sizes = measure(change, self.R, self.inflation, self.geometry)
        return replace(self, outputs=both[0], change=change, sizes=sizes), known


def reference(latent: LatentOutputs, layout: ClassLayout, likelihood: ClassLikelihood) -> Reference:
    """Choose V_0 near the centre's covariance, noise of the likelihood included."""
    geometry = latent.geometry
    xp = namespace(geometry.half)
    moves = bool(xp.any(geometry.half > 0))
    if moves:
        outputs = mean_first_order(latent, layout.mean_outputs)
        variances = variance_first_order(latent, layout.outputs)
    else:
        outputs, variances = orders_at_center(latent, layout)
    matrices = xp.asarray(layout.matrices, device=outputs.center.device)
    noise = likelihood.noise * xp.asarray(np.eye(layout.n) + 1.0, device=matrices.device)
    known = _weighted(variances.reference, matrices) + noise
    raised = xp.maximum(variances.reference, xp.full_like(variances.reference, SMALLEST_VARIANCE))
    # where a cell is so large that nothing is known, or beyond float64, any V_0 will do
    usable = xp.all(xp.abs(known) <= LARGEST_VARIANCE, axis=(1, 2))[:, None]
    raised = xp.where(usable, raised, xp.ones_like(raised))
    known = xp.where(usable[:, :, None], known, _weighted(raised, matrices) + noise)
    apart = xp.maximum(raised, RELATIVE_OUTPUT * xp.max(raised, axis=1, keepdims=True))
    by_law = layout.classes > likelihood.largest_coupled
    if by_law and not layout.independent:
        apart = nearest_variances(known - noise)
    if by_law or layout.independent:
        alone = ClassLayout(layout.classes, np.eye(layout.classes)).matrices
        wanted = _weighted(apart, xp.asarray(alone, device=matrices.device)) + noise
    else:
        values, vectors = xp.linalg.eigh(0.5 * (known + xp.matrix_transpose(known)))
        wanted = (vectors * _raised(values)[:, None, :]) @ xp.matrix_transpose(vectors)
    L = xp.linalg.cholesky(wanted)
    change = _change(L, noise, (outputs, variances), latent, layout, moves and by_law)
    n, J = layout.n, layout.outputs
    size = xp.abs(L) @ xp.matrix_transpose(xp.abs(L)) + xp.abs(wanted)  # a sum of terms >= 0
    error = gamma(n + J + 4) * frobenius(size)
    mismatch = up(frobenius(L @ xp.matrix_transpose(L) - wanted) + error, n * n + 8)
    R = xp.linalg.inv(L)
    inflation = inverse_error(R, L)
    sizes = measure(change, R, inflation, geometry)
    where = (layout, likelihood, geometry)
    return Reference(*where, outputs, apart, mismatch, noise, change, L, R, inflation, sizes)


def _change(
    L: Array,
    noise: Array,
    moving: tuple[FirstOrder, FirstOrder],
    latent: LatentOutputs,
    layout: ClassLayout,
    many: bool = False,
) -> Change:
    """What changes on the cells, measured from `L L^T`; `moving` are the outputs' means and
    variances, whose bends are taken together for many classes. Coefficients that round count with
    `V - sum_j y_j matrices_j`, at most `rounding sum_j |y_j| |matrices_j|` (Statement 10.11)."""
    xp = namespace(L)
    outputs, variances = moving
    matrices = xp.asarray(layout.matrices, device=L.device)
    means = _differences(outputs, layout, latent.geometry)
    known = _weighted(variances.reference, matrices) + noise
    offset = L @ xp.matrix_transpose(L) - known
    size = xp.abs(L) @ xp.matrix_transpose(xp.abs(L)) + noise
    size = size + _weighted(xp.abs(variances.reference), xp.abs(matrices))
    error = up(gamma(layout.n + layout.outputs + 4) * frobenius(size), layout.n**2 + 8)
    error = up(error + negative_part(latent, layout), 2)
    if layout.rounding > 0:
        most = _weighted(xp.abs(variances.reference) + variances.reach, xp.abs(matrices))
        error = up(error + layout.rounding * frobenius(most), layout.n**2 + layout.outputs + 8)
    root_ranks = np.sqrt(layout.ranks) * (1.0 + 2.0**-50)
    sizes = np.zeros((layout.n, layout.mean_outputs))
    for k in range(layout.n):
        for j, c in layout.pair(0, k + 1):
            sizes[k, j] = abs(c)
    mixing = xp.asarray(sizes, device=L.device)
    joint = joint_bends(latent, layout, variances, noise, L) if many else None
    return Change(means, variances, matrices, root_ranks, mixing, offset, error, joint)


def frobenius(matrix: Array) -> PerCell:
    """(B,) Frobenius norms of (B, n, n), in plain floating point."""
    xp = namespace(matrix)
    return root(xp.sum(matrix * matrix, axis=(1, 2)))


def _weighted(y: Array, matrices: Array) -> Array:
    """(B, n, n): `sum_j y_j matrices_j`."""
    xp = namespace(y)
    J, n = matrices.shape[0], matrices.shape[1]
    return xp.reshape(y @ xp.reshape(matrices, (J, n * n)), (y.shape[0], n, n))


def inverse_error(R: Annotated[Array, "B n n"], L: Annotated[Array, "B n n"]) -> PerCell:
    """(B,): `L^-1 = T R` with `|T - I|_2 <= this`, for any R close to the inverse of L.

    Reason: with `R L = I + E`, `L^-1 = (I + E)^-1 R` and `|(I + E)^-1 - I| <= e / (1 - e)`,
    `e = |E|_F`, which is at most 2 e where e <= 1/2; the condition of L is below 1e5.
    """
    xp = namespace(R)
    n = R.shape[1]
    E = R @ L - xp.eye(n, dtype=R.dtype, device=R.device)
    E = xp.abs(E) + gamma(n + 4) * (xp.abs(R) @ xp.abs(L))
    e = up(xp.sqrt(xp.sum(E * E, axis=(1, 2))), n * n + 4)
    return xp.where(e <= 0.5, 2.0 * e, xp.full_like(e, np.inf))


def negative_part(latent: LatentOutputs, layout: ClassLayout) -> float:
    """Frobenius bound of what is added to V to make it positive semi-definite.

    Independent outputs: cutting the variances at 0 moves V by `sum_j e_j |matrices_j|` at most, e_j
    how far y_j may lie below 0. Coupled ones: below m n e, as the nearest semi-definite matrix is
    what is meant (Statement 1.7).
    """
    dips = np.asarray([latent.dip(j) for j in range(layout.outputs)])
    if layout.mixing is None:
        return 1.01 * layout.classes * layout.n * float(dips.max())
    return 1.01 * float(dips @ np.sqrt(np.square(layout.matrices).sum(axis=(1, 2))))


def _differences(outputs: FirstOrder, layout: ClassLayout, geometry: ScaledCells) -> FirstOrder:
    """`d_k = f_k - f_0` from the outputs."""
    xp = namespace(outputs.center)
    terms = [layout.pair(0, k) for k in range(1, layout.classes)]

    def summed(values: Array, signed: bool = True) -> Array:
        rows = []
        for pair in terms:
            used = [(c if signed else abs(c), j) for j, c in pair if c != 0.0]  # not 0 times inf
            rows.append(sum((c * values[:, j] for c, j in used), xp.zeros_like(values[:, 0])))
        return xp.stack(rows, axis=1)

    slope = summed(outputs.slope)
    # a sum of J products rounds, its slope in every entry
    moved = xp.sum(xp.abs(outputs.slope) * geometry.half[:, None, :], axis=2)
    size = xp.abs(outputs.reference) + xp.abs(outputs.center) + moved
    count = max(map(len, terms))
    bend = up(summed(outputs.bend, False) + gamma(count) * summed(size, False), 2 * count)
    reach = up(linear_reach(geometry, slope) + bend, 2)
    return FirstOrder(summed(outputs.reference), slope, bend, reach, summed(outputs.center))
