"""Bounds of the votes of a support vector machine: only pairs that matter are looked at.

Which outcomes of several pairs at once some point of a cell may have is found by linear programs.
Each pair alone may go to either class on a cell on which no point gives a rival enough of them. The
programs (HiGHS) only propose multipliers and points; what counts is a sum of proved inequalities.

Proofs: docs/mathematics.md, statements 11.5 and 11.6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from typing import Annotated, NamedTuple

import numpy as np

from gpcert.attacks.functions import through_features
from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.goals.goal import (
    GoalBound,
    least_mean,
    lower_bound,
    upper_at_center,
    worst_of,
)
from gpcert.enclosures.lower_model import QuadraticLowerModel
from gpcert.enclosures.mean import Units
from gpcert.kernels.expansions.base import LinearModel
from gpcert.model.committee import vote_scores
from gpcert.numerics.arrays import Array, least_of, namespace, to_numpy
from gpcert.numerics.rounding import down, gamma, up
from gpcert.quantities import PairVotes
from gpcert.quantities.committee import counted
from gpcert.regions.scaled import ScaledCells
from gpcert.utils.processes import checkpoint

MOST_PROGRAMS = 64
"""Of one cell; what they leave is split."""


STEPS = 12
"""Steps towards good multipliers before a linear program is solved, which takes a hundred times as
long as one."""


def _proposals(
    S: Annotated[np.ndarray, "n f"], c: Annotated[np.ndarray, "n"]
) -> Iterator[tuple[np.ndarray | None, np.ndarray | None]]:
    """Multipliers w (n,) with `min over |y_j| <= 1 of w.(S y + c) > 0`, or a point y with
    `S y + c <= 0`, by Frank and Wolfe's steps with exact searches along lines; nothing where
    neither is found soon. Of two rows one step is enough.

    The dual `w.c - |w S|_1` is concave in w; along a line it is piecewise linear, and largest where
    the slope changes its sign: at `u_j + lambda v_j = 0` for one j, whose y_j is free there.
    """
    w, n = np.full(len(c), 1.0 / len(c)), len(c)
    y = -np.sign(w @ S)
    for _ in range(STEPS):
        u, values = w @ S, S @ y + c
        if np.all(values <= 0.0):
            yield None, y
            return
        if w @ c - np.abs(u).sum() > 0.0:
            yield w, None
            return
        toward = np.eye(n)[np.argmax(values)] - w
        v, along = toward @ S, float(toward @ c)
        with np.errstate(divide="ignore", invalid="ignore"):
            kinks = -u / v
        inside = np.flatnonzero((kinks > 0.0) & (kinks < 1.0))
        order = inside[np.argsort(kinks[inside])]
        sign = np.where(u != 0.0, np.sign(u), np.sign(v))
        slope = along - float(sign @ v) - np.concatenate([[0.0], np.cumsum(2.0 * np.abs(v[order]))])
        first = int(np.argmax(slope <= 0.0)) if np.any(slope <= 0.0) else len(slope)
        if first == 0:
            return
        y = -sign
        y[order[: first - 1]] *= -1.0
        step = 1.0
        if first <= len(order):  # the slope changes its sign at this kink
            j = order[first - 1]
            step = float(kinks[j])
            y[j] = np.clip(-(along + float(np.delete(v, j) @ np.delete(y, j))) / v[j], -1.0, 1.0)
        w = w + step * toward


class Outcome(NamedTuple):
    """`constant + slope.d <= 0` at every point of a cell where a class does not lose to another."""

    slope: Annotated[np.ndarray, "f"]
    constant: float

    @staticmethod
    def of(against: QuadraticLowerModel, level: float, cell: int) -> Outcome:
        """From a first order, without a weight, below a function that is at most `level` there."""
        each = (against.gradient, against.value, against.error)
        slope, value, error = (to_numpy(part[cell]) for part in each)
        size = abs(value) + error + abs(level)
        return Outcome(slope, float(down(value - error - level - gamma(8) * size, 4)))


class VotePatterns:
    """The outcomes of pairs on one cell; `outcome(a, b)` is that of a, which does not lose to b."""

    def __init__(self, geometry: ScaledCells, outcome: Callable[[int, int], Outcome]) -> None:
        self.geometry = geometry
        self.half = to_numpy(geometry.half)[0]
        self.outcome = lru_cache(maxsize=None)(outcome)
        self.sure = lru_cache(maxsize=None)(self._sure)
        self.left = MOST_PROGRAMS

    def excluded(self, outcomes: list[Outcome], weights: Annotated[np.ndarray, "n"]) -> bool:
        """Whether no point has all outcomes, from multipliers >= 0 of any origin.

        The weighted sum is at most 0 at such a point; its least value on the cell is more.
        """
        xp, n = namespace(self.geometry.half), len(outcomes)
        slopes, constants = map(np.stack, zip(*outcomes, strict=True))
        slope, constant = weights @ slopes, weights @ constants
        sizes = weights @ np.abs(slopes) @ self.half + weights @ np.abs(constants)
        place = xp.asarray(slope[None], device=self.geometry.half.device)
        least = float(self.geometry.least(place)[0]) + constant
        lost = up(gamma(2 * n + 16) * sizes, len(slope) + n + 8)
        return bool(down(least - lost, 3) > 0)

    def _sure(self, a: int, b: int) -> bool:
        """Whether a beats b on the whole cell."""
        return self.excluded([self.outcome(b, a)], np.ones(1))

    def point(self, outcomes: list[Outcome]) -> Annotated[np.ndarray, "f"] | None:
        """About a displacement with all outcomes; None where there is surely none."""
        from scipy.optimize import linprog

        slopes, constants = map(np.stack, zip(*outcomes, strict=True))
        slopes = slopes * self.half  # of displacements in half-widths
        if not np.all(np.isfinite(constants)):
            return np.zeros_like(self.half)
        scale = np.abs(slopes).sum(axis=1) + np.abs(constants)
        scale = np.where(scale > 0, scale, 1.0)
        for weights, place in _proposals(slopes / scale[:, None], constants / scale):
            if weights is not None and self.excluded(outcomes, weights / scale):
                return None
            if place is not None:
                return place * self.half
        rows = np.hstack([slopes / scale[:, None], -np.ones((len(scale), 1))])
        cost = np.append(np.zeros(len(self.half)), 1.0)
        bounds = [*((-1.0, 1.0) for _ in self.half), (None, None)]
        found = linprog(cost, rows, -constants / scale, bounds=bounds, method="highs")
        if found.x is None:
            return np.zeros_like(self.half)
        weights = np.clip(-found.ineqlin.marginals, 0.0, None) / scale
        if found.fun > 0 and self.excluded(outcomes, weights):
            return None
        return found.x[:-1] * self.half

    def beaten(
        self, winner: int, rival: int, classes: int
    ) -> tuple[bool, Annotated[np.ndarray, "f"] | None]:
        """Whether the winner is ahead of the rival on the whole cell, and if not, a displacement at
        which it may not be.

        Outcomes are assumed pair by pair, until they leave the winner ahead whatever the others
        are, or exclude each other, or some point has them.
        """
        others = [k for k in range(classes) if k not in {winner, rival}]
        pairs = [(rival, winner), *((k, winner) for k in others), *((rival, k) for k in others)]
        # in each the first gains where the rival does
        sure = {pair: winning for pair in pairs for winning in [self._winner(pair)] if winning}
        open_, stack = [pair for pair in pairs if pair not in sure], [{}]
        while stack:
            checkpoint()
            assumed = stack.pop()
            if not self._may_lead(sure | assumed, winner, rival, classes):
                continue
            left = [pair for pair in open_ if pair not in assumed]
            if len(assumed) > 1:
                self.left -= 1
                each = [self.outcome(*self._ordered(p, first)) for p, first in assumed.items()]
                point = self.point(each)
                if point is None:
                    continue
                votes = sure | {pair: self._at(pair, point) for pair in open_}
                if self.left <= 0 or not left or self._leads(votes, winner, rival, classes):
                    return False, point
            elif not left:
                return False, None
            stack += [assumed | {left[0]: first} for first in (-1, 1)]
        return True, None

    def _winner(self, pair: tuple[int, int]) -> int:
        """1 where the first surely wins, -1 where the second does, else 0."""
        return int(self.sure(*pair)) - int(self.sure(*pair[::-1]))

    @staticmethod
    def _ordered(pair: tuple[int, int], first: int) -> tuple[int, int]:
        return pair if first > 0 else (pair[1], pair[0])

    def _at(self, pair: tuple[int, int], point: np.ndarray) -> int:
        """Which of a pair may win at a point, the first where both may."""
        slope, constant = self.outcome(*pair)
        return 1 if constant + slope @ point <= 0 else -1

    @staticmethod
    def _may_lead(votes: dict[tuple[int, int], int], winner: int, rival: int, classes: int) -> bool:
        """Whether the rival leads if all pairs that are not known go its way."""
        lost = sum(rival == pair[0] for pair, first in votes.items() if first < 0)
        gained = sum(winner == pair[1] for pair, first in votes.items() if first < 0)
        lead = gained - (classes - 1 - lost)  # V of the winner at least, V of the rival at most
        return lead + (rival - winner) / classes <= 0

    _leads = _may_lead


JUMPS = 3
"""Vertices that are tried before a Hessian is formed; each costs about a hundredth of one."""


@upper_at_center.register(PairVotes)
def _votes_at_center(quantity: PairVotes, evaluation: Evaluation) -> Array:
    """From the means of all pairs at once."""
    return quantity.highest(*(list(end.T) for end in _center_range(evaluation)))


@lower_bound.register(PairVotes)
def _votes(quantity: PairVotes, evaluation: Evaluation, target: float | None) -> GoalBound:
    return _PairVotes(quantity, evaluation).bound()


PATTERN_CELLS = 16
"""Open cells up to which patterns of votes are looked at."""

MANY_CLASSES = 3
"""Of two there is one pair."""


class _PairVotes:
    """The votes on one batch of cells."""

    def __init__(self, quantity: PairVotes, evaluation: Evaluation) -> None:
        self.quantity, self.evaluation = quantity, evaluation
        self.winner, self.classes, self.rivals = quantity.winner, quantity.classes, quantity.rivals
        self.xp = namespace(evaluation.cells.lower)

    def bound(self) -> GoalBound:
        """Pairs whose sign is certain on the cell count as they are, others against the winner.

        The winner's own pairs come first. Where class i surely wins all of them it has m - 1 votes
        and any other at most m - 2: nothing else is needed. Only of rivals for whom that leaves the
        lead open are the other pairs looked at.
        """
        xp = self.xp
        zero = xp.zeros_like(self.evaluation.expansion.geometry.rho2)
        winners, hopeless = self._winner_pairs()
        total = sum((counted(won.lower > 0) for won in winners.values()), zero)
        leads = []
        for j in self.rivals:
            # V_j is at most (m - 2) + 1, less the defeats that are sure
            lead = total - float(self.classes - 1) + counted(winners[j].lower > 0)
            shift = self.quantity.shift(j)
            if not hopeless and not bool(xp.all(lead + shift > 0)):
                lead = lead + self._defeats(j, lead)
            leads.append(down(lead + shift, 1))
        # the winner's most endangered pair is where its decision may change
        danger = worst_of([winners[j] for j in self.rivals])
        found = GoalBound(least_of(leads), danger.point, danger.scores)
        return found if hopeless else self._by_patterns(xp.stack(leads, axis=1), found)

    def _by_patterns(self, leads: Array, found: GoalBound) -> GoalBound:
        """Of few open cells, whose first orders carry no weight: by several pairs at once."""
        evaluation, xp = self.evaluation, self.xp
        expansion, local = evaluation.expansion, evaluation.local
        lower, points = to_numpy(leads).copy(), to_numpy(found.point).copy()
        (cells,) = np.nonzero(np.any(lower <= 0, axis=1))
        known = len(cells) in range(1, PATTERN_CELLS + 1) and local.kernel.weight_rate == 0.0
        if not known or not expansion.geometry.half.shape[1] or self.classes < MANY_CLASSES:
            return found
        if None in _linear_models(evaluation, range(len(local.weights))):
            return found
        for b in cells.tolist():
            geometry = expansion.geometry.take(np.asarray([b]))
            patterns = VotePatterns(geometry, lambda a, c, b=b: self._outcome(a, c, b))
            for column, j in enumerate(self.rivals):
                if lower[b, column] > 0:
                    continue
                proved, point = patterns.beaten(self.winner, j, self.classes)
                if not proved:
                    if point is not None:
                        place = xp.asarray(point[None], device=leads.device)
                        points[b] = to_numpy(geometry.unscaled(place))[0]
                    break
                shift = self.quantity.shift(j)
                lower[b, column] = down(shift if shift > 0 else 1.0 + shift, 2)
        least, points = (xp.asarray(a, device=leads.device) for a in (lower.min(axis=1), points))
        return replace(found, lower=least, point=points)

    def _outcome(self, a: int, c: int, cell: int) -> Outcome:
        """Where class a does not lose to c: minus the mean of their pair, of the sign with which a
        wins, is at most 0."""
        evaluation, local = self.evaluation, self.evaluation.local
        output, sign = self._pair(a, c)
        (model,) = _linear_models(evaluation, [output])
        assert model is not None, "all are known"
        against = local.first_order(evaluation.expansion, model, (output, -sign))
        level = local.mean_units(output, evaluation.expansion).signed(-sign).safe_level(0.0)
        level = float(level if isinstance(level, int | float) else level[cell])
        return Outcome.of(against, level, cell)

    def _pair(self, c: int, k: int) -> tuple[int, int]:
        """The output of the pair of c and k, and the sign of its mean where c wins."""
        pairs = list(combinations(range(self.classes), 2))
        return pairs.index((min(c, k), max(c, k))), (1 if c > k else -1)

    def _winner_pairs(self) -> tuple[dict[int, GoalBound], bool]:
        """Bounds of the winner's pairs, by rival, and whether a proof is not to be had.

        Of many features (where there is a first order by itself) the second order is asked only
        about pairs that the first leaves open, the weakest first, until one stays open on all
        cells; and not at all once a point of another decision is seen, as then there is no proof.
        """
        evaluation, xp = self.evaluation, self.xp
        pairs = {j: self._pair(self.winner, j) for j in self.rivals}
        _linear_models(evaluation, [output for output, _ in pairs.values()])
        cheap = {j: _first_order(evaluation, *pair) for j, pair in pairs.items()}
        bounds = {j: bound for j, bound in cheap.items() if bound is not None}
        if len(bounds) < len(pairs):
            return {j: _sure(evaluation, *pair) for j, pair in pairs.items()}, False
        least = {j: float(xp.min(bound.lower)) for j, bound in bounds.items()}
        weak = sorted((j for j in bounds if least[j] <= 0), key=least.__getitem__)
        if weak and self._changed(bounds[weak[0]].point, pairs[weak[0]]):
            return bounds, True
        for j in weak:
            bounds[j] = _second_order(evaluation, *pairs[j], bounds[j])
            if bool(xp.all(bounds[j].lower <= 0)):
                break
        return bounds, False

    def _changed(self, start: Array, pair: tuple[int, int]) -> bool:
        """Whether a few vertices, each against the pair's slope at the last one, meet another
        decision in the region, by plain numbers: they say what is worth doing, and nothing is
        claimed from them."""
        cells, member = self.evaluation.cells, self.evaluation.local.posterior
        center, half = to_numpy(cells.center), to_numpy(cells.half)
        output, sign = pair
        move = to_numpy(start)
        for _ in range(JUMPS):
            points = cells.region.project(cells.points_full(center + move))
            K, product = member.cross_with_gradient(points)
            scores = vote_scores(member.mean_from(points, K), self.classes)
            if np.any(scores.argmax(axis=1) != self.winner):
                return True
            weights = np.tile(sign * member.weights[output], (len(points), 1))
            gradient = product(weights) + sign * member.slope[output]
            slope = through_features(member, points, gradient)
            move = -half * np.sign(slope[:, cells.region.free])
        return False

    def _defeats(self, j: int, lead: Array) -> Array:
        """How many pairs class j surely loses, that with the winner apart.

        Pairs that it does not lose at the centres are not lost; where the rest are too few to make
        the lead positive anywhere, none is looked at.
        """
        evaluation, xp = self.evaluation, self.xp
        low, high = _center_range(evaluation)
        signs = counted(low > 0) - counted(high < 0)  # 0 where it is not certain
        pairs = [self._pair(k, j) for k in range(self.classes) if k not in {j, self.winner}]
        losable = [(p, s) for p, s in pairs if bool(xp.any(s * signs[:, p] > 0))]
        count = xp.zeros_like(lead)
        if not bool(xp.any(lead + len(losable) + self.quantity.shift(j) > 0)):
            return count
        _linear_models(evaluation, range(len(evaluation.local.weights)))
        for p, s in losable:
            count = count + counted(_sure(evaluation, p, s).lower > 0)
        return count


def _sure(evaluation: Evaluation, output: int, sign: int) -> GoalBound:
    """Lower bound of `sign mu` of an output over each cell, the cheapest that there is."""

    def compute() -> GoalBound:
        cheap = _first_order(evaluation, output, sign)
        return least_mean(evaluation, output, sign, 0.0) if cheap is None else cheap

    return evaluation.once(("sure", output, sign), compute)


def _second_order(evaluation: Evaluation, output: int, sign: int, cheap: GoalBound) -> GoalBound:
    (model,) = _linear_models(evaluation, [output])
    if model is not None and not bool(namespace(model.remainder).any(model.remainder != 0)):
        return cheap  # it is linear
    enclosure = evaluation.local.mean(evaluation.expansion, output, pointwise=False)
    tested = _tested(enclosure.side(sign), enclosure.units.signed(sign))
    return replace(tested, lower=namespace(tested.lower).maximum(tested.lower, cheap.lower))


def _tested(model: QuadraticLowerModel, units: Units) -> GoalBound:
    """Whether the mean is positive, and the bound in its units."""
    level = namespace(model.value).zeros_like(model.value) + units.level(0.0)
    return GoalBound.of(model.geometry, model.minimum(level), units)


def _first_order(evaluation: Evaluation, output: int, sign: int) -> GoalBound | None:
    local, expansion = evaluation.local, evaluation.expansion
    geometry = expansion.geometry
    if geometry.half.shape[1] == 0:  # a single point
        low, high = _center_range(evaluation)
        lower = low[:, output] if sign > 0 else -high[:, output]
        return GoalBound(lower, geometry.half, geometry.half)
    (model,) = _linear_models(evaluation, [output])
    if model is None:
        return None
    enclosure = local.first_order(expansion, model, (output, sign))
    return _tested(enclosure, local.mean_units(output, expansion).signed(sign))


def _linear_models(evaluation: Evaluation, outputs: Sequence[int]) -> list[LinearModel | None]:
    """Those of some outputs; what is not known yet is made together."""
    models = evaluation.once(("linear models",), dict)
    asked = [c for c in outputs if c not in models]
    if asked:
        found = evaluation.local.linear_models(evaluation.expansion, asked)
        models.update(zip(asked, found or [None] * len(asked), strict=True))
    return [models[c] for c in outputs]


def _center_range(evaluation: Evaluation) -> tuple[Array, Array]:
    """Certified means (B, outputs) at the centres."""
    return evaluation.center_ranges(*range(len(evaluation.local.weights)))
