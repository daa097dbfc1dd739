"""How probable it is that a function is below a level, on cells that its level set crosses.

The set is an interval of the steepest coordinate whose end is enclosed by quadratics of the others;
the distribution function at that end by its own quadratics, which integrate by moments.

Proofs: docs/mathematics.md, statements 22.5 to 22.7.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, NamedTuple

import numpy as np

from gpcert.enclosures.affine import AffineBound
from gpcert.enclosures.lower_model import QuadraticLowerModel, plain_geometry
from gpcert.enclosures.mean import MeanEnclosure, Units
from gpcert.integrals.families import Normal
from gpcert.integrals.input_law import InputLaw, Moments
from gpcert.numerics.arrays import PerCell, PerCellAndFeature, PerCellMatrix, to_numpy
from gpcert.numerics.rounding import TINY, U, down, gamma, nonnegative, up
from gpcert.regions import Cells

Bounds = tuple[PerCell, PerCell]

STEEP = 0.5
"""The steepest coordinate's slope may change by this part of itself on a cell that is looked at."""


class Polynomial(NamedTuple):
    """`w f(c + d)` of a function f lies between the quadratic less `below` and the quadratic plus
    `above`, for some w > 0 and every d of the cell; d in the inputs' units, |d_j| <= half_j."""

    value: PerCell
    gradient: PerCellAndFeature
    hessian: PerCellMatrix
    below: PerCell
    above: PerCell
    half: PerCellAndFeature


def size_of(
    gradient: PerCellAndFeature, hessian: PerCellMatrix, half: PerCellAndFeature
) -> PerCell:
    """At least `|g.d| + |d^T H d| / 2` on the cell, but for rounding."""
    bends = np.einsum("ij,ijk,ik->i", half, abs(hessian), half)
    return np.sum(abs(gradient) * half, axis=1) + 0.5 * bends


@np.errstate(over="ignore", invalid="ignore")
def mean_polynomial(mean: MeanEnclosure, cells: Cells, level: float, sign: int) -> Polynomial:
    """Of `sign mu - level`.

    `w = exp(rate |d|^2)` is positive, so the set where the function is negative is that of the
    weighted one (Statement 5.1 has the weight of the level).
    """
    if not mean.geometry.is_plain:
        mean = mean.plain(plain_geometry(cells))
    value, gradient, hessian, below = side_at_level(mean.side(sign), mean.units.signed(sign), level)
    v, g, h, above = side_at_level(mean.side(-sign), mean.units.signed(-sign), -level)
    half = to_numpy(cells.half)
    apart = abs(value + v) + size_of(gradient + g, hessian + h, half)
    count = 4 * half.shape[1] ** 2 + 16
    size = abs(value) + size_of(gradient, hessian, half)
    return Polynomial(
        value, gradient, hessian, below, up(above + apart + gamma(4) * size, count), half
    )


@np.errstate(over="ignore", invalid="ignore")
def affine_polynomial(
    below: AffineBound, above: AffineBound, cells: Cells, level: float
) -> Polynomial:
    """Of `f - level`, from an affine function below f and one below -f."""
    value, gradient = to_numpy(below.value), to_numpy(below.slope)
    half, v, g = to_numpy(cells.half), to_numpy(above.value), to_numpy(above.slope)
    apart = abs(value + v) + np.sum(abs(gradient + g) * half, axis=1)
    rounding = gamma(2) * (abs(value) + abs(level))
    flat = np.zeros((*gradient.shape, gradient.shape[1]))
    count = half.shape[1] + 8
    above_error = up(apart + rounding, count)
    return Polynomial(value - level, gradient, flat, up(rounding, 2), above_error, half)


