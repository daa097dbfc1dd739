"""Lines under and over the library's kernels, one function a class of batch.

Kernels that are not radial have a carrier of their own. A radial one, `s F_0(r)`, is a function of
phi = r^2: F_0 is completely monotone in q = r^2, so psi(q) = s F_0(sqrt q) is convex and falling, a
tangent lies below it, and a line through (or over) both ends of an interval above it. Lines of
composed kernels add, or follow McCormick's inequalities; an exponential has the
best lines under and over `factor e^t` on an interval.

Proofs: docs/mathematics.md, statements 12.1 to 12.4.
"""

from __future__ import annotations

import math
from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np

from gpcert.kernels.active_dimensions import ActiveBatch
from gpcert.kernels.constant import ConstantBatch
from gpcert.kernels.exponential_tilt import (
    LARGEST_EXPONENT,
    ExponentialTiltBatch,
    exponential_above,
)
from gpcert.kernels.linear import LinearBatch
from gpcert.kernels.nodes.composite import ProductBatch, ScaleBatch, SumBatch
from gpcert.kernels.nodes.phases import WavesBatch, phase_reach
from gpcert.kernels.nodes.power import PowerBatch
from gpcert.kernels.nodes.radial import LocalRadial
from gpcert.kernels.nodes.radial_batch import RadialBatch
from gpcert.kernels.periodic import PeriodicBatch
from gpcert.numerics.arrays import Array, PerCell, Reals, namespace
from gpcert.numerics.rounding import (
    ASIN_LOG_ULPS,
    EXP_ULPS,
    SIN_COS_ULPS,
    TINY,
    U,
    down,
    gamma,
    given,
    nonnegative,
    up,
)
from gpcert.paper.lines.algebra import combined, product_enclosed
from gpcert.paper.lines.carriers import (
    Affine,
    AffineRelaxation,
    ExponentialCarrier,
    LinearCarrier,
    QuadraticCarrier,
    SinusoidCarrier,
    sinusoid_minimum,
)
from gpcert.paper.lines.registry import affine_relaxation, batch_parts

EXP_OVERFLOW = 700.0
"""exp overflows beyond 709.78."""


class Lines(NamedTuple):
    """`slope_under t + intercept_under <= factor e^t <= slope_over t + intercept_over`."""

    slope_under: Array
    intercept_under: Array
    slope_over: Array
    intercept_over: Array


@np.errstate(over="ignore")
def exponential_lines(factor: float, low: Reals, high: Reals) -> Lines:
    """The best lines of `factor e^t`, factor > 0, for arrays low <= high of one shape: the tangent
    at the midpoint, and the chord.

    Whatever slopes b are taken, their intercepts are certified: `e^t - b t` is least at an end or
    at `t = log b`, greatest at an end. On an interval that is unbounded, or where e^t may
    overflow, nothing is known from above, and 0 from below. The float `factor * slope` differs from
    the product by U of it, and by TINY where it underflows: it costs the intercept at most that
    times `max |t|`.

    >>> lines = exponential_lines(1.0, np.asarray([-1.0]), np.asarray([1.0]))
    >>> [round(float(x[0]), 6) + 0.0 for x in lines]  # tangent at 0; slope sinh 1, at 0 cosh 1
    [1.0, 1.0, 1.175201, 1.543081]
    """
    xp = namespace(low)
    bounded = xp.isfinite(low) & xp.isfinite(high)
    zero = xp.zeros_like(low)
    start, end = xp.where(bounded, low, zero), xp.where(bounded, high, zero)
    middle = 0.5 * (start + end)
    tangent, width = _exp(middle), end - start
    chord = (_exp(end) - _exp(start)) / xp.where(width > 0, width, 1.0 + zero)
    over, other = _greatest(chord, start, end), _greatest(tangent, start, end)
    flatter = other + tangent * middle < over + chord * middle  # by rounding, on tiny intervals
    sides = (
        (tangent, _least(tangent, start, end), 0.0),
        (xp.where(flatter, tangent, chord), xp.where(flatter, other, over), math.inf),
    )
    furthest = xp.maximum(xp.abs(low), xp.abs(high))
    lines = []
    for b, a, nothing in sides:
        usable = bounded & xp.isfinite(b) & xp.isfinite(a)
        taken = xp.where(usable, b, zero)
        slope = factor * taken
        intercept = factor * xp.where(usable, a, zero + nothing)
        # of a slope that is exactly 0 nothing is lost, however long the interval
        moved = (2.0 * U * xp.abs(slope) + TINY) * xp.where(taken == 0, zero, furthest)
        outward = down if nothing == 0.0 else up
        moved = -moved if nothing == 0.0 else moved
        lines += [slope, outward(outward(intercept, 2) + moved, 1)]
    return Lines(*lines)


