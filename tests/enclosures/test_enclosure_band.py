"""Standard deviations and credible bands: bounds against 200 bits, and the joint bound's gain."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.enclosures import Evaluation, LocalPosterior
from gpcert.enclosures.goals import QuantityGoal
from gpcert.kernels import SquaredExponential
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import Backend, to_numpy
from gpcert.paper.method import PaperMethod
from gpcert.quantities import Band, Mean, Std, Variance
from gpcert.regions import Box, Cells
from gpcert.testing.arb_reference import ArbPosterior, regression_posterior
from gpcert.testing.effort import crossed, examples
from tests.enclosures.enclosure_checks import arb, below, check_goal, evaluation_of
from tests.strategies import Case, any_kernels, cases, ill_conditioned

betas = st.sampled_from([2.0, -2.0, 0.3, -0.3, 1e-6, -1e-6, 50.0, 1e12, -1e12])


def check(case, beta, evaluation, make=lambda goal: [goal]):
    """Both goals of every output and sign, bounded as `make` says, against balls."""
    reference = ArbPosterior(case.posterior)
    for c in range(case.posterior.outputs):
        for sign in (1, -1):

            def band(x, c=c, sign=sign):
                std = reference.variance(x, c).sqrt()
                return sign * reference.mean(x, c) - arb(beta) * std

            def std(x, c=c, sign=sign):
                return sign * reference.variance(x, c).sqrt()

            for goal in make(QuantityGoal(Band(c, sign, beta))):
                check_goal(case, goal, band, evaluation)
            for goal in make(QuantityGoal(Std(c, sign))):
                check_goal(case, goal, std, evaluation)


@settings(max_examples=examples(25))
@given(case=cases(), beta=betas)
def test_bands_and_deviations(case, beta):
    check(case, beta, evaluation_of(case))


@settings(max_examples=examples(10))
@given(case=cases(make_kernels=any_kernels, max_points=5), beta=betas)
def test_bands_and_deviations_of_any_kernel(case, beta):
    check(case, beta, evaluation_of(case, splits=4, keep=3))


@settings(max_examples=examples(4, quick=2), deadline=None)
@given(case=cases(max_points=4, max_dim=2), beta=betas)
def test_bands_and_deviations_by_the_papers_intervals(case, beta):
    def both(goal):
        paper = PaperMethod("analytic")
        return [QuantityGoal(goal.quantity, paper, taylor) for taylor in (False, True)]

    check(case, beta, evaluation_of(case, splits=2, keep=2), both)


@pytest.mark.parametrize("name", ["noise", "duplicates", "weights"])
@pytest.mark.parametrize("size", [0.0, 1e-9, 0.02])
def test_bands_where_the_variance_vanishes(name, size):
    """Cells centred on a training point of a model without noise: the root is steepest there."""
    posterior = ill_conditioned(name)
    center = posterior.points[0]
    region = Box(center - size, center + size)
    case = Case(posterior, region, np.random.default_rng(0))
    check(case, 2.0, evaluation_of(case))


@crossed(
    {
        "scale": [1e-140, 1e-8, 1e120],
        "beta": [5e-324, 1e-318, 1e-290, 2.0, -2.0, 1e150, -1e150, sys.float_info.max],
        "weight": [0.0, 1.0],
    },
    quick=16,
)
def test_bands_of_extreme_sizes(scale, beta, weight):
    """What overflows or vanishes makes a bound weaker, never wrong, and warns nobody."""
    weights = [weight, -0.5 * weight]
    posterior = Posterior(
        SquaredExponential(1.0), [[0.0], [1.5]], weights, [[1.0, 0.0]], scale=scale
    )
    case = Case(posterior, Box([-0.3], [1e3]), np.random.default_rng(0))
    check(case, beta, evaluation_of(case))


LINES = st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1e-300, 1e300, -1e300])
RANGES = st.floats(0.0, 1e6) | st.sampled_from([0.0, 5e-324, 1e-290, 1e300])


@settings(max_examples=examples(200))
@given(
    alpha=LINES, slope=LINES, ends=st.tuples(RANGES, RANGES), beta=betas, share=st.floats(0.0, 1.0)
)
def test_the_minimum_along_a_line(alpha, slope, ends, beta, share):
    """Below `alpha + slope V - beta sqrt(V)` at the ends, at the vertex and in between."""
    low, high = min(ends), max(ends)
    with np.errstate(over="ignore", invalid="ignore"):
        (lower,) = Band(0, 1, beta).lowest(*(np.array([a]) for a in (alpha, slope, low, high)))
    inside = [low, high, low + share * (high - low)]
    if slope > 0:
        inside.append(min(max(0.25 * (beta / slope) ** 2 if slope > 1e-150 else high, low), high))
    for v in inside:
        if low <= v <= high:
            below(lower, arb(alpha) + arb(slope) * arb(v) - arb(beta) * arb(v).sqrt(), "line")


@settings(max_examples=examples(200))
@given(q=LINES, v=RANGES, beta=betas)
def test_an_attained_end_is_rounded_up(q, v, beta):
    """Not below `q - beta sqrt(v)`, where that is a float: a unit in the last place counts."""
    with np.errstate(over="ignore"):
        (found,) = Band(0, 1, beta).highest(*(np.array([a]) for a in (q, v, v)))
    true = arb(q) - arb(beta) * arb(v).sqrt()
    if abs(true) < 1e308:
        below(-found, -true, "attained end")


def test_the_minimum_along_a_line_is_exact():
    """Vertex inside the range (tangent), beyond either end, and a falling line."""
    band = Band(0, 1, 2.0)
    slope, low, high = np.array([1.0, 1.0, 0.1, -1.0]), np.array([0.5, 4.0, 1.0, 1.0]), 9.0
    found = band.lowest(np.zeros(4), slope, low, np.full(4, high))
    true = [-1.0, 4.0 - 4.0, 0.9 - 6.0, -9.0 - 6.0]
    assert np.all(found <= true)
    np.testing.assert_allclose(found, true, atol=1e-13)


def test_the_minimum_of_an_upper_bound_lies_at_an_end():
    """Concave in the variance, whatever the slope of the line."""
    slope, low, high = np.array([1.0, -1.0, -0.1, 0.0]), np.full(4, 1.0), np.full(4, 9.0)
    found = Band(0, 1, -2.0).lowest(np.zeros(4), slope, low, high)
    true = [1.0 + 2.0, -9.0 + 6.0, -0.1 + 2.0, 2.0]
    assert np.all(found <= true)
    np.testing.assert_allclose(found, true, atol=1e-13)


def test_a_negative_is_minus_the_bound():
    q, v = np.array([0.3, -1.2]), np.array([0.25, 4.0])
    for beta in (2.0, -0.5):
        band = Band(0, 1, beta)
        np.testing.assert_array_equal(band.negative.value(-q, v), -band.value(q, v))
        assert band.negative.negative == band


def model():
    rng = np.random.default_rng(3)
    points = rng.normal(size=(15, 2))
    kernel = SquaredExponential([0.8, 1.3], 2.0)
    return regression_posterior(kernel, points, rng.normal(size=(1, 15)), 0.1)


@pytest.mark.parametrize("beta", [2.0, -2.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_joint_bound_is_of_second_order_and_tighter_than_both_apart(sign, beta):
    posterior, center = model(), np.array([0.3, -0.2])
    region = Box(center - 1.0, center + 1.0)
    local = LocalPosterior.build(posterior, region, Backend(), variance=True)
    halves = 0.2 * 0.5 ** np.arange(5)
    evaluation = Evaluation(
        local, Cells(region, center - halves[:, None], center + halves[:, None])
    )
    lower = to_numpy(QuantityGoal(Band(0, sign, beta)).bound(evaluation, None).lower)
    slack = []
    for half, bound in zip(halves, lower, strict=True):
        axis = np.linspace(-half, half, 201)
        grid = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2) + center
        mean, variance = posterior.predict(grid)
        slack.append((sign * mean - beta * np.sqrt(variance)).min() - bound)
    assert np.all(np.asarray(slack) > 0)
    assert np.polyfit(np.log(halves), np.log(slack), 1)[0] >= 1.8
    mean = to_numpy(QuantityGoal(Mean(0, sign)).bound(evaluation, None).lower)
    side = 1 if beta < 0 else -1
    worst = side * to_numpy(QuantityGoal(Variance(0, side)).bound(evaluation, None).lower)
    apart = mean - beta * np.sqrt(worst)
    assert np.all(lower >= apart - 1e-12)
    if beta > 0:  # of an upper bound the parts apart are nearly as good here
        assert np.all((lower - apart)[2:] > 5.0 * np.asarray(slack)[2:])


def test_torch_has_the_same_bounds():
    pytest.importorskip("torch")
    region = Box([-0.5, -0.5], [0.6, 0.5])
    found = []
    for name in ("numpy", "torch"):
        case = Case(model(), region, np.random.default_rng(0))
        evaluation = evaluation_of(case, backend=name)
        goals = [
            QuantityGoal(Band(0, 1, 2.0)),
            QuantityGoal(Band(0, -1, 2.0)),
            QuantityGoal(Std(0, 1)),
            QuantityGoal(Std(0, -1)),
        ]
        found.append([to_numpy(goal.bound(evaluation, None).lower) for goal in goals])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)
