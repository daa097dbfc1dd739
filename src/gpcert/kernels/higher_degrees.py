"""Terms of degree three and more of `sum_i a_i exp(u_i.d)`: how large they are on a cell.

Degree n is the form `sum_i a_i (u_i.d)^n / n!` with the tensor `T_n = sum_i a_i u_i^(x n)`; on
|d_j| <= w_j, |d| <= rho it is at most `min(sum |T_n| w...w, |T_n|_F rho^n) / n!`, and
`|T_n|_F^2 = sum_ij a_i a_j (u_i.u_j)^n`. Knowing some degrees leaves only the tail beyond them to
Cauchy-Schwarz, and the norm left for it is what those degrees do not use up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from gpcert.arrays import Array, namespace
from gpcert.rounding import gamma, nonnegative, up

__all__ = ["HigherTerms", "cubic_terms", "gram_terms", "monomial_index"]

HIGHEST_DEGREE = 6
"""Highest degree taken from the Gram matrix of the points; beyond it the tail is negligible."""


@dataclass(frozen=True, eq=False)
class HigherTerms:
    """Degrees 3 to `order`: `size` (B,) bounds their sum on each cell; `known` (B,) is a lower
    bound of the sum of `|T_n|_F^2 / n!`, their share of the squared RKHS norm times s^2."""

    order: int
    size: Array
    known: Array


def monomial_index(f: int) -> tuple[np.ndarray, np.ndarray]:
    """The sorted triples (n, 3) of features, and for every (j, k, l) the number of its triple."""
    triples = np.array(list(combinations_with_replacement(range(f), 3)), dtype=int).reshape(-1, 3)
    number = np.empty((f, f, f), dtype=int)
    for n, (j, k, m) in enumerate(triples):
        for a, b, c in {(j, k, m), (j, m, k), (k, j, m), (k, m, j), (m, j, k), (m, k, j)}:
            number[a, b, c] = n
    return triples, number


def cubic_terms(
    third: Array, lower: tuple[Array, Array, Array], scaled: Array, error: Array, box: tuple
) -> HigherTerms:
    """From the raw third moments `sum a z z z` (B, f, f, f), shifted to the centres.

    `lower` are the centred moments 0, 1, 2; `error` (B,) bounds the Frobenius error of T_3; `box` is
    (half-widths, rho). With u = z - c: `sum a zzz = T_3 + sym(H c) + sym(g c c) + a0 ccc`.
    """
    xp = namespace(third)
    zeroth, gradient, hessian = lower
    half, rho = box
    c = scaled
    bend = hessian[:, :, :, None] * c[:, None, None, :]
    flat = gradient[:, :, None, None] * c[:, None, :, None] * c[:, None, None, :]
    cube = c[:, :, None, None] * c[:, None, :, None] * c[:, None, None, :]
    T = third - zeroth[:, None, None, None] * cube
    T = T - bend - xp.permute_dims(bend, (0, 1, 3, 2)) - xp.permute_dims(bend, (0, 3, 2, 1))
    T = T - flat - xp.permute_dims(flat, (0, 2, 1, 3)) - xp.permute_dims(flat, (0, 2, 3, 1))
    frobenius = xp.sqrt(xp.sum(T**2, axis=(1, 2, 3)))
    weighted = xp.sum(xp.abs(T) * half[:, None, None, :], axis=3)
    weighted = xp.sum(weighted * half[:, :, None] * half[:, None, :], axis=(1, 2))
    count = T.shape[1] ** 3 + 64
    size = xp.minimum(weighted, frobenius * rho**3) + error * rho**3
    known = nonnegative(frobenius * (1.0 - gamma(count)) - error) ** 2 / 6.0
    return HigherTerms(3, up(size / 6.0, count), known * (1.0 - gamma(8)))


def gram_terms(
    coefficients: Array, products: Array, error: Array, drift: Array, rho: Array
) -> HigherTerms:
    """Degrees 3 to 6 from `products` (B, N, N) = u_i.u_j, for few cells of many features.

    `error` (B, 4) bounds the absolute error of `|T_n|_F^2`, n = 3..6, for the coefficients as
    given; `drift` (B, 4) bounds the Frobenius error of T_n from the coefficients' own errors.
    """
    xp = namespace(coefficients)
    weighted = coefficients[:, :, None] * coefficients[:, None, :] * products**2
    size, known = 0.0 * rho, 0.0 * rho
    for n in range(3, HIGHEST_DEGREE + 1):
        weighted = weighted * products
        square = xp.sum(weighted, axis=(1, 2))
        slack, shift = error[:, n - 3], drift[:, n - 3]
        factor = math.factorial(n)
        size = size + (xp.sqrt(nonnegative(square + slack)) + shift) * rho**n / factor
        least = xp.sqrt(nonnegative(square - slack)) * (1.0 - gamma(8)) - shift
        known = known + nonnegative(least) ** 2 / factor
    return HigherTerms(HIGHEST_DEGREE, up(size, 64), known * (1.0 - gamma(32)))
