"""k = k_1 * ... * k_n: one part modulates the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpcert.kernels.base import Kernel
from gpcert.kernels.composite import Composite
from gpcert.kernels.nodes.product import ProductNode
from gpcert.regions.frame import Frame


@dataclass(frozen=True, eq=False)
class Product(Composite):
    """Product of kernels.

    >>> from gpcert.kernels.constant import Constant
    >>> Product([Constant(3.0), Constant(2.0)]).value(np.zeros((1, 1)), np.zeros((1, 1))).tolist()
    [[6.0]]
    """

    name: ClassVar[str] = "product"

    def value(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Product of the values."""
        return np.prod([kernel.value(X, Y) for kernel in self.kernels], axis=0)

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        """Product of the diagonals."""
        return np.prod([kernel.diagonal(X) for kernel in self.kernels], axis=0)

    def gradient(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Leibniz' rule, one factor after the other (no division: factors may vanish)."""
        value, gradient = self.kernels[0].value(X, Y), self.kernels[0].gradient(X, Y)
        for kernel in self.kernels[1:]:
            other = kernel.value(X, Y)
            gradient = gradient * other[..., None] + value[..., None] * kernel.gradient(X, Y)
            value = value * other
        return gradient

    def training_covariance(self, X: np.ndarray) -> np.ndarray:
        """Product of the parts' entries: white noise times k is noise of variance `s^2 k(x, x)`."""
        return np.prod([kernel.training_covariance(X) for kernel in self.kernels], axis=0)

    def in_units(self, points: np.ndarray) -> tuple[Kernel, int]:
        """Every factor in units of its own."""
        units = [part.in_units(points) for part in self.kernels]
        return Product(tuple(part for part, _ in units)), sum(e for _, e in units)

    def with_factor(self, exponent: int) -> Kernel:
        """The first factor has it."""
        first, *others = self.kernels
        return Product((first.with_factor(exponent), *others))

    def node(self, points: np.ndarray, frame: Frame) -> ProductNode:
        """See `gpcert.kernels.nodes.product`."""
        return ProductNode(tuple(kernel.node(points, frame) for kernel in self.kernels))
