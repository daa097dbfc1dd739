"""Both sides of a function of one output on a batch of cells, and its units; the latent mean
g = sum_i t_i k(., z_i), and its trend.

A weighted enclosure pays for constants, and a trend far from zero is one. So the trend at one point
of the region goes into the offset, exactly, and its value at a cell's centre into the step to
output units there; to the enclosures it is `slope.d` alone.

Proofs: docs/mathematics.md, statements 1.8, 5.7 and 5.8.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, NamedTuple, Self

import numpy as np

from gpcert.enclosures.lower_model import QuadraticLowerModel
from gpcert.enclosures.polynomials import CubicTerm
from gpcert.errors import InputError
from gpcert.functions import MeanFunction
from gpcert.kernels.expansions.base import Combination, Expansion, LocalKernel
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import Array, Backend, Index, PerCell, Reals, namespace, to_numpy
from gpcert.numerics.rounding import TINY, U, down, exact_dot, gamma, up
from gpcert.regions import Cells, Region
from gpcert.regions.image import ImageCells
from gpcert.regions.scaled import ScaledCells


@dataclass(frozen=True)
class Units:
    """`y = shift + factor q`, the factor to one rounding: from q in unit form, where bounds are
    made and all numbers are about one, to an output's y."""

    shift: float | Array = 0.0
    factor: float | Array = 1.0
    least: float = -math.inf
    """No y is less, whatever q is: a variance is at least its noise."""

    def signed(self, sign: int) -> Units:
        """Of `sign y` from `sign q`."""
        return Units(sign * self.shift, self.factor)

    def take(self, rows: Index) -> Units:
        """Those of some of the cells, where they differ."""
        parts = (self.shift, self.factor)
        shift, factor = (part if isinstance(part, int | float) else part[rows] for part in parts)
        return replace(self, shift=shift, factor=factor)

    def below(self, q: Reals) -> Reals:
        """At most y, from at most q; never +inf."""
        xp = namespace(q)
        if isinstance(self.shift, float) and (self.shift, self.factor) == (0.0, 1.0):
            lower = q
        else:
            most = xp.full_like(q, sys.float_info.max)  # what overflows is at least that
            scaled = down(xp.minimum(self.factor * q, most), 2)
            lower = down(xp.minimum(self.shift + scaled, most), 1)
        if self.least > -math.inf:
            lower = xp.maximum(lower, xp.full_like(lower, self.least))
        return lower

    def above(self, q: Reals) -> Reals:
        """At least y, from at least q."""
        return -self.signed(-1).below(-q)

    def range(self, low: Reals, high: Reals) -> tuple[Reals, Reals]:
        """Certified ends of y from those of q."""
        return self.below(low), self.above(high)

    def about(self, q: Reals) -> Reals:
        """y in plain floating point."""
        return self.shift + self.factor * q

    def level(self, y: float) -> float | PerCell:
        """About the q of a y."""
        return (y - self.shift) / self.factor

    def safe_level(self, y: float) -> float | PerCell:
        """A q, a few roundings above `level`, from which `below` finds at least y."""
        q = self.level(y)
        return q + 64.0 * U * (abs(q) + (abs(self.shift) + abs(y)) / self.factor)


def unit_slope(mean: Units, variance: Units, beta: PerCell) -> PerCell:
    """beta between mean and variance in unit form: `beta b / a`, as
    `mu - beta variance = offset + a q - beta (b v + noise) = a (q - (beta b / a) v) + ...`.

    To four roundings, and 2^-1074 where it underflows; by exponents, as b / a may be no float.
    """
    assert isinstance(mean.factor, float), "of one output"
    assert isinstance(variance.factor, float), "of one output"
    (first, p), (second, q) = map(math.frexp, (mean.factor, variance.factor))
    half = (q - p) // 2
    return beta * (second / first) * 2.0**half * 2.0 ** (q - p - half)


@dataclass(frozen=True, eq=False)
class TwoSided:
    """Enclosures of q and of -q in unit form, q at the centres with its error, and the units."""

    below: QuadraticLowerModel
    above: QuadraticLowerModel
    center: PerCell
    center_error: PerCell
    units: Units

    @property
    def geometry(self) -> ScaledCells:
        """The cells as the kernel sees them."""
        return self.below.geometry

    def side(self, sign: int) -> QuadraticLowerModel:
        """Of `sign q`."""
        return self.below if sign > 0 else self.above

    @property
    def at_center(self) -> tuple[PerCell, PerCell]:
        """Certified range (B,) of q at the centres alone."""
        return down(self.center - self.center_error, 2), up(self.center + self.center_error, 2)

    @property
    def output_at_center(self) -> tuple[PerCell, PerCell]:
        """The same in the output's units."""
        return self.units.range(*self.at_center)

    def plain(self, geometry: ScaledCells) -> Self:
        """Without a weight, in the coordinates of another geometry of the same cells."""
        sides = (side.unweighted(geometry) for side in (self.below, self.above))
        return replace(self, below=next(sides), above=next(sides))

    def times(self, coefficient: PerCell) -> QuadraticLowerModel:
        """Of `coefficient q`, coefficients (B,) of any sign."""
        chosen = self.below.where(coefficient > 0, self.above)
        return chosen.scaled(abs(coefficient))


