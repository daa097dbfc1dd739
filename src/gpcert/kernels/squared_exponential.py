"""k(x, y) = s^2 exp(-|x - y|^2_L / 2),  |d|^2_L = sum_j d_j^2 / l_j^2.

Proofs: docs/mathematics.md, statement 2.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist

from gpcert.arrays import Backend
from gpcert.kernels.expansions.squared_exponential import LocalSquaredExponential
from gpcert.kernels.expansions.squared_exponential_sections import Sections
from gpcert.kernels.nodes.radial_profiles import GaussianProfile
from gpcert.kernels.radial import RadialKernel
from gpcert.regions import Region

__all__ = ["SquaredExponential"]

PROFILE = GaussianProfile()


@dataclass(frozen=True, eq=False)
class SquaredExponential(RadialKernel):
    """Squared exponential (RBF) kernel with a length-scale a feature (ARD) and a variance s^2.

    With rho = |d|_L and e = exp(-rho^2/2):

        R0^2 = 2 s^2 (1 - e),   R1^2 = s^2 (2 - 2e - 2 rho^2 e + rho^2),
        b2 = s sqrt(3) rho^2,   b3 = s sqrt(15) rho^3.

    Reason: by Bochner, phi(x) = s exp(i w.x) with w Gaussian, so u = w.d ~ N(0, rho^2) and
    R1^2 = s^2 E|e^{iu} - 1 - iu|^2, b_n^2 = s^2 E u^{2n} (Statement 2.6).

    >>> k = SquaredExponential([1.0, 2.0], variance=4.0)
    >>> float(k.value(np.zeros((1, 2)), np.array([[1.0, 2.0]]))[0, 0])  # 4 exp(-1)
    1.4715177646857693
    """

    length_scale: Any
    variance: float = 1.0

    name: ClassVar[str] = "squared_exponential"
    has_sections: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._validate_radial()

    @property
    def profile(self) -> GaussianProfile:
        """`exp(-r^2 / 2)`."""
        return PROFILE

    def value(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Matrix `k(x_i, y_j)` in plain floating point; no root is needed here."""
        r2 = cdist(X / self.length_scale, Y / self.length_scale, "sqeuclidean")
        return self.variance * np.exp(-0.5 * r2)

    def localize(
        self, points: np.ndarray, region: Region, backend: Backend
    ) -> LocalSquaredExponential:
        """A weighted, orthogonal expansion of its own."""
        lengths = self.typical_lengths(points.shape[1])
        return LocalSquaredExponential.build(points, lengths, self.variance, region, backend)

    def sections(
        self,
        points: np.ndarray,
        X: np.ndarray,
        sections: tuple[np.ndarray, np.ndarray],
        extent: np.ndarray,
    ) -> Sections:
        """See `gpcert.kernels.expansions.squared_exponential_sections`."""
        seen = (self.typical_lengths(points.shape[1]), self.variance)
        return Sections.build(seen, points, X, sections, extent)

    def config(self) -> dict[str, Any]:
        """`{"length_scale": ..., "variance": ...}`."""
        return {"length_scale": self.length_scale.tolist(), "variance": self.variance}
