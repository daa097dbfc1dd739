"""k(x[dimensions], y[dimensions]): a kernel that sees only some of the inputs.

Proofs: docs/mathematics.md, statement 2.11.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from gpcert.errors import InputError
from gpcert.kernels.base import Kernel
from gpcert.kernels.composite import checked_kernel
from gpcert.kernels.nodes.base import (
    DerivativeBounds,
    Jet,
    KnownBatch,
    LocalNode,
    NodeBatch,
    TaylorRemainder,
    Triple,
)
from gpcert.numerics.arrays import (
    Array,
    Inputs,
    PerCell,
    PerCellAndPoint,
    Points,
    namespace,
    to_numpy,
)
from gpcert.numerics.pairs import Pair
from gpcert.regions.cells import Frame
from gpcert.regions.scaled import ScaledCells


@dataclass(frozen=True, eq=False)
class ActiveDimensions(Kernel):
    """A kernel of the inputs `dimensions`, in that order; the others do not matter.

    >>> from gpcert.kernels.linear import Linear
    >>> k = ActiveDimensions(Linear([1.0, 10.0]), (2, 0))
    >>> k.value(np.array([[1.0, 5.0, 2.0]]), np.array([[1.0, 7.0, 1.0]])).tolist()
    [[12.0]]
    """

    kernel: Kernel
    dimensions: Any

    name: ClassVar[str] = "active_dimensions"

    def __post_init__(self) -> None:
        checked_kernel("kernel", self.kernel)
        listed = isinstance(self.dimensions, tuple | list | range | np.ndarray)
        whole = listed and all(isinstance(j, int | np.integer) for j in self.dimensions)
        given = np.asarray(self.dimensions if whole else [])
        valid = given.ndim == 1 and given.size > 0 and given.dtype.kind in "iu"
        if not valid or np.any(given < 0) or len(np.unique(given)) != len(given):
            raise InputError(
                f"dimensions: expected one or more distinct integers >= 0, got {self.dimensions!r}"
            )
        dimensions = tuple(int(j) for j in given)
        self.kernel.check_dimension(len(dimensions))
        object.__setattr__(self, "dimensions", dimensions)

    def _seen(self, X: np.ndarray) -> np.ndarray:
        return X[:, self.dimensions]

    @property
    def parts(self) -> tuple[Kernel, ...]:
        return (self.kernel,)

    def value(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        return self.kernel.value(self._seen(X), self._seen(Y))

    def diagonal(self, X: Inputs) -> np.ndarray:
        return self.kernel.diagonal(self._seen(X))

    def gradient(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        """Zero in the other inputs."""
        gradient = np.zeros((len(X), len(Y), X.shape[1]))
        gradient[:, :, self.dimensions] = self.kernel.gradient(self._seen(X), self._seen(Y))
        return gradient

    def gradient_product(self, X: Inputs, Y: np.ndarray, C: np.ndarray) -> np.ndarray:
        """Zero in the other inputs."""
        product = np.zeros_like(X)
        product[:, self.dimensions] = self.kernel.gradient_product(self._seen(X), self._seen(Y), C)
        return product

    def training_covariance(self, X: Inputs) -> np.ndarray:
        return self.kernel.training_covariance(self._seen(X))

    def typical_lengths(self, d: int) -> Annotated[np.ndarray, "d"]:
        """Those of k, infinite in the other inputs."""
        lengths = np.full(d, np.inf)
        lengths[list(self.dimensions)] = self.kernel.typical_lengths(len(self.dimensions))
        return lengths

    def features_seen(self, d: int) -> Annotated[np.ndarray, "d"]:
        """Those that k looks at, in their places."""
        mask = np.zeros(d, dtype=bool)
        mask[list(self.dimensions)] = self.kernel.features_seen(len(self.dimensions))
        return mask

    def node(self, points: Points, frame: Frame) -> ActiveNode:
        dimensions = np.asarray(self.dimensions, dtype=int)
        part = self.kernel.node(points[:, dimensions], frame.restricted(dimensions))
        return ActiveNode(part, frame.columns(dimensions))

    def sharp_values(self, X: Inputs, Z: Points) -> tuple[np.ndarray, np.ndarray]:
        return self.kernel.sharp_values(self._seen(X), self._seen(Z))

    def pair_values(self, X: Inputs, Z: Points) -> tuple[Pair, np.ndarray]:
        return self.kernel.pair_values(self._seen(X), self._seen(Z))

    def in_units(self, points: Points) -> tuple[Kernel, int]:
        part, e = self.kernel.in_units(self._seen(points))
        return self.with_parts((part,)), e

    def rescaled(self, scale: Annotated[np.ndarray, "d"], shift: np.ndarray) -> ActiveDimensions:
        seen = [np.asarray(a, dtype=np.float64)[list(self.dimensions)] for a in (scale, shift)]
        return ActiveDimensions(self.kernel.rescaled(seen[0], seen[1]), self.dimensions)

    def check_dimension(self, d: int) -> None:
        """The inputs must exist."""
        if max(self.dimensions) >= d:
            raise InputError(
                f"kernel: expected dimensions below {d} (the number of features of the points), "
                f"got {self.dimensions}"
            )


@dataclass(frozen=True, eq=False)
class ActiveNode(LocalNode):
    """A node that sees the free features at `columns` only, in that order."""

    part: LocalNode
    columns: np.ndarray

    def _seen(self, geometry: ScaledCells) -> ScaledCells:
        return geometry.restricted(self.columns)

    def derivative_bounds(self, geometry: ScaledCells) -> DerivativeBounds:
        """The other coordinates move nothing."""
        return self.part.derivative_bounds(self._seen(geometry))

    def at(self, geometry: ScaledCells) -> ActiveBatch:
        """The batch of the cells' shadows."""
        half = geometry.half
        part = self.part.at(self._seen(geometry))
        index = namespace(half).asarray(self.columns, device=half.device)
        return ActiveBatch(part.value, part.sizes, part.errors, part, index, half.shape[1])


