"""The one type that goals reason with: a quadratic that a function lies above, on a batch of cells.

    exp(rate |d|^2) q(c+d) >= value + gradient.d + d^T hessian d / 2 - error,  all d of the cell.

An upper bound of q is a lower bound of -q: each side is written once. Enclosures of the same cells,
in the same coordinates and with the same weight, add up; they are scaled, shifted, and change their
weight and coordinates. All rounding of that is counted here, by `size` (Statement 5.7): every entry
of a result carries a few relative roundings, which meet 1, |d_j| or |d_j d_k|.

Proofs: docs/mathematics.md, statements 5.1, 5.4, 5.5, 5.6 and 5.7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

from array_api_compat import device

from gpcert.enclosures.categories import category_minimum
from gpcert.enclosures.polynomials import (
    CubicTerm,
    Minimum,
    above_level,
    add_identity,
    at_level,
    box_minimum,
    least_on_boxes,
    level_bend,
    quadratic_minimum,
)
from gpcert.kernels.expansions.base import finite_product, reach
from gpcert.kernels.expansions.exponentials import LARGEST_EXPONENT, growth_chord
from gpcert.numerics.arrays import (
    Array,
    Index,
    PerCell,
    PerCellAndFeature,
    PerCellMatrix,
    fused,
    namespace,
    products,
)
from gpcert.numerics.rounding import EXP_ULPS, down, gamma, nonnegative, up
from gpcert.regions import Cells
from gpcert.regions.cells import widths_as_units
from gpcert.regions.scaled import ScaledCells

FELT = 0.01
"""See `QuadraticLowerModel.minimum`: less takes no fewer boxes, nor does a third step; each is
a minimum."""


@dataclass(frozen=True, eq=False)
class QuadraticLowerModel:
    """See the module. `hessian` is None for a first order alone; d in the coordinates of
    `geometry`."""

    geometry: ScaledCells
    value: PerCell
    gradient: PerCellAndFeature
    hessian: PerCellMatrix | None
    error: PerCell
    rate: float = 0.0
    known_size: PerCell | None = None
    """The size, where it is known without another look at all entries."""
    cubic: CubicTerm | None = None
    """Degree 3, where it is known."""

    @staticmethod
    def of(
        geometry: ScaledCells,
        coefficients: tuple[Array, Array, Array | None],
        error: PerCell,
        rate: float,
        cubic: CubicTerm | None = None,
    ) -> QuadraticLowerModel:
        """The error made infinite on cells too large for the weight (see `LARGEST_EXPONENT`)."""
        xp = namespace(error)
        small = geometry.rho2 <= (LARGEST_EXPONENT if rate > 0 else math.inf)
        error = xp.where(small & ~xp.isnan(error), error, xp.full_like(error, math.inf))
        return QuadraticLowerModel(geometry, *coefficients, error, rate, cubic=cubic)

    @cached_property
    def size(self) -> PerCell:
        """At least `|value| + sum_j |gradient_j| w_j + sum_jk |hessian_jk| w_j w_k` (B,), w the
        cell's half-widths: at least the sizes of all terms of the polynomial on the cell."""
        if self.known_size is not None:
            return self.known_size
        f = self.gradient.shape[1]
        return up(abs(self.value) + self.slopes + self._bends, 2 * f * f + 16)

    @property
    def slopes(self) -> PerCell:
        """About `sum_j |gradient_j| w_j` (B,)."""
        return _slopes(self.gradient, self.geometry.half)

    @property
    def _bends(self) -> Array:
        """About `sum_jk |hessian_jk| w_j w_k` (B,)."""
        return 0.0 * self.value if self.hessian is None else reach(self.hessian, self.geometry)

    @property
    def matrix(self) -> PerCellMatrix:
        """The Hessian of an enclosure of second order."""
        assert self.hessian is not None, "expected a second order, got a first"
        return self.hessian

    @property
    def heaviest(self) -> PerCell:
        """Upper bound (B,) of the weight exp(rate |d|^2)."""
        rho2 = self.geometry.rho2
        return up(1.0 + rho2 * growth_chord(self.rate, rho2), 4)

    # ---- the algebra

    def __add__(self, other: QuadraticLowerModel) -> QuadraticLowerModel:
        """Of the sum of both functions, each of second order."""
        self._check_alike(other)
        size = up(self.size + other.size, 1)
        return QuadraticLowerModel(
            self.geometry,
            self.value + other.value,
            self.gradient + other.gradient,
            self.matrix + other.matrix,
            up(self.error + other.error + gamma(2) * size, 2),
            self.rate,
            size,
            CubicTerm.sum(self.cubic, other.cubic),
        )

    def scaled(self, factor: PerCell | float) -> QuadraticLowerModel:
        """Of `factor q`, for factors (B,) >= 0."""
        each: Array = namespace(self.value).zeros_like(self.value) + factor
        coefficients = (self.value, self.gradient, self.hessian)
        value, gradient, hessian, error, size = _scaled(each, coefficients, self.error, self.size)
        cubic = None if self.cubic is None else self.cubic.scaled(each)
        return QuadraticLowerModel(
            self.geometry, value, gradient, hessian, error, self.rate, size, cubic
        )

    def lowered(self, amount: PerCell) -> QuadraticLowerModel:
        """With a larger error: of functions down to `q - exp(-rate |d|^2) amount`."""
        size = vars(self).get("size", self.known_size)
        return replace(self, error=up(self.error + amount, 2), known_size=size)

    def shifted(
        self, constant: PerCell, size: Array | None = None, slope: PerCellAndFeature | None = None
    ) -> QuadraticLowerModel:
        """Of `q + constant + slope.d`, constant (B,) and slope (B, f) computed with up to two
        roundings from numbers of the given size in all on the cell (by default their own).

        Reason: `constant (omega - 1)` is at least `constant rate |d|^2`, or, for a negative
        constant, `constant chord |d|^2`; `slope.d (omega - 1)` at least `-|slope.d| chord rho2`.
        """
        xp = namespace(self.value)
        lines = xp.zeros_like(self.value)
        if slope is not None:
            f = slope.shape[1]
            lines = up(xp.sum(xp.abs(slope) * self.geometry.half, axis=1), f + 4)
        size = up(xp.abs(constant) + lines, 2) if size is None else size
        whole = up(self.size + size, 2)
        rounding = gamma(4) * (xp.abs(self.value) + size)
        if slope is not None:
            rounding = gamma(4) * whole
        if self.rate > 0:
            rounding = rounding * self.heaviest
        moved = replace(
            self,
            value=self.value + constant,
            gradient=self.gradient if slope is None else self.gradient + slope,
            error=up(self.error + rounding, 8),
            known_size=whole,
        )
        if self.rate == 0.0:
            return moved
        chord = growth_chord(self.rate, self.geometry.rho2)
        rates = xp.where(constant > 0, xp.zeros_like(chord) + self.rate, chord)
        moved = moved._bent(2.0 * constant * rates)
        return moved.lowered(up(lines * chord * self.geometry.rho2, 4))

    def tilted(self, slope: PerCellAndFeature, size: PerCell, lost: PerCell) -> QuadraticLowerModel:
        """Of `q + slope.d` down to `lost` (B,) less; slope and size as in `shifted`."""
        zero = namespace(lost).zeros_like(lost)
        return self.shifted(zero, size, slope).lowered(up(lost * self.heaviest, 2))

    def take(self, rows: Index) -> QuadraticLowerModel:
        """That of some of the cells, without degree 3; rows may repeat."""
        coefficients = (self.value[rows], self.gradient[rows], self.matrix[rows])
        geometry, error, size = self.geometry.take(rows), self.error[rows], self.size[rows]
        return QuadraticLowerModel(geometry, *coefficients, error, self.rate, size)

    def where(self, mask: PerCell, other: QuadraticLowerModel) -> QuadraticLowerModel:
        """This one under the mask (B,), the other elsewhere."""
        self._check_alike(other)
        xp = namespace(mask)
        return QuadraticLowerModel(
            self.geometry,
            xp.where(mask, self.value, other.value),
            xp.where(mask[:, None], self.gradient, other.gradient),
            xp.where(mask[:, None, None], self.matrix, other.matrix),
            xp.where(mask, self.error, other.error),
            self.rate,
            xp.where(mask, self.size, other.size),
            CubicTerm.where(mask, self.cubic, other.cubic),
        )

    def lighter(
        self, rate: float, rises: PerCell, least: PerCell, dip: float
    ) -> QuadraticLowerModel:
        """With a smaller rate, for functions of known sign: of `q >= -dip` where `rises` (B,), of
        `q <= dip` elsewhere, and there `q <= -least` where `least` (B,) > 0.

        Statement: with w = exp(R |d|^2) q, s = R - rate, x = s rho2,

            q >= 0:  w exp(-s |d|^2) >= theta w                  for any 0 <= theta <= exp(-x),
            q <= 0:  w exp(-s |d|^2) >= w + least fall |d|^2,    fall = (1 - exp(-x)) / rho2.

        Reason: `w exp(-s |d|^2) = w - w (1 - exp(-s |d|^2))`, |w| >= |q| >= least, and the chord of
        a concave function lies below it. The dip costs at most `dip exp(R rho2)`, or x times that
        (Statement 5.5).
        """
        if rate == self.rate:
            return self
        xp, rho2 = namespace(self.value), self.geometry.rho2
        x = up((self.rate - rate) * rho2, 2)
        shrink = nonnegative(down(xp.exp(-x), EXP_ULPS + 4))
        lost = up(dip * self.heaviest * xp.where(rises, xp.ones_like(x), x), 8)
        lift = xp.where(rises, xp.zeros_like(x), least * weight_fall(self.rate - rate, rho2))
        light = self.scaled(xp.where(rises, shrink, xp.ones_like(x)))._bent(2.0 * lift)
        return replace(light.lowered(lost), rate=rate)

    def heavier(self, rate: float, least: PerCell) -> QuadraticLowerModel:
        """With a larger rate, for `q >= least >= 0` (B,): `exp(s |d|^2) w >= w + s least |d|^2`."""
        lift = down(nonnegative(2.0 * (rate - self.rate) * least), 2)
        return replace(self._bent(lift), rate=rate)

    def unweighted(
        self, geometry: ScaledCells, linear_error: PerCell | None = None
    ) -> QuadraticLowerModel:
        """Without a weight and in the coordinates of another geometry of the same cells.

        Statement: let `omega q >= value + p(d) - error`, omega = exp(r |d|^2), p(0) = 0, p <= M on
        the cell, x = r rho2. Then `q >= value + p(d) - value s |d|^2 - M min(x, 1) - error` with
        s = r where value > 0, and any 0 <= s <= r (1 - x / 2) elsewhere.
        Reason: `m / omega = m - m (1 - 1/omega)` for m = value + p - error, error >= 0, with
        `y (1 - x / 2) <= 1 - 1/omega <= min(y, x, 1)`, y = r |d|^2 (Statement 5.4). The linear one
        is taken where `linear_error`, within which q is of it, is less than error and curvature.
        """
        xp = namespace(self.value)
        value, hessian, error = self.value, self.matrix, self.error
        half, slopes, bends, zero = self.geometry.half, self.slopes, self._bends, 0.0 * value
        if self.rate > 0:
            x = up(self.rate * self.geometry.rho2, 2)
            fall = nonnegative(down(self.rate * (1.0 - 0.5 * x), 2))
            amount = -2.0 * value * xp.where(value > 0, zero + self.rate, fall)
            hessian = add_identity(hessian, amount)
            most = up(slopes + 0.5 * bends, 2 * half.shape[1] ** 2 + 8)
            bends = bends + xp.abs(amount) * xp.sum(half**2, axis=1)
            error = error + finite_product(xp.minimum(x, zero + 1.0), most)
        size = up(xp.abs(value) + slopes + bends, 2 * half.shape[1] ** 2 + 16)
        error = up(error + gamma(16) * size, 4)
        if linear_error is not None:
            linear = linear_error < error + 0.5 * bends
            hessian = xp.where(linear[:, None, None], xp.zeros_like(hessian), hessian)
            error = xp.where(linear, up(linear_error + gamma(16) * size, 4), error)
        source = self.geometry.pulled_back(self.gradient, hessian)
        if source is not None:  # Statement 13.9; its coordinates are those of `plain_geometry`
            assert bool((source.geometry.inverse_length == geometry.inverse_length).all())
            error = up(error + source.lost, 2)
            return QuadraticLowerModel(
                geometry, value, source.gradient, source.hessian, error, 0.0, size
            )
        scale = self.geometry.inverse_length / geometry.inverse_length  # powers of two below
        hessian = hessian * (scale[..., :, None] * scale[..., None, :])  # (f, f), or per cell
        return QuadraticLowerModel(
            geometry, value, self.gradient * scale, hessian, error, 0.0, size
        )

    def _bent(self, amount: Array) -> QuadraticLowerModel:
        """Of `q + exp(-rate |d|^2) amount |d|^2 / 2`: the polynomial with `amount I` added."""
        xp = namespace(amount)
        if self.hessian is None:
            return self.lowered(up(0.5 * nonnegative(-amount) * self.geometry.rho2, 4))
        size = up(self.size + xp.abs(amount) * xp.sum(self.geometry.half**2, axis=1), 8)
        hessian = add_identity(self.hessian, amount)
        return replace(self, hessian=hessian, known_size=size).lowered(gamma(4) * size)

    def _check_alike(self, other: QuadraticLowerModel) -> None:
        first, second = self.geometry, other.geometry
        same = first is second or bool((first.inverse_length == second.inverse_length).all())
        assert same, "enclosures in other coordinates"
        assert self.rate == other.rate, "enclosures with other weights"

    # ---- values and bounds

    def at(self, d: PerCellAndFeature) -> Array:
        """The polynomial at displacements d (B, f), in plain floating point."""
        return _polynomial(self.value, self.gradient, self.hessian, d)

    def value_at(self, d: PerCellAndFeature) -> PerCell:
        """About the smallest value that is allowed to q at d; finite, so a usable level."""
        xp = namespace(d)
        error = xp.where(xp.isfinite(self.error), self.error, xp.zeros_like(self.error))
        return (self.at(d) - error) * xp.exp(-self.rate * xp.sum(d**2, axis=1))

    def minimum(self, level: PerCell | None = None, steps: int = 2) -> Minimum:
        """Certified lower bound of q over the cells, by testing `q >= level`; -inf where nothing is
        known.

        Statement: with M <= min [exp(rate|d|^2) (q - level)],
        `q >= level + M` if M < 0, and `q >= level + M exp(-rate rho2)` if M >= 0.
        Reason: q - level = exp(-rate |d|^2) (...) and exp(-rate |d|^2) lies in
        [exp(-rate rho2), 1]; the weight of the level lies between 1 + rate |d|^2 and
        1 + growth_chord |d|^2 (Statement 5.1). Any level is valid, one near the minimum is best.
        Without one it starts at the vertex against the gradient, and is improved where the distance
        from the level may cost a `FELT` share of the way down from the centre.
        """
        xp = namespace(self.value)
        if level is not None:
            return self._tested(level)
        level = self.value_at(self._vertex)
        level = xp.where(xp.isfinite(level), level, self.value)
        best = self._tested(level)
        for _ in range(steps - 1 if self.rate > 0 else 0):
            cost = self.rate * self.geometry.rho2 * xp.abs(best.lower - level)
            asked = cost > FELT * (self.value - best.lower)
            if not bool(xp.any(asked)):
                break
            level = xp.where(asked, best.lower, level)
            best = best.or_better(self._tested(level), asked)
        return best

    def both_least(self, other: QuadraticLowerModel) -> tuple[PerCell, PerCell]:
        """The bounds of `minimum`, of this one and of another of the same cells in one batch."""
        self._check_alike(other)
        xp, B = namespace(self.value), len(self.value)
        rows = xp.arange(2 * B, device=device(self.value)) % B
        together = QuadraticLowerModel(
            self.geometry.take(rows),
            xp.concat([self.value, other.value], axis=0),
            xp.concat([self.gradient, other.gradient], axis=0),
            xp.concat([self.matrix, other.matrix], axis=0),
            xp.concat([self.error, other.error], axis=0),
            self.rate,
        )
        lower = together.minimum().lower
        return lower[:B], lower[B:]

    def at_level(self, level: PerCell) -> tuple[PerCellMatrix | None, PerCell]:
        """Hessian and error of a polynomial below `exp(rate |d|^2) (q - level)`, as in `minimum`;
        its value is `value - level`, the gradient the same."""
        if self.rate == 0.0:
            return self.hessian, self.error
        bend = level_bend(level, self.rate, self.geometry.rho2)
        return at_level(self.hessian, self.error, bend, (self.geometry.half, self.geometry.rho2))

    def _tested(self, level: Array) -> Minimum:
        geometry, rate, widths = self.geometry, self.rate, (self.geometry.half, self.geometry.rho2)
        if self.hessian is not None and geometry.is_plain and geometry.cells.is_box:
            bend = level_bend(level, rate, geometry.rho2) if rate > 0 else None
            least, slack = least_on_boxes(self.gradient, self.hessian, self.error, bend, widths)
        else:
            hessian, slack = self.at_level(level)
            if hessian is not None:
                least = _cell_minimum(geometry, self.gradient, hessian)
            else:  # a linear one is least at a vertex, exactly
                least = Minimum(geometry.least(self.gradient), self._vertex)
        sides = (self.value, least.lower, slack)
        return Minimum(above_level(sides, level, rate, geometry.rho2), least.point)

    @property
    def _vertex(self) -> Array:
        """(B, f): the vertex of each cell against the gradient."""
        half = self.geometry.half
        return namespace(half).where(self.gradient > 0, -half, half)


