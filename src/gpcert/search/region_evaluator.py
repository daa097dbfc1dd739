"""How boxes of one region are bounded in batches, and where: on the CPU first, then on the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from gpcert.enclosures import Evaluation, LocalModel, Portfolio, local_model
from gpcert.enclosures.goals import Goal
from gpcert.model.committee import Model
from gpcert.numerics.arrays import Backend, PerCell, PerCellAndFeature
from gpcert.regions import Cells, Region
from gpcert.search.batches import batch_size, bytes_per_cell

HOST_SHARE = 0.5
"""Of a CPU's batch: how many boxes a search has bounded before it moves to a GPU."""


class RegionEvaluator:
    """Boxes of one region; a `BatchEvaluator`.

    It moves to the GPU, if that is the backend, once half a batch of a CPU is done: thousands of
    launches take a quarter of a second whatever they compute. Single points stay on the CPU.
    """

    def __init__(
        self, model: Model, region: Region, goals: Sequence[Goal], backend: Backend
    ) -> None:
        self.model, self.region, self.goals = model, region, goals
        self.wanted = backend
        self.backend = Backend() if backend.gpu else backend
        self.bytes_per_box = bytes_per_cell(model, len(region.free))
        self._boxes = 0
        self._moved: LocalModel | None = None

    @property
    def batch_size(self) -> int:
        """Boxes of one batch where they are bounded now."""
        return batch_size(self.model, len(self.region.free), self.goals, self.backend)

    def evaluation(
        self,
        question: PerCell,
        low: PerCellAndFeature,
        high: PerCellAndFeature | None,
        optional: bool = True,
        learnt: Portfolio | None = None,
    ) -> Evaluation:
        """Enclosures over boxes, or at points of the region where `high` is None."""
        del question
        if high is None:
            points = np.asarray(low)
            place = self._host_backend.asarray
            cells = Cells(self.region, place(points), place(points))
            return Evaluation(self._host, cells, optional, learnt)
        self._move()
        self._boxes += len(low)
        local = self._host if self._moved is None else self._moved
        cells = Cells(self.region, self.backend.asarray(low), self.backend.asarray(high))
        return Evaluation(local, cells, optional, learnt)

    @property
    def _host_backend(self) -> Backend:
        return Backend() if self.wanted.gpu else self.wanted

    @cached_property
    def _host(self) -> LocalModel:
        """The model bound to the region where the search begins."""
        return self._local(self._host_backend)

    def _local(self, backend: Backend) -> LocalModel:
        variance = any(goal.needs_variance for goal in self.goals)
        return local_model(self.model, self.region, backend, variance)

    def _move(self) -> None:
        if self.backend != self.wanted and self._boxes >= HOST_SHARE * self.batch_size:
            self._moved, self.backend = self._local(self.wanted), self.wanted
