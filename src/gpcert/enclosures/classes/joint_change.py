"""The change of the covariance of many classes on a cell, with what its outputs bend together.

The variances of the outputs bend by `X_j = <Psi - e0, P_j (Psi - e0)>` (Statement 6.1), of which
each alone may be anything up to the prior's. Together they are one matrix between 0 and the prior's
own; and the weight of the models is one factor for all of them.

Proofs: docs/mathematics.md, statements 10.14 and 10.16.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from gpcert.enclosures.classes.latent import FirstOrder, linear_reach, weight_growth
from gpcert.enclosures.classes.outputs import LatentOutputs
from gpcert.enclosures.polynomials import smallest_eigenvalue
from gpcert.model.class_layout import ClassLayout
from gpcert.numerics.arrays import Array, PerCell, PerCellAndFeature, PerVector, Vectors, namespace
from gpcert.numerics.rounding import TINY, gamma, given, nonnegative, root, up
from gpcert.regions.scaled import ScaledCells

ROUNDS = 8
"""Steps towards the best weights; any weights are valid."""

SMALLEST = 1e-9
"""Least weight beside the largest: none is divided by nothing."""


def longest_image(S: Annotated[Array, "B n f"], half: PerCellAndFeature) -> PerCell:
    """Upper bound (B,) of `|S d|` over `|d_i| <= half_i`, S (B, n, f), half (B, f).

    Statement: for any D > 0, `|S d|^2 <= lambda_max(S D^-1 S^T) sum_i D_i half_i^2`.
    Reason: `S d = (S D^-1/2) (D^1/2 d)`. A few steps of coordinate ascent come close to the best D
    (Statement 10.16). Reference: Goemans & Williamson 1995, of whose relaxation that is the dual.
    """
    xp = namespace(S)
    n, f = S.shape[1], S.shape[2]
    if f == 0:
        return xp.sum(S, axis=(1, 2))
    largest = xp.max(xp.abs(S), axis=(1, 2), keepdims=True)
    rows = xp.matrix_transpose(S / (largest + TINY))  # (B, f, n), about: for the weights alone
    weighted = half[:, :, None] * rows
    x, lengths = rows, root(xp.sum(rows * rows, axis=2))
    for _ in range(ROUNDS):
        x = x / lengths[:, :, None]
        x = rows @ (xp.matrix_transpose(weighted) @ x)
        lengths = root(xp.sum(x * x, axis=2))
        most = xp.max(lengths, axis=1, keepdims=True)
        lengths = xp.maximum(lengths, SMALLEST * most + TINY)
    inverse = given(half / lengths)  # D^-1, as a float
    moves = inverse > 0
    D = xp.where(moves, 1.0 / xp.where(moves, inverse, xp.ones_like(inverse)), 0.0 * half)
    total = up(xp.sum(D * half * half, axis=1), f + 8)
    M = (S * inverse[:, None, :]) @ xp.matrix_transpose(S)
    M = given(0.5 * (M + xp.matrix_transpose(M)))
    # every entry is a sum of f products, below the rows' weighted lengths
    rounding = gamma(f + 16) * xp.sum(inverse[:, None, :] * S * S, axis=(1, 2))
    largest = up(nonnegative(-smallest_eigenvalue(-M)) + rounding, n * f + 8)
    return up(root(largest * total), 8)


@dataclass(frozen=True, eq=False)
class JointBends:
    """On every cell, `omega^2 y_j = center_j + slope_j.d + N_j + X_j`, noise apart: `|N_j| <= left`
    (B, J), and the matrix `sum_j X_j C_j` is within `half` (B,) times `prior` (n, n) of `middle`
    (B,) times it, in the order of semi-definite matrices. `growth` (B,) >= omega^2 - 1; `constant`
    (n, n) is the part of V that is noise; `V_0 = L L^T`, L (B, n, n)."""

    left: Array
    middle: Array
    half: Array
    prior: Array
    growth: Array
    constant: Array
    L: Array


@dataclass(frozen=True, eq=False)
class Change:
    """What changes over a cell: the differences d_k and the covariance V of the latent values.

    `means` are the d_k (J = n), `variances` the y_j of `V = sum_j y_j matrices_j`; `offset`
    (B, n, n) is V_0 less `sum_j reference_j matrices_j`, known up to `offset_error`
    (B,), in Frobenius norm, which also counts what makes V positive semi-definite. `root_ranks`
    (J,) are upper bounds of the square roots of the matrices' ranks; `mixing` (n, outputs of
    the means) are the sizes of the coefficients of the outputs' means in the d_k. `joint`, of many
    classes, says how the outputs' variances bend together.
    """

    means: FirstOrder
    variances: FirstOrder
    matrices: Array
    root_ranks: np.ndarray
    mixing: Array
    offset: Array
    offset_error: Array
    joint: JointBends | None = None


def joint_bends(
    latent: LatentOutputs,
    layout: ClassLayout,
    variances: FirstOrder,
    noise: Annotated[Array, "n n"],
    L: Annotated[Array, "B n n"],
) -> JointBends | None:
    """Of outputs of one posterior; None where they have kernels of their own or are seen through
    linear features, whose centres are not the cells'."""
    local = latent.evaluation.local
    if not latent.together or local.image is not None:
        return None
    xp, geometry = namespace(variances.center), latent.geometry
    enclosures = [latent.variance(j) for j in range(layout.outputs)]
    factors = np.array([float(v.units.factor) for v in enclosures])
    shifts = np.array([float(v.units.shift) for v in enclosures])
    device = variances.center.device
    middles = xp.stack([v.middle for v in enclosures], axis=1)
    size = xp.abs(variances.center) + 2.0 * xp.asarray(np.abs(shifts), device=device)
    size = size + xp.sum(xp.abs(variances.slope) * geometry.half[:, None, :], axis=2)
    left = xp.asarray(factors, device=device) * middles + gamma(16) * size
    operator, step = local.operator, enclosures[0].spread  # one kernel: one step for all
    matrices = layout.matrices
    constant = np.tensordot(np.abs(shifts), matrices, axes=1)
    return JointBends(
        left=up(left, geometry.half.shape[1] + 16),
        middle=0.5 * (operator.gain - operator.excess) * step,
        half=up(0.5 * (operator.gain + operator.excess) * step, 4),
        prior=xp.asarray(np.tensordot(factors, matrices, axes=1), device=device),
        growth=weight_growth(2.0 * local.kernel.weight_rate, geometry) + xp.zeros_like(step),
        constant=xp.asarray(constant, device=device) + noise,
        L=L,
    )


