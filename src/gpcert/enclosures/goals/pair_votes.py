"""Goal of a support vector machine of several classes: the margin of its votes.

With V_c the votes of class c (the pairs that it wins), class i is decided, the first of equal ones,
exactly where `V_i - V_j + (j - i) / m > 0` for all j: votes are whole numbers, and
`|j - i| / m < 1`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from gpcert.arrays import Array, namespace
from gpcert.attacks.committee_functions import pair_votes_function
from gpcert.attacks.functions import PlainFunction
from gpcert.committee import Committee, Model
from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.first_order import first_order_bound
from gpcert.enclosures.goals.base import Goal, GoalBound
from gpcert.enclosures.goals.mean import MeanGoal, affine_down
from gpcert.enclosures.goals.members import kept
from gpcert.rounding import down, up

__all__ = ["PairVotesGoal"]


@dataclass(frozen=True)
class PairVotesGoal(Goal):
    """`min_j (V_i - V_j + (j - i) / m)`, i the winner: positive exactly where i is decided, but
    where a mean is exactly 0, of which nothing is claimed.

    The margin jumps where a vote changes, so bounds meet on neither side of such a place; a proof
    or a refutation needs only their signs.
    """

    winner: int
    classes: int

    needs_variance = False

    @property
    def known(self) -> tuple[float, float]:
        """A class has 0 to m - 1 votes."""
        return -float(self.classes), float(self.classes)

    def bound(self, evaluation: Evaluation, target: float | None) -> GoalBound:
        """Pairs whose sign is certain on the cell count as they are, others against the winner.

        The winner's own pairs come first. Where class i surely wins all of them it has m - 1 votes
        and any other at most m - 2: nothing else is needed. Only of rivals for whom that leaves the
        lead open are the other pairs looked at.
        """
        del target
        xp = namespace(evaluation.cells.lower)
        zero = xp.zeros_like(evaluation.expansion.geometry.rho2)
        own = {j: _sure(evaluation, *self._pair(self.winner, j)) for j in self._others}
        total = sum((_count(won.lower > 0) for won in own.values()), zero)
        leads = []
        for j in self._others:
            # V_j is at most (m - 2) + 1, less the defeats that are sure
            lead = total - float(self.classes - 1) + _count(own[j].lower > 0)
            if not bool(xp.all(lead + self._shift(j) > 0)):
                lead = lead + self._defeats(evaluation, j, lead)
            leads.append(down(lead + self._shift(j), 1))
        lower = xp.min(xp.stack(leads, axis=1), axis=1)
        # the winner's most endangered pair is where its decision may change
        dangers = xp.stack([own[j].lower for j in self._others], axis=1)
        points = xp.stack([own[j].point for j in self._others], axis=1)
        rows = xp.arange(len(lower), device=dangers.device)
        point = points[rows, xp.argmin(dangers, axis=1)]
        return GoalBound(lower, point, evaluation.expansion.geometry.split_scores())

    def ceiling(self, evaluation: Evaluation) -> Array:
        """The same at the centre: a vote that rounding leaves open counts for the winner."""
        xp = namespace(evaluation.cells.lower)
        signs = _center_signs(evaluation)
        own = [s * signs[:, p] for p, s in (self._pair(self.winner, j) for j in self._others)]
        most = sum((_count(each >= 0) for each in own), xp.zeros_like(own[0]))
        leads = []
        for j in self._others:
            pairs = (self._pair(j, k) for k in range(self.classes) if k != j)
            won = [_count(s * signs[:, p] > 0) for p, s in pairs]
            leads.append(up(most - sum(won[1:], won[0]) + self._shift(j), 1))
        return xp.min(xp.stack(leads, axis=1), axis=1)

    def function(self, model: Model) -> PlainFunction:
        """The margin, and the gradient of the winner's most endangered pair."""
        assert isinstance(model, Committee), "a goal of committees"
        return pair_votes_function(model, self.winner)

    @property
    def _others(self) -> list[int]:
        return [j for j in range(self.classes) if j != self.winner]

    def _shift(self, rival: int) -> float:
        """`(j - i) / m`: the first of equal ones wins."""
        return (rival - self.winner) / self.classes

    def _pair(self, c: int, k: int) -> tuple[int, int]:
        """The output of the pair of c and k, and the sign of its mean where c wins."""
        pairs = list(combinations(range(self.classes), 2))
        return pairs.index((min(c, k), max(c, k))), (1 if c > k else -1)

    def _defeats(self, evaluation: Evaluation, j: int, lead: Array) -> Array:
        """How many pairs class j surely loses, that with the winner apart.

        Pairs that it does not lose at the centres are not lost; where the rest are too few to make
        the lead positive anywhere, none is looked at.
        """
        xp = namespace(evaluation.cells.lower)
        signs = _center_signs(evaluation)
        pairs = [self._pair(k, j) for k in range(self.classes) if k not in {j, self.winner}]
        losable = [(p, s) for p, s in pairs if bool(xp.any(s * signs[:, p] > 0))]
        count = xp.zeros_like(lead)
        if not bool(xp.any(lead + len(losable) + self._shift(j) > 0)):
            return count
        for p, s in losable:
            count = count + _count(_sure(evaluation, p, s).lower > 0)
        return count


def _sure(evaluation: Evaluation, output: int, sign: int) -> GoalBound:
    """Lower bound of `sign mu` of an output over each cell: the first order alone where that
    settles the sign on all of them, or where the sign is lost at the centre."""

    def compute() -> GoalBound:
        cheap = _first_order(evaluation, output, sign)
        if cheap is not None:
            xp = namespace(cheap.lower)
            lost = sign * _center_signs(evaluation)[:, output] < 0
            if bool(xp.all((cheap.lower > 0) | lost)):
                return cheap
        found = MeanGoal(output, sign).bound(evaluation, 0.0)
        if cheap is None:
            return found
        lower = namespace(found.lower).maximum(found.lower, cheap.lower)
        return GoalBound(lower, found.point, found.scores)

    return kept(evaluation, ("sure", output, sign), compute)


def _first_order(evaluation: Evaluation, output: int, sign: int) -> GoalBound | None:
    local, expansion = evaluation.local, evaluation.expansion
    model = kept(
        evaluation, ("linear", output), lambda: local.linear_model(expansion, output)
    )
    if model is None:
        return None
    geometry = expansion.geometry
    offset, scale = sign * float(local.posterior.offset[output]), local.unit.mean_scale[output]
    level = namespace(model.value).full_like(model.value, -offset / scale)
    bound = first_order_bound(model, sign, geometry, local.kernel.weight_rate, level)
    lower = affine_down(offset, scale, bound.lower)
    return GoalBound(lower, geometry.unscaled(bound.point), geometry.split_scores())


def _center_signs(evaluation: Evaluation) -> Array:
    """(B, outputs): 1 or -1 where the sign of a mean at the centre is certain, else 0."""

    def compute() -> Array:
        local = evaluation.local
        values, errors = local.center_values(evaluation.expansion)
        xp = namespace(values)
        columns = []
        for c, scale in enumerate(local.unit.mean_scale):
            offset = float(local.posterior.offset[c])
            low = affine_down(offset, scale, down(values[:, c] - errors[:, c], 2))
            high = -affine_down(-offset, scale, down(-values[:, c] - errors[:, c], 2))
            columns.append(_count(low > 0) - _count(high < 0))
        return xp.stack(columns, axis=1)

    return kept(evaluation, "center signs", compute)


def _count(condition: Array) -> Array:
    """1.0 where it holds, else 0.0."""
    xp = namespace(condition)
    return xp.astype(condition, xp.float64)
