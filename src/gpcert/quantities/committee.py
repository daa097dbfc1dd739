"""What committees decide by: sums and shares of their members' probabilities, and votes.

A pair p of classes j < k votes for k where its mean is positive, else for j. With y_p = 1 in the
first case, else 0, and the weights `w = pair_weights(m, i) - pair_weights(m, j)`, the classes i and
j differ by

    V_i - V_j = j - i + sum_p w_p y_p   votes   and   S_i - S_j = sum_p w_p F_p   in confidences.

The margins jump where a vote changes, so bounds meet on neither side of such a place; a proof or a
refutation needs only their signs.

Proofs: docs/mathematics.md, statements 11.1 to 11.5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Annotated

import numpy as np

from gpcert.errors import InputError
from gpcert.likelihoods import ScalarLikelihood
from gpcert.model.committee import Committee, check_class_weight, pair_weights, vote_scores
from gpcert.numerics.arrays import Array, PerCell, PerRow, Reals, least_of, namespace
from gpcert.numerics.rounding import down, gamma, nonnegative, up, up_float
from gpcert.quantities.compound import (
    Compound,
    Ends,
    LeastOfSums,
    Values,
    Weights,
    margins,
    row_sum,
)
from gpcert.quantities.output import Mean, Probability


def member_probabilities(committee: Committee) -> tuple[Probability, ...]:
    """F_k of every member."""
    probabilities = []
    for k, member in enumerate(committee.members):
        assert isinstance(member.likelihood, ScalarLikelihood), "a committee checks its members"
        probabilities.append(Probability(member.likelihood, k, 1))
    return tuple(probabilities)


@dataclass(frozen=True)
class LeastSum(LeastOfSums, Compound):
    """`min_j sum_k weights_jk F_k`. With `min_j (w_i F_i - w_j F_j)` it is positive exactly where
    one-vs-rest decides for i, ties apart."""

    parts: tuple[Probability, ...]  # pyright: ignore[reportIncompatibleVariableOverride]
    weights: tuple[Weights, ...]

    @property
    def known(self) -> tuple[float, float]:
        """Each F lies in [0, 1]."""
        rows = np.asarray(self.weights)
        return float(np.minimum(rows, 0).sum(1).min()), float(np.maximum(rows, 0).sum(1).min())

    def sums(self, low: Ends, high: Ends) -> list[PerCell]:
        """Lower bounds (B,) of every sum: each F on the side of its weight."""
        return [row_sum(row, low, high) for row in self.weights]

    def lowest(self, low: Ends, high: Ends) -> PerCell:
        """The least of the sums'."""
        return least_of(self.sums(low, high))

    def highest(self, low: Ends, high: Ends) -> PerCell:
        """Minus the lowest of the negative."""
        return least_of([-row_sum(tuple(-w for w in row), low, high) for row in self.weights])


@dataclass(frozen=True)
class Share(Compound):
    """`sign F_c / sum_k F_k`: the normalised probability of class c; 0 where all F_k are 0."""

    parts: tuple[Probability, ...]  # pyright: ignore[reportIncompatibleVariableOverride]
    index: int
    sign: int

    @property
    def known(self) -> tuple[float, float]:
        """A probability, or its negative."""
        return (0.0, 1.0) if self.sign > 0 else (-1.0, 0.0)

    def lowest(self, low: Ends, high: Ends) -> PerCell:
        """The ratio increases in F_c and decreases in the others."""
        c, xp = self.index, namespace(low[0])
        probability = low[c] if self.sign > 0 else high[c]
        others = high if self.sign > 0 else low
        rest = [others[k] for k in range(len(self.parts)) if k != c]
        one = xp.ones_like(probability)
        total = (up if self.sign > 0 else down)(sum(rest, probability), len(rest))
        ratio = probability / xp.where(total > 0, total, one)
        if self.sign > 0:
            return nonnegative(down(ratio, 1))
        ratio = up(ratio, 1)
        # all of them may be 0: then nothing is known, but a ratio is at most 1
        return -xp.minimum(xp.where(total > 0, ratio, one), one) + 0.0 * one

    def highest(self, low: Ends, high: Ends) -> PerCell:
        """Minus the lowest of the negative."""
        return -replace(self, sign=-self.sign).lowest(low, high)

    def value(self, y: Values) -> PerRow:
        """The ratio."""
        total = y.sum(axis=1)
        probability = y[:, self.index]
        return self.sign * np.divide(probability, total, out=np.zeros_like(total), where=total != 0)

    def slopes(self, y: Values) -> Values:
        """`sign (e_c - ratio) / total`."""
        total = y.sum(axis=1, keepdims=True)
        unit = self.sign * (np.arange(len(self.parts)) == self.index)
        return (unit - self.value(y)[:, None]) / np.where(total != 0, total, 1.0)


