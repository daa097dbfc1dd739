"""Cells in the coordinates that a kernel sees: displacements from the cells' centres, scaled.

`d = (x - c) * inverse_length` in the free features, or in those of them that the kernel depends on.
In a `Frame` the scales are powers of two; elsewhere they are the kernel's own length-scales. A
`Stretch` measures displacements by the widths of their cell (Statement 6.4).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, NamedTuple

import numpy as np

from gpcert.numerics.arrays import (
    Array,
    Index,
    PerCell,
    PerCellAndFeature,
    PerCellMatrix,
    PerVector,
    Vectors,
    namespace,
)
from gpcert.numerics.rounding import gamma, given, leading_power, nonnegative, up
from gpcert.regions.cells import Cells, Frame
from gpcert.regions.image import CurvedCells, ImageCells

UNITS = ("inverse_length", "squared_lengths", "unit")


class Pullback(NamedTuple):
    """`g.e + e^T H e / 2` of an image's displacements e as a function of the cell's own, y.

    `gradient.y + y^T hessian y / 2` differs from it by at most `lost` (B,), rounding included;
    `geometry` is that of the cells in y, and `matrix` (q, f) takes y to e, about.
    """

    geometry: ScaledCells
    gradient: Array
    hessian: Array
    lost: Array
    matrix: Array


@dataclass(frozen=True, eq=False)
class ScaledCells:
    """B cells with scaled displacements `d = (x - c) * inverse_length` from their centres.

    For every x in cell b: `|d_j| <= half[b, j]` and `|d|^2 <= rho2[b]`. `inverse_length` and `unit`
    are (f,), or (B, f) where every cell has units of its own (`squared_exponential_sections`); the
    cells are then those of a `Box`. `unit` are powers of two near `1 / inverse_length`, and
    `squared_lengths` upper bounds of `(unit * inverse_length)^2`: floats whatever the lengths are.
    """

    cells: Cells
    inverse_length: Array
    squared_lengths: Array
    unit: Array
    half: PerCellAndFeature
    origin: Array | None = None
    """(f,), in the user's units: where the coordinates of `center` begin; at 0 by default."""
    columns: np.ndarray | None = None
    """Which of the free features these are; None for all of them."""

    @staticmethod
    def of(
        cells: Cells, inverse_length: Vectors, squared_lengths: Array, unit: Array
    ) -> ScaledCells:
        """Scale the half-widths, rounded up."""
        xp = namespace(cells.half)
        half = xp.where(cells.half > 0, up(cells.half * inverse_length, 4), cells.half)
        return ScaledCells(cells, inverse_length, squared_lengths, unit, half)

    @staticmethod
    def in_frame(cells: Cells, frame: Frame) -> ScaledCells:
        """Cells of a region in its frame, whose scaling is exact."""
        unit, origin = (frame.backend.asarray(a) for a in (frame.unit, frame.origin))
        ones = namespace(unit).ones_like(unit)
        return ScaledCells(cells, 1.0 / unit, ones, unit, cells.half / unit, origin)

    def take(self, index: Annotated[Array, "i"]) -> ScaledCells:
        """The same for some of the cells."""
        each_cell = self.unit.ndim > 1
        units = {name: getattr(self, name)[index] for name in UNITS} if each_cell else {}
        some = replace(self, cells=self.cells.take(index), half=self.half[index], **units)
        if "rho2" in vars(self):
            vars(some)["rho2"] = self.rho2[index]
        return some

    def restricted(self, columns: Index) -> ScaledCells:
        """The same cells for a kernel that sees only some of the free features."""
        index = namespace(self.half).asarray(columns, device=self.half.device)
        parts = {name: getattr(self, name)[..., index] for name in (*UNITS, "half")}
        origin = self.origin[index] if self.origin is not None else None
        return replace(self, **parts, origin=origin, columns=self.features[columns])

    @cached_property
    def exact_center(self) -> PerCellAndFeature:
        """The centres (B, f) in the user's units, exactly."""
        if self.columns is None:
            return self.cells.center
        index = namespace(self.half).asarray(self.columns, device=self.half.device)
        return self.cells.center[:, index]

    @cached_property
    def center(self) -> PerCellAndFeature:
        """The centres (B, f) in frame coordinates: one rounding each."""
        centers = self.exact_center
        return (centers if self.origin is None else centers - self.origin) / self.unit

    @cached_property
    def rho2(self) -> PerCell:
        """Upper bound (B,) of |d|^2; of a ball's own radius where that is smaller than the box."""
        if self.columns is not None:
            return self.squared_norm(self.squared_lengths)
        return self.cells.squared_norm_maximum(self.squared_lengths, self.unit)

    @property
    def rho(self) -> PerCell:
        """Upper bound of |d|."""
        xp = namespace(self.rho2)
        return up(xp.sqrt(nonnegative(self.rho2)), 2)

    @property
    def is_plain(self) -> bool:
        """Whether d are the displacements of the cells themselves, not of an image of them."""
        return not isinstance(self.cells, ImageCells)

    def squared_norm(self, weights: Annotated[Array, "f"]) -> PerCell:
        """Upper bound (B,) of `sum_j weights_j ((x_j - c_j) / unit_j)^2` over each cell, weights
        (f,) >= 0; of cells in a frame."""
        xp = namespace(self.half)
        with np.errstate(over="ignore"):
            box = self._sum(weights, self.half**2)
        if self.cells.is_box:
            return box
        place = self.half.device
        everything = xp.zeros(self.cells.lower.shape[1], dtype=self.half.dtype, device=place)
        # features that the kernel does not see have no weight: any unit will do
        units = everything + (xp.min(self.unit) if len(self.unit) else 1.0)
        index = xp.asarray(self.features, device=place)
        everything[index], units[index] = weights, self.unit
        ball = self.cells.squared_norm_maximum(everything, units)
        return nonnegative(xp.where(ball < box, ball, box))  # an overflow to NaN improves nothing

    @property
    def features(self) -> Annotated[np.ndarray, "f"]:
        """The numbers of these features among the free ones."""
        return np.arange(self.half.shape[1]) if self.columns is None else self.columns

    def length(self, weights: Annotated[Array, "f"]) -> PerCell:
        """Upper bound (B,) of `sum_j weights_j |d_j|`, weights (f,) >= 0."""
        return self._sum(weights, self.half)

    def least(self, slope: Vectors) -> PerVector:
        """Lower bound of `slope.d` over each cell, slope (B, f) or (B, m, f) to two roundings."""
        xp = namespace(slope)
        lower = self.cells.scaled_minimum(slope, self._units(slope))
        half = self.half[:, None, :] if slope.ndim == 3 else self.half
        size = xp.sum(xp.abs(slope) * half, axis=-1)
        return lower - up(gamma(8) * size, slope.shape[-1] + 4)

    def split_scores(self) -> Annotated[Array, "B s"]:
        """(B, f): what halving each axis gains, up to a common factor.

        It lowers rho2 by 3/4 of the axis' squared half-width, and every remainder grows with rho2.
        Weighing in the relaxation's own loss needed more boxes in the benchmarks.
        """
        if isinstance(self.cells, ImageCells):
            return self.cells.split_scores(self.inverse_length)
        scores = self.half**2
        return self.cells.by_source(scores) if isinstance(self.cells, CurvedCells) else scores

    def unscaled(self, d: PerCellAndFeature) -> Annotated[Array, "B s"]:
        """Displacements in the user's units from scaled ones, in plain floating point."""
        displacement = d / self._units(d)
        if isinstance(self.cells, ImageCells | CurvedCells):
            return self.cells.displacement(displacement)
        return displacement

    def unscaled_gradient(self, gradient: Vectors) -> Array:
        """Gradient with respect to x from one with respect to d."""
        return gradient * self._units(gradient)

    def pulled_back(self, gradient: PerCellAndFeature, hessian: PerCellMatrix) -> Pullback | None:
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
            ScaledCells.of(source, 1.0 / image.unit, ones, image.unit),
            gradient @ A,
            0.5 * product + 0.5 * xp.matrix_transpose(product),
            up(lost, 2 * q + 8),
            A,
        )

    def _units(self, like: Array) -> Array:
        """`inverse_length` for an array (B, ..., f): axes between cells and features are added."""
        units = self.inverse_length
        while units.ndim > 1 and units.ndim < like.ndim:
            units = units[:, None]
        return units

    def _sum(self, weights: Array, sizes: Array) -> Array:
        """`sum_j weights_j sizes_j`, rounded up, where sizes (B, f) may be infinite: they count
        where the weight is not zero; zero only where nothing moves."""
        xp = namespace(sizes)
        moves = (weights > 0) & (self.half > 0)  # not where the product is zero: squares underflow
        total = xp.sum(weights * xp.where(moves, sizes, xp.zeros_like(sizes)), axis=1)
        raised = up(total, self.half.shape[1] + 4)
        return xp.where(xp.any(moves, axis=1), raised, xp.zeros_like(total))


