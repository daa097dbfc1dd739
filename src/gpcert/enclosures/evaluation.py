"""One batch of cells, its enclosures computed on demand and shared by all goals."""

from __future__ import annotations

from functools import cached_property

from gpcert.deadline import checkpoint
from gpcert.enclosures.local_posterior import LocalModel, LocalPosterior
from gpcert.enclosures.mean import MeanEnclosure
from gpcert.enclosures.variance import VarianceEnclosure
from gpcert.kernels.expansions.base import Expansion
from gpcert.regions import Cells

__all__ = ["Evaluation"]


class Evaluation:
    """Enclosures of a batch of cells; each is computed once, when a goal first asks."""

    def __init__(self, local: LocalModel, cells: Cells, optional: bool = True) -> None:
        self.parts = local.members
        self.cells = cells
        self.optional = optional
        """Whether bounds that may not pay are tried: not for cells that are single points."""
        self._means: dict[int, MeanEnclosure] = {}
        self._variances: dict[int, VarianceEnclosure] = {}
        self._members: dict[int, Evaluation] = {}

    @property
    def local(self) -> LocalPosterior:
        """The posterior; of a committee the first member."""
        return self.parts[0]

    def member(self, index: int) -> Evaluation:
        """The same cells as a committee's member sees them."""
        if index == 0:  # not kept: a reference to itself would outlive the batch
            return self
        if index not in self._members:
            self._members[index] = Evaluation(self.parts[index], self.cells, self.optional)
        return self._members[index]

    @cached_property
    def expansion(self) -> Expansion:
        """Kernel values at the centres."""
        checkpoint()
        return self.local.expand(self.cells)

    def mean(self, output: int) -> MeanEnclosure:
        """Enclosure of g_c."""
        if output not in self._means:
            checkpoint()
            self._means[output] = self.local.mean(self.expansion, output, self.optional)
        return self._means[output]

    def variance(self, output: int) -> VarianceEnclosure:
        """Enclosure of v_c."""
        if output not in self._variances:
            checkpoint()
            self._variances[output] = self.local.variance(self.expansion, output, self.optional)
        return self._variances[output]