def side_at_level(
    model: QuadraticLowerModel, units: Units, level: float
) -> tuple[PerCell, PerCellAndFeature, PerCellMatrix, PerCell]:
    """Value, gradient, Hessian and error of a polynomial below a weighted `y - level`, in units
    where that is q less a number, and in the displacements of x."""
    shift, factor = units.shift, float(units.factor)
    shift = shift if isinstance(shift, float) else to_numpy(shift)
    near = (level - shift) / factor + 0.0 * to_numpy(model.value)
    lost = up(16.0 * U * (abs(near) + (abs(shift) + abs(level)) / factor) + TINY, 8)
    place = model.geometry.cells.placed
    hessian, error = model.at_level(place(near))
    gradient, value = to_numpy(model.gradient), to_numpy(model.value)
    hessian = (
        to_numpy(hessian) if hessian is not None else np.zeros((*gradient.shape, gradient.shape[1]))
    )
    inverse = to_numpy(model.geometry.inverse_length)
    half = to_numpy(model.geometry.half)
    gamma_size = gamma(8) * (abs(value) + abs(near) + size_of(gradient, hessian, half))
    error = up(
        to_numpy(error) + gamma_size + lost * to_numpy(model.heaviest), 8 + 4 * len(half[0]) ** 2
    )
    error = error + TINY
    hessian = hessian * inverse[..., :, None] * inverse[..., None, :]
    return value - near, gradient * inverse, hessian, error


@dataclass(frozen=True, eq=False)
class Surface:
    """Where a function is negative, `s d_j < z(d')` with d' the other coordinates, s = +-1 and
    `|z - (value + slope.d' + d'^T bend d' / 2)| <= above` where that is from above, `below` from
    below; `slope` and `bend` are 0 at j. Nothing is said where not `known`."""

    axis: Annotated[np.ndarray, "B"]
    sign: PerCell
    value: PerCell
    slope: PerCellAndFeature
    bend: PerCellMatrix
    below: PerCell
    above: PerCell
    known: PerCell

    @property
    def opposite(self) -> Surface:
        """The other side of the surface."""
        return replace(
            self,
            sign=-self.sign,
            value=-self.value,
            slope=-self.slope,
            bend=-self.bend,
            below=self.above,
            above=self.below,
        )


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _surface(p: Polynomial) -> Surface:
    """Statement 22.5: with `a = |g_j|`, `u = k + b.d'` the zero of the linear part and
    `Q(d') = T(u, d')` the terms of second order there, the function is `(a + theta) (d_j - u) + Q`
    with |theta| <= Theta on the cell, so the zero is `u - Q / (a + theta)`."""
    rows, half = np.arange(len(p.value)), p.half
    axis = np.argmax(abs(p.gradient) * half, axis=1)
    others = np.ones_like(half)
    others[rows, axis] = 0.0
    steepest = p.gradient[rows, axis]
    sign = np.where(steepest < 0, -1.0, 1.0)
    a, own = abs(steepest), p.hessian[rows, axis, axis]
    mixed = sign[:, None] * p.hessian[rows, axis] * others
    rest = p.hessian * others[:, :, None] * others[:, None, :]
    w = half * others
    k, b = -p.value / a, -(p.gradient * others) / a[:, None]
    reach = abs(k) + np.sum(abs(b) * w, axis=1)
    theta = np.sum(abs(mixed) * w, axis=1) + abs(own) * np.maximum(half[rows, axis], reach)
    theta = up(theta, 8 + 2 * half.shape[1])
    outer = b[:, :, None] * mixed[:, None, :]
    quadratic = (
        rest
        + outer
        + np.swapaxes(outer, 1, 2)
        + own[:, None, None] * (b[:, :, None] * b[:, None, :])
    )
    linear = k[:, None] * mixed + (own * k)[:, None] * b
    constant = 0.5 * own * k * k
    # sizes of all terms: what their rounding may be a part of, and of Q itself
    outer = abs(b)[:, :, None] * abs(mixed)[:, None, :]
    parts = (
        abs(rest)
        + 2.0 * outer
        + abs(own)[:, None, None] * (abs(b)[:, :, None] * abs(b)[:, None, :])
    )
    lines = abs(k)[:, None] * abs(mixed) + abs(own * k)[:, None] * abs(b)
    size = abs(constant) + size_of(lines, parts, w)
    count = 4 * half.shape[1] ** 2 + 40
    least = down(a - theta, 1)
    known = (theta < STEEP * a) & np.isfinite(p.below + p.above + size + reach) & (least > 0)
    moved = abs(constant) + size_of(linear, quadratic, w) + gamma(40) * size
    moved = up(moved * theta / (a * least) + gamma(64) * (reach + size / a) + TINY, count)
    return Surface(
        axis,
        sign,
        k - constant / a,
        b - linear / a[:, None],
        -quadratic / a[:, None, None],
        up(moved + p.above / least, 4),
        up(moved + p.below / least, 4),
        known,
    )


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def negative_shares(
    p: Polynomial,
    law: InputLaw,
    low: np.ndarray,
    high: np.ndarray,
    moments: Moments,
    scores: PerCellAndFeature,
) -> tuple[PerCell, PerCell, PerCellAndFeature]:
    """Proved bounds of the probability that the function is negative, given the cell, and what
    halving each axis may gain; `scores` say how much that takes off the polynomial's errors."""
    surface = _surface(p)
    rows, axis = np.arange(len(low)), surface.axis
    own = (low[rows, axis], high[rows, axis], moments.center[rows, axis], moments.half[rows, axis])
    ends = _Axis(law, axis, surface.sign, *own)
    return surface_shares(
        surface, ends, replace(ends, sign=-surface.sign), _without(moments, axis), scores
    )


