"""What the enclosures ask of a kernel inside a region: functions of its space as quadratics.

Coordinates are displacements `d = (x - c) * inverse_length` in the free features (`Geometry`), and
functions are multiplied by a weight `omega(d) = exp(weight_rate |d|^2)` (rate 1/2 for the squared
exponential, whose weighted features Psi = omega phi are orthogonal; rate 0, plain Taylor, for all
others).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from gpcert.errors import InputError
from gpcert.kernels.nodes.base import CubicPart, LocalNode, NodeBatch
from gpcert.numerics.arrays import (
    Array,
    PerCell,
    PerCellAndFeature,
    PerCellMatrix,
    PerVector,
    Reals,
    Vectors,
    namespace,
)
from gpcert.numerics.compilation import fused
from gpcert.numerics.rounding import gamma, nonnegative, up
from gpcert.regions import Cells
from gpcert.regions.frame import Frame
from gpcert.regions.image import ImageCells


class Pullback(NamedTuple):
    """`g.e + e^T H e / 2` of an image's displacements e as a function of the cell's own, y.

    `gradient.y + y^T hessian y / 2` differs from it by at most `lost` (B,), rounding included;
    `geometry` is that of the cells in y, and `matrix` (q, f) takes y to e, about.
    """

    geometry: Geometry
    gradient: Array
    hessian: Array
    lost: Array
    matrix: Array


@dataclass(frozen=True, eq=False)
class Geometry:
    """B cells with scaled displacements `d = (x - c) * inverse_length` from their centres.

    For every x in cell b: `|d_j| <= half[b, j]` and `|d|^2 <= rho2[b]`. `inverse_length` is (f,),
    or (B, f) where every cell has units of its own (`squared_exponential_sections`).
    """

    cells: Cells
    inverse_length: Array
    half: PerCellAndFeature
    rho2: PerCell

    @staticmethod
    def of(cells: Cells, inverse_length: Vectors, squared_lengths: Array, unit: Array) -> Geometry:
        """Scale the half-widths, rounded up; rho2 uses a ball's own radius where it is smaller.

        `squared_lengths` (f,) are upper bounds of `(unit * inverse_length)^2`, unit (f,) powers of
        two near the lengths, so that the squares are floats whatever the lengths are. All three are
        (B, f) where every cell has units of its own; the cells are then those of a `Box`.
        """
        xp = namespace(cells.half)
        half = xp.where(cells.half > 0, up(cells.half * inverse_length, 4), cells.half)
        rho2 = cells.squared_norm_maximum(squared_lengths, unit)
        return Geometry(cells, inverse_length, half, rho2)

    def take(self, index: Annotated[Array, "i"]) -> Geometry:
        """The same for some of the cells."""
        cells = self.cells.take(index)
        units = self.inverse_length[index] if self.inverse_length.ndim > 1 else self.inverse_length
        return Geometry(cells, units, self.half[index], self.rho2[index])

    @property
    def is_plain(self) -> bool:
        """Whether d are the displacements of the cells themselves, not of an image of them."""
        return not isinstance(self.cells, ImageCells)

    @property
    def rho(self) -> PerCell:
        """Upper bound of |d|."""
        xp = namespace(self.rho2)
        return up(xp.sqrt(nonnegative(self.rho2)), 2)

    def split_scores(self) -> Annotated[Array, "B s"]:
        """(B, f): what halving each axis gains, up to a common factor.

        It lowers rho2 by 3/4 of the axis' squared half-width, and every remainder grows with rho2.
        Weighing in the relaxation's own loss needed more boxes in the benchmarks.
        """
        if isinstance(self.cells, ImageCells):
            return self.cells.split_scores(self.inverse_length)
        return self.half**2

    def unscaled(self, d: PerCellAndFeature) -> Annotated[Array, "B s"]:
        """Displacements in the user's units from scaled ones, in plain floating point."""
        found = d / self._units(d)
        return self.cells.displacement(found) if isinstance(self.cells, ImageCells) else found

    def pulled(self, gradient: PerCellAndFeature, hessian: PerCellMatrix) -> Pullback | None:
        """A quadratic of an image's displacements as one of the cell's; None for plain cells.

        Statement 13.9: with `e = A y + r`, `g.e + e^T H e / 2` is `(A^T g).y + y^T A^T H A y / 2`
        up to `|g|.|r| + 3/2 |e|^T |H| |r|`, and the products' rounding, at most
        `gamma (|g|.w + w^T |H| w)` for `|A| |y| <= w`.
        """
        if not isinstance(self.cells, ImageCells):
            return None
        xp = namespace(gradient)
        image, source = self.cells.image, self.cells.source
        q = image.scaled.shape[0]
        A = self.inverse_length[:, None] * image.scaled
        product = xp.matrix_transpose(A) @ (hessian @ A)
        offset = up(image.offset * self.inverse_length, 4)
        bends = (xp.abs(hessian) @ self.half[:, :, None])[:, :, 0]
        each = gamma(2 * q + 16) * self.half + offset
        lost = xp.sum(xp.abs(gradient) * each + 2.0 * bends * each, axis=1)
        ones = xp.ones_like(image.unit)
        return Pullback(
            Geometry.of(source, 1.0 / image.unit, ones, image.unit),
            gradient @ A,
            0.5 * product + 0.5 * xp.matrix_transpose(product),
            up(lost, 2 * q + 8),
            A,
        )

    def least(self, slope: Vectors) -> PerVector:
        """Lower bound of `slope.d` over each cell, slope (B, f) or (B, m, f) to two roundings."""
        xp = namespace(slope)
        lower = self.cells.scaled_minimum(slope, self._units(slope))
        half = self.half[:, None, :] if slope.ndim == 3 else self.half
        size = xp.sum(xp.abs(slope) * half, axis=-1)
        return lower - up(gamma(8) * size, slope.shape[-1] + 4)

    def _units(self, like: Array) -> Array:
        """`inverse_length` for an array (B, ..., f): axes between cells and features are added."""
        units = self.inverse_length
        while units.ndim > 1 and units.ndim < like.ndim:
            units = units[:, None]
        return units

    def unscaled_gradient(self, gradient: Vectors) -> Array:
        """Gradient with respect to x from one with respect to d."""
        return gradient * self._units(gradient)


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
def reach(matrix: PerCellMatrix, geometry: Geometry) -> PerCell:
    """`sum_jk |M_jk| w_j w_k` (B,), w the cells' half-widths."""
    xp, half = namespace(matrix), geometry.half
    return xp.sum(xp.abs(matrix) * (half[:, :, None] * half[:, None, :]), axis=(1, 2))


