"""Linear trends: every enclosure of the mean against ball arithmetic, and exact extremes."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import gpcert
from gpcert.enclosures import Evaluation, LocalPosterior, local_model
from gpcert.enclosures.evaluation import evaluation_at
from gpcert.enclosures.goals import QuantityGoal, deviation_around
from gpcert.errors import InputError
from gpcert.kernels import Matern, SquaredExponential
from gpcert.likelihoods import Probit
from gpcert.model.posterior import Posterior
from gpcert.model.units import slope_exponent
from gpcert.numerics.arrays import Backend, to_numpy
from gpcert.numerics.rounding import exact_dot
from gpcert.paper.method import PaperMethod
from gpcert.quantities import Band, Mean, Probability
from gpcert.regions import Ball, Box, LinearMap
from gpcert.testing.arb_reference import ArbPosterior, assert_encloses
from gpcert.testing.effort import examples
from tests.enclosures.enclosure_checks import (
    arb,
    check_goal,
    check_mean,
    evaluation_of,
    refused_growth,
)
from tests.strategies import any_kernels, cases, kernels, units

SIZES = [0.0, 1e-300, 0.1, 1.0, 30.0, 1e8]


@st.composite
def trending(draw, likelihood=None, make_kernels=kernels, sizes=SIZES):
    """A case with a slope of any size in every output, now and then of some features only."""
    case = draw(cases(max_points=5, likelihood=likelihood, make_kernels=make_kernels))
    p = case.posterior
    shape = (p.outputs, p.points.shape[1])
    slope = draw(st.sampled_from(sizes)) * case.rng.normal(size=shape) / units(p.kernel, shape[1])
    slope[case.rng.random(shape) < draw(st.sampled_from([0.0, 0.5]))] = 0.0
    return replace(case, posterior=replace(p, slope=slope))


@settings(max_examples=examples(40), deadline=None)
@given(case=trending())
def test_models_enclose_mean_and_trend(case):
    check_mean(case)


@settings(max_examples=examples(40), deadline=None)
@given(case=trending(make_kernels=any_kernels))
def test_of_any_kernel(case):
    with refused_growth():
        check_mean(case)


@settings(max_examples=examples(30), deadline=None)
@given(case=trending(make_kernels=any_kernels), paper=st.booleans())
def test_least_means(case, paper):
    """Of all orders together, and of the paper's lines and the trend, minimised together."""
    with refused_growth():
        evaluation = evaluation_of(case, variance=False, splits=4, keep=3)
    reference = ArbPosterior(case.posterior)
    for sign in (1, -1):
        how = (PaperMethod("analytic"), False) if paper else ()
        goal = QuantityGoal(Mean(0, sign), *how)
        check_goal(case, goal, lambda x, s=sign: s * reference.mean(x, 0), evaluation)


@settings(max_examples=examples(20), deadline=None)
@given(case=trending(sizes=[0.1, 1.0, 30.0]), sign=st.sampled_from([1, -1]))
def test_bands_and_deviations(case, sign):
    evaluation, reference = evaluation_of(case, splits=4, keep=3), ArbPosterior(case.posterior)

    def band(x):
        return sign * reference.mean(x, 0) - arb(1.5) * reference.variance(x, 0).sqrt()

    check_goal(case, QuantityGoal(Band(0, sign, 1.5)), band, evaluation)
    x = case.region.sample(1, case.rng)[0]
    goal = QuantityGoal(deviation_around(case.posterior, x, np.inf))
    means = [reference.mean(x, c) for c in range(case.posterior.outputs)]

    def deviation(y):
        found = arb(0)
        for c, mean in enumerate(means):
            found = found.max(abs(reference.mean(y, c) - mean))
        return -found

    check_goal(case, goal, deviation, evaluation)


@settings(max_examples=examples(25), deadline=None)
@given(case=trending(likelihood=Probit(), sizes=[0.1, 1.0, 5.0]), sign=st.sampled_from([1, -1]))
def test_probabilities(case, sign):
    reference = ArbPosterior(case.posterior)
    goal = QuantityGoal(Probability(Probit(), 0, sign))
    check_goal(case, goal, lambda x: sign * reference.probability(x), evaluation_of(case))


