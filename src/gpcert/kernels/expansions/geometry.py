"""The shape of a batch of cells in the coordinates of a local kernel."""

from __future__ import annotations

from dataclasses import dataclass

from gpcert.arrays import Array, namespace
from gpcert.regions import Cells
from gpcert.rounding import nonnegative, up

__all__ = ["Geometry"]


@dataclass(frozen=True, eq=False)
class Geometry:
    """B cells with scaled displacements `d = (x - c) * inverse_length` from their centres.

    For every x in cell b: `|d_j| <= half[b, j]` and `|d|^2 <= rho2[b]`. `inverse_length` is (f,),
    or (B, f) where every cell has units of its own (`squared_exponential_sections`).
    """

    cells: Cells
    inverse_length: Array
    half: Array
    rho2: Array

    @staticmethod
    def of(cells: Cells, inverse_length: Array, squared_lengths: Array, unit: Array) -> Geometry:
        """Scale the half-widths, rounded up; rho2 uses a ball's own radius where it is smaller.

        `squared_lengths` (f,) are upper bounds of `(unit * inverse_length)^2`, unit (f,) powers of
        two near the lengths, so that the squares are floats whatever the lengths are. All three are
        (B, f) where every cell has units of its own; the cells are then those of a `Box`.
        """
        xp = namespace(cells.half)
        half = xp.where(cells.half > 0, up(cells.half * inverse_length, 4), cells.half)
        rho2 = cells.squared_norm_maximum(squared_lengths, unit)
        return Geometry(cells, inverse_length, half, rho2)

    def take(self, index: Array) -> Geometry:
        """The same for some of the cells."""
        cells = self.cells.take(index)
        units = self.inverse_length[index] if self.inverse_length.ndim > 1 else self.inverse_length
        return Geometry(cells, units, self.half[index], self.rho2[index])

    @property
    def rho(self) -> Array:
        """Upper bound of |d|."""
        xp = namespace(self.rho2)
        return up(xp.sqrt(nonnegative(self.rho2)), 2)

    def split_scores(self) -> Array:
        """(B, f): what halving each axis gains, up to a common factor.

        It lowers rho2 by 3/4 of the axis' squared half-width, and every remainder grows with rho2.
        Weighing in the relaxation's own loss needed more boxes in the benchmarks.
        """
        return self.half**2

    def unscaled(self, d: Array) -> Array:
        """Displacements in the user's units from scaled ones, in plain floating point."""
        return d / self._units(d)

    def _units(self, like: Array) -> Array:
        """`inverse_length` for an array (B, ..., f): axes between cells and features are added."""
        units = self.inverse_length
        while units.ndim > 1 and units.ndim < like.ndim:
            units = units[:, None]
        return units

    def unscaled_gradient(self, gradient: Array) -> Array:
        """Gradient with respect to x from one with respect to d."""
        return gradient * self._units(gradient)
