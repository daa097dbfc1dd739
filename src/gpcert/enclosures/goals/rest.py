"""Goals of a one-vs-rest committee: the margin of its decision, and a class probability; and the
goal of any committee's decision.

Proofs: docs/mathematics.md, statements 11.1 and 11.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpcert.arrays import Array, namespace
from gpcert.attacks.committee_functions import rest_margin_function, rest_probability_function
from gpcert.attacks.functions import PlainFunction
from gpcert.committee import Committee, Model, check_class_weight
from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.goals.base import Goal, GoalBound, worst_of
from gpcert.enclosures.goals.members import (
    probability,
    probability_at_center,
    split_scores,
    weighted_sum,
)
from gpcert.enclosures.goals.pair_votes import PairVotesGoal
from gpcert.enclosures.goals.votes import VotesGoal
from gpcert.errors import InputError
from gpcert.rounding import down, nonnegative, up

LEVEL_GRID = 2.0**-30
"""Levels of a probability are multiples of this, so that 1 - level is exact."""


@dataclass(frozen=True)
class RestMarginGoal(Goal):
    """`min_j (w_i F_i - w_j F_j)`, i the winner: positive exactly where i is decided, ties apart.

    `class_weight` are the w_c; all 1 is what `predict` does.
    """

    winner: int
    class_weight: tuple[float, ...]

    needs_variance = True

    @property
    def known(self) -> tuple[float, float]:
        """Each F lies in [0, 1]."""
        return -max(self.class_weight[j] for j in self._others), self.class_weight[self.winner]

    def bound(self, evaluation: Evaluation, target: float | None) -> GoalBound:
        """The least of the pairs' bounds, each of `w_i F_i - w_j F_j` as a whole.

        Pairs whose own extremes already exceed the target on every cell are not bounded jointly.
        """
        xp = namespace(evaluation.cells.lower)
        own = down(self.class_weight[self.winner] * self._side(evaluation, self.winner, 1).lower, 1)
        found = []
        for j in self._others:
            rival = self._side(evaluation, j, -1)
            apart = down(own + down(self.class_weight[j] * rival.lower, 1), 1)
            weights = self._weights(j)
            if target is not None and bool(xp.all(apart > target)):
                lower, point = apart, rival.point
            else:
                joint = weighted_sum(evaluation, weights)
                lower, point = xp.maximum(apart, joint.lower), joint.point
            found.append(GoalBound(lower, point, split_scores(evaluation, weights)))
        return worst_of(found)

    def ceiling(self, evaluation: Evaluation) -> Array:
        """From the members' values at the centre, each on the other side of its rounding error."""
        xp = namespace(evaluation.cells.lower)
        _, high = probability_at_center(evaluation, self.winner)
        own = up(self.class_weight[self.winner] * high, 1)
        gaps = []
        for j in self._others:
            low, _ = probability_at_center(evaluation, j)
            gaps.append(up(own - down(self.class_weight[j] * low, 1), 1))
        return xp.min(xp.stack(gaps, axis=1), axis=1)

    def function(self, model: Model) -> PlainFunction:
        """The margin and the gradient of its smallest part."""
        assert isinstance(model, Committee), "a goal of committees"
        return rest_margin_function(model, self.winner, self.class_weight)

    @property
    def _others(self) -> list[int]:
        return [j for j in range(len(self.class_weight)) if j != self.winner]

    def _weights(self, rival: int) -> list[float]:
        weights = [0.0] * len(self.class_weight)
        weights[self.winner] = self.class_weight[self.winner]
        weights[rival] = -self.class_weight[rival]
        return weights

    def _side(self, evaluation: Evaluation, index: int, sign: int) -> GoalBound:
        return probability(evaluation, index, sign)


