"""What the enclosures ask of a kernel inside a region: functions of its space as quadratics.

Coordinates are displacements `d = (x - c) * inverse_length` in the free features (`ScaledCells`),
and functions are multiplied by a weight `omega(d) = exp(weight_rate |d|^2)` (rate 1/2 for the
squared exponential, whose weighted features Psi = omega phi are orthogonal; rate 0, plain Taylor,
for all others).

What some kernels know besides what every `LocalKernel` does is one small interface each. A class
that can do it derives from the interface; whoever needs it asks by `isinstance`, and does without
where the kernel has it not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

import numpy as np

from gpcert.errors import InputError
from gpcert.kernels.nodes.base import CubicPart
from gpcert.numerics.arrays import (
    Array,
    Inputs,
    PerCell,
    PerCellAndFeature,
    PerCellMatrix,
    Points,
    Reals,
    fused,
    namespace,
)
from gpcert.numerics.rounding import up
from gpcert.regions import Cells
from gpcert.regions.image import ImageCells
from gpcert.regions.scaled import ScaledCells

if TYPE_CHECKING:
    from gpcert.kernels.expansions.squared_exponential_sections import Sections


def inverse_lengths(lengths: Annotated[Array, "#"]) -> Annotated[Array, "#"]:
    """`1 / l`, or an `InputError` where that is beyond float64."""
    with np.errstate(over="ignore"):
        inverse = 1.0 / lengths
    if not np.all(np.isfinite(inverse)):
        raise InputError(
            f"length_scale: expected at least 1e-308, got {lengths.min():.3g}: its inverse is "
            "beyond float64; express the inputs in a smaller unit"
        )
    return inverse


@fused
def reach(matrix: PerCellMatrix, geometry: ScaledCells) -> PerCell:
    """`sum_jk |M_jk| w_j w_k` (B,), w the cells' half-widths."""
    xp, half = namespace(matrix), geometry.half
    return xp.sum(xp.abs(matrix) * (half[:, :, None] * half[:, None, :]), axis=(1, 2))


class Expansion:
    """A kernel at the centres of a batch of cells, shared by mean and variance."""

    geometry: ScaledCells

    K: Array
    """(B, N): its values."""

    def copied(self, count: int) -> Expansion:
        """The same, where its cells are so many times the same ones, one after the other."""
        del count
        return self


@dataclass(frozen=True, eq=False)
class Combination:
    """The functions `f = sum_i weights_bi k(., z_i)`, one per cell, or `k(., c_b)` minus that if
    `with_center`.

    `weights` is (N,) or (B, N), `squared_norm` bounds ||f||^2 in the kernel's space, and `slack`
    (B,) the Euclidean norm of the weights' own errors.
    """

    weights: Array
    squared_norm: float | Array
    with_center: bool = False
    slack: Array | None = None

    @cached_property
    def signed(self) -> Annotated[Array, "... N"]:
        """What the values k(., z_i) are multiplied by."""
        return -self.weights if self.with_center else self.weights

    def of(self, rows: slice) -> Combination:
        """Those of some of the cells."""
        weights = self.weights[rows] if self.weights.ndim > 1 else self.weights
        norm, slack = self.squared_norm, self.slack
        norm = norm if isinstance(norm, int | float) or norm.ndim == 0 else norm[rows]
        return Combination(weights, norm, self.with_center, None if slack is None else slack[rows])


@dataclass(frozen=True, eq=False)
class FunctionModel:
    """`|omega f - (value + gradient.d + d^T hessian d / 2)|` on every cell.

    `below` (B,) bounds how far omega f can fall under the polynomial, `above` how far it can rise
    over it; `errors` (B, 3) the rounding of the three coefficients (Euclidean, Frobenius or
    spectral norm), not part of `below` and `above`. `linear_error` (B,) bounds
    `|f - value - gradient.d|` without a weight, rounding apart. The coefficients of a degree that
    does not pay may be zero; the value is always f(c).
    """

    value: PerCell
    gradient: PerCellAndFeature
    hessian: PerCellMatrix
    errors: Annotated[Array, "B 3"]
    below: PerCell
    above: PerCell
    linear_error: PerCell
    gained: bool = False
    """Whether the remainder point by point was the smaller one on any cell."""
    cubic: CubicPart | None = None
    """Degree 3, where it is known: of omega f, rounding of the coefficients apart."""

    def slope_rounding(self, geometry: ScaledCells) -> PerCell:
        """What the errors of gradient and Hessian can cost on the cell, (B,): they meet |d|, |d|^2.

        For the polynomial itself the Hessian's error would count half.
        """
        first = finite_product(geometry.rho, self.errors[:, 1])
        return up(first + finite_product(geometry.rho2, self.errors[:, 2]), 4)


