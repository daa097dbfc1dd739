"""Sums, multiples and products of kernels inside a region: all adds, or follows Leibniz' rule.

Proofs: docs/mathematics.md, statements 2.11, 2.12, 2.13 and 16.8.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from operator import add
from typing import Annotated, Any, Self

import numpy as np

from gpcert.kernels.nodes.base import (
    DerivativeBounds,
    FirstOrder,
    Jet,
    KnownBatch,
    LocalNode,
    NodeBatch,
    TaylorRemainder,
    Triple,
)
from gpcert.kernels.sizes import frobenius, leibniz, raised, scaled, total
from gpcert.numerics.arrays import Array, PerCell, PerCellAndPoint, PerCellMatrix, Reals, namespace
from gpcert.numerics.rounding import gamma
from gpcert.regions.scaled import ScaledCells


@dataclass(frozen=True, eq=False)
class SumNode(LocalNode):
    """Sum of one or more nodes with the same points and frame."""

    parts: tuple[LocalNode, ...]

    @np.errstate(over="ignore")
    def derivative_bounds(self, geometry: ScaledCells) -> DerivativeBounds:
        """The feature space is the direct sum of the parts'."""
        return reduce(
            DerivativeBounds.plus, [part.derivative_bounds(geometry) for part in self.parts]
        )

    def at(self, geometry: ScaledCells) -> NodeBatch:
        batches = tuple(part.at(geometry) for part in self.parts)
        return batches[0] if len(batches) == 1 else SumBatch.of(batches, geometry.half.shape[1])


@dataclass(frozen=True, eq=False)
class SumBatch(KnownBatch):
    """Sum of two or more batches."""

    parts: tuple[NodeBatch, ...]

    @staticmethod
    @np.errstate(over="ignore")
    def of(parts: tuple[NodeBatch, ...], features: int) -> SumBatch:
        """Add values, sizes and errors; the additions' own rounding goes to the errors.

        They also cover the additions in `contract`: of each entry of a matrix, hence by sqrt(f) in
        the spectral norm.
        """
        count = len(parts)
        sizes, errors = [], []
        for n in range(3):
            size = total([part.sizes[n] for part in parts])
            error = total([part.errors[n] for part in parts])
            roundings = count * (1 + math.isqrt(features) if n == 2 else 1)
            sizes.append(size)
            errors.append(raised(error + gamma(roundings) * (size + error), 4))
        value = reduce(add, [part.value for part in parts])
        return SumBatch(value, tuple(sizes), tuple(errors), parts)

    def contract(self, coefficients: PerCellAndPoint) -> Jet:
        return reduce(Jet.plus, [part.contract(coefficients) for part in self.parts])

    def first_order(self, coefficients: Annotated[Array, "m N"]) -> FirstOrder | None:
        """Sum of the parts', where all know it."""
        each = [part.first_order(coefficients) for part in self.parts]
        known = [part for part in each if part is not None]
        return reduce(FirstOrder.plus, known) if len(known) == len(each) else None

    def gradients(self) -> Annotated[Array, "B f N"]:
        return reduce(add, [part.gradients() for part in self.parts])

    @np.errstate(over="ignore")
    def variations(self) -> tuple[PerCellAndPoint, ...]:
        each = [part.variations() for part in self.parts]
        return tuple(total([v[n] for v in each]) for n in range(4))

    @np.errstate(over="ignore")
    def first_and_third(self) -> tuple[PerCellAndPoint, PerCellAndPoint]:
        first, third = zip(*(part.first_and_third() for part in self.parts), strict=True)
        return total(first), total(third)

    @np.errstate(over="ignore")
    def second_order_remainder(
        self, coefficients: PerCellAndPoint, third: PerCellAndPoint
    ) -> TaylorRemainder:
        """Sum of the parts', each by its own third derivatives."""
        del third
        each = [
            part.second_order_remainder(coefficients, part.first_and_third()[1])
            for part in self.parts
        ]
        return TaylorRemainder.of_sum(each)

    @np.errstate(over="ignore")
    def diagonal_second_order_remainder(self) -> PerCell | None:
        """Sum of the parts', where all know it."""
        each = [part.diagonal_second_order_remainder() for part in self.parts]
        known = [part for part in each if part is not None]
        return total(known) if len(known) == len(each) else None

    @np.errstate(over="ignore")
    def diagonal_jet(self) -> tuple[Jet, Triple]:
        """Sum of the parts', the additions' rounding counted entry by entry."""
        jets, errors = zip(*(part.diagonal_jet() for part in self.parts), strict=True)
        sizes = [jet.sizes for jet in jets]
        added = (_added([e[n] for e in errors], [s[n] for s in sizes]) for n in range(3))
        return reduce(Jet.plus, jets), tuple(added)

    def mixed(self) -> tuple[PerCellMatrix, PerCell]:
        """Sum of the parts': derivatives in a direct sum of feature spaces."""
        matrices, errors = zip(*(part.mixed() for part in self.parts), strict=True)
        return reduce(add, matrices), _added(errors, [frobenius(part) for part in matrices])


