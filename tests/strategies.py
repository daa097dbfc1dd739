"""Random posteriors, regions and cells for property tests (hypothesis), hard ones included.

Hypothesis draws the shape of a case and a seed; the numbers come from the seed, so that a failing
case is one line to repeat.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from gpcert import kernels as k
from gpcert.kernels import Kernel, SquaredExponential
from gpcert.likelihoods import Likelihood
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import to_numpy
from gpcert.regions import Ball, Box, Cells, Region
from gpcert.testing.arb_reference import regression_posterior

NORMS = (1.0, 2.0, 3.5, np.inf)
"""Exponents of balls: both polyhedral ones, the round one, and one without a closed form."""

seeds = st.integers(0, 2**32 - 1)

KernelStrategy = Callable[[int], st.SearchStrategy[Any]]
"""Kernels for a number of features."""


@dataclass(frozen=True, eq=False)
class Case:
    """A posterior, a region, and the generator for everything drawn later."""

    posterior: Posterior
    region: Region
    rng: np.random.Generator

    def __repr__(self) -> str:
        p = self.posterior
        return f"Case(N={len(p.points)}, d={p.dim}, m={p.outputs}, region={self.region!r})"


@st.composite
def kernels(draw: st.DrawFn, dim: int) -> SquaredExponential:
    """Squared exponentials: ARD length-scales 1e-3..1e3, variance 1e-2..1e4."""
    rng = np.random.default_rng(draw(seeds))
    spread = draw(st.sampled_from([0.0, 0.5, 3.0]))  # decades around 1
    lengths: Any = 10.0 ** rng.uniform(-spread, spread, dim)
    if draw(st.integers(0, 4)) == 0:
        lengths = float(lengths[0])
    return SquaredExponential(lengths, float(10.0 ** rng.uniform(-2.0, 4.0)))


@st.composite
def any_kernels(draw: st.DrawFn, dim: int) -> Kernel:
    """Trees of sums, products, factors and chosen inputs over every kind of leaf."""
    return draw(_tree(dim, draw(st.sampled_from([0, 0, 1, 2]))))


@st.composite
def _tree(draw: st.DrawFn, dim: int, depth: int) -> Kernel:
    if depth == 0:
        return draw(leaf_kernels(dim))
    kind = draw(st.sampled_from(["sum", "product", "scale", "active"]))
    if kind == "scale":
        return k.Scale(draw(_tree(dim, depth - 1)), draw(st.sampled_from([0.3, 7.0])))
    if kind == "active":
        kept = draw(st.permutations(range(dim)))[: draw(st.integers(1, dim))]
        return k.ActiveDimensions(draw(_tree(len(kept), depth - 1)), tuple(kept))
    parts = tuple(draw(_tree(dim, depth - 1)) for _ in range(2))
    return k.Sum(parts) if kind == "sum" else k.Product(parts)


@st.composite
def leaf_kernels(draw: st.DrawFn, dim: int) -> Kernel:
    """One leaf kernel with parameters of ordinary size."""
    rng = np.random.default_rng(draw(seeds))
    lengths = 10.0 ** rng.uniform(-0.5, 0.5, dim)
    variance = float(10.0 ** rng.uniform(-1.0, 1.0))
    choices: list[Callable[[], Kernel]] = [
        lambda: SquaredExponential(lengths, variance),
        lambda: k.RationalQuadratic(lengths, float(rng.uniform(0.3, 4.0)), variance),
        lambda: k.Matern(lengths, draw(st.sampled_from([0.5, 1.5, 2.5, 3.5])), variance),
        lambda: k.Periodic(rng.uniform(1.0, 4.0, dim), rng.uniform(0.7, 2.0, dim), variance),
        lambda: k.Cosine(rng.normal(size=dim), variance),
        lambda: k.Linear(rng.uniform(0.1, 1.0, dim), rng.normal(size=dim)),
        lambda: k.Polynomial(2, rng.uniform(0.1, 1.0, dim), 0.5),
        lambda: k.Constant(variance),
        lambda: k.SpectralMixture(
            rng.uniform(0.3, 2.0, 2), rng.normal(size=(2, dim)), rng.uniform(0.5, 2.0, (2, dim))
        ),
        lambda: k.GeneralisedSpectral(
            rng.uniform(0.3, 1.0, 1),
            0.1 * rng.normal(size=(1, dim)),
            rng.normal(size=(1, dim)),
            rng.normal(size=(1, dim)),
        ),
    ]
    return choices[draw(st.integers(0, len(choices) - 1))]()


def units(kernel: Kernel, d: int) -> np.ndarray:
    """(d,) lengths in which points and regions are drawn."""
    lengths = kernel.typical_lengths(d)
    return np.where(np.isfinite(lengths), lengths, 1.0)


@st.composite
def posteriors(
    draw: st.DrawFn,
    max_points: int = 8,
    max_dim: int = 3,
    likelihood: Likelihood | None = None,
    make_kernels: KernelStrategy = kernels,
) -> Posterior:
    """Regression-like models with a ridge of 1e-10..1, and arbitrary weights and factors; with and
    without a linear trend.

    With a likelihood the posterior has one output, whose mean is of the size of one.
    """
    d, N = draw(st.integers(1, max_dim)), draw(st.integers(1, max_points))
    kernel = draw(make_kernels(d))
    rng = np.random.default_rng(draw(seeds))
    lengths = units(kernel, d)
    points = lengths * rng.normal(size=(N, d)) * draw(st.sampled_from([0.3, 1.0, 3.0]))
    if draw(st.booleans()):
        points = points + lengths * draw(st.sampled_from([1.0, 30.0])) * rng.normal(size=d)
    if N > 1 and draw(st.integers(0, 3)) == 0:
        points[N // 2 :] = points[: N - N // 2]
    m = 1 if likelihood is not None else draw(st.integers(1, 3))
    options: dict[str, Any] = {}
    if likelihood is not None:
        options["likelihood"] = likelihood
    if draw(st.booleans()):
        options["offset"] = rng.normal(size=m) * draw(st.sampled_from([1.0, 1e3]))
        options["scale"] = 10.0 ** rng.uniform(-1.0, 1.0, m)
        options["noise"] = rng.random(m) * draw(st.sampled_from([0.0, 1.0]))
    if draw(st.integers(0, 2)) == 0:
        size = draw(st.sampled_from([1.0, 0.01] if likelihood else [1.0, 1e3, 1e-300]))
        options["slope"] = size * rng.normal(size=(m, d)) / lengths
    ridge = 10.0 ** draw(st.sampled_from([-10.0, -4.0, -1.0, 0.0]))
    if draw(st.integers(0, 2)):
        return regression_posterior(kernel, points, rng.normal(size=(m, N)), ridge, **options)
    variance = float(kernel.diagonal(points).max())
    size = draw(st.sampled_from([1.0, 1e8])) / variance
    factor = _loose_factor(draw(st.sampled_from([0.3, 1.0, 3.0])), m, N, variance, rng)
    return Posterior(kernel, points, size * rng.normal(size=(m, N)), factor, **options)


def _loose_factor(
    size: float, m: int, N: int, variance: float, rng: np.random.Generator
) -> np.ndarray:
    """A factor that no data belong to: `A K A^T <= I` fails where `size` is large."""
    rank = int(rng.integers(1, N + 1))
    shape = (m, rank, N) if rng.random() < 0.5 else (rank, N)
    return size / np.sqrt(variance * N * rank) * rng.normal(size=shape)


@st.composite
def regions_near(draw: st.DrawFn, posterior: Posterior) -> Region:
    """Boxes and balls near the points: zero, tiny (1e-12), ordinary and huge (1e3) widths."""
    rng = np.random.default_rng(draw(seeds))
    d = posterior.dim
    lengths = units(posterior.kernel, d)
    center = posterior.points[rng.integers(len(posterior.points))].copy()
    if draw(st.booleans()):
        center = center + lengths * rng.normal(size=d)
    size = draw(st.sampled_from([0.0, 1e-12, 0.03, 0.3, 1.0, 3.0, 1e3]))
    if draw(st.booleans()):
        low = center - size * lengths * rng.random(d)
        high = center + size * lengths * rng.random(d)
        fixed = rng.random(d) < draw(st.sampled_from([0.0, 0.3]))
        return Box(np.where(fixed, center, low), np.where(fixed, center, high))
    radius = size * float(np.min(lengths) if draw(st.booleans()) else np.max(lengths))
    features = None
    if draw(st.integers(0, 3)) == 0:
        features = np.flatnonzero(rng.random(d) < 0.7)
    domain = None
    if draw(st.booleans()):
        room = radius * rng.uniform(0.0, 1.5, (2, d))
        domain = (center - room[0], center + room[1])
    return Ball(center, radius, draw(st.sampled_from(NORMS)), features, domain)


@st.composite
def cases(
    draw: st.DrawFn,
    max_points: int = 8,
    max_dim: int = 3,
    likelihood: Likelihood | None = None,
    make_kernels: KernelStrategy = kernels,
) -> Case:
    """A posterior with a region near its points."""
    posterior = draw(posteriors(max_points, max_dim, likelihood, make_kernels))
    region = draw(regions_near(posterior))
    return Case(posterior, region, np.random.default_rng(draw(seeds)))


def ill_conditioned(
    name: str, likelihood: Likelihood | None = None, random_state: int = 0
) -> Posterior:
    """Models at the edge of float64: "noise", "duplicates", "short", "long" or "weights"."""
    rng = np.random.default_rng(random_state)
    options: dict[str, Any] = {} if likelihood is None else {"likelihood": likelihood}
    lengths, noise = np.array([1.0, 0.5]), 1e-10
    if name == "short":
        lengths = np.array([1e-3, 1e-3])
    if name == "long":
        lengths = np.array([1e3, 1e3])
    points = rng.random((10, 2))
    if name == "short":
        points = 0.5 + 2e-3 * rng.normal(size=(10, 2))
    if name == "duplicates":
        points[5:] = points[:5]
    kernel = SquaredExponential(lengths, 2.0)
    targets = rng.normal(size=(1, 10))
    posterior = regression_posterior(kernel, points, targets, noise, **options)
    if name == "weights":
        weights = 1e8 * rng.normal(size=10)
        weights[5:] = -weights[:5]
        points[5:] = points[:5] * (1.0 + 1e-9)  # pairs that cancel
        return Posterior(kernel, points, weights, posterior.factor, **options)
    return posterior


def random_cells(
    region: Region, rng: np.random.Generator, splits: int = 6, keep: int = 4, backend: Any = "numpy"
) -> Cells:
    """At most `keep` cells after some splits of the root along random axes; the root is among them.

    A cell that is proved to miss the region is left out.
    """
    root = region.root(backend)
    cells, f = root, len(region.free)
    for _ in range(splits if f else 0):
        cells = cells.split(rng.integers(f, size=len(cells)))
        cells = cells.take(np.flatnonzero(~to_numpy(cells.empty())))
        cells = cells.take(rng.permutation(len(cells))[: keep - 1])
    return Cells.concatenate([root, cells]) if f else root