@dataclass(frozen=True, eq=False)
class ActiveBatch(KnownBatch):
    """Derivatives are zero in the features that k does not see, so norms are the same."""

    part: NodeBatch
    index: Array
    features: int

    def _placed(self, jet: Jet) -> Jet:
        """The jet among all free features."""
        f = self.features
        gradient, hessian = self._zeros(f), self._zeros(f, f)
        gradient[:, self.index] = jet.gradient
        hessian[:, self.index[:, None], self.index[None, :]] = jet.hessian
        return Jet(jet.value, gradient, hessian)

    def contract(self, coefficients: PerCellAndPoint) -> Jet:
        return self._placed(self.part.contract(coefficients))

    def gradients(self) -> Annotated[Array, "B f N"]:
        gradients = self._zeros(self.features, self.value.shape[1])
        gradients[:, self.index, :] = self.part.gradients()
        return gradients

    def variations(self) -> tuple[PerCellAndPoint, ...]:
        return self.part.variations()

    def first_and_third(self) -> tuple[PerCellAndPoint, PerCellAndPoint]:
        return self.part.first_and_third()

    def second_order_remainder(
        self, coefficients: PerCellAndPoint, third: PerCellAndPoint
    ) -> TaylorRemainder:
        remainder = self.part.second_order_remainder(coefficients, third)
        return remainder.placed(to_numpy(self.index), self.features)

    def diagonal_second_order_remainder(self) -> PerCell | None:
        return self.part.diagonal_second_order_remainder()

    def diagonal_jet(self) -> tuple[Jet, Triple]:
        jet, errors = self.part.diagonal_jet()
        return self._placed(jet), errors

    def mixed(self) -> tuple[Annotated[Array, "B f f"], PerCell]:
        jet, _ = self.part.diagonal_jet()
        matrix, error = self.part.mixed()
        return self._placed(Jet(jet.value, jet.gradient, matrix)).hessian, error
