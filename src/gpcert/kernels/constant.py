"""k(x, y) = s^2, the prior of an unknown offset, and white noise: the inputs do not matter.

Proofs: docs/mathematics.md, statement 2.11.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from gpcert.kernels.base import Kernel
from gpcert.kernels.nodes.base import (
    DerivativeBounds,
    FirstOrder,
    Jet,
    KnownBatch,
    LocalNode,
    Triple,
)
from gpcert.kernels.parameters import NONNEGATIVE, POSITIVE, Parameter
from gpcert.numerics.arrays import Array, Inputs, PerCellAndPoint, PerFeature, Points, namespace
from gpcert.regions.cells import Frame
from gpcert.regions.scaled import ScaledCells


@dataclass(frozen=True, eq=False)
class Constant(Kernel):
    """The same covariance s^2 between all inputs; its feature map is one number.

    >>> Constant(2.0).value(np.zeros((1, 3)), np.ones((2, 3))).tolist()
    [[2.0, 2.0]]
    """

    variance: float

    name: ClassVar[str] = "constant"
    has_variance: ClassVar[bool] = True
    stationary: ClassVar[bool] = True
    parameters: ClassVar[dict[str, Parameter]] = {"variance": POSITIVE}

    def value(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        return np.full((len(X), len(Y)), self.variance)

    def gradient(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        return np.zeros((len(X), len(Y), X.shape[1]))

    def features_seen(self, d: int) -> PerFeature:
        return np.zeros(d, dtype=bool)

    def node(self, points: Points, frame: Frame) -> ConstantNode:
        """Only the number of points matters."""
        return ConstantNode(self.variance, len(points))


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
    stationary: ClassVar[bool] = True
    white: ClassVar[bool] = True
    parameters: ClassVar[dict[str, Parameter]] = {"variance": NONNEGATIVE}

    def value(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        return np.zeros((len(X), len(Y)))

    def diagonal(self, X: Inputs) -> np.ndarray:
        """Zero: the latent function has no noise."""
        return np.zeros(len(X))

    def gradient(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        return np.zeros((len(X), len(Y), X.shape[1]))

    def training_covariance(self, X: Inputs) -> np.ndarray:
        return self.variance * np.eye(len(X))

    def in_units(self, points: Points) -> tuple[Kernel, int]:
        """As it is: a function that vanishes has no size."""
        return self, 0

    def with_factor(self, exponent: int) -> Kernel:
        """As it is: its noise belongs to the training covariance, which no bound sees."""
        return self

    def features_seen(self, d: int) -> PerFeature:
        return np.zeros(d, dtype=bool)

    def node(self, points: Points, frame: Frame) -> ConstantNode:
        """The kernel that vanishes."""
        return ConstantNode(0.0, len(points))


@dataclass(frozen=True, eq=False)
class ConstantNode(LocalNode):
    """A constant >= 0 between all inputs of a region and N points; 0 is the kernel that vanishes.

    Nothing is computed, so no error arises.
    """

    variance: float
    count: int

    def derivative_bounds(self, geometry: ScaledCells) -> DerivativeBounds:
        """phi is constant: all derivatives and remainders are exactly zero."""
        xp = namespace(geometry.half)
        none = xp.zeros_like(geometry.center[:, :1].sum(axis=1))
        diagonal = (none + self.variance, none, none, none)
        gram = tuple(tuple(diagonal[i] if i == j else None for j in range(4)) for i in range(4))
        return DerivativeBounds(gram, (none, none, none), stationary=True)

    def at(self, geometry: ScaledCells) -> ConstantBatch:
        xp, half = namespace(geometry.half), geometry.half
        B, f = half.shape
        none = xp.zeros((B, self.count), dtype=half.dtype, device=half.device)
        value = none + self.variance
        return ConstantBatch(value, (value, none, none), (none, none, none), self.variance, f)


@dataclass(frozen=True, eq=False)
class ConstantBatch(KnownBatch):
    """The constant on a batch of cells with f free features."""

    variance: float
    features: int

    def _jet(self, value: Array) -> Jet:
        f = self.features
        return Jet(value, self._zeros(f), self._zeros(f, f))

    def contract(self, coefficients: PerCellAndPoint) -> Jet:
        """`s^2 sum_i a_i`, no slope."""
        return self._jet(self.variance * namespace(coefficients).sum(coefficients, axis=1))

    def first_order(self, coefficients: Annotated[Array, "m N"]) -> FirstOrder:
        """All of them: there is no slope and no rest."""
        none = self._zeros(len(coefficients))
        return FirstOrder(
            self.value @ coefficients.T, self._zeros(len(coefficients), self.features), none, none
        )

    def gradients(self) -> Annotated[Array, "B f N"]:
        return self._zeros(self.features, self.value.shape[1])

    def variations(self) -> tuple[PerCellAndPoint, ...]:
        value, none, _ = self.sizes
        return value, none, none, none

    def diagonal_jet(self) -> tuple[Jet, Triple]:
        """The constant, exactly."""
        none = self._zeros()
        return self._jet(none + self.variance), (none, none, none)

    def mixed(self) -> tuple[Annotated[Array, "B f f"], Annotated[Array, "B"]]:
        """Zero: phi does not move."""
        return self._zeros(self.features, self.features), self._zeros()
