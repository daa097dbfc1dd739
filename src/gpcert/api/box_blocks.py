"""One block of many boxes: goals of all models and quantities, bounded together.

Proofs: docs/mathematics.md, statement 14.1.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpcert.api.questions import RangeQuestion
from gpcert.arrays import Backend
from gpcert.committee import Model
from gpcert.deadline import until
from gpcert.enclosures.goals import QuantityGoal
from gpcert.regions import Box
from gpcert.rounding import down, up
from gpcert.search import Budget, StopReason
from gpcert.search.box_family import BoxFamily
from gpcert.search.branch_and_bound import cells_at_once

BATCH_SECONDS = (0.2, 0.8)
"""About what a batch of `cells_at_once` takes on one core, of means alone and with variances."""


class Slot(NamedTuple):
    """Where the range of a pair of goals goes: a quantity, an output, and whether it is 1 less the
    range that was searched (the first of two classes)."""

    quantity: str
    output: int
    pair: int
    rest: bool


class Asked(NamedTuple):
    """One searched model: its goals in pairs, of signs 1 and -1, and where each pair goes."""

    model: Model
    goals: list[QuantityGoal]
    slots: list[Slot]


class Block(NamedTuple):
    """Ranges by quantity (n, outputs, 2) and affine functions (n, outputs, 2, d + 1), if asked for;
    how many boxes were reached, and why it ended."""

    ranges: Mapping[str, np.ndarray]
    affine: Mapping[str, np.ndarray]
    reached: int
    boxes: int
    reason: StopReason

    @property
    def finished(self) -> bool:
        """Whether every end is known as asked: only such a block counts as done."""
        return self.reason is StopReason.CONVERGED


@dataclass(frozen=True, eq=False)
class BoxWork:
    """All that a block needs beside its boxes."""

    asked: tuple[Asked, ...]
    outputs: Mapping[str, tuple[Any, ...]]
    whole: Box
    backend: Backend
    tol: float | None
    affine: bool
    fingerprints: tuple[str, ...]

    @staticmethod
    def of(
        questions: Mapping[str, Sequence[RangeQuestion]],
        whole: Box,
        backend: Backend,
        tol: float | None,
        affine: bool = False,
    ) -> BoxWork:
        """Goals of quantities that are searched in the same model share their enclosures."""
        asked: dict[int, Asked] = {}
        outputs = {}
        for name, own in questions.items():
            outputs[name] = tuple(label for question in own for label in question.labels)
            first = 0
            for question in own:
                group = asked.setdefault(id(question.model), Asked(question.model, [], []))
                _add(group, question, first)
                first += len(question.labels)
        prints = tuple(question.fingerprint for own in questions.values() for question in own)
        return BoxWork(tuple(asked.values()), outputs, whole, backend, tol, affine, prints)

    def seconds(self, count: int) -> float:
        """About what one process takes for so many boxes, each bounded once."""
        f = len(self.whole.free)
        found = 0.0
        for each in self.asked:
            slow = any(goal.needs_variance for goal in each.goals)
            cells = cells_at_once(each.model, f, each.goals, self.backend)
            found += BATCH_SECONDS[slow] * count / cells
        return found


def _add(group: Asked, question: RangeQuestion, first: int) -> None:
    """A question's goals and slots; its outputs are numbered from `first` on."""
    pairs = len(group.goals) // 2
    for index in range(question.searched):
        group.goals.extend(QuantityGoal(question.asked(index, sign)) for sign in (1, -1))
    for index in range(len(question.labels)):
        pair = pairs + min(index, question.searched - 1)
        rest = question.two and index == 0
        group.slots.append(Slot(question.quantity, first + index, pair, rest))


def work_on(work: BoxWork, low: np.ndarray, high: np.ndarray, budget: Budget, ends: float) -> Block:
    """Bound boxes (n, d); `ends` is a moment of `time.time`, which processes share."""
    free = work.whole.free
    low, high = low[:, free], high[:, free]
    ranges = {
        name: np.tile([-np.inf, np.inf], (len(low), len(labels), 1))
        for name, labels in work.outputs.items()
    }
    affine = {
        name: np.tile(nothing(work.whole.dim), (len(low), len(labels), 1, 1))
        for name, labels in work.outputs.items()
        if work.affine
    }
    reached, boxes, reason = len(low), 0, StopReason.CONVERGED
    with until(time.perf_counter() + ends - time.time()):
        for group in work.asked:
            goals = tuple(group.goals)
            family = BoxFamily(group.model, goals, work.whole, work.backend, work.affine)
            found = _bounded(family, (low, high), work.tol, budget)
            _fill(ranges, group.slots, found.lower)
            if found.affine is not None:
                _fill_affine(affine, group.slots, found.affine, free)
            boxes, reached = boxes + found.boxes, min(reached, found.reached)
            reason = found.reason if reason is StopReason.CONVERGED else reason
            if found.reason is StopReason.INTERRUPTED:
                return Block(ranges, affine, 0, boxes, found.reason)
    return Block(ranges, affine, reached, boxes, reason)


class _Bounded(NamedTuple):
    """What is known of the goals of one family, and what it cost."""

    lower: np.ndarray
    affine: np.ndarray | None
    reached: int
    boxes: int
    reason: StopReason


def _bounded(
    family: BoxFamily, corners: tuple[np.ndarray, np.ndarray], tol: float | None, budget: Budget
) -> _Bounded:
    """One box each, or a search where a tolerance is asked for; affine ones are of one box."""
    lower, boxes, reason = None, 0, StopReason.CONVERGED
    if tol is not None:
        found = family.refined(*corners, tol, budget)
        lower, boxes, reason = found.lower, found.boxes, found.reason
        if not family.affine or reason is StopReason.INTERRUPTED:
            return _Bounded(lower, None, len(lower), boxes, reason)
    once = family.bounded_once(*corners)
    if once.reached < len(once.lower):
        reason = StopReason.TIME
    lower = once.lower if lower is None else lower
    return _Bounded(lower, once.affine, once.reached, boxes + once.reached, reason)


def nothing(dim: int) -> np.ndarray:
    """(2, d + 1): affine functions below and above everything."""
    found = np.zeros((2, dim + 1))
    found[:, dim] = -np.inf, np.inf
    return found


def _fill_affine(
    affine: Mapping[str, np.ndarray], slots: Iterable[Slot], found: np.ndarray, free: np.ndarray
) -> None:
    """From affine functions (n, G, f + 1) below goals and their negatives to ranges of them."""
    for slot in slots:
        for side, sign in enumerate((1.0, -1.0)):
            own = sign * found[:, 2 * slot.pair + side]
            into = affine[slot.quantity][:, slot.output, side]
            into[:, free], into[:, -1] = own[:, :-1], own[:, -1]


def _fill(ranges: Mapping[str, np.ndarray], slots: Iterable[Slot], lower: np.ndarray) -> None:
    """From proved lower bounds (n, G) of goals and of their negatives to ranges.

    Where F is in [a, b], 1 - F is in [1 - b, 1 - a]: one rounding, taken outwards.
    """
    for slot in slots:
        low, high = lower[:, 2 * slot.pair], -lower[:, 2 * slot.pair + 1]
        if slot.rest:
            low, high = down(1.0 - high, 1), up(1.0 - low, 1)
        ranges[slot.quantity][:, slot.output, 0] = low
        ranges[slot.quantity][:, slot.output, 1] = high
