"""k(x, y) = v cos(w.(x - y)).

Proofs: docs/mathematics.md, statement 2.10.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpcert.kernels.base import Kernel
from gpcert.kernels.nodes.base import DerivativeBounds, Jet, LocalNode, Triple, spectral_gram
from gpcert.kernels.nodes.phases import (
    PhaseBatch,
    circle_remainders,
    length_above,
    phase_reach,
    swing,
)
from gpcert.kernels.parameters import FREQUENCIES, POSITIVE, Parameter
from gpcert.numerics.arrays import Array, Inputs, PerCellAndPoint, Points, namespace
from gpcert.numerics.rounding import POW_ULPS, SIN_COS_ULPS, TINY, U, gamma, up
from gpcert.regions.frame import Frame
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
        known = np.isfinite(phases) & (errors < LARGEST_PHASE_ERROR)
        return LocalCosine(
            frame.backend.asarray(W),
            length,
            frame.backend.asarray(np.where(known, phases, 0.0)),
            frame.backend.asarray(np.where(known, errors, np.inf)),
            self.variance,
        )


LARGEST_PHASE_ERROR = 1.0
"""A phase known less well than this is not known at all: bounds fall back to |cos| <= 1."""


@dataclass(frozen=True, eq=False)
class LocalCosine(LocalNode):
    """The kernel bound to points; the phase of (c, z_i) is `W.c - point_phases_i`."""

    frequency: Array
    """(f,): W = w unit, exact."""
    length: float
    """Upper bound of |W|."""
    point_phases: Array
    phase_errors: Array
    """(N,): bounds of the error of `W.c - point_phases_i` for every centre of the region."""
    variance: float

    def derivative_bounds(self, geometry: ScaledCells) -> DerivativeBounds:
        """phi(x) = sqrt(v) (cos w.x, sin w.x): `E u^(2n) = v u^(2n)`, remainders exact."""
        u = phase_reach(geometry, self.frequency)
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


class CosineBatch(PhaseBatch):
    """See `NodeBatch`; everything is v cos or v sin of one phase times powers of W."""

    def __init__(self, node: LocalCosine, geometry: ScaledCells) -> None:
        xp = namespace(geometry.center)
        self.node, self.geometry, self.frequencies = node, geometry, (node.frequency,)
        with np.errstate(over="ignore", invalid="ignore"):
            phase = (geometry.center @ node.frequency)[:, None] - node.point_phases[None, :]
            known = xp.isfinite(node.phase_errors)[None, :]
            self.phase = xp.where(known, phase, xp.zeros_like(phase))
            self.cosine, self.sine = xp.cos(self.phase), xp.sin(self.phase)
            v = node.variance
            self.value, self.first = v * self.cosine, [-v * self.sine]
            # of cos and of the two products with v and W; a phase error moves cos by at most itself
            zeros = xp.zeros_like(node.phase_errors)
            error = node.phase_errors + gamma(SIN_COS_ULPS + 4)
            L = node.length
            self.errors: Triple = (
                up(v * error, 2),
                up(v * L * error, 4) if L > 0 else zeros,
                up(v * L * L * error, 6) if L > 0 else zeros,
            )
            ones = xp.ones_like(node.phase_errors)
            self.sizes: Triple = (up(v * ones), up(v * L * ones, 3), up(v * L * L * ones, 5))

    def contract(self, coefficients: PerCellAndPoint) -> Jet:
        """`sum a cos`, `-W sum a sin`, `-W W^T sum a cos`, times v."""
        xp = namespace(coefficients)
        value = xp.sum(coefficients * self.value, axis=1)
        slope = -self.node.variance * xp.sum(coefficients * self.sine, axis=1)
        return self._jet(value, [slope], [-value])

    def variations(self) -> tuple[PerCellAndPoint, ...]:
        """`v u^n sup |cos|` (n even) or `sup |sin|` (n odd), u the phase's reach over the cell."""
        xp = namespace(self.value)
        u = phase_reach(self.geometry, self.node.frequency)[:, None]
        with np.errstate(over="ignore"):
            spread = up(u + self.node.phase_errors[None, :], 2)
            even = swing(self.cosine, self.sine, spread)[1]
            odd = swing(self.sine, self.cosine, spread)[1]
            suprema = [up(self.node.variance * even, 2)]
            for n, most in ((1, odd), (2, even), (3, odd)):
                size = up(self.node.variance * u**n * most, POW_ULPS + 4)
                suprema.append(xp.where(u > 0, size, xp.zeros_like(size)))
        return tuple(suprema)

    def diagonal_jet(self) -> tuple[Jet, Triple]:
        """v, 0 and -v W W^T: the value exact, the Hessian with two roundings an entry."""
        xp = namespace(self.value)
        zero = xp.zeros_like(xp.sum(self.geometry.half, axis=1))
        v = self.node.variance + zero
        jet = self._jet(v, [zero], [-v])
        size = self.node.variance * self.node.length**2
        return jet, (zero, zero, zero + float(up(4.0 * U * size + TINY, 4)))
