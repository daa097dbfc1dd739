"""Arithmetic of sizes: numbers in [0, inf] that bound something from above, rounded up.

An infinite size says that nothing is known, a zero that a part is absent: their product is zero.

Proofs: docs/mathematics.md, statements 4.7 and 16.8.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from operator import add

import numpy as np

from gpcert.numerics.arrays import Array, PerCell, PerCellMatrix, Reals, namespace
from gpcert.numerics.rounding import gamma, root, up


def raised(size: Reals, roundings: int) -> Reals:
    """`up` for sizes, which keeps an exact zero."""
    return namespace(size).where(size > 0, up(size, roundings), size)


@np.errstate(over="ignore")
def total(sizes: Sequence[Reals]) -> Reals:
    """Sum of sizes, rounded up."""
    return raised(reduce(add, sizes), len(sizes))


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def times(a: Reals, b: Reals) -> Reals:
    """`a b` rounded up, broadcast; 0 times infinity is 0."""
    xp = namespace(a, b)
    zero, product = (a == 0) | (b == 0), a * b
    return xp.where(zero, xp.zeros_like(product), up(product, 1))


def scaled(size: Reals, factor: float) -> Reals:
    """`factor size` rounded up, factor > 0."""
    return times(size, namespace(size).full_like(size, factor))


@np.errstate(over="ignore", under="ignore")
def signed_times(a: Reals, b: Reals) -> Reals:
    """`a b` for numbers of any sign, broadcast, not rounded up; 0 times infinity is 0."""
    xp = namespace(b)
    zero = (a == 0) | (b == 0)
    product = xp.where(zero, xp.ones_like(a), a) * xp.where(zero, xp.ones_like(b), b)
    return xp.where(zero, xp.zeros_like(product), product)


def root_above(square: Reals) -> Reals:
    """Square root rounded up; exactly zero stays zero, and NaN, of which nothing is known, NaN.

    >>> root_above(np.asarray([0.0, np.nan])).tolist()
    [0.0, nan]
    """
    xp = namespace(square)
    return xp.where(square == 0, xp.zeros_like(square), up(xp.sqrt(square), 2))


def hypotenuse(a: Reals, b: Reals) -> Reals:
    """`sqrt(a^2 + b^2)`, rounded up; exactly zero stays zero."""
    return root_above(raised(times(a, a) + times(b, b), 1))


@np.errstate(over="ignore")
def leibniz(first: Sequence[Reals], second: Sequence[Reals], order: int) -> Reals:
    """`sum_j C(n, j) first_j second_(n-j)`: the size of the n-th derivative of a product."""
    pairs = [(j, first[j], second[order - j]) for j in range(order + 1)]
    # one zero for all cells and points: as a term it would be one more array of zeros
    some = [each for each in pairs if not (_absent(each[1]) or _absent(each[2]))]
    terms = (float(math.comb(order, j)) * times(a, b) for j, a, b in some or pairs)
    return raised(sum(terms), 2 * order + 2)


def _absent(size: Reals) -> bool:
    """Whether it is a single number, and zero."""
    return isinstance(size, np.ndarray) and size.size == 1 and not size.any()


@np.errstate(over="ignore", under="ignore")
def euclidean(vectors: Array) -> PerCell:
    """Upper bound (B,) of the length of each row (B, n); a zero row keeps length zero."""
    xp = namespace(vectors)
    length = up(xp.sqrt(up(xp.sum(vectors**2, axis=1), vectors.shape[1] + 12)), 2)
    return xp.where(xp.any(vectors != 0, axis=1), length, xp.zeros_like(length))


def frobenius(matrices: PerCellMatrix) -> PerCell:
    """Upper bound (B,) of the Frobenius, hence of the spectral norm of matrices (B, f, f)."""
    B, f = matrices.shape[:2]
    return euclidean(namespace(matrices).reshape(matrices, (B, f * f)))


SQUARINGS = 3
"""Of a matrix before the Frobenius norm bounds its spectral norm: at most f^(1/16) above it."""


@np.errstate(over="ignore", invalid="ignore")
def spectral_norm(matrix: Array) -> PerCell:
    """Upper bound (B,) of the spectral norms of matrices (B, n, n).

    `|P|_2^2 = |P^T P|_2 <= |Q|_2 + gamma_n |P|_F^2` with Q the computed product, a few times; then
    the Frobenius norm (Statement 4.7). Infinite or NaN where the matrix is not finite.
    """
    xp = namespace(matrix)
    size = frobenius(matrix)
    scale = xp.where(size > 0, size, xp.ones_like(size))
    # of size one, whose squares neither overflow nor vanish; each quotient rounds once
    return up(size * (_power_bound(matrix / scale[:, None, None], SQUARINGS) + gamma(4)), 4)


def _power_bound(matrix: Array, squarings: int) -> Array:
    xp, n = namespace(matrix), matrix.shape[-1]
    size = frobenius(matrix)
    if squarings == 0:
        return size
    squared = _power_bound(xp.matrix_transpose(matrix) @ matrix, squarings - 1)
    return up(root(up(squared + gamma(n + 4) * size**2, 4)), 2)
