"""Phases w.x: their values, their reach over a cell, the range of |sin| there, Taylor remainders
of e^{iu}, and functions of phases.

Proofs: docs/mathematics.md, statements 2.3, 2.4 and 3.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Annotated

import numpy as np

from gpcert.kernels.nodes.base import Jet, NodeBatch
from gpcert.numerics.arrays import Array, Derivatives, PerCell, PerFeature, Points, Reals, namespace
from gpcert.numerics.rounding import POW_ULPS, SIN_COS_ULPS, gamma, nonnegative, up
from gpcert.regions.frame import Frame
from gpcert.regions.scaled import ScaledCells

LARGEST_CLOSED = 100.0
"""From this u on, `|e^{iu}| + |polynomial|` is as good as the closed form."""

QUARTER_TURN = 1.5707963267948966
"""pi/2 rounded down: an interval of at least this half-width may hold everything."""

SWING_ROUNDING = 2.0 * gamma(4 * SIN_COS_ULPS + 8)
"""Of `s cos e +- c sin e` from computed sines and cosines, all at most 1."""


def length_above(vector: PerFeature) -> float:
    """Upper bound of the Euclidean length of a host vector; exactly 0 for zero.

    Scaled by the largest entry: squares of entries near 1e-160 would vanish.
    """
    largest = float(np.abs(vector).max(initial=0.0))
    if largest == 0.0 or not np.isfinite(largest):
        return largest
    return float(up(largest * np.sqrt(np.square(vector / largest).sum()), len(vector) + 8))


@np.errstate(over="ignore")
def phase_reach(geometry: ScaledCells, frequency: Annotated[Array, "f"]) -> PerCell:
    """Upper bound (B,) of `|sum_j W_j d_j|` over each cell, W (f,) in frame coordinates.

    `sum |W_j| |d_j|` for the box; by Cauchy-Schwarz `|W / unit| |unit d|`, lengths in one unit
    for all features, where a ball makes the latter smaller.
    """
    xp = namespace(geometry.half)
    box = geometry.length(xp.abs(frequency))
    if geometry.cells.ball is None:
        return box
    if not len(frequency):
        return box
    relative = geometry.unit / xp.max(geometry.unit)
    slope = frequency / relative
    largest = xp.max(xp.abs(slope))
    if not 0.0 < float(largest) < math.inf:
        return box
    size = largest * xp.sqrt(xp.sum((slope / largest) ** 2))  # no square underflows for good
    ball = size * xp.sqrt(geometry.squared_norm(up(relative**2, 1)))
    return xp.minimum(box, up(ball, len(frequency) + 16))


@np.errstate(over="ignore")
def circle_remainders(u: Reals) -> tuple[Reals, ...]:
    """Upper bounds of `|e^{it} - sum_{k <= n} (it)^k / k!|` over |t| <= u, n = 0, 1, 2.

    The squares are `4 sin^2(t/2)`, `2 - 2 cos t - 2 t sin t + t^2` and
    `2 - 2 cos t - 2 t sin t + t^2 cos t + t^4/4`, the latter two increasing in t > 0 (derivatives
    `2 t (1 - cos t)` and `t^2 (t - sin t)`). They cancel for small t, where Taylor's bound
    `t^(n+1) / (n+1)!` is as good.

    >>> [round(float(r), 3) for r in circle_remainders(np.asarray(1e-3))]
    [0.001, 0.0, 0.0]
    """
    xp = namespace(u)
    t = xp.minimum(u, xp.full_like(u, LARGEST_CLOSED))
    c, s = xp.cos(t), xp.sin(t)
    first = 2.0 - 2.0 * c - 2.0 * t * s + t**2
    second = first - t**2 + t**2 * c + 0.25 * t**4
    rounding = gamma(2 * SIN_COS_ULPS + 12)
    # the sizes of the cancelling terms: their rounding is added in full
    first = first + rounding * (4.0 + 2.0 * t + t**2)
    second = second + rounding * (4.0 + 2.0 * t + 3.0 * t**2 + 0.25 * t**4)
    half_turn = xp.full_like(u, math.pi)  # below pi by 1.2e-16: the sine is 1 to 1e-32 there
    zeroth = up(2.0 * xp.sin(0.5 * xp.minimum(u, half_turn)), SIN_COS_ULPS + 2)
    whole = (2.0 + xp.zeros_like(u), 2.0 + u, 2.0 + u + 0.5 * u**2)
    remainders = []
    for n, closed in enumerate((zeroth, up(xp.sqrt(first), 4), up(xp.sqrt(second), 4))):
        crude = up(u ** (n + 1) / math.factorial(n + 1), POW_ULPS + 4)
        bound = xp.where(u <= LARGEST_CLOSED, closed, up(whole[n], 4))
        bound = xp.minimum(bound, crude)
        remainders.append(xp.where(u > 0, bound, xp.zeros_like(u)))
    return tuple(remainders)


def swing(sine: Reals, cosine: Reals, spread: Reals) -> tuple[Reals, Reals]:
    """`low <= |sin t'| <= high` for all `|t' - t| <= spread`, from computed sin t and cos t.

    With `|sin t| = sin a`, `|cos t| = cos a`, 0 <= a <= pi/2: the infimum is `sin(a - e)`, or 0
    once e >= a; the supremum `sin(a + e)`, or 1 once that has passed its peak, where
    `cos(a + e) <= 0`. For |cos|, exchange the first two arguments.

    >>> import numpy as np
    >>> low, high = swing(np.asarray(0.0), np.asarray(1.0), np.asarray(0.5))
    >>> float(low), bool(high >= np.sin(0.5))
    (0.0, True)
    """
    xp = namespace(spread)
    s, c = xp.abs(sine), xp.abs(cosine)
    e = xp.minimum(spread, xp.full_like(spread, QUARTER_TURN))
    along, across = xp.cos(e), xp.sin(e)
    low = nonnegative(s * along - c * across - SWING_ROUNDING)
    high = s * along + c * across + SWING_ROUNDING
    whole = spread >= QUARTER_TURN
    peak = whole | (c * along - s * across <= SWING_ROUNDING) | (high > 1.0)
    return xp.where(whole, xp.zeros_like(low), low), xp.where(peak, xp.ones_like(high), high)


@dataclass(frozen=True, eq=False)
class AffinePhase:
    """`x -> slope.x + constant` at centres, the features that a region holds fixed folded in."""

    slope: Array
    """(f,) in the user's units."""
    frequency: Array
    """(f,) in frame coordinates: slope times unit, exact."""
    length: float
    """Upper bound of |frequency|."""
    constant: float
    size: float
    """Upper bound of the sum of the absolute values of the terms of `constant`."""
    features: int
    """All of them, fixed ones too."""

    @staticmethod
    def of(slope: PerFeature, constant: float, frame: Frame) -> AffinePhase:
        """Bind to a frame."""
        free, fixed = slope[frame.free], slope[frame.fixed]
        with np.errstate(over="ignore"):
            frequency = free * frame.unit
            size = np.abs(fixed) @ np.abs(frame.fixed_values) + abs(constant)
        return AffinePhase(
            frame.backend.asarray(free),
            frame.backend.asarray(frequency),
            length_above(frequency),
            float(fixed @ frame.fixed_values) + constant,
            float(up(size, len(fixed) + 4)),
            len(slope),
        )

    def at(self, geometry: ScaledCells) -> tuple[PerCell, PerCell]:
        """Values (B,) at the exact floats of the centres and bounds of their errors."""
        return _affine(geometry.exact_center, self.slope, self.constant, (self.size, self.features))

    @staticmethod
    def of_points(
        points: Points, slope: np.ndarray, constant: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """The same at host points (N, d)."""
        return _affine(points, slope, constant, (abs(constant), len(slope)))


@np.errstate(over="ignore", invalid="ignore")
def _affine(
    X: Array, slope: Array, constant: float, terms: tuple[float, int]
) -> tuple[Array, Array]:
    """`X slope + constant` and bounds of the errors: products and sums of all features, of terms
    that are counted, those of the constant by `terms`, their size and the number of all features.
    An unknown value is called 0 +- infinity."""
    xp, (known_size, features) = namespace(X), terms
    value = X @ slope + constant
    size = xp.abs(X) @ xp.abs(slope) + known_size
    error = up(gamma(features + 4) * size, features + 8)
    known = xp.isfinite(value) & xp.isfinite(error)
    zero = xp.zeros_like(value)
    return xp.where(known, value, zero), xp.where(known, error, zero + math.inf)


class PhaseBatch(NodeBatch):
    """Functions of a few phases w_a.x: derivatives along each of them, times its W_a (f,)."""

    frequencies: tuple[Array, ...]
    """W_a, in frame coordinates."""

    first: list[Array]
    """(B, N) for each phase: the derivatives of k(., z_i) along it."""

    @cached_property
    def _outer(self) -> list[Array]:
        return [W[:, None] * W[None, :] for W in self.frequencies]

    def _jet(self, value: Array, first: list[Array], second: list[Array]) -> Jet:
        """From the value and the derivatives along the phases, all (B,)."""
        slopes = [s[:, None] * W[None, :] for s, W in zip(first, self.frequencies, strict=True)]
        bends = [b[:, None, None] * outer for b, outer in zip(second, self._outer, strict=True)]
        return Jet(value, reduce(add, slopes), reduce(add, bends))

    def gradients(self) -> Derivatives:
        """`sum_a first_a W_a`."""
        waves = zip(self.first, self.frequencies, strict=True)
        return reduce(add, [s[:, None, :] * W[None, :, None] for s, W in waves])
