"""Moments of points about many centres by matrix products, and symmetric tensors to hold them.

A symmetric tensor T is stored by its entries at `j <= k <= l (<= m)`, each with the number of its
orders; `T[d, ..., d]` is then the sum of count times entry times the product of the d's.

Proofs: docs/mathematics.md, statements 3.6, 4.1 and 16.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations, combinations_with_replacement, permutations
from typing import Annotated, NamedTuple

import numpy as np

from gpcert.numerics.arrays import (
    Array,
    PerCell,
    PerCellAndPoint,
    PerCellMatrix,
    fused,
    namespace,
    to_numpy,
)
from gpcert.numerics.rounding import root, up


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
        np.array([number[tuple(row)] for row in entries[:, rest].tolist()], dtype=int)
        for rest in places
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
    counts = np.zeros((len(number), len(rows)))
    for column, row in enumerate(rows):
        for first, second in combinations(range(degree), 2):
            if row[first] == row[second]:
                rest = tuple(row[p] for p in range(degree) if p not in (first, second))
                counts[number[rest], column] += 1.0
    return counts


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
    index = xp.asarray(dense_places(features, degree), device=tensor.device)
    return xp.reshape(tensor[:, index], (tensor.shape[0], *(features,) * degree))


@lru_cache(maxsize=64)
def dense_places(features: int, degree: int) -> np.ndarray:
    """(f^degree,): where each entry of a tensor stands among the sorted tuples."""
    places = np.zeros((features,) * degree, dtype=int)
    entries = sorted_index(features, degree).entries
    for order in permutations(range(degree)):
        places[tuple(entries[:, place] for place in order)] = np.arange(len(entries))
    return places.reshape(-1)


MAX_FEATURES_PER_BATCH = 32
"""Up to here the second moments of all boxes are one matrix product."""


@dataclass(frozen=True, eq=False)
class MomentTable:
    """`sum_i a_bi u_i^(x n)`, n <= 4, with u_i = z_i - c_b, for points z (N, f).

    Rounding: dot products of N terms whose factors carry at most 8 further roundings, and shifts,
    for degree n the 2^n terms of one, each with at most n factors and n sums; terms and shifts are
    bounded by `|a_i| (|z_i| + |c|)^n`, so the errors (Euclidean, Frobenius) are at most
    `gamma(N + 2 f + 32) sum_i |a_i| (|z_i| + |c|)^n` up to degree 2 (`moments`), and
    `gamma(N + 64)` times that sum for tensors (`centred`).
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
        index = self._index(sorted_index(self.points.shape[1], degree).entries)
        first, *others = (self.points[:, index[:, place]] for place in range(degree))
        return math.prod(others, start=first)

    @cached_property
    def _place(self) -> Array:
        """(f^2,): where the products of degree 2 stand in a matrix; compiled, half as many steps as
        with 64 bits."""
        return self._index(dense_places(self.points.shape[1], 2).astype(np.int32))

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
        used, moments = self._used, np.zeros((len(coefficients), f, f))
        points = self.points if len(used) == f else self.points[:, used]
        place = np.ix_(used, used)
        for square, row in zip(moments, coefficients, strict=True):
            sides = []
            for rows in (row > 0, row < 0):
                R = xp.sqrt(np.abs(row[rows]))[:, None] * points[rows]
                sides.append(R.T @ R)
            square[place] = sides[0] - sides[1]
        return moments

    def moments(self, coefficients: Array, centers: Array) -> tuple[Array, Array, PerCellMatrix]:
        """`sum a`, `sum a u` and `sum a u u^T` (B, f, f), exactly symmetric."""
        if self.points.shape[1] <= MAX_FEATURES_PER_BATCH:
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

    @cached_property
    def _monomials(self) -> Array:
        """(n, N) of the degrees 0, ..., 4, over sorted tuples."""
        xp = namespace(self.points)
        N, f = self.points.shape
        products = [xp.ones((1, N), dtype=xp.float64, device=self.points.device)]
        for degree in range(1, 5):
            index = self._index(sorted_index(f, degree).entries)
            first, *others = (self.points.T[index[:, place]] for place in range(degree))
            products.append(math.prod(others, start=first))
        return xp.concat(products, axis=0)

    def _index(self, index: np.ndarray) -> Array:
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
                product = tensors[n - 1][self._index(_without(f, n)[place])]
                product *= moved[self._index(sorted_index(f, n).entries[:, place])]
                tensors[n] = tensors[n] - product
        return tensors[degree].T


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