NARROWEST = 2.0**-40
"""Features in which a cell is narrower than this part of its widest count as this wide."""


class Stretch(NamedTuple):
    """Displacements d of each cell as e, `d_j = factors_j e_j`, in which errors are known for all e
    of one length: features in which the cell is narrow then count as little as they move.

    `factors` (B, f): powers of two, at most 1; |e| and |e|^2 are at most `rho` and `rho2` (B,),
    and rho2 at most `largest`.
    """

    factors: PerCellAndFeature
    rho: PerCell
    rho2: PerCell
    largest: float

    @staticmethod
    def of(geometry: ScaledCells) -> Stretch:
        """Of the cells' half-widths, as parts of the largest; none below `NARROWEST` of it."""
        half = geometry.half
        xp = namespace(half)
        columns = xp.concat([half, xp.zeros_like(geometry.rho2)[:, None]], axis=1)
        largest = xp.max(columns, axis=1)[:, None]
        part = half / xp.where(largest > 0, largest, xp.ones_like(largest))
        factors = given(xp.clip(2.0 * leading_power(part), NARROWEST, 1.0))
        more = xp.sum(half * half * (1.0 / (factors * factors) - 1.0), axis=1)
        rho2 = up(geometry.rho2 + more, half.shape[1] + 8)
        return Stretch(factors, up(xp.sqrt(rho2), 2), rho2, float(xp.max(rho2)))
