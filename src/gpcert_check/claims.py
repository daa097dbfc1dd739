"""What is claimed of the points of a cell, and whether the bounds of a cell prove it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from flint import arb

from gpcert_check.cell import Cell
from gpcert_check.goals import Bounds, Goal
from gpcert_check.posterior import Posterior

BETWEEN = 0.5, 0.25, 0.75
"""Where levels are tried between the scores of two classes."""


class Piece:
    """A box, and the bounds of every posterior on it."""

    def __init__(
        self, models: Sequence[Posterior], low: list[float], high: list[float], degree: int = 2
    ) -> None:
        self.low, self.high = low, high
        self.each = [Bounds(model, Cell(model.frame, low, high), degree) for model in models]

    @property
    def cell(self) -> Cell:
        """The box as the first posterior has it."""
        return self.each[0].cell

    def margin(self, goal: Goal, level: arb) -> arb:
        """See `Bounds.margin`."""
        return self.each[goal.member].margin(goal, level)

    def value(self, goal: Goal) -> float:
        """About the goal at the centre."""
        return self.each[goal.member].value(goal)


class Claim:
    """Something about every point of a cell."""

    goals: tuple[Goal, ...]

    def holds(self, piece: Piece) -> bool:
        """Whether it is proved on a cell."""
        raise NotImplementedError

    @property
    def contrary(self) -> Claim:
        """What is true of a point where it is false."""
        raise NotImplementedError


@dataclass(frozen=True)
class Above(Claim):
    """`goal >= level`, `>` where it is strict; of a goal that may be off by an `error` too."""

    goal: Goal
    level: arb
    strict: bool = False
    error: arb = field(default_factory=arb)

    @property
    def goals(self) -> tuple[Goal, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The one."""
        return (self.goal,)

    def holds(self, piece: Piece) -> bool:
        margin = piece.margin(self.goal, self.level + self.error)
        return margin > 0 if self.strict else margin >= 0

    @property
    def contrary(self) -> Claim:
        return Above(self.goal.negative, -self.level, not self.strict, self.error)


@dataclass(frozen=True)
class Several(Claim):
    """All of some claims, or any of them."""

    claims: tuple[Claim, ...]
    every: bool = True

    @property
    def goals(self) -> tuple[Goal, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Those of all."""
        return tuple(goal for claim in self.claims for goal in claim.goals)

    def holds(self, piece: Piece) -> bool:
        return (all if self.every else any)(claim.holds(piece) for claim in self.claims)

    @property
    def contrary(self) -> Claim:
        return Several(tuple(claim.contrary for claim in self.claims), not self.every)


@dataclass(frozen=True)
class Lead(Claim):
    """The first goal times its weight is larger than every other: on the cell some level lies
    between them. Weights are above 0."""

    goals: tuple[Goal, ...]
    weights: tuple[float, ...]

    def holds(self, piece: Piece) -> bool:
        values = [w * piece.value(goal) for w, goal in zip(self.weights, self.goals, strict=True)]
        first, best = values[0], max(values[1:])
        return first > best and any(
            self._divided(piece, arb(best + part * (first - best))) for part in BETWEEN
        )

    def _divided(self, piece: Piece, level: arb) -> bool:
        levels = [level / w for w in self.weights]
        if not piece.margin(self.goals[0], levels[0]) > 0:
            return False
        others = zip(self.goals[1:], levels[1:], strict=True)
        return all(piece.margin(goal.negative, -each) >= 0 for goal, each in others)

    @property
    def contrary(self) -> Claim:
        (first, *others), (weight, *weights) = self.goals, self.weights
        pairs = zip(others, weights, strict=True)
        return Several(tuple(Lead((goal, first), (w, weight)) for goal, w in pairs), every=False)


@dataclass(frozen=True)
class Votes(Claim):
    """The winner has more votes than each of its rivals, or where `first_wins` as many and comes
    before it. The pair j < k of classes votes for k where its mean, a goal, is positive, else for
    j; of a mean that is 0 nothing is claimed."""

    goals: tuple[Goal, ...]
    classes: int
    winner: int
    rivals: tuple[int, ...]
    first_wins: bool

    def holds(self, piece: Piece) -> bool:
        pairs = [(goal.negative, goal) for goal in self.goals]
        above = [[piece.margin(goal, arb(0)) > 0 for goal in pair] for pair in pairs]
        votes = [second - first for first, second in above]
        return all(self._leads(votes, rival) for rival in self.rivals)

    def _leads(self, votes: Iterable[int], rival: int) -> bool:
        """With every vote that is open counted for the rival, or against the winner."""
        lead = 0
        for vote, (j, k) in zip(votes, combinations(range(self.classes), 2), strict=True):
            gains = [(self.winner == c) - (rival == c) for c in (j, k)]
            lead += min(gains) if vote == 0 else gains[vote > 0]
        return lead > 0 or (lead == 0 and self.first_wins and self.winner < rival)

    @property
    def contrary(self) -> Claim:
        def ahead(rival: int) -> Claim:
            about = self.classes, rival, (self.winner,), self.first_wins
            return Votes(self.goals, *about)

        return Several(tuple(map(ahead, self.rivals)), every=False)


@dataclass(frozen=True)
class At:
    """A claim about a point of the region."""

    claim: Claim
    point: list[float] = field(default_factory=list)