def surface_shares(
    surface: Surface, ends: Ends, turned: Ends, others: Moments, scores: PerCellAndFeature
) -> tuple[PerCell, PerCell, PerCellAndFeature]:
    """Bounds of the probability of the event, `turned` the law of the opposite one."""
    parts = scores / np.sum(scores, axis=1)[:, None]
    upper, gains = _most(surface, ends, others, parts)
    rest, more = _most(surface.opposite, turned, others, parts)
    lower = np.clip(down(1.0 - rest, 1), 0.0, 1.0)
    known = surface.known & ~np.isnan(upper + lower)
    gains = np.where(known[:, None], gains + more, np.inf)
    return np.where(known, lower, 0.0), np.where(known, upper, 1.0), gains


class Quadratic(NamedTuple):
    """`value + slope.d + d^T bend d / 2` on cells with `moments`."""

    value: PerCell
    slope: PerCellAndFeature
    bend: PerCellMatrix
    moments: Moments

    def about(self, place: PerCell) -> tuple[Bounds, Bounds]:
        """Bounds of the mean of `z - place` and of its square."""
        m, slope, bend = self.moments, self.slope, self.bend
        value = self.value - place
        along = np.sum(slope * m.first, axis=1)
        curve = np.einsum("ijj->ij", bend)
        spread = nonnegative(m.second - m.first**2)
        mixed = np.einsum("ij,ijk,ik->i", m.first, bend, m.first)
        mean = value + along + 0.5 * (mixed + np.sum(curve * spread, axis=1))
        loose = m.second_error + 2.0 * m.half * m.first_error
        count = 4 * slope.shape[1] ** 2 + 40
        size = abs(self.value) + abs(place)
        size = size + size_of(slope, bend, m.half)
        first = np.sum(abs(slope) * m.first_error, axis=1)
        rows = np.einsum("ijk,ik->ij", abs(bend), m.half)
        bent = np.sum(rows * m.first_error, axis=1) + 0.5 * np.sum(abs(curve) * loose, axis=1)
        error = up(first + bent + gamma(count) * size, count)
        # the square of the affine part: its mean's square and its variance
        middle = value + along
        off = up(first + gamma(count) * size, count)
        variance = np.sum(slope**2 * spread, axis=1)
        wide = up(np.sum(slope**2 * loose, axis=1) + gamma(count) * size**2, count)
        rest = up(0.5 * np.einsum("ij,ijk,ik->i", m.half, abs(bend), m.half), count)
        near, far = nonnegative(abs(middle) - off), abs(middle) + off
        least = nonnegative(down(down(near**2, 2) + variance - wide, 4))
        most = up(far**2 + variance + wide, 4)
        # |z|_2 is within |rest| of that of the affine part
        least = down(nonnegative(down(np.sqrt(least), 1) - rest) ** 2, 4)
        most = up((up(np.sqrt(most), 1) + rest) ** 2, 4)
        return (down(mean - error, 2), up(mean + error, 2)), (nonnegative(least), most)