@dataclass(frozen=True)
class RestGoal(Goal):
    """`sign * F_c / sum_k F_k`: the normalised probability of class c; 0 where all F_k are 0."""

    class_index: int
    sign: int

    needs_variance = True

    @property
    def known(self) -> tuple[float, float]:
        """A probability, or its negative."""
        return (0.0, 1.0) if self.sign > 0 else (-1.0, 0.0)

    def bound(self, evaluation: Evaluation, target: float | None) -> GoalBound:
        """The better of the members' extremes and the test of a level.

        Extremes: the ratio increases in F_c and decreases in the others. Level t: with
        `N = (1 - t) F_c - t sum_{k != c} F_k`, the ratio is `t + N / sum_k F_k`; a lower bound n of
        sign N, joint over the members, gives `sign ratio >= sign t + n / S`, S the largest sum
        where n >= 0, else the smallest. Any level is valid, the ratio at the centre is a good one.
        """
        del target
        xp = namespace(evaluation.cells.lower)
        count = len(evaluation.parts)
        lows = [probability(evaluation, k, 1).lower for k in range(count)]
        highs = [-probability(evaluation, k, -1).lower for k in range(count)]
        apart = self._extreme(lows, highs)
        level = self._level(evaluation)
        rise = self.sign * (1.0 - level)
        weights = [rise if k == self.class_index else -self.sign * level for k in range(count)]
        joint = weighted_sum(evaluation, weights)
        n = joint.lower
        least = down(sum(lows), count)
        total = xp.where(n >= 0, up(sum(highs), count), least)
        known = least > 0  # where all F_k may be 0 the formula says nothing
        step = down(xp.where(known, n, xp.zeros_like(n)) / xp.where(known, total, 1.0 + 0.0 * n), 1)
        tested = down(self.sign * level + step, 1)
        lower = xp.where(known, xp.maximum(apart, tested), apart)
        return GoalBound(lower, joint.point, split_scores(evaluation, [1.0] * count))

    def ceiling(self, evaluation: Evaluation) -> Array:
        """The other side's extremes of the members' values at the centre."""
        ranges = [probability_at_center(evaluation, k) for k in range(len(evaluation.parts))]
        flipped = RestGoal(self.class_index, -self.sign)
        return -flipped._extreme([low for low, _ in ranges], [high for _, high in ranges])

    def function(self, model: Model) -> PlainFunction:
        """The probability and its gradient."""
        assert isinstance(model, Committee), "a goal of committees"
        return rest_probability_function(model, self.class_index, self.sign)

    def _extreme(self, lows: list[Array], highs: list[Array]) -> Array:
        """Lower bound of `sign * F_c / sum_k F_k` from the ranges of all F_k."""
        c = self.class_index
        xp = namespace(lows[0])
        own = lows[c] if self.sign > 0 else highs[c]
        others = highs if self.sign > 0 else lows
        rest = [others[k] for k in range(len(others)) if k != c]
        zero, one = xp.zeros_like(own), xp.ones_like(own)
        total = sum(rest, own)
        if self.sign > 0:
            total = up(total, len(rest))
            return nonnegative(down(own / xp.where(total > 0, total, one), 1))
        total = down(total, len(rest))
        ratio = up(own / xp.where(total > 0, total, one), 1)
        # all of them may be 0: then nothing is known, but a ratio is at most 1
        return -xp.minimum(xp.where(total > 0, ratio, one), one) + zero

    def _level(self, evaluation: Evaluation) -> Array:
        """About the ratio at the centre, as a multiple of `LEVEL_GRID` in [0, 1]."""
        middles = [
            0.5 * sum(probability_at_center(evaluation, k)) for k in range(len(evaluation.parts))
        ]
        xp = namespace(middles[0])
        total = sum(middles)
        one = xp.ones_like(total)
        ratio = middles[self.class_index] / xp.where(total > 0, total, one)
        return xp.floor(xp.clip(ratio, 0.0, 1.0) / LEVEL_GRID) * LEVEL_GRID


def committee_goal(
    committee: Committee, winner: int, class_weight: Sequence[float] | None = None
) -> Goal:
    """The margin of class number `winner`: positive exactly where the committee decides for it.

    Where several classes have the same score the margin of each is 0, and nothing is claimed.
    """
    m = len(committee.classes)
    if not 0 <= winner < m:
        raise InputError(f"winner: expected 0 to {m - 1}, got {winner!r}")
    weights = check_class_weight(committee, class_weight)
    if committee.scheme == "one_vs_rest":
        return RestMarginGoal(winner, weights)
    return PairVotesGoal(winner, m) if committee.shared else VotesGoal(winner, m)
