"""Powers of functions that are affine on a cell, by their own expansion: polynomial kernels.

On a cell `k(c + d, z_i) = (u_i + t_i)^p` with `t_i = s_i.d`, `|t_i| <= T_i`: every derivative is a
number times `s_i`, or `s_i s_i^T`, so that values, gradients, Hessians and remainders of all
functions are matrix products of the slopes S (N, f). No product of p nodes is formed.

Proofs: docs/mathematics.md, statements 2.13, 3.3 and 3.9.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from itertools import repeat
from typing import Annotated

import numpy as np

from gpcert.kernels.nodes.base import (
    DerivativeBounds,
    FirstOrder,
    Jet,
    KnownBatch,
    LocalNode,
    NodeBatch,
    Triple,
)
from gpcert.kernels.nodes.composite import ProductBatch
from gpcert.kernels.sizes import raised, signed_times, times
from gpcert.numerics.arrays import Array, PerCell, PerCellAndPoint, PerCellMatrix, namespace
from gpcert.numerics.rounding import down, gamma, nonnegative, up
from gpcert.regions.scaled import ScaledCells


@dataclass(frozen=True, eq=False)
class PowerNode(LocalNode):
    """`base^degree`, of a base whose functions are affine: `slopes` (N, f), to two roundings, and
    no Hessians."""

    base: LocalNode
    slopes: Array
    degree: int

    @np.errstate(over="ignore")
    def derivative_bounds(self, geometry: ScaledCells) -> DerivativeBounds:
        """The feature space is the tensor power of the base's; halves are squared."""
        return _power_of_bounds(self.base.derivative_bounds(geometry), self.degree)

    @np.errstate(over="ignore", under="ignore")
    def at(self, geometry: ScaledCells) -> PowerBatch:
        """Values to p - 1 roundings, and derivatives in u with what the error of u makes of them.

        `|u~^n - u^n| <= n e m^(n-1)` for `|u~ - u| <= e`, `|u|, |u~| <= m`; the products of p - 1
        factors, two constants and a slope cost at most p + 8 roundings of each entry. A Hessian's
        are those of `s s^T`, of rank one: its Frobenius norm is the spectral one.
        """
        base, p = self.base.at(geometry), self.degree
        xp, u = namespace(base.value), base.value
        m, e = base.sizes[0], base.errors[0]
        length, slope_error = base.sizes[1], base.errors[1]
        factors, sizes, errors = [], [], []
        for n in range(3):
            count = float(math.perm(p, n))  # 0 beyond the degree
            factors.append(count * _power(u, p - n))
            size = raised(count * _power(m, p - n), p + 2)
            error = (
                count * (p - n) * times(e, raised(_power(m, p - n - 1), p)) + gamma(p + 8) * size
            )
            # of s^n, whose errors are as many times that of s
            lengths = raised(_power(length, n), 1)
            turned = times(n * slope_error, _power(raised(length + slope_error, 1), n - 1))
            error = raised(error, p + 8) if count else xp.zeros_like(size)
            sizes.append(times(size, lengths))
            whole = times(error, lengths) + times(raised(size + error, 1), turned)
            errors.append(raised(whole, 8))
        return PowerBatch(
            factors[0], tuple(sizes), tuple(errors), base, self, geometry, tuple(factors)
        )


def _power(x: Array, n: int) -> Array:
    """`x^n` by n - 1 products; 1 for n <= 0."""
    return reduce(lambda a, b: a * b, repeat(x, n)) if n > 0 else namespace(x).ones_like(x)


def _power_of_bounds(base: DerivativeBounds, p: int) -> DerivativeBounds:
    half = base if p < 4 else _power_of_bounds(base, p // 2)
    parts = [base] * p if p < 4 else [half, half, *[base] * (p % 2)]
    return reduce(DerivativeBounds.times, parts)


@dataclass(frozen=True, eq=False)
class PowerBatch(KnownBatch):
    """The powers on a batch of cells."""

    base: NodeBatch
    node: PowerNode
    geometry: ScaledCells
    factors: Triple
    """(B, N): the first derivatives of `u^p` in u, from degree 0."""

    @np.errstate(under="ignore")
    def contract(self, coefficients: PerCellAndPoint) -> Jet:
        """`sum a p u^(p-1) s` and `sum a p (p-1) u^(p-2) s s^T`: one product of matrices each."""
        xp, slopes = namespace(coefficients), self.node.slopes
        value, first, second = (coefficients * factor for factor in self.factors)
        (used,) = xp.nonzero(xp.any(second != 0, axis=0))  # machines of pairs use few points
        near = slopes[used]
        hessian = xp.matrix_transpose(second[:, used, None] * near) @ near
        hessian = 0.5 * hessian + 0.5 * xp.matrix_transpose(hessian)
        return Jet(xp.sum(value, axis=1), first @ slopes, hessian)

    @np.errstate(over="ignore", under="ignore")
    def first_order(self, coefficients: Annotated[Array, "m N"]) -> FirstOrder:
        """Statement 3.9: what `(u + t)^p` leaves beyond degree 1 has a sign where u + t has one,
        and everywhere for even p."""
        xp, p = namespace(coefficients), self.node.degree
        N = coefficients.shape[1]
        first = self.factors[1][:, None, :] * coefficients[None]
        m, T, u = self.base.sizes[0], self.base.variations()[1], self.base.value
        most = xp.zeros_like(m)
        for n in range(p, 1, -1):  # Horner: all terms are >= 0
            most = most * T + math.comb(p, n) * _power(m, p - n)
        most = raised(times(times(most, T), T), 4 * p + 8)
        reach, zero = up(T + self.base.errors[0], 1), xp.zeros_like(most)
        high = most if p % 2 == 0 else xp.where(u <= -reach, zero, most)
        low = zero if p % 2 == 0 else xp.where(u >= reach, zero, -most)
        plus, minus = nonnegative(coefficients), nonnegative(-coefficients)
        lower, upper = low @ plus.T - high @ minus.T, high @ plus.T - low @ minus.T
        # the terms of one sum may cancel: their sizes bound its rounding
        lost = gamma(N + 8) * (most @ (plus + minus).T)
        return FirstOrder(
            self.factors[0] @ coefficients.T,
            first @ self.node.slopes,
            down(lower - lost, N + 8),
            up(upper + lost, N + 8),
        )

    def gradients(self) -> Annotated[Array, "B f N"]:
        """`p u^(p-1) s`."""
        xp = namespace(self.value)
        return self.factors[1][:, None, :] * xp.matrix_transpose(self.node.slopes)

    @np.errstate(over="ignore")
    def variations(self) -> tuple[PerCellAndPoint, ...]:
        """`S_n = p! / (p - n)! sup |u|^(p-n) S^n`, S that of the base."""
        (size, spread, *_), p = self.base.variations(), self.node.degree
        sizes = []
        for n in range(4):
            count = float(math.perm(p, n))
            sizes.append(
                raised(count * signed_times(_power(size, p - n), _power(spread, n)), p + 4)
            )
        return tuple(sizes)

    @cached_property
    def product(self) -> NodeBatch:
        """The product of p equal batches: for the centre alone, and for the paper's lines."""
        product = partial(ProductBatch.of, features=self.geometry.half.shape[1])
        return reduce(product, [self.base] * self.node.degree)

    def diagonal_jet(self) -> tuple[Jet, Triple]:
        """By the product rule."""
        return self.product.diagonal_jet()

    def mixed(self) -> tuple[PerCellMatrix, PerCell]:
        """By the product rule."""
        return self.product.mixed()