def _most(
    surface: Surface, ends: Ends, others: Moments, parts: PerCellAndFeature
) -> tuple[PerCell, PerCellAndFeature]:
    """At least the probability, given the cell, of `s d_j < z(d')` (Statements 22.6 and 22.7);
    `others` are the moments of d'."""
    center, w = ends.center, ends.half
    middle = surface.value + surface.above + 8.0 * U * (abs(center) + w)
    middle = up(middle, 2)
    z = Quadratic(middle, surface.slope, surface.bend, others)
    spread = size_of(surface.slope, surface.bend, others.half)
    spread = up(spread, 4 * others.half.shape[1] ** 2 + 16)
    least, most = down(middle - spread, 2), up(middle + spread, 2)
    place = np.clip(middle, -w, w)
    from_, to = np.clip(least, -w, w), np.clip(most, -w, w)
    # at most the share up to the last place of the surface
    bound = np.where(most <= -w, 0.0, ends.share(to))
    (_, mean_high), (square_low, square_high) = z.about(place)
    p = ends.density(place)
    bend = ends.slope(np.minimum(from_, place), np.maximum(to, place))
    outside = (most > w) | (least < -w)
    bend = (
        np.where(outside, np.minimum(bend[0], 0.0), bend[0]),
        np.where(outside, np.maximum(bend[1], 0.0), bend[1]),
    )
    line = np.maximum(p[0] * mean_high, p[1] * mean_high)
    curve = 0.5 * np.maximum(bend[1] * square_high, bend[1] * square_low)
    smooth = ends.share(place) + line + curve
    size = 1.0 + abs(line) + abs(curve)
    # what is counted beyond the far end, and what is counted as negative before the near one
    over, under = _overshoot(z, least, most, w), _undershoot(z, least, most, w)
    beyond, before = ends.density(w)[0] * over, ends.density(-w)[1] * under
    size = size + abs(beyond) + abs(before)
    # z and the cell's ends in floats of x: the place's, and that of both ends
    steep = np.maximum(abs(bend[0]), abs(bend[1])) * (abs(least) + abs(most) + w)
    before = before + 32.0 * U * (abs(center) + w) * (p[1] + ends.density(-w)[1] + steep)
    smooth = up(smooth - beyond + before + gamma(64) * size, 4)
    bound = np.fmin(bound, smooth)
    # what halving an axis may gain: the surface's place, its slope where it leaves the cell
    density = abs(p[1])
    leaves = outside[:, None] * abs(surface.slope) * others.half
    third = 0.5 * (bend[1] - bend[0])[:, None] * (abs(surface.slope) * others.half) ** 2
    errors = surface.above[:, None] * parts
    gains = density[:, None] * (errors + 0.1 * leaves) + third
    return np.clip(bound, 0.0, 1.0), np.where(np.isfinite(gains), gains, 0.0)


def _without(m: Moments, axis: np.ndarray) -> Moments:
    """The moments with 0 at one coordinate of each cell."""
    others = np.arange(m.half.shape[1]) != axis[:, None]
    return Moments(*(np.where(others, each, 0.0) for each in m))


def _overshoot(z: Quadratic, least: PerCell, most: PerCell, w: PerCell) -> PerCell:
    """At most `E max(z - w, 0)`: with v = z - w in [-a, b], `v (v + a) / (a + b) <= max(v, 0)`."""
    (mean, _), _ = z.about(w)
    a, b = up(w - least, 2), up(most - w, 2)
    # v (v + a) = (v + a / 2)^2 - a^2 / 4
    _, (square, _) = z.about(w - 0.5 * a)
    # a / 2 is exact, w - a / 2 is a float: v + a/2 is z less that float up to its rounding
    lost = 8.0 * U * (abs(w) + abs(a)) * (a + b)
    curved = down((square - 0.25 * a * a - lost - gamma(16) * (square + a * a)) / (a + b), 4)
    inner = np.fmax(np.fmax(curved, mean), 0.0)
    return np.where(b <= 0, 0.0, np.where(a <= 0, nonnegative(mean), inner))


