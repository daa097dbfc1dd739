"""Which boxes are split next, and how often: nothing here can make a bound invalid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from gpcert.numerics.arrays import Backend, Index
from gpcert.search.state import HALVINGS, Boxes, Halve, Incumbents, QuestionsAndGoals


class Steps(NamedTuple):
    """How boxes are halved more than once before their parts are bounded."""

    hopeless: float = 6.0
    """Halves are halved at once where their gaps are expected to exceed so many times what is
    allowed: bounding them first would only add boxes."""
    parts: int = 256
    """That is done up to so many boxes at a time: of more, the bounds in between are worth
    knowing."""

    @staticmethod
    def on(backend: Backend) -> Steps:
        """A GPU's batches take about as long whatever is in them: few large ones are faster."""
        return Steps(0.0, 16384) if backend.gpu else STEPS


STEPS = Steps()
"""On a CPU."""

STEEPEST = 6.0
"""Before anything is known, gaps are expected to fall like this power of the width."""

SLOWEST = 0.99
"""Gaps are expected to fall by a hundredth at least."""


def first_shrink(f: int) -> float:
    """By how much halving a box of f features is expected to lessen its gap at first."""
    return 0.5 ** (STEEPEST / max(1, f))


@dataclass(frozen=True, eq=False)
class Branch:
    """Boxes that are to be split, and for each the goal that is farthest from what it `needed`."""

    index: np.ndarray
    """Their numbers (n,) in the frontier."""
    boxes: Boxes
    goal: np.ndarray
    """(n,)."""
    open: np.ndarray
    """(n, G) for which goals they are open."""

    @staticmethod
    def most_urgent(
        boxes: Boxes, open_: Annotated[np.ndarray, "n G"], needed: QuestionsAndGoals, most: int
    ) -> Branch:
        """Of all boxes those that lie farthest below the bounds (Q, G) that would settle them."""
        with np.errstate(invalid="ignore"):  # while nothing is known
            urgency = needed[boxes.question] - boxes.lower
        urgency = np.where(np.isnan(urgency), np.inf, urgency)
        urgency = np.where(open_, urgency, -np.inf)
        rest = -urgency.max(axis=1)
        index = np.arange(len(rest))
        if len(rest) > most:  # no more is sorted than may be chosen
            index = np.flatnonzero(rest <= np.partition(rest, most - 1)[most - 1])
        index = index[np.argsort(rest[index], kind="stable")[:most]]
        goal = np.argmax(urgency[index], axis=1)
        return Branch(index, boxes.take(index), goal, open_[index])

    def parts(self, times: Annotated[np.ndarray, "n"], halve: Halve | None) -> tuple[Boxes, Index]:
        """Boxes that cover these, and of which box each is a part: halved so many times along the
        axes that gain most for its goal, as the region halves them."""
        axes = self.boxes.axes[np.arange(len(self.boxes)), self.goal]
        return self.boxes.parts(axes, times, halve)

    def times(
        self,
        known: Incumbents,
        needed: QuestionsAndGoals,
        shrink: float,
        fit: int,
        steps: Steps = STEPS,
    ) -> Annotated[np.ndarray, "n"]:
        """How often to halve each of the boxes, `fit` being how many fit a batch.

        Once more where the halves would be expected to stay open by far; any number is valid.
        """
        n = len(self.boxes)
        value = known.values[self.boxes.question, self.goal]
        with np.errstate(divide="ignore", invalid="ignore"):
            allowed = value - needed[self.boxes.question, self.goal]
            gaps = value - self.boxes.lower[np.arange(n), self.goal]
            halvings = np.log(gaps / (steps.hopeless * allowed)) / -math.log(shrink)
            more = np.clip(np.nan_to_num(np.ceil(halvings) - 1.0, nan=0.0), 0, HALVINGS - 1)
        most = max(2, min(fit, steps.parts) // n)
        return np.minimum(1 + more.astype(int), most.bit_length() - 1)

    def shrink(
        self, times: Annotated[np.ndarray, "n"], children: Boxes, origin: Index, known: Incumbents
    ) -> float | None:
        """From the bounds of boxes and of their children, how fast gaps fall; None if unknown."""
        g = self.goal[origin]
        value = known.values[children.question, g]
        with np.errstate(invalid="ignore"):
            old = value - self.boxes.lower[origin, g]
            new = value - children.lower[np.arange(len(g)), g]
        seen = np.isfinite(old) & (old > 0)
        if not seen.any():
            return None
        ratio = np.maximum(new[seen] / old[seen], 1e-3) ** (1.0 / times[origin[seen]])
        return min(float(np.median(ratio)), SLOWEST)