@np.errstate(over="ignore")
def _added(errors: Sequence[Array], sizes: Sequence[Array]) -> Array:
    """Error of a sum: the parts' errors, and the additions' rounding."""
    return raised(total(errors) + gamma(len(sizes)) * total(sizes), 4)


@dataclass(frozen=True, eq=False)
class ScaleNode(LocalNode):
    """A node times a positive number."""

    part: LocalNode
    factor: float

    @np.errstate(over="ignore")
    def derivative_bounds(self, geometry: ScaledCells) -> DerivativeBounds:
        """The feature map grows by the factor's root."""
        return self.part.derivative_bounds(geometry).scaled(self.factor)

    def at(self, geometry: ScaledCells) -> ScaleBatch:
        part = self.part.at(geometry)
        return ScaleBatch(
            self.factor * part.value,
            _scaled(part.sizes, self.factor),
            _scaled(_with_rounding(part.sizes, part.errors), self.factor),
            part,
            self.factor,
        )


@np.errstate(over="ignore")
def _with_rounding(sizes: Triple, errors: Triple) -> Triple:
    """Errors after one more rounding of each number."""
    each = zip(sizes, errors, strict=True)
    return tuple(raised(e + gamma(2) * (s + e), 4) for s, e in each)


def _scaled(sizes: Triple, factor: float) -> Triple:
    return tuple(scaled(size, factor) for size in sizes)


@dataclass(frozen=True, eq=False)
class ScaleBatch(KnownBatch):
    """A batch times a positive number."""

    part: NodeBatch
    factor: float

    def contract(self, coefficients: PerCellAndPoint) -> Jet:
        """The coefficients are scaled."""
        return self.part.contract(self.factor * coefficients)

    def first_order(self, coefficients: Annotated[Array, "m N"]) -> FirstOrder | None:
        """The coefficients are scaled."""
        return self.part.first_order(self.factor * coefficients)

    def gradients(self) -> Annotated[Array, "B f N"]:
        return self.factor * self.part.gradients()

    def variations(self) -> tuple[PerCellAndPoint, ...]:
        return _scaled(self.part.variations(), self.factor)

    def first_and_third(self) -> tuple[PerCellAndPoint, PerCellAndPoint]:
        first, third = self.part.first_and_third()
        return scaled(first, self.factor), scaled(third, self.factor)

    def second_order_remainder(
        self, coefficients: PerCellAndPoint, third: PerCellAndPoint
    ) -> TaylorRemainder:
        """Scaled; the part's own third derivatives."""
        del third
        remainder = self.part.second_order_remainder(coefficients, self.part.first_and_third()[1])
        return remainder.scaled(self.factor)

    @np.errstate(over="ignore")
    def diagonal_second_order_remainder(self) -> PerCell | None:
        remainder = self.part.diagonal_second_order_remainder()
        return None if remainder is None else scaled(remainder, self.factor)

    def diagonal_jet(self) -> tuple[Jet, Triple]:
        """Scaled, one rounding of each entry."""
        jet, errors = self.part.diagonal_jet()
        scaled = Jet(self.factor * jet.value, self.factor * jet.gradient, self.factor * jet.hessian)
        return scaled, _scaled(_with_rounding(jet.sizes, errors), self.factor)

    def mixed(self) -> tuple[PerCellMatrix, PerCell]:
        """Scaled, one rounding of each entry."""
        matrix, error = self.part.mixed()
        (error,) = _scaled(_with_rounding((frobenius(matrix),), (error,)), self.factor)
        return self.factor * matrix, error


@dataclass(frozen=True, eq=False)
class ProductNode(LocalNode):
    """Product of one or more nodes with the same points and frame; a power repeats a node."""

    parts: tuple[LocalNode, ...]

    @np.errstate(over="ignore")
    def derivative_bounds(self, geometry: ScaledCells) -> DerivativeBounds:
        """The feature space is the tensor product of the parts'."""
        return reduce(
            DerivativeBounds.times, each_answer(self.parts, "derivative_bounds", geometry)
        )

    def at(self, geometry: ScaledCells) -> NodeBatch:
        """One batch a part, multiplied from the left."""
        product = partial(ProductBatch.of, features=geometry.half.shape[1])
        return reduce(product, each_answer(self.parts, "at", geometry))


def each_answer(parts: Sequence[Any], method: str, *arguments: Any) -> list[Any]:
    """The answer of every part; a part that occurs several times is computed once."""
    answers = {id(part): getattr(part, method)(*arguments) for part in parts}
    return [answers[id(part)] for part in parts]


