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

from gpcert.kernels.nodes.base import Jet, LocalNode, NodeBatch, Triple
from gpcert.numerics.arrays import (
    Array,
    Derivatives,
    PerCell,
    PerCellAndPoint,
    PerFeature,
    PerVector,
    Points,
    Reals,
    namespace,
)
from gpcert.numerics.rounding import POW_ULPS, SIN_COS_ULPS, gamma, nonnegative, root, up
from gpcert.regions.cells import Frame
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


def swing(
    sine: Reals, cosine: Reals, spread: Reals, amplitude: Reals = 1.0, error: Reals = 0.0
) -> tuple[Reals, Reals]:
    """`low <= |r sin t'| <= high` for all `|t' - t| <= spread`, from computed r sin t and r cos t
    within `error`, `0 <= r <= amplitude`.

    With `|sin t| = sin a`, `|cos t| = cos a`, 0 <= a <= pi/2: the infimum is `r sin(a - e)`, or 0
    once e >= a; the supremum `r sin(a + e)`, or r once that has passed its peak, where
    `cos(a + e) <= 0`. For |cos|, exchange the first two arguments.

    >>> import numpy as np
    >>> low, high = swing(np.asarray(0.0), np.asarray(1.0), np.asarray(0.5))
    >>> float(low), bool(high >= np.sin(0.5))
    (0.0, True)
    """
    xp = namespace(spread)
    s, c, lost = xp.abs(sine), xp.abs(cosine), SWING_ROUNDING * amplitude + 2.0 * error
    e = xp.minimum(spread, xp.full_like(spread, QUARTER_TURN))
    along, across = xp.cos(e), xp.sin(e)
    low = nonnegative(s * along - c * across - lost)
    high = s * along + c * across + lost
    whole = spread >= QUARTER_TURN
    peak = whole | (c * along - s * across <= lost) | (high > amplitude)
    most = amplitude + xp.zeros_like(high)
    return xp.where(whole, xp.zeros_like(low), low), xp.where(peak, most, high)


def known_phase(phase: PerVector, error: PerVector) -> tuple[PerVector, PerVector]:
    """A phase with an error of a turn or more is called 0, its error infinite."""
    xp = namespace(phase)
    known = error < 1.0
    zero = xp.zeros_like(phase)
    return xp.where(known, phase, zero), xp.where(known, error, zero + math.inf)


@dataclass(frozen=True, eq=False)
class FramePhase:
    """`x -> frequency.x` of frame coordinates, whose errors are counted at the points."""

    frequency: Array
    length: float
    """Upper bound of |frequency|."""

    def at(self, geometry: ScaledCells) -> tuple[PerCell, PerCell]:
        """Values (B,) and errors of zero; one that overflows is unknown."""
        with np.errstate(over="ignore", invalid="ignore"):
            phase = geometry.center @ self.frequency
        xp = namespace(phase)
        known, zero = xp.isfinite(phase), xp.zeros_like(phase)
        return xp.where(known, phase, zero), xp.where(known, zero, zero + math.inf)


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


@dataclass(frozen=True, eq=False)
class LocalWaves(LocalNode):
    """`v Re(Psi(x) conj Psi(z_i))`, `Psi(x) = sum_a e^{i alpha_a(x)}`, alpha_a the phases: kernels
    of few features that are sums of cosines and of sines. With `Psi(z_i) = C_i + i S_i` everything
    is a product of a row and a column:

        k = v sum_a E_ai,                  E_ai = cos(alpha_a) C_i + sin(alpha_a) S_i,
        D_d k = v sum_a (W_a.d) O_ai,      O_ai = -sin(alpha_a) C_i + cos(alpha_a) S_i,
        D_d^2 k = -v sum_a (W_a.d)^2 E_ai.
    """

    phases: tuple[AffinePhase | FramePhase, ...]
    real: Array
    """(N,): C_i."""
    imaginary: Array
    point_errors: Array
    """(N,): sums over a of the errors of alpha_a(z_i), those of `FramePhase` included."""
    variance: float