@dataclass(frozen=True, eq=False)
class LinearModel:
    """`|omega f - (value + gradient.d)| <= remainder` (B,) on every cell, rounding apart; `errors`
    (B, 2) bound that of both coefficients (Euclidean norm)."""

    value: PerCell
    gradient: PerCellAndFeature
    errors: Annotated[Array, "B 2"]
    remainder: PerCell


@dataclass(frozen=True, eq=False)
class QuadraticForm:
    """`d^T matrix d + error`."""

    matrix: PerCellMatrix
    error: PerCell

    def reach(self, geometry: ScaledCells) -> PerCell:
        """Upper bound (B,) over the cell."""
        total = reach(self.matrix, geometry)
        return up(total + self.error, self.matrix.shape[-1] ** 2 + 8)


@dataclass(frozen=True, eq=False)
class SecondDegree:
    """`Psi(d) - Psi(0) = D d + E(d) + r`, degrees one and two and the rest, where the degrees are
    orthogonal: `<D_j, D_k> = s^2 [j = k]`, `||E(d)||^2 = s^2 |d|^4 / 2`, `||r|| <= tail` (B,).

    `rows` (B, f + f (f+1)/2, N) are the inner products with phi(z_i) of D_j and, beyond, of twice
    the coefficients of d_j d_k in E, j <= k in lexicographic order. `squared_sizes` and
    `squared_errors` (B, 3) bound the squared norms over the points of degree 0, 1 and 2 (times
    |d|^2n), and of their errors; `variance` is s^2.

    With `pairs`, places in that order, E has the terms of these alone, and `rows` their rows; r has
    the others, which are orthogonal to all that is kept.
    """

    rows: Annotated[Array, "B r N"]
    squared_sizes: Annotated[Array, "B 3"]
    squared_errors: Annotated[Array, "B 3"]
    tail: PerCell
    variance: float
    pairs: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False)
class FormFunction:
    """`b + sum_i t_i k(., z_i) - k W k`: `weights` t (N,) to sixteen roundings of their `sizes`,
    W (N, N) symmetric, as stored, or None for 0, `constant` at least |b|."""

    weights: Array
    sizes: Array
    W: Array | None = None
    constant: float = 0.0


E = TypeVar("E", bound=Expansion)
"""The expansion of a batch of cells; every method of a local kernel takes it back."""


class LocalKernel(ABC, Generic[E]):
    """A kernel bound to the points of a posterior and to a region: what every kernel offers there.
    What only some do is in `capabilities`."""

    inverse_length: Array
    """(f,) from displacements in the user's units to d."""

    squared_lengths: Array
    """(f,) upper bounds of (unit * inverse_length)^2."""

    unit: Array
    """(f,) powers of two near 1 / inverse_length."""

    variance: float
    """Upper bound of k(x, x) over the region."""

    weight_rate: float

    def geometry(self, cells: Cells) -> ScaledCells:
        """The cells in this kernel's coordinates."""
        return ScaledCells.of(cells, self.inverse_length, self.squared_lengths, self.unit)

    @abstractmethod
    def expand(self, cells: Cells) -> E:
        """Evaluate the kernel at the centres of the cells."""

    @abstractmethod
    def model(self, expansion: E, combination: Combination, pointwise: bool) -> FunctionModel:
        """The function's expansion on every cell; `pointwise`: also try bounds point by point."""

    @abstractmethod
    def center_values(
        self, expansion: E, weights: Annotated[Array, "m N"]
    ) -> tuple[Annotated[Array, "B m"], Annotated[Array, "B m"]]:
        """(B, m) values at the centres of functions with weights (m, N), and their errors."""

    def center_shift(self, expansion: Expansion) -> PerCell | None:
        """Upper bound (B,) of `||phi(x) - phi(c)||` for the point x that the centre c stands for.

        None where they are the same: only the centres of images (`gpcert.regions.image`) are
        rounded. A function of norm B differs by at most B times this between them.
        """
        cells = expansion.geometry.cells
        return self.step_length(cells) if isinstance(cells, ImageCells) else None

    @abstractmethod
    def step_length(self, cells: ImageCells) -> PerCell:
        """Upper bound (B,) of `||phi(c + r) - phi(c)||`, |r_i| <= offset_i of the images."""

    @abstractmethod
    def center_variance(self, expansion: E) -> tuple[PerCell, PerCell]:
        """k(c, c) (B,) and a bound of its error."""

    @abstractmethod
    def largest_variance(self, expansion: E) -> PerCell:
        """Upper bound (B,) of k(x, x) over each cell."""

    @abstractmethod
    def variance_range(self, expansion: E) -> tuple[PerCell, PerCell]:
        """Certified ends (B,) of k(x, x) over each cell."""

    @abstractmethod
    def derivatives(self, expansion: E) -> Annotated[Array, "B f N"]:
        """(B, f, N): `D_j (omega k)(c_b, z_i)`."""

    def derivative_parts(self, expansion: E, cells: int) -> Iterator[Annotated[Array, "B f N"]]:
        """`derivatives` of about so many cells at a time (n, f, N), in order; by default of all."""
        del cells
        yield self.derivatives(expansion)

    @abstractmethod
    def row_sizes(self, expansion: E, order: int) -> tuple[PerCell, PerCell]:
        """Upper bounds (B,) of `||k(c, Z)||` (order 0) or of the Frobenius norm of the true
        `derivatives` (order 1), and of the norm of its error."""

    @abstractmethod
    def derivative_covariance(self, expansion: E) -> QuadraticForm:
        """`<D_j phi, D_k phi>` at the centres; `error` bounds its spectral error, infinite where
        phi is not differentiable."""

    @abstractmethod
    def squared_step(self, expansion: E) -> QuadraticForm:
        """A form that is at least `||Psi(d) - Psi(0)||^2` for every d of the cell."""

    @abstractmethod
    def remainder(self, expansion: E, order: int) -> PerCell:
        """Upper bound (B,) of the Taylor remainder of phi (no weight) of order 0 or 1."""

    @abstractmethod
    def first_tail(self, expansion: E) -> PerCell:
        """Upper bound (B,) of `||Psi(d) - Psi(0) - D_d Psi(0)||`."""