class Expansion:
    """A kernel at the centres of a batch of cells, shared by mean and variance."""

    geometry: Geometry

    K: Array
    """(B, N): its values."""

    def restricted_to(self, index: Annotated[Array, "i"], kernel: LocalKernel) -> Expansion:
        """The same for some of the points, which `kernel` is bound to; asked of kernels only that
        can be restricted."""
        raise NotImplementedError(f"{type(self).__name__}: not for {len(index)} points of {kernel}")

    def copied(self, count: int) -> Expansion:
        """The same, where its cells are so many times the same ones, one after the other."""
        del count
        return self

    def node_batch(self) -> NodeBatch | None:
        """The kernel's nodes at the centres; None where it is not expanded from a tree."""
        return None


@dataclass(frozen=True, eq=False)
class Combination:
    """The functions `f = sum_i weights_bi k(., z_i)`, one per cell, or `k(., c_b)` minus that if
    it is the cell's `own`.

    `weights` is (N,) or (B, N), `squared_norm` bounds ||f||^2 in the kernel's space, and `slack`
    (B,) the Euclidean norm of the weights' own errors.
    """

    weights: Array
    squared_norm: float | Array
    own: bool = False
    slack: Array | None = None

    @cached_property
    def signed(self) -> Annotated[Array, "... N"]:
        """What the values k(., z_i) are multiplied by."""
        return -self.weights if self.own else self.weights

    def of(self, rows: slice) -> Combination:
        """Those of some of the cells."""
        weights = self.weights[rows] if self.weights.ndim > 1 else self.weights
        norm, slack = self.squared_norm, self.slack
        norm = norm if isinstance(norm, int | float) or norm.ndim == 0 else norm[rows]
        return Combination(weights, norm, self.own, None if slack is None else slack[rows])


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

    def slope_rounding(self, geometry: Geometry) -> PerCell:
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

    def reach(self, geometry: Geometry) -> PerCell:
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
    """

    rows: Annotated[Array, "B r N"]
    squared_sizes: Annotated[Array, "B 3"]
    squared_errors: Annotated[Array, "B 3"]
    tail: PerCell
    variance: float


@dataclass(frozen=True, eq=False)
class FormFunction:
    """`b + sum_i t_i k(., z_i) - T k W k`: `weights` t (N,) to sixteen roundings of their `sizes`,
    W (N, N) symmetric, as stored, or None, `share` T >= 0, `constant` at least |b|."""

    weights: Array
    sizes: Array
    W: Array | None = None
    share: float = 0.0
    constant: float = 0.0


E = TypeVar("E", bound=Expansion)
"""What a kernel makes of a batch of cells, and is handed again when it is asked about them."""


class LocalKernel(ABC, Generic[E]):
    """A kernel bound to the points of a posterior and to a region.

    Not every kernel offers `linear_model`, `second_degree`, `restricted_to`, `slice_norm` and
    `tree`: one that has nothing better than what the others do declines with None.
    """

    inverse_length: Array
    """(f,) from displacements in the user's units to d."""

    squared_lengths: Array
    """(f,) upper bounds of (unit * inverse_length)^2."""

    unit: Array
    """(f,) powers of two near 1 / inverse_length."""

    variance: float
    """Upper bound of k(x, x) over the region."""

    weight_rate: float

    def geometry(self, cells: Cells) -> Geometry:
        """The cells in this kernel's coordinates."""
        return Geometry.of(cells, self.inverse_length, self.squared_lengths, self.unit)

    @abstractmethod
    def expand(self, cells: Cells) -> E:
        """Evaluate the kernel at the centres of the cells."""

    @abstractmethod
    def model(self, expansion: E, combination: Combination, pointwise: bool) -> FunctionModel:
        """The function's expansion on every cell; `pointwise`: also try bounds point by point."""

    def linear_model(self, expansion: E, combination: Combination) -> LinearModel | None:
        """The first order alone where it is much cheaper than `model`, else None."""
        del expansion, combination
        return None

    def second_degree(self, expansion: E) -> SecondDegree | None:
        """The parts of degree one and two of Psi at the centres, where they are known."""
        del expansion
        return None

    has_forms: ClassVar[bool] = False
    """Whether `form_polynomial` and `monotone_signs` may be asked."""

    def form_polynomial(
        self, expansion: E, W: Annotated[Array, "N N"], norm: float, sharp: bool
    ) -> tuple[tuple[PerCell, PerCellAndFeature, PerCellMatrix], PerCell]:
        """Value, gradient and Hessian (at d = 0) of a polynomial of degree 2, and by how much it
        may differ (B,) from `omega^2 k(x, Z) W k(Z, x)` on the cells, rounding included.

        W (N, N) is symmetric and meant as it is stored; `norm` bounds `sqrt(trace(W K W K))`, K the
        kernel at the points. If `sharp`, at several times the cost.
        """
        raise NotImplementedError(f"{type(self).__name__}: not for {W} {norm} {sharp} {expansion}")

    def monotone_signs(self, expansion: E, function: FormFunction) -> Annotated[Array, "f"]:
        """(f,): 1 where the function, weighted, rises on the one cell of the expansion, -1 where it
        falls, 0 where that is not known or the cell has no width."""
        raise NotImplementedError(f"{type(self).__name__}: not for {function} on {expansion}")

    def tree(self) -> tuple[LocalNode, Frame] | None:
        """The kernel's nodes and their frame, where it is expanded from them."""
        return None

    def restricted_to(self, index: Annotated[Array, "i"]) -> LocalKernel[E] | None:
        """The kernel with some of its points only, or None where all of them are kept."""
        del index
        return None

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

    def slice_norm(self, weights: Annotated[np.ndarray, "N"]) -> float | None:
        """Upper bound of the RKHS norm of `x -> sum_i t_i k(x, z_i)` on the free coordinates.

        None where nothing better than the norm over all coordinates is known.
        """
        del weights
        return None


@fused
def finite_product(size: Reals, tail: Reals) -> Reals:
    """`size * tail`, rounded up, where an infinite tail stays infinite even for size 0."""
    xp = namespace(size)
    product = size * xp.where(xp.isfinite(tail), tail, xp.zeros_like(tail))
    return xp.where(xp.isfinite(tail), up(product, 6), tail)
