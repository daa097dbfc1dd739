"""k = k_1 + ... + k_n: independent parts of one function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpcert.kernels.base import Kernel
from gpcert.kernels.composite import Composite
from gpcert.kernels.nodes.sum import SumNode
from gpcert.kernels.white import White
from gpcert.regions.frame import Frame


@dataclass(frozen=True, eq=False)
class Sum(Composite):
    """Sum of kernels.

    >>> from gpcert.kernels.constant import Constant
    >>> Sum([Constant(1.0), Constant(2.0)]).value(np.zeros((1, 1)), np.zeros((1, 1))).tolist()
    [[3.0]]
    """

    name: ClassVar[str] = "sum"

    def value(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Sum of the values."""
        return np.sum([kernel.value(X, Y) for kernel in self.kernels], axis=0)

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        """Sum of the diagonals."""
        return np.sum([kernel.diagonal(X) for kernel in self.kernels], axis=0)

    def gradient(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Sum of the gradients."""
        return np.sum([kernel.gradient(X, Y) for kernel in self.kernels], axis=0)

    def gradient_product(self, X: np.ndarray, Y: np.ndarray, C: np.ndarray) -> np.ndarray:
        """Sum of the parts' own products."""
        return np.sum([kernel.gradient_product(X, Y, C) for kernel in self.kernels], axis=0)

    def training_covariance(self, X: np.ndarray) -> np.ndarray:
        """Sum of the parts', white noise included."""
        return np.sum([kernel.training_covariance(X) for kernel in self.kernels], axis=0)

    def in_units(self, points: np.ndarray) -> tuple[Kernel, int]:
        """Every part in the units of the largest; white noise vanishes and has no size."""
        units = [part.in_units(points) for part in self.kernels]
        each = zip(self.kernels, units, strict=True)
        largest = max((e for part, (_, e) in each if not isinstance(part, White)), default=0)
        return Sum(tuple(part.with_factor(e - largest) for part, e in units)), largest

    def with_factor(self, exponent: int) -> Kernel:
        """Every part has it."""
        return Sum(tuple(part.with_factor(exponent) for part in self.kernels))

    def node(self, points: np.ndarray, frame: Frame) -> SumNode:
        """See `gpcert.kernels.nodes.sum`."""
        return SumNode(tuple(kernel.node(points, frame) for kernel in self.kernels))
