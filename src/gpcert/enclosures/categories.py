"""Least values of quadratics over cells that hold sets of categories (`gpcert.regions.OneHot`).

Proofs: docs/mathematics.md, statement 5.12.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from gpcert.enclosures.polynomials import box_minimum
from gpcert.numerics.arrays import Array, PerCell, PerCellAndFeature, PerCellMatrix, namespace
from gpcert.numerics.rounding import gamma, up
from gpcert.regions import Cells, OneHot


def category_minimum(
    cells: Cells, gradient: PerCellAndFeature, hessian: PerCellMatrix
) -> PerCell | None:
    """Lower bound (B,) of `g.z + z^T H z / 2`, z = x - c, over the points x of the cells; None
    where their region has no groups.

    Statement 5.12: a point is a category a of every group and a rest y, so with z = e_a - c in a
    group the form is a sum over groups of what a alone gives, of `T_ab = (e_a - c).H (e_b - c)` of
    two groups, of which half is counted for each and is at least its least over b, and of products
    with y, at most `|C_aj| w_j`; the rest is a quadratic on its box.
    """
    region = cells.region
    if not isinstance(region, OneHot) or cells.choice is not None:
        return None
    xp, groups = namespace(gradient), region.free_groups
    if any(groups.dropped):  # bounded on the box
        return None
    f = gradient.shape[1]
    rest = np.setdiff1d(np.arange(f), groups.every)
    may = [groups.allowed(cells.lower, cells.upper, group) for group in groups.columns]
    center = [cells.center[:, group] for group in groups.columns]
    total = xp.zeros_like(gradient[:, 0])
    for g, columns in enumerate(groups.columns):
        slope, rows, c = gradient[:, columns], hessian[:, columns, :], center[g]
        least = slope - xp.sum(slope * c, axis=1)[:, None]
        for h, other in enumerate(groups.columns):
            T = _centred(rows[:, :, other], c, center[h])
            if g == h:
                least = least + 0.5 * xp.linalg.diagonal(T)
            else:
                allowed = may[h][:, None, :]
                least = least + 0.5 * xp.min(xp.where(allowed, T, 0.0 * T + xp.inf), axis=2)
        if len(rest):
            joint = rows[:, :, rest]
            joint = joint - xp.sum(joint * c[:, :, None], axis=1)[:, None, :]
            least = least - xp.sum(xp.abs(joint) * cells.half[:, None, rest], axis=2)
        total = total + xp.min(xp.where(may[g], least, 0.0 * least + xp.inf), axis=1)
    # every entry of g and H occurs a few times, its factors at most 1, or a half-width
    wide = xp.ones_like(gradient)
    wide[:, rest] = cells.half[:, rest]
    size = xp.sum(xp.abs(gradient) * wide, axis=1)
    size = size + xp.sum(wide * (xp.abs(hessian) @ wide[:, :, None])[:, :, 0], axis=1)
    if len(rest):
        block = hessian[:, rest, :][:, :, rest]
        total = total + box_minimum(cells.half[:, rest], gradient[:, rest], block).lower
    lower = total - up(gamma(4 * f + 48) * 16.0 * size, 4)
    return xp.where(xp.isfinite(lower), lower, xp.full_like(lower, -xp.inf))


def _centred(
    H: Annotated[Array, "B k l"], c: Annotated[Array, "B k"], d: Annotated[Array, "B l"]
) -> Annotated[Array, "B k l"]:
    """`(e_a - c).H (e_b - d)`."""
    xp = namespace(H)
    right = xp.sum(H * d[:, None, :], axis=2)
    left = xp.sum(H * c[:, :, None], axis=1)
    both = xp.sum(right * c, axis=1)
    return H - right[:, :, None] - left[:, None, :] + both[:, None, None]
