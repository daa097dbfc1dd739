"""The predicted probability above a plane: linear in the latent mean and variance, cell by cell.

Proofs: docs/mathematics.md, statements 7.3 and 7.4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.lower_model import QuadraticLowerModel
from gpcert.likelihoods.base import LARGEST_SEGMENT
from gpcert.likelihoods.logistic import SmoothedLink
from gpcert.numerics.arrays import Array, PerCell, Reals, namespace
from gpcert.numerics.rounding import U, down, gamma, given, nonnegative, up
from gpcert.regions.scaled import ScaledCells

STEP = 2.0**-7
"""Step of the differences that give F's slopes: near it their two errors, `h^2 |F_4| / 24` and
`2 |error of F| / h^2`, are both below 1e-6 for scikit-learn's link."""

MEAN_PIECES, VARIANCE_PIECES = 8, 4
"""Pieces of the range of mu and of v on which F is compared with the plane; what is lost to F's
curvature falls with their square."""


@dataclass(frozen=True, eq=False)
class LatentRange:
    """Certified ranges (B,) of mu and v on each cell, in output units; `mean` and `variance` lie
    in them, about at the centre. `usable` (B,): nothing is known elsewhere, the rest is 0 there."""

    mean_low: Array
    mean_high: Array
    variance_low: Array
    variance_high: Array
    mean: Array
    variance: Array
    usable: Array


def latent_range(evaluation: Evaluation, mean_low: PerCell, mean_high: PerCell) -> LatentRange:
    """From certified ends of mu and the evaluation's range of v."""
    xp = namespace(mean_low)
    mean, variance = evaluation.mean(0), evaluation.variance(0)
    v_low, v_high = variance.units.range(*variance.range)
    mu, v = mean.units.about(mean.center), variance.units.about(variance.center)
    ends = (mean_low, mean_high, v_low, v_high, mu, v)
    # huge cells may leave infinite ends, or some beyond what the likelihood accepts
    usable = mean_low <= mean_high
    for end in ends:
        usable = usable & (abs(end) <= LARGEST_SEGMENT)
    low, high, v_low, v_high, mu, v = (xp.where(usable, end, xp.zeros_like(mu)) for end in ends)
    mu = xp.minimum(xp.maximum(mu, low), high)
    v = xp.minimum(xp.maximum(v, v_low), v_high)
    return LatentRange(low, high, v_low, v_high, mu, v, usable)


@dataclass(frozen=True, eq=False)
class ProbabilityPlane:
    """`sign F(mu, v) >= value + sign by_mu (mu - mean) + sign by_v (v - variance)` on each cell.

    All (B,), by_mu >= 0; value is -inf where nothing is known.
    """

    sign: int
    mean: Array
    variance: Array
    value: Array
    by_mu: Array
    by_v: Array

    @staticmethod
    def under(
        likelihood: SmoothedLink, latent: LatentRange, by_mu: PerCell, by_v: PerCell, sign: int
    ) -> ProbabilityPlane:
        """The highest plane with the given slopes that F is proved to lie above.

        Statement: on a piece of the range of (mu, v) with middle (m, w) and half-widths r and s,
        `|F - F(m, w) - F_mu (mu - m) - F_v (v - w)| <= D_2 r^2 / 2 + D_3 r s / 2 + D_4 s^2 / 8`,
        with D_n >= sup |d^n F / dmu^n|, so that F less the plane is at least its value at the
        middle less `|F_mu - by_mu| r + |F_v - by_v| s` less that. The least piece counts.
        Reason: Taylor's theorem along the segment, whose variances are >= w - s; by the heat
        equation F_v = F_2 / 2, so that F_muv = F_3 / 2 and F_vv = F_4 / 4.
        """
        xp, by_mu, by_v = namespace(by_mu), given(by_mu), given(by_v)  # any plane is valid
        m, r = _pieces(latent.mean_low, latent.mean_high, MEAN_PIECES)
        w, s = _pieces(latent.variance_low, latent.variance_high, VARIANCE_PIECES)
        shape = (len(by_mu), MEAN_PIECES, VARIANCE_PIECES)
        m, r = (xp.broadcast_to(part[:, :, None], shape) for part in (m, r[:, None]))
        w, s = (xp.broadcast_to(part[:, None, :], shape) for part in (w, s[:, None]))
        value, slope, slope_v, errors = certified_slopes(likelihood, m, w)
        first = up(xp.abs(slope - by_mu[:, None, None]) + errors[1], 2)
        second = up(xp.abs(slope_v - by_v[:, None, None]) + errors[2], 2)
        lowest = nonnegative(down(w - s, 1))
        D2, D3, D4 = (likelihood.derivative_bound(n, lowest) for n in (2, 3, 4))
        bend = 0.5 * D2 * r * r + 0.5 * D3 * r * s + 0.125 * D4 * s * s
        lost = up(first * r + second * s + bend + errors[0], 12)
        moved = by_mu[:, None, None] * (m - latent.mean[:, None, None])
        moved_v = by_v[:, None, None] * (w - latent.variance[:, None, None])
        height = sign * value - sign * moved - sign * moved_v - lost
        size = xp.abs(value) + lost
        size = size + by_mu[:, None, None] * (xp.abs(m) + xp.abs(latent.mean)[:, None, None])
        size = size + xp.abs(by_v)[:, None, None] * (w + latent.variance[:, None, None])
        height = down(height - gamma(12) * size, 2)
        least = xp.min(xp.reshape(height, (len(by_mu), -1)), axis=1)
        known = latent.usable & ~xp.isnan(least)
        least = xp.where(known, least, xp.full_like(least, -math.inf))
        return ProbabilityPlane(sign, latent.mean, latent.variance, least, by_mu, by_v)

    def model(self, evaluation: Evaluation, geometry: ScaledCells) -> QuadraticLowerModel:
        """Of `sign F(mu(x), v(x))`, from mean and variance, without a weight and in the coordinates
        of a geometry of the same cells.

        Reason: by_mu >= 0 meets a lower model of `sign mu`, and |by_v| one of v or of -v, whichever
        has the sign of `sign by_v`; max(v, 0) lies between v and v + dip.
        """
        xp, sign = namespace(self.value), self.sign
        mean, variance = evaluation.mean(0), evaluation.variance(0)
        offset, noise = sign * mean.units.shift, variance.units.shift
        # sign (mu - mean) = (offset - sign mean) + scale q: the constants cancel up to rounding
        q = mean.side(sign).unweighted(geometry, mean.linear_error).scaled(mean.units.factor)
        q = q.shifted(offset - sign * self.mean, abs(offset) + xp.abs(self.mean))

        rises = sign * self.by_v > 0
        v = variance.below.where(rises, variance.above).unweighted(geometry)
        v = v.scaled(variance.units.factor)
        shift = xp.where(rises, noise - self.variance, self.variance - noise)
        dip = up(variance.units.factor * variance.dip, 4)
        # scale^2 rounds: a relative error of v itself
        lost = up(xp.where(rises, 0.0 * shift, 0.0 * shift + dip) + gamma(2) * v.size, 2)
        v = v.shifted(shift, noise + self.variance).lowered(lost)

        known, zero = xp.isfinite(self.value), xp.zeros_like(self.value)
        total = q.scaled(self.by_mu) + v.scaled(xp.abs(self.by_v))
        lower = total.shifted(xp.where(known, self.value, zero))
        return lower.lowered(xp.where(known, zero, zero + math.inf))


