"""The shape of a batch of cells in the coordinates of a local kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from gpcert.arrays import Array, PerCell, PerCellAndFeature, PerCellMatrix, Vectors, namespace
from gpcert.errors import InputError
from gpcert.fusion import fused
from gpcert.regions import Cells
from gpcert.regions.image import ImageCells
from gpcert.rounding import gamma, nonnegative, up


class Pulled(NamedTuple):
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

    def pulled(self, gradient: PerCellAndFeature, hessian: PerCellMatrix) -> Pulled | None:
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
        return Pulled(
            Geometry.of(source, 1.0 / image.unit, ones, image.unit),
            gradient @ A,
            0.5 * product + 0.5 * xp.matrix_transpose(product),
            up(lost, 2 * q + 8),
            A,
        )

    def least(self, slope: PerCellAndFeature) -> PerCell:
        """Lower bound (B,) of `slope.d` over each cell, slope (B, f) to two roundings."""
        xp = namespace(slope)
        lower = self.cells.linear_minimum(self.unscaled_gradient(slope))
        size = xp.sum(xp.abs(slope) * self.half, axis=1)
        return lower - up(gamma(8) * size, slope.shape[1] + 4)

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
