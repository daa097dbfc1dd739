"""How many boxes are bounded at a time, as many as a fixed amount of work and memory allows; and
how those of one region are bounded, on the CPU first, then on the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from gpcert.enclosures import Evaluation, LocalModel, Portfolio, local_model
from gpcert.enclosures.goals import Goal
from gpcert.kernels import Kernel
from gpcert.kernels.composite import Expressed
from gpcert.kernels.expansions.capabilities import SectionKernel
from gpcert.model.committee import Model
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import Backend, PerCell, PerCellAndFeature
from gpcert.regions import Cells, Region

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
