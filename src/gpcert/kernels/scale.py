"""factor * k: a kernel with another variance.

Proofs: docs/mathematics.md, statement 2.11.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from gpcert.arrays import Array, Inputs, PerCell, PerCellAndPoint, PerCellMatrix, Points, namespace
from gpcert.kernels.base import Kernel
from gpcert.kernels.composite import checked_kernel
from gpcert.kernels.lines.affine_algebra import combined
from gpcert.kernels.lines.base import Enclosed
from gpcert.kernels.nodes.base import Beyond, FeatureSizes, Jet, LocalNode, NodeBatch, Triple
from gpcert.kernels.parameters import POSITIVE, Parameter, even_exponent, exactly_scaled
from gpcert.kernels.sizes import frobenius, raised, times
from gpcert.regions.frame import Frame, Reach
from gpcert.rounding import gamma


@dataclass(frozen=True, eq=False)
class Scale(Kernel):
    """A kernel times a positive number.

    >>> from gpcert.kernels.constant import Constant
    >>> Scale(Constant(3.0), 2.0).diagonal(np.zeros((1, 1))).tolist()
    [6.0]
    """

    kernel: Kernel
    factor: float

    name: ClassVar[str] = "scale"
    parameters: ClassVar[dict[str, Parameter]] = {"factor": POSITIVE}

    def __post_init__(self) -> None:
        checked_kernel("kernel", self.kernel)
        super().__post_init__()

    @property
    def parts(self) -> tuple[Kernel, ...]:
        return (self.kernel,)

    def value(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        return self.factor * self.kernel.value(X, Y)

    def diagonal(self, X: Inputs) -> np.ndarray:
        return self.factor * self.kernel.diagonal(X)

    def gradient(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        return self.factor * self.kernel.gradient(X, Y)

    def gradient_product(self, X: Inputs, Y: np.ndarray, C: np.ndarray) -> np.ndarray:
        return self.factor * self.kernel.gradient_product(X, Y, C)

    def training_covariance(self, X: Inputs) -> np.ndarray:
        return self.factor * self.kernel.training_covariance(X)

    def node(self, points: Points, frame: Frame) -> ScaleNode:
        return ScaleNode(self.kernel.node(points, frame), self.factor)

    def in_units(self, points: Points) -> tuple[Kernel, int]:
        """The factor's power of two goes, its mantissa stays."""
        part, e = self.kernel.in_units(points)
        own = even_exponent(self.factor)
        factor = float(exactly_scaled("factor", self.factor, -own))
        return (part if factor == 1.0 else Scale(part, factor)), e + own

    def parted(self) -> tuple[float, Kernel]:
        factor, inside = self.kernel.parted()
        return factor * self.factor, inside


@dataclass(frozen=True, eq=False)
class ScaleNode(LocalNode):
    """A node times a positive number."""

    part: LocalNode
    factor: float

    @np.errstate(over="ignore")
    def feature_sizes(self, reach: Reach) -> FeatureSizes:
        """The feature map grows by the factor's root."""
        return self.part.feature_sizes(reach).scaled(self.factor)

    def at(self, reach: Reach) -> ScaleBatch:
        part = self.part.at(reach)
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
    return tuple(times(s, namespace(s).full_like(s, factor)) for s in sizes)


@dataclass(frozen=True, eq=False)
class ScaleBatch(NodeBatch):
    """A batch times a positive number."""

    value: Array
    sizes: Triple
    errors: Triple
    part: NodeBatch
    factor: float

    def contract(self, coefficients: PerCellAndPoint) -> Jet:
        """The coefficients are scaled."""
        return self.part.contract(self.factor * coefficients)

    def gradients(self) -> Annotated[Array, "B f N"]:
        return self.factor * self.part.gradients()

    def variations(self) -> tuple[PerCellAndPoint, ...]:
        return _scaled(self.part.variations(), self.factor)

    def beyond_second(self, coefficients: PerCellAndPoint, third: PerCellAndPoint) -> Beyond:
        """Scaled; the part's own third derivatives."""
        del third
        found = self.part.beyond_second(coefficients, self.part.variations()[3])
        return found.scaled(self.factor)

    @np.errstate(over="ignore")
    def own_beyond_second(self) -> PerCell | None:
        found = self.part.own_beyond_second()
        return None if found is None else _scaled((found,), self.factor)[0]

    def itself(self) -> tuple[Jet, Triple]:
        """Scaled, one rounding of each entry."""
        jet, errors = self.part.itself()
        scaled = Jet(self.factor * jet.value, self.factor * jet.gradient, self.factor * jet.hessian)
        return scaled, _scaled(_with_rounding(jet.sizes, errors), self.factor)

    def mixed(self) -> tuple[PerCellMatrix, PerCell]:
        """Scaled, one rounding of each entry."""
        matrix, error = self.part.mixed()
        (error,) = _scaled(_with_rounding((frobenius(matrix),), (error,)), self.factor)
        return self.factor * matrix, error

    def enclosed(self) -> Enclosed:
        return combined(
            [(namespace(self.value).full_like(self.value, self.factor), self.part.enclosed())]
        )
