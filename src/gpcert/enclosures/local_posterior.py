"""A posterior seen from inside one region, ready to be enclosed over batches of cells.

Proofs: docs/mathematics.md, statement 1.2.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gpcert.arrays import Array, Backend
from gpcert.committee import Model
from gpcert.deadline import checkpoint
from gpcert.enclosures.mean import MeanEnclosure, mean_enclosure
from gpcert.enclosures.operator import OperatorBounds
from gpcert.enclosures.portfolio import Portfolio
from gpcert.enclosures.precision import LocalPrecision
from gpcert.enclosures.variance import (
    VarianceEnclosure,
    VarianceOptions,
    variance_enclosure,
)
from gpcert.kernels import LocalKernel, localize
from gpcert.kernels.expansions.base import Expansion
from gpcert.kernels.expansions.squared_exponential import LocalSquaredExponential
from gpcert.posterior import Posterior
from gpcert.regions import Cells, Region
from gpcert.unit_form import UnitForm

__all__ = ["LocalCommittee", "LocalModel", "LocalPosterior", "local_model"]

CHEAP_WORK = 2.0e8
"""Multiplications up to which the derivative covariance is always worth its time (about 10 ms)."""

MOST_SECOND_FEATURES = 3
"""Up to here the covariance of second derivatives is tried: f (f+1)/2 products with the factor."""


@dataclass(frozen=True, eq=False)
class LocalPosterior:
    """Everything that does not change from cell to cell, on the backend.

    Kernel, weights, norms and precisions are those of the unit form; only the goals' last step goes
    to the outputs' own units, by `unit.mean_scale` and `unit.variance_scale`.
    """

    posterior: Posterior
    unit: UnitForm
    kernel: LocalKernel
    weights: tuple[Array, ...]
    norms: tuple[float, ...]
    precisions: tuple[LocalPrecision, ...] | None
    operator: OperatorBounds
    portfolio: Portfolio = field(default_factory=Portfolio)

    @staticmethod
    def build(
        posterior: Posterior, region: Region, backend: Backend, variance: bool
    ) -> LocalPosterior:
        """Bind to a region; `variance=False` where only the mean is asked for (much cheaper)."""
        checkpoint()
        unit = posterior.unit
        _ = unit.mean_scale  # an error where predictions leave float64
        kernel = localize(unit.kernel, posterior.points, region, backend)
        norms = []
        for c, t in enumerate(unit.weights):
            # the norm over all features is known once and for all; a slice's own can be smaller
            own = kernel.slice_norm(t) if len(region.fixed) else None
            whole = float(unit.norms[c])
            norms.append(whole if own is None else min(whole, own))
        precisions, operator = None, OperatorBounds(0.0, 1.0)
        if variance:
            _ = unit.variance_scale
            operator = OperatorBounds.of(unit)
            precisions = tuple(
                LocalPrecision.build(unit, index, kernel.variance, backend)
                for index in range(unit.precision_count)
            )
        return LocalPosterior(
            posterior=posterior,
            unit=unit,
            kernel=kernel,
            weights=tuple(backend.asarray(t) for t in unit.weights),
            norms=tuple(norms),
            precisions=precisions,
            operator=operator,
        )

    @property
    def members(self) -> tuple[LocalPosterior, ...]:
        """The posterior itself; see `LocalCommittee`."""
        return (self,)

    def expand(self, cells: Cells) -> Expansion:
        """Kernel values at the cells' centres."""
        return self.kernel.expand(cells)

    def mean(self, expansion: Expansion, output: int, optional: bool = True) -> MeanEnclosure:
        """Enclosure of g_c in unit form; `optional` bounds as the portfolio says."""
        pointwise = optional and self.portfolio.wants("pointwise")
        weights, norm = self.weights[output], self.norms[output]
        enclosure = mean_enclosure(self.kernel, expansion, weights, norm, pointwise)
        if pointwise:
            self.portfolio.report("pointwise", enclosure.pointwise_gained)
        return enclosure

    def paper_mean(self, expansion: Expansion, output: int, sign: int) -> Array:
        """The paper's lower bound of `sign * g_c` over every cell."""
        return self.kernel.paper_bound(expansion, sign * self.weights[output])

    def variance(
        self, expansion: Expansion, output: int, optional: bool = True
    ) -> VarianceEnclosure:
        """Enclosure of v_c in unit form."""
        assert self.precisions is not None, "built with variance=False"
        precision = self.precisions[output if len(self.precisions) > 1 else 0]
        cells, features = expansion.geometry.half.shape
        cheap = cells * features * len(self.posterior.points) ** 2 <= CHEAP_WORK
        derivatives = optional and (cheap or self.portfolio.wants("derivatives"))
        # the weights S k have no small sum of sizes where the kernel is smooth: seldom a gain there
        pointwise = optional and self.portfolio.wants("pointwise variance")
        options = VarianceOptions(
            derivatives, optional and self._second_pays(precision, cells, features), pointwise
        )
        enclosure = variance_enclosure(self.kernel, expansion, precision, self.operator, options)
        if pointwise:
            self.portfolio.report("pointwise variance", enclosure.pointwise_gained)
        return enclosure

    def _second_pays(self, precision: LocalPrecision, cells: int, features: int) -> bool:
        """Whether the covariance of the second degree is known, and cheap enough to be tried."""
        known = isinstance(self.kernel, LocalSquaredExponential) and precision.negative is None
        rows = features * (features + 3) // 2
        work = cells * rows * len(self.posterior.points) ** 2
        return known and 0 < features <= MOST_SECOND_FEATURES and work <= CHEAP_WORK

    def report_derivatives(self, enclosure: VarianceEnclosure, relevant: bool) -> None:
        """A goal says whether the variance's slack mattered to it; decides for the next batches."""
        if enclosure.derivatives_used:
            self.portfolio.report("derivatives", enclosure.derivatives_gained and relevant)


@dataclass(frozen=True, eq=False)
class LocalCommittee:
    """Several local posteriors over the same region; see `gpcert.committee`."""

    members: tuple[LocalPosterior, ...]


LocalModel = LocalPosterior | LocalCommittee


def local_model(model: Model, region: Region, backend: Backend, variance: bool) -> LocalModel:
    """The model bound to a region, member by member."""
    parts = tuple(
        LocalPosterior.build(member, region, backend, variance) for member in model.members
    )
    return parts[0] if isinstance(model, Posterior) else LocalCommittee(parts)
