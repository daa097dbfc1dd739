"""Votes of several pairs at once: which outcomes some point of a cell may have, by linear programs.

Each pair alone may go to either class on a cell on which no point gives a rival enough of them. The
programs (HiGHS) only propose multipliers and points; what counts is a sum of proved inequalities.

Proofs: docs/mathematics.md, statement 11.6.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, NamedTuple

import numpy as np

from gpcert.enclosures.lower_model import QuadraticLowerModel
from gpcert.numerics.arrays import namespace, to_numpy
from gpcert.numerics.rounding import down, gamma, up
from gpcert.regions.scaled import ScaledCells
from gpcert.utils.processes import checkpoint

MOST_PROGRAMS = 64
"""Of one cell; what they leave is split."""


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
