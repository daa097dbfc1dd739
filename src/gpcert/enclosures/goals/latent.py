"""Goals that are functions F of the latent mean and variance, bounded jointly in both.

Proofs: docs/mathematics.md, statement 7.2.
"""

from __future__ import annotations

import math
from abc import abstractmethod

from gpcert.arrays import Array, namespace
from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.goals.base import Goal, GoalBound
from gpcert.enclosures.goals.mean import MeanGoal
from gpcert.enclosures.joint import combine
from gpcert.enclosures.local_quadratic import LevelBound, LocalQuadratic
from gpcert.likelihoods.segments import LARGEST_SEGMENT
from gpcert.rounding import TINY, down, gamma, nonnegative, up

__all__ = ["LatentGoal"]

LEVEL_STEPS = 2
"""Steps of the level of the joint bound; a third changed no count of boxes in the benchmarks."""

RELEVANT_SHARE = 0.5
"""Part of the slack that must come from the variance for its expensive bound to be worth it."""

VARIANCE_PIECES = 8
"""Pieces of the range of v on which the best line is chosen; a line loses with their square."""

LARGEST_SLOPE = 2.0**600
"""Slopes between mean and variance in unit form are cut here: their products stay floats."""

FEW_FEATURES = 3
"""Up to here further lines are always tried: their quadratics cost little beside the kernel."""


class LatentGoal(Goal):
    """`G(q, v)` of q = sign mu_c(x) and the variance v of output c in its own units (noise
    included), for a G that does not decrease in q. Subclasses say what G is on lines."""

    output: int
    sign: int

    needs_variance = True

    @abstractmethod
    def _line(self, alpha: Array, beta: Array, v_low: Array, v_high: Array) -> Array:
        """Certified lower bound of G where `q >= alpha + beta v` and v lies in the range.

        alpha may be infinite or NaN where nothing is known: the bound is then a trivial one.
        """

    @abstractmethod
    def _slopes(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Approximate partial derivatives `(G_q, G_v)`; guides choices, proves nothing."""

    @abstractmethod
    def _level(self, q: Array, v: Array) -> Array:
        """Approximate slope d q / d v of G's level curve; guides choices, proves nothing."""

    def _corners(self, v_low: Array, v_high: Array) -> tuple[Array, Array]:
        """Two variances of the range at which level curves may differ most: by default its ends."""
        return v_low, v_high

    @abstractmethod
    def _worthwhile(self, v_high: Array) -> Array | float:
        """What further lines must gain on some cell of a batch to be worth their time."""

    def bound(self, evaluation: Evaluation, target: float | None) -> GoalBound:
        """The paper's monotone bound and the threshold form, joined.

        Threshold form: for any beta, if `q - beta v >= alpha` on the cell then every (q, v) of the
        cell lies on or above the line, and G does not decrease in q, so
        `G(q, v) >= min_v G(alpha + beta v, v)` over the range of v. With beta the slope of the
        level curve of G, G is constant along the line to first order (Statement 7.2); beta = 0 is
        the monotone bound. Where v varies a lot so does that slope: it is taken at the vertex
        against the gradient and at two variances of the range. All lines hold at once, so G is at
        least the minimum over pieces of the range of v of the best line there.
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
            evaluation.local.portfolio.report(name, bool(xp.any(gain > self._worthwhile(v_high))))
        # where G may be small is asked of the line that is better by itself
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
        """Lines with the slopes of G's level curves at the smallest q and the `_corners` of v.

        Any slope would be valid; the range of v may hold slopes of very different size.
        """
        xp = namespace(q_low)
        few = evaluation.expansion.geometry.half.shape[1] <= FEW_FEATURES
        wanted = evaluation.local.portfolio.wants(f"lines {self.output} {self.sign}")
        if not (evaluation.optional and (few or wanted)):
            return []
        largest = xp.full_like(q_low, LARGEST_SEGMENT)
        q = xp.minimum(xp.maximum(q_low, -largest), largest)
        slopes = [self._level(q, v) for v in self._corners(*v_ends)]
        slopes = [self._usable_slope(evaluation, slope) for slope in slopes]
        return [(self._joint(evaluation, slope, near)[0], slope) for slope in slopes]

    def _pieces(self, lines: list[tuple[Array, Array]], v_low: Array, v_high: Array) -> Array:
        """(B, pieces, lines): bounds of G by each line on each piece of the range of v.

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
        """The slope, cut where it would leave float64 in unit form, and 0 where it is so small that
        it would be rounded as a subnormal number first; any slope is valid."""
        xp = namespace(beta)
        beta = xp.where(xp.abs(beta) < TINY, xp.zeros_like(beta), beta)
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
        """The vertex of each cell that lies against the gradient of G at the centre."""
        xp = namespace(evaluation.cells.lower)
        own, variance = self._own(evaluation), evaluation.variance(self.output)
        by_q, by_v = self._slopes(*self._latent(evaluation, own.value, variance.center))
        unit, c = evaluation.local.unit, self.output
        slope = by_q[:, None] * unit.mean_scale[c] * own.gradient
        slope = slope + by_v[:, None] * unit.variance_scale[c] * variance.below.gradient
        half = evaluation.expansion.geometry.half
        return xp.where(slope > 0, -half, half)

    def _level_slope(self, evaluation: Evaluation, d: Array) -> Array:
        """Slope d q / d v of G's level curve at the displacement d; any value would be valid."""
        xp = namespace(d)
        own, variance = self._own(evaluation), evaluation.variance(self.output)
        v_low, v_high = evaluation.variance_range(self.output)
        shrink = xp.exp(-own.rate * xp.sum(d**2, axis=1))
        q = own.at(d) * shrink
        v = xp.minimum(xp.maximum(variance.below.at(d) * shrink**2, v_low), v_high)
        return self._level(*self._latent(evaluation, q, v))

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