def _undershoot(z: Quadratic, least: PerCell, most: PerCell, w: PerCell) -> PerCell:
    """At least `E max(v, 0)`, v = -w - z in [-a, b]: `b (v + a)^2 / (a + b)^2`, if b <= a, else
    `v + a (b - v)^2 / (a + b)^2`; or the chord `b (v + a) / (a + b)`."""
    (low, _), _ = z.about(-w)
    mean = -low
    a, b = up(most + w, 2), up(-w - least, 2)
    width = down(a + b, 2)
    _, (_, from_top) = z.about(up(most, 4) + 64.0 * U * w)  # (v + a)^2, or more
    _, (_, from_bottom) = z.about(down(least, 4) - 64.0 * U * w)
    first = up(b * from_top / width**2, 8)
    second = up(mean + up(a * from_bottom / width**2, 8), 2)
    curved = np.where(b <= a, first, second)
    chord = up(b * nonnegative(mean + a) / width, 8)
    inner = np.fmin(np.fmin(curved, chord), b)
    return np.where(b <= 0, 0.0, nonnegative(np.where(a <= 0, up(mean, 1), inner)))


class Ends(ABC):
    """The law of `s d_j` given the cell, in z: `x_j = center + s z`, |z| <= half."""

    center: PerCell
    half: PerCell

    @abstractmethod
    def share(self, z: PerCell) -> PerCell:
        """At least P[s d_j < z], z within the cell; the rounding of x is in the surface's place."""

    @abstractmethod
    def density(self, z: PerCell) -> Bounds:
        """Bounds of the density at z."""

    @abstractmethod
    def slope(self, first: PerCell, last: PerCell) -> Bounds:
        """Bounds of its derivative on an interval."""


REACH = 40.0
"""Beyond so many standard deviations a normal variable has less than 2^-1000 of its mass."""


@dataclass(frozen=True, eq=False)
class NormalEnds(Ends):
    """Of a standard normal variable."""

    center: PerCell
    half: PerCell

    def share(self, z: PerCell) -> PerCell:
        return np.clip(Normal().below(z)[1] + TINY, 0.0, 1.0)

    def density(self, z: PerCell) -> Bounds:
        return Normal().density(z)

    def slope(self, first: PerCell, last: PerCell) -> Bounds:
        return Normal().slope_range(first, last)


@dataclass(frozen=True, eq=False)
class _Axis(Ends):
    """Of the input `axis` (B,) of a law, given that it lies in [low, high]."""

    law: InputLaw
    axis: np.ndarray
    sign: np.ndarray
    low: np.ndarray
    high: np.ndarray
    center: np.ndarray
    half: np.ndarray

    def share(self, z: PerCell) -> PerCell:
        x = np.clip(self.center + self.sign * z, self.low, self.high)
        first, last = np.where(self.sign > 0, self.low, x), np.where(self.sign > 0, x, self.high)
        part, whole = self._marginal("mass", first, last), self._mass
        return np.clip(up(part[1] / whole[0], 2), 0.0, 1.0)

    def density(self, z: PerCell) -> Bounds:
        x = np.clip(self.center + self.sign * z, self.low, self.high)
        found = self._marginal("density", x, x)
        return down(found[0] / self._mass[1], 2), up(found[1] / self._mass[0], 2)

    def slope(self, first: PerCell, last: PerCell) -> Bounds:
        ends = [np.clip(self.center + self.sign * z, self.low, self.high) for z in (first, last)]
        least, most = self._marginal("slope", np.minimum(*ends), np.maximum(*ends))
        least, most = np.where(self.sign > 0, least, -most), np.where(self.sign > 0, most, -least)
        outward = [
            np.where(end > 0, move(end / self._mass[1 - k], 2), move(end / self._mass[k], 2))
            for k, (end, move) in enumerate(((least, down), (most, up)))
        ]
        return outward[0], outward[1]

    @cached_property
    def _mass(self) -> Bounds:
        return self._marginal("mass", self.low, self.high)

    def _marginal(self, name: str, low: PerCell, high: PerCell) -> Bounds:
        least, most = np.empty(len(low)), np.empty(len(low))
        for j in np.unique(self.axis):
            rows = np.flatnonzero(self.axis == j)
            least[rows], most[rows] = getattr(self.law.marginals[j], name)(low[rows], high[rows])
        return least, most