@fused
def finite_product(size: Reals, tail: Reals) -> Reals:
    """`size * tail`, rounded up, where an infinite tail stays infinite even for size 0."""
    xp = namespace(size)
    product = size * xp.where(xp.isfinite(tail), tail, xp.zeros_like(tail))
    return xp.where(xp.isfinite(tail), up(product, 6), tail)


class FirstOrderModels(ABC):
    """Models of first order that are much cheaper than `LocalKernel.model`."""

    @abstractmethod
    def linear_models(
        self, expansion: Any, functions: Sequence[Combination]
    ) -> list[LinearModel] | None:
        """The first order alone of functions with weights (N,); None for cells on which it is not
        cheaper."""


class OrthogonalDegrees(ABC):
    """Features whose degrees are orthogonal at the centre."""

    @abstractmethod
    def second_degree(self, expansion: Any, pairs: tuple[int, ...] | None = None) -> SecondDegree:
        """The parts of degree one and two of Psi at the centres; of degree two only some `pairs` of
        features, if these are given."""


class QuadraticForms(ABC):
    """Quadratic forms of the kernel's values as polynomials."""

    @abstractmethod
    def form_polynomial(
        self, expansion: Any, W: Annotated[Array, "N N"], norm: float
    ) -> tuple[tuple[PerCell, PerCellAndFeature, PerCellMatrix], PerCell]:
        """Value, gradient and Hessian (at d = 0) of a polynomial of degree 2, and by how much it
        may differ (B,) from `omega^2 k(x, Z) W k(Z, x)` on the cells, rounding included.

        W (N, N) is symmetric and meant as it is stored; `norm` bounds `sqrt(trace(W K W K))`, K the
        kernel at the points.
        """

    @abstractmethod
    def monotone_signs(self, expansion: Any, function: FormFunction) -> Annotated[Array, "f"]:
        """(f,): 1 where the function, weighted, rises on the one cell of the expansion, -1 where it
        falls, 0 where that is not known or the cell has no width."""


class Restrictable(ABC):
    """Kernels that may be bound to some of their points, for functions that use no others."""

    @abstractmethod
    def restricted_to(self, index: Annotated[Array, "i"]) -> LocalKernel[Any]:
        """The kernel with some of its points."""

    @abstractmethod
    def restricted_expansion(self, expansion: Any, index: Annotated[Array, "i"]) -> Expansion:
        """The expansion of all points as one of `restricted_to(index)`, this kernel."""


class SliceNorms(ABC):
    """Norms of functions on a region that fixes some features."""

    @abstractmethod
    def slice_norm(self, weights: Annotated[np.ndarray, "N"]) -> float | None:
        """Upper bound of the RKHS norm of `x -> sum_i t_i k(x, z_i)` on the free coordinates; None
        where nothing better than the norm over all coordinates is known."""


class SectionKernel(ABC):
    """Kernels (not local ones) that are known on many sections `x + t e_j` at once."""

    @abstractmethod
    def sections(
        self,
        points: Points,
        X: Inputs,
        sections: tuple[np.ndarray, np.ndarray],
        extent: np.ndarray,
    ) -> Sections:
        """On the sections `x + t e_j`, (rows of X, features j) = `sections`, for `|t| <= extent`
        (Q,)."""
