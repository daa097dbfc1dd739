"""A latent mean or variance of one output on a batch of cells: both sides, and its units.

Proofs: docs/mathematics.md, statements 1.8 and 5.7.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from typing import Self

from gpcert.arrays import Array, Index, PerCell, Reals, namespace
from gpcert.enclosures.enclosure import Enclosure
from gpcert.kernels.expansions.base import Geometry
from gpcert.rounding import U, down, up


@dataclass(frozen=True)
class Units:
    """`y = shift + factor q`, the factor to one rounding: from q in unit form to an output's y.

    Bounds are made in unit form, where all numbers are about one, and leave it here: squares and
    eigenvalues of numbers of 1e-200 never arise.
    """

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

    below: Enclosure
    above: Enclosure
    center: PerCell
    center_error: PerCell
    units: Units

    @property
    def geometry(self) -> Geometry:
        """The cells as the kernel sees them."""
        return self.below.geometry

    def side(self, sign: int) -> Enclosure:
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

    def plain(self, geometry: Geometry) -> Self:
        """Without a weight, in the coordinates of another geometry of the same cells."""
        sides = (side.unweighted(geometry) for side in (self.below, self.above))
        return replace(self, below=next(sides), above=next(sides))

    def times(self, coefficient: PerCell) -> Enclosure:
        """Of `coefficient q`, coefficients (B,) of any sign."""
        chosen = self.below.where(coefficient > 0, self.above)
        return chosen.scaled(abs(coefficient))
