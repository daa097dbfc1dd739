"""Plain Taylor expansions in blocks of cells, so that what is computed of each (cell, point) stays
in a processor's cache.

Bounds of rough kernels take some hundred elementwise passes over arrays (cells, points), a dozen or
two of which are alive at a time. Where those of a whole batch leave the cache, every pass waits for
the memory, and new arrays of more than 32 MB for the system's pages. A tensor is one block: a GPU
wants few and large steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np

from gpcert.kernels.expansions.base import Expansion, FunctionModel
from gpcert.kernels.nodes.base import CubicPart, DerivativeBounds, LocalNode, NodeBatch
from gpcert.numerics.arrays import Array, PerCellAndPoint, namespace
from gpcert.regions.scaled import ScaledCells

T = TypeVar("T", bound=tuple[Any, ...])

BLOCK = 2**17
"""Numbers (1 MB) of one array of a block."""

MIN_CELLS = 64
"""Of a block: what is done once a block must not cost more than its cells."""

BINNED_CELLS = 1024
"""Of a block whose sums over points go by bins of distances: those take blocks of their own."""


@dataclass(frozen=True, eq=False)
class TaylorExpansion(Expansion):
    """A kernel's functions of N points at the centres, and how far its features bend over the
    cells."""

    geometry: ScaledCells
    node: LocalNode
    in_frame: ScaledCells
    """The cells as the node sees them: scaled exactly."""
    count: int

    @cached_property
    def batch(self) -> NodeBatch:
        """The functions at the centres; of many cells those of the blocks are used instead."""
        return self.node.at(self.in_frame)

    @cached_property
    def K(self) -> PerCellAndPoint:  # pyright: ignore[reportIncompatibleVariableOverride]
        """See `Expansion`: not computed before it is asked for."""
        return self.gathered(lambda block: (block.batch.value,))[0]

    def spread(self, weights: Array) -> PerCellAndPoint:
        """Weights (N,) or (B, N), for every cell."""
        xp, cells = namespace(weights), self.geometry.rho2.shape[0]
        return xp.broadcast_to(weights, (cells, weights.shape[-1]))

    def roundings(self, points: int) -> int:
        """Of a sum over so many points, see `NodeBatch.contract`."""
        return points + 4 * self.geometry.half.shape[1] + 32

    @cached_property
    def sizes(self) -> DerivativeBounds:
        """How far the features bend; not asked of single points."""
        return self.node.derivative_bounds(self.in_frame)

    @property
    def blocks(self) -> list[tuple[slice, TaylorExpansion]]:
        """The cells in blocks, each with an expansion of its own."""
        return self._parts or [(slice(None), self)]

    @cached_property
    def _parts(self) -> list[tuple[slice, TaylorExpansion]]:
        """None where one block holds all (it would refer to itself)."""
        return self.split(BINNED_CELLS if self.node.has_bins else MIN_CELLS)

    def split(self, fewest: int = MIN_CELLS) -> list[tuple[slice, TaylorExpansion]]:
        """Blocks of about `BLOCK` numbers an array, of no fewer cells than that; none where one
        holds all."""
        cells, on_host = self.geometry.rho2.shape[0], isinstance(self.geometry.rho2, np.ndarray)
        most = max(fewest, BLOCK // max(1, self.count)) if on_host else max(1, cells)
        number = -(-cells // most)
        if number <= 1:
            return []
        step = -(-cells // number)
        rows = (slice(start, min(start + step, cells)) for start in range(0, cells, step))
        return [(part, self._part(part)) for part in rows]

    def _part(self, rows: slice) -> TaylorExpansion:
        index = np.arange(rows.start, rows.stop)
        in_frame = self.in_frame.take(index)
        return TaylorExpansion(self.geometry.take(index), self.node, in_frame, self.count)

    def gathered(self, compute: Callable[[TaylorExpansion], T]) -> T:
        """A tuple of arrays of all cells, from those of each block."""
        answers = [compute(block) for _, block in self.blocks]
        if len(answers) == 1:
            return answers[0]
        concat = namespace(self.geometry.rho2).concat
        return cast("T", tuple(concat(list(each), axis=0) for each in zip(*answers, strict=True)))


def joined(parts: Sequence[FunctionModel]) -> FunctionModel:
    """The model of all cells, from those of each block; degree 3 where it is known of all."""
    if len(parts) == 1:
        return parts[0]
    concat = namespace(parts[0].value).concat

    def each(records: Sequence[object], name: str) -> Array:
        return concat([getattr(record, name) for record in records], axis=0)

    cubics = [part.cubic for part in parts if part.cubic is not None]
    known = ("tensor", "rest", "absolute") if len(cubics) == len(parts) else ()
    return FunctionModel(
        value=each(parts, "value"),
        gradient=each(parts, "gradient"),
        hessian=each(parts, "hessian"),
        errors=each(parts, "errors"),
        below=each(parts, "below"),
        above=each(parts, "above"),
        linear_error=each(parts, "linear_error"),
        gained=any(part.gained for part in parts),
        cubic=CubicPart(*(each(cubics, name) for name in known)) if known else None,
    )
