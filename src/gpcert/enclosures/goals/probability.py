"""Goal: the predicted probability F(mu, v) of the positive class, or its negative.

Proofs: docs/mathematics.md, statement 7.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpcert.arrays import Array, namespace
from gpcert.attacks.functions import PlainFunction, probability_function
from gpcert.committee import Model
from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.goals.base import Goal, GoalBound
from gpcert.enclosures.goals.mean import MeanGoal
from gpcert.enclosures.joint import combine
from gpcert.enclosures.local_quadratic import LevelBound, LocalQuadratic
from gpcert.likelihoods import ScalarLikelihood
from gpcert.likelihoods.lines import LARGEST_LINE
from gpcert.rounding import TINY, down, gamma, nonnegative, up

__all__ = ["ProbabilityGoal"]

LEVEL_STEPS = 2
"""Steps of the level of the joint bound; a third changed no count of boxes in the benchmarks."""

RELEVANT_SHARE = 0.5
"""Part of the slack that must come from the variance for its expensive bound to be worth it."""

VARIANCE_PIECES = 8
"""Pieces of the range of v on which the best line is chosen; a line loses with their square."""

WORTHWHILE_GAIN = 1e-3
"""Probability that further lines must gain on some cell of a batch to be worth their time."""

LARGEST_SLOPE = 2.0**600
"""Slopes between mean and variance in unit form are cut here: their products stay floats."""

FEW_FEATURES = 3
"""Up to here further lines are always tried: their quadratics cost little beside the kernel."""


@dataclass(frozen=True)
class ProbabilityGoal(Goal):
    """`sign * F(mu_c(x), v_c(x))` for a binary likelihood."""

    likelihood: ScalarLikelihood
    output: int
    sign: int

    needs_variance = True

    @property
    def known(self) -> tuple[float, float]:
        """A probability, or its negative."""
        return (0.0, 1.0) if self.sign > 0 else (-1.0, 0.0)

    def bound(self, evaluation: Evaluation, target: float | None) -> GoalBound:
        """The paper's monotone bound and the threshold form, joined.

        Threshold form: let q = sign mu. For any beta, if `q - beta v >= alpha` on the cell then
        every (q, v) of the cell lies on or above the line, and F does not decrease in q, so
        `F(q, v) >= min_v F(alpha + beta v, v)` over the range of v. With beta the slope of the
        level curve of F, F is constant along the line to first order (Statement 7.2); beta = 0 is
        the monotone bound. Where v varies a lot so does that slope: it is taken at the vertex
        against the gradient and at both ends of the range of v. All lines hold at once, so F is at
        least the minimum over pieces of the range of v of the best line there. For sign = -1 the
        same with F(-mu, v), the likelihood's `line_maximum`.
        """
        del target
        xp = namespace(evaluation.cells.lower)
        geometry = evaluation.expansion.geometry
        mean_bound = MeanGoal(self.output, self.sign).bound(evaluation, None)
        v_low, v_high = self._output_variance(evaluation, evaluation.variance_range(self.output))
        beta = self._level_slope(evaluation, self._steepest(evaluation))
        beta = self._usable_slope(evaluation, beta)
        alpha, best = self._joint(evaluation, beta)
        self._weigh_variance(evaluation, beta)
        lines = [(mean_bound.lower, 0.0 * beta), (alpha, beta)]
        lines += self._further_lines(evaluation, mean_bound.lower, best.point, (v_low, v_high))
        values = self._pieces(lines, v_low, v_high)
        lower = xp.min(xp.max(values, axis=2), axis=1)
        if len(lines) > 2:
            gain = lower - xp.min(xp.max(values[:, :, :2], axis=2), axis=1)
            name = f"lines {self.output} {self.sign}"
            evaluation.local.portfolio.report(name, bool(xp.any(gain > WORTHWHILE_GAIN)))
        # where F may be small is asked of the line that is better by itself
        whole = xp.min(values, axis=1)
        joint = (whole[:, 1] > whole[:, 0])[:, None]
        return GoalBound(
            lower,
            xp.where(joint, geometry.unscaled(best.point), mean_bound.point),
            geometry.split_scores(),
        )

    def _further_lines(
        self, evaluation: Evaluation, q_low: Array, near: Array, v_ends: tuple[Array, Array]
    ) -> list[tuple[Array, Array]]:
        """Lines with the slopes of F's level curves at the smallest q and the ends of v's range.

        Any slope would be valid; the range of v may hold slopes of very different size.
        """
        xp = namespace(q_low)
        few = evaluation.expansion.geometry.half.shape[1] <= FEW_FEATURES
        wanted = evaluation.local.portfolio.wants(f"lines {self.output} {self.sign}")
        if not (evaluation.optional and (few or wanted)):
            return []
        largest = xp.full_like(q_low, LARGEST_LINE)
        q = xp.minimum(xp.maximum(q_low, -largest), largest)
        slopes = [self.likelihood.level_slope(q, v) for v in v_ends]
        slopes = [self._usable_slope(evaluation, slope) for slope in slopes]
        return [(self._joint(evaluation, slope, near)[0], slope) for slope in slopes]

    def _pieces(self, lines: list[tuple[Array, Array]], v_low: Array, v_high: Array) -> Array:
        """(B, pieces, lines): bounds of sign * F by each line on each piece of the range of v.

        The pieces share their ends and the outer ones are exact, so they cover the range.
        """
        xp = namespace(v_low)
        inner = [
            v_low + (v_high - v_low) * (j / VARIANCE_PIECES) for j in range(1, VARIANCE_PIECES)
        ]
        inner = [xp.minimum(xp.maximum(edge, v_low), v_high) for edge in inner]
        edges = xp.stack([v_low, *inner, v_high], axis=1)
        alpha = xp.stack([line[0] for line in lines], axis=1)[:, None, :]
        beta = xp.stack([line[1] for line in lines], axis=1)[:, None, :]
        shape = (len(v_low), VARIANCE_PIECES, len(lines))
        spread = (alpha, beta, edges[:, :-1, None], edges[:, 1:, None])
        return self._line(*(xp.broadcast_to(array, shape) for array in spread))

    def _weigh_variance(self, evaluation: Evaluation, beta: Array) -> None:
        """Tell the portfolio whether the variance's slack, or the mean's, keeps the bound apart."""
        local = evaluation.local
        slope = self._unit_slope(evaluation, beta)
        slack = abs(slope) * evaluation.variance(self.output).spread
        share = slack > RELEVANT_SHARE * (slack + self._own(evaluation).error)
        relevant = bool(namespace(share).any(share))
        local.report_derivatives(evaluation.variance(self.output), relevant)

    def ceiling(self, evaluation: Evaluation) -> Array:
        """F at the centre, on the other side of the rounding errors of mean and variance."""
        q_high = MeanGoal(self.output, self.sign).ceiling(evaluation)
        v_low, v_high = self._output_variance(
            evaluation, evaluation.variance_at_center(self.output)
        )
        flipped = ProbabilityGoal(self.likelihood, self.output, -self.sign)
        return -flipped._line(-q_high, 0.0 * q_high, v_low, v_high)

    def function(self, model: Model) -> PlainFunction:
        """sign * F and its gradient."""
        return probability_function(model.members[0], self.likelihood, self.output, self.sign)

    def _line(self, alpha: Array, beta: Array, v_low: Array, v_high: Array) -> Array:
        """Lower bound of sign * F where `sign mu >= alpha + beta v`, v in the range."""
        xp = namespace(alpha)
        # a huge cell may give a line that is infinite, or beyond what the likelihood accepts; a
        # lower line is valid as well
        alpha = xp.minimum(alpha, xp.full_like(alpha, LARGEST_LINE))
        usable = (abs(alpha) <= LARGEST_LINE) & (abs(beta) <= LARGEST_LINE)
        usable = usable & (v_high <= LARGEST_LINE)
        zero = xp.zeros_like(alpha)
        a, b = xp.where(usable, alpha, zero), xp.where(usable, beta, zero)
        v_low, v_high = xp.where(usable, v_low, zero), xp.where(usable, v_high, zero)
        if self.sign > 0:
            value = self.likelihood.line_minimum(a, b, v_low, v_high)
        else:
            value = -self.likelihood.line_maximum(-a, -b, v_low, v_high)
        # a probability lies in [0, 1] whatever the latent bounds are
        return xp.where(usable, value, xp.full_like(value, 0.0 if self.sign > 0 else -1.0))

    def _joint(
        self, evaluation: Evaluation, beta: Array, near: Array | None = None
    ) -> tuple[Array, LevelBound]:
        """alpha with `sign mu - beta (scale^2 max(v, 0) + noise) >= alpha` on every cell.

        A displacement `near` the minimum, if known, gives a level that needs no second step.
        """
        local = evaluation.local
        geometry = evaluation.expansion.geometry
        posterior = local.posterior
        scale = local.unit.mean_scale[self.output]
        offset = self.sign * float(posterior.offset[self.output])
        noise = float(posterior.noise[self.output])
        own = self._own(evaluation)
        dip = local.operator.excess * local.kernel.variance
        xp = namespace(beta)
        slope = self._unit_slope(evaluation, beta)
        model = combine(
            own,
            evaluation.variance(self.output),
            slope,
            evaluation.variance_range(self.output)[0],
            dip,
            geometry,
        )
        if near is None:
            best = model.bound(geometry, steps=LEVEL_STEPS)
        else:
            best = model.bound_at(geometry, model.value_at(near))
        # max(v, 0) <= v + dip costs slope * dip where slope > 0; the rounding (and underflow) of
        # slope itself acts on a variance of at most gain s^2
        largest = local.operator.gain * local.kernel.variance
        cost = nonnegative(slope) * dip + (xp.abs(slope) * gamma(8) + TINY) * largest
        alpha = down(offset + down(scale * down(best.lower - up(cost, 4), 2), 1), 1)
        alpha = down(alpha - up(beta * noise, 1), 2)
        return alpha, best

    def _usable_slope(self, evaluation: Evaluation, beta: Array) -> Array:
        """The slope, cut where it would leave float64 in unit form; any slope is valid."""
        xp = namespace(beta)
        unit, c = evaluation.local.unit, self.output
        largest = xp.full_like(beta, LARGEST_SLOPE * (unit.mean_scale[c] / unit.variance_scale[c]))
        return xp.minimum(xp.maximum(beta, -largest), largest)

    def _unit_slope(self, evaluation: Evaluation, beta: Array) -> Array:
        """beta between the unit form's mean and variance: `beta b / a`, as
        `mu - beta variance = offset + a q - beta (b v + noise) = a (q - (beta b / a) v) + ...`.

        To four roundings, and 2^-1074 where it underflows; by exponents, as b / a may be no float.
        """
        unit, c = evaluation.local.unit, self.output
        (first, p), (second, q) = map(math.frexp, (unit.mean_scale[c], unit.variance_scale[c]))
        half = (q - p) // 2
        return beta * (second / first) * 2.0**half * 2.0 ** (q - p - half)

    def _steepest(self, evaluation: Evaluation) -> Array:
        """The vertex of each cell that lies against the gradient of F at the centre."""
        xp = namespace(evaluation.cells.lower)
        own, variance = self._own(evaluation), evaluation.variance(self.output)
        by_mu, by_v = self.likelihood.slopes(*self._latent(evaluation, own.value, variance.center))
        unit, c = evaluation.local.unit, self.output
        slope = by_mu[:, None] * unit.mean_scale[c] * own.gradient
        slope = slope + by_v[:, None] * unit.variance_scale[c] * variance.below.gradient
        half = evaluation.expansion.geometry.half
        return xp.where(slope > 0, -half, half)

    def _level_slope(self, evaluation: Evaluation, d: Array) -> Array:
        """Slope d mu / d v of F's level curve at the displacement d; any value would be valid."""
        xp = namespace(d)
        own, variance = self._own(evaluation), evaluation.variance(self.output)
        v_low, v_high = evaluation.variance_range(self.output)
        shrink = xp.exp(-own.rate * xp.sum(d**2, axis=1))
        q = own.at(d) * shrink
        v = xp.minimum(xp.maximum(variance.below.at(d) * shrink**2, v_low), v_high)
        return self.likelihood.level_slope(*self._latent(evaluation, q, v))

    def _own(self, evaluation: Evaluation) -> LocalQuadratic:
        """The model of q = sign g."""
        mean = evaluation.mean(self.output)
        return mean.below if self.sign > 0 else mean.above

    def _latent(self, evaluation: Evaluation, q: Array, v: Array) -> tuple[Array, Array]:
        """sign mu and the variance in output units."""
        local, c = evaluation.local, self.output
        mu = self.sign * float(local.posterior.offset[c]) + local.unit.mean_scale[c] * q
        noise = float(local.posterior.noise[c])
        return mu, local.unit.variance_scale[c] * nonnegative(v) + noise

    def _output_variance(
        self, evaluation: Evaluation, v_range: tuple[Array, Array]
    ) -> tuple[Array, Array]:
        local, c = evaluation.local, self.output
        scale2, noise = local.unit.variance_scale[c], float(local.posterior.noise[c])
        low, high = v_range
        if scale2 == 1.0 and noise == 0.0:
            return low, high
        low = nonnegative(down(noise + down(scale2 * low, 2), 1))
        return low, up(noise + up(scale2 * high, 2), 1)
