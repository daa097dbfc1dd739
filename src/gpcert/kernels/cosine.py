"""k(x, y) = v cos(w.(x - y))."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpcert.kernels.base import Kernel
from gpcert.kernels.nodes.cosine import LocalCosine
from gpcert.kernels.parameters import FREQUENCIES, POSITIVE, Parameter
from gpcert.regions.frame import Frame


@dataclass(frozen=True, eq=False)
class Cosine(Kernel):
    """Cosine kernel with an angular frequency w (d,) and a variance v.

    Two features, `phi(x) = sqrt(v) (cos w.x, sin w.x)`, so with u = w.d everything is exact:

        R_n^2 = v |e^{iu} - sum_{k <= n} (iu)^k / k!|^2,   b_n^2 = v u^{2n}.

    >>> k = Cosine([np.pi], variance=2.0)
    >>> float(k.value(np.zeros((1, 1)), np.ones((1, 1)))[0, 0])
    -2.0
    """

    frequency: Any
    variance: float = 1.0

    name: ClassVar[str] = "cosine"
    has_variance: ClassVar[bool] = True
    stationary: ClassVar[bool] = True
    parameters: ClassVar[dict[str, Parameter]] = {"frequency": FREQUENCIES, "variance": POSITIVE}

    def _phase(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        # Subtract first: the phase of two near points keeps its digits.
        phase = np.zeros((len(X), len(Y)))
        for j, w in enumerate(self.frequency):
            phase += w * (X[:, j, None] - Y[None, :, j])
        return phase

    def value(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        return self.variance * np.cos(self._phase(X, Y))

    def gradient(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """`d k / d x = -v sin(w.(x - y)) w`."""
        return -self.variance * np.sin(self._phase(X, Y))[:, :, None] * self.frequency

    def node(self, points: np.ndarray, frame: Frame) -> LocalCosine:
        return LocalCosine.build(points, self.frequency, self.variance, frame)
