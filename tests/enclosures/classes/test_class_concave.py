"""Bounds of one class probability by log-concavity never leave the values at points of the cell."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.arrays import to_numpy
from gpcert.enclosures.classes.log_concave import LogConcave
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import MultinomialProbit, Softmax
from gpcert.posterior import Posterior
from gpcert.regions import Box
from gpcert.testing.effort import crossed, examples
from tests.enclosures.classes.class_cases import (
    ClassCase,
    class_cases,
    evaluation_of,
    points_of_cells,
    random_classifier,
    random_evaluation,
    true_sums,
)

LIKELIHOODS = [Softmax(), MultinomialProbit()]


def concave_bounds(own, c):
    bounds = LogConcave(own.latent, own.layout, own.likelihood, own.place)
    jet = own._single(c)
    return to_numpy(bounds.lower(c, jet)), to_numpy(bounds.upper(c, jet))


def check_concave(case, keep=3):
    own = random_evaluation(case, keep=keep)
    if not own._by_moments:
        return
    points, m = points_of_cells(own.evaluation, case.rng), own.layout.classes
    for c in range(m):
        low, high = concave_bounds(own, c)
        assert np.all((low >= 0.0) & (high <= 1.0))
        for b, X in enumerate(points):
            if len(X):
                least, most = true_sums(case.posterior, X, np.eye(m)[c])
                assert low[b] <= most.min()
                assert high[b] >= least.max()


@settings(max_examples=examples(60))
@given(case=class_cases())
def test_random_cells(case):
    check_concave(case)


@settings(max_examples=examples(40, quick=4))
@given(
    seed=st.integers(0, 2**32 - 1),
    coupled=st.booleans(),
    probit=st.booleans(),
    m=st.sampled_from([2, 3, 4]),
    half=st.sampled_from([0.3, 1.0, 4.0]),
)
def test_large_cells(seed, coupled, probit, m, half):
    rng = np.random.default_rng(seed)
    likelihood = MultinomialProbit() if probit and m < 4 else Softmax()
    posterior = random_classifier(rng, coupled, m, likelihood, int(rng.integers(1, 4)))
    x = posterior.points[0] + 0.3 * rng.normal(size=posterior.dim)
    check_concave(ClassCase(posterior, Box(x - half, x + half), rng), keep=2)


def steady(likelihood, m, slope, coupled):
    """Means that move along a nearly straight line by `slope` a unit, constant covariance."""
    rng = np.random.default_rng(m)
    direction = rng.normal(size=m)
    weights = np.outer(slope * direction, [-1.0, 1.0]) * 1e2 / 4.0
    factor = np.zeros((m, 1, 2)) if coupled else None
    kernel = SquaredExponential(1e2, 4.0)
    offset = 0.3 * rng.normal(size=m)
    return Posterior(
        kernel,
        [[-1e2], [1e2]],
        weights,
        factor,
        offset=offset,
        likelihood=likelihood,
        coupled=coupled,
    )


@crossed(
    {"likelihood": LIKELIHOODS, "coupled": [True, False], "m": [2, 3], "slope": [0.5, 5.0, 20.0]}
)
def test_means_may_move_far(likelihood, coupled, m, slope):
    """Where only the means move, two classes lose nothing, and three little."""
    posterior = steady(likelihood, m, slope, coupled)
    own = evaluation_of(posterior, Box([-1.0], [1.0]))
    X = np.linspace(-1.0, 1.0, 201)[:, None]
    for c in range(m):
        low, high = concave_bounds(own, c)
        least, most = true_sums(posterior, X, np.eye(m)[c])
        assert low[0] <= most.min()
        assert high[0] >= least.max()
        if m == 2:
            assert low[0] >= least.min() - 2e-3


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_a_probability_near_one_or_zero(likelihood):
    kernel = SquaredExponential(1.0, 0.05)
    offset = [30.0, 0.0, -30.0]
    posterior = Posterior(
        kernel, [[0.0]], [[1.0], [0.0], [2.0]], offset=offset, likelihood=likelihood
    )
    own = evaluation_of(posterior, Box([-0.5], [0.5]))
    X = np.linspace(-0.5, 0.5, 21)[:, None]
    for c in range(3):
        low, high = concave_bounds(own, c)
        least, most = true_sums(posterior, X, np.eye(3)[c])
        assert 0.0 <= low[0] <= most.min()
        assert least.max() <= high[0] <= 1.0
    assert concave_bounds(own, 0)[0][0] > 0.99


def test_a_covariance_below_the_smallest_reference():
    """V = 0.0095 and V_0 = 0.01: the known shift between them is counted."""
    variance, noise = 0.00375, 1e-3
    posterior = Posterior(
        SquaredExponential(1.0, variance),
        [[0.0]],
        np.zeros((2, 1)),
        np.zeros((2, 1, 1)),
        offset=[0.0, 0.1],
        likelihood=MultinomialProbit(noise),
        coupled=True,
    )
    own = evaluation_of(posterior, Box([0.0], [0.0]))
    assert float(own.place.L[0, 0, 0]) > 0.0999
    for c in (0, 1):
        low, high = concave_bounds(own, c)
        least, most = true_sums(posterior, np.zeros((1, 1)), np.eye(2)[c])
        assert low[0] <= most[0]
        assert high[0] >= least[0]
        assert high[0] - low[0] < 0.2
