"""A sum of kernels inside a region: everything adds.

Proofs: docs/mathematics.md, statements 2.12 and 16.8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce

import numpy as np

from gpcert.arrays import Array, namespace
from gpcert.kernels.lines.affine_algebra import combined
from gpcert.kernels.lines.base import Enclosed
from gpcert.kernels.nodes.base import Jet, LocalNode, NodeBatch, Triple
from gpcert.kernels.nodes.beyond import Beyond
from gpcert.kernels.nodes.feature_sizes import FeatureSizes
from gpcert.kernels.sizes import frobenius, raised, total
from gpcert.regions.frame import Reach
from gpcert.rounding import gamma


@dataclass(frozen=True, eq=False)
class SumNode(LocalNode):
    """Sum of one or more nodes with the same points and frame."""

    parts: tuple[LocalNode, ...]

    @np.errstate(over="ignore")
    def feature_sizes(self, reach: Reach) -> FeatureSizes:
        """The feature space is the direct sum of the parts'."""
        sizes = [part.feature_sizes(reach) for part in self.parts]
        return reduce(lambda left, right: left.plus(right), sizes)

    def at(self, reach: Reach) -> NodeBatch:
        batches = tuple(part.at(reach) for part in self.parts)
        return batches[0] if len(batches) == 1 else SumBatch.of(batches, reach.half.shape[1])


@dataclass(frozen=True, eq=False)
class SumBatch(NodeBatch):
    """Sum of two or more batches."""

    value: Array
    sizes: Triple
    errors: Triple
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
        value = reduce(lambda a, b: a + b, [part.value for part in parts])
        return SumBatch(value, tuple(sizes), tuple(errors), parts)

    def contract(self, coefficients: Array) -> Jet:
        return reduce(Jet.plus, [part.contract(coefficients) for part in self.parts])

    def gradients(self) -> Array:
        return reduce(lambda a, b: a + b, [part.gradients() for part in self.parts])

    @np.errstate(over="ignore")
    def variations(self) -> tuple[Array, ...]:
        each = [part.variations() for part in self.parts]
        return tuple(total([v[n] for v in each]) for n in range(4))

    @np.errstate(over="ignore")
    def beyond_second(self, coefficients: Array, third: Array) -> Beyond:
        """Sum of the parts', each by its own third derivatives."""
        del third
        each = [part.beyond_second(coefficients, part.variations()[3]) for part in self.parts]
        return Beyond.of_sum(each)

    @np.errstate(over="ignore")
    def own_beyond_second(self) -> Array | None:
        """Sum of the parts', where all know it."""
        each = [part.own_beyond_second() for part in self.parts]
        known = [part for part in each if part is not None]
        return total(known) if len(known) == len(each) else None

    @np.errstate(over="ignore")
    def itself(self) -> tuple[Jet, Triple]:
        """Sum of the parts', the additions' rounding counted entry by entry."""
        each = [part.itself() for part in self.parts]
        jet = reduce(Jet.plus, [part for part, _ in each])
        sizes = [part.sizes for part, _ in each]
        return jet, tuple(
            _added([errors[n] for _, errors in each], [size[n] for size in sizes]) for n in range(3)
        )

    def mixed(self) -> tuple[Array, Array]:
        """Sum of the parts': derivatives in a direct sum of feature spaces."""
        each = [part.mixed() for part in self.parts]
        matrix = reduce(lambda a, b: a + b, [part for part, _ in each])
        return matrix, _added([error for _, error in each], [frobenius(part) for part, _ in each])

    def enclosed(self) -> Enclosed:
        """Intervals and lines add; each carrier keeps its own slopes."""
        each = [part.enclosed() for part in self.parts]
        xp = namespace(self.value)
        return combined([(xp.ones_like(self.value), part) for part in each])


@np.errstate(over="ignore")
def _added(errors: list[Array], sizes: list[Array]) -> Array:
    """Error of a sum: the parts' errors, and the additions' rounding."""
    return raised(total(errors) + gamma(len(sizes)) * total(sizes), 4)