@dataclass(frozen=True, eq=False)
class CellTrend:
    """`mu = shift + mean_scale (q + gradient.d)` on each cell, up to `error` (B,) in unit form, q
    the kernel's part and d in the coordinates of the cells' geometry.

    `shift` (B,) is in output units; the gradient (B, f) is to two roundings an entry, `gradient.d`
    lies between `fall` and `rise` (B,), and `size` (B,) is at least its terms'. At the point that
    the centre stands for (see `LocalKernel.center_shift`) the error is `center_error`.
    """

    shift: Array
    gradient: Array
    error: Array
    center_error: Array
    size: Array
    fall: Array
    rise: Array

    def added(self, enclosure: QuadraticLowerModel, sign: int) -> QuadraticLowerModel:
        """Of `sign (q + gradient.d)`, error included, from one of `sign q`."""
        return enclosure.tilted(sign * self.gradient, self.size, self.error)

    def least(self, sign: int) -> PerCell:
        """Lower bound (B,) of `sign gradient.d` over the cell, less the error."""
        return down((self.fall if sign > 0 else -self.rise) - self.error, 1)

    @property
    def reach(self) -> PerCell:
        """Upper bound (B,) of `|gradient.d|` over the cell, and the error."""
        return up(namespace(self.error).maximum(-self.fall, self.rise) + self.error, 1)


class _Bent(NamedTuple):
    """A mean function on cells: `value` (B,) in output units and `gradient` (B, f) in unit form at
    the centres, what it may differ from that, and at the points that the centres stand for."""

    value: Array
    gradient: Array
    error: Array
    center_error: Array


@dataclass(frozen=True, eq=False)
class LocalMean:
    """A mean function on a region `seen`, in the features that the kernel sees; `scale` (m,)."""

    function: MeanFunction
    seen: Region
    scale: np.ndarray

    @np.errstate(over="ignore", invalid="ignore")
    def on(self, cells: Cells, output: int, mean_scale: float) -> _Bent:
        """`m(c) + g.d`, g the middle of the gradient's interval (Statement 18.7). Ends of boxes are
        rounded outwards; where a bound is not finite nothing is known."""
        free, center = self.seen.free, to_numpy(cells.center)
        half, place = to_numpy(cells.half), cells.points_full(cells.center)
        lower, upper = place.copy(), place.copy()
        lower[:, free] = np.nextafter(center - half, -np.inf)
        upper[:, free] = np.nextafter(center + half, np.inf)
        low, high = (end[:, output] for end in self.function.value_range(place))
        ends = self.function.gradient_range(lower, upper)
        least, most = (end[:, output][:, free] for end in ends)
        value, slope = 0.5 * low + 0.5 * high, 0.5 * least + 0.5 * most
        fine = np.isfinite(value) & np.all(np.isfinite(slope), axis=1)
        value, slope = np.where(fine, value, 0.0), np.where(fine[:, None], slope, 0.0)
        factor = float(self.scale[output])
        apart = up(np.maximum(high - value, value - low), 1)
        spread = up(np.maximum(most - slope, slope - least), 1)
        center_error = up(factor * apart / mean_scale, 4)
        bent = np.sum(factor * spread / mean_scale * half, axis=1)
        error = up(center_error + bent, len(free) + 8)
        if isinstance(cells, ImageCells):
            steepest = np.maximum(np.abs(least), np.abs(most)) * to_numpy(cells.offset)
            more = np.sum(factor * steepest / mean_scale, axis=1)
            center_error = up(center_error + more, len(free) + 8)
        infinite = np.where(fine, 0.0, np.inf)
        parts = (factor * value, factor * slope / mean_scale)
        both = np.where(fine, error, infinite), np.where(fine, center_error, infinite)
        return _Bent(*(cells.placed(each) for each in (*parts, *both)))


