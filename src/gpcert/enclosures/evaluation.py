"""One batch of cells, its enclosures computed on demand and shared by all goals."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any

import numpy as np

from gpcert.arrays import Array, Backend
from gpcert.committee import Model
from gpcert.deadline import checkpoint
from gpcert.enclosures.local_posterior import (
    LocalCommittee,
    LocalModel,
    LocalPosterior,
    local_model,
)
from gpcert.enclosures.mean import MeanEnclosure
from gpcert.enclosures.portfolio import Portfolio
from gpcert.enclosures.stacked import StackedVariances
from gpcert.enclosures.variance import VarianceEnclosure
from gpcert.kernels.expansions.base import Expansion
from gpcert.regions import Ball, Cells


class Evaluation:
    """Enclosures of a batch of cells; each is computed once, when a goal first asks.

    It holds all that is remembered of a batch (`once`), and what the search has learnt about
    optional bounds: `learnt` is copied when it comes in, and the search takes `portfolio` back. So
    a bound depends on what is passed in, not on what was computed elsewhere before.
    """

    def __init__(
        self,
        local: LocalModel,
        cells: Cells,
        optional: bool = True,
        learnt: Portfolio | None = None,
    ) -> None:
        self.parts = local.members
        self.cells = cells
        self.optional = optional
        """Whether bounds that may not pay are tried: not for cells that are single points."""
        self.enough: float | None = None
        """What a lower bound of the goal that is asked next need not exceed, if that is known: the
        search sets it, and bounds that are refined stop there."""
        self.portfolio = Portfolio() if learnt is None else learnt.copy()
        self._index = 0
        self._answers: dict[Hashable, Any] = {}

    @property
    def local(self) -> LocalPosterior:
        """The posterior; of a committee the first member."""
        return self.parts[0]

    def once(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """The answer to `key`, computed once; it must not refer to this evaluation, which would
        then outlive its batch."""
        if key not in self._answers:
            checkpoint()
            self._answers[key] = compute()
        return self._answers[key]

    def member(self, index: int) -> Evaluation:
        """The same cells as a committee's member sees them."""
        if index == 0:
            return self
        return self.once(("member", index), lambda: self._member(index))

    def _member(self, index: int) -> Evaluation:
        own = Evaluation(self.parts[index], self.cells, self.optional)
        own.portfolio, own._index = self.portfolio, index
        return own

    def output(self, number: int) -> tuple[Evaluation, int]:
        """Whose an output is, and its number there: a posterior's own, or of separate outputs,
        each a member, that member's only one."""
        return (self, number) if len(self.parts) == 1 else (self.member(number), 0)

    def at_centers(self) -> Evaluation:
        """The cells' centres as cells of their own."""
        points = Cells(self.cells.region, self.cells.center, self.cells.center)
        return Evaluation(LocalCommittee(self.parts), points, optional=False)

    @cached_property
    def expansion(self) -> Expansion:
        """Kernel values at the centres."""
        checkpoint()
        return self.local.expand(self.cells)

    def mean(self, output: int) -> MeanEnclosure:
        """Enclosures of g_c and -g_c."""
        return self.once(("mean", output), lambda: self._mean(output))

    def _mean(self, output: int) -> MeanEnclosure:
        pointwise = self.wants("pointwise")
        enclosure = self.local.mean(self.expansion, output, pointwise)
        if pointwise:
            self.report("pointwise", enclosure.pointwise_gained)
        return enclosure

    def mean_at_center(self, output: int) -> tuple[Array, Array]:
        """Certified range (B,) of the mean at the centres; without the enclosure where that has not
        been asked for, as at single points."""
        if self.knows("mean", output):
            return self.mean(output).output_at_center
        key = ("center range", output)
        return self.once(key, lambda: self.local.mean_at_center(self.expansion, output))

    def knows(self, kind: str, output: int) -> bool:
        """Whether the enclosure of that mean or variance has been asked for."""
        both = kind == "variance" and self.local.stacks
        return ("variances" if both else (kind, output)) in self._answers

    def variance(self, output: int) -> VarianceEnclosure:
        """Enclosures of v_c and -v_c."""
        stacked = self.variances
        if stacked is not None:
            return stacked.output(output)
        return self.once(("variance", output), lambda: self._variance(output))

    @property
    def variances(self) -> StackedVariances | None:
        """Those of all outputs together, where they are made so."""
        return self.once("variances", self._variances) if self.local.stacks else None

    def _variances(self) -> StackedVariances:
        local, expansion = self.local, self.expansion
        options = local.variance_options(expansion, 0, self.optional, self.wants)
        found = local.variances(self.cells, expansion, options)
        if options.pointwise:
            self.report("pointwise variance", found.whole.pointwise_gained)
        return found

    def _variance(self, output: int) -> VarianceEnclosure:
        local, expansion = self.local, self.expansion
        options = local.variance_options(expansion, output, self.optional, self.wants)
        enclosure = local.variance(expansion, output, options)
        if options.pointwise:
            self.report("pointwise variance", enclosure.pointwise_gained)
        return enclosure

    def wants(self, name: str) -> bool:
        """Whether to compute the optional bound called `name`."""
        return self.optional and self.portfolio.wants((self._index, name))

    def report(self, name: str, gained: bool) -> None:
        """Say whether that bound tightened any cell."""
        self.portfolio.report((self._index, name), gained)

    def report_derivatives(self, variance: VarianceEnclosure, relevant: bool) -> None:
        """A goal says whether the variance's slack mattered to it; decides for the next batches."""
        if variance.derivatives_used:
            self.report("derivatives", variance.derivatives_gained and relevant)


def evaluation_at(model: Model, x: np.ndarray, variance: bool) -> Evaluation:
    """The evaluation of that cell; `variance` says whether variances are asked of it."""
    region = Ball(x, 0.0)
    return Evaluation(local_model(model, region, Backend(), variance), region.root())
