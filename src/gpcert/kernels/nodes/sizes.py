"""Arithmetic of sizes: numbers in [0, inf] that bound something from above, rounded up.

An infinite size says that nothing is known, a zero that a part is absent: their product is zero.

Proofs: docs/mathematics.md, statement 16.8.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np

from gpcert.arrays import Array, namespace
from gpcert.kernels.nodes.base import Jet, Triple
from gpcert.rounding import gamma, up

__all__ = [
    "bilinear_errors",
    "euclidean",
    "frobenius",
    "jet_sizes",
    "leibniz",
    "raised",
    "times",
    "total",
]


def raised(size: Array, roundings: int) -> Array:
    """`up` for sizes, which keeps an exact zero."""
    return namespace(size).where(size > 0, up(size, roundings), size)


@np.errstate(over="ignore")
def total(sizes: Sequence[Array]) -> Array:
    """Sum of sizes, rounded up."""
    return raised(reduce(lambda a, b: a + b, sizes), len(sizes))


@np.errstate(over="ignore", under="ignore")
def times(a: Array, b: Array) -> Array:
    """`a b` rounded up, broadcast; 0 times infinity is 0."""
    xp = namespace(a, b)
    zero = (a == 0) | (b == 0)
    product = xp.where(zero, xp.ones_like(a), a) * xp.where(zero, xp.ones_like(b), b)
    return xp.where(zero, xp.zeros_like(product), up(product, 1))


@np.errstate(over="ignore")
def leibniz(first: Sequence[Array], second: Sequence[Array], order: int) -> Array:
    """`sum_j C(n, j) first_j second_(n-j)`: the size of the n-th derivative of a product."""
    return raised(
        sum(
            float(math.comb(order, j)) * times(first[j], second[order - j])
            for j in range(order + 1)
        ),
        2 * order + 2,
    )


@np.errstate(over="ignore")
def bilinear_errors(
    sizes: tuple[Sequence[Array], Sequence[Array]],
    errors: tuple[Sequence[Array], Sequence[Array]],
    features: int,
) -> Triple:
    """Errors of value, gradient and Hessian of a product from sizes and errors of its factors.

    Statement: with `|fl(p) - p| <= e`, `|p| <= s` and the same for q,
    `|fl(p) fl(q) - p q| <= e_p s_q + s_p e_q + e_p e_q`; a derivative is a sum of such terms by
    Leibniz' rule. The products and sums themselves cost at most 8 roundings of each entry, which
    for a matrix of spectral norm s is sqrt(f) s in the Frobenius norm.

    A zero times an infinite error counts as zero: where q and its error vanish, p q has the
    derivative that the other terms give, whether p has one or not.
    """
    (p, q), (e, h) = sizes, errors
    found = []
    for n in range(3):
        error = leibniz(e, q, n) + leibniz(p, h, n) + leibniz(e, h, n)
        roundings = 8 * (1 + math.isqrt(features) if n == 2 else 1)
        error = error + gamma(roundings) * (leibniz(p, q, n) + error)
        found.append(raised(error, 6))
    return found[0], found[1], found[2]


@np.errstate(over="ignore", under="ignore")
def euclidean(vectors: Array) -> Array:
    """Upper bound (B,) of the length of each row (B, n); a zero row keeps length zero."""
    xp = namespace(vectors)
    length = up(xp.sqrt(up(xp.sum(vectors**2, axis=1), vectors.shape[1] + 4)), 2)
    return xp.where(xp.any(vectors != 0, axis=1), length, xp.zeros_like(length))


def frobenius(matrices: Array) -> Array:
    """Upper bound (B,) of the Frobenius, hence of the spectral norm of matrices (B, f, f)."""
    B, f = matrices.shape[:2]
    return euclidean(namespace(matrices).reshape(matrices, (B, f * f)))


def jet_sizes(jet: Jet) -> Triple:
    """Sizes (B,) of a jet's computed parts, the Hessian's in the Frobenius norm."""
    return abs(jet.value), euclidean(jet.gradient), frobenius(jet.hessian)
