"""Symmetric tensors of degree 3 and 4 over sorted index tuples, and moments of points in them.

A symmetric tensor T is stored by its entries at `j <= k <= l (<= m)`, each with the number of its
orders; `T[d, ..., d]` is then the sum of count times entry times the product of the d's.

Proofs: docs/mathematics.md, statement 3.6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations, combinations_with_replacement, permutations
from typing import Annotated, NamedTuple

import numpy as np

from gpcert.arrays import Array, PerCell, PerCellAndPoint, namespace
from gpcert.fusion import fused
from gpcert.rounding import root, up


class Index(NamedTuple):
    """`entries` (n, degree) sorted tuples of features, `orders` (n,) how many orders each has."""

    entries: np.ndarray
    orders: np.ndarray


@lru_cache(maxsize=64)
def sorted_index(features: int, degree: int) -> Index:
    """All sorted tuples of `degree` features.

    >>> [part.tolist() for part in sorted_index(2, 3)]
    [[[0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 1, 1]], [1.0, 3.0, 3.0, 1.0]]
    """
    tuples = list(combinations_with_replacement(range(features), degree))
    entries = np.array(tuples, dtype=int).reshape(-1, degree)
    orders = [
        math.factorial(degree) / math.prod(math.factorial(row.count(j)) for j in set(row))
        for row in entries.tolist()
    ]
    return Index(entries, np.array(orders, dtype=np.float64))


@lru_cache(maxsize=64)
def _without(features: int, degree: int) -> tuple[np.ndarray, ...]:
    """For each place of a tuple: where the rest stands, sorted too, among those of degree - 1."""
    entries = sorted_index(features, degree).entries
    number = {tuple(row): i for i, row in enumerate(_rows(features, degree - 1))}
    places = [[p for p in range(degree) if p != place] for place in range(degree)]
    return tuple(
        np.array([number[tuple(row)] for row in entries[:, kept].tolist()], dtype=int)
        for kept in places
    )


@lru_cache(maxsize=64)
def pairings(features: int, degree: int) -> np.ndarray:
    """(n', n): the tensor of `binomial(degree, 2) T[d, ...] |d|^2` from the entries of T, of a
    degree lower by two: how often two places of a tuple agree and leave the given rest.

    >>> pairings(1, 3).tolist()
    [[3.0]]
    """
    number = {tuple(row): i for i, row in enumerate(_rows(features, degree - 2))}
    rows = _rows(features, degree)
    found = np.zeros((len(number), len(rows)))
    for column, row in enumerate(rows):
        for first, second in combinations(range(degree), 2):
            if row[first] == row[second]:
                rest = tuple(row[p] for p in range(degree) if p not in (first, second))
                found[number[rest], column] += 1.0
    return found


@lru_cache(maxsize=64)
def double_pairings(features: int) -> np.ndarray:
    """(n,): the tensor of degree 4 of `3 |d|^4`, in how many ways a tuple falls into equal pairs.

    >>> double_pairings(2).tolist()
    [3.0, 0.0, 1.0, 0.0, 3.0]
    """
    ways = ((0, 1, 2, 3), (0, 2, 1, 3), (0, 3, 1, 2))
    row = sorted_index(features, 4).entries
    pairs = [(row[:, h] == row[:, i]) & (row[:, j] == row[:, k]) for h, i, j, k in ways]
    return np.sum(pairs, axis=0).astype(np.float64)


def _rows(features: int, degree: int) -> list[list[int]]:
    return sorted_index(features, degree).entries.tolist() if degree else [[]]


@dataclass(frozen=True, eq=False)
class HigherMoments:
    """`sum_i a_bi u_i^(x n)`, n <= 4, with u_i = z_i - c_b for points z (N, f).

    Rounding: a dot product of N terms, and for degree n the `2^n` terms of the shift, each with at
    most n factors and n sums; all are bounded by `|a_i| (|z_i| + |c|)^n` in Frobenius norm, so the
    error is at most `gamma(N + 64)` times their sum over i.
    """

    points: Annotated[Array, "N d"]

    @cached_property
    def _monomials(self) -> Array:
        """(n, N) of the degrees 0, ..., 4, over sorted tuples."""
        xp = namespace(self.points)
        N, f = self.points.shape
        found = [xp.ones((1, N), dtype=xp.float64, device=self.points.device)]
        for degree in range(1, 5):
            entries = sorted_index(f, degree).entries
            product = self.points.T[self._place(entries[:, 0])]
            for place in range(1, degree):
                product = product * self.points.T[self._place(entries[:, place])]
            found.append(product)
        return xp.concat(found, axis=0)

    def _place(self, index: np.ndarray) -> Array:
        xp = namespace(self.points)
        return xp.asarray(index, device=self.points.device)

    def rows(self, highest: int) -> int:
        """How many entries tensors of all degrees up to the highest have."""
        return math.comb(self.points.shape[1] + highest, highest)

    def products(self, coefficients: PerCellAndPoint, highest: int) -> Annotated[Array, "K B"]:
        """(n, B): `sum_i a_bi z_i^(x n)`, all degrees up to the highest: one matrix product."""
        return self._monomials[: self.rows(highest)] @ coefficients.T

    def by_degree(
        self, products: Annotated[Array, "K B"], highest: int
    ) -> list[Annotated[Array, "_ B"]]:
        """The rows of each degree."""
        ends = [self.rows(n) for n in range(highest + 1)]
        return [products[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    def raw(self, coefficients: PerCellAndPoint, highest: int) -> list[Annotated[Array, "_ B"]]:
        """(n, B): `sum_i a_bi z_i^(x n)` for n = 0, ..., highest."""
        return self.by_degree(self.products(coefficients, highest), highest)

    def centred(self, raw: list[Array], centers: Array, degree: int) -> Annotated[Array, "B n"]:
        """(B, n) about the centres, one place of the tuples after the other, from the last:
        `E[.. (z_k - c_k) ..] = E[.. z_k ..] - c_k E[.. ..]`, the places behind done in both."""
        f, tensors = self.points.shape[1], list(raw[: degree + 1])
        moved = centers.T
        for done in range(degree):
            for n in range(degree, done, -1):  # the lower ones are still as they were
                place = n - 1 - done
                product = tensors[n - 1][self._place(_without(f, n)[place])]
                product *= moved[self._place(sorted_index(f, n).entries[:, place])]
                tensors[n] = tensors[n] - product
        return tensors[degree].T


def form_size(tensor: Array, half: Array, rho: Array, degree: int) -> PerCell:
    """Upper bound (B,) of `|T[d, ..., d]|` over |d_j| <= half_j, |d| <= rho.

    The smaller of `entry_sum` and `|T|_F rho^degree`; squares of entries below 2^-511 vanish, which
    `root` makes up for (Statement 16.4).
    """
    xp = namespace(tensor)
    orders = sorted_index(half.shape[1], degree).orders
    count = xp.asarray(orders, device=tensor.device)
    together = root(tensor**2 @ count) * rho**degree
    together = up(together, len(orders) + 32)
    return xp.minimum(entry_sum(tensor, half, degree), together)


def entry_sum(tensor: Array, half: Array, degree: int) -> PerCell:
    """Upper bound (B,) of the sum of all absolute entries times their half-widths."""
    xp = namespace(tensor)
    entries, orders = sorted_index(half.shape[1], degree)
    places = [xp.asarray(entries[:, place], device=half.device) for place in range(degree)]
    total = _weighted(tensor, half, places) @ xp.asarray(orders, device=tensor.device)
    return up(total, len(orders) + 32)


@fused
def _weighted(tensor: Array, half: Array, places: list[Array]) -> Array:
    """(B, n): absolute entries times their half-widths."""
    xp = namespace(tensor)
    widths = half[:, places[0]]
    for place in places[1:]:
        widths = widths * half[:, place]
    return xp.abs(tensor) * widths


def dense(tensor: Annotated[Array, "B n"], features: int, degree: int) -> Array:
    """All entries (B, f, ..., f) of a symmetric tensor over sorted tuples (B, n)."""
    xp = namespace(tensor)
    index = xp.asarray(_places(features, degree), device=tensor.device)
    return xp.reshape(tensor[:, index], (tensor.shape[0], *(features,) * degree))


@lru_cache(maxsize=64)
def _places(features: int, degree: int) -> np.ndarray:
    """(f^degree,): where each entry of a tensor stands among the sorted tuples."""
    found = np.zeros((features,) * degree, dtype=int)
    entries = sorted_index(features, degree).entries
    for order in permutations(range(degree)):
        found[tuple(entries[:, place] for place in order)] = np.arange(len(entries))
    return found.reshape(-1)
