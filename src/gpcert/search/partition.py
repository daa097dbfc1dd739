"""Adaptive partitions (pavings): proved bounds of a sum over the cells of a box, such as a volume
or an integral; the cells are halved first whose bounds of their contributions are farthest apart.

Proofs: docs/mathematics.md, statement 17.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Protocol

import numpy as np

from gpcert.numerics.arrays import Rows
from gpcert.numerics.rounding import gamma, up_float
from gpcert.search.checkpoints import JOURNAL, Kept
from gpcert.search.problem import (
    Budget,
    Clock,
    Progress,
    SearchState,
    StopReason,
    check_bounds,
)
from gpcert.search.state import HALVINGS, Boxes, PartitionState, split_order
from gpcert.utils.processes import OutOfTime, checkpoint, until

FEW_CELLS = 64
"""Cells are halved more than once at a time while a batch has fewer parts: small batches cost about
as much as these."""

MANY = 4096
"""Numbers beyond which a plain sum, with its error, takes the place of an exact one."""

CellData = Annotated[np.ndarray, "n k"]
"""What is known of each cell beside its contributions, k bytes that its parts inherit."""


@dataclass(frozen=True, eq=False)
class Contributions:
    """Proved bounds `lower <= upper` (n,) of what each cell contributes to the sum; which of them
    are `decided` (n,) and never halved; what halving each axis would gain, `scores` (n, f); and
    `data` (n, k) bytes, which parts of the cell are evaluated with and a result has."""

    lower: np.ndarray
    upper: np.ndarray
    decided: np.ndarray
    scores: np.ndarray
    data: np.ndarray


Evaluate = Callable[[Rows, Rows, CellData], Contributions]
"""From cells `low`, `high` (n, f) with the data (n, k) of those that they are parts of."""


@dataclass(frozen=True, eq=False)
class PartitionProblem:
    """Bound a sum over the cells of the boxes `low`, `high` (n, f), which share no volume, until
    its bounds are near `enough`; the cells whose bounds are farthest apart are halved first."""

    low: np.ndarray
    high: np.ndarray
    evaluate: Evaluate
    enough: Callable[[float, float], bool]
    """Whether lower and upper bounds of the sum are near enough."""
    batch_size: int
    """Cells that are evaluated at a time."""
    bytes_per_cell: float = 0.0
    """Memory of a cell while it is evaluated."""
    data: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))
    """(k,) bytes that the first cells are evaluated with."""
    record: bool = False
    """Whether the result has the decided cells, too; they count towards the budget's memory."""
    budget: Budget = field(default_factory=Budget)
    progress: Progress = field(default_factory=Progress)
    key: str = ""
    """The same for the same question, for a checkpoint; empty where it is not to be saved."""
    hints: Hints | None = None
    """What `evaluate` remembers besides: a checkpoint holds it, so that a run goes on as it was."""


class Hints(Protocol):
    """What evaluating cells remembers of those before; bounds do not rest on it."""

    def remembered(self) -> Any:
        """All of it, for a file."""

    def recall(self, remembered: Any) -> None:
        """Go on with what a file had."""


@dataclass(frozen=True, eq=False)
class PartitionCells:
    """Cells, a row each: corners `low` and `high` (n, f), proved bounds of their contributions (n,)
    and their data (n, k)."""

    low: np.ndarray
    high: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    data: np.ndarray

    def __len__(self) -> int:
        return len(self.low)


@dataclass(frozen=True, eq=False)
class PartitionResult:
    """Proved `lower <= sum <= upper`; the cells that are still `open`, those that are `decided`, if
    they were recorded, and what it cost. The cells cover the boxes and share no volume."""

    lower: float
    upper: float
    open: PartitionCells
    decided: PartitionCells | None
    reason: StopReason
    boxes: int
    seconds: float


def partition(problem: PartitionProblem) -> PartitionResult:
    """Bound the sum; always returns proved bounds, whatever ended the search.

    Correctness (Statement 17.1): the decided cells and the open ones cover the boxes at every
    moment, as a cell is only ever replaced by its halves, which share the cut. So the sum of all
    cells' lower bounds is a lower bound of the sum, and that of their upper bounds an upper one.
    Those that have not been evaluated contribute anything. As in `solve_batch`, the state is
    replaced as a whole, and a batch that a deadline or an interrupt ends is dropped.
    """
    journal = JOURNAL.get()
    kept = journal.kept(problem.key) if journal is not None and problem.key else None
    search = _PartitionSearch(problem, kept)
    if kept is not None and kept.ended in FINAL:
        return search.result(StopReason[kept.ended])
    try:
        with until(search.clock.end):
            reason = search.run()
    except OutOfTime:
        reason = StopReason.TIME
    except KeyboardInterrupt:
        reason = StopReason.INTERRUPTED
    search.save(reason.name)
    return search.result(reason)