@dataclass(frozen=True, eq=False)
class ProductBatch(KnownBatch):
    """Product of two batches."""

    left: NodeBatch
    right: NodeBatch
    features: int

    @classmethod
    @np.errstate(under="ignore")
    def of(cls, left: NodeBatch, right: NodeBatch, features: int, **more: Any) -> Self:
        """Multiply; errors cover the roundings of the multiplications here and in `contract`."""
        sizes = tuple(leibniz(left.sizes, right.sizes, n) for n in range(3))
        errors = bilinear_errors((left.sizes, right.sizes), (left.errors, right.errors), features)
        value = left.value * right.value
        return cls(value, sizes, errors, left, right, features, **more)

    @cached_property
    def _factors(self) -> tuple[Array, Array]:
        """(B, f, N): the gradients of both factors, which every contraction needs."""
        return self.left.gradients(), self.right.gradients()

    @np.errstate(under="ignore")
    def contract(self, coefficients: PerCellAndPoint) -> Jet:
        """Leibniz: each factor contracted with the other's values, and the crossed term.

        `D^2 (k1 k2) = k2 D^2 k1 + k1 D^2 k2 + X + X^T`, `X = grad k1 grad k2^T`: one batched
        matrix product for the sum over the points.
        """
        xp = namespace(coefficients)
        first = self.left.contract(coefficients * self.right.value)
        second = self.right.contract(coefficients * self.left.value)
        left, right = self._factors
        crossed = (coefficients[:, None, :] * left) @ xp.matrix_transpose(right)
        return Jet(
            xp.sum(coefficients * self.value, axis=1),
            first.gradient + second.gradient,
            (first.hessian + second.hessian) + (crossed + xp.matrix_transpose(crossed)),
        )

    @np.errstate(under="ignore")
    def gradients(self) -> Annotated[Array, "B f N"]:
        """`k2 grad k1 + k1 grad k2`."""
        left, right = self._factors
        return left * self.right.value[:, None, :] + self.left.value[:, None, :] * right

    def variations(self) -> tuple[Annotated[Array, "n j"], ...]:
        """`S_n = sum_j C(n, j) S_j S'_(n-j)`.

        For n = 1 this is also a bound of the change of a product of functions that are only
        Lipschitz continuous: `|p q - p0 q0| <= |p - p0| |q| + |p0| |q - q0|`.
        """
        left, right = self.left.variations(), self.right.variations()
        return tuple(leibniz(left, right, n) for n in range(4))

    def diagonal_jet(self) -> tuple[Jet, Triple]:
        """`k1(x, c) k2(x, c)` by the product rule."""
        return _product_rule(self.left.diagonal_jet(), self.right.diagonal_jet())

    def mixed(self) -> tuple[PerCellMatrix, PerCell]:
        """`k2 M1 + k1 M2 + g1 g2^T + g2 g1^T`: the product rule with M in place of the Hessian.

        For `d k / d y_j` at x = y = c is `d k / d x_j` there, as k is symmetric.
        """
        jet, errors = _product_rule(_with_mixed(self.left), _with_mixed(self.right))
        return jet.hessian, errors[2]


@np.errstate(over="ignore")
def bilinear_errors(
    sizes: tuple[Sequence[Reals], Sequence[Reals]],
    errors: tuple[Sequence[Reals], Sequence[Reals]],
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
    product_errors = []
    for n in range(3):
        error = leibniz(e, q, n) + leibniz(p, h, n) + leibniz(e, h, n)
        roundings = 8 * (1 + math.isqrt(features) if n == 2 else 1)
        error = error + gamma(roundings) * (leibniz(p, q, n) + error)
        product_errors.append(raised(error, 6))
    return tuple(product_errors)


def _with_mixed(batch: NodeBatch) -> tuple[Jet, Triple]:
    """`diagonal_jet`, with the mixed derivatives in the Hessian's place."""
    jet, errors = batch.diagonal_jet()
    matrix, error = batch.mixed()
    return Jet(jet.value, jet.gradient, matrix), (errors[0], errors[1], error)


@np.errstate(under="ignore")
def _product_rule(first: tuple[Jet, Triple], second: tuple[Jet, Triple]) -> tuple[Jet, Triple]:
    """Jet of the product of two functions (B,), with its errors."""
    (p, p_errors), (q, q_errors) = first, second
    xp = namespace(p.value)
    v, w = p.value[:, None], q.value[:, None]
    crossed = p.gradient[:, :, None] * q.gradient[:, None, :]
    curved = w[:, :, None] * p.hessian + v[:, :, None] * q.hessian
    jet = Jet(
        p.value * q.value,
        w * p.gradient + v * q.gradient,
        curved + (crossed + xp.matrix_transpose(crossed)),
    )
    features = p.gradient.shape[1]
    return jet, bilinear_errors((p.sizes, q.sizes), (p_errors, q_errors), features)
