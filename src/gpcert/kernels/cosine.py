"""k(x, y) = v cos(w.(x - y)).

Proofs: docs/mathematics.md, statement 2.10.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpcert.kernels.base import Kernel
from gpcert.kernels.nodes.base import DerivativeBounds, Jet, Triple, spectral_gram
from gpcert.kernels.nodes.phases import (
    FramePhase,
    LocalWaves,
    WavesBatch,
    circle_remainders,
    known_phase,
    length_above,
    phase_reach,
)
from gpcert.kernels.parameters import FREQUENCIES, POSITIVE, Parameter
from gpcert.numerics.arrays import Inputs, Points, namespace
from gpcert.numerics.rounding import TINY, U, gamma, up
from gpcert.regions.cells import Frame
from gpcert.regions.scaled import ScaledCells


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

    def value(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        return self.variance * np.cos(self._phase(X, Y))

    def gradient(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        """`d k / d x = -v sin(w.(x - y)) w`."""
        return -self.variance * np.sin(self._phase(X, Y))[:, :, None] * self.frequency

    def node(self, points: Points, frame: Frame) -> LocalCosine:
        """Fold in the features that the region holds fixed, and count every rounding.

        Coordinates carry one rounding, products and the sum of d of them d + 1, the differences
        another two: all relative to `sum_j |w_j| (|z_j| + |c_j|)`.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            W = self.frequency[frame.free] * frame.unit
            w = self.frequency[frame.fixed]
            apart = points[:, frame.fixed] - frame.fixed_values
            phases = frame.points(points) @ W + apart @ w
            size = frame.extents(points) @ np.abs(W)
            size = size + (np.abs(points[:, frame.fixed]) + np.abs(frame.fixed_values)) @ np.abs(w)
            errors = up(gamma(points.shape[1] + 8) * size, points.shape[1] + 8)
            length = length_above(W)
        phases, errors = known_phase(phases, errors)
        array = frame.backend.asarray
        return LocalCosine(
            (FramePhase(array(W), length),),
            array(np.cos(phases)),
            array(np.sin(phases)),
            array(errors),
            self.variance,
        )


@dataclass(frozen=True, eq=False)
class LocalCosine(LocalWaves):
    """One wave: everything is v cos or v sin of a difference of phases."""

    def derivative_bounds(self, geometry: ScaledCells) -> DerivativeBounds:
        """phi(x) = sqrt(v) (cos w.x, sin w.x): `E u^(2n) = v u^(2n)`, remainders exact."""
        u = phase_reach(geometry, self.phases[0].frequency)
        xp = namespace(u)
        with np.errstate(over="ignore"):
            zero = xp.zeros_like(u)
            higher = [up(self.variance * u ** (2 * n), 8 * n + 1) for n in (1, 2, 3)]
            moments = [self.variance + zero, *(xp.where(u > 0, m, zero) for m in higher)]
            root = float(up(np.sqrt(self.variance), 1))
            direct = tuple(xp.where(u > 0, up(root * r, 1), zero) for r in circle_remainders(u))
        return DerivativeBounds(spectral_gram(moments), direct, True)

    def at(self, geometry: ScaledCells) -> CosineBatch:
        return CosineBatch(self, geometry)


class CosineBatch(WavesBatch):
    """See `NodeBatch`."""

    def diagonal_jet(self) -> tuple[Jet, Triple]:
        """v, 0 and -v W W^T: the value exact, the Hessian with two roundings an entry."""
        xp = namespace(self.value)
        zero = xp.zeros_like(xp.sum(self.geometry.half, axis=1))
        v = self.node.variance + zero
        jet = self._jet(v, [zero], [-v])
        size = self.node.variance * self.node.phases[0].length ** 2
        return jet, (zero, zero, zero + float(up(4.0 * U * size + TINY, 4)))