class _ByVotes(Compound):
    """The lead of a class over the others by the votes of pairs, whose means come first."""

    winner: int
    classes: int

    level = 0.0

    @property
    def rivals(self) -> list[int]:
        """All classes but the winner."""
        return [j for j in range(self.classes) if j != self.winner]

    def weights(self, rival: int) -> Annotated[np.ndarray, "k"]:
        """w of the module."""
        return pair_weights(self.classes, self.winner) - pair_weights(self.classes, rival)

    def votes(self, low: Ends, high: Ends, rival: int, side: int = 1) -> PerCell:
        """Lower bound of `side (V_i - V_j)` over each cell; whole numbers, so nothing rounds."""
        xp, weights = namespace(low[0]), (side * self.weights(rival)).tolist()
        # y = 1 only where mu > 0 is certain, y = 0 only where mu < 0 is
        ones = [(w, low[p] > 0) for p, w in enumerate(weights) if w > 0]
        zeros = [(w, ~(high[p] < 0)) for p, w in enumerate(weights) if w < 0]
        factors, y = zip(*ones, *zeros, strict=True)
        factors = xp.asarray(factors, dtype=xp.float64, device=low[0].device)
        counts = factors[:, None] * counted(xp.stack(list(y)))
        return float(side * (rival - self.winner)) + xp.sum(counts, axis=0)


