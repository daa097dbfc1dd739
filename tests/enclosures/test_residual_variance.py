"""Whole enclosures of the variance of exact processes with known noise: by the stored factor and
its distance from that noise, and by weights and residuals, against 200-bit arithmetic."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpcert.enclosures import Evaluation, LocalPosterior
from gpcert.enclosures.precision import LocalPrecision
from gpcert.enclosures.residual import ResidualPrecision
from gpcert.enclosures.square import (
    OperatorBounds,
    posterior_square,
    prior_square,
    second_square,
)
from gpcert.kernels import Matern, SquaredExponential
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import Backend
from gpcert.regions import Box, LinearMap
from gpcert.testing.arb_reference import ArbPosterior, kernel_reference
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import dot, exact
from tests.enclosures.enclosure_checks import (
    check_variance,
    displacement,
    evaluation_of,
    points_of,
    quadratic,
    refused_growth,
    squared,
)
from tests.enclosures.residual_cases import (
    FACTORS,
    TruePrecision,
    arb,
    at_most,
    precisely,
    some_factor,
)
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
    noises: tuple[float, ...] = NOISES,
) -> Posterior:
    """Of one output or two, which share their precision or not; points may be equal, or nearly."""
    d, N = draw(st.integers(1, max_dim)), draw(st.integers(1, max_points))
    kernel, m = draw(make_kernels(d)), draw(st.sampled_from([1, 1, 2]))
    noise, gap = draw(st.sampled_from(noises)), draw(st.sampled_from([None, None, 0.0, 1e-9, 1e-3]))
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
@given(case=exact_cases(kernels))
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


@pytest.mark.parametrize("noise", [0.1, 1e-4, 1e-8, 1e-12])
def test_on_torch(noise: float) -> None:
    pytest.importorskip("torch")
    posterior, box = regression(noise)
    for kernel in (posterior.kernel, Matern([0.4, 0.5], 2.5, 3.0)):
        case = Case(replace(posterior, kernel=kernel), box, np.random.default_rng(0))
        check_variance(case, evaluation=evaluation_of(case, backend="torch", keep=3))


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


def test_of_nothing_observed_the_prior_is_left() -> None:
    kernel, points = SquaredExponential(1.0, 2.0), [[0.0], [1.0]]
    noise = {"factor": np.zeros((2, 2)), "training_noise": np.inf}
    posterior = Posterior(kernel, points, [1.0, 2.0], **noise)
    case = Case(posterior, Box([0.0], [0.1]), np.random.default_rng(0))
    with np.errstate(invalid="ignore"):
        low, high = evaluation_of(case).variance(0).range
    prior = 2.0 / 2.0**posterior.unit.exponent
    np.testing.assert_allclose([low, high], prior, rtol=1e-4)


class Truth:
    """Of an output in unit form: P = I - Phi S Phi* between weighted features, at 500 bits."""

    def __init__(self, evaluation: Evaluation) -> None:
        self.evaluation, unit = evaluation, evaluation.local.unit
        self.reference, self.kernel = ArbPosterior(unit), unit.kernel
        assert unit.training_noise is not None
        self.precision = TruePrecision(self.reference.gram().tolist(), unit.training_noise[0])
        self.centers = evaluation.cells.points_full(evaluation.cells.center)

    def covariance(self, x: Any, y: Any) -> Any:
        """`<phi(x), P phi(y)>`."""
        first, second = self.reference.row(x), self.reference.row(y)
        prior = kernel_reference(self.kernel, exact(x), exact(y))
        return prior - self.precision.form(first, second)

    def step(self, b: int, x: np.ndarray) -> tuple[Any, Any, Any, Any]:
        """`d`, `omega`, `<e0, P (Psi - e0)>` and `<Psi - e0, P (Psi - e0)>` from centre b to x."""
        d = displacement(self.evaluation, b, x)
        omega = (arb(self.evaluation.local.kernel.weight_rate) * squared(d)).exp()
        c = self.centers[b]
        cross, own = omega * self.covariance(c, x), self.covariance(c, c)
        return d, omega, cross - own, omega**2 * self.covariance(x, x) - 2 * cross + own

    def off(self, weights: np.ndarray, b: int, x: np.ndarray, omega: Any) -> tuple[Any, Any]:
        """`<P e0 - p, Psi - e0>` and `r.S r` of float weights at the centre."""
        k, w = self.reference.row(self.centers[b]), exact(weights[b])
        change = [omega * u - v for u, v in zip(self.reference.row(x), k, strict=True)]
        step = [v - u for u, v in zip(self.precision.solved(k), w, strict=True)]
        r = self.precision.residual(w, k)
        return dot(step, change), self.precision.form(r, r)


@pytest.mark.parametrize("kind", ["prior", "posterior", "second", "pairs"])
@slow
@given(case=exact_cases(kernels, max_points=4, noises=(10.0, *NOISES)))
def test_squares_with_what_the_weights_are_off_by(kind: str, case: Case) -> None:
    """`<Psi - e0, P (Psi - e0)>`, and twice `<P e0 - p, Psi - e0>` besides: from above it may be
    more by what J is above v at the centre (Statement 6.13)."""
    evaluation = evaluation_of(case, variance=False, keep=3)
    local, expansion = evaluation.local, evaluation.expansion
    geometry, operator = expansion.geometry, OperatorBounds(0.0, 1.0)
    precision = ResidualPrecision.build(local.unit, 0, Backend())
    center, step = precision.center(local.kernel, expansion), local.kernel.squared_step(expansion)
    if kind == "prior":
        square = prior_square(step, geometry, operator, center)
    elif kind == "posterior":
        square = posterior_square(local.kernel, expansion, precision, step, operator, center)
    else:
        f = geometry.half.shape[1]
        some = tuple(k for k in range(f * (f + 1) // 2) if case.rng.random() < 0.5)
        degrees = local.kernel.second_degree(expansion, some if kind == "pairs" else None)
        assert degrees is not None
        square = second_square(degrees, geometry, precision, step, operator, center)
    zero = np.zeros(geometry.half.shape[1])
    points = points_of(evaluation, case.rng)
    with precisely(1200):  # what is zero at the centre is not compared with rounding
        truth = Truth(evaluation)
        for b, rows in enumerate(points):
            for x in rows:
                d, omega, _, term = truth.step(b, x)
                if float(squared(d)) > 200.0:
                    continue
                off, above = truth.off(center.weights, b, x, omega)
                lost, more = (float(e[b]) for e in (square.below_error, square.above_error))
                assert not np.isnan(lost)
                assert not np.isnan(more)
                if np.isfinite(lost):
                    low = 2 * quadratic(zero, square.below[b], d) - arb(lost)
                    at_most(low, term + 2 * off, "below")
                if np.isfinite(more):
                    high = 2 * quadratic(zero, square.above[b], d) + arb(more)
                    at_most(term + 2 * off - above, high, "above")


@slow
@given(case=exact_cases(kernels, max_points=4, noises=(10.0, *NOISES)), optional=st.booleans())
def test_parts_of_an_enclosure(case: Case, optional: bool) -> None:
    """Values at the centres alone, and the part that is linear in Psi - e0."""
    evaluation = evaluation_of(case, optional=optional, keep=3)
    local, found = evaluation.local, evaluation.variance(0)
    value, error = local.variance_center(evaluation.expansion, 0)
    points = points_of(evaluation, case.rng)
    with precisely(1200):  # what is zero at the centre is not compared with rounding
        truth = Truth(evaluation)
        for b, rows in enumerate(points):
            own = truth.covariance(truth.centers[b], truth.centers[b])
            at_most(abs(own - arb(float(value[b]))), float(error[b]), "v(c)")
            rise = arb(float(found.center_rise[b])) + arb(float(found.lost[b]))
            at_most(own - arb(float(found.center[b])), rise, "v(c), above")
            if not np.isfinite(found.middle[b]):
                continue
            for x in rows:
                d, _, linear, _ = truth.step(b, x)
                if float(squared(d)) > 200.0:
                    continue
                left = 2 * linear - dot(exact(found.below.gradient[b]), d)
                allowed = arb(float(found.middle[b])) + 2 * arb(float(found.lost[b]))
                at_most(abs(left), allowed, "middle")


@slow
@given(
    case=exact_cases(any_kernels, max_points=4, factors=("exact",), noises=(10.0, 1.0, 0.1, 0.01)),
    off=st.sampled_from([1e-3, 1e-4, 1e-5]),
    sign=st.sampled_from([1, -1]),
)
def test_the_distance_of_a_factor_counts(case: Case, off: float, sign: int) -> None:
    """Of one that is off in all directions, but not by enough to be left aside."""
    factor = case.posterior.factor * (1.0 + sign * off)
    moved = replace(case, posterior=replace(case.posterior, factor=factor))
    with refused_growth():
        evaluation = evaluation_of(moved, keep=3)
    with np.errstate(invalid="ignore"):
        check_variance(moved, evaluation=evaluation)
