"""Lengths in the kernel's space, on a cell: of the Taylor terms of the feature map at the centre,
and of what lies beyond them.

`|phi(c + d) - sum_(j <= n) D^j phi(c) / j!| <= rest` for every d of the cell, and the terms have
lengths <= `terms[j]`. Sums of kernels are orthogonal sums of features, products tensor products.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from flint import arb


@dataclass(frozen=True)
class Lengths:
    """`whole` bounds |phi| on the cell."""

    terms: list[arb]
    rest: arb
    whole: arb

    def plus(self, other: Lengths) -> Lengths:
        """Of a sum of kernels: features side by side."""
        terms = [root(a**2 + b**2) for a, b in zip(self.terms, other.terms, strict=True)]
        rest = root(self.rest**2 + other.rest**2)
        return Lengths(terms, rest, root(self.whole**2 + other.whole**2))

    def times(self, other: Lengths) -> Lengths:
        """Of a product: with `phi = T + r` in both factors, `phi phi' = r phi' + T r' + T T'`."""
        n = len(self.terms)
        pairs = [(i, j) for i in range(n) for j in range(n)]
        terms = [
            sum((self.terms[i] * other.terms[j] for i, j in pairs if i + j == m), arb(0))
            for m in range(n)
        ]
        beyond = sum((self.terms[i] * other.terms[j] for i, j in pairs if i + j >= n), arb(0))
        polynomial = reduce(arb.__add__, self.terms)
        rest = self.rest * other.whole + polynomial * other.rest + beyond
        return Lengths(terms, rest, self.whole * other.whole)

    def scaled(self, factor: arb) -> Lengths:
        """Of a multiple of the kernel."""
        by = factor.sqrt()
        return Lengths([by * a for a in self.terms], by * self.rest, by * self.whole)


def root(square: arb) -> arb:
    """The root of a number that is not negative, though its ball may reach below 0."""
    if square >= 0:
        return square.sqrt()
    return arb(0).union(square.upper().nonnegative_part().sqrt())
