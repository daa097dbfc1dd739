"""How many boxes are bounded at a time, as many as a fixed amount of work and memory allows; and
how those of one region are bounded, on the CPU first, then on the GPU.

Boxes of a region with one-hot columns whose categories are decided are bounded in the coordinates
of the other features alone: a tenth of the features, and a hundredth of the time.

Proofs: docs/mathematics.md, statement 13.16.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, NamedTuple

import numpy as np

from gpcert.enclosures import Evaluation, LocalModel, Portfolio, local_model
from gpcert.enclosures.goals import Goal
from gpcert.kernels import Kernel
from gpcert.kernels.active_dimensions import ActiveDimensions
from gpcert.kernels.composite import Expressed, Product, Scale, Sum
from gpcert.kernels.constant import Constant
from gpcert.kernels.expansions.base import SectionKernel
from gpcert.kernels.radial import RadialKernel, SquaredExponential
from gpcert.model.committee import Model
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import Backend, PerCell, PerCellAndFeature, Rows
from gpcert.regions import Cells, OneHot, Region
from gpcert.regions.held import Slices
from gpcert.search.state import Boxes, split_order

LARGEST_BATCH = 4096
"""Boxes at a time; matrix products no longer gain beyond it on a CPU."""

LARGEST_WORK = 2.0e10
"""Multiplications a batch may take (about half a second on two cores): what a time budget that ends
inside a batch throws away. A fixed amount, not a measured time, so that runs repeat exactly."""

PASSES = 2.5e4
"""Multiplications that take as long as one value of a kernel with all that is bounded of its
derivatives, where that is many passes over arrays: of all kernels but squared exponentials, once
for each that a sum or product is made of (measured: 0.4 to 0.9 microseconds)."""

GPU_SPEED = 128
"""How many times more a GPU takes in its stride."""

GPU_BATCH = 65536
"""Boxes that a search gives a GPU at a time: what best-first order saves is lost beyond."""

GPU_SHARE = 0.8
"""Of what a GPU has left, by an estimate that is twice what is used: the larger its batches, the
less its launches cost (half a million boxes at a time are four times as fast as 65,536)."""

HOST_SHARE = 1.0 / 8.0
"""Of a CPU's batch: smaller ones stay on the CPU where a GPU could bound them."""

HOST_BYTES = 2000.0
"""Memory of the host for a box that is bounded on a GPU, about."""


class RegionEvaluator:
    """Boxes of one region; a `BatchEvaluator`.

    Where the backend is a GPU it takes the large batches: thousands of launches take a twentieth
    of a second whatever they compute. Small batches and single points stay on the CPU.
    """

    def __init__(
        self, model: Model, region: Region, goals: Sequence[Goal], backend: Backend
    ) -> None:
        self.model, self.region, self.goals = model, region, goals
        self.wanted = backend
        self.backend = self._host_backend
        self._bytes = bytes_per_cell(model, len(region.free))
        self._on_host = batch_size(model, len(region.free), goals, self._host_backend)

    @property
    def bytes_per_box(self) -> float:
        """Memory of the host for one box while it is bounded."""
        return HOST_BYTES if self.wanted.gpu else self._bytes

    @property
    def batch_size(self) -> int:
        """Boxes of one batch."""
        if not self.wanted.gpu:
            return self._on_host
        size = batch_size(self.model, len(self.region.free), self.goals, self.wanted)
        room = GPU_SHARE * self.wanted.free_bytes / self._bytes
        return max(2, int(min(size, GPU_BATCH, room)))

    def evaluation(
        self,
        question: PerCell,
        low: PerCellAndFeature,
        high: PerCellAndFeature | None,
        optional: bool = True,
        portfolio: Portfolio | None = None,
        choice: np.ndarray | None = None,
    ) -> Evaluation:
        """Enclosures over boxes, or at points of the region where `high` is None; `choice`: of
        `Slices`, see `Cells`."""
        del question
        if high is None:
            points = np.asarray(low)
            place = self._host_backend.asarray
            cells = Cells(self.region, place(points), place(points))
            return Evaluation(self._host, cells, optional, portfolio)
        large = not self.wanted.gpu or len(low) >= HOST_SHARE * self._on_host
        self.backend = self.wanted if large else self._host_backend
        local = self._moved if self.backend.gpu else self._host
        cells = Cells(self.region, self.backend.asarray(low), self.backend.asarray(high))
        if choice is not None:
            cells = replace(cells, choice=cells.placed(choice))
        return Evaluation(local, cells, optional, portfolio)

    @property
    def _host_backend(self) -> Backend:
        return Backend() if self.wanted.gpu else self.wanted

    @cached_property
    def _host(self) -> LocalModel:
        """The model bound to the region where the search begins."""
        return self._local(self._host_backend)

    @cached_property
    def _moved(self) -> LocalModel:
        """The same on the GPU."""
        return self._local(self.wanted)

    def _local(self, backend: Backend) -> LocalModel:
        variance = any(goal.needs_variance for goal in self.goals)
        return local_model(self.model, self.region, backend, variance)


def bytes_per_cell(model: Model, f: int) -> float:
    """Memory of one box of f free features while it is bounded."""
    # kernel rows and their derivatives, second and (for few features) third moments
    moments = 16 * f * f + (8 * f**3 if f <= 12 else 0)
    return 8.0 * sum(
        24 * len(member.points) + 2 * f * len(member.points) + moments for member in model.members
    )


