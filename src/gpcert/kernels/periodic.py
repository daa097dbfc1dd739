"""k(x, y) = v exp(-2 sum_j sin^2(pi (x_j - y_j) / p_j) / l_j^2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from gpcert.kernels.base import Kernel
from gpcert.kernels.nodes.periodic import LocalPeriodic
from gpcert.kernels.parameters import POSITIVE, Parameter, numbers
from gpcert.regions.frame import Frame

SMALLEST, LARGEST = 1e-100, 1e100
"""Periods and length-scales outside this range would overflow when squared."""

_ORDINARY = numbers(
    f"a positive number or a vector of positive numbers, between {SMALLEST} and {LARGEST}",
    lambda x: (x >= SMALLEST) & (x <= LARGEST),
)


@dataclass(frozen=True, eq=False)
class Periodic(Kernel):
    """Periodic kernel with a period and a length-scale a feature, and a variance v.

    The product of one periodic kernel a feature. For one feature this is scikit-learn's
    `ExpSineSquared`. For several that one is periodic in the Euclidean distance,
    `exp(-2 sin^2(pi |x - y| / p) / l^2)`, which is not positive definite: with p = 2 and l = 1 the
    6 x 6 grid of points with spacing 0.4 has a Gram matrix with a negative eigenvalue (proved in
    the tests), so no Gaussian process has it as covariance, and it is refused.

    >>> k = Periodic(period=2.0, length_scale=1.0)
    >>> float(k.value(np.zeros((1, 1)), np.full((1, 1), 4.0))[0, 0])
    1.0
    """

    period: Any
    length_scale: Any
    variance: float = 1.0

    name: ClassVar[str] = "periodic"
    has_variance: ClassVar[bool] = True
    stationary: ClassVar[bool] = True
    parameters: ClassVar[dict[str, Parameter]] = {
        "period": replace(_ORDINARY, unit=1),
        "length_scale": _ORDINARY,
        "variance": POSITIVE,
    }

    def _parameters(self, d: int) -> tuple[np.ndarray, np.ndarray]:
        """Periods and length-scales, one a feature."""
        return np.broadcast_to(self.period, (d,)), np.broadcast_to(self.length_scale, (d,))

    def value(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        exponent = np.zeros((len(X), len(Y)))
        for j, (p, length) in enumerate(zip(*self._parameters(X.shape[1]), strict=True)):
            sine = np.sin(np.pi * (X[:, j, None] - Y[None, :, j]) / p)
            exponent += 2.0 * np.square(sine / length)
        return self.variance * np.exp(-exponent)

    def gradient(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """`d k / d x_j = -k (2 pi / p_j) sin(2 pi (x_j - y_j) / p_j) / l_j^2`."""
        p, length = self._parameters(X.shape[1])
        angle = 2.0 * np.pi * (X[:, None, :] - Y[None, :, :]) / p
        slope = -(2.0 * np.pi / p) * np.sin(angle) / np.square(length)
        return self.value(X, Y)[:, :, None] * slope

    def typical_lengths(self, d: int) -> np.ndarray:
        """Where the factor of a feature has its steepest slope, roughly: `p min(l, 1) / (2 pi)`."""
        p, length = self._parameters(d)
        return p * np.minimum(length, 1.0) / (2.0 * np.pi)

    def node(self, points: np.ndarray, frame: Frame) -> LocalPeriodic:
        p, length = self._parameters(points.shape[1])
        return LocalPeriodic.build(points, p, length, self.variance, frame)