def _cell_minimum(geometry: ScaledCells, gradient: Array, hessian: Array) -> Minimum:
    """The minimum of a quadratic on cells, category by category where they hold categories."""
    scale = geometry.inverse_length
    if geometry.is_plain and geometry.columns is None and scale.ndim == 1:
        # user's units: two roundings an entry, which the bound counts
        scaled = hessian * (scale[:, None] * scale[None, :])
        lower = category_minimum(geometry.cells, gradient * scale, scaled)
        if lower is not None:
            best = box_minimum(geometry.half, gradient, hessian)
            return Minimum(namespace(lower).maximum(lower, best.lower), best.point)
    return quadratic_minimum(geometry, gradient, hessian)


def plain_geometry(cells: Cells) -> ScaledCells:
    """The cells in their region's units: powers of two, so that second derivatives are floats
    whatever the length-scales are; enclosures of several kernels meet there."""
    xp, unit = namespace(cells.lower), region_units(cells)
    return ScaledCells.of(cells, 1.0 / unit, xp.ones_like(unit), unit)


def region_units(cells: Cells) -> Annotated[Array, "f"]:
    """(f,) powers of two near the widths of the region in its free features."""
    units = widths_as_units(cells.region)
    return namespace(cells.lower).asarray(units, device=device(cells.lower))