def batch_size(model: Model, f: int, goals: Sequence[Goal], backend: Backend) -> int:
    """Boxes per batch of f free features: as many as a fixed amount of work allows, at least 2."""
    members = model.members
    sizes = [len(member.points) for member in members]
    variance = any(goal.needs_variance for goal in goals)
    work = sum(N * (f + 3.0) * (N if variance else f) for N in sizes)
    work = work + sum(N * PASSES * _passes(m) for N, m in zip(sizes, members, strict=True))
    if variance:
        # outputs with precisions of their own (several classes) take their time each, and the
        # eigenvalues of their Hessians too
        further = sum(member.precision_count - 1 for member in members)
        work = work + further * (sizes[0] ** 2 * (f + 3.0) + 60.0 * f**3)
    speed = GPU_SPEED if backend.gpu else 1
    size = min(LARGEST_BATCH * speed, 2 * int(LARGEST_WORK * speed / (2.0 * max(work, 1.0))))
    # a goal that is slow on every box asks for small batches: budgets are met between them
    wishes = (goal.most_cells(model, f) for goal in goals)
    return max(2, min([size, *(2 * wish for wish in wishes if wish is not None)]))


def _passes(member: Posterior) -> int:
    """How many kernels are bounded by many passes: the leaves of an expression, none of a squared
    exponential alone."""
    kernel = member.unit.kernel
    return 0 if isinstance(kernel, SectionKernel) else _leaves(kernel)


def _leaves(kernel: Kernel) -> int:
    whole = kernel.expression if isinstance(kernel, Expressed) else kernel
    return sum(map(_leaves, whole.parts)) or 1


FEW_COMBINATIONS = 64
"""Boxes of up to so many combinations of categories are divided without a bound of their own: that
would take as long as to bound the combinations."""


class Part(NamedTuple):
    """Some of a batch's boxes, `rows` (n,), and how they are enclosed: in the coordinates `columns`
    (all where that is None), or not at all."""

    rows: np.ndarray
    evaluation: Evaluation | None
    columns: np.ndarray | None = None

    def wide(self, own: Annotated[np.ndarray, "n q"], others: Rows) -> Rows:
        """(n, f): these numbers (n, q) in the columns, the others beside."""
        if self.columns is None:
            return own
        others = others.copy()
        others[:, self.columns] = own
        return others


@dataclass(frozen=True, eq=False)
class SliceEvaluator:
    """What is decided in the coordinates of the other features, what is not by `evaluator`."""

    evaluator: RegionEvaluator
    slices: Slices
    inner: RegionEvaluator

    @staticmethod
    def of(
        evaluator: RegionEvaluator,
        model: Model,
        region: Region,
        goals: Sequence[Goal],
        backend: Backend,
    ) -> SliceEvaluator | None:
        """None where the region has no groups, or a kernel does not know such cells."""
        slices = Slices.of(region) if isinstance(region, OneHot) else None
        known = slices and all(
            _knows(member.unit.kernel) and member.features is None and not member.has_trend
            for member in model.members
        )
        taylor = slices and all(goal.paper is None or goal.paper_pays for goal in goals)
        if slices is None or not known or not taylor:
            return None
        return SliceEvaluator(evaluator, slices, RegionEvaluator(model, slices, goals, backend))

    def parts(self, boxes: Boxes, optional: bool, portfolio: Portfolio) -> list[Part]:
        """Contracted boxes: those whose categories are decided, those of few combinations, and all
        others."""
        choice = self.slices.choices(boxes.low, boxes.high)
        decided = np.all(choice >= 0, axis=1)
        count = self.combinations(boxes)
        few = ~decided & (count <= FEW_COMBINATIONS)
        parts = []
        rows = np.flatnonzero(decided)
        if len(rows):
            columns = self.slices.columns
            ends = boxes.low[rows][:, columns], boxes.high[rows][:, columns]
            question = boxes.question[rows]
            evaluation = self.inner.evaluation(question, *ends, optional, portfolio, choice[rows])
            parts.append(Part(rows, evaluation, columns))
        if few.any():
            parts.append(Part(np.flatnonzero(few), None))
        rows = np.flatnonzero(~decided & ~few)
        if len(rows):
            some = boxes.take(rows)
            ends = some.question, some.low, some.high
            # bounds that pay there say nothing of these: all are tried
            parts.append(Part(rows, self.evaluator.evaluation(*ends, optional, Portfolio())))
        return parts

    def combinations(self, boxes: Boxes) -> Annotated[np.ndarray, "n"]:
        """How many combinations of categories each contracted box holds."""
        groups = self.slices.whole.free_groups.columns
        counts = [np.sum(boxes.high[:, group] >= 1.0, axis=1) for group in groups]
        return np.prod(np.maximum(counts, 1.0), axis=0)

    def axes(self, boxes: Boxes) -> Annotated[np.ndarray, "n halvings"]:
        """Along which undecided boxes are divided: in the group with most categories."""
        scores = np.zeros_like(boxes.low)
        for group in self.slices.whole.free_groups.columns:
            may = boxes.high[:, group] - boxes.low[:, group]
            scores[:, group] = may * np.sum(may, axis=1, keepdims=True)
        return split_order(scores)


def _knows(kernel: Kernel) -> bool:
    """Whether a kernel reads what cells hold at values of their own: radial ones and constants, and
    what is made of them here; not classes from outside with nodes of their own."""
    kind = type(kernel)
    plain = kind.localize in (Kernel.localize, SquaredExponential.localize)
    if isinstance(kernel, Expressed):
        return plain and kind.node is Expressed.node and _knows(kernel.expression)
    if kind in (Sum, Product, Scale, ActiveDimensions):
        return all(map(_knows, kernel.parts))
    radial = isinstance(kernel, RadialKernel) and kind.node is RadialKernel.node
    return (plain and radial) or kind is Constant