@dataclass(frozen=True)
class Votes(_ByVotes):
    """`min_j (score_i - score_j)`, i the winner: positive exactly where i is decided, ties apart.

    Scores differ by `V_i - V_j + f(S_i) - f(S_j)`, `f(s) = s / (3 (|s| + 1))`: sums of confidences
    break ties. Parts are the means of all pairs, then their probabilities F_p.
    """

    probabilities: tuple[Probability, ...]
    winner: int
    classes: int

    @cached_property
    def parts(self) -> tuple[Mean | Probability, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Means, then probabilities."""
        return *(Mean(part.output, 1) for part in self.probabilities), *self.probabilities

    def leads(
        self,
        low: Ends,
        high: Ends,
        difference: Callable[[np.ndarray], Array] | None = None,
        side: int = 1,
    ) -> list[PerCell]:
        """Lower bounds (B,) of the leads over all rivals; of their negatives with side = -1.

        Votes that the sign of a mean settles count as such, others on the wrong side. The tie-break
        `f(S_i) - f(S_j)` is looked at only where votes alone leave a tie on some cell: one vote is
        more than it can ever be. `difference` gives lower bounds of sums of F_p with weights w, if
        there are better ones than from their ranges; it goes with side = 1.
        """
        votes = [self.votes(low, high, j, side) for j in self.rivals]
        least = least_of([side * number for number in votes])
        xp = namespace(least)
        bounds = []
        for j, number in zip(self.rivals, votes, strict=True):
            tie_break = xp.full_like(number, -self._largest_tie_break)
            if bool(xp.any((number == 0.0) & (least == 0.0))):
                pair = (self.winner, j) if side > 0 else (j, self.winner)
                tie_break = self._tie_break(low, high, pair, difference)
            bounds.append(down(number + tie_break, 1))
        return bounds

    def lowest(self, low: Ends, high: Ends) -> PerCell:
        """The least lead."""
        return least_of(self.leads(low, high))

    def highest(self, low: Ends, high: Ends) -> PerCell:
        """The same with open votes for the winner."""
        return least_of([-lead for lead in self.leads(low, high, side=-1)])

    def value(self, y: Values) -> PerRow:
        """The least lead."""
        return np.min(self._leads(y), axis=1)

    def slopes(self, y: Values) -> Values:
        """Those of the least lead. Votes are constant almost everywhere, so they are those of the
        sums of confidences: to where the pairs that matter become less certain."""
        F = np.split(y, 2, axis=1)[1]
        rival = np.asarray(self.rivals)[np.argmin(self._leads(y), axis=1)]
        weights = np.stack([pair_weights(self.classes, c) for c in range(self.classes)])
        steep = weights / (3.0 * (np.abs(F @ weights.T) + 1.0) ** 2)[:, :, None]
        slopes = steep[:, self.winner] - steep[np.arange(len(y)), rival]
        return np.concatenate([np.zeros_like(F), slopes], axis=1)

    def _leads(self, y: np.ndarray) -> np.ndarray:
        """(n, rivals), in plain floating point."""
        means, F = np.split(y, 2, axis=1)
        scores = vote_scores(means, self.classes, F)
        return scores[:, [self.winner]] - scores[:, self.rivals]

    @property
    def _largest_tie_break(self) -> float:
        """`|f(S_i) - f(S_j)| <= 2 (m - 1) / (3 m)`, rounded up: |S| <= m - 1, as 0 <= F <= 1."""
        return up_float(2.0 * (self.classes - 1) / (3.0 * self.classes), 3)

    def _tie_break(
        self,
        low: Ends,
        high: Ends,
        pair: tuple[int, int],
        difference: Callable[[np.ndarray], Array] | None,
    ) -> Array:
        """Lower bound of `f(S_i) - f(S_j)` over each cell for a pair (i, j).

        The better of two. f increases: f at the ends of both ranges. And with D <= S_i - S_j and
        |S_i|, |S_j| <= s on the cell: `D / (3 (1 + s)^2)` where D >= 0, else D / 3.
        Reason: `f' = 1 / (3 (1 + |s|)^2)` lies between those slopes (mean value theorem).
        """
        first, second = (self._confidence(low, high, c) for c in pair)
        apart = down(_squashed(first[0], -1) - _squashed(second[1], 1), 1)
        if difference is None:
            return apart
        xp, least = namespace(apart), difference(self.weights(pair[1]))
        size = -least_of([-xp.abs(end) for end in (*first, *second)])
        gentle = up(3.0 * (1.0 + size) ** 2, 6)
        joint = down(least / xp.where(least >= 0, gentle, 3.0 + 0.0 * gentle), 1)
        return xp.maximum(apart, joint)

    def _confidence(self, low: Ends, high: Ends, c: int) -> tuple[Array, Array]:
        """Range of `S_c = sum_p w_p F_p` from the ranges of F_p, weights 1, -1 or 0."""
        P = len(self.probabilities)
        least = most = size = 0.0 * low[P]
        for p, weight in enumerate(pair_weights(self.classes, c).tolist()):
            if weight != 0:
                below, above = low[P + p], high[P + p]
                ends = (below, above) if weight > 0 else (-above, -below)
                least, most = least + ends[0], most + ends[1]
                size = size + above
        # the terms may cancel: rounding is counted by their size
        rounding = up(gamma(P + 2) * size, P + 2)
        return down(least - rounding, 1), up(most + rounding, 1)


@dataclass(frozen=True)
class PairVotes(_ByVotes):
    """`min_j (V_i - V_j + (j - i) / m)`, i the winner: positive exactly where i is decided, the
    first of equal ones, but where a mean is exactly 0, of which nothing is claimed.

    Votes are whole numbers, and `|j - i| / m < 1`.
    """

    winner: int
    classes: int

    @cached_property
    def parts(self) -> tuple[Mean, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The means of all pairs, in lexicographic order."""
        return tuple(Mean(p, 1) for p, _ in enumerate(combinations(range(self.classes), 2)))

    @property
    def known(self) -> tuple[float, float]:
        """A class has 0 to m - 1 votes."""
        return -float(self.classes), float(self.classes)

    def shift(self, rival: int) -> float:
        """`(j - i) / m`: the first of equal ones wins."""
        return (rival - self.winner) / self.classes

    def lowest(self, low: Ends, high: Ends) -> PerCell:
        """A vote that is open counts for the rival."""
        return least_of([down(self.votes(low, high, j) + self.shift(j), 1) for j in self.rivals])

    def highest(self, low: Ends, high: Ends) -> PerCell:
        """A vote that is open counts for the winner."""
        leads = [-self.votes(low, high, j, -1) + self.shift(j) for j in self.rivals]
        return least_of([up(lead, 1) for lead in leads])

    def value(self, y: Values) -> PerRow:
        """The least lead, and less than half of its steps, growing with the least mean in favour of
        the winner over its pairs: votes themselves are constant almost everywhere."""
        scores, (_, favour, size) = vote_scores(y, self.classes), self._favour(y)
        others = np.max(scores[:, self.rivals], axis=1)
        return scores[:, self.winner] - others + favour / (3.0 * self.classes * size)

    def slopes(self, y: Values) -> Values:
        """That of the pair with the least mean in favour of the winner."""
        pair, _, size = self._favour(y)
        gradient, rows = np.zeros_like(y), np.arange(len(y))
        signs = pair_weights(self.classes, self.winner)
        gradient[rows, pair] = signs[pair] / (3.0 * self.classes * size**2)
        return gradient

    def _favour(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The winner's pair with the least mean in its favour, that mean, and 1 + its size."""
        signs = pair_weights(self.classes, self.winner)
        indices = np.flatnonzero(signs)
        favours = signs[indices] * y[:, indices]
        favour = favours.min(axis=1)
        return indices[np.argmin(favours, axis=1)], favour, 1.0 + np.abs(favour)


def committee_margin(
    committee: Committee, winner: int, class_weight: tuple[float, ...] | None = None
) -> LeastSum | Votes | PairVotes:
    """The margin of class number `winner`: positive exactly where the committee decides for it.

    Where several classes have the same score the margin of each is 0, and nothing is claimed.
    """
    m = len(committee.classes)
    if not 0 <= winner < m:
        raise InputError(f"winner: expected 0 to {m - 1}, got {winner!r}")
    weights = check_class_weight(committee, class_weight)
    if committee.scheme == "one_vs_rest":
        return LeastSum(member_probabilities(committee), margins(m, winner, weights))
    if committee.shared:
        return PairVotes(winner, m)
    return Votes(member_probabilities(committee), winner, m)


def counted(condition: Reals) -> Reals:
    """1.0 where it holds, else 0.0."""
    xp = namespace(condition)
    return xp.astype(condition, xp.float64)


def _squashed(s: Array, side: int) -> Array:
    """`f(s) = s / (3 (|s| + 1))`, rounded down (side = -1) or up (side = 1)."""
    value = s / (3.0 * (abs(s) + 1.0))
    return up(value, 4) if side > 0 else down(value, 4)
