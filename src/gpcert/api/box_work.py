"""One block of the boxes of `bound_boxes`: what is asked, the bounds, and where each goes.

Proofs: docs/mathematics.md, statement 14.1.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gpcert.api.accuracy import Accuracy, zeros_of
from gpcert.api.ranges import RangeGoals
from gpcert.certificates.boxes import NOTHING
from gpcert.enclosures.affine import has_affine
from gpcert.enclosures.goals import QuantityGoal
from gpcert.errors import InputError
from gpcert.model.committee import Model
from gpcert.numerics.arrays import Backend
from gpcert.numerics.rounding import down, up
from gpcert.regions import Box
from gpcert.search import Budget, StopReason
from gpcert.search.box_family import BoxFamily
from gpcert.search.checkpoints import JOURNAL
from gpcert.search.region_evaluator import batch_size
from gpcert.utils.archive import digest
from gpcert.utils.processes import until

BATCH_SECONDS = (0.2, 0.8)
"""About what a batch of `batch_size` takes on one core, of means alone and with variances."""

Key = tuple[str, str]
"""What bounds are: "ranges" or "affine" functions, and of which quantity."""


class Slot(NamedTuple):
    """Where the range of a pair of goals, the first of which is number `goal`, goes: a quantity, an
    output, and whether it is 1 less the range that was searched (the first of two classes)."""

    quantity: str
    output: int
    goal: int
    rest: bool


class OutputQuestion(NamedTuple):
    """One searched model: its goals in pairs, of signs 1 and -1, where each pair goes, and which of
    their values count as 0 (see `zeros_of`)."""

    model: Model
    goals: list[QuantityGoal]
    slots: list[Slot]
    zeros: list[np.ndarray]


class Block(NamedTuple):
    """Ranges (n, outputs, 2) and affine functions (n, outputs, 2, d + 1), if asked for; how many of
    the n were reached, how many boxes that took, and why it ended; how many met the tolerance."""

    values: Mapping[Key, np.ndarray]
    reached: int
    boxes: int
    reason: StopReason
    met: int = 0


@dataclass(frozen=True, eq=False)
class BoxWork:
    """All that a block needs beside its boxes."""

    asked: tuple[OutputQuestion, ...]
    outputs: Mapping[str, tuple[Any, ...]]
    whole: Box
    held: tuple[int, ...]
    """Features that hold categories."""
    backend: Backend
    accuracy: Accuracy
    affine: bool
    fingerprints: tuple[str, ...]

    @staticmethod
    def of(
        questions: Mapping[str, Sequence[RangeGoals]],
        whole: Box,
        held: tuple[int, ...],
        backend: Backend,
        accuracy: Accuracy,
        affine: bool,
    ) -> BoxWork:
        """Goals of quantities that are searched in the same model share their enclosures."""
        asked: dict[int, OutputQuestion] = {}
        outputs, prints = {}, []
        for name, goals_by_model in questions.items():
            labels = (label for ranges in goals_by_model for label in ranges.question.labels)
            outputs[name] = tuple(labels)
            first = 0
            for ranges in goals_by_model:
                question = ranges.question
                group = asked.setdefault(
                    id(question.model), OutputQuestion(question.model, [], [], [])
                )
                before = len(group.goals)
                group.goals.extend(map(QuantityGoal, ranges.quantities))
                group.zeros.append(zeros_of(ranges))
                for index, goals in ranges.rows:
                    rest = question.two and index == 0
                    group.slots.append(Slot(name, first + index, before + goals[1], rest))
                first += len(question.labels)
                prints.append(question.fingerprint)
        how = (whole, held, backend, accuracy, affine, tuple(prints))
        return BoxWork(tuple(asked.values()), outputs, *how)

    @property
    def unknown(self) -> dict[Key, tuple[int, np.ndarray]]:
        """For all that is found: how many outputs it has, and what is true of every box."""
        lines = np.zeros((2, self.whole.dim + 1))  # below and above everything
        lines[:, -1] = NOTHING
        kinds = {"ranges": NOTHING, "affine": lines} if self.affine else {"ranges": NOTHING}
        return {
            (kind, name): (len(labels), each)
            for kind, each in kinds.items()
            for name, labels in self.outputs.items()
        }

    def nothing(self, count: int) -> dict[Key, np.ndarray]:
        """What is true of so many boxes before any is bounded."""
        return {
            key: np.broadcast_to(unknown, (count, outputs, *unknown.shape)).copy()
            for key, (outputs, unknown) in self.unknown.items()
        }

    def seconds(self, count: int) -> float:
        """About what one process takes for so many boxes, each bounded once."""
        total, f = 0.0, len(self.whole.free)
        for model, goals, *_ in self.asked:
            slow = any(goal.needs_variance for goal in goals)
            total += BATCH_SECONDS[slow] * count / batch_size(model, f, goals, self.backend)
        return total


def check_affine(work: BoxWork) -> None:
    """That there are affine functions of all that is asked about."""
    if not work.affine:
        return
    if not all(has_affine(goal.quantity) for group in work.asked for goal in group.goals):
        raise InputError(
            "affine: expected quantities out of 'mean', 'std', 'variance', 'lcb', 'ucb' and "
            f"'band', got {list(work.outputs)}; ask for the others in a call of their own"
        )
    members = [member for group in work.asked for member in group.model.members]
    if any(member.features is not None for member in members):
        raise InputError(
            "affine: not known for a model behind linear features (PCA); leave it out, or bound "
            "boxes of the features: fit on them, without a pipeline"
        )


def work_on(work: BoxWork, low: np.ndarray, high: np.ndarray, budget: Budget, ends: float) -> Block:
    """Bound boxes (n, d), unless a checkpoint holds their bounds; `ends` is a moment of
    `time.time`, which processes share."""
    journal = JOURNAL.get()
    if journal is None:
        return _bounded(work, low, high, budget, ends)
    asked = (work.asked, work.outputs, work.whole, work.held, work.accuracy, work.affine)
    saved = journal.kept(digest("block", asked, low, high))
    if saved.ended:
        values, reached, boxes, met = saved.state
        return Block(values, reached, boxes, StopReason[saved.ended], met)
    block = _bounded(work, low, high, budget, ends)
    if block.reason is StopReason.CONVERGED:
        state = (block.values, block.reached, block.boxes, block.met)
        saved.put(state, 0.0, block.reason.name)
    return block


def _bounded(
    work: BoxWork, low: np.ndarray, high: np.ndarray, budget: Budget, ends: float
) -> Block:
    """Boxes of the same categories share what is known of the box around them."""
    held = list(work.held)
    categories, numbers = np.unique(low[:, held], axis=0, return_inverse=True)
    total: Block | None = None
    for number, values in enumerate(categories):
        (rows,) = np.nonzero(numbers.reshape(-1) == number)
        lower, upper = work.whole.lower.copy(), work.whole.upper.copy()
        lower[held] = upper[held] = values
        part = replace(work, whole=Box(lower, upper))
        share = budget
        if budget.boxes is not None:
            share = replace(budget, boxes=max(1, int(budget.boxes * len(rows) / len(low))))
        block = _work_on(part, low[rows], high[rows], share, ends)
        if len(categories) == 1:
            return block
        total = total or Block(work.nothing(len(low)), 0, 0, StopReason.CONVERGED)
        for key, bounds in block.values.items():
            total.values[key][rows] = bounds
        reason = block.reason if total.reason is StopReason.CONVERGED else total.reason
        counts = (total.reached + block.reached, total.boxes + block.boxes)
        total = Block(total.values, *counts, reason, total.met + block.met)
        if block.reason is StopReason.INTERRUPTED:
            break
    assert total is not None, "there is at least one box"
    return total


def _work_on(
    work: BoxWork, low: np.ndarray, high: np.ndarray, budget: Budget, ends: float
) -> Block:
    """Boxes of the same categories, which the box around them has, too."""
    free = work.whole.free
    low, high = low[:, free], high[:, free]
    values = work.nothing(len(low))
    reached, boxes, reason = len(low), 0, StopReason.CONVERGED
    met = np.ones(len(low), dtype=bool)
    with until(time.perf_counter() + ends - time.time()):
        for group in work.asked:
            goals = tuple(group.goals)
            family = BoxFamily(group.model, goals, work.whole, work.backend, work.affine)
            tol = work.accuracy.tolerance(np.concatenate(group.zeros))
            bounded = family.bounded(low, high, tol if work.accuracy.given else None, budget)
            for slot in group.slots:
                _fill(values["ranges", slot.quantity][:, slot.output], slot, bounded.lower)
                if bounded.affine is None:
                    continue
                into = values["affine", slot.quantity][:, slot.output]
                for side, sign in enumerate((1.0, -1.0)):  # below a goal, and below its negative
                    function = sign * bounded.affine[:, slot.goal + side]
                    into[:, side, free], into[:, side, -1] = function[:, :-1], function[:, -1]
            boxes, reached = boxes + bounded.boxes, min(reached, bounded.reached)
            met &= bounded.met
            reason = bounded.reason if reason is StopReason.CONVERGED else reason
            if bounded.reason is StopReason.INTERRUPTED:
                return Block(values, 0, boxes, bounded.reason)
    return Block(values, reached, boxes, reason, int(met.sum()))


def _fill(into: np.ndarray, slot: Slot, lower: np.ndarray) -> None:
    """From proved lower bounds (n, G) of a goal and of its negative to ranges (n, 2).

    Where F is in [a, b], 1 - F is in [1 - b, 1 - a]: one rounding, taken outwards.
    """
    low, high = lower[:, slot.goal], -lower[:, slot.goal + 1]
    if slot.rest:
        low, high = down(1.0 - high, 1), up(1.0 - low, 1)
    into[:, 0], into[:, 1] = low, high
