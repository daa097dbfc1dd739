"""Degrees three and more of the expansions: their sizes, and what they say about the norm."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.kernels import SquaredExponential
from gpcert.kernels.expansions import squared_exponential_table
from gpcert.model.posterior import Posterior
from gpcert.regions import Ball, Box
from gpcert.testing.arb_reference import ArbPosterior, regression_posterior
from gpcert.testing.effort import examples
from tests.enclosures.enclosure_checks import (
    arb,
    check_mean,
    check_variance,
    displacement,
    evaluation_of,
    points_of,
)
from tests.strategies import Case, cases

PATHS = ["cubic", "gram", "gram in pieces"]


@pytest.fixture(params=PATHS, autouse=True)
def path(request):
    """Both ways to form the higher terms; the second is meant for many features."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "cubic":
            patch.setattr(squared_exponential_table, "MAX_CUBIC_FEATURES", 0)
        if request.param == "gram in pieces":
            patch.setattr(squared_exponential_table, "MAX_GRAM_ENTRIES", 1)
        yield request.param


@settings(max_examples=examples(30))
@given(case=cases())
def test_models_stay_sound(case):
    check_mean(case, pointwise=False)
    check_variance(case)


@settings(max_examples=examples(40))
@given(case=cases())
def test_sizes_and_known_norm(case):
    check_sizes(case)


@pytest.mark.parametrize("far", [26.0, 36.0])
def test_squares_that_underflow(far):
    posterior = Posterior(SquaredExponential(1.0), [[0.0, 0.0]], [1.0])
    region = Box([far, -0.1], [far + 0.1, 0.2])
    check_sizes(Case(posterior, region, np.random.default_rng(0)))


def check_sizes(case):
    """`size >= |sum of degrees|` at points; `known <= sum |T_n|_F^2 / n!` exactly."""
    if len(case.region.free) == 0:
        return
    evaluation = evaluation_of(case, variance=False)
    local, expansion = evaluation.local.kernel, evaluation.expansion
    geometry = expansion.geometry
    weights = case.posterior.unit.weights[0]
    coefficients = expansion.K * weights
    moments = local.moments_and_cubes(coefficients, expansion.scaled)
    rounding = local.terms(expansion.K, weights)[1][:, 3]
    higher = local.higher_terms(
        coefficients, expansion.scaled, moments, (geometry.half, geometry.rho), rounding
    )
    assert higher is not None
    reference = ArbPosterior(case.posterior.unit)
    centers = evaluation.cells.points_full(evaluation.cells.center)
    points = points_of(evaluation, case.rng)
    for b, center in enumerate(centers):
        row = reference.row(center)
        a = [t * k for t, k in zip(reference.weights[0], row, strict=True)]
        u = [displacement(evaluation, b, z) for z in case.posterior.points]
        share = arb(0)
        for n in range(3, higher.order + 1):
            square = sum(
                (
                    a[i] * a[j] * sum((p * q for p, q in zip(u[i], u[j], strict=True)), arb(0)) ** n
                    for i in range(len(a))
                    for j in range(len(a))
                ),
                arb(0),
            )
            share += square / math.factorial(n)
        assert not arb(float(higher.known[b])) > share
        for x in points[b]:
            d = displacement(evaluation, b, x)
            total = arb(0)
            for weight, direction in zip(a, u, strict=True):
                along = sum((p * q for p, q in zip(direction, d, strict=True)), arb(0))
                for n in range(3, higher.order + 1):
                    total += weight * along**n / math.factorial(n)
            assert not abs(total) > arb(float(higher.size[b]))


def test_many_features_use_the_gram_matrix(path):
    """More than the cubic path takes, with the rest of the machinery unchanged."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(6, 16))
    posterior = regression_posterior(SquaredExponential(3.0), points, rng.normal(size=(1, 6)), 0.1)
    case = Case(posterior, Ball(points[0] + 0.1, 0.8, norm=2), rng)
    check_mean(case, pointwise=False)
    check_variance(case)


@settings(max_examples=examples(20))
@given(seed=st.integers(0, 2**31), far=st.sampled_from([0.0, 1e-3, 0.3]))
def test_features_along_which_points_hardly_differ(seed, far):
    """The box's own lengths: bounds hold, and the norm of higher degrees is not overstated."""
    rng = np.random.default_rng(seed)
    spread = np.where(np.arange(16) < 4, 1.0, far)
    points = rng.normal(size=(5, 16)) * spread
    posterior = regression_posterior(SquaredExponential(2.0), points, rng.normal(size=(1, 5)), 0.1)
    half = 0.3 * rng.uniform(0.0, 1.0, 16) ** 2
    case = Case(posterior, Box(points[0] - half, points[0] + half), rng)
    check_sizes(case)
    check_mean(case, pointwise=False)


def test_the_margin_of_an_image_costs_nothing(path):
    """Twelve features in which no point differs: without them the remainder is about the same."""
    if path == "gram in pieces":
        return
    rng = np.random.default_rng(1)
    inner = rng.normal(size=(8, 13))
    sizes = []
    for margin in (0, 12):
        points = np.concatenate([inner, np.zeros((8, margin))], axis=1)
        posterior = Posterior(SquaredExponential(2.0), points, rng.permutation(8) - 3.5)
        case = Case(posterior, Ball(points[0], 0.3, norm=math.inf), rng)
        evaluation = evaluation_of(case, variance=False)
        local, expansion = evaluation.local.kernel, evaluation.expansion
        coefficients = expansion.K * posterior.unit.weights[0]
        box = (expansion.geometry.half, expansion.geometry.rho)
        found = local.gram_degrees(coefficients, expansion.scaled, box, 3, np.zeros((1, 4)), 1)
        sizes.append(float(found.size[0]))
        rng = np.random.default_rng(1)
        rng.normal(size=(8, 13))
    assert sizes[1] <= 1.2 * sizes[0]
