"""Bounds of sums of class probabilities never leave the true values of the cell's points."""

import numpy as np
import pytest
from hypothesis import given, settings

from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import MultinomialProbit, Softmax
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import to_numpy
from gpcert.regions import Box
from gpcert.testing.effort import THOROUGH, crossed, examples
from gpcert.testing.node_case import cell_points
from tests.enclosures.classes.class_cases import (
    class_cases,
    evaluation_of,
    random_evaluation,
    sums_of,
    true_sums,
)

LIKELIHOODS = [Softmax(), MultinomialProbit()]


SHARES = (0.05, 0.5, 0.9)


def at_levels(own, weights, lower, upper, shares):
    """The bounds where levels between the worst one and its value would be enough."""
    worst = int(np.argmin(lower))
    for share in shares:
        own.evaluation.enough = float(lower[worst] + share * (upper[worst] - lower[worst]))
        found = to_numpy(own.lower(weights, None).lower)
        assert np.all(found >= lower)
        yield found
    own.evaluation.enough = None


def check_bounds(case, optional=True):
    posterior, rng = case.posterior, case.rng
    own = random_evaluation(case, optional)
    cells = own.evaluation.cells
    centers = cells.points_full(cells.center)
    for number, weights in enumerate(sums_of(own.layout.classes, rng)):
        shares = SHARES if THOROUGH else (SHARES[number % len(SHARES)],)
        found = own.lower(weights, None)
        lower, upper = to_numpy(found.lower), to_numpy(own.upper_at_center(weights))
        assert not np.isnan(lower).any()
        assert not np.isnan(upper).any()
        moves = to_numpy(own.latent.geometry.unscaled(found.point))
        raised = [lower, *at_levels(own, weights, lower, upper, shares)]
        for b in range(len(cells)):
            suggested = (to_numpy(cells.center)[b] + moves[b])[None]
            points = cell_points(cells, b, rng, suggested)
            if len(points):
                least = true_sums(posterior, points, weights)[1].min()
                assert all(bound[b] <= least for bound in raised)
        assert np.all(upper >= true_sums(posterior, centers, weights)[0])


@settings(max_examples=examples(60, quick=4))
@given(case=class_cases(coupled=True))
def test_coupled_classes(case):
    check_bounds(case)


@settings(max_examples=examples(60, quick=4))
@given(case=class_cases(coupled=False))
def test_independent_classes(case):
    check_bounds(case)


@settings(max_examples=examples(20))
@given(case=class_cases())
def test_without_the_optional_bounds(case):
    check_bounds(case, optional=False)


@settings(max_examples=examples(30, quick=4))
@given(case=class_cases())
def test_classes_add_up_to_one(case):
    own = random_evaluation(case)
    units = [tuple(map(float, row)) for row in np.eye(case.posterior.outputs)]
    minus = [tuple(-x for x in unit) for unit in units]
    lows = sum(to_numpy(own.lower(unit, None).lower) for unit in units)
    highs = -sum(to_numpy(own.lower(unit, None).lower) for unit in minus)
    at_center = sum(to_numpy(own.upper_at_center(unit)) for unit in units)
    assert np.all(lows <= 1.0)
    assert np.all(highs >= 1.0)
    assert np.all(at_center >= 1.0)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("weights", [(1.0, 0.0, 0.0), (-1.0, 0.0, 0.0), (1.0, -1.0, 0.0)])
def test_center_where_the_mean_bends(likelihood, weights):
    """The reference lies beside the centre's mean there: the step back is of first order."""
    kernel = SquaredExponential(1.0, 1.0)
    posterior = Posterior(kernel, [[2.0]], [[9.0], [0.0], [-9.0]], likelihood=likelihood)
    own = evaluation_of(posterior, Box([-0.2], [0.2]))
    low, high = true_sums(posterior, np.zeros((1, 1)), weights)
    assert float(own.upper_at_center(weights)[0]) >= low[0]
    assert -float(own.upper_at_center(tuple(-w for w in weights))[0]) <= high[0]


