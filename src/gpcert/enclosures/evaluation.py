"""One batch of cells, its enclosures computed on demand and shared by all goals; and which optional
bounds are worth their cost: decided by what they gained, not by a flag."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property

from gpcert.arrays import Backend, PerCell, PerFeature
from gpcert.committee import Model
from gpcert.deadline import checkpoint
from gpcert.enclosures.local_posterior import (
    LocalCommittee,
    LocalModel,
    LocalPosterior,
    Memo,
    local_model,
)
from gpcert.enclosures.mean import MeanEnclosure
from gpcert.enclosures.stacked import StackedVariances
from gpcert.enclosures.variance import VarianceEnclosure
from gpcert.kernels.expansions.base import Expansion
from gpcert.posterior import Posterior
from gpcert.regions import Ball, Cells
from gpcert.several import Several

PATIENCE = 3
"""Batches in a row without a gain after which an optional bound rests."""

FEW_CELLS = 16
"""Up to here the point-by-point remainder of a kernel without a weight is always tried."""

FIRST_REST = 4
"""Batches of the first rest; each further rest is twice as long."""


@dataclass(eq=False)
class Portfolio:
    """Remembers, for each optional bound, when it last tightened anything.

    Every bound is valid, so the choice only costs or saves time: a bound that has not tightened a
    cell for `PATIENCE` batches rests for 4, 8, 16, ... batches, then is tried again. Deterministic.

    >>> p = Portfolio()
    >>> p.wants("pointwise")
    True
    """

    idle: dict[Hashable, int] = field(default_factory=dict)
    resting: dict[Hashable, int] = field(default_factory=dict)
    rest: dict[Hashable, int] = field(default_factory=dict)
    useful: dict[Hashable, bool] = field(default_factory=dict)

    def copy(self) -> Portfolio:
        """The same, to be learnt from apart."""
        return Portfolio(dict(self.idle), dict(self.resting), dict(self.rest), dict(self.useful))

    def wants(self, name: Hashable) -> bool:
        """Whether to compute the bound called `name` for the next batch."""
        left = self.resting.get(name, 0)
        if left > 0:
            self.resting[name] = left - 1
            return False
        return True

    def gained(self, name: Hashable) -> bool:
        """Whether the bound tightened a cell when it was last computed."""
        return self.useful.get(name, False)

    def report(self, name: Hashable, gained: bool) -> None:
        """Say whether the bound tightened any cell of the batch."""
        self.useful[name] = gained
        if gained:
            self.idle[name] = 0
            self.rest[name] = FIRST_REST
            return
        self.idle[name] = self.idle.get(name, 0) + 1
        if self.idle[name] >= PATIENCE:
            length = self.rest.get(name, FIRST_REST)
            self.resting[name] = length
            self.rest[name] = 2 * length
            self.idle[name] = 0


class Evaluation(Memo):
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
        super().__init__()
        self.members = local.members
        self.cells = cells
        self.optional = optional
        """Whether bounds that may not pay are tried: not for cells that are single points."""
        self.enough: float | None = None
        """What a lower bound of the goal that is asked next need not exceed, if that is known: the
        search sets it, and bounds that are refined stop there."""
        self.portfolio = Portfolio() if learnt is None else learnt.copy()
        self._index = 0

    def again(self, optional: bool) -> Evaluation:
        """The same cells anew, with other bounds tried: kernel values at the centres that are known
        are not computed again."""
        other = Evaluation(LocalCommittee(self.members), self.cells, optional, self.portfolio)
        if "expansion" in vars(self):
            vars(other)["expansion"] = self.expansion
        return other

    @property
    def local(self) -> LocalPosterior:
        """The posterior; of a committee the first member."""
        return self.members[0]

    @property
    def model(self) -> Posterior | Several:
        """The posterior, or all of them."""
        members = tuple(part.posterior for part in self.members)
        return members[0] if len(members) == 1 else Several(members)

    def member(self, index: int) -> Evaluation:
        """The same cells as a committee's member sees them."""
        if index == 0:
            return self
        return self.once(("member", index), lambda: self._member(index))

    def _member(self, index: int) -> Evaluation:
        own = Evaluation(self.members[index], self.cells, self.optional)
        own.portfolio, own._index = self.portfolio, index
        return own

    def output(self, number: int) -> tuple[Evaluation, int]:
        """Whose an output is, and its number there: a posterior's own, or of separate outputs,
        each a member, that member's only one."""
        return (self, number) if len(self.members) == 1 else (self.member(number), 0)

    def at_centers(self) -> Evaluation:
        """The cells' centres as cells of their own."""
        points = Cells(self.cells.region, self.cells.center, self.cells.center)
        return Evaluation(LocalCommittee(self.members), points, optional=False)

    @cached_property
    def expansion(self) -> Expansion:
        """Kernel values at the centres."""
        checkpoint()
        return self.local.expand(self.cells)

    def mean(self, output: int) -> MeanEnclosure:
        """Enclosures of g_c and -g_c."""
        return self.once(("mean", output), lambda: self._mean(output))

    def _mean(self, output: int) -> MeanEnclosure:
        # rough kernels live by it, and the large cells of a search's first batches do not show it
        few = self.local.kernel.weight_rate == 0.0 and len(self.cells) <= FEW_CELLS
        wanted = self.wants("pointwise")
        pointwise = wanted or (self.optional and few)
        enclosure = self.local.mean(self.expansion, output, pointwise)
        if wanted or enclosure.pointwise_gained:
            self.report("pointwise", enclosure.pointwise_gained)
        return enclosure

    def mean_at_center(self, output: int) -> tuple[PerCell, PerCell]:
        """Certified range (B,) of the mean at the centres; without the enclosure where that has not
        been asked for, as at single points."""
        if self.knows("mean", output):
            return self.mean(output).output_at_center
        key = ("center range", output)
        return self.once(key, lambda: self.local.mean_at_center(self.expansion, output))

    def variance(self, output: int) -> VarianceEnclosure:
        """Enclosures of v_c and -v_c."""
        stacked = self.variances
        if stacked is not None:
            return stacked.output(output)
        return self.once(("variance", output), lambda: self._variance(output))

    @property
    def variances(self) -> StackedVariances | None:
        """Those of all outputs together, where they are made so."""
        return self.once(("variances",), self._variances) if self.local.stacks else None

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

    def gained(self, name: str) -> bool:
        """Whether that bound tightened any cell when it was last tried."""
        return self.portfolio.gained((self._index, name))

    def report(self, name: str, gained: bool) -> None:
        """Say whether that bound tightened any cell."""
        self.portfolio.report((self._index, name), gained)

    def report_derivatives(self, variance: VarianceEnclosure, relevant: bool) -> None:
        """A goal says whether the variance's slack mattered to it; decides for the next batches."""
        if variance.derivatives_used:
            self.report("derivatives", variance.derivatives_gained and relevant)


def evaluation_at(model: Model, x: PerFeature, variance: bool) -> Evaluation:
    """The evaluation of that cell; `variance` says whether variances are asked of it."""
    region = Ball(x, 0.0)
    return Evaluation(local_model(model, region, Backend(), variance), region.root())
