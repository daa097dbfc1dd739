"""k(x, y) = (sum_j w_j (x_j - o_j)(y_j - o_j) + offset)^degree.

Proofs: docs/mathematics.md, statement 2.13.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpcert.arrays import Inputs, PerFeature, Points
from gpcert.kernels.base import Kernel
from gpcert.kernels.composite import Product, Sum
from gpcert.kernels.constant import Constant
from gpcert.kernels.linear import CENTER, WEIGHTS, Linear
from gpcert.kernels.nodes.composite import ProductNode
from gpcert.kernels.parameters import NONNEGATIVE, Parameter, number
from gpcert.kernels.unit import even_exponent, exactly_scaled
from gpcert.regions.frame import Frame

HIGHEST_DEGREE = 6
"""Beyond, k varies over so many orders of magnitude that float64 leaves little of it."""


@dataclass(frozen=True, eq=False)
class Polynomial(Kernel):
    """Power of a linear kernel plus a constant: polynomials of this degree in the inputs.

    >>> k = Polynomial(2, weights=1.0, offset=1.0)
    >>> k.value(np.array([[1.0, 2.0]]), np.array([[3.0, 0.5]])).tolist()  # (3 + 1 + 1)^2
    [[25.0]]
    """

    degree: int
    weights: Any
    offset: float
    center: Any = 0.0

    name: ClassVar[str] = "polynomial"
    parameters: ClassVar[dict[str, Parameter]] = {
        "degree": number(
            f"an integer from 1 to {HIGHEST_DEGREE}",
            lambda degree: degree in range(1, HIGHEST_DEGREE + 1),
            kind=int,
        ),
        "weights": WEIGHTS,
        "offset": NONNEGATIVE,
        "center": CENTER,
    }

    @property
    def base(self) -> Kernel:
        """The kernel whose power this is."""
        linear = Linear(self.weights, self.center)
        return Sum((linear, Constant(self.offset))) if self.offset else linear

    def expression(self) -> Product:
        """The same kernel as a product of sums."""
        return Product((self.base,) * self.degree)

    def value(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        return self.base.value(X, Y) ** self.degree

    def diagonal(self, X: Inputs) -> np.ndarray:
        return self.base.diagonal(X) ** self.degree

    def gradient(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        """`degree base^(degree - 1) gradient of base`."""
        slope = self.degree * self.base.value(X, Y) ** (self.degree - 1)
        return slope[..., None] * self.base.gradient(X, Y)

    def gradient_product(self, X: Inputs, Y: np.ndarray, C: np.ndarray) -> np.ndarray:
        """The gradient of base does not depend on x: one matrix product."""
        slope = self.degree * self.base.value(X, Y) ** (self.degree - 1)
        return (C * slope) @ (self.weights * (Y - self.center))

    def typical_lengths(self, d: int) -> PerFeature:
        return self.base.typical_lengths(d)

    def node(self, points: Points, frame: Frame) -> ProductNode:
        """A product whose factors are one and the same node, which is then asked once."""
        return ProductNode((self.base.node(points, frame),) * self.degree)

    def in_units(self, points: Points) -> tuple[Kernel, int]:
        """The power of its base in the base's units."""
        _, linear = Linear(self.weights, self.center).in_units(points)
        exponent = max(linear, even_exponent(self.offset)) if self.offset else linear
        weights = exactly_scaled("kernel", self.weights, -exponent)
        offset = float(exactly_scaled("kernel", self.offset, -exponent))
        return Polynomial(self.degree, weights, offset, self.center), self.degree * exponent

    def rescaled(self, scale: PerFeature, shift: PerFeature) -> Polynomial:
        linear = Linear(self.weights, self.center).rescaled(scale, shift)
        return Polynomial(self.degree, linear.weights, self.offset, linear.center)
