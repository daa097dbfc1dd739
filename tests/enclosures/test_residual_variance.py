"""Whole enclosures of the variance of exact processes with known noise: by the stored factor and
its distance from that noise, and by weights and residuals, against 200-bit arithmetic."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpcert.arrays import Backend
from gpcert.enclosures import Evaluation, LocalPosterior
from gpcert.enclosures.precision import LocalPrecision
from gpcert.enclosures.residual import ResidualPrecision
from gpcert.kernels import Matern, SquaredExponential
from gpcert.posterior import Posterior
from gpcert.regions import Box, LinearMap
from gpcert.testing.effort import examples
from tests.enclosures.enclosure_checks import check_variance, evaluation_of, refused_growth
from tests.enclosures.residual_cases import FACTORS, some_factor
from tests.strategies import (
    Case,
    KernelStrategy,
    any_kernels,
    kernels,
    random_cells,
    regions_near,
    seeds,
    units,
)

NOISES = (0.1, 1e-3, 1e-6, 1e-8, 1e-10, 1e-12)
"""Relative to the kernel's variance: of the first the factor serves, of the last residuals."""

slow = settings(
    max_examples=examples(150, quick=25),
    deadline=None,
    suppress_health_check=[HealthCheck.data_too_large],
)


@st.composite
def exact_posteriors(
    draw: st.DrawFn,
    make_kernels: KernelStrategy,
    max_points: int = 8,
    max_dim: int = 3,
    factors: tuple[str, ...] = FACTORS,
) -> Posterior:
    """Of one output or two, which share their precision or not; points may be equal, or nearly."""
    d, N = draw(st.integers(1, max_dim)), draw(st.integers(1, max_points))
    kernel, m = draw(make_kernels(d)), draw(st.sampled_from([1, 1, 2]))
    noise, gap = draw(st.sampled_from(NOISES)), draw(st.sampled_from([None, None, 0.0, 1e-9, 1e-3]))
    shared, few = draw(st.booleans()), draw(st.integers(0, 4)) == 0
    kind, spread = draw(st.sampled_from(factors)), draw(st.sampled_from([0.0, 0.0, 2.0]))
    rng = np.random.default_rng(draw(seeds))
    lengths = units(kernel, d)
    points = lengths * rng.normal(size=(N, d))
    if gap is not None:
        points[N // 2 :] = points[: N - N // 2] + gap * lengths * rng.normal(size=(N - N // 2, d))
    K = kernel.value(points, points)
    size = max(float(np.trace(K)) / N, 1e-3)
    count = 1 if shared else m
    sigma = noise * size * 10.0 ** rng.uniform(-spread, spread, (count, N))
    if few:
        sigma[:, 1:][rng.random((count, N - 1)) < 0.4] = np.inf
    factor = np.stack([some_factor(kind, K / size, row / size, rng) for row in sigma])
    return Posterior(
        kernel,
        points,
        rng.normal(size=(m, N)) / size,
        factor / np.sqrt(size),
        training_noise=sigma,
        scale=10.0 ** rng.uniform(-1.0, 1.0, m),
    )


@st.composite
def exact_cases(draw: st.DrawFn, make_kernels: KernelStrategy, **options: Any) -> Case:
    """With boxes and balls near the points, from a point to a thousand lengths."""
    posterior = draw(exact_posteriors(make_kernels, **options))
    return Case(posterior, draw(regions_near(posterior)), np.random.default_rng(draw(seeds)))


@st.composite
def mapped_cases(draw: st.DrawFn, make_kernels: KernelStrategy) -> Case:
    """Behind linear features: cells are seen through their images."""
    inner = draw(exact_posteriors(make_kernels, max_points=5))
    rng, q, d = np.random.default_rng(draw(seeds)), inner.dim, draw(st.integers(1, 3))
    lengths, x = units(inner.kernel, q), rng.normal(size=d)
    W = lengths[:, None] * rng.normal(size=(q, d))
    shift = inner.points[0] + rng.choice([0.0, 0.3]) * lengths * rng.normal(size=q) - W @ x
    half = draw(st.sampled_from([0.0, 1e-6, 0.03, 0.3, 3.0])) * rng.random(d)
    return Case(replace(inner, features=LinearMap(W, shift)), Box(x - half, x + half), rng)


@pytest.mark.parametrize("optional", [True, False])
@slow
@given(case=exact_cases(kernels))
def test_squared_exponentials(optional: bool, case: Case) -> None:
    """With the second degree, or with the first order alone."""
    check_variance(case, evaluation=evaluation_of(case, optional=optional, keep=3))


@slow
@given(case=exact_cases(any_kernels, max_points=5), optional=st.booleans())
def test_every_kernel(case: Case, optional: bool) -> None:
    with refused_growth():
        evaluation = evaluation_of(case, optional=optional, keep=3)
    with np.errstate(invalid="ignore"):  # as goals do
        check_variance(case, evaluation=evaluation)


@slow
@given(data=st.data(), make_kernels=st.sampled_from([kernels, any_kernels]))
def test_behind_linear_features(data: Any, make_kernels: KernelStrategy) -> None:
    case = data.draw(mapped_cases(make_kernels))
    with refused_growth():
        evaluation = evaluation_of(case, keep=3)
    with np.errstate(invalid="ignore"):
        check_variance(case, evaluation=evaluation)


@slow
@given(case=exact_cases(kernels, factors=("exact",)))
def test_derivatives_alone(case: Case) -> None:
    """The covariance of first derivatives, without that of second ones, which is nearly always the
    better; and points, where nothing is left of either."""
    local = LocalPosterior.build(case.posterior, case.region, Backend(), True)
    cells = random_cells(case.region, case.rng, 6, 3)
    for shrunk in (cells, type(cells)(case.region, cells.center, cells.center)):
        evaluation = Evaluation(local, shrunk, True)
        for c in range(case.posterior.outputs):
            options = local.variance_options(evaluation.expansion, c, True, lambda name: True)
            found = local.variance(evaluation.expansion, c, replace(options, second=False))
            evaluation.once(("variance", c), lambda found=found: found)
        check_variance(case, evaluation=evaluation)


def regression(noise: float, kind: str = "exact", N: int = 12) -> tuple[Posterior, Box]:
    rng = np.random.default_rng(N)
    kernel, points = SquaredExponential([0.4, 0.5], 3.0), rng.uniform(size=(N, 2))
    sigma = np.full(N, 3.0 * noise)
    K = kernel.value(points, points)
    factor = some_factor(kind, K / 3.0, sigma / 3.0, rng) / np.sqrt(3.0)
    box = Box([0.3, 0.4], [0.32, 0.45])
    return Posterior(kernel, points, rng.normal(size=N), factor, training_noise=sigma), box


@pytest.mark.parametrize(
    ("noise", "kind", "form"),
    [
        (0.1, "exact", LocalPrecision),
        (1e-8, "exact", ResidualPrecision),
        (0.1, "dense", ResidualPrecision),
        (0.1, "none", ResidualPrecision),
        (0.1, "wrong digits", ResidualPrecision),
    ],
)
def test_the_form_is_that_which_is_near_enough(noise: float, kind: str, form: Any) -> None:
    """A factor that is too far from the noise counts for nothing."""
    posterior, box = regression(noise, kind)
    case = Case(posterior, box, np.random.default_rng(0))
    evaluation = evaluation_of(case)
    (precision,) = evaluation.local.precisions
    assert type(precision) is form
    assert (precision.distance > 0.0) == (form is LocalPrecision)
    check_variance(case, evaluation=evaluation)


@pytest.mark.parametrize("kind", ["wrong digits", "wrong", "dense", "none"])
def test_useless_factors_prove_little_and_nothing_wrong(kind: str) -> None:
    """Any float weights are good for an upper bound: the stored factor is none of the model."""
    for noise in (1e-2, 1e-6, 1e-10):
        posterior, box = regression(noise, kind)
        check_variance(Case(posterior, box, np.random.default_rng(0)))


@pytest.mark.parametrize("size", [1e100, 1e150, 1e153])
@pytest.mark.parametrize("noise", [1e-3, 1e-10])
@pytest.mark.parametrize("kernel", [SquaredExponential(1.0), Matern(1.0, 1.5)])
def test_factors_at_the_end_of_float64(size: float, noise: float, kernel: Any) -> None:
    """Their weights overflow, or nearly: the bounds become trivial, not wrong."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(4, 1))
    A = size * np.tril(rng.normal(size=(4, 4)))
    posterior = Posterior(kernel, points, rng.normal(size=4), A, training_noise=noise)
    case = Case(posterior, Box([-0.1], [0.1]), rng)
    with np.errstate(all="ignore"):
        check_variance(case)


@pytest.mark.xfail(strict=True, reason="a factor at an infinite distance is taken nonetheless")
def test_of_nothing_observed_the_prior_is_left() -> None:
    kernel, points = SquaredExponential(1.0, 2.0), [[0.0], [1.0]]
    noise = {"factor": np.zeros((2, 2)), "training_noise": np.inf}
    posterior = Posterior(kernel, points, [1.0, 2.0], **noise)
    case = Case(posterior, Box([0.0], [0.1]), np.random.default_rng(0))
    with np.errstate(invalid="ignore"):
        low, high = evaluation_of(case).variance(0).range
    prior = 2.0 / 2.0**posterior.unit.exponent
    np.testing.assert_allclose([low, high], prior, rtol=1e-9)
