"""A posterior seen from inside one region, ready to be enclosed over batches of cells."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpcert.arrays import Array, Backend
from gpcert.enclosures.geometry import Geometry
from gpcert.enclosures.mean import Expansion, MeanEnclosure, expand, mean_enclosure
from gpcert.enclosures.portfolio import Portfolio
from gpcert.enclosures.precision import LocalPrecision
from gpcert.enclosures.variance import VarianceEnclosure, variance_enclosure
from gpcert.kernels import LocalKernel
from gpcert.posterior import Posterior
from gpcert.regions import Cells, Region

__all__ = ["LocalPosterior"]

CHEAP_WORK = 2.0e8
"""Multiplications up to which the derivative covariance is always worth its time (about 10 ms)."""


@dataclass(frozen=True, eq=False)
class LocalPosterior:
    """Everything that does not change from cell to cell, on the backend."""

    posterior: Posterior
    kernel: LocalKernel
    weights: tuple[Array, ...]
    norms: tuple[float, ...]
    precisions: tuple[LocalPrecision, ...] | None
    excess: float
    portfolio: Portfolio = field(default_factory=Portfolio)

    @staticmethod
    def build(
        posterior: Posterior, region: Region, backend: Backend, variance: bool
    ) -> LocalPosterior:
        """Bind to a region; `variance=False` where only the mean is asked for (much cheaper)."""
        kernel = posterior.kernel.localize(posterior.points, region, backend)
        norms = []
        for c, t in enumerate(posterior.weights):
            # the norm over all features is known once and for all; a slice's own can be smaller
            own = kernel.slice_norm(t) if len(region.fixed) else None
            whole = float(posterior.norms[c])
            norms.append(whole if own is None else min(whole, own))
        precisions = None
        if variance:
            precisions = tuple(
                LocalPrecision.build(posterior, index, kernel.variance, backend)
                for index in range(len(posterior.factor))
            )
        return LocalPosterior(
            posterior=posterior,
            kernel=kernel,
            weights=tuple(backend.asarray(t) for t in posterior.weights),
            norms=tuple(norms),
            precisions=precisions,
            excess=posterior.excess if variance else 0.0,
        )

    def expand(self, cells: Cells) -> Expansion:
        """Kernel values at the cells' centres."""
        return expand(self.kernel, Geometry.of(cells, self.kernel))

    def mean(self, expansion: Expansion, output: int, optional: bool = True) -> MeanEnclosure:
        """Enclosure of g_c (before offset and scale); `optional` bounds as the portfolio says."""
        pointwise = optional and self.portfolio.wants("pointwise")
        weights, norm = self.weights[output], self.norms[output]
        enclosure = mean_enclosure(self.kernel, expansion, weights, norm, pointwise)
        if pointwise:
            self.portfolio.report("pointwise", enclosure.pointwise_gained)
        return enclosure

    def paper_mean(self, expansion: Expansion, output: int, sign: int) -> Array:
        """The paper's lower bound of `sign * g_c` over every cell."""
        half = expansion.geometry.half
        return self.kernel.paper_bound(expansion.scaled, half, sign * self.weights[output])

    def variance(
        self, expansion: Expansion, output: int, optional: bool = True
    ) -> VarianceEnclosure:
        """Enclosure of v_c (before scale and noise)."""
        assert self.precisions is not None, "built with variance=False"
        precision = self.precisions[output if len(self.precisions) > 1 else 0]
        cells, features = expansion.scaled.shape
        cheap = cells * features * len(self.posterior.points) ** 2 <= CHEAP_WORK
        derivatives = optional and (cheap or self.portfolio.wants("derivatives"))
        return variance_enclosure(self.kernel, expansion, precision, self.excess, derivatives)

    def report_derivatives(self, enclosure: VarianceEnclosure, relevant: bool) -> None:
        """A goal says whether the variance's slack mattered to it; decides for the next batches."""
        if enclosure.derivatives_used:
            self.portfolio.report("derivatives", enclosure.derivatives_gained and relevant)
