"""Lines under and over a radial kernel `s F_0(r)`, as functions of phi = r^2.

F_0 is completely monotone in q = r^2, so psi(q) = s F_0(sqrt q) is convex and falling: a tangent
lies below it, and a line through (or over) both ends of an interval above it.

Proofs: docs/mathematics.md, statement 12.1.
"""

from __future__ import annotations

import numpy as np

from gpcert.kernels.nodes.radial import LocalRadial
from gpcert.kernels.nodes.radial_batch import RadialBatch
from gpcert.numerics.arrays import Array, namespace
from gpcert.numerics.rounding import TINY, U, gamma, given, nonnegative, up
from gpcert.paper.lines.carriers import Affine, AffineRelaxation, QuadraticCarrier
from gpcert.paper.lines.registry import affine_relaxation

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
