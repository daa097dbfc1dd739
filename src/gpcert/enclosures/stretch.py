"""Displacements measured by the widths of their cell.

Proofs: docs/mathematics.md, statement 6.4.
"""

from __future__ import annotations

from typing import NamedTuple

from gpcert.numerics.arrays import PerCell, PerCellAndFeature, namespace
from gpcert.numerics.rounding import given, leading_power, up
from gpcert.regions.scaled import ScaledCells

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