def joint_sizes(
    change: Change, joint: JointBends, R: Annotated[Array, "B n n"], geometry: ScaledCells
) -> tuple[PerCell, PerCell]:
    """Upper bounds (B,) of the size of the trace of `W = R (V - V_0) R^T` and of the Frobenius norm
    of `W - trace(W) / n`; `joint` is that of the change.

    R may be any matrix: the weight takes off a part of `R V R^T`, which is W and `R V_0 R^T`.
    """
    variances, matrices = change.variances, change.matrices
    xp, n, J = namespace(R), R.shape[1], matrices.shape[0]
    whole, whole_size = _rows(R, matrices), _rows(xp.abs(R), xp.abs(matrices))
    eye = xp.asarray(np.eye(n).reshape(n * n, 1), device=R.device)
    trace, trace_size = (xp.sum(x * eye, axis=1, keepdims=True) for x in (whole, whole_size))
    rows, rows_size = whole - eye * trace / n, whole_size + eye * trace_size / n
    moved = xp.sum(xp.abs(variances.slope) * geometry.half[:, None, :], axis=2)
    count = 2 * n * n + 4 * J + 64
    fixed, fixed_error = _fixed(change, joint, R)
    fixed_trace = xp.sum(fixed * eye[:, 0], axis=1, keepdims=True)
    parts = []
    for images, size, still in (
        (trace, trace_size, given(fixed_trace)),  # their rounding is in `fixed_error`
        (rows, rows_size, given(fixed - eye[:, 0] * fixed_trace / n)),
    ):
        bend = (xp.abs(images) @ joint.left[:, :, None])[:, :, 0]
        lost = gamma(count) * (size @ (moved + joint.left)[:, :, None])[:, :, 0]
        lost = lost + (n + 1.0) * fixed_error[:, None]
        slope = images @ variances.slope
        entries = up(xp.abs(still) + linear_reach(geometry, slope), 4) + bend + lost
        length = euclidean(entries)
        if images.shape[1] > 1:
            together = longest_change((still, slope, images), joint.left, geometry)
            length = xp.minimum(length, up(together + euclidean(lost + gamma(8) * entries), 4))
        parts.append(length)
    bent = _rows(R, joint.prior[None])[:, :, 0]
    bent_size = _rows(xp.abs(R), xp.abs(joint.prior)[None])[:, :, 0] * gamma(count)
    prior = xp.abs(bent) + bent_size
    constant = euclidean(_rows(xp.abs(R), xp.abs(joint.constant)[None])[:, :, 0])
    base_trace, base_skew = _base_sizes(R, joint.L)
    whole = parts[0] + joint.half * xp.sum(prior * eye[:, 0], axis=1) + joint.growth * base_trace
    skew = parts[1] + joint.half * euclidean(prior) + joint.growth * (constant + base_skew)
    usable = joint.growth <= 0.5
    rest = xp.where(usable, 1.0 - joint.growth, xp.ones_like(skew))
    shares = (up(x / rest, count) for x in (whole, skew))
    infinite = xp.full_like(skew, math.inf)
    total, apart = (xp.where(usable & ~xp.isnan(x), x, infinite) for x in shares)
    return total, apart


