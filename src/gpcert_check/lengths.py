"""Lengths in the kernel's space, on a cell: of the Taylor terms of the feature map at the centre,
and of what lies beyond them.

`|phi(c + d) - sum_(j <= n) D^j phi(c) / j!| <= rest` for every d of the cell, and the terms have
lengths <= `terms[j]`. Sums of kernels are orthogonal sums of features, products tensor products.
"""

from __future__ import annotations

from dataclasses import dataclass

from flint import arb

from gpcert_check.balls import root, square, total


@dataclass(frozen=True)
class Lengths:
    """`whole` bounds |phi| on the cell."""

    terms: list[arb]
    rest: arb
    whole: arb

    def plus(self, other: Lengths) -> Lengths:
        """Of a sum of kernels: features side by side."""
        terms = [root(a * a + b * b) for a, b in zip(self.terms, other.terms, strict=True)]
        rest = root(square(self.rest) + square(other.rest))
        return Lengths(terms, rest, root(square(self.whole) + square(other.whole)))

    def times(self, other: Lengths) -> Lengths:
        """Of a product: with `phi = T + r` in both factors, `phi phi' = r phi' + T r' + T T'`."""
        n = len(self.terms)
        pairs = [(i, j) for i in range(n) for j in range(n)]
        terms = [
            total(self.terms[i] * other.terms[j] for i, j in pairs if i + j == m) for m in range(n)
        ]
        beyond = total(self.terms[i] * other.terms[j] for i, j in pairs if i + j >= n)
        rest = self.rest * other.whole + total(self.terms) * other.rest + beyond
        return Lengths(terms, rest, self.whole * other.whole)
