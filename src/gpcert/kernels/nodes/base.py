"""A kernel inside a region as a tree of nodes: what every kernel, leaf or composed, offers there.

Everything is in the coordinates of a `Frame`. A node bound to the points z_1, ..., z_N answers two
questions for a batch of cells: how far its feature map bends (`feature_sizes`), and what the
functions k(., z_i) look like at the centres (`at`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from gpcert.arrays import Array, PerCell, PerCellAndPoint, PerCellMatrix, namespace
from gpcert.kernels.lines.base import Enclosed
from gpcert.kernels.nodes.beyond import Beyond
from gpcert.kernels.nodes.feature_sizes import FeatureSizes
from gpcert.kernels.sizes import euclidean, frobenius
from gpcert.regions.frame import Reach
from gpcert.rounding import up

if TYPE_CHECKING:
    from gpcert.kernels.nodes.radial_bins import BinnedSums

Triple = tuple[Array, ...]
"""Something about the derivatives of order 0, 1 and 2."""


@dataclass(frozen=True, eq=False)
class Jet:
    """Value, gradient and Hessian, exactly symmetric, of a function."""

    value: PerCell
    gradient: Annotated[Array, "B f"]
    hessian: PerCellMatrix

    @property
    def sizes(self) -> Triple:
        """Sizes (B,) of the computed parts, the Hessian's in the Frobenius norm."""
        return abs(self.value), euclidean(self.gradient), frobenius(self.hessian)

    def plus(self, other: Jet) -> Jet:
        """Sum of two functions."""
        return Jet(
            self.value + other.value,
            self.gradient + other.gradient,
            self.hessian + other.hessian,
        )


class NodeBatch(ABC):
    """The functions k(., z_i) at the centres c_b of a batch of cells."""

    value: Array
    """(B, N): k(c_b, z_i)."""

    sizes: Triple
    """Upper bounds, broadcastable to (B, N), of `|k|`, of the Euclidean norm of its gradient and
    the spectral norm of its Hessian in x at (c_b, z_i)."""

    errors: Triple
    """Likewise of the errors of the computed value, gradient (Euclidean norm) and Hessian (spectral
    norm). Infinite (with finite computed numbers) where a derivative does not exist."""

    @abstractmethod
    def contract(self, coefficients: PerCellAndPoint) -> Jet:
        """Jet of `x -> sum_i a_bi k(x, z_i)` at c_b for coefficients a (B, N).

        By matrix products; `errors` does not contain the rounding of this sum (see `SUM_ROUNDINGS`
        of the caller: at most N + 4 f + 32 roundings of terms bounded by `sizes`).
        """

    def value_accuracy(self) -> tuple[PerCellAndPoint, PerCellAndPoint]:
        """The first of `sizes` and `errors`, where no derivatives are asked for."""
        xp = namespace(self.value)
        return (
            xp.broadcast_to(self.sizes[0], self.value.shape),
            xp.broadcast_to(self.errors[0], self.value.shape),
        )

    @abstractmethod
    def gradients(self) -> Annotated[Array, "B f N"]:
        """(B, f, N): d k(x, z_i) / d x_j at x = c_b."""

    @abstractmethod
    def variations(self) -> tuple[PerCellAndPoint, ...]:
        """S_n (B, N), n = 0, ..., 3: upper bounds of `sup |D_d^n k(x, z_i)|` over x, d of the cell.

        x runs over the whole cell, d over its displacements from the centre (so S_n scales like
        half^n). Infinite where the derivative does not exist on the cell. S_1 must bound
        `|k(x, z_i) - k(c, z_i)|` also where k is only Lipschitz continuous.
        """

    def beyond_second(self, coefficients: Array, third: PerCellAndPoint) -> Beyond:
        """What degree 2 leaves of `sum_i a_bi k(., z_i)` on each cell.

        `third` (B, N) is S_3 of `variations`. Here point by point, `|e_i| <= S_3i / 6` (Taylor, the
        third derivative along the segment); a node that knows higher degrees overrides it.
        """
        xp = namespace(coefficients)
        sizes = xp.abs(coefficients)
        left = xp.where(sizes > 0, up(third / 6.0, 1), xp.zeros_like(sizes))
        return Beyond(up(xp.sum(sizes * left, axis=1), coefficients.shape[1] + 4))

    def binned(self, weights: Annotated[Array, "... N"]) -> BinnedSums | None:
        """Sums over many points by their distances, where a node has them; weights (N,) or
        (B, N)."""
        del weights
        return None

    def own_beyond_second(self) -> PerCell | None:
        """Likewise (B,) of `x -> k(x, c_b)`; None where the features' remainder is all there is."""
        return None

    @abstractmethod
    def itself(self) -> tuple[Jet, Triple]:
        """Jet of `x -> k(x, c_b)` at x = c_b, and the errors (B,) of its three parts (norms).

        Infinite errors (with finite numbers) where a derivative does not exist.
        """

    def mixed(self) -> tuple[PerCellMatrix, PerCell]:
        """`d^2 k(x, y) / dx dy` at x = y = c_b, (B, f, f): the derivatives' inner products.

        And a bound (B,) of its error in spectral norm. Here for a stationary kernel, whose mixed
        derivatives are minus the Hessian of `itself`; all others override it.
        """
        jet, errors = self.itself()
        return -jet.hessian, errors[2]

    @abstractmethod
    def enclosed(self) -> Enclosed:
        """The paper's lines: k(x, z_i) over each cell between two affine functions."""


class LocalNode(ABC):
    """A kernel bound to points and to a frame."""

    @abstractmethod
    def feature_sizes(self, reach: Reach) -> FeatureSizes:
        """How far the feature map bends over each cell."""

    @abstractmethod
    def at(self, reach: Reach) -> NodeBatch:
        """The functions k(., z_i) on each cell."""
