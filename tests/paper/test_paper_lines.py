"""The paper's linear bound of the mean: below both signs of the mean on every cell."""

import numpy as np
import pytest
from hypothesis import given, settings

from gpcert.kernels import SquaredExponential
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import to_numpy
from gpcert.regions import Box
from gpcert.testing.arb_reference import regression_posterior
from gpcert.testing.effort import examples
from tests.enclosures.enclosure_checks import below, evaluation_of, points_of, unit_mean
from tests.strategies import Case, cases


def check_paper(case):
    evaluation = evaluation_of(case, variance=False)
    points = points_of(evaluation, case.rng)
    for c in range(case.posterior.outputs):
        for sign in (1, -1):
            lower = to_numpy(evaluation.local.lines_mean(evaluation.expansion, c, sign))
            for b, rows in enumerate(points):
                for x in rows:
                    below(float(lower[b]), sign * unit_mean(evaluation, c)(x, b), "paper")


@settings(max_examples=examples(60))
@given(case=cases())
def test_below_the_mean(case):
    check_paper(case)


@pytest.mark.parametrize("free", [1, 3])
def test_many_fixed_features(free):
    """Distances in 300 fixed features carry more rounding than those in the free ones."""
    rng = np.random.default_rng(free)
    points = rng.normal(size=(4, 300))
    kernel = SquaredExponential(10.0)
    posterior = regression_posterior(kernel, points, rng.normal(size=(1, 4)), 0.1)
    low, high = points[0] + 0.01, points[0] + 0.01
    high[:free] += 1e-9
    check_paper(Case(posterior, Box(low, high), rng))


def test_exact_for_one_point_of_a_degenerate_cell():
    """A line touches its exponential: on a single point the bound is the value."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(5, 2))
    posterior = regression_posterior(SquaredExponential(1.0), points, rng.normal(size=(1, 5)), 0.1)
    x = np.array([0.3, -0.4])
    case = Case(posterior, Box(x - 1e-9, x + 1e-9), rng)
    evaluation = evaluation_of(case, variance=False, cells=case.region.root())
    lower = float(evaluation.local.lines_mean(evaluation.expansion, 0, 1)[0])
    lower = lower * evaluation.local.unit.mean_scale[0]
    assert lower == pytest.approx(posterior.predict(x[None])[0][0, 0], abs=1e-7)


@pytest.mark.parametrize("far", [25.0, 30.0, 36.0])
@pytest.mark.parametrize("weight", [1.0, -1.0])
def test_far_points(far, weight):
    """Values near 1e-160 and below, whose squares underflow: still on the right side."""
    posterior = Posterior(SquaredExponential([1.0, 1.0]), [[0.0, 0.0]], [weight])
    region = Box([0.0, far], [1.0, far + 8.0])  # the chord touches at the corner (0, far)
    for seed in range(5):
        check_paper(Case(posterior, region, np.random.default_rng(seed)))
