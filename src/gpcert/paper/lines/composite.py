"""Lines of composed kernels: they add, or follow McCormick's inequalities.

Proofs: docs/mathematics.md, statements 12.2 and 12.4.
"""

from __future__ import annotations

from gpcert.kernels.active_dimensions import ActiveBatch
from gpcert.kernels.nodes.composite import ProductBatch, ScaleBatch, SumBatch
from gpcert.kernels.nodes.power import PowerBatch
from gpcert.numerics.arrays import namespace
from gpcert.paper.lines.algebra import combined, product_enclosed
from gpcert.paper.lines.carriers import AffineRelaxation
from gpcert.paper.lines.registry import affine_relaxation, batch_parts

batch_parts.register(SumBatch, lambda batch: batch.parts)
batch_parts.register(ScaleBatch, lambda batch: (batch.part,))
batch_parts.register(ActiveBatch, lambda batch: (batch.part,))
batch_parts.register(ProductBatch, lambda batch: (batch.left, batch.right))
batch_parts.register(PowerBatch, lambda batch: (batch.product,))


@affine_relaxation.register
def _sum(batch: SumBatch) -> AffineRelaxation:
    """Intervals and lines add; each carrier keeps its own slopes."""
    one = namespace(batch.value).ones_like(batch.value)
    return combined([(one, affine_relaxation(part)) for part in batch.parts])


@affine_relaxation.register
def _scale(batch: ScaleBatch) -> AffineRelaxation:
    """Both sides times the factor."""
    factor = namespace(batch.value).full_like(batch.value, batch.factor)
    return combined([(factor, affine_relaxation(batch.part))])


@affine_relaxation.register
def _product(batch: ProductBatch) -> AffineRelaxation:
    """McCormick's inequalities; see `gpcert.paper.lines.algebra`."""
    left, right = batch.left, batch.right
    values = (left.value, right.value)
    return product_enclosed(affine_relaxation(left), affine_relaxation(right), values)


@affine_relaxation.register
def _power(batch: PowerBatch) -> AffineRelaxation:
    """Those of a product of equal factors."""
    return affine_relaxation(batch.product)


@affine_relaxation.register
def _active(batch: ActiveBatch) -> AffineRelaxation:
    """That of k: its carriers' minima over the cell are those over the cell's shadow."""
    return affine_relaxation(batch.part)
