"""The linear trend of a latent mean over cells, in unit form.

The trend at a centre far from zero may be large where nothing varies, and a weighted enclosure pays
for constants. So the trend at one point of the region goes into the offset, exactly; what is left
is `slope.(z - origin)`, no larger than what the trend does on the region.

Proofs: docs/mathematics.md, statement 5.8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from gpcert.arrays import Array, Backend, namespace
from gpcert.enclosures.enclosure import Enclosure
from gpcert.errors import InputError
from gpcert.kernels.expansions.geometry import Geometry
from gpcert.posterior import Posterior
from gpcert.regions import Region
from gpcert.regions.image import ImageCells
from gpcert.rounding import TINY, down, gamma, up
from gpcert.trend import exact_dot

__all__ = ["CellTrend", "LocalTrend"]


@dataclass(frozen=True, eq=False)
class CellTrend:
    """`T(c + d) = value + gradient.d` on each cell, d in the coordinates of `geometry`.

    `value` (B,) is off by at most `error`, the gradient (B, f) by two roundings an entry; `size` is
    at least that of all terms on the cell. `gradient.d` lies between `fall` and `rise` (B,). At the
    point that the centre stands for (see `LocalKernel.center_shift`) T is within `center_error`.
    """

    geometry: Geometry
    value: Array
    gradient: Array
    error: Array
    center_error: Array
    size: Array
    fall: Array
    rise: Array

    def added(self, enclosure: Enclosure, sign: int) -> Enclosure:
        """Of `sign (q + T)` from one of `sign q` in the same coordinates."""
        found = enclosure.shifted(sign * self.value, self.size, sign * self.gradient)
        return found.lowered(up(self.error * enclosure.heaviest, 2))

    def lowest(self, sign: int) -> Array:
        """Lower bound (B,) of `sign T` over the cell."""
        return self.above(self.drift(sign), sign)

    def above(self, lower: Array, sign: int) -> Array:
        """Lower bound (B,) of `sign (q + T)` from one of `sign q + sign gradient.d`; never NaN."""
        xp = namespace(lower)
        found = down(down(lower + sign * self.value, 1) - self.error, 1)
        return xp.where(xp.isnan(found), xp.full_like(found, -math.inf), found)

    def drift(self, sign: int) -> Array:
        """Lower bound (B,) of `sign T` less its value at the centre, over the cell."""
        return self.fall if sign > 0 else -self.rise

    @property
    def reach(self) -> Array:
        """Upper bound (B,) of |T| over the cell."""
        far = namespace(self.value).maximum(-self.fall, self.rise)
        return up(abs(self.value) + self.error + far, 4)


@dataclass(frozen=True, eq=False)
class LocalTrend:
    """The trends of all outputs on a region: `offset' + mean_scale (k' t' + slope'.(z - origin) +
    rest)`, where `offsets` (m,) are the floats next to `offset + scale slope.origin`.

    `slopes` (m, f) are those of the features that the region leaves free; `rests` (m,) what
    rounding the offset leaves, to one rounding.
    """

    slopes: Array
    origin: Array
    offsets: tuple[float, ...]
    rests: tuple[float, ...]

    @staticmethod
    def of(posterior: Posterior, seen: Region, backend: Backend) -> LocalTrend | None:
        """On the region `seen`, in the features that the kernel sees; None without a trend."""
        if not posterior.has_trend:
            return None
        unit, origin = posterior.unit, seen.center
        offsets, rests = [], []
        for c, slope in enumerate(posterior.slope):
            number, scale = float(posterior.offset[c]), float(posterior.scale[c])
            moved = Fraction(number)
            if np.any(slope):
                moved += Fraction(scale) * exact_dot(slope.tolist(), origin.tolist())
            try:
                offsets.append(float(moved))
                rest = (moved - Fraction(offsets[c])) / Fraction(unit.mean_scale[c])
                rests.append(float(rest))
            except OverflowError as error:
                raise InputError(
                    f"output {c}: its linear trend leaves float64 on this region; expected "
                    "predictions below 1e300: take a smaller region, or rescale the targets"
                ) from error
        slopes, free = backend.asarray(unit.slope[:, seen.free]), seen.free
        return LocalTrend(slopes, backend.asarray(origin[free]), tuple(offsets), tuple(rests))

    @np.errstate(over="ignore", invalid="ignore")  # huge boxes: bounds become trivial
    def on(self, geometry: Geometry, output: int) -> CellTrend:
        """The trend of an output on cells.

        Differences of centres carry one rounding, their products and sums f + 2 more; TINY counts
        what underflows, of a slope in unit form too, which meets |z - origin|.
        """
        cells, slope, rest = geometry.cells, self.slopes[output], self.rests[output]
        xp = namespace(cells.center)
        f = slope.shape[0]
        away = cells.center - self.origin
        half = cells.half
        value = away @ slope + rest
        terms = xp.abs(away) @ xp.abs(slope) + abs(rest)
        moves = half @ xp.abs(slope)
        lost = TINY * (f + 2.0 + xp.sum(xp.abs(away) + half + geometry.half, axis=1))
        error = up(gamma(f + 8) * terms + lost, f + 8)
        rows = xp.zeros_like(away) + slope
        low, high = cells.linear_minimum(rows), cells.linear_maximum(rows)
        size = up(xp.abs(value) + terms + moves, f + 16)
        center_error = error
        if isinstance(cells, ImageCells):
            center_error = up(error + xp.sum(xp.abs(slope) * cells.offset), f + 8)
        return CellTrend(
            geometry,
            value,
            rows / geometry.inverse_length,
            error,
            center_error,
            size,
            down(low, 2),
            up(high, 2),
        )