def _exp(t: Array) -> Array:
    """The argument kept below overflow."""
    xp = namespace(t)
    return xp.exp(xp.minimum(t, xp.full_like(t, EXP_OVERFLOW)))


def _at(slope: Array, t: Array) -> tuple[Array, Array]:
    """`e^t - slope t`, the exponent capped, and its error."""
    xp = namespace(t)
    value = _exp(t)
    size = value + 2.0 * xp.abs(slope * t)
    return value - slope * t, gamma(EXP_ULPS + 4) * size + TINY


def _least(slope: Array, low: Array, high: Array) -> Array:
    """Certified lower bound of `min e^t - slope t` over [low, high], slope >= 0.

    At an end, where a capped value is a lower bound too, or `slope (1 - log slope)`: that is the
    minimum over the whole line, so it is a bound wherever it is used.
    """
    xp = namespace(low)
    (first, e), (last, h) = _at(slope, low), _at(slope, high)
    positive = slope > 0
    safe = xp.where(positive, slope, xp.ones_like(slope))
    place = xp.log(safe)
    within = safe * (1.0 - place)
    within = within - gamma(ASIN_LOG_ULPS + 8) * (safe * (1.0 + xp.abs(place))) - TINY
    slack = (32.0 * U) * (1.0 + xp.abs(low) + xp.abs(high))
    inside = positive & (place > low - slack) & (place < high + slack)
    ends = xp.minimum(first - e, last - h)
    return xp.minimum(ends, xp.where(inside, within, xp.full_like(within, math.inf)))


def _greatest(slope: Array, low: Array, high: Array) -> Array:
    """Certified upper bound of `max e^t - slope t` over [low, high]: convex, so at an end."""
    xp = namespace(low)
    (first, e), (last, h) = _at(slope, low), _at(slope, high)
    most = xp.maximum(first + e, last + h)
    return xp.where(high > EXP_OVERFLOW, xp.full_like(most, math.inf), most)


@affine_relaxation.register
def _constant(batch: ConstantBatch) -> AffineRelaxation:
    """A line of slope zero without any carrier."""
    line = Affine(batch.value, ())
    return AffineRelaxation(batch.value, batch.value, line, line)


@affine_relaxation.register
def _linear(batch: LinearBatch) -> AffineRelaxation:
    """The function itself, on both sides."""
    xp = namespace(batch.value)
    _, first, _, _ = batch.variations()
    wide = up(first + batch.errors[0], 2)
    one, none = xp.ones_like(batch.value), xp.zeros_like(batch.value)
    line = Affine(none, ((_linear_carrier(batch), one),))
    return AffineRelaxation(down(batch.value - wide, 1), up(batch.value + wide, 1), line, line)


def _linear_carrier(batch: LinearBatch) -> LinearCarrier:
    """One object a batch, so that a power of the kernel is affine in one carrier."""
    memo = vars(batch)
    if "carrier" not in memo:
        memo["carrier"] = LinearCarrier(
            batch.value, batch.errors[0], batch.node.slopes, batch.geometry, batch.spread
        )
    return memo["carrier"]


