"""How far a feature map bends over a cell, and how that composes over sums and products.

For a cell with displacements d from its centre, `FeatureSizes` bounds, for i, j <= 3,

    gram[i][j] >= sup |<D_d^i phi(x), D_d^j phi(x)>|   over all x and d of the cell,

and, beside these, the Taylor remainders of orders 0, 1 and 2 at the centre themselves.

Proofs: docs/mathematics.md, statements 2.2, 2.3, 2.12 and 2.13.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from gpcert.arrays import Array, PerCell, namespace
from gpcert.kernels.sizes import hypotenuse, raised, root_above, times
from gpcert.rounding import up, up_float

ORDERS = 4
"""Derivatives 0 to 3 are kept: what a second-order expansion and its remainder need."""

Gram = tuple[tuple["Array | None", ...], ...]
"""`gram[i][j]` is (B,), or None where the inner product is zero by symmetry."""


def spectral_gram(moments: Sequence[PerCell]) -> Gram:
    """The Gram bounds of a stationary kernel from its even spectral moments, order 0, 2, 4, 6.

    By Bochner `phi(x) = e^{i w.x}`, so `<D_d^i phi, D_d^j phi> = i^(i-j) E u^(i+j)`, u = w.d, which
    vanishes for odd i + j as u is symmetric. `moments[n]` (B,) bounds `E u^(2n)`, k(0) included;
    infinite where it does not exist.
    """
    return tuple(
        tuple(moments[(i + j) // 2] if (i + j) % 2 == 0 else None for j in range(ORDERS))
        for i in range(ORDERS)
    )


@dataclass(frozen=True, eq=False)
class FeatureSizes:
    """See the module. `direct[n]` (B,) bounds the remainder of order n = 0, 1, 2 at the centre:

    `|| phi(c+d) - sum_{i <= n} D_d^i phi(c) / i! ||`, infinite where only the Gram bounds know it.
    """

    gram: Gram
    direct: tuple[Array, ...]
    stationary: bool

    @cached_property
    def lengths(self) -> tuple[PerCell, ...]:
        """Upper bounds (B,) of `||D_d^n phi(x)||`, n = 0, ..., 3: the b_n of Statement 2.2."""
        found = []
        for n in range(ORDERS):
            entry = self.gram[n][n]
            assert entry is not None, "the diagonal of a Gram matrix is never zero by symmetry"
            found.append(root_above(entry))
        return tuple(found)

    def remainder(self, order: int) -> PerCell:
        """R_n: the better of the direct bound and `b_{n+1} / (n+1)!` (Taylor's integral form)."""
        xp = namespace(self.direct[order])
        return xp.minimum(
            self.direct[order], raised(self.lengths[order + 1] / math.factorial(order + 1), 1)
        )

    def scaled(self, factor: float) -> FeatureSizes:
        """For the kernel `factor * k`: inner products grow by it, lengths by its root."""
        gram = tuple(
            tuple(None if g is None else _scale(g, factor) for g in row) for row in self.gram
        )
        root = up_float(math.sqrt(factor), 1)
        return FeatureSizes(gram, tuple(_scale(r, root) for r in self.direct), self.stationary)

    def plus(self, other: FeatureSizes) -> FeatureSizes:
        """For k1 + k2: the feature space is the direct sum, so inner products and squares add."""
        gram = tuple(
            tuple(_add(a, b) for a, b in zip(left, right, strict=True))
            for left, right in zip(self.gram, other.gram, strict=True)
        )
        direct = tuple(hypotenuse(self.remainder(n), other.remainder(n)) for n in range(3))
        return FeatureSizes(gram, direct, self.stationary and other.stationary)

    def times(self, other: FeatureSizes) -> FeatureSizes:
        """For k1 * k2: phi = phi1 (x) phi2, derivatives by Leibniz' rule.

        `<D^n phi, D^m phi> = sum_jl C(n,j) C(m,l) <D^j phi1, D^l phi1> <D^(n-j) phi2, D^(m-l)
        phi2>`. For two stationary kernels all signs agree and this is `E (u1 + u2)^(n+m)` exactly.
        """
        gram = tuple(
            tuple(_leibniz(self.gram, other.gram, n, m) for m in range(ORDERS))
            for n in range(ORDERS)
        )
        both = self.stationary and other.stationary
        direct = (
            self._zeroth_product(other),
            self._first_product(other),
            self._second_product(other),
        )
        return FeatureSizes(gram, direct, both)

    def _zeroth_product(self, other: FeatureSizes) -> Array:
        """`|a' b' - a b| <= |a' - a| |b'| + |a| |b' - b|`; stationary kernels: squares add.

        For these R0^2 = 2 k(0) - 2 k(d), and with correlations r, q in [-1, 1]
        `1 - r q = (1 - r) + r (1 - q) <= (1 - r) + (1 - q)`.
        """
        left = times(self.remainder(0), other.lengths[0])
        right = times(self.lengths[0], other.remainder(0))
        if self.stationary and other.stationary:
            return hypotenuse(left, right)
        return raised(left + right, 2)

    def _first_product(self, other: FeatureSizes) -> Array:
        """With a' = a + Da + r: `a' b' - (degree <= 1) = r b' + (a + Da) s + Da Db`."""
        a, b = self.lengths, other.lengths
        polynomial = hypotenuse(a[0], a[1]) if self.stationary else raised(a[0] + a[1], 1)
        total = times(self.remainder(1), b[0]) + times(polynomial, other.remainder(1))
        return raised(total + times(a[1], b[1]), 4)

    def _second_product(self, other: FeatureSizes) -> Array:
        """The same with polynomials of degree 2: `r b' + T s`, and T U beyond degree 2."""
        a, b = self.lengths, other.lengths
        polynomial = raised(a[0] + a[1] + 0.5 * a[2], 2)
        total = times(self.remainder(2), b[0]) + times(polynomial, other.remainder(2))
        total = total + 0.5 * (times(a[1], b[2]) + times(a[2], b[1]))
        return raised(total + 0.25 * times(a[2], b[2]), 8)


def _scale(size: Array, factor: float) -> Array:
    """`factor * size`, rounded up; exactly zero stays zero."""
    return namespace(size).where(size > 0, up(factor * size, 1), size)


def _add(a: Array | None, b: Array | None) -> Array | None:
    if a is None or b is None:
        return b if a is None else a
    return raised(a + b, 1)


def _leibniz(left: Gram, right: Gram, n: int, m: int) -> Array | None:
    total: Array | None = None
    for j in range(n + 1):
        for i in range(m + 1):
            a, b = left[j][i], right[n - j][m - i]
            if a is not None and b is not None:
                term = times(a, b) * float(math.comb(n, j) * math.comb(m, i))
                total = term if total is None else total + term
    return None if total is None else raised(total, 24)
