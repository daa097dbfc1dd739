"""Goal of a one-vs-one committee: the margin of the votes, ties broken by sums of confidences.

With y_p = 1 where member p (of classes j < k) votes for k, else 0, and the weights
`w = pair_weights(m, i) - pair_weights(m, j)`, the classes i and j differ by

    V_i - V_j = j - i + sum_p w_p y_p   votes   and   S_i - S_j = sum_p w_p F_p   in confidences,

and their scores by `V_i - V_j + f(S_i) - f(S_j)`, `f(s) = s / (3 (|s| + 1))`.

Proofs: docs/mathematics.md, statements 11.3 and 11.4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpcert.arrays import Array, namespace
from gpcert.attacks.committee_functions import votes_margin_function
from gpcert.attacks.functions import PlainFunction
from gpcert.committee import Committee, Model, pair_weights
from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.goals.base import Goal, GoalBound, worst_of
from gpcert.enclosures.goals.members import (
    latent_mean,
    probability,
    probability_at_center,
    split_scores,
    weighted_sum,
)
from gpcert.rounding import down, gamma, up, up_float


@dataclass(frozen=True)
class VotesGoal(Goal):
    """`min_j (score_i - score_j)`, i the winner: positive exactly where i is decided, ties apart.

    The margin jumps where a vote changes, so bounds meet on neither side of such a place; a proof
    or a refutation needs only their signs.
    """

    winner: int
    classes: int

    needs_variance = True

    def bound(self, evaluation: Evaluation, target: float | None) -> GoalBound:
        """Votes that the sign of a latent mean settles on the cell count as such, others for j.

        The tie-break `f(S_i) - f(S_j)` is bounded only on batches where votes alone leave a tie:
        one vote is more than it can ever be.
        """
        del target
        xp = namespace(evaluation.cells.lower)
        votes = [self._votes(evaluation, j) for j in self._others]
        least = xp.min(xp.stack(votes, axis=1), axis=1)
        found = []
        for j, number in zip(self._others, votes, strict=True):
            weights = self._weights(j)
            tie_break = xp.full_like(number, -self._largest_tie_break)
            if bool(xp.any((number == 0.0) & (least == 0.0))):
                tie_break = self._tie_break(evaluation, j)
            pair = int(np.argmax(np.abs(weights)))  # that of i and j themselves
            point = latent_mean(evaluation, pair, 1 if weights[pair] > 0 else -1, 0.0).point
            scores = split_scores(evaluation, weights.tolist())
            found.append(GoalBound(down(number + tie_break, 1), point, scores))
        return worst_of(found)

    def ceiling(self, evaluation: Evaluation) -> Array:
        """The same at the centre, where only votes within rounding of a change stay open."""
        xp = namespace(evaluation.cells.lower)
        votes = [self._votes_at_center(evaluation, j) for j in self._others]
        least = xp.min(xp.stack(votes, axis=1), axis=1)
        scores = []
        for j, number in zip(self._others, votes, strict=True):
            tie_break = xp.full_like(number, self._largest_tie_break)
            if bool(xp.any((number == 0.0) & (least == 0.0))):
                ranges = self._center_ranges(evaluation)
                own, rival = (
                    _confidence(ranges, pair_weights(self.classes, c)) for c in (self.winner, j)
                )
                tie_break = up(_squashed(own[1], 1) - _squashed(rival[0], -1), 1)
            scores.append(up(number + tie_break, 1))
        return xp.min(xp.stack(scores, axis=1), axis=1)

    def function(self, model: Model) -> PlainFunction:
        """The margin and its gradient where no vote changes."""
        assert isinstance(model, Committee), "a goal of committees"
        return votes_margin_function(model, self.winner)

    @property
    def _others(self) -> list[int]:
        return [j for j in range(self.classes) if j != self.winner]

    @property
    def _largest_tie_break(self) -> float:
        """`|f(S_i) - f(S_j)| <= 2 (m - 1) / (3 m)`, rounded up: |S| <= m - 1, as 0 <= F <= 1."""
        return up_float(2.0 * (self.classes - 1) / (3.0 * self.classes), 3)

    def _weights(self, rival: int) -> np.ndarray:
        return pair_weights(self.classes, self.winner) - pair_weights(self.classes, rival)

    def _votes(self, evaluation: Evaluation, rival: int) -> Array:
        """Lower bound of V_i - V_j over each cell; whole numbers, so nothing rounds."""
        xp = namespace(evaluation.cells.lower)
        total = xp.zeros_like(xp.sum(evaluation.cells.lower, axis=1)) + float(rival - self.winner)
        for p, weight in enumerate(self._weights(rival).tolist()):
            if weight > 0:  # y = 1 only where mu > 0 is certain
                sure = latent_mean(evaluation, p, 1, 0.0).lower > 0
                total = total + xp.where(sure, weight + 0.0 * total, 0.0 * total)
            elif weight < 0:  # y = 0 only where mu < 0 is certain
                sure = latent_mean(evaluation, p, -1, 0.0).lower > 0
                total = total + xp.where(sure, 0.0 * total, weight + 0.0 * total)
        return total

    def _votes_at_center(self, evaluation: Evaluation, rival: int) -> Array:
        """Upper bound of V_i - V_j at the centres."""
        xp = namespace(evaluation.cells.lower)
        total = xp.zeros_like(xp.sum(evaluation.cells.lower, axis=1)) + float(rival - self.winner)
        for p, weight in enumerate(self._weights(rival).tolist()):
            member = evaluation.member(p)
            if weight > 0:  # y = 0 only where mu < 0 is certain
                sure = member.mean_at_center(0)[1] < 0
                total = total + xp.where(sure, 0.0 * total, weight + 0.0 * total)
            elif weight < 0:  # y = 1 only where mu > 0 is certain
                sure = member.mean_at_center(0)[0] > 0
                total = total + xp.where(sure, weight + 0.0 * total, 0.0 * total)
        return total

    def _tie_break(self, evaluation: Evaluation, rival: int) -> Array:
        """Lower bound of `f(S_i) - f(S_j)` over each cell.

        The better of two. f increases: f at the ends of both ranges. And with D <= S_i - S_j and
        |S_i|, |S_j| <= s on the cell: `D / (3 (1 + s)^2)` where D >= 0, else D / 3.
        Reason: `f' = 1 / (3 (1 + |s|)^2)` lies between those slopes (mean value theorem).
        """
        xp = namespace(evaluation.cells.lower)
        ranges = []
        for p in range(len(evaluation.parts)):
            low, high = probability(evaluation, p, 1).lower, -probability(evaluation, p, -1).lower
            ranges.append((low, high))
        own, other = (
            _confidence(ranges, pair_weights(self.classes, c)) for c in (self.winner, rival)
        )
        apart = down(_squashed(own[0], -1) - _squashed(other[1], 1), 1)
        difference = weighted_sum(evaluation, self._weights(rival).tolist()).lower
        sizes = [xp.abs(end) for end in (*own, *other)]
        size = xp.maximum(xp.maximum(sizes[0], sizes[1]), xp.maximum(sizes[2], sizes[3]))
        gentle = up(3.0 * (1.0 + size) ** 2, 6)
        joint = down(difference / xp.where(difference >= 0, gentle, 3.0 + 0.0 * gentle), 1)
        return xp.maximum(apart, joint)

    def _center_ranges(self, evaluation: Evaluation) -> list[tuple[Array, Array]]:
        return [probability_at_center(evaluation, p) for p in range(len(evaluation.parts))]


def _confidence(ranges: list[tuple[Array, Array]], weights: np.ndarray) -> tuple[Array, Array]:
    """Range of `sum_p w_p F_p` from the ranges of F_p, weights 1, -1 or 0."""
    low, high = 0.0 * ranges[0][0], 0.0 * ranges[0][0]
    size = low
    for (below, above), weight in zip(ranges, weights.tolist(), strict=True):
        if weight != 0:
            ends = (below, above) if weight > 0 else (-above, -below)
            low, high = low + ends[0], high + ends[1]
            size = size + above
    # the terms may cancel: rounding is counted by their size
    rounding = up(gamma(len(ranges) + 2) * size, len(ranges) + 2)
    return down(low - rounding, 1), up(high + rounding, 1)


def _squashed(s: Array, side: int) -> Array:
    """`f(s) = s / (3 (|s| + 1))`, rounded down (side = -1) or up (side = 1)."""
    value = s / (3.0 * (abs(s) + 1.0))
    return up(value, 4) if side > 0 else down(value, 4)
