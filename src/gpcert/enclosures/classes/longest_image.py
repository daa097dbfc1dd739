"""How long a linear map can make the displacements of a box.

Proofs: docs/mathematics.md, statement 10.17.
"""

from __future__ import annotations

from typing import Annotated

from gpcert.arrays import Array, PerCell, PerCellAndFeature, namespace
from gpcert.enclosures.polynomials import smallest_eigenvalue
from gpcert.rounding import TINY, gamma, nonnegative, root, up

ROUNDS = 8
"""Steps towards the best weights; any weights are valid."""

SMALLEST = 1e-9
"""Least weight beside the largest: none is divided by nothing."""


def longest_image(S: Annotated[Array, "B n f"], half: PerCellAndFeature) -> PerCell:
    """Upper bound (B,) of `|S d|` over `|d_i| <= half_i`, S (B, n, f), half (B, f).

    Statement: for any D > 0, `|S d|^2 <= lambda_max(S D^-1 S^T) sum_i D_i half_i^2`.
    Reason: `S d = (S D^-1/2) (D^1/2 d)`. The best D is the dual of the relaxation of signs to unit
    vectors x_i (Goemans & Williamson 1995), `D_i half_i = |sum_j (S^T S)_ij half_j x_j|`, to which
    a few steps of coordinate ascent come close: within a factor sqrt(pi / 2) of the truth.
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
    inverse = half / lengths  # D^-1, as a float
    moves = inverse > 0
    D = xp.where(moves, 1.0 / xp.where(moves, inverse, xp.ones_like(inverse)), 0.0 * half)
    total = up(xp.sum(D * half * half, axis=1), f + 8)
    M = (S * inverse[:, None, :]) @ xp.matrix_transpose(S)
    M = 0.5 * (M + xp.matrix_transpose(M))
    # every entry is a sum of f products, below the rows' weighted lengths
    rounding = gamma(f + 16) * xp.sum(inverse[:, None, :] * S * S, axis=(1, 2))
    largest = up(nonnegative(-smallest_eigenvalue(-M)) + rounding, n * f + 8)
    return up(root(largest * total), 8)