FINAL = {"CONVERGED", "RESOLUTION"}
"""Why a partition ends that a larger budget would not bring further."""


class _PartitionSearch:
    """The driver: `state` is replaced as a whole at every step."""

    state: PartitionState

    def __init__(self, problem: PartitionProblem, kept: Kept | None = None) -> None:
        self.problem, self.kept = problem, kept
        before = 0.0 if kept is None else kept.seconds
        self.clock = Clock(problem.budget, problem.progress.start, before)
        if kept is not None and kept.state is not None:
            self.state, remembered = kept.state
            if problem.hints is not None:
                problem.hints.recall(remembered)
            return
        n = len(problem.low)
        unknown = np.full((n, 2), -np.inf)
        axes = np.zeros((n, 1, HALVINGS), dtype=np.int32)
        cells = Boxes(np.zeros(n, dtype=np.int32), problem.low, problem.high, unknown, axes)
        self.state = PartitionState(cells, np.tile(problem.data, (n, 1)), n)

    def run(self) -> StopReason:
        """Evaluate the first cells, then halve the open ones until the bounds are near enough."""
        problem = self.problem
        while self.state.unevaluated:
            self.save()
            count = min(self.state.unevaluated, problem.batch_size)
            first = np.arange(count)
            self._replace(first, self.state.open.take(first), first)
            reason = self.clock.exhausted(self.state.boxes, self.state.bytes)
            if reason is not None and self.state.unevaluated:
                return reason
        while True:
            self.save()
            if problem.enough(*self.state.best):
                return StopReason.CONVERGED
            splittable = np.flatnonzero(self.state.open.splittable())
            if len(splittable) == 0:
                return StopReason.RESOLUTION
            reason = self.clock.exhausted(self.state.boxes, self.state.bytes)
            if reason is not None:
                return reason
            self._split(splittable)

    def save(self, ended: str = "") -> None:
        """Tell a checkpoint what is known, between two batches."""
        if self.kept is not None:
            hints = self.problem.hints
            state = (self.state, None if hints is None else hints.remembered())
            self.kept.put(state, self.clock.seconds, ended)

    def _split(self, splittable: np.ndarray) -> None:
        """Halve the cells whose bounds are farthest apart, and evaluate the parts."""
        most, cells = self._most_parents(), self.state.open
        gaps = -cells.lower[splittable].sum(axis=1)
        worst = np.arange(len(gaps))
        if len(gaps) > 2 * most:  # a sort of all of them would take longer than the batch
            worst = np.sort(np.argpartition(-gaps, most)[:most])
        index = splittable[worst[np.argsort(-gaps[worst], kind="stable")[:most]]]
        parents = cells.take(index)
        times = np.ones(len(index), dtype=int)
        if self.problem.budget.boxes is None:
            times *= max(1, min(HALVINGS, (FEW_CELLS // len(index)).bit_length() - 1))
        parts, origin = parents.parts(parents.axes[:, 0], times)
        self._replace(index, parts, index[origin])

    def _most_parents(self) -> int:
        """Cells that are halved at a time: bounded by work, memory, and the budget of boxes."""
        budget, state = self.problem.budget, self.state
        size = self.problem.batch_size // 2
        if budget.memory is not None and self.problem.bytes_per_cell > 0:
            left = budget.memory - state.bytes
            size = min(size, int(left / (2 * self.problem.bytes_per_cell)))
        if budget.boxes is not None:
            size = min(size, (budget.boxes - state.boxes + 1) // 2)
        return max(1, size)

    def _replace(self, index: np.ndarray, parts: Boxes, origin: np.ndarray) -> None:
        """Put evaluated parts, each of the open cell `origin`, in the place of the cells `index`,
        which they cover."""
        state = self.state
        checkpoint()
        found = self.problem.evaluate(parts.low, parts.high, state.data[origin])
        check_bounds(found.lower, found.upper)
        bounds = np.stack([found.lower, -found.upper], axis=1)
        axes = parts.axes
        if parts.low.shape[1]:
            axes = split_order(found.scores)[:, None].astype(np.int32)
        parts = replace(parts, lower=bounds, axes=axes)
        kept = np.ones(len(state.open), dtype=bool)
        kept[index] = False
        done, left = np.flatnonzero(found.decided), np.flatnonzero(~found.decided)
        decided, closed = state.decided, parts.take(done)
        if self.problem.record and len(done):
            plain = replace(closed, axes=np.zeros((len(done), 0, 0), dtype=np.int32))
            decided = _with_batch(decided, (plain, found.data[done]))
        settled = _sums(closed.lower, state.settled)
        cells = Boxes.concatenate([state.open.take(kept), parts.take(left)])
        data = np.concatenate([state.data[kept], found.data[left]])
        unevaluated = max(0, state.unevaluated - len(index))
        lower, upper = _sums(cells.lower, settled)
        best = max(state.best[0], lower), min(state.best[1], upper)
        check_bounds(*map(np.array, best))
        boxes = state.boxes + len(parts)
        self.state = PartitionState(cells, data, unevaluated, settled, best, decided, boxes)
        report = self.problem.progress.report
        if report is not None:
            ends = np.array([best[0]]), np.array([best[1]])
            report(SearchState(*ends, boxes, self.clock.seconds))

    def result(self, reason: StopReason) -> PartitionResult:
        """Bounds and cells as they stand."""
        state, decided = self.state, None
        if self.problem.record:
            nothing = self._cells(state.open.take(np.arange(0)), state.data[:0])
            batches = [self._cells(*batch) for batch in state.decided]
            decided = _joined([nothing, *batches])
        cells = self._cells(state.open, state.data)
        return PartitionResult(*state.best, cells, decided, reason, state.boxes, self.clock.seconds)

    @staticmethod
    def _cells(boxes: Boxes, data: np.ndarray) -> PartitionCells:
        return PartitionCells(boxes.low, boxes.high, boxes.lower[:, 0], -boxes.lower[:, 1], data)


def _sums(bounds: Rows, known: tuple[float, float]) -> tuple[float, float]:
    """Proved bounds of what is known and the cells' contributions together, from `bounds` (n, 2),
    the lower ones and minus the upper ones.

    Reason: `math.fsum` rounds the real sum of floats correctly, so the next float below is at most
    that sum; of many numbers a plain sum in any order is taken, less `gamma(n)` of their sizes. A
    sum of numbers that are not negative is not negative.
    """
    ends = []
    for before, column in ((known[0], bounds[:, 0]), (-known[1], bounds[:, 1])):
        terms: list[float] = [_plain_sum(column)] if len(column) > MANY else column.tolist()
        terms = [term for term in terms if term != 0]
        if before != 0:
            terms.append(before)
        if not terms:
            ends.append(0.0)
        elif -math.inf in terms:
            ends.append(-math.inf)
        elif len(terms) == 1:
            ends.append(terms[0])
        else:
            try:
                total = math.nextafter(math.fsum(terms), -math.inf)
            except OverflowError:
                total = -math.inf
            ends.append(max(total, 0.0) if min(terms) >= 0 else total)
    return ends[0], 0.0 - ends[1]


def _plain_sum(values: np.ndarray) -> float:
    """A lower bound of the sum of many numbers; 0 where all are 0."""
    with np.errstate(over="ignore", invalid="ignore"):
        size = float(np.sum(np.abs(values)))
        total = float(np.sum(values))
        lost = up_float(gamma(len(values)) * up_float(size, len(values)), 2)
        least = math.nextafter(total - lost, -math.inf)
    if size == 0 or not math.isfinite(least):
        return 0.0 if size == 0 else -math.inf
    return max(least, 0.0) if values.min() >= 0 else least


def _with_batch(
    batches: tuple[tuple[Boxes, np.ndarray], ...], batch: tuple[Boxes, np.ndarray]
) -> tuple[tuple[Boxes, np.ndarray], ...]:
    """The batches and one more; those of similar sizes are joined, so there are few."""
    joined = [*batches, batch]
    while len(joined) > 1 and len(joined[-2][0]) <= 2 * len(joined[-1][0]):
        (first, data), (second, more) = joined[-2:]
        joined[-2:] = [(Boxes.concatenate([first, second]), np.concatenate([data, more]))]
    return tuple(joined)


def _joined(batches: list[PartitionCells]) -> PartitionCells:
    columns = zip(*(vars(batch).values() for batch in batches), strict=True)
    return PartitionCells(*map(np.concatenate, columns))
