"""White noise: a covariance of observations with themselves, zero as a function of the inputs.

Proofs: docs/mathematics.md, statement 2.11.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpcert.arrays import finite_array
from gpcert.errors import InputError
from gpcert.kernels.base import Kernel
from gpcert.kernels.constant import ConstantNode
from gpcert.regions.frame import Frame


@dataclass(frozen=True, eq=False)
class White(Kernel):
    """Independent noise of this variance on every observation.

    Between an input of a region and a training point it is zero, and the latent function has none
    of it: `value` and `diagonal` vanish. Only `training_covariance` sees it.

    >>> White(0.1).training_covariance(np.zeros((2, 1))).tolist()
    [[0.1, 0.0], [0.0, 0.1]]
    """

    variance: float

    name: ClassVar[str] = "white"
    has_variance: ClassVar[bool] = True

    def __post_init__(self) -> None:
        variance = float(finite_array("variance", self.variance, ndim=0))
        if variance < 0:
            raise InputError(f"variance: expected a number >= 0, got {self.variance!r}")
        object.__setattr__(self, "variance", variance)

    def value(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Zero."""
        return np.zeros((len(X), len(Y)))

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        """Zero: the latent function has no noise."""
        return np.zeros(len(X))

    def gradient(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Zero."""
        return np.zeros((len(X), len(Y), X.shape[1]))

    def training_covariance(self, X: np.ndarray) -> np.ndarray:
        """`variance * I`."""
        return self.variance * np.eye(len(X))

    def in_units(self, points: np.ndarray) -> tuple[Kernel, int]:
        """As it is: a function that vanishes has no size."""
        return self, 0

    def with_factor(self, exponent: int) -> Kernel:
        """As it is: its noise belongs to the training covariance, which no bound sees."""
        return self

    def features_seen(self, d: int) -> np.ndarray:
        """None of them."""
        return np.zeros(d, dtype=bool)

    def typical_lengths(self, d: int) -> np.ndarray:
        """Infinite: it does not vary."""
        return np.full(d, np.inf)

    def node(self, points: np.ndarray, frame: Frame) -> ConstantNode:
        """The kernel that vanishes."""
        return ConstantNode(0.0, len(points))

    def rescaled(self, scale: np.ndarray, shift: np.ndarray) -> White:
        """Itself."""
        return self

    def check_dimension(self, d: int) -> None:
        """Fits every dimension."""