@dataclass(frozen=True, eq=False)
class LocalTrend:
    """The trends of all outputs on a region, `mu = offset' + mean_scale (k' t' + slope'.(z - o))`,
    o the `origin`; `offsets` (m,) are the floats next to `offset' = offset + scale slope.o`,
    `slopes` (m, f) those of the features that the region leaves free, `scales` `mean_scale`."""

    slopes: Array
    origin: Array
    offsets: tuple[float, ...]
    scales: tuple[float, ...]
    function: LocalMean | None = None

    @staticmethod
    def of(posterior: Posterior, seen: Region, backend: Backend) -> LocalTrend | None:
        """On the region `seen`, in the features that the kernel sees; None without a trend."""
        if not posterior.has_trend:
            return None
        unit, origin = posterior.unit, seen.center
        offsets = []
        for c, slope in enumerate(posterior.slope):
            moved = Fraction(float(posterior.offset[c]))
            if np.any(slope):
                along = exact_dot(slope.tolist(), origin.tolist())
                moved += Fraction(float(posterior.scale[c])) * along
            try:
                offsets.append(float(moved))
            except OverflowError as error:
                raise InputError(
                    f"output {c}: its linear trend leaves float64 on this region; expected "
                    "predictions below 1e300: take a smaller region, or rescale the targets"
                ) from error
        slopes = backend.asarray(unit.slope[:, seen.free])
        place = backend.asarray(origin[seen.free])
        mean = posterior.mean_function
        local = None if mean is None else LocalMean(mean, seen, posterior.scale)
        return LocalTrend(slopes, place, tuple(offsets), unit.mean_scale, local)

    @np.errstate(over="ignore", invalid="ignore")  # huge boxes: bounds become trivial
    def on(self, geometry: ScaledCells, output: int) -> CellTrend:
        """The trend of an output on cells.

        Differences of centres carry one rounding, their products and sums f + 1 more, the offset
        and the step to output units three; TINY counts what underflows, of a slope in unit form
        too, which meets |z - origin|.
        """
        cells, slope = geometry.cells, self.slopes[output]
        offset, scale = self.offsets[output], self.scales[output]
        xp, f = namespace(cells.center), slope.shape[0]
        away, rows = cells.center - self.origin, xp.zeros_like(cells.center) + slope
        terms = xp.abs(away) @ xp.abs(slope) + abs(offset) / scale
        lost = TINY * (f + 4.0 + xp.sum(xp.abs(away) + cells.half + geometry.half, axis=1))
        shift = offset + scale * (away @ slope)
        # beyond float64 nothing is known: what lies above the largest float at the centre need not
        # lie above it on the whole cell
        known, zero = xp.isfinite(shift), xp.zeros_like(shift)
        error = up(gamma(f + 8) * terms + lost, f + 12)
        error = center_error = xp.where(known, error, zero + math.inf)
        if isinstance(cells, ImageCells):
            center_error = up(error + xp.sum(xp.abs(slope) * cells.offset), f + 8)
        if self.function is not None:
            moved = self.function.on(cells, output, scale)
            shift, rows = xp.where(known, shift, zero) + moved.value, rows + moved.gradient
            rounding = gamma(8) * (xp.abs(shift) + abs(moved.value)) / scale
            reach = gamma(8) * xp.sum(xp.abs(rows) * cells.half, axis=1)
            error = up(error + moved.error + rounding + reach, f + 8)
            center_error = up(center_error + moved.center_error + rounding, f + 8)
            known = xp.isfinite(shift)
            error = xp.where(known, error, zero + math.inf)
            size = up(xp.sum(xp.abs(rows) * cells.half, axis=1), f + 16)
            ends = down(cells.linear_minimum(rows), 1), up(cells.linear_maximum(rows), 1)
            parts = (rows / geometry.inverse_length, error, center_error, size, *ends)
            return CellTrend(xp.where(known, shift, zero), *parts)
        return CellTrend(
            xp.where(known, shift, zero),
            rows / geometry.inverse_length,
            error,
            center_error,
            up(cells.half @ xp.abs(slope), f + 16),
            down(cells.linear_minimum(rows), 1),
            up(cells.linear_maximum(rows), 1),
        )


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

    def plain(self, geometry: ScaledCells) -> MeanEnclosure:
        """See `TwoSided`; where the first order alone says more, the models are that."""
        sides = (side.unweighted(geometry, self.linear_error) for side in (self.below, self.above))
        unknown = namespace(self.center).full_like(self.center, math.inf)
        return replace(self, below=next(sides), above=next(sides), linear_error=unknown)


def mean_enclosure(
    local: LocalKernel,
    expansion: Expansion,
    weights: Annotated[Array, "... N"],
    norm: Reals,
    pointwise: bool,
    units: Units | None = None,
) -> MeanEnclosure:
    """The kernel's model of g, a function of norm at most `norm`, with its rounding on the cell;
    weights (B, N) and norms (B,) may differ from cell to cell.

    The coefficients' errors meet 1, |d| and |d|^2 / 2, with |d| <= rho.
    """
    geometry = expansion.geometry
    # up: the square of a norm below 1e-154 would vanish
    model = local.model(expansion, Combination(weights, up(norm * norm, 1)), pointwise)
    rounding = up(model.errors[:, 0] + model.slope_rounding(geometry), 4)
    rate, shift = local.weight_rate, local.center_shift(expansion)

    def side(left: Array, sign: int) -> QuadraticLowerModel:
        coefficients = (sign * model.value, sign * model.gradient, sign * model.hessian)
        cubic = CubicTerm.of(model.cubic, left, sign)
        return QuadraticLowerModel.of(geometry, coefficients, up(left + rounding, 2), rate, cubic)

    return MeanEnclosure(
        side(model.below, 1),
        side(model.above, -1),
        model.value,
        model.errors[:, 0] if shift is None else up(model.errors[:, 0] + norm * shift, 3),
        units or Units(),
        up(model.linear_error + rounding, 4),
        model.gained,
    )
