"""Latent means and variances of a batch of cells, to first order, in the units of the outputs.

Proofs: docs/mathematics.md, statement 10.2.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated

from gpcert.enclosures.classes.outputs import LatentOutputs
from gpcert.enclosures.mean import TwoSided, Units
from gpcert.enclosures.polynomials import smallest_eigenvalue
from gpcert.enclosures.variance import VarianceEnclosure
from gpcert.kernels.expansions.base import reach
from gpcert.kernels.expansions.exponentials import growth_chord
from gpcert.model.class_layout import ClassLayout
from gpcert.numerics.arrays import Array, PerCell, namespace
from gpcert.numerics.rounding import gamma, given, nonnegative, up
from gpcert.regions.scaled import ScaledCells

MAX_SHAPES = 6
"""Variances up to which their shapes are kept: beyond, nothing reads them."""


@dataclass(frozen=True, eq=False)
class Shapes:
    """The bends of functions as quadratics, so that sums of functions bend as they do together.

    On every cell, with d the displacement,
    `d^T below_j d / 2 - lost_j <= q_j - center_j - slope_j.d <= -d^T above_j d / 2 + gained_j`;
    `below`, `above` (B, J, f, f), `lost`, `gained` (B, J); `middle` (B, J) is reference - center.
    """

    below: Array
    above: Array
    lost: Array
    gained: Array
    middle: Array

    def intervals(
        self, rows: Annotated[Array, "B K J"], geometry: ScaledCells
    ) -> tuple[Annotated[Array, "B K"], Annotated[Array, "B K"]]:
        """Range (B, K) of `sum_j rows_kj (q_j - center_j - slope_j.d)`, rows (B, K, J).

        A positive coefficient takes the lower shape of its function for the lower side, a negative
        one the upper shape; the sum is one quadratic.
        """
        xp = namespace(rows)
        f, J = self.below.shape[2], rows.shape[2]
        flat = (self.below.shape[0], J, f * f)
        ends = []
        for sign in (1.0, -1.0):
            plus, minus = nonnegative(sign * rows), nonnegative(-sign * rows)
            H = plus @ xp.reshape(self.below, flat) + minus @ xp.reshape(self.above, flat)
            H = xp.reshape(H, (*rows.shape[:2], f, f))
            lost = _weighed(plus, self.lost) + _weighed(minus, self.gained)
            least = [_least_bend(H[:, k], geometry) for k in range(rows.shape[1])]
            ends.append(xp.stack(least, axis=1) - lost)
        spread = (geometry.half[:, :, None] * geometry.half[:, None, :])[:, None]
        sizes = xp.sum((xp.abs(self.below) + xp.abs(self.above)) * spread, axis=(2, 3))
        sizes = sizes + self.lost + self.gained
        rounding = up(gamma(J + 16) * _weighed(xp.abs(rows), sizes), J + 16)
        return ends[0] - rounding, -(ends[1] - rounding)

    def bends(self, rows: Array, geometry: ScaledCells) -> Annotated[Array, "B K"]:
        """Upper bound (B, K) of `|sum_j rows_kj (q_j - reference_j - slope_j.d)|`."""
        xp = namespace(rows)
        low, high = self.intervals(rows, geometry)
        middle = xp.sum(rows * self.middle[:, None, :], axis=2)
        size = xp.sum(xp.abs(rows) * xp.abs(self.middle)[:, None, :], axis=2)
        size = size + xp.abs(low) + xp.abs(high)
        worst = xp.maximum(high - middle, middle - low)
        return nonnegative(up(worst + gamma(rows.shape[2] + 8) * size, 4))


@dataclass(frozen=True, eq=False)
class FirstOrder:
    """Functions `q_j(x)`, j = 1..J, on every cell: `|q - reference - slope.d| <= bend`.

    `reference`, `bend` (B, J), `slope` (B, J, f) with d the scaled displacement; `reach` (B, J)
    bounds `|q - reference|`. The reference is the float itself: the middle of where q - slope.d may
    lie. It differs from the value `center` of the models at the cell's centre. `shapes`, where
    known, say more about the bends of sums.
    """

    reference: Array
    slope: Array
    bend: Array
    reach: Array
    center: Array
    shapes: Shapes | None = None


def mean_first_order(latent: LatentOutputs, outputs: int) -> FirstOrder:
    """Means `offset + scale g` of all outputs, from the models of g.

    `omega g` lies between the models' polynomials, and `omega g - g` between `omega - 1` times the
    least and the greatest g, or 0; the order-1 remainder of the plain features bounds the bend as
    well, and so does `|g| <= B s` (and what the trend reaches).
    """
    geometry, xp = latent.geometry, namespace(latent.cells.lower)
    f = geometry.half.shape[1]
    rows = []
    for c in range(outputs):
        enclosure = latent.mean(c)
        slopes = enclosure.below.slopes
        whole = latent.largest_on_cells(c)
        plain = up(whole + xp.abs(enclosure.center) + slopes, f + 8)
        linear = xp.minimum(enclosure.linear_error, plain)
        growth = weight_growth(enclosure.below.rate, geometry)
        # how far g can lie above and below 0: (omega - 1) g has its sign; the sums cancel
        size = xp.abs(enclosure.center) + slopes + linear
        ends = [
            nonnegative(xp.minimum(x + slopes + linear + gamma(f + 8) * size, up(whole, 8)))
            for x in (enclosure.center, -enclosure.center)
        ]
        above, under = (up(growth * end, f + 8) for end in ends)
        low, high = _bends(enclosure)
        low, high = xp.maximum(low - above, -linear), xp.minimum(high + under, linear)
        rows.append(
            _Row(enclosure.center, enclosure.units, enclosure.below.gradient, low, high, linear)
        )
    return _first_order(geometry, rows)


def variance_first_order(latent: LatentOutputs, outputs: int) -> FirstOrder:
    """Variances `scale^2 max(v, 0) + noise` of all outputs, from the models of v.

    With w = omega^2 v the models say `P_below - e <= w <= P_above + e`, quadratics with the same
    value and slope at the centre. `max(v, 0) <= max(w, 0)`, and w is at least -dip omega^2 for a
    rounded model; `max(v, 0) >= w - (omega^2 - 1) max v`. Where that says nothing the range of v
    and the slope alone bound the bend.
    """
    stacked = latent.variances
    if stacked is None:
        rows = [_variance_row(latent.variance(c)) for c in range(outputs)]
    else:
        whole, numbers = _variance_row(stacked.whole), range(outputs)
        rows = [whole.part(stacked.rows(c), stacked.units[c]) for c in numbers]
    first = _first_order(latent.geometry, rows)
    if outputs > MAX_SHAPES:
        return first
    return replace(first, shapes=_shapes(first, [latent.variance(c) for c in range(outputs)]))


def _variance_row(variance: VarianceEnclosure) -> _Row:
    geometry, xp = variance.geometry, namespace(variance.center)
    growth = weight_growth(variance.below.rate, geometry)
    v_low, v_high = variance.range
    slope, dip = variance.below.gradient, variance.dip
    slopes = up(xp.sum(xp.abs(slope) * geometry.half, axis=1), geometry.half.shape[1] + 4)
    low, high = _bends(variance)
    low = low - up(growth * v_high, 4)
    high = high + up(dip * (1.0 + growth), 4)
    plain = (v_low - variance.center - slopes, v_high - variance.center + slopes)
    low = xp.where(low > plain[0], low, plain[0])  # undefined values lose
    high = xp.where(high < plain[1], high, plain[1])
    return _Row(variance.center, variance.units, slope, low, high, v_high + slopes)


def _shapes(first: FirstOrder, enclosures: list[VarianceEnclosure]) -> Shapes:
    """The quadratics in the units of the outputs; scaling rounds, counted by `FirstOrder.bend`."""
    xp = namespace(first.center)
    shapes = []
    for enclosure in enclosures:
        growth = weight_growth(enclosure.below.rate, enclosure.geometry)
        lost = up(enclosure.below.error + growth * enclosure.range[1], 4)
        shapes.append(
            (enclosure, lost, up(enclosure.above.error + enclosure.dip * (1.0 + growth), 4))
        )
    rounding = gamma(16) * (xp.abs(first.center) + xp.abs(first.reference) + first.reach)
    return Shapes(
        xp.stack([e.units.factor * e.below.matrix for e, _, _ in shapes], axis=1),
        xp.stack([e.units.factor * e.above.matrix for e, _, _ in shapes], axis=1),
        up(xp.stack([e.units.factor * lost for e, lost, _ in shapes], axis=1) + rounding, 4),
        up(xp.stack([e.units.factor * gained for e, _, gained in shapes], axis=1) + rounding, 4),
        first.reference - first.center,
    )


def orders_at_center(latent: LatentOutputs, layout: ClassLayout) -> tuple[FirstOrder, FirstOrder]:
    """Means and variances for the cells' centres alone: nothing moves."""

    def still(parts: Iterable[tuple[Array, Array, Units]]) -> FirstOrder:
        zero = 0.0 * latent.geometry.half
        rows = [_Row(x, units, zero, -error, error, 0.0) for x, error, units in parts]
        return _first_order(latent.geometry, rows)

    means = still(map(latent.mean_at_center, range(layout.mean_outputs)))
    return means, still(map(latent.variance_at_center, range(layout.outputs)))


