"""Enclosures shrink with the cell at the order that their docstrings claim."""

import numpy as np

from gpcert.enclosures import Evaluation, LocalPosterior
from gpcert.enclosures.goals import QuantityGoal
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Probit, SklearnLogistic
from gpcert.numerics.arrays import Backend
from gpcert.quantities import Mean, Probability, Variance
from gpcert.regions import Box, Cells
from gpcert.testing.arb_reference import regression_posterior
from gpcert.testing.effort import crossed, variants

HALVES = 0.2 * 0.5 ** np.arange(5)


def model(likelihood=None):
    rng = np.random.default_rng(3)
    points = rng.normal(size=(15, 2))
    options = {} if likelihood is None else {"likelihood": likelihood}
    kernel = SquaredExponential([0.8, 1.3], 2.0)
    return regression_posterior(kernel, points, rng.normal(size=(1, 15)), 0.1, **options)


def shrinking(posterior, center=(0.3, -0.2)):
    """One evaluation for each half-width about a fixed point, inside one region."""
    center = np.asarray(center)
    region = Box(center - 1.0, center + 1.0)
    local = LocalPosterior.build(posterior, region, Backend(), variance=True)
    half = HALVES[:, None]
    return Evaluation(local, Cells(region, center - half, center + half))


def exponent(slack):
    """Slope of log slack against log width, over the whole range."""
    slack = np.asarray(slack)
    assert np.all(slack > 0), slack
    return np.polyfit(np.log(HALVES), np.log(slack), 1)[0]


def gaps(goal, evaluation, value):
    """True minimum on a fine grid less the bound; the grid is at least as fine as the slack."""
    lower = goal.bound(evaluation, None).lower
    found = []
    for b, half in enumerate(HALVES):
        axis = np.linspace(-half, half, 401)
        grid = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2) + evaluation.cells.center[b]
        found.append(value(grid).min() - lower[b])
    return found


def test_mean_model_is_third_order():
    evaluation = shrinking(model())
    mean = evaluation.mean(0)
    assert exponent(mean.below.error) >= 2.8
    assert exponent(mean.above.error) >= 2.8


@variants("sign", [1, -1])
def test_mean_bound_is_at_least_second_order(sign):
    posterior = model()
    slack = gaps(
        QuantityGoal(Mean(0, sign)),
        shrinking(posterior),
        lambda X: sign * posterior.predict(X)[0][:, 0],
    )
    assert exponent(slack) >= 1.8


@variants("sign", [-1, 1])
def test_variance_bound_is_second_order(sign):
    posterior = model()
    slack = gaps(
        QuantityGoal(Variance(0, sign)),
        shrinking(posterior),
        lambda X: sign * posterior.predict(X)[1][:, 0],
    )
    assert exponent(slack) >= 1.8


@crossed({"likelihood": [Probit(), SklearnLogistic()], "sign": [1, -1]})
def test_probability_bound_is_second_order(likelihood, sign):
    posterior = model(likelihood)
    slack = gaps(
        QuantityGoal(Probability(likelihood, 0, sign)),
        shrinking(posterior),
        lambda X: sign * posterior.prediction(X)[:, 0],
    )
    assert exponent(slack) >= 1.8


def test_zeroth_remainder_is_first_order():
    evaluation = shrinking(model())
    reach = evaluation.local.kernel.zeroth_remainder(evaluation.expansion.geometry.rho2)
    assert 0.9 <= exponent(reach) <= 1.1


def test_variance_range_shrinks_to_a_point():
    evaluation = shrinking(model())
    low, high = evaluation.variance(0).range
    assert exponent(high - low) >= 0.9
