"""k(x, y) = sum_{a, b = 1, 2} cos(w_a.x + p_a - w_b.y - p_b)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpcert.errors import InputError
from gpcert.kernels.base import Kernel
from gpcert.kernels.nodes.cosine_pair import LocalCosinePair
from gpcert.kernels.parameters import FREQUENCIES, Parameter, numbers
from gpcert.regions.frame import Frame


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

    def value(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        left, right = (np.exp(1j * self._angles(Z)).sum(axis=0) for Z in (X, Y))
        return np.real(left[:, None] * np.conj(right)[None, :])

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        """`|Psi(x)|^2`."""
        return np.square(np.abs(np.exp(1j * self._angles(X)).sum(axis=0)))

    def gradient(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """`d k / d x = Re(sum_a i w_a e^{i alpha_a(x)} conj Psi(y))`."""
        right = np.conj(np.exp(1j * self._angles(Y)).sum(axis=0))
        total = np.zeros((len(X), len(Y), X.shape[1]))
        for w, circle in zip((self.first, self.second), np.exp(1j * self._angles(X)), strict=True):
            total += np.real(1j * circle[:, None] * right[None, :])[:, :, None] * w
        return total

    def node(self, points: np.ndarray, frame: Frame) -> LocalCosinePair:
        return LocalCosinePair.build(points, (self.first, self.second), self.phases, frame)

    def in_units(self, points: np.ndarray) -> tuple[Kernel, int]:
        """As it is: k(x, x) is at most 4, and may vanish at the points."""
        return self, 0

    def rescaled(self, scale: np.ndarray, shift: np.ndarray) -> CosinePair:
        """`w / scale`; the shift moves the phases by `-w.shift / scale`."""
        pair = [w / np.asarray(scale) for w in (self.first, self.second)]
        moved = [p - float(w @ np.asarray(shift)) for w, p in zip(pair, self.phases, strict=True)]
        return CosinePair(pair[0], pair[1], moved)