def linear_reach(
    geometry: ScaledCells, slope: Annotated[Array, "B J f"]
) -> Annotated[Array, "B J"]:
    """Upper bound (B, J) of `|slope.d|` on every cell, slope (B, J, f)."""
    xp = namespace(slope)
    if slope.shape[2] == 0:
        return xp.sum(slope, axis=2)
    far = xp.maximum(-geometry.least(slope), -geometry.least(-slope))
    return nonnegative(up(far, 1))


@dataclass(frozen=True, eq=False)
class _Row:
    """`low <= q - center - slope.d <= high` in unit form; `size` of what was added besides the
    centre."""

    center: Array
    units: Units
    slope: Array
    low: Array
    high: Array
    size: Array | float

    def part(self, rows: slice, units: Units) -> _Row:
        """Of some cells, which have these units."""
        size = (self.size + 0.0 * self.center)[rows]
        ends = self.slope[rows], self.low[rows], self.high[rows]
        return _Row(self.center[rows], units, *ends, size)


def _first_order(geometry: ScaledCells, rows: list[_Row]) -> FirstOrder:
    """In the units of the outputs."""
    xp = namespace(rows[0].low)
    references, bends = [], []
    for row in rows:
        center, units = row.center, row.units
        middle = given(0.5 * (row.low + row.high))
        references.append(units.about(center + middle))
        bend = xp.maximum(row.high - middle, middle - row.low)
        size = abs(units.shift) + units.factor * (xp.abs(center) + row.size)
        size = size + units.factor * (xp.abs(row.low) + xp.abs(row.high))
        bends.append(up(units.factor * bend + gamma(8) * size, 8))
    slope = xp.stack([row.units.factor * row.slope for row in rows], axis=1)
    # scaling a slope rounds each of its entries
    rounding = gamma(4) * xp.sum(xp.abs(slope) * geometry.half[:, None, :], axis=2)
    bend = up(xp.stack(bends, axis=1) + rounding, geometry.half.shape[1] + 4)
    whole = up(linear_reach(geometry, slope) + bend, 2)
    centers = xp.stack([row.units.about(row.center) for row in rows], axis=1)
    return FirstOrder(xp.stack(references, axis=1), slope, bend, whole, centers)


