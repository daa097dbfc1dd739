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
from gpcert.enclosures.goals import Goal
from gpcert.regions import Box
from gpcert.rounding import down, up
from gpcert.search import Budget, StopReason
from gpcert.search.box_family import BoxFamily


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
    goals: list[Goal]
    slots: list[Slot]


class Block(NamedTuple):
    """Ranges by quantity (n, outputs, 2); how many boxes were reached, and why it ended."""

    ranges: Mapping[str, np.ndarray]
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
    fingerprints: tuple[str, ...]

    @staticmethod
    def of(
        questions: Mapping[str, Sequence[RangeQuestion]],
        whole: Box,
        backend: Backend,
        tol: float | None,
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
        return BoxWork(tuple(asked.values()), outputs, whole, backend, tol, prints)


def _add(group: Asked, question: RangeQuestion, first: int) -> None:
    """A question's goals and slots; its outputs are numbered from `first` on."""
    pairs = len(group.goals) // 2
    for index in range(question.searched):
        group.goals.extend(question.goal(index, sign) for sign in (1, -1))
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
    reached, boxes, reason = len(low), 0, StopReason.CONVERGED
    with until(time.perf_counter() + ends - time.time()):
        for group in work.asked:
            family = BoxFamily(group.model, tuple(group.goals), work.whole, work.backend)
            if work.tol is None:
                lower, done = family.bounded_once(low, high)
                boxes, ended = boxes + done, StopReason.CONVERGED
                if done < len(low):
                    ended = StopReason.TIME
            else:
                found = family.refined(low, high, work.tol, budget)
                lower, ended = found.lower, found.reason
                boxes, done = boxes + found.boxes, len(low)
            _fill(ranges, group.slots, lower)
            reached = min(reached, done)
            reason = ended if reason is StopReason.CONVERGED else reason
            if ended is StopReason.INTERRUPTED:
                return Block(ranges, 0, boxes, ended)
    return Block(ranges, reached, boxes, reason)


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
