"""k(x, y) = e^{theta.(x + y) + log_factor}."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpcert.kernels.base import Kernel
from gpcert.kernels.nodes.exponential_tilt import LocalExponentialTilt
from gpcert.kernels.parameters import FREQUENCIES, Parameter, number
from gpcert.regions.frame import Frame


@dataclass(frozen=True, eq=False)
class ExponentialTilt(Kernel):
    """The rank-one kernel of the feature `phi(x) = e^{theta.x + log_factor / 2}`.

    A factor of the generalised spectral kernel. With s = theta.d everything is exact:

        R_n = phi(c) |e^s - sum_{k <= n} s^k / k!|,   ||D_d^n phi(x)|| = phi(x) |s|^n.

    >>> k = ExponentialTilt([1.0])
    >>> float(k.value(np.zeros((1, 1)), np.ones((1, 1)))[0, 0])
    2.718281828459045
    """

    theta: Any
    log_factor: float = 0.0

    name: ClassVar[str] = "exponential_tilt"
    parameters: ClassVar[dict[str, Parameter]] = {
        "theta": FREQUENCIES,
        "log_factor": number("a number", math.isfinite),
    }

    def value(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.exp((X @ self.theta)[:, None] + (Y @ self.theta)[None, :] + self.log_factor)

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.exp(2.0 * (X @ self.theta) + self.log_factor)

    def gradient(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        return self.value(X, Y)[:, :, None] * self.theta

    def node(self, points: np.ndarray, frame: Frame) -> LocalExponentialTilt:
        return LocalExponentialTilt.build(points, self.theta, self.log_factor, frame)

    def in_units(self, points: np.ndarray) -> tuple[Kernel, int]:
        """By the largest exponent of e at the points: no factor inside changes exactly."""
        with np.errstate(over="ignore", invalid="ignore"):
            logs = 2.0 * (points @ self.theta) + self.log_factor
        known = logs[np.isfinite(logs)]
        exponent = 2 * round(float(known.max()) / math.log(4.0)) if known.size else 0
        return self._unless_ordinary(min(max(exponent, -1000), 1000))

    def rescaled(self, scale: np.ndarray, shift: np.ndarray) -> ExponentialTilt:
        """theta / scale; the shift is a constant factor `e^{-2 theta.shift / scale}`."""
        theta = self.theta / np.asarray(scale)
        return ExponentialTilt(theta, self.log_factor - 2.0 * float(theta @ np.asarray(shift)))
