"""k(x, y) = s^2 exp(-|x - y|^2_L / 2),  |d|^2_L = sum_j d_j^2 / l_j^2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist

from gpcert.arrays import Backend, finite_array
from gpcert.errors import InputError
from gpcert.kernels.base import Kernel
from gpcert.kernels.local_squared_exponential import LocalSquaredExponential
from gpcert.regions import Region
from gpcert.rounding import EXP_ULPS, U, gamma, up

__all__ = ["SquaredExponential"]

UNDERFLOW_RANGE = 1600.0
"""exp(-r2/2) is below 2^-1074 from r2 = 1490 on: beyond this, value and error are both < TINY."""


@dataclass(frozen=True, eq=False)
class SquaredExponential(Kernel):
    """Squared exponential (RBF) kernel with a length-scale a feature (ARD) and a variance s^2.

    With rho = |d|_L and e = exp(-rho^2/2):

        R0^2 = 2 s^2 (1 - e),   R1^2 = s^2 (2 - 2e - 2 rho^2 e + rho^2),
        b2 = s sqrt(3) rho^2,   b3 = s sqrt(15) rho^3.

    Reason: by Bochner, phi(x) = s exp(i w.x) with w Gaussian, so u = w.d ~ N(0, rho^2) and
    R1^2 = s^2 E|e^{iu} - 1 - iu|^2, b_n^2 = s^2 E u^{2n}. Reference: MATH.md part 2.

    >>> k = SquaredExponential([1.0, 2.0], variance=4.0)
    >>> float(k.value(np.zeros((1, 2)), np.array([[1.0, 2.0]]))[0, 0])  # 4 exp(-1)
    1.4715177646857693
    """

    length_scale: Any
    variance: float = 1.0

    name: ClassVar[str] = "squared_exponential"

    def __post_init__(self) -> None:
        lengths = finite_array("length_scale", self.length_scale)
        if lengths.ndim > 1 or np.any(lengths <= 0):
            raise InputError(
                "length_scale: expected a positive number or a vector of positive numbers, "
                f"got {self.length_scale!r}"
            )
        variance = float(finite_array("variance", self.variance, ndim=0))
        if variance <= 0:
            raise InputError(f"variance: expected a positive number, got {self.variance!r}")
        object.__setattr__(self, "length_scale", lengths)
        object.__setattr__(self, "variance", variance)

    def _scaled(self, delta: np.ndarray) -> np.ndarray:
        return np.asarray(delta, dtype=np.float64) / self.length_scale

    def _squared_distance(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        # Subtract first: the relative error of r^2 stays below gamma(d + 4).
        total = np.zeros((len(X), len(Y)))
        lengths = np.broadcast_to(self.length_scale, (X.shape[1],))
        for j in range(X.shape[1]):
            total += np.square((X[:, j, None] - Y[None, :, j]) / lengths[j])
        return total

    def value(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Matrix `k(x_i, y_j)` in plain floating point."""
        r2 = cdist(X / self.length_scale, Y / self.length_scale, "sqeuclidean")
        return self.variance * np.exp(-0.5 * r2)

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        """`k(x, x) = s^2`."""
        return np.full(len(X), self.variance)

    def gradient(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """`d k / d x = -k(x, y) (x - y) / l^2`."""
        difference = X[:, None, :] - Y[None, :, :]
        return -self.value(X, Y)[:, :, None] * difference / self.length_scale**2

    def gradient_product(self, X: np.ndarray, Y: np.ndarray, C: np.ndarray) -> np.ndarray:
        """`sum_j C_ij k_ij (y_j - x_i) / l^2` by one matrix product."""
        W = C * self.value(X, Y)
        return (W @ Y - W.sum(1)[:, None] * X) / self.length_scale**2

    def R0(self, delta: np.ndarray) -> np.ndarray:
        """`s sqrt(2 (1 - e))`, by expm1 so that nothing cancels; rounded up."""
        rho2 = np.square(self._scaled(delta)).sum(-1)
        n = np.shape(delta)[-1] + EXP_ULPS + 8
        return np.asarray(up(np.sqrt(-2.0 * self.variance * np.expm1(-0.5 * up(rho2, n))), n))

    def R1(self, delta: np.ndarray) -> np.ndarray:
        """`min(exact R1, b2/2)`, rounded up: the exact form cancels for small rho, b2/2 not."""
        rho2 = up(np.square(self._scaled(delta)).sum(-1), np.shape(delta)[-1] + 4)
        e = np.exp(-0.5 * rho2)
        # sizes of the cancelling terms are at most 2 + rho2: their rounding is added in full
        exact2 = (2.0 + rho2) - 2.0 * e * (1.0 + rho2) + (2.0 + rho2) * ((EXP_ULPS + 16) * U)
        return np.minimum(np.asarray(up(np.sqrt(self.variance * exact2), 8)), 0.5 * self.b2(delta))

    def b2(self, delta: np.ndarray) -> np.ndarray:
        """`s sqrt(3) rho^2`, rounded up."""
        rho2 = np.square(self._scaled(delta)).sum(-1)
        return np.asarray(up(np.sqrt(3.0 * self.variance) * rho2, np.shape(delta)[-1] + 8))

    def b3(self, delta: np.ndarray) -> np.ndarray:
        """`s sqrt(15) rho^3`, rounded up."""
        rho2 = np.square(self._scaled(delta)).sum(-1)
        size = np.sqrt(15.0 * self.variance) * rho2 * np.sqrt(rho2)
        return np.asarray(up(size, 2 * np.shape(delta)[-1] + 12))

    def rescaled(self, input_scale: np.ndarray) -> SquaredExponential:
        """Length-scales in the units of the unscaled inputs: `l * input_scale`."""
        return SquaredExponential(self.length_scale * np.asarray(input_scale), self.variance)

    def check_dimension(self, d: int) -> None:
        """A vector of length-scales must have d entries; a scalar fits every d."""
        if self.length_scale.ndim == 1 and len(self.length_scale) != d:
            raise InputError(
                f"kernel: expected {d} length-scales (one a feature of the points), "
                f"got {len(self.length_scale)}"
            )

    def gram_with_error(self, points: np.ndarray) -> tuple[np.ndarray, float]:
        """Gram matrix; relative error of r^2 is gamma(d+4), so of k at most r2/2 times that.

        For r2 > UNDERFLOW_RANGE both k and fl(k) are below TINY.
        """
        r2 = self._squared_distance(points, points)
        largest = min(float(r2.max(initial=0.0)), UNDERFLOW_RANGE)
        d = points.shape[1]
        relative = 0.6 * largest * gamma(d + 4) + gamma(EXP_ULPS + 3)
        return self.variance * np.exp(-0.5 * r2), relative

    def localize(
        self, points: np.ndarray, region: Region, backend: Backend
    ) -> LocalSquaredExponential:
        """Bind to points and to the free coordinates of a region."""
        lengths = np.broadcast_to(self.length_scale, (points.shape[1],))
        return LocalSquaredExponential.build(points, lengths, self.variance, region, backend)

    def config(self) -> dict[str, Any]:
        """`{"length_scale": ..., "variance": ...}`."""
        return {"length_scale": self.length_scale.tolist(), "variance": self.variance}
