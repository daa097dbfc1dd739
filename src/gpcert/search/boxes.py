"""Batches of boxes on the host, each of a numbered question, and how they are cut.

Proofs: docs/mathematics.md, statement 14.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from gpcert.numerics.arrays import Index, PerRow, Rows

QuestionsAndFeatures = Annotated[np.ndarray, "Q f"]
QuestionsAndGoals = Annotated[np.ndarray, "Q G"]

HALVINGS = 3
"""How often a box may be halved in one step: its parts are eight at most."""


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes, a row each: `question` (n,), corners `low` and `high` (n, f), bounds `lower` (n, G) of
    the goals, and the axes (n, G, HALVINGS) along which each goal would have them cut."""

    question: np.ndarray
    low: np.ndarray
    high: np.ndarray
    lower: np.ndarray
    axes: np.ndarray

    def __len__(self) -> int:
        return len(self.question)

    def __iter__(self) -> Iterator[np.ndarray]:
        """All columns, in order."""
        return iter((self.question, self.low, self.high, self.lower, self.axes))

    @property
    def bytes(self) -> float:
        """Memory that the boxes hold."""
        return float(sum(part.nbytes for part in self))

    @property
    def middle(self) -> Rows:
        """(n, f) the rounded midpoints."""
        return 0.5 * self.low + 0.5 * self.high

    def take(self, index: Index) -> Boxes:
        """The boxes at an index array or under a mask."""
        return Boxes(*(part[index] for part in self))

    @staticmethod
    def concatenate(batches: Sequence[Boxes]) -> Boxes:
        """All boxes of several batches, in order."""
        return Boxes(*map(np.concatenate, zip(*batches, strict=True)))

    def splittable(self) -> PerRow:
        """(n,) whether some axis has a float strictly inside."""
        return np.any(self._inside, axis=1)

    def halves(
        self, axis: Annotated[np.ndarray, "n"], cuts: Callable[[Rows], Rows] | None = None
    ) -> Boxes:
        """Each box cut in the middle along `axis`, or along the widest axis with a float inside
        where that one has none: all lower parts, then all upper parts, which share the cut; `cuts`
        may move the middles (n, f)."""
        rows, inside = np.arange(len(self)), self._inside
        widest = np.argmax(np.where(inside, self.high - self.low, 0.0), axis=1)
        axis = np.where(inside[rows, axis], axis, widest)
        middle = self.middle if cuts is None else cuts(self.middle)
        middle = np.clip(middle, self.low, self.high)[rows, axis]
        first, second = self.high.copy(), self.low.copy()
        first[rows, axis] = second[rows, axis] = middle
        return Boxes.concatenate([replace(self, high=first), replace(self, low=second)])

    def parts(
        self,
        axes: Annotated[np.ndarray, "n halvings"],
        times: Annotated[np.ndarray, "n"],
        cuts: Callable[[Rows], Rows] | None = None,
    ) -> tuple[Boxes, Index]:
        """Boxes that cover these, and of which box each is a part: halves along the first axis,
        their halves along the second, as many `times` as wanted of each box."""
        boxes, parents = self, np.arange(len(self))
        for step in range(int(times.max(initial=0))):
            again = times[parents] > step
            halves = boxes.take(again).halves(axes[parents[again], step], cuts)
            parents = np.concatenate([parents[~again], parents[again], parents[again]])
            boxes = Boxes.concatenate([boxes.take(~again), halves])
        return boxes, parents

    @property
    def _inside(self) -> np.ndarray:
        """(n, f) which axes have a float strictly inside."""
        middle = self.middle
        return (middle > self.low) & (middle < self.high)


def split_order(scores: Rows) -> Annotated[np.ndarray, "n halvings"]:
    """(n, HALVINGS) axes from what halving each of them gains (n, f), a quarter of it the next
    time: gains go with the square of a width.

    >>> split_order(np.array([[1.0, 5.0, 2.0]])).tolist()
    [[1, 2, 1]]
    """
    left, rows, order = scores.copy(), np.arange(len(scores)), []
    for _ in range(HALVINGS):
        order.append(left.argmax(axis=1))
        left[rows, order[-1]] *= 0.25
    return np.stack(order, axis=1)


def least_of_each(
    question: Annotated[np.ndarray, "n"], values: Annotated[np.ndarray, "n"]
) -> Index:
    """For every question (n,) that occurs, the place of its least value.

    >>> least_of_each(np.array([3, 5, 3]), np.array([2.0, 1.0, 0.0])).tolist()
    [2, 1]
    """
    order = np.lexsort((values, question))
    return order[np.unique(question[order], return_index=True)[1]]