def _base_sizes(R: Array, L: Array) -> tuple[Array, Array]:
    """Upper bounds (B,) of the trace of `R V_0 R^T`, `V_0 = L L^T`, and of the Frobenius norm of it
    less its trace's part: n and next to nothing in the metric of V_0 itself."""
    xp, n = namespace(R), R.shape[1]
    image, size = R @ L, xp.abs(R) @ xp.abs(L)
    whole = xp.reshape(image @ xp.matrix_transpose(image), (R.shape[0], n * n))
    whole_size = xp.reshape(size @ xp.matrix_transpose(size), (R.shape[0], n * n))
    eye = xp.asarray(np.eye(n).reshape(n * n), device=R.device)
    trace, trace_size = (xp.sum(x * eye, axis=1, keepdims=True) for x in (whole, whole_size))
    lost = gamma(4 * n + 32) * (whole_size + eye * trace_size / n)
    total = up(trace + gamma(4 * n + 32) * trace_size, 4)
    return total[:, 0], euclidean(xp.abs(whole - eye * trace / n) + lost)


def longest_change(
    change: tuple[Annotated[Array, "B r"], Annotated[Array, "B r f"], Annotated[Array, "B r J"]],
    left: Annotated[Array, "B J"],
    geometry: ScaledCells,
) -> PerCell:
    """Upper bound (B,) of the length of `still + slope d + images N`, `|N_j| <= left_j`: the
    longest image of the box of (d, 1, N) (Statement 10.16). They are symmetric matrices as rows:
    entries below the diagonal count twice. The products' roundings are the caller's."""
    still, slope, images = change
    xp, n = namespace(images), math.isqrt(images.shape[1])
    below = np.flatnonzero(np.tri(n, dtype=bool))
    weight = np.sqrt(2.0 - np.eye(n).reshape(n * n))[below]
    numbers = xp.asarray(below, device=images.device)
    scale = xp.asarray(weight, device=images.device)[None, :, None]
    S = xp.concat([slope, still[:, :, None], images], axis=2)
    half = xp.concat([geometry.half, xp.ones_like(left[:, :1]), left], axis=1)
    return longest_image(xp.take(S, numbers, axis=1) * scale, half)


def _fixed(change: Change, joint: JointBends, R: Array) -> tuple[Array, Array]:
    """`R (V(c) + middle prior - V_0) R^T` as rows (B, n n), and a bound (B,) of every entry's
    error; the references' own offset is known up to an error in Frobenius norm."""
    variances, matrices, known = change.variances, change.matrices, change.offset
    xp, n, J = namespace(R), R.shape[1], matrices.shape[0]
    flat = xp.reshape(matrices, (J, n * n))
    B = R.shape[0]
    step = (variances.center - variances.reference) @ flat
    matrix = xp.reshape(step, (B, n, n)) + joint.middle[:, None, None] * joint.prior - known
    sizes = (xp.abs(variances.center) + xp.abs(variances.reference)) @ xp.abs(flat)
    size = xp.reshape(sizes, (B, n, n)) + joint.middle[:, None, None] * xp.abs(joint.prior)
    size = size + xp.abs(known)
    Rt, At = xp.matrix_transpose(R), xp.matrix_transpose(xp.abs(R))
    rotated = xp.reshape(R @ matrix @ Rt, (B, n * n))
    rounding = gamma(2 * n + J + 32) * euclidean(xp.reshape(xp.abs(R) @ size @ At, (B, n * n)))
    norm = xp.sum(R * R, axis=(1, 2))
    return rotated, up(rounding + 4.0 * n**0.5 * norm * change.offset_error, n * n + 16)


def spectral_size(trace: PerCell, skew: PerCell, n: int) -> PerCell:
    """Upper bound (B,) of the spectral norm of a symmetric matrix whose trace and whose part
    without it, in Frobenius norm, have at most these sizes: n numbers of sum 0 and length 1 are at
    most `sqrt((n - 1) / n)` each."""
    return up(trace / n + math.sqrt((n - 1) / n) * skew, 8)


def turned(
    R: Annotated[Array, "B n n"], matrices: Annotated[Array, "b J n n"]
) -> Annotated[Array, "B J n n"]:
    """`R C_j R^T`; the matrices are those of every cell, or of all."""
    return R[:, None] @ matrices @ namespace(R).matrix_transpose(R)[:, None]


def _rows(R: Array, matrices: Array) -> Array:
    """(B, n n, J): the entries of `R C_j R^T`."""
    xp, n = namespace(R), R.shape[1]
    shape = (R.shape[0], matrices.shape[0], n * n)
    return xp.matrix_transpose(xp.reshape(turned(R, matrices[None]), shape))


def euclidean(values: Vectors) -> PerVector:
    """Euclidean length of n numbers >= 0 of n + 4 roundings each over the last axis, rounded up."""
    n = values.shape[-1]
    return up(root(namespace(values).sum(values * values, axis=-1)), 2 * n + 8)