@settings(max_examples=examples(60), deadline=None)
@given(
    case=trending(make_kernels=any_kernels, sizes=[*SIZES, 1e200]), far=st.sampled_from([0, 1e9])
)
def test_the_value_at_a_point_is_enclosed_and_sharp(case, far):
    """Far from zero, too, where the offset takes the trend back."""
    posterior = case.posterior
    x = posterior.points[0] + 0.1 * units(posterior.kernel, posterior.dim)
    moved = replace(posterior, points=posterior.points + far) if far else posterior
    taken = moved.scale * (moved.slope @ (x + far))
    moved = replace(moved, offset=moved.offset - taken)
    try:
        evaluation = evaluation_at(moved, x + far, variance=False)
    except InputError:  # polynomials there leave float64
        assert far
        reject()
    reference = ArbPosterior(moved)
    for c in range(moved.outputs):
        low, high = (float(end[0]) for end in evaluation.mean(c).output_at_center)
        assert_encloses(low, high, reference.mean(x + far, c))
        ends = evaluation_at(moved, x + far, variance=False).mean_at_center(c)
        assert_encloses(*(float(end[0]) for end in ends), reference.mean(x + far, c))
        if not far:
            K = np.abs(moved.kernel.value(x[None], moved.points)[0])
            size = moved.scale[c] * (np.abs(moved.weights[c]) @ K) + abs(low)
            assert high - low <= 1e-6 * size + 1e-13 * abs(float(taken[c])) + 1e-300


def linear(slope, offset, scale):
    """A posterior without weights: a linear function."""
    kernel, options = SquaredExponential(1.0), {"slope": slope, "offset": offset, "scale": scale}
    return Posterior(kernel, np.ones((1, len(slope))), [0.0], **options)