@affine_relaxation.register
def _waves(batch: WavesBatch) -> AffineRelaxation:
    """A carrier for each phase, `v sum_b cos(alpha_a(x) - beta_b)`: their sum is the kernel.

    Over a cell each turns into `v (E_a cos e + O_a sin e)`, so its weighted sums over the points
    are one sinusoid of one phase, with an exact minimum. Lines under and over every cosine, or the
    paper's eight products of sines and cosines, are never better.
    """
    xp, count = namespace(batch.value), len(batch.circle)
    line, low, high = [], [], []
    for a, phase in enumerate(batch.node.phases):
        circle, errors = (batch.even[a] / count, -batch.odd[a] / count), batch.part_errors[a]
        reach = phase_reach(batch.geometry, phase.frequency)
        wave = one_phase(circle, errors / count, batch.node.variance * count, reach)
        line.append((wave[0], xp.ones_like(batch.value)))
        low.append(wave[1])
        high.append(wave[2])
    both = Affine(xp.zeros_like(batch.value), tuple(line))
    return AffineRelaxation(down(reduce(add, low), count), up(reduce(add, high), count), both, both)


def one_phase(
    circle: tuple[Array, Array], errors: Array, amplitude: float, reach: PerCell
) -> tuple[SinusoidCarrier, Array, Array]:
    """`amplitude (C cos e - S sin e)`, |e| <= reach (B,), as a carrier, and its range (B, N).

    `circle` is (C, S), each (B, N) and at most 1 in size, within `errors` and a few roundings.
    """
    C, S = circle
    xp = namespace(C)
    zeros = xp.zeros_like(C[0, :])
    one = xp.asarray([amplitude], dtype=C.dtype, device=C.device)
    carrier = SinusoidCarrier(
        zeros, zeros, one, C[:, None, :], S[:, None, :], errors[:, None, :], reach[:, None]
    )
    slack = up(2.0 * (errors + gamma(4 * SIN_COS_ULPS + 32)), 4)
    spread = reach[:, None] + xp.zeros_like(C)
    low = sinusoid_minimum(C, S, spread, slack)
    high = -sinusoid_minimum(-C, -S, spread, slack)
    return carrier, down(amplitude * low, 2), up(amplitude * high, 2)


@affine_relaxation.register
def _tilt(batch: ExponentialTiltBatch) -> AffineRelaxation:
    """The kernel is its own carrier: weighted sums of it are one exponential of theta.x.

    So the bound of a mean by "lines" is its exact minimum; tangents and chords of every
    exponential (the paper's choice) are never better.
    """
    xp = namespace(batch.value)
    low, high = batch.exponent_range()
    most = exponential_above(high)
    reach = phase_reach(batch.geometry, batch.node.phase.frequency)
    carrier = ExponentialCarrier(batch.value, batch.errors[0], most, reach)
    line = Affine(xp.zeros_like(batch.value), ((carrier, xp.ones_like(batch.value)),))
    floor = xp.exp(xp.minimum(low, xp.full_like(low, LARGEST_EXPONENT)))
    return AffineRelaxation(nonnegative(down(floor, EXP_ULPS + 2) - TINY), most, line, line)


@affine_relaxation.register
def _periodic(batch: PeriodicBatch) -> AffineRelaxation:
    """`v exp(phi)`, `phi = -X = sum_j q_j (cos(w_j t_j) - 1) - (fixed)`: convex in phi."""
    node, angles = batch.node, batch.angles
    xp = namespace(batch.value)
    least, most = batch.exponent_range()
    free = xp.sum(node.weight)
    constants = -(node.fixed_exponents + free)
    errors = node.fixed_errors + gamma(len(node.weight) + 8) * xp.abs(constants)
    carrier = SinusoidCarrier(
        constants,
        up(errors, 4),
        node.weight[:, 0],
        batch.double_cosine,
        2.0 * angles.sine * angles.cosine,
        up(2.0 * angles.error, 1),
        batch.swings[2][:, :, 0],
    )
    low, high = -most, -least
    lines = exponential_lines(node.variance, low, high)
    ends = [node.variance * xp.exp(end) for end in (low, high)]
    return AffineRelaxation(
        nonnegative(down(ends[0], EXP_ULPS + 4)),
        up(ends[1], EXP_ULPS + 4),
        Affine(lines.intercept_under, ((carrier, lines.slope_under),)),
        Affine(lines.intercept_over, ((carrier, lines.slope_over),)),
    )


