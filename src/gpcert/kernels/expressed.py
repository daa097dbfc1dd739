"""Kernels with parameters of their own that are an expression of other kernels."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property

import numpy as np

from gpcert.kernels.base import Kernel
from gpcert.kernels.nodes.base import LocalNode
from gpcert.regions.frame import Frame


class Expressed(Kernel):
    """Everything but its parameters is that of `expression`."""

    @abstractmethod
    def express(self) -> Kernel:
        """Build the expression that this kernel is."""

    @cached_property
    def expression(self) -> Kernel:
        """The expression, built once."""
        return self.express()

    def value(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Matrix `k(x_i, y_j)` in plain floating point."""
        return self.expression.value(X, Y)

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        """`k(x, x)`."""
        return self.expression.diagonal(X)

    def gradient(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """`d k / d x`, by the product rule."""
        return self.expression.gradient(X, Y)

    def typical_lengths(self, d: int) -> np.ndarray:
        """The shortest of the components' lengths."""
        return self.expression.typical_lengths(d)

    def in_units(self, points: np.ndarray) -> tuple[Kernel, int]:
        """That of the expression, which has the factors."""
        return self.expression.in_units(points)

    def node(self, points: np.ndarray, frame: Frame) -> LocalNode:
        """That of the expression."""
        return self.expression.node(points, frame)
