"""Goals that are functions F of the latent mean and variance, bounded jointly in both.

Proofs: docs/mathematics.md, statement 7.2.
"""

from __future__ import annotations

from abc import abstractmethod

from gpcert.arrays import Array, namespace
from gpcert.enclosures.enclosure import Enclosure, LevelBound
from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.goals.base import Goal, GoalBound
from gpcert.enclosures.goals.mean import MeanGoal
from gpcert.enclosures.two_sided import unit_slope
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
        variance = evaluation.variance(self.output)
        v_low, v_high = variance.units.range(*variance.range)
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
        mean, variance = evaluation.mean(self.output), evaluation.variance(self.output)
        slack = abs(unit_slope(mean.units, variance.units, beta)) * variance.spread
        share = slack > RELEVANT_SHARE * (slack + mean.side(self.sign).error)
        relevant = bool(namespace(share).any(share))
        evaluation.local.report_derivatives(variance, relevant)

    def _joint(
        self, evaluation: Evaluation, beta: Array, near: Array | None = None
    ) -> tuple[Array, LevelBound]:
        """alpha with `sign mu - beta (scale^2 max(v, 0) + noise) >= alpha` on every cell.

        A displacement `near` the minimum, if known, gives a level that needs no second step.
        """
        xp = namespace(beta)
        mean, variance = evaluation.mean(self.output), evaluation.variance(self.output)
        slope = unit_slope(mean.units, variance.units, beta)
        model = mean.side(self.sign) + variance.times(-slope)
        level = None if near is None else model.value_at(near)
        best = model.minimum(level, steps=LEVEL_STEPS)
        # the rounding (and underflow) of the slope itself acts on a variance of at most gain s^2
        cost = up((xp.abs(slope) * gamma(8) + TINY) * variance.largest, 4)
        alpha = mean.units.signed(self.sign).below(down(best.lower - cost, 2))
        return down(alpha - up(beta * variance.units.shift, 1), 2), best

    def _usable_slope(self, evaluation: Evaluation, beta: Array) -> Array:
        """The slope, cut where it would leave float64 in unit form, and 0 where it is so small that
        it would be rounded as a subnormal number first; any slope is valid."""
        xp = namespace(beta)
        beta = xp.where(xp.abs(beta) < TINY, xp.zeros_like(beta), beta)
        mean, variance = evaluation.mean(self.output).units, evaluation.variance(self.output).units
        largest = xp.full_like(beta, LARGEST_SLOPE * (mean.factor / variance.factor))
        return xp.minimum(xp.maximum(beta, -largest), largest)

    def _steepest(self, evaluation: Evaluation) -> Array:
        """The vertex of each cell that lies against the gradient of G at the centre."""
        xp = namespace(evaluation.cells.lower)
        mean, variance = evaluation.mean(self.output), evaluation.variance(self.output)
        own = mean.side(self.sign)
        by_q, by_v = self._slopes(*self._latent(evaluation, own.value, variance.center))
        slope = by_q[:, None] * mean.units.factor * own.gradient
        slope = slope + by_v[:, None] * variance.units.factor * variance.below.gradient
        half = evaluation.expansion.geometry.half
        return xp.where(slope > 0, -half, half)

    def _level_slope(self, evaluation: Evaluation, d: Array) -> Array:
        """Slope d q / d v of G's level curve at the displacement d; any value would be valid."""
        xp = namespace(d)
        variance = evaluation.variance(self.output)
        own: Enclosure = evaluation.mean(self.output).side(self.sign)
        v_low, v_high = variance.range
        shrink = xp.exp(-own.rate * xp.sum(d**2, axis=1))
        q = own.at(d) * shrink
        v = xp.minimum(xp.maximum(variance.below.at(d) * shrink**2, v_low), v_high)
        return self._level(*self._latent(evaluation, q, v))

    def _latent(self, evaluation: Evaluation, q: Array, v: Array) -> tuple[Array, Array]:
        """sign mu and the variance in output units, in plain floating point."""
        mean, variance = evaluation.mean(self.output).units, evaluation.variance(self.output).units
        return mean.signed(self.sign).about(q), variance.about(nonnegative(v))