@settings(max_examples=examples(60), deadline=None)
@given(
    seed=st.integers(0, 2**32),
    size=st.sampled_from([1e-300, 1e-9, 1.0, 1e9, 1e250]),
    width=st.sampled_from([0.0, 1e-12, 1.0, 1e6]),
    method=st.sampled_from(["taylor", "paper"]),
)
def test_a_linear_function_has_exact_extremes(seed, size, width, method):
    """Over a box, to some roundings of its terms."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 5))
    slope, center = size * rng.normal(size=d), 10.0 ** rng.uniform(-3, 3) * rng.normal(size=d)
    low, high = center - width * rng.random(d), center + width * rng.random(d)
    offset, scale = size * float(rng.normal()), float(10.0 ** rng.uniform(-3, 3))
    ask = {"quantity": "mean", "tol": 1e-10, "method": method}
    ask["budget"] = gpcert.Budget(boxes=20)  # the first box has them; terms of 1e250 never end
    found = gpcert.prediction_range(linear(slope, offset, scale), Box(low, high), **ask)
    ends = (np.where(rises, high, low).tolist() for rises in (slope < 0, slope > 0))
    least, most = (Fraction(offset) + Fraction(scale) * exact_dot(slope.tolist(), x) for x in ends)
    reach = np.abs(slope) @ np.maximum(np.abs(low), np.abs(high))
    error = 1e-13 * (abs(offset) + scale * reach) + 1e-290
    assert Fraction(found.minimum.lower) <= least <= Fraction(found.minimum.lower + error)
    assert Fraction(found.maximum.upper) >= most >= Fraction(found.maximum.upper - error)


@pytest.mark.parametrize("norm", [1.0, 2.0, np.inf])
def test_over_a_ball(norm):
    slope = np.array([3.0, -4.0, 0.5])
    found = gpcert.prediction_range(
        linear(slope, 1.0, 2.0), Ball([1.0, 2.0, 3.0], 0.25, norm=norm), quantity="mean", tol=1e-9
    )
    dual = {1.0: np.inf, 2.0: 2, np.inf: 1}[norm]
    reach = 0.5 * np.linalg.norm(slope, dual)
    middle = 1.0 + 2.0 * (slope @ [1.0, 2.0, 3.0])
    assert found.minimum.lower == pytest.approx(middle - reach, rel=1e-12)
    assert found.maximum.upper == pytest.approx(middle + reach, rel=1e-12)
    assert found.minimum.lower <= middle - reach * (1.0 - 1e-15)


def test_behind_linear_features_the_slope_meets_them():
    features = LinearMap([[2.0, 0.0, 1.0]], [-1.0])
    p = Posterior(SquaredExponential(1.0), [[0.0]], [0.0], slope=[3.0], features=features)
    x = np.array([[1.0, 5.0, 2.0]])
    assert p.mean(x).tolist() == [[9.0]]
    found = gpcert.prediction_range(p, Ball(x[0], 0.5), quantity="mean", tol=1e-9)
    assert found.minimum.lower == pytest.approx(4.5, rel=1e-12)
    assert found.maximum.upper == pytest.approx(13.5, rel=1e-12)
    low, high = (float(e[0]) for e in evaluation_at(p, x[0], False).mean(0).output_at_center)
    assert low <= 9.0 <= high <= low + 1e-12


def test_a_constant_costs_nothing_far_from_zero():
    """A trend that the offset takes back at 1e7: bounds as near the region as at zero."""
    rng = np.random.default_rng(0)
    Z, t = rng.normal(size=(6, 2)), rng.normal(size=6)
    slope, far = np.array([2.0, -1.0]), np.array([2.0**23, 2.0**24])

    def width(shift):
        p = Posterior(SquaredExponential(1.0), Z + shift, t, slope=slope, offset=-slope @ shift)
        local = LocalPosterior.build(p, Box(shift - 0.3, shift + 0.3), Backend(), False)
        cells = Box(shift - 0.3, shift + 0.3).root()
        mean = gpcert.enclosures.Evaluation(local, cells).mean(0)
        return float(to_numpy(mean.below.error)[0])

    assert width(far) <= width(np.zeros(2)) + 1e-6


def test_huge_boxes_and_slopes_end_without_a_wrong_answer():
    def model(slope):
        return Posterior(Matern(1.0, nu=1.5), [[0.0], [1.0]], [1.0, -1.0], slope=[slope])

    for size in (1e30, 1e59):
        box = Box([-size], [size])
        few = gpcert.Budget(boxes=20)
        found = gpcert.prediction_range(model(1e200), box, quantity="mean", budget=few)
        assert found.minimum.lower <= -1e200 * size < found.minimum.lower * (1.0 - 1e-12)
        assert found.maximum.upper * (1.0 - 1e-12) < 1e200 * size <= found.maximum.upper
    with pytest.raises(InputError, match="trend leaves float64"):
        gpcert.prediction_range(model(1e290), Box([1e50], [2e50]), quantity="mean", budget=1)


def test_a_center_beyond_float64_says_nothing_of_its_box():
    """The mean is 2.55e308 in the middle of the first box and 8.5e307 at one of its corners."""
    model = Posterior(SquaredExponential(1e12), [[0.0, 0.0]], [1e290], slope=[[1e295, 1e295]])
    side = 1.7e13
    found = gpcert.bound_boxes(model, [[side / 2, 0.0], [0.0, 0.0]], [[side, side], [side, side]])
    assert found["mean"][0, 0, 0] <= 8.5e307
    assert found["mean"][0, 0, 1] == np.inf


def test_the_parts():
    assert exact_dot([], []) == 0
    assert exact_dot([5e-324], [5e-324]) == Fraction(5e-324) ** 2
    assert slope_exponent(np.zeros(2), np.ones((1, 2))) is None
    assert slope_exponent(np.array([4.0]), np.zeros((1, 1))) == 4


@pytest.mark.parametrize("weight", [1.0, -1.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_papers_lines_run_with_the_trend_or_against_it(weight, sign):
    """On one side of a bump its own slope has one sign: a trend of the other adds up wrongly."""
    model = Posterior(SquaredExponential(1.0), [[0.0]], [weight], slope=[2.0])
    region = Box([0.2], [1.2])
    evaluation = Evaluation(local_model(model, region, Backend(), False), region.root())
    goal = QuantityGoal(Mean(0, sign), PaperMethod("analytic"), taylor=False)
    lower = float(goal.bound(evaluation, None).lower[0])
    least = goal.function(model)(np.linspace(0.2, 1.2, 201)[:, None])[0].min()
    assert least - 0.3 <= lower <= least
