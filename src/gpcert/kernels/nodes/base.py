"""A kernel inside a region as a tree of nodes: what every kernel, leaf or composed, offers there.

Everything is in the coordinates of a `Frame`. A node bound to the points z_1, ..., z_N answers two
questions for a batch of cells: how far its feature map bends (`DerivativeBounds`), and what the
functions k(., z_i) look like at the centres (`NodeBatch`).

Proofs: docs/mathematics.md, statements 2.2, 2.3, 2.12, 2.13, 3.6 and 5.9.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, ClassVar, NamedTuple

import numpy as np

from gpcert.kernels.nodes.moments import sorted_index
from gpcert.kernels.sizes import (
    euclidean,
    frobenius,
    hypotenuse,
    raised,
    root_above,
    scaled,
    times,
    total,
)
from gpcert.numerics.arrays import Array, Index, PerCell, PerCellAndPoint, PerCellMatrix, namespace
from gpcert.numerics.rounding import down, gamma, up, up_float
from gpcert.regions.scaled import ScaledCells

if TYPE_CHECKING:
    from gpcert.kernels.nodes.radial_bins import BinnedSums

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
class DerivativeBounds:
    """See the module. `direct[n]` (B,) bounds the remainder of order n = 0, 1, 2 at the centre:

    `|| phi(c+d) - sum_{i <= n} D_d^i phi(c) / i! ||`, infinite where only the Gram bounds know it.
    """

    gram: Gram
    direct: tuple[Array, ...]
    stationary: bool

    @cached_property
    def lengths(self) -> tuple[PerCell, ...]:
        """Upper bounds (B,) of `||D_d^n phi(x)||`, n = 0, ..., 3: the b_n of Statement 2.2."""
        roots = []
        for n in range(ORDERS):
            entry = self.gram[n][n]
            assert entry is not None, "the diagonal of a Gram matrix is never zero by symmetry"
            roots.append(root_above(entry))
        return tuple(roots)

    def remainder(self, order: int) -> PerCell:
        """R_n: the better of the direct bound and `b_{n+1} / (n+1)!` (Taylor's integral form)."""
        xp = namespace(self.direct[order])
        return xp.minimum(
            self.direct[order], raised(self.lengths[order + 1] / math.factorial(order + 1), 1)
        )

    def scaled(self, factor: float) -> DerivativeBounds:
        """For the kernel `factor * k`: inner products grow by it, lengths by its root."""
        gram = tuple(
            tuple(None if g is None else scaled(g, factor) for g in row) for row in self.gram
        )
        root = up_float(math.sqrt(factor), 1)
        return DerivativeBounds(gram, tuple(scaled(r, root) for r in self.direct), self.stationary)

    def plus(self, other: DerivativeBounds) -> DerivativeBounds:
        """For k1 + k2: the feature space is the direct sum, so inner products and squares add."""
        gram = tuple(
            tuple(_add(a, b) for a, b in zip(left, right, strict=True))
            for left, right in zip(self.gram, other.gram, strict=True)
        )
        direct = tuple(hypotenuse(self.remainder(n), other.remainder(n)) for n in range(3))
        return DerivativeBounds(gram, direct, self.stationary and other.stationary)

    def joined(self, other: DerivativeBounds) -> DerivativeBounds:
        """For the features `phi1 + phi2` in one space, whatever their angle: lengths add."""
        lengths = [raised(a + b, 1) for a, b in zip(self.lengths, other.lengths, strict=True)]
        gram = tuple(tuple(times(a, b) for b in lengths) for a in lengths)
        direct = tuple(raised(self.remainder(n) + other.remainder(n), 1) for n in range(3))
        return DerivativeBounds(gram, direct, stationary=False)

    def times(self, other: DerivativeBounds) -> DerivativeBounds:
        """For k1 * k2: phi = phi1 (x) phi2, derivatives by Leibniz' rule.

        `<D^n phi, D^m phi> = sum_jl C(n,j) C(m,l) <D^j phi1, D^l phi1> <D^(n-j) phi2, D^(m-l)
        phi2>`. For two stationary kernels all signs agree and this is `E (u1 + u2)^(n+m)` exactly.
        """
        gram = tuple(
            tuple(_leibniz(self.gram, other.gram, n, m) for m in range(ORDERS))
            for n in range(ORDERS)
        )
        both = self.stationary and other.stationary
        return DerivativeBounds(gram, self._direct_of_product(other, both), both)

    def _direct_of_product(self, other: DerivativeBounds, stationary: bool) -> tuple[Array, ...]:
        """Order 0: `|a' b' - a b| <= |a' - a| |b'| + |a| |b' - b|`; for stationary kernels squares
        add, as R0^2 = 2 k(0) - 2 k(d) and, with correlations r, q in [-1, 1],
        `1 - r q = (1 - r) + r (1 - q) <= (1 - r) + (1 - q)`. Order 1, with a' = a + Da + r:
        `a' b' - (degree <= 1) = r b' + (a + Da) s + Da Db`. Order 2: the same with polynomials T, U
        of degree 2, `r b' + T s`, and T U beyond degree 2.
        """
        a, b = self.lengths, other.lengths
        left, right = times(self.remainder(0), b[0]), times(a[0], other.remainder(0))
        zeroth = hypotenuse(left, right) if stationary else raised(left + right, 2)
        polynomial = hypotenuse(a[0], a[1]) if self.stationary else raised(a[0] + a[1], 1)
        first = times(self.remainder(1), b[0]) + times(polynomial, other.remainder(1))
        polynomial = raised(a[0] + a[1] + 0.5 * a[2], 2)
        second = times(self.remainder(2), b[0]) + times(polynomial, other.remainder(2))
        second = second + 0.5 * (times(a[1], b[2]) + times(a[2], b[1]))
        second = raised(second + 0.25 * times(a[2], b[2]), 8)
        return zeroth, raised(first + times(a[1], b[1]), 4), second


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


@dataclass(frozen=True, eq=False)
class CubicPart:
    """Degree 3 of a function: with `T[d, d, d] / 6` added to its polynomial of degree 2, the
    remainder is at most `rest` (B,). `tensor` (B, n): T over sorted triples, in the coordinates of
    the cells; `absolute` (B,): at least the sum of all `|T_jkl| w_j w_k w_l / 6`, w the
    half-widths."""

    tensor: Array
    rest: Array
    absolute: Array

    def where(self, mask: PerCell) -> CubicPart:
        """Nothing known (an infinite rest) elsewhere."""
        xp = namespace(mask)
        rest = xp.where(mask, self.rest, xp.full_like(self.rest, np.inf))
        return replace(self, rest=rest)


@dataclass(frozen=True, eq=False)
class TaylorRemainder:
    """Remainder of a polynomial of degree 2: at most `size` (B,); and degree 3, if it is known."""

    size: Array
    cubic: CubicPart | None = None

    def raised(self, amount: PerCell) -> TaylorRemainder:
        """Of a function that may differ by `amount` (B,) more."""
        cubic = self.cubic
        if cubic is not None:
            cubic = replace(cubic, rest=up(cubic.rest + amount, 1))
        return TaylorRemainder(up(self.size + amount, 1), cubic)

    @np.errstate(over="ignore", invalid="ignore")
    def scaled(self, factor: float) -> TaylorRemainder:
        """Of `factor` times the function, factor > 0."""
        cubic = self.cubic
        if cubic is not None:
            absolute = scaled(cubic.absolute, factor)
            rest = up(scaled(cubic.rest, factor) + gamma(4) * absolute, 2)
            cubic = CubicPart(factor * cubic.tensor, rest, absolute)
        return TaylorRemainder(scaled(self.size, factor), cubic)

    @staticmethod
    @np.errstate(over="ignore", invalid="ignore")
    def of_sum(parts: list[TaylorRemainder]) -> TaylorRemainder:
        """Of a sum; a part whose degree 3 is not known counts by its size."""
        known = [part.cubic for part in parts if part.cubic is not None]
        size = total([part.size for part in parts])
        if not known:
            return TaylorRemainder(size)
        absolute = total([cubic.absolute for cubic in known])
        left = [part.size if part.cubic is None else part.cubic.rest for part in parts]
        rest = up(total(left) + gamma(2 * len(known)) * absolute, 2)
        tensor = sum((cubic.tensor for cubic in known[1:]), known[0].tensor)
        return TaylorRemainder(size, CubicPart(tensor, rest, absolute))

    def placed(self, columns: Index, features: int) -> TaylorRemainder:
        """The same among more features, the function's own being those at `columns`."""
        if self.cubic is None:
            return self
        xp, tensor = namespace(self.size), self.cubic.tensor
        number = {tuple(row): i for i, row in enumerate(sorted_index(features, 3).entries.tolist())}
        entries = columns[sorted_index(len(columns), 3).entries]
        at = np.array([number[tuple(row)] for row in np.sort(entries, axis=1).tolist()], dtype=int)
        wide = xp.zeros((len(tensor), len(number)), dtype=tensor.dtype, device=tensor.device)
        wide[:, xp.asarray(at, device=tensor.device)] = tensor
        return TaylorRemainder(self.size, replace(self.cubic, tensor=wide))


Triple = tuple[Array, ...]
"""Something about the derivatives of order 0, 1 and 2."""


@dataclass(frozen=True, eq=False)
class Jet:
    """Value, gradient and Hessian, exactly symmetric, of a function."""

    value: PerCell
    gradient: Annotated[Array, "B f"]
    hessian: PerCellMatrix

    @property
    def sizes(self) -> Triple:
        """Sizes (B,) of the computed parts, the Hessian's in the Frobenius norm."""
        return abs(self.value), euclidean(self.gradient), frobenius(self.hessian)

    def plus(self, other: Jet) -> Jet:
        """Sum of two functions."""
        return Jet(
            self.value + other.value,
            self.gradient + other.gradient,
            self.hessian + other.hessian,
        )


class FirstOrder(NamedTuple):
    """`sum_i a_ji k(., z_i)` of m functions on B cells: value (B, m) and gradient (B, m, f) at the
    centres, and between what `low` and `high` (B, m) the rest lies."""

    value: Array
    gradient: Array
    low: Array
    high: Array

    def plus(self, other: FirstOrder) -> FirstOrder:
        """Sums."""
        low, high = down(self.low + other.low, 1), up(self.high + other.high, 1)
        return FirstOrder(self.value + other.value, self.gradient + other.gradient, low, high)


class NodeBatch(ABC):
    """The functions k(., z_i) at the centres c_b of a batch of cells."""

    value: Array
    """(B, N): k(c_b, z_i)."""

    sizes: Triple
    """Upper bounds, broadcastable to (B, N), of `|k|`, of the Euclidean norm of its gradient and
    the spectral norm of its Hessian in x at (c_b, z_i)."""

    errors: Triple
    """Likewise of the errors of the computed value, gradient (Euclidean norm) and Hessian (spectral
    norm). Infinite (with finite computed numbers) where a derivative does not exist."""

    @abstractmethod
    def contract(self, coefficients: PerCellAndPoint) -> Jet:
        """Jet of `x -> sum_i a_bi k(x, z_i)` at c_b for coefficients a (B, N).

        By matrix products; `errors` does not contain the rounding of this sum (see `SUM_ROUNDINGS`
        of the caller: at most N + 4 f + 32 roundings of terms bounded by `sizes`).
        """

    def first_order(self, coefficients: Annotated[Array, "m N"]) -> FirstOrder | None:
        """The first order of m functions by matrix products over cells and points, its rounding as
        in `contract`; None where the second order costs little more."""
        del coefficients
        return None

    def value_accuracy(self) -> tuple[PerCellAndPoint, PerCellAndPoint]:
        """The first of `sizes` and `errors`, for callers that need no derivatives."""
        xp = namespace(self.value)
        return (
            xp.broadcast_to(self.sizes[0], self.value.shape),
            xp.broadcast_to(self.errors[0], self.value.shape),
        )

    @abstractmethod
    def gradients(self) -> Annotated[Array, "B f N"]:
        """(B, f, N): d k(x, z_i) / d x_j at x = c_b."""

    @abstractmethod
    def variations(self) -> tuple[PerCellAndPoint, ...]:
        """S_n (B, N), n = 0, ..., 3: upper bounds of `sup |D_d^n k(x, z_i)|` over x, d of the cell.

        x runs over the whole cell, d over its displacements from the centre (so S_n scales like
        half^n). Infinite where the derivative does not exist on the cell. S_1 must bound
        `|k(x, z_i) - k(c, z_i)|` also where k is only Lipschitz continuous.
        """

    def first_and_third(self) -> tuple[PerCellAndPoint, PerCellAndPoint]:
        """S_1 and S_3 of `variations`, all that remainders point by point ask for."""
        _, first, _, third = self.variations()
        return first, third

    def second_order_remainder(
        self, coefficients: Array, third: PerCellAndPoint
    ) -> TaylorRemainder:
        """The remainder of degree 2 of `sum_i a_bi k(., z_i)` on each cell.

        `third` (B, N) is S_3 of `variations`. Here point by point, `|e_i| <= S_3i / 6` (Taylor, the
        third derivative along the segment); a node that knows higher degrees overrides it.
        """
        xp = namespace(coefficients)
        sizes = xp.abs(coefficients)
        left = xp.where(sizes > 0, up(third / 6.0, 1), xp.zeros_like(sizes))
        return TaylorRemainder(up(xp.sum(sizes * left, axis=1), coefficients.shape[1] + 4))

    def binned(self, weights: Annotated[Array, "... N"], pointwise: bool) -> BinnedSums | None:
        """Sums over many points by their distances, where a node has them; weights (N,) or
        (B, N). `pointwise`: with the remainder of degree 2 point by point."""
        del weights, pointwise
        return None

    def diagonal_second_order_remainder(self) -> PerCell | None:
        """The remainder (B,) of degree 2 of `x -> k(x, c_b)`; None where only the features' own is
        known."""
        return None

    @abstractmethod
    def diagonal_jet(self) -> tuple[Jet, Triple]:
        """Jet of `x -> k(x, c_b)` at x = c_b, and the errors (B,) of its three parts (norms).

        Infinite errors (with finite numbers) where a derivative does not exist.
        """

    def mixed(self) -> tuple[PerCellMatrix, PerCell]:
        """`d^2 k(x, y) / dx dy` at x = y = c_b, (B, f, f): the derivatives' inner products.

        And a bound (B,) of its error in spectral norm. Here for a stationary kernel, whose mixed
        derivatives are minus the Hessian of `diagonal_jet`; all others override it.
        """
        jet, errors = self.diagonal_jet()
        return -jet.hessian, errors[2]

    def _zeros(self, *shape: int) -> Array:
        """(B, ...)."""
        xp, value = namespace(self.value), self.value
        return xp.zeros((value.shape[0], *shape), dtype=value.dtype, device=value.device)


@dataclass(frozen=True, eq=False)
class KnownBatch(NodeBatch):
    """A batch whose values, sizes and errors are computed when it is made."""

    value: Array
    sizes: Triple
    errors: Triple


class LocalNode(ABC):
    """A kernel bound to points and to a frame."""

    has_bins: ClassVar[bool] = False
    """Whether its batches may have sums by bins of distances (`NodeBatch.binned`)."""

    @abstractmethod
    def derivative_bounds(self, geometry: ScaledCells) -> DerivativeBounds:
        """How far the feature map bends over each cell."""

    @abstractmethod
    def at(self, geometry: ScaledCells) -> NodeBatch:
        """The functions k(., z_i) on each cell."""
