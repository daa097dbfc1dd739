"""The paper's relaxation of a kernel, looked up by the class of its batch.

A kernel without one is still a kernel: only `method="paper"` is not available for it, and the
Taylor bounds of its means have one alternative less.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Annotated

from gpcert.kernels.base import Kernel
from gpcert.kernels.expansions.base import Expansion, LocalKernel
from gpcert.kernels.nodes.base import NodeBatch
from gpcert.numerics.arrays import Array, Backend, PerCell, Points
from gpcert.paper.lines.carriers import AffineRelaxation
from gpcert.regions import Box
from gpcert.regions.cells import Frame
from gpcert.regions.scaled import ScaledCells


@singledispatch
def affine_relaxation(batch: NodeBatch) -> AffineRelaxation:
    """The paper's lines: every k(x, z_i) over each cell between two affine functions of carriers.

    One function a class of `NodeBatch`; for a kernel of your own
    `@affine_relaxation.register` one whose argument is annotated with the kernel's batch.
    """
    raise NotImplementedError(f"no lines are registered for {type(batch).__name__}")


@singledispatch
def batch_parts(batch: NodeBatch) -> Sequence[NodeBatch]:
    """The batches whose lines those of a composed kernel are made of; none of a leaf."""
    del batch
    return ()


def without_lines(batch: NodeBatch) -> list[str]:
    """The classes of the parts that have no lines; none where `affine_relaxation` knows all."""
    if affine_relaxation.dispatch(type(batch)) is affine_relaxation.dispatch(object):
        return [type(batch).__name__]
    return [name for part in batch_parts(batch) for name in without_lines(part)]


def has_lines(batch: NodeBatch) -> bool:
    """Whether `affine_relaxation` knows the kernel and all its parts."""
    return not without_lines(batch)


@singledispatch
def lines_bound(
    local: LocalKernel,
    expansion: Expansion,
    weights: Annotated[Array, "N"],
    slope: Array | None = None,
) -> PerCell | None:
    """Lower bound (B,) of `sum_i t_i k(x, z_i) + slope.d` over each cell by the paper's lines,
    slope (B, f) to two roundings; None where the kernel has none."""
    del local, expansion, weights, slope
    return None


def check_lines(kernel: Kernel, points: Points) -> str | None:
    """Why `method="paper"` is not available for a kernel with these points; None where it is."""
    point = points[:1]
    region = Box(point[0] - 1.0, point[0] + 1.0)
    frame = Frame.of(region, kernel.typical_lengths(points.shape[1]), Backend())
    missing = without_lines(
        kernel.node(point, frame).at(ScaledCells.in_frame(region.root(), frame))
    )
    if not missing:
        return None
    return (
        f"method='paper' is not available for the kernel {type(kernel).__name__}: no lines are "
        f"registered for {', '.join(sorted(set(missing)))} (gpcert.paper.lines.affine_relaxation); "
        "use method='taylor'"
    )
