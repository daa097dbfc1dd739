"""The paper's bound of a mean, one function a class of `LocalKernel`: an optional bound of the
Taylor engine, which has none for kernels without lines.

Proofs: docs/mathematics.md, statements 12.4 and 15.2.
"""

from __future__ import annotations

from typing import Annotated

from gpcert.kernels.expansions.blocks import TaylorExpansion
from gpcert.kernels.expansions.squared_exponential import (
    LocalSquaredExponential,
    WeightedExpansion,
)
from gpcert.kernels.expansions.squared_exponential_sections import SquaredExponentialSections
from gpcert.kernels.expansions.taylor import LocalTaylor
from gpcert.numerics.arrays import Array, PerCell, namespace
from gpcert.numerics.rounding import down, nonnegative, up
from gpcert.paper.lines.algebra import affine_lower_bound
from gpcert.paper.lines.registry import affine_relaxation, has_lines, lines_bound
from gpcert.paper.lines.squared_exponential import ScaledPoints, paper_lower_bound


@lines_bound.register
def _taylor(
    local: LocalTaylor,
    expansion: TaylorExpansion,
    weights: Annotated[Array, "N"],
    slope: Array | None = None,
) -> PerCell | None:
    """Lines under and over every k(., z_i); a slope by its own minimum, as the lines of other
    carriers have theirs."""
    del local
    if not has_lines(expansion.blocks[0][1].batch):
        return None
    (lower,) = expansion.gathered(
        lambda block: (affine_lower_bound(affine_relaxation(block.batch), weights),)
    )
    return lower if slope is None else down(lower + expansion.geometry.least(slope), 1)


@lines_bound.register
def _squared_exponential(
    local: LocalSquaredExponential,
    expansion: WeightedExpansion,
    weights: Annotated[Array, "N"],
    slope: Array | None = None,
) -> PerCell:
    """Tangents and chords of the exponentials themselves."""
    extents = local.point_norms + local.reach
    # relative_error >= 0.6 of every error of r^2, that of the fixed features included
    errors = 2.0 * local.relative_error
    where = ScaledPoints(local.points, local.fixed_distances, extents, errors, local.variance)
    underflow = local.floor * float(namespace(weights).sum(abs(weights)))
    half = expansion.geometry.half
    return paper_lower_bound(where, expansion.scaled, half, weights, slope) - underflow


@lines_bound.register
def _sections(
    local: SquaredExponentialSections,
    expansion: WeightedExpansion,
    weights: Annotated[Array, "N"],
    slope: Array | None = None,
) -> PerCell:
    """`-s^2 sum max(-t_i, 0) exp(-F_i/2)`, as `0 <= k <= s^2 exp(-F/2)` on the whole section.

    Lines, which pay on large cells of several features, are not formed here.
    """
    assert slope is None, "models with a trend have no sections"
    xp = namespace(expansion.K)
    # errors of F and of exp: relative_error covers both, as k itself has them
    caps = local.variance * xp.exp(-0.5 * local.fixed_distances) * (1.0 + local.relative_error)
    total = caps @ nonnegative(-weights)
    return -up(total + local.floor * float(xp.sum(xp.abs(weights))), len(weights) + 16)
