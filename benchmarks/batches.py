"""Section `throughput`: one large batch of cells, outside any search.

Needs NumPy, SciPy and (for a GPU) torch; no scikit-learn.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

import numpy as np
from problems import exact
from report import Section

import gpcert
from gpcert.enclosures import Evaluation, LocalPosterior, Portfolio
from gpcert.enclosures.evaluation import BoundHistory
from gpcert.enclosures.goals import Goal, QuantityGoal
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Probit
from gpcert.numerics.arrays import Array, Backend, backend_from_name, running_on
from gpcert.quantities import Probability
from gpcert.regions import Cells

N, D = 1000, 11
REPEATS = 5
LINES = ("further slopes 0 1", "further slopes 0 -1")
OPTIONAL = ("derivatives", "pointwise", "pointwise variance", "paper", *LINES)
"""Optional bounds of the portfolio that are measured with and without."""

NEVER = 10**9
"""Batches of rest: the bound is not computed in the whole measurement."""


def random_posterior() -> gpcert.Posterior:
    """N points uniform in [0, 1]^D, length-scales in [0.5, 1], noise 0.01, smooth observations."""
    rng = np.random.default_rng(0)
    points = rng.uniform(0, 1, (N, D))
    kernel = SquaredExponential(rng.uniform(0.5, 1.0, D), 1.0)
    observations = np.sin(points @ rng.normal(size=D)) + 0.1 * rng.normal(size=N)
    weights, factor = exact(kernel, points, observations, 0.01)
    return gpcert.Posterior(kernel, points, weights, factor, likelihood=Probit())


def random_cells(region: gpcert.Box, size: int, backend: Backend) -> Cells:
    """Boxes inside the region with half-widths up to 0.05."""
    rng = np.random.default_rng(1)
    half = rng.uniform(0.01, 0.05, (size, D))
    center = rng.uniform(0.05, 0.95, (size, D))
    return Cells(region, backend.asarray(center - half), backend.asarray(center + half))


class Batch:
    """A posterior bound to the unit cube, and a batch of cells on a backend."""

    def __init__(self, size: int, backend: Backend) -> None:
        self.posterior = random_posterior()
        self.region = gpcert.Box(np.zeros(D), np.ones(D))
        self.backend = backend
        start = time.perf_counter()
        _ = self.posterior.norms, self.posterior.excess
        self.model_seconds = time.perf_counter() - start
        start = time.perf_counter()
        self.local = LocalPosterior.build(self.posterior, self.region, backend, variance=True)
        self.build_seconds = time.perf_counter() - start
        self.cells = random_cells(self.region, size, backend)
        self.portfolio = Portfolio()

    def goals(self, sides: int) -> list[Goal]:
        likelihood = self.posterior.likelihood
        return [QuantityGoal(Probability(likelihood, 0, sign)) for sign in (1, -1)[:sides]]

    def rest(self, names: tuple[str, ...]) -> None:
        """Leave optional bounds out of all batches to come; `()` computes all of them."""
        self.portfolio = Portfolio({(0, name): BoundHistory(resting=NEVER) for name in names})

    def bound(self, goals: list[Goal], local: LocalPosterior | None = None) -> list[Array]:
        """What a search does with a batch: enclosures of mean and variance, then the goals."""
        evaluation = Evaluation(local or self.local, self.cells, portfolio=self.portfolio)
        with running_on(self.backend):
            return [goal.bound(evaluation, None).lower for goal in goals]

    def wait(self) -> None:
        """Let a GPU finish: its calls return before their work is done."""
        if self.backend.device is not None and self.backend.device.startswith("cuda"):
            import torch

            torch.cuda.synchronize()

    def best_seconds(
        self,
        work: Callable[[], object],
        repeats: int = REPEATS,
        clock: Callable[[], float] = time.perf_counter,
    ) -> float:
        """The fastest of several runs after a warm-up."""
        work()
        self.wait()
        times = []
        for _ in range(repeats):
            start = clock()
            work()
            self.wait()
            times.append(clock() - start)
        return min(times)

    def matrix_product_seconds(self) -> float:
        """One product (B, N) x (N, N): what S k costs, and nothing else."""
        K = self.local.expand(self.cells).K
        S = self.backend.asarray(self.posterior.precision())
        return self.best_seconds(lambda: K @ S)


def throughput(backend_name: str, size: int) -> Section:
    """Boxes a second of mean, variance and probability, against the bare N x N product."""
    backend = backend_from_name(backend_name)
    section = Section("throughput", f"Boxes a second, N = {N}, d = {D}, backend {backend_name}")
    for resting in ((), LINES, ("derivatives", *LINES), OPTIONAL):
        cells = size if "derivatives" not in resting else 2 * size  # they fill the memory
        batch = Batch(cells, backend)
        product = batch.matrix_product_seconds()
        for sides in (1, 2):
            batch.rest(resting)
            bound = functools.partial(batch.bound, batch.goals(sides))
            seconds = batch.best_seconds(bound)
            section.add(
                cells=cells,
                without=", ".join(resting) or "nothing",
                sides=sides,
                seconds=seconds,
                boxes_a_second=cells / seconds,
                product_seconds=product,
                product_boxes_a_second=cells / product,
                share_of_limit=product / seconds,
            )
    section.notes = [
        "Mean, variance and one or both sides of the probability for random cells; the limit is "
        f"one product (B, {N}) x ({N}, {N}) in float64 on the same backend. Best of {REPEATS}. "
        "Batches without the covariance of derivatives are twice as large: they take less memory.",
    ]
    return section