def nearly_linear(likelihood, score, variance=100.0):
    """Five independent classes: `f_1 - f_0` is linear with slope 10 standard deviations a unit
    (to 1e-6), `score` of them at 0, with constant variance; the others never win."""
    deviation = float(np.sqrt(2.0 * (variance + likelihood.noise)))
    weights = np.outer([0.0, 1.0, 0.0, 0.0, 0.0], [-1e3, 1e3]) * deviation / variance
    offset = deviation * np.array([0.0, score, -99.0, -99.0, -99.0])
    kernel = SquaredExponential(100.0, variance)
    return Posterior(kernel, [[-100.0], [100.0]], weights, offset=offset, likelihood=likelihood)


@crossed(
    {
        "likelihood": LIKELIHOODS,
        "score": [-2.5, 1.73, -0.5, 0.0, 0.5, -1.73, 2.5],
        "radius": [0.01, 0.05],
    },
    quick=3,
)
def test_many_classes_with_a_third_order_rest(likelihood, score, radius):
    """Only the rest beyond second order is left: bounds for one probability are not enough for a
    difference of two, nor those of a small number for the negative of a probability."""
    posterior = nearly_linear(likelihood, score)
    own = evaluation_of(posterior, Box([-radius], [radius]))
    X = np.linspace(-radius, radius, 41)[:, None]
    for row in ((0, 1), (0, -1), (1, -1), (-1, 1)):
        weights = (*map(float, row), 0.0, 0.0, 0.0)
        assert float(own.lower(weights, None).lower[0]) <= true_sums(posterior, X, weights)[1].min()


@crossed({"likelihood": LIKELIHOODS, "offset": [0.0, 1e3, 1e6, 1e9]})
def test_rounding_of_large_offsets_is_counted(likelihood, offset):
    """At x = z the outputs are offset + g exactly, and a common offset changes no probability."""
    g = np.array([[0.3], [0.1], [-0.2]])
    posterior = Posterior(
        SquaredExponential(1.0, 1.0), [[0.7]], g, offset=offset, likelihood=likelihood
    )
    own = evaluation_of(posterior, Box([0.7], [0.7]))
    for weights in ((1.0, 0.0, -1.0), (-1.0, 0.0, 1.0), (1.0, 0.0, 0.0), (0.0, -1.0, 0.0)):
        found = likelihood.independent_moments(g.T, np.ones((1, 3)), np.asarray(weights))
        value, error = float(found.value[0]), float(found.errors[0, 0])
        assert float(own.lower(weights, None).lower[0]) <= value + error
        assert float(own.upper_at_center(weights)[0]) >= value - error


@crossed({"likelihood": LIKELIHOODS, "m": [3, 5], "wide": [0, 1], "scale": [1e10, 1e31]})
def test_one_class_with_nearly_all_of_the_variance(likelihood, m, wide, scale):
    """The covariance of differences from a class of 1e20 times the others' variance is, in float64,
    that of one variable; the integrals do not take variances of 1e62."""
    rng = np.random.default_rng(m)
    kernel, Z = SquaredExponential(1.0, 2.0), np.array([[-1.0], [0.7]])
    A = np.linalg.inv(np.linalg.cholesky(kernel.value(Z, Z) + 0.1 * np.eye(2)))
    scales = np.where(np.arange(m) == wide, scale, 1.0)
    posterior = Posterior(
        kernel, Z, rng.normal(size=(m, 2)), np.stack([A] * m), scale=scales, likelihood=likelihood
    )
    own = evaluation_of(posterior, Box([-0.1], [0.1]))
    for weights in sums_of(m, rng)[:3:2]:
        lower, upper = (
            float(x[0]) for x in (own.lower(weights, None).lower, own.upper_at_center(weights))
        )
        assert min(weights) <= lower <= upper <= max(weights)
        if scale <= 1e10:
            truth = true_sums(posterior, np.array([[-0.1], [0.0], [0.1]]), weights)
            assert lower <= truth[1].min()
            assert upper >= truth[0][1]
