"""Second-order enclosure of the latent mean g = sum_i t_i k(., z_i), and its trend, over cells."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from gpcert.arrays import Array, PerCell, namespace
from gpcert.enclosures.cubic_term import CubicTerm
from gpcert.enclosures.enclosure import Enclosure
from gpcert.enclosures.trend import CellTrend
from gpcert.enclosures.two_sided import TwoSided, Units
from gpcert.kernels.expansions.base import (
    Combination,
    Expansion,
    FunctionModel,
    LinearModel,
    LocalKernel,
)
from gpcert.kernels.expansions.geometry import Geometry
from gpcert.rounding import gamma, up, up_float


@dataclass(frozen=True, eq=False)
class MeanEnclosure(TwoSided):
    """The mean g of one output."""

    linear_error: PerCell
    """`|g - center - gradient.d|` is at most this, rounding included."""

    pointwise_gained: bool = False
    """Whether the point-by-point remainder was the smaller one on any cell."""

    trend: CellTrend | None = None
    """The linear trend that is part of g, where there is one: no function of the kernel's space.
    Its value at the centre is in the units' shift."""

    def with_trend(self, trend: CellTrend) -> MeanEnclosure:
        """Of g and a trend on the same cells (Statement 5.8)."""
        return replace(
            self,
            below=trend.added(self.below, 1),
            above=trend.added(self.above, -1),
            center_error=up(self.center_error + trend.center_error, 1),
            units=replace(self.units, shift=trend.shift),
            linear_error=up(self.linear_error + trend.error + gamma(8) * trend.size, 2),
            trend=trend,
        )

    def plain(self, geometry: Geometry) -> MeanEnclosure:
        """See `TwoSided`; where the first order alone says more, the models are that."""
        sides = (side.unweighted(geometry, self.linear_error) for side in (self.below, self.above))
        unknown = namespace(self.center).full_like(self.center, math.inf)
        return replace(self, below=next(sides), above=next(sides), linear_error=unknown)


def mean_enclosure(
    local: LocalKernel,
    expansion: Expansion,
    weights: Array,
    norm: float,
    pointwise: bool,
    units: Units | None = None,
) -> MeanEnclosure:
    """The kernel's model of g, a function of norm at most `norm`, with its rounding on the cell.

    The coefficients' errors meet 1, |d| and |d|^2 / 2, with |d| <= rho.
    """
    geometry = expansion.geometry
    # up: the square of a norm below 1e-154 would vanish
    model = local.model(expansion, Combination(weights, up_float(norm * norm, 1)), pointwise)
    rounding = up(model.errors[:, 0] + model.slope_rounding(geometry), 4)
    rate, shift = local.weight_rate, local.center_shift(expansion)
    return MeanEnclosure(
        _side(geometry, model, rounding, rate, 1),
        _side(geometry, model, rounding, rate, -1),
        model.value,
        model.errors[:, 0] if shift is None else up(model.errors[:, 0] + norm * shift, 3),
        units or Units(),
        up(model.linear_error + rounding, 4),
        model.gained,
    )


def _side(
    geometry: Geometry, model: FunctionModel, rounding: Array, rate: float, sign: int
) -> Enclosure:
    """Of `sign g`."""
    left = model.below if sign > 0 else model.above
    coefficients = (sign * model.value, sign * model.gradient, sign * model.hessian)
    cubic = CubicTerm.of(model.cubic, left, sign)
    return Enclosure.of(geometry, coefficients, up(left + rounding, 2), rate, cubic)


def first_order(
    local: LocalKernel, expansion: Expansion, model: LinearModel, sign: int
) -> Enclosure:
    """Of `sign f` from its first order alone: cheap, and often enough for a sign."""
    geometry = expansion.geometry
    lost = up(model.remainder + model.errors[:, 0] + geometry.rho * model.errors[:, 1], 6)
    coefficients = (sign * model.value, sign * model.gradient, None)
    return Enclosure.of(geometry, coefficients, lost, local.weight_rate)