FARTHEST = 1e140
"""Beyond this distance the lines are constants: its square would leave float64."""


@affine_relaxation.register
@np.errstate(over="ignore", invalid="ignore")
def _radial(batch: RadialBatch) -> AffineRelaxation:
    """Tangent at the middle of the range of q, and the chord over it.

    A line is valid for whatever slope is taken. Under: `psi(q) >= psi(m) + psi'(m) (q - m)`, and a
    slope b that is off psi'(m) by e costs `e max |q - m|`. Over: psi(q) - b q is convex, so it is
    largest at an end. Where psi' is infinite (Matern 1/2 at q = 0) the slope is 0.
    """
    node, distances = batch.node, batch.distance_range
    s, near = node.variance, distances.high <= FARTHEST
    xp = namespace(near)
    floor = TINY * max(1.0, s)
    zero = xp.zeros_like(distances.low)
    low, high = (xp.where(near, end, zero) for end in distances)
    q_low, q_high = low * low * (1.0 - 4.0 * U), up(high * high, 2)

    at_low, error = _value(node, low)
    most = up(at_low * (1.0 + error), 4) + floor
    at_high, error = _value(node, high)
    least = nonnegative(at_high * (1.0 - error) * (1.0 - 4.0 * U) - floor)
    end = up(at_high * (1.0 + error), 4) + floor

    under, tangent = _tangent(node, q_low, q_high)
    exists = xp.isfinite(under) & xp.isfinite(tangent) & near
    under, tangent = xp.where(exists, under, least), xp.where(exists, tangent, zero)

    width = q_high - q_low
    wide = near & (width > 0)
    chord = (at_high - at_low) / xp.where(wide, width, 1.0 + zero)
    chord = given(xp.where(wide, -nonnegative(-chord), zero))
    over = up(xp.maximum(most - chord * q_low, end - chord * q_high), 8)
    # far cells: 0 and s enclose everything
    least, under = (xp.where(near, part, zero) for part in (least, under))
    most, over = (xp.where(near, part, zero + up(s, 4)) for part in (most, over))

    largest = xp.where(near, q_high, up(distances.high * distances.high, 4))
    carrier = QuadraticCarrier(
        node.table.points,
        batch.centers,
        batch.half,
        node.fixed,
        gamma(node.roundings),
        node.extents,
        largest,
        node.scale,
        batch.geometry.features,
    )
    return AffineRelaxation(
        least, most, Affine(under, ((carrier, tangent),)), Affine(over, ((carrier, chord),))
    )


def _tangent(node: LocalRadial, q_low: Array, q_high: Array) -> tuple[Array, Array]:
    """Height at q = 0 and slope of the tangent in the middle; not finite where psi' is infinite."""
    xp, profile, s = namespace(q_low), node.profile, node.variance
    middle = xp.sqrt(0.5 * (q_low + q_high))
    height, slope = (s * term for term in profile.terms(middle, (0, 0), (1, 0)))
    ulps = (1.1 * U) * (profile.roundings(middle) + 16.0)
    q, slope = middle * middle, -0.5 * slope
    away = up(xp.maximum(nonnegative(q_high - q), nonnegative(q - q_low)) + (8.0 * U) * q, 4)
    # a slope that underflows is off by less than TINY
    under = (height - slope * q) * (1.0 - ulps) + slope * (ulps * away)
    return under - TINY * max(1.0, s) - TINY * away, slope


def _value(node: LocalRadial, r: Array) -> tuple[Array, Array]:
    """s F_0(r) and its relative error."""
    value = node.variance * node.profile.terms(r, (0, 0))[0]
    return value, (1.1 * U) * (node.profile.roundings(r) + 4.0)


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
