"""Lines under and over the kernels that are not radial: each has a carrier of its own.

Proofs: docs/mathematics.md, statements 12.1 and 12.3.
"""

from __future__ import annotations

from functools import reduce
from operator import add

from gpcert.kernels.constant import ConstantBatch
from gpcert.kernels.exponential_tilt import (
    LARGEST_EXPONENT,
    ExponentialTiltBatch,
    exponential_above,
)
from gpcert.kernels.linear import LinearBatch
from gpcert.kernels.nodes.phases import WavesBatch, phase_reach
from gpcert.kernels.periodic import PeriodicBatch
from gpcert.numerics.arrays import Array, PerCell, namespace
from gpcert.numerics.rounding import EXP_ULPS, SIN_COS_ULPS, TINY, down, gamma, nonnegative, up
from gpcert.paper.lines.carriers import (
    Affine,
    AffineRelaxation,
    ExponentialCarrier,
    LinearCarrier,
    SinusoidCarrier,
    sinusoid_minimum,
)
from gpcert.paper.lines.exponentials import exponential_lines
from gpcert.paper.lines.registry import affine_relaxation


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
