"""A kernel k(., z_i) near a point, for all data points at once: jets of functions of few numbers.

Every kernel is a function F(p_1, ..., p_Q) of inner variables p_q(x, z) (a squared distance, an
inner product, a sum of cosines). Its Taylor polynomial follows from the derivatives of F and of
the p_q by the chain rule; F is differentiated point by point, the rest are matrix products.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from flint import arb, arb_mat

Column = list[arb]


def column(values: Column) -> arb_mat:
    """A column matrix."""
    return arb_mat(len(values), 1, values)


def exact(rows: Iterable[Iterable[float]]) -> arb_mat:
    """A matrix of floats."""
    return arb_mat([list(map(arb, row)) for row in rows])


@dataclass
class Inner:
    """An inner variable at the data points: rows of its gradient (N, f) in the free features, and
    its second derivative: either `bend` (f, f), the same for all points, or `bends` (N, q), its
    diagonal in the linear features, whose slopes are `slopes` (q, f)."""

    gradient: arb_mat
    bend: arb_mat | None = None
    bends: arb_mat | None = None
    slopes: arb_mat | None = None

    def curvature(self, weights: Column) -> arb_mat | None:
        """`sum_i weights_i D^2 p(x, z_i)`; None where it is 0."""
        if self.bend is not None:
            return self.bend * sum(weights, arb(0))
        if self.bends is None or self.slopes is None:
            return None
        diagonal = (self.bends.transpose() * column(weights)).entries()
        return self.slopes.transpose() * scaled_rows(self.slopes, diagonal)


def scaled_rows(matrix: arb_mat, factors: Column) -> arb_mat:
    """diag(factors) matrix."""
    n, m = matrix.nrows(), matrix.ncols()
    entries = matrix.entries()
    return arb_mat(n, m, [factors[i] * entries[i * m + j] for i in range(n) for j in range(m)])


@dataclass
class Jet:
    """Values F (N,), and by inner variables the first and second derivatives of F."""

    value: Column
    first: dict[int, Column] = field(default_factory=dict)
    second: dict[tuple[int, int], Column] = field(default_factory=dict)

    def plus(self, other: Jet) -> Jet:
        """The sum."""

        def added(a: dict, b: dict) -> dict:
            both = {key: _sum(a[key], b[key]) for key in a.keys() & b.keys()}
            return {**a, **b, **both}

        first, second = added(self.first, other.first), added(self.second, other.second)
        return Jet(_sum(self.value, other.value), first, second)

    def times(self, other: Jet) -> Jet:
        """The product, by Leibniz' rule; the factors have inner variables of their own."""
        first = {q: _product(f, other.value) for q, f in self.first.items()}
        first |= {q: _product(f, self.value) for q, f in other.first.items()}
        second = {key: _product(f, other.value) for key, f in self.second.items()}
        second |= {key: _product(f, self.value) for key, f in other.second.items()}
        if self.second or other.second:
            for q, f in self.first.items():
                for r, g in other.first.items():
                    second[min(q, r), max(q, r)] = _product(f, g)
        return Jet(_product(self.value, other.value), first, second)


def _sum(a: Column, b: Column) -> Column:
    return [x + y for x, y in zip(a, b, strict=True)]


def _product(a: Column, b: Column) -> Column:
    return [x * y for x, y in zip(a, b, strict=True)]


@dataclass
class Expansion:
    """The jets of all k(., z_i) at a point, and the inner variables that they refer to."""

    jet: Jet
    inner: list[Inner]
    free: int

    def gradient_rows(self) -> arb_mat:
        """(N, f): the gradients of every k(., z_i)."""
        N = len(self.jet.value)
        rows = arb_mat(N, self.free)
        for q, f in self.jet.first.items():
            rows += scaled_rows(self.inner[q].gradient, f)
        return rows

    def gradient(self, weights: Column) -> Column:
        """That of `sum_i weights_i k(., z_i)`."""
        gradient = arb_mat(self.free, 1)
        for q, f in self.jet.first.items():
            gradient += self.inner[q].gradient.transpose() * column(_product(weights, f))
        return gradient.entries()

    def hessian(self, weights: Column) -> arb_mat:
        """Second derivatives of `sum_i weights_i k(., z_i)`."""
        matrix = arb_mat(self.free, self.free)
        for (q, r), f in self.jet.second.items():
            rows = scaled_rows(self.inner[r].gradient, _product(weights, f))
            outer = self.inner[q].gradient.transpose() * rows
            matrix += outer if q == r else outer + outer.transpose()
        for q, f in self.jet.first.items():
            curvature = self.inner[q].curvature(_product(weights, f))
            if curvature is not None:
                matrix += curvature
        return matrix