def _bends(model: TwoSided) -> tuple[Array, Array]:
    """Range (B,) of a weighted function less its value and slope at the centre."""
    below, above, geometry = model.below, model.above, model.geometry
    low = _least_bend(below.matrix, geometry) - below.error
    return low - gamma(2) * abs(low), -(_least_bend(above.matrix, geometry) - above.error)


def _weighed(coefficients: Array, sizes: Array) -> Array:
    """(B, K): `sum_j coefficients_kj sizes_j`, both >= 0, where 0 times infinity is 0."""
    xp = namespace(sizes)
    known = xp.isfinite(sizes)
    total = xp.sum(coefficients * xp.where(known, sizes, xp.zeros_like(sizes))[:, None, :], axis=2)
    void = xp.any((coefficients > 0) & ~known[:, None, :], axis=2)
    return xp.where(void, xp.full_like(total, math.inf), total)


def _least_bend(hessian: Array, geometry: ScaledCells) -> Array:
    """Lower bound (B,) of `d^T H d / 2`: the better of the diagonal's part less all products off
    it, and the smallest eigenvalue times |d|^2."""
    xp = namespace(hessian)
    w = geometry.half
    f = w.shape[1]
    diagonal = xp.linalg.diagonal(hessian)
    whole = reach(hessian, geometry)
    diagonal_bend = xp.sum(xp.abs(diagonal) * w * w, axis=1)
    fallen = xp.sum(nonnegative(-diagonal) * w * w, axis=1)
    apart = up(0.5 * (fallen + (whole - diagonal_bend)) + gamma(2 * f * f + 8) * whole, 4)
    if f == 0:
        return -apart
    curved = up(-0.5 * smallest_eigenvalue(hessian) * geometry.rho2, 4)
    return -xp.where(curved < apart, curved, apart)


def weight_growth(rate: float, geometry: ScaledCells) -> PerCell | float:
    """Upper bound of `exp(rate |d|^2) - 1` on every cell."""
    if rate == 0.0:
        return 0.0
    return up(growth_chord(rate, geometry.rho2) * geometry.rho2, 2)