def certified_slopes(
    likelihood: SmoothedLink, mu: Reals, v: Reals
) -> tuple[Reals, Reals, Reals, tuple[Reals, Reals, Reals]]:
    """F, F_mu, F_v at (mu, v), and bounds of their errors, from enclosed values of F alone.

    Statement: if F at mu - h, mu, mu + h is known to within e, then
    `|F_mu - (F(mu+h) - F(mu-h)) / 2h| <= e / h + D_3 h^2 / 6` and, as F_v = F_mumu / 2,
    `|F_v - (F(mu+h) - 2 F(mu) + F(mu-h)) / 2h^2| <= 2 e / h^2 + D_4 h^2 / 24`.
    Reason: Taylor's theorem in mu at the variance v. The rounding of mu +- h moves F by at most
    D_1 U (|mu| + h); differences of numbers in [0, 1] round by at most 2 U.
    """
    xp = namespace(mu)
    middles, errors = [], []
    for shift in (-STEP, 0.0, STEP):
        low, high = likelihood.enclose(mu + shift, v)
        middle = given(0.5 * (low + high))
        middles.append(middle)
        errors.append(up(xp.maximum(high - middle, middle - low), 2))
    first, third, fourth = (likelihood.derivative_bound(n, v) for n in (1, 3, 4))
    moved = first * (2.0 * U) * (xp.abs(mu) + STEP)
    error = xp.maximum(xp.maximum(errors[0], errors[2]), errors[1]) + moved + 8.0 * U
    error = up(error, 8)
    before, value, after = middles
    by_mu = nonnegative((after - before) / (2.0 * STEP))  # F does not decrease in mu
    by_v = ((after - value) - (value - before)) / (2.0 * STEP * STEP)
    by_mu_error = up(error / STEP + third * (STEP * STEP / 6.0), 4)
    by_v_error = up(2.0 * error / (STEP * STEP) + fourth * (STEP * STEP / 24.0), 4)
    return value, by_mu, by_v, (errors[1], by_mu_error, by_v_error)


def _pieces(low: Array, high: Array, count: int) -> tuple[Array, Array]:
    """Middles (B, count) and a half-width (B,) of pieces that cover [low, high]."""
    xp = namespace(low)
    width = high - low
    middles = [low + width * ((j + 0.5) / count) for j in range(count)]
    # the middles err by a few roundings of the ends: the half-width makes up for it
    half = up(width * (0.5 / count), 2) + gamma(8) * (xp.abs(low) + xp.abs(high))
    return xp.stack(middles, axis=1), up(half, 2)
