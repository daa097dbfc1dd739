"""Is a function at least a level? Of polynomials below it, on a batch of cells.

An enclosure says what lies below `exp(rate |d|^2) q`; a level is subtracted from q, so the weight
multiplies it too. `Enclosure.minimum` has statement and reason.

Proofs: docs/mathematics.md, statement 5.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpcert.arrays import Array, PerCell, PerCellAndFeature, PerCellMatrix, namespace
from gpcert.enclosures.quadratic_minimum import box_minimum
from gpcert.fusion import fused
from gpcert.kernels.exponentials import LARGEST_EXPONENT, growth_chord
from gpcert.rounding import EXP_ULPS, U, down, gamma, nonnegative, up


@dataclass(frozen=True, eq=False)
class LevelBound:
    """`lower`: certified bound of q; `point`: a displacement where q may be small."""

    lower: PerCell
    point: PerCellAndFeature


Widths = tuple[PerCellAndFeature, PerCell]
"""Half-widths of the cells, and rho2."""


@fused
def add_identity(hessian: PerCellMatrix, amount: PerCell) -> PerCellMatrix:
    """`hessian + amount I` for a batch."""
    xp = namespace(hessian)
    identity = xp.eye(hessian.shape[-1], dtype=hessian.dtype, device=hessian.device)
    return hessian + amount[:, None, None] * identity


@fused
def level_bend(level: PerCell, rate: float, rho2: PerCell) -> PerCell:
    """What `Enclosure.at_level` adds to the Hessian's diagonal: no work of every entry."""
    xp = namespace(level)
    each = xp.where(level > 0, growth_chord(rate, rho2), xp.full_like(level, rate))
    return -2.0 * level * each


@fused
def at_level(
    hessian: PerCellMatrix | None, error: PerCell, amount: PerCell, widths: Widths
) -> tuple[PerCellMatrix | None, PerCell]:
    """See `Enclosure.at_level`; `amount` is the `level_bend`."""
    xp, (half, rho2) = namespace(amount), widths
    if hessian is None:
        return None, up(error + up(0.5 * nonnegative(-amount) * rho2, 4), 2)
    hessian = add_identity(hessian, amount)
    # rounding of hessian + amount I, entry by entry
    diagonal = xp.sum(xp.abs(xp.linalg.diagonal(hessian)) * half**2, axis=1)
    return hessian, error + up(gamma(4) * (diagonal + xp.abs(amount) * rho2), 8)


@fused
def above_level(
    sides: tuple[PerCell, PerCell, PerCell], level: PerCell, rate: float, rho2: PerCell
) -> PerCell:
    """The bound of `Enclosure.minimum` from value, least polynomial and error."""
    xp, (value, least, slack) = namespace(level), sides
    margin = (value - level) + least - slack
    size = xp.abs(value) + xp.abs(level) + xp.abs(least) + slack
    margin = margin - gamma(8) * size
    if rate > 0:
        x = xp.minimum(rate * rho2, xp.full_like(level, LARGEST_EXPONENT))
        shrunk = margin * xp.exp(-up(x, 2)) * (1.0 - 2 * (EXP_ULPS + 4) * U)
        shrunk = xp.where(rate * rho2 < LARGEST_EXPONENT, shrunk, 0.0 * level)
        margin = xp.where(margin > 0, shrunk, margin)
    lower = down(level + margin, 2)
    return xp.where(xp.isnan(lower), xp.full_like(lower, -math.inf), lower)


def tested_on_boxes(
    coefficients: tuple[PerCell, PerCellAndFeature, PerCellMatrix],
    error: PerCell,
    level: PerCell,
    rate: float,
    widths: Widths,
) -> LevelBound:
    """`above_level` of a quadratic on boxes, and where it is about least."""
    bend = level_bend(level, rate, widths[1]) if rate > 0 else None
    value, gradient, hessian = coefficients
    least, slack, point = _least_on_boxes(gradient, hessian, error, bend, widths)
    return LevelBound(above_level((value, least, slack), level, rate, widths[1]), point)


@fused
def _least_on_boxes(
    gradient: Array, hessian: Array, error: Array, bend: Array | None, widths: tuple[Array, Array]
) -> tuple[Array, Array, Array]:
    """The polynomial's least value, its error with the level, and a point."""
    if bend is not None:
        hessian, error = at_level(hessian, error, bend, widths)
    found = box_minimum(widths[0], gradient, hessian)
    return found.lower, error, found.point