@fused
def _scaled(
    factor: Array, coefficients: tuple[Array, Array, Array | None], error: Array, size: Array
) -> tuple[Array, Array, Array | None, Array, Array]:
    """See `QuadraticLowerModel.scaled`."""
    value, gradient, hessian = coefficients
    size = up(factor * size, 1)
    return (
        factor * value,
        factor[:, None] * gradient,
        None if hessian is None else factor[:, None, None] * hessian,
        up(finite_product(factor, error) + gamma(4) * size, 2),
        size,
    )


@fused
def _slopes(gradient: Array, half: Array) -> Array:
    xp = namespace(gradient)
    return xp.sum(xp.abs(gradient) * half, axis=1)


@fused
def _polynomial(value: Array, gradient: Array, hessian: Array | None, d: Array) -> Array:
    slope = gradient if hessian is None else gradient + 0.5 * products(hessian, d)[0]
    return value + namespace(d).sum(d * slope, axis=1)


@fused
def weight_fall(rate: float, rho2: PerCell) -> PerCell:
    """`(1 - exp(-rate rho2)) / rho2`, rounded down; `rate (1 - x/2)` in the limit of small x."""
    xp = namespace(rho2)
    x = rate * rho2
    safe = xp.where(x > 1e-8, x, xp.ones_like(x))
    quotient = xp.where(x > 1e-8, -xp.expm1(-safe) / safe, 1.0 - 0.5 * x)
    return nonnegative(down(rate * quotient, EXP_ULPS + 8))
