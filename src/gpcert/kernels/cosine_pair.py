"""k(x, y) = sum_{a, b = 1, 2} cos(w_a.x + p_a - w_b.y - p_b).

The feature is the complex number `Psi(x) = sum_a e^{i alpha_a(x)}`, `alpha_a = w_a.x + p_a`, and
`k(x, z) = Re(Psi(x) conj Psi(z))`: see `nodes.phases.LocalWaves`.

Proofs: docs/mathematics.md, statement 2.10.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np

from gpcert.errors import InputError
from gpcert.kernels.base import Kernel
from gpcert.kernels.nodes.base import DerivativeBounds, Jet, Triple
from gpcert.kernels.nodes.phases import (
    AffinePhase,
    LocalWaves,
    WavesBatch,
    circle_remainders,
    known_phase,
    phase_reach,
    swing,
)
from gpcert.kernels.parameters import FREQUENCIES, Parameter, numbers
from gpcert.kernels.sizes import times
from gpcert.numerics.arrays import Array, Inputs, PerFeature, Points, namespace
from gpcert.numerics.rounding import POW_ULPS, gamma, up
from gpcert.regions.cells import Frame
from gpcert.regions.scaled import ScaledCells


@dataclass(frozen=True, eq=False)
class CosinePair(Kernel):
    """The kernel of two features, the sums of two cosines and of two sines; not stationary.

    `Psi(x) = (sum_a cos(w_a.x + p_a), sum_a sin(w_a.x + p_a))` and `k(x, y) = Psi(x).Psi(y)`: a
    factor of the generalised spectral kernel, where the paper writes eight products of sines and
    cosines (Statement 2.10 has the four cosines). `first` and `second` are w_1 and w_2 (d,).

    >>> k = CosinePair([1.0], [2.0])
    >>> float(k.value(np.zeros((1, 1)), np.zeros((1, 1)))[0, 0])
    4.0
    """

    first: Any
    second: Any
    phases: Any = None

    name: ClassVar[str] = "cosine_pair"
    parameters: ClassVar[dict[str, Parameter]] = {
        "first": FREQUENCIES,
        "second": FREQUENCIES,
        "phases": numbers("two numbers", lambda p: p.shape == (2,), ndim=1, features=False),
    }

    def __post_init__(self) -> None:
        if self.phases is None:
            object.__setattr__(self, "phases", (0.0, 0.0))
        super().__post_init__()
        if len(self.first) != len(self.second):
            raise InputError(
                f"second: expected {len(self.first)} frequencies as in first, "
                f"got {len(self.second)}"
            )

    def _angles(self, X: np.ndarray) -> np.ndarray:
        """(2, n): `w_a.x + p_a`."""
        return np.stack([X @ self.first, X @ self.second]) + self.phases[:, None]

    def value(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        left, right = (np.exp(1j * self._angles(Z)).sum(axis=0) for Z in (X, Y))
        return np.real(left[:, None] * np.conj(right)[None, :])

    def diagonal(self, X: Inputs) -> np.ndarray:
        """`|Psi(x)|^2`."""
        return np.square(np.abs(np.exp(1j * self._angles(X)).sum(axis=0)))

    def gradient(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        """`d k / d x = Re(sum_a i w_a e^{i alpha_a(x)} conj Psi(y))`."""
        right = np.conj(np.exp(1j * self._angles(Y)).sum(axis=0))
        total = np.zeros((len(X), len(Y), X.shape[1]))
        for w, circle in zip((self.first, self.second), np.exp(1j * self._angles(X)), strict=True):
            total += np.real(1j * circle[:, None] * right[None, :])[:, :, None] * w
        return total

    def node(self, points: Points, frame: Frame) -> LocalCosinePair:
        """Psi of the points."""
        waves = [(self.first, float(self.phases[0])), (self.second, float(self.phases[1]))]
        both = [AffinePhase.of_points(points, w, p) for w, p in waves]
        (b1, e1), (b2, e2) = (known_phase(*phase) for phase in both)
        array = frame.backend.asarray
        first, second = (AffinePhase.of(w, p, frame) for w, p in waves)
        return LocalCosinePair(
            (first, second),
            array(np.cos(b1) + np.cos(b2)),
            array(np.sin(b1) + np.sin(b2)),
            array(up(e1 + e2, 2)),
            1.0,
            first.frequency - second.frequency,
        )

    def in_units(self, points: Points) -> tuple[Kernel, int]:
        """As it is: k(x, x) is at most 4, and may vanish at the points."""
        return self, 0

    def rescaled(self, scale: PerFeature, shift: PerFeature) -> CosinePair:
        """`w / scale`; the shift moves the phases by `-w.shift / scale`."""
        pair = [w / np.asarray(scale) for w in (self.first, self.second)]
        moved = [p - float(w @ np.asarray(shift)) for w, p in zip(pair, self.phases, strict=True)]
        return CosinePair(pair[0], pair[1], moved)


@dataclass(frozen=True, eq=False)
class LocalCosinePair(LocalWaves):
    """The kernel bound to points."""

    difference: Array
    """(f,): W_1 - W_2."""

    def derivative_bounds(self, geometry: ScaledCells) -> DerivativeBounds:
        """`||D_d^n Psi|| <= sum_a |W_a.d|^n`; `||Psi|| = 2 |cos((alpha_1 - alpha_2) / 2)|`."""
        u = [phase_reach(geometry, phase.frequency) for phase in self.phases]
        xp = namespace(u[0])
        (a1, e1), (a2, e2) = (known_phase(*phase.at(geometry)) for phase in self.phases)
        with np.errstate(over="ignore"):
            half = 0.5 * (a1 - a2)
            spread = 0.5 * (phase_reach(geometry, self.difference) + e1 + e2) + gamma(2) * abs(half)
            most = swing(xp.cos(half), xp.sin(half), up(spread, 8))[1]
            lengths = [up(2.0 * most, 1)]
            for n in (1, 2, 3):
                total = up(u[0] ** n + u[1] ** n, POW_ULPS + 4)
                lengths.append(xp.where((u[0] > 0) | (u[1] > 0), total, xp.zeros_like(total)))
            gram = tuple(tuple(times(lengths[i], lengths[j]) for j in range(4)) for i in range(4))
            remainders = [circle_remainders(part) for part in u]
            direct = tuple(
                xp.where(a + b > 0, up(a + b, 1), xp.zeros_like(a))
                for a, b in zip(*remainders, strict=True)
            )
        return DerivativeBounds(gram, direct, False)

    def at(self, geometry: ScaledCells) -> CosinePairBatch:
        return CosinePairBatch(self, geometry)


class CosinePairBatch(WavesBatch):
    """See `NodeBatch` and the module."""

    @cached_property
    def _diagonal_errors(self) -> list[Array]:
        """Of E_a and O_a with the centre itself in the place of a point."""
        both = self.centers[0][1] + self.centers[1][1]
        return [self._part_error(error, both) for _, error in self.centers]

    def diagonal_jet(self) -> tuple[Jet, Triple]:
        """The jet with Psi(c) in the place of Psi(z_i)."""
        (c1, s1), (c2, s2) = self.circle
        return self.turned(c1 + c2, s1 + s2), self._sums(self._diagonal_errors)

    def mixed(self) -> tuple[Annotated[Array, "B f f"], Annotated[Array, "B"]]:
        """`sum_ab cos(alpha_a - alpha_b) W_a W_b^T`."""
        (c1, s1), (c2, s2) = self.circle
        W1, W2 = self.frequencies
        cosine = (c1 * c2 + s1 * s2)[:, None, None]
        cross = W1[:, None] * W2[None, :] + W2[:, None] * W1[None, :]
        matrix = (self._outer[0] + self._outer[1])[None, :, :] + cosine * cross[None, :, :]
        L1, L2 = (phase.length for phase in self.node.phases)
        error = up(self._diagonal_errors[0] * (2.0 * L1 * L2) + gamma(16) * (L1 + L2) ** 2, 8)
        return matrix, error
