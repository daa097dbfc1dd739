"""One batch of cells, its enclosures computed on demand and shared by all goals; which optional
bounds are worth their cost, decided by what they gained, not by a flag; and batches of intervals of
t on many sections `x + t e_j` of a model.

Proofs: docs/mathematics.md, statements 1.2 and 15.2.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, NamedTuple

import numpy as np

from gpcert.enclosures.local_posterior import (
    CHEAP_WORK,
    LocalModel,
    LocalPosterior,
    Memo,
    local_model,
    remembered,
)
from gpcert.enclosures.lower_model import plain_geometry
from gpcert.enclosures.mean import MeanEnclosure
from gpcert.enclosures.stacked import StackedVariances
from gpcert.enclosures.variance import VarianceEnclosure
from gpcert.kernels.expansions.base import Expansion, SectionKernel
from gpcert.kernels.expansions.squared_exponential_sections import Sections
from gpcert.model.committee import Model
from gpcert.model.multi_output import ModelCollection
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import Backend, Inputs, PerCell, PerCellAndClass, PerFeature
from gpcert.regions import Ball, Box, Cells
from gpcert.regions.scaled import ScaledCells
from gpcert.utils.processes import checkpoint

PATIENCE = 3
"""Batches in a row without a gain after which an optional bound rests."""

FEW_CELLS = 16
"""Up to here the point-by-point remainder of a kernel without a weight is always tried."""

FIRST_REST = 4
"""Batches of the first rest; each further rest is twice as long."""


class BoundHistory(NamedTuple):
    """Of one bound: batches in a row without a gain, batches left to rest, length of the next rest,
    and whether the last batch gained."""

    idle: int = 0
    resting: int = 0
    rest: int = FIRST_REST
    gained: bool = False


@dataclass(eq=False)
class Portfolio:
    """Remembers, for each optional bound, when it last tightened anything.

    Every bound is valid, so the choice only costs or saves time: a bound that has not tightened a
    cell for `PATIENCE` batches rests for 4, 8, 16, ... batches, then is tried again. Deterministic.

    >>> p = Portfolio()
    >>> p.wants("pointwise")
    True
    """

    history: dict[Hashable, BoundHistory] = field(default_factory=dict)

    def wants(self, name: Hashable) -> bool:
        """Whether to compute the bound called `name` for the next batch."""
        known = self.history.get(name, BoundHistory())
        if known.resting > 0:
            self.history[name] = known._replace(resting=known.resting - 1)
        return known.resting == 0

    def gained(self, name: Hashable) -> bool:
        """Whether the bound tightened a cell when it was last computed."""
        return self.history.get(name, BoundHistory()).gained

    def report(self, name: Hashable, gained: bool) -> None:
        """Say whether the bound tightened any cell of the batch."""
        known = self.history.get(name, BoundHistory())
        if gained:
            known = known._replace(idle=0, rest=FIRST_REST)
        elif known.idle + 1 < PATIENCE:
            known = known._replace(idle=known.idle + 1)
        else:
            known = known._replace(idle=0, resting=known.rest, rest=2 * known.rest)
        self.history[name] = known._replace(gained=gained)


class Evaluation(Memo):
    """Enclosures of a batch of cells; each is computed once, when a goal first asks.

    It holds all that is remembered of a batch (`once`), and what the search has seen of
    optional bounds: `portfolio` is copied when it comes in, and the search takes it back. So a
    bound depends on what is passed in, not on what was computed elsewhere before.
    """

    def __init__(
        self,
        local: LocalModel,
        cells: Cells,
        optional: bool = True,
        portfolio: Portfolio | None = None,
    ) -> None:
        super().__init__()
        self.members = local if isinstance(local, tuple) else (local,)
        self.cells = cells
        self.optional = optional
        """Whether bounds that may not pay are tried: not for cells that are single points."""
        self.enough: float | None = None
        """What a lower bound of the goal that is asked next need not exceed, if that is known: the
        search sets it, and bounds that are refined stop there."""
        self.few: int | None = None
        """At how many centres values of a goal are certified, those where they seem least: the
        search sets it where one of them is all that it needs."""
        self.portfolio = Portfolio({} if portfolio is None else dict(portfolio.history))
        self._index = 0

    def again(self, optional: bool) -> Evaluation:
        """The same cells anew, with other bounds tried: kernel values at the centres that are known
        are not computed again."""
        other = Evaluation(self.members, self.cells, optional, self.portfolio)
        if "expansion" in vars(self):
            vars(other)["expansion"] = self.expansion
        return other

    @property
    def local(self) -> LocalPosterior:
        """The posterior; of a committee the first member."""
        return self.members[0]

    @property
    def model(self) -> Posterior | ModelCollection:
        """The posterior, or all of them."""
        members = tuple(part.posterior for part in self.members)
        return members[0] if len(members) == 1 else ModelCollection(members)

    def member(self, index: int) -> Evaluation:
        """The same cells as a committee's member sees them."""
        return self if index == 0 else self._member(index)

    @remembered
    def _member(self, index: int) -> Evaluation:
        member = Evaluation(self.members[index], self.cells, self.optional)
        member.portfolio, member._index = self.portfolio, index
        return member

    def output(self, number: int) -> tuple[Evaluation, int]:
        """Whose an output is, and its number there: a posterior's own, or of separate outputs,
        each a member, that member's only one."""
        return (self, number) if len(self.members) == 1 else (self.member(number), 0)

    def at_centers(self) -> Evaluation:
        """The cells' centres as cells of their own."""
        centers = self.cells.center
        points = Cells(self.cells.region, centers, centers, choice=self.cells.choice)
        return Evaluation(self.members, points, optional=False)

    def shared_geometry(self) -> ScaledCells:
        """Coordinates in which enclosures of several kernels meet: those of the cells, behind the
        functions that all members have in front of them."""
        return plain_geometry(self.local.curved(self.cells))

    @cached_property
    def expansion(self) -> Expansion:
        """Kernel values at the centres."""
        checkpoint()
        return self.local.expand(self.cells)

    @remembered
    def mean(self, output: int) -> MeanEnclosure:
        """Enclosures of g_c and -g_c."""
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
        low, high = self.center_ranges(output)
        return low[:, 0], high[:, 0]

    @remembered
    def center_ranges(self, *outputs: int) -> tuple[PerCellAndClass, PerCellAndClass]:
        """Certified ranges (B, K) of the means of some outputs at the centres."""
        return self.local.center_range(self.expansion, outputs)

    @remembered
    def variance(self, output: int) -> VarianceEnclosure:
        """Enclosures of v_c and -v_c."""
        stacked, local = self.variances, self.local
        if stacked is not None:
            return stacked.part(output)
        options = local.variance_options(self.expansion, output, self.optional, self.wants)
        enclosure = local.variance(self.expansion, output, options)
        if options.pointwise:
            self.report("pointwise variance", enclosure.pointwise_gained)
        return enclosure

    @property
    def variances(self) -> StackedVariances | None:
        """Those of all outputs together, where they are made so."""
        return self.once(("variances",), self._variances) if self.local.stacks else None

    def _variances(self) -> StackedVariances:
        local, expansion = self.local, self.expansion
        options = local.variance_options(expansion, 0, self.optional, self.wants)
        stacked = local.variances(self.cells, expansion, options)
        if options.pointwise:
            self.report("pointwise variance", stacked.whole.pointwise_gained)
        return stacked

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