class WavesBatch(PhaseBatch):
    """See `NodeBatch` and `LocalWaves`."""

    def __init__(self, node: LocalWaves, geometry: ScaledCells) -> None:
        xp, count = namespace(geometry.center), len(node.phases)
        self.node, self.geometry = node, geometry
        self.frequencies = tuple(phase.frequency for phase in node.phases)
        # of `cos C + sin S`: those of the sines and cosines, two products, two sums, and v and W,
        # relative to `sum_b |cos alpha cos beta_b| + |sin alpha sin beta_b| <= count`
        self.rounding = count * gamma(2 * SIN_COS_ULPS + 8)
        self.centers = [known_phase(*phase.at(geometry)) for phase in node.phases]
        self.circle = [(xp.cos(alpha), xp.sin(alpha)) for alpha, _ in self.centers]
        self.even, self.odd = self._parts(node.real[None, :], node.imaginary[None, :])
        self.value = node.variance * reduce(add, self.even)
        self.first = [node.variance * odd for odd in self.odd]
        self.part_errors = [
            self._part_error(error[:, None], node.point_errors[None, :])
            for _, error in self.centers
        ]
        self.errors: Triple = self._sums(self.part_errors)
        length = up(root(node.real**2 + node.imaginary**2), 4)
        most = xp.full_like(length, 2.0 * count)
        reach = up(length + xp.minimum(node.point_errors, most) + self.rounding, 2)
        self.length = xp.minimum(reach, 0.5 * most)
        # the terms of the sums are E, O with cos C and sin S apart: together at most |Psi_i| each
        computed = xp.maximum(self.length, up(length + self.rounding, 2))
        self.sizes: Triple = self._sums([computed[None, :]] * count)

    def _parts(self, real: Array, imaginary: Array) -> tuple[list[Array], list[Array]]:
        """E_a and O_a."""
        rows = [(c[:, None], s[:, None]) for c, s in self.circle]
        even = [c * real + s * imaginary for c, s in rows]
        odd = [c * imaginary - s * real for c, s in rows]
        return even, odd

    def _part_error(self, center: Array, points: Array) -> Array:
        """`E_a = sum_b cos(alpha_a - beta_b)` moves by at most `sum_b |d alpha_a| + |d beta_b|`;
        and both numbers are in [-1, 1] for each b."""
        xp, count = namespace(center), len(self.circle)
        total = up(count * center + points + self.rounding, 4)
        return xp.minimum(total, xp.full_like(total, 2.05 * count))

    def _sums(self, parts: list[Array]) -> Triple:
        """`v sum_a part_a |W_a|^n`, n = 0, 1, 2, rounded up."""
        lengths = [phase.length for phase in self.node.phases]
        xp, sums = namespace(parts[0]), []
        with np.errstate(over="ignore"):
            for n in range(3):
                terms = [
                    part * length**n if length > 0 or n == 0 else xp.zeros_like(part)
                    for part, length in zip(parts, lengths, strict=True)
                ]
                sums.append(up(self.node.variance * reduce(add, terms), 2 * n + 5))
        return tuple(sums)

    def turned(self, real: PerCell, imaginary: PerCell) -> Jet:
        """With `real + i imaginary` (B,) in the place of Psi(z_i)."""
        even, odd = self._parts(real[:, None], imaginary[:, None])
        even, odd = ([self.node.variance * part[:, 0] for part in parts] for parts in (even, odd))
        return self._jet(reduce(add, even), odd, [-e for e in even])

    def contract(self, coefficients: PerCellAndPoint) -> Jet:
        """The sums over the points are those of C and S."""
        return self.turned(coefficients @ self.node.real, coefficients @ self.node.imaginary)

    def variations(self) -> tuple[PerCellAndPoint, ...]:
        """`u_a^n` times the largest `|E_a cos e + O_a sin e|`, |e| <= u_a (exchanged for odd n)."""
        xp = namespace(self.value)
        total: list[Array] = [xp.zeros_like(self.value) for _ in range(4)]
        with np.errstate(over="ignore"):
            for a, phase in enumerate(self.node.phases):
                u = phase_reach(self.geometry, phase.frequency)[:, None]
                for n in range(4):
                    mine, other = (self.even, self.odd) if n % 2 == 0 else (self.odd, self.even)
                    most = swing(mine[a], other[a], u, self.length, self.part_errors[a])[1]
                    size = most if n == 0 else xp.where(u > 0, u**n * most, xp.zeros_like(most))
                    total[n] = total[n] + self.node.variance * size
            higher = [xp.where(size > 0, up(size, POW_ULPS + 8), size) for size in total[1:]]
        return up(total[0], 4), *higher
