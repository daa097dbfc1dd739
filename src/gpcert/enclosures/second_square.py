"""The term `<Psi - e0, P (Psi - e0)>` of the variance with its second degree, for few features.

Psi - e0 = D d + E(d) + r: E(d) the part of degree two, `||r|| <= tail_2(rho2)`.

Proofs: docs/mathematics.md, statement 6.4.
"""

from __future__ import annotations

import math

from gpcert.arrays import namespace
from gpcert.enclosures.enclosure import add_identity
from gpcert.enclosures.precision import LocalPrecision
from gpcert.enclosures.second_covariance import second_covariance
from gpcert.enclosures.square import SMALLEST_RATIO, OperatorBounds, Square
from gpcert.kernels.expansions.base import QuadraticForm, SecondDegree
from gpcert.kernels.expansions.geometry import Geometry
from gpcert.rounding import gamma, up


def second_square(
    degrees: SecondDegree,
    geometry: Geometry,
    precision: LocalPrecision,
    step: QuadraticForm,
    operator: OperatorBounds,
) -> Square:
    """With a = D d, b = E(d), G = D* (P + kappa I) D, R^2 = (1 + kappa) tail_2^2, and bounds
    t3 >= |2 <a, P b>|, t4 >= |b|^2 (in the seminorm of P + kappa I), for any 0 < eta <= 1:

        (1 - eta) d^T G d - R^2/eta - t3 - kappa step <= term
                            <= (1 + eta) d^T G d + R^2/eta + t3 + (sqrt(t4) + R)^2.

    Reason: P + kappa I >= 0 defines a seminorm, in which `|a + b + r|^2 = |a|^2 + 2 <a, b>
    + 2 <a, r> + |b + r|^2`, where `|2 <a, r>| <= eta |a|^2 + R^2/eta` (Young) and
    `0 <= |b + r|^2 <= (|b| + R)^2`; degrees one and two are orthogonal, so kappa does not enter
    <a, b>. eta = R/g, g the largest |a| on the cell, is the best choice at the far end. For a
    precision without a negative factor.
    """
    assert precision.negative is None, "the covariance of the second degree needs S = A^T A"
    xp, excess = namespace(geometry.rho2), operator.excess
    rho2, s2 = geometry.rho2, degrees.variance
    covariance = second_covariance(precision, degrees, geometry.half.shape[1])
    shift = up(covariance.first_error + excess * s2, 4)
    G = add_identity(covariance.first, shift)
    tail = up(operator.shifted**0.5 * degrees.tail, 8)
    usable = xp.isfinite(tail)
    R = xp.where(usable, tail, xp.zeros_like(tail))
    w = geometry.half
    plane = w[:, :, None] * w[:, None, :]
    space = plane[:, :, :, None] * w[:, None, None, :]
    count = 8 * w.shape[1] ** 2 + 64
    t3 = xp.sum(xp.abs(covariance.mixed) * space, axis=(1, 2, 3))
    t3 = up(t3 + covariance.mixed_error * (rho2 * geometry.rho), count)
    quartic = plane[:, :, :, None, None] * plane[:, None, None, :, :]
    t4 = xp.sum(xp.abs(covariance.second) * quartic, axis=(1, 2, 3, 4))
    t4 = up(t4 + (covariance.second_error + 0.5 * excess * s2) * rho2**2, count)
    t4 = xp.minimum(t4, up((0.5 * operator.shifted * s2) * rho2**2, 8))
    g = xp.sqrt(xp.sum(xp.abs(G) * plane, axis=(1, 2)))
    ratio = R / xp.where(g > 0, g, xp.ones_like(g))
    eta = xp.minimum(xp.maximum(ratio, xp.full_like(ratio, SMALLEST_RATIO)), xp.ones_like(ratio))
    common = up(R * R / eta + t3, 8)
    above_error = up(common + (xp.sqrt(t4) + R) ** 2, 8)
    # below uses G on its upper side: take back the error, and the kappa part
    take_back = up(2.0 * (covariance.first_error + excess * s2) * rho2, 8)
    below_error = up(common + take_back + excess * step.reach(geometry), 4)
    # |first| <= |G| + shift: the addition may cancel
    rounding = up(gamma(16) * (g * g + 2.0 * shift * xp.sum(w * w, axis=1)), w.shape[1] + 8)
    infinite = xp.full_like(R, math.inf)
    return Square(
        (1.0 - eta)[:, None, None] * G,
        xp.where(usable, below_error + rounding, infinite),
        (1.0 + eta)[:, None, None] * G,
        xp.where(usable, above_error + 2.0 * rounding, infinite),
    )