MAX_CELLS = 2048
"""Cells of one batch, however small the model is."""


def has_sections(model: Model) -> bool:
    """Whether the model's kernels are known on many sections at once; trends are not."""
    return all(
        isinstance(member.kernel, SectionKernel)
        and member.features is None
        and not member.has_trend
        for member in model.members
    )


@dataclass(frozen=True, eq=False)
class SectionModel:
    """The model's members without a place, and the sections as each of them sees them, in unit form
    as in `LocalPosterior`.

    A member's function on a section has at most the norm that it has over all features (Statement
    1.2; Aronszajn 1950, *Theory of reproducing kernels*, part I, section 5).
    """

    members: tuple[LocalPosterior, ...]
    sections: tuple[Sections, ...]
    hull: Box
    """All of t that is asked about: it is of positive length, and sets the batches' units."""
    backend: Backend

    @staticmethod
    def parts_of(model: Model, backend: Backend, variance: bool) -> tuple[LocalPosterior, ...]:
        """What does not depend on the sections, once per model."""
        build = LocalPosterior.build  # at one point: its kernel and norms are not used
        return tuple(
            build(member, Ball(member.points[0], 0.0), backend, variance)
            for member in model.members
        )

    @staticmethod
    def on(
        parts: tuple[LocalPosterior, ...],
        X: Inputs,
        sections: tuple[np.ndarray, np.ndarray],
        extent: Annotated[np.ndarray, "Q"],
        backend: Backend,
    ) -> SectionModel:
        """The sections (rows of X, features), asked about for |t| <= extent (Q,)."""
        kernels = [part.unit.kernel for part in parts]
        known = [kernel for kernel in kernels if isinstance(kernel, SectionKernel)]
        assert len(known) == len(kernels), "asked of models that have sections"
        each = zip(parts, known, strict=True)
        sectioned = tuple(k.sections(part.unit.points, X, sections, extent) for part, k in each)
        reach = float(extent.max(initial=0.0)) or 1.0
        return SectionModel(parts, sectioned, Box([-reach], [reach]), backend)

    def evaluation(
        self,
        question: Annotated[np.ndarray, "B"],
        low: np.ndarray,
        high: np.ndarray | None,
        optional: bool = True,
        portfolio: Portfolio | None = None,
    ) -> Evaluation:
        """Enclosures over the intervals [low, high] (B, 1) of the sections `question` (B,), or at
        the points `low` where `high` is None."""
        bound = tuple(
            replace(part, kernel=sections.batch(question, self.backend), one_batch=True)
            for part, sections in zip(self.members, self.sections, strict=True)
        )
        place = self.backend.asarray
        cells = Cells(self.hull, place(low), place(low if high is None else high))
        return Evaluation(bound, cells, optional, portfolio)

    @property
    def batch_size(self) -> int:
        """As many as leave the derivatives' covariance cheap."""
        largest = max(len(part.posterior.points) for part in self.members)
        return int(np.clip(CHEAP_WORK / largest**2, 16, MAX_CELLS))

    @property
    def bytes_per_box(self) -> float:
        """Memory of one interval while it is bounded, about."""
        return 8.0 * 24 * sum(len(part.posterior.points) for part in self.members)
