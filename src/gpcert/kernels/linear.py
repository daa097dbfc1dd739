"""k(x, y) = sum_j w_j (x_j - o_j)(y_j - o_j): Bayesian linear regression."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpcert.kernels.base import Kernel
from gpcert.kernels.nodes.linear import LinearNode
from gpcert.kernels.parameters import Parameter, numbers
from gpcert.kernels.unit import exactly_scaled
from gpcert.regions.frame import Frame

WEIGHTS = numbers("a number or a vector of numbers >= 0", lambda x: x >= 0)
CENTER = numbers("a number or a vector of numbers")


@dataclass(frozen=True, eq=False)
class Linear(Kernel):
    """Linear (dot product) kernel with a weight w_j >= 0 and a centre o_j for each feature.

    Its feature map `phi(x) = sqrt(w) (x - o)` is affine: remainders of order 1 and more are zero.

    >>> Linear([1.0, 2.0], center=1.0).value(np.zeros((1, 2)), np.array([[3.0, 2.0]])).tolist()
    [[-4.0]]
    """

    weights: Any
    center: Any = 0.0

    name: ClassVar[str] = "linear"
    parameters: ClassVar[dict[str, Parameter]] = {"weights": WEIGHTS, "center": CENTER}

    def value(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """`sum_j w_j (x_j - o_j)(y_j - o_j)` in plain floating point."""
        return ((X - self.center) * self.weights) @ (Y - self.center).T

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        apart = X - self.center
        return (self.weights * apart * apart).sum(axis=1)

    def gradient(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """`w_j (y_j - o_j)`, whatever x is."""
        slopes = self.weights * (Y - self.center)
        return np.broadcast_to(slopes, (len(X), *slopes.shape)).copy()

    def typical_lengths(self, d: int) -> np.ndarray:
        """`1 / sqrt(w_j)`: the unit of the feature map."""
        with np.errstate(divide="ignore"):
            return np.broadcast_to(1.0 / np.sqrt(self.weights), (d,)).copy()

    def node(self, points: np.ndarray, frame: Frame) -> LinearNode:
        d = points.shape[1]
        weights, center = (np.broadcast_to(a, (d,)) for a in (self.weights, self.center))
        return LinearNode.build(points, weights, center, frame)

    def in_units(self, points: np.ndarray) -> tuple[Kernel, int]:
        """By the largest `w_j (z_j - o_j)^2`, in exponents: the square may not be a float."""
        weights = np.broadcast_to(self.weights, points.shape[1:])
        with np.errstate(over="ignore"):
            reach = np.abs(points - self.center).max(axis=0)
        pairs = [(w, r) for w, r in zip(weights.tolist(), reach.tolist(), strict=True) if w > 0]
        sizes = [math.frexp(w)[1] + 2 * math.frexp(r)[1] for w, r in pairs if 0 < r < math.inf]
        if not sizes:
            sizes = [math.frexp(w)[1] for w, _ in pairs] or [0]
        exponent = max(sizes) - max(sizes) % 2
        return self.with_factor(-exponent), exponent

    def with_factor(self, exponent: int) -> Linear:
        return Linear(exactly_scaled("kernel", self.weights, exponent), self.center)

    def rescaled(self, scale: np.ndarray, shift: np.ndarray) -> Linear:
        """Weights `w / scale^2`, centre `o scale + shift`."""
        factor = np.asarray(scale, dtype=np.float64)
        return Linear(self.weights / factor / factor, self.center * factor + np.asarray(shift))
