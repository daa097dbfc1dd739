"""`explain.effects`: intervals that contain the paper's Delta."""

import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import gpcert
from gpcert import explain
from gpcert.attacks.functions import plain_function
from gpcert.errors import InputError
from gpcert.explain.arguments import predictions
from gpcert.explain.sides import Intervals
from gpcert.kernels import ActiveDimensions, Constant, Linear, Matern, SquaredExponential
from gpcert.likelihoods import Probit
from gpcert.quantities import Mean, Probability
from gpcert.search import Budget, StopReason
from gpcert.search.branch_and_bound import solve_batch
from gpcert.testing.effort import THOROUGH


def sampled_delta(predict, x, j, radius, domain=(-np.inf, np.inf), count=4001):
    """Delta from a grid that holds both ends; the grid's own error is of second order."""
    sides = []
    for end in (min(x[j] + radius, domain[1]), max(x[j] - radius, domain[0])):
        at = np.tile(x, (count, 1))
        at[:, j] = np.linspace(x[j], end, count)
        values = predict(at)
        sides.append((values.max(0), values.min(0)))
    return (sides[0][0] - sides[1][0]) + (sides[0][1] - sides[1][1])


def check(found, model, X, radius, grid=2e-6, domain=(-np.inf, np.inf)):
    """`grid` is what the grid can miss of the four extremes, not a tolerance of the bounds."""
    for p, x in enumerate(np.atleast_2d(X)):
        for k, j in enumerate(found.features):
            real = sampled_delta(lambda Z: predictions(model, Z), x, j, radius, domain)
            assert np.all(found.lower[p, :, k] <= real + grid), (p, j)
            assert np.all(found.upper[p, :, k] >= real - grid), (p, j)


@pytest.mark.parametrize("radius", [0.01, 0.3, 2.0])
def test_intervals_contain_the_sampled_delta(binary, radius):
    X = np.random.default_rng(0).uniform(-1, 1, (3, 4))
    found = explain.effects(binary, X, radius, tol=1e-4)
    assert found.converged
    assert np.max(found.upper - found.lower) <= 1e-4
    check(found, binary, X, radius)


def test_domain_cuts_the_sides(binary):
    x = np.array([0.9, -0.9, 0.5, 0.0])
    found = explain.effects(binary, x, 0.5, domain=(-1.0, 1.0), tol=1e-4)
    check(found, binary, x, 0.5, domain=(-1.0, 1.0))


def test_regression_means_of_several_outputs():
    rng = np.random.default_rng(4)
    kernel = SquaredExponential([0.7, 1.3])
    Z = rng.uniform(-1, 1, (12, 2))
    model = gpcert.Posterior(kernel, Z, rng.normal(size=(2, 12)), offset=[5.0, -2.0], scale=3.0)
    x = np.array([0.2, -0.4])
    found = explain.effects(model, x, 0.6)
    assert found.outputs == (0, 1)
    assert found.quantity == "mean"
    assert np.max(found.upper - found.lower) <= 3e-3
    check(found, model, x, 0.6, grid=1e-5)


def test_all_classes(classes):
    x = np.array([0.2, 0.3])
    found = explain.effects(classes, x, 0.3, tol=4e-3 if THOROUGH else 0.04)
    assert found.outputs == ("a", "b", "c")
    check(found, classes, x, 0.3)
    assert found.of("b").lower.shape == (1, 1, 2)


def test_a_committee(committee):
    x = np.array([0.2, 0.3])
    found = explain.effects(committee, x, 0.3, tol=4e-3 if THOROUGH else 0.02)
    check(found, committee, x, 0.3)


@pytest.mark.parametrize("kernel", [Matern([0.9, 1.4], 2.5), SquaredExponential(1.0) + Linear(1.0)])
def test_other_kernels_are_asked_interval_by_interval(kernel):
    rng = np.random.default_rng(5)
    model = gpcert.Posterior(kernel, rng.uniform(-1, 1, (8, 2)), rng.normal(size=8))
    x = np.array([0.1, 0.2])
    found = explain.effects(model, x, 0.4, tol=1e-2)
    check(found, model, x, 0.4, grid=1e-5)


def test_both_ways_agree(binary):
    x = np.array([0.3, 0.1, -0.2, 0.0])
    words = {"domain": (-1, 0.5), "tol": 1e-3 if THOROUGH else 1e-2}
    lines = explain.effects(binary, x, 0.4, **words)
    regions = explain.effects(binary, x, 0.4, method="both", **words)
    assert np.all(lines.lower <= regions.upper)
    assert np.all(regions.lower <= lines.upper)


@pytest.mark.parametrize("kind", ["probability", "mean"])
def test_small_radii_give_the_gradient(binary, kind):
    x = np.array([[0.3, 0.1, -0.2, 0.4]])
    radius = 1e-3
    found = explain.effects(binary, x, radius, quantity=kind, tol=1e-7)
    function = (
        plain_function(binary, Probability(binary.likelihood, 0, 1))
        if kind == "probability"
        else plain_function(binary, Mean(0, 1))
    )
    slope = function(x)[1][0]
    assert np.allclose(found.values[0, -1] / (2 * radius), slope, atol=2e-3 * np.abs(slope).max())


def test_ignored_features_have_exactly_no_effect():
    kernel = ActiveDimensions(SquaredExponential(1.0), (0,)) + Constant(0.5)
    model = gpcert.Posterior(kernel, [[0.0, 0.0], [1.0, 3.0]], [1.0, -1.0])
    found = explain.effects(model, [0.4, 0.1], 0.5)
    assert found.lower[0, 0, 1] == 0.0 == found.upper[0, 0, 1]
    assert found.upper[0, 0, 0] < 0


def test_lengths_end_where_the_domain_does():
    """Outer and inner ones hold the real length, which fractions know, and differ by rounding."""
    rng = np.random.default_rng(0)
    X, radius = rng.uniform(0.0, 1.0, (40, 3)), np.array([0.1, 0.5, 2.0])
    X[0] = 1.0
    domain = np.zeros(4), np.array([1.0, 7.0, 1.0, 1.5])
    features = np.array([0, 2, 3])
    X = np.insert(X, 1, 0.5, axis=1)
    outer, inner = Intervals(X, features, radius, domain).lengths()
    for p, f, side in np.ndindex(outer.shape):
        x, j = Fraction(X[p, features[f]]), features[f]
        room = Fraction(domain[1][j]) - x if side == 0 else x - Fraction(domain[0][j])
        real = min(room, Fraction(radius[f]))
        assert Fraction(inner[p, f, side]) <= real <= Fraction(outer[p, f, side])
        assert outer[p, f, side] - inner[p, f, side] <= 1e-14


def test_a_feature_that_cannot_move_has_exactly_no_effect(binary):
    x = np.array([0.1, 0.2, 0.3, 0.4])
    ends = (np.array([0.1, -9, -9, -9]), np.array([0.1, 9, 9, 9]))
    found = explain.effects(binary, x, 0.5, domain=ends)
    assert found.lower[0, 0, 0] == 0.0 == found.upper[0, 0, 0]
    assert found.upper[0, 0, 1] != 0.0


def test_the_mean_contains_the_mean(binary):
    X = np.random.default_rng(6).uniform(-1, 1, (5, 4))
    found = explain.effects(binary, X, 0.3)
    average = found.mean()
    assert average.averaged == 5
    assert np.all(average.lower <= found.lower.mean(0))
    assert np.all(average.upper >= found.upper.mean(0))
    assert np.max(average.upper - average.lower) <= 1.01e-3


def test_jobs_do_not_change_the_answer(binary, monkeypatch):
    monkeypatch.setattr("gpcert.explain.sides.NUMBERS_PER_BATCH", 300)  # several chunks
    X = np.random.default_rng(6).uniform(-1, 1, (4, 4))
    tol = 1e-3 if THOROUGH else 1e-2
    one, two = (explain.effects(binary, X, 0.3, tol=tol, n_jobs=n) for n in (1, 2))
    assert np.array_equal(one.lower, two.lower)
    assert np.array_equal(one.upper, two.upper)


def test_the_first_of_two_classes_has_the_opposite_effects(binary):
    found = explain.effects(binary, np.zeros(4), 0.3)
    assert found.outputs == ("no", "yes")
    assert np.array_equal(found.of("no").lower, -found.of("yes").upper)
    assert found.interval(0) == found.interval(0, output="yes")


def test_bounds_are_valid_when_the_budget_ends(binary):
    X = np.random.default_rng(7).uniform(-1, 1, (2, 4))
    found = explain.effects(binary, X, 3.0, tol=1e-9, budget=Budget(boxes=20))
    assert not found.converged
    assert found.reason is StopReason.BOXES
    check(found, binary, X, 3.0, grid=1e-5)
    assert np.all(np.abs(found.values) <= 2.0)


@pytest.mark.parametrize("method", ["taylor", "both"])
@pytest.mark.parametrize("jobs", [1, 2])
def test_time_that_ends_leaves_valid_bounds(binary, method, jobs, monkeypatch):
    monkeypatch.setattr("gpcert.explain.sides.NUMBERS_PER_BATCH", 60)  # a chunk per line
    X = np.random.default_rng(7).uniform(-1, 1, (2, 4))
    start = time.perf_counter()
    found = explain.effects(binary, X, 3.0, tol=0.0, budget=1e-6, n_jobs=jobs, method=method)
    assert time.perf_counter() - start < 5.0
    assert found.reason is StopReason.TIME
    check(found, binary, X, 3.0, grid=1e-5)
    assert np.all(np.abs(found.lower) <= 2.0 + 1e-9)


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupt_ends_all_searches_and_leaves_valid_bounds(binary, jobs, monkeypatch):
    monkeypatch.setattr("gpcert.explain.sides.NUMBERS_PER_BATCH", 60)
    calls = []

    def interrupted(problem):
        calls.append(problem)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return solve_batch(problem)

    monkeypatch.setattr("gpcert.explain.sides.solve_batch", interrupted)
    X = np.random.default_rng(7).uniform(-1, 1, (2, 4))
    found = explain.effects(binary, X, 0.5, n_jobs=jobs)
    assert found.reason is StopReason.INTERRUPTED
    assert len(calls) <= 2 + jobs
    check(found, binary, X, 0.5)


def test_rows_of_a_data_frame_keep_their_labels(binary):
    pd = pytest.importorskip("pandas")
    named = with_names(binary)
    X = np.random.default_rng(7).uniform(-1, 1, (2, 4))
    frame = pd.DataFrame(X[:, ::-1], index=["Ann", "Bob"], columns=named.feature_names[::-1])
    found, plain = explain.effects(named, frame, 0.1), explain.effects(binary, X, 0.1)
    assert found.labels == ("Ann", "Bob")
    assert np.array_equal(found.lower, plain.lower)
    assert list(found.to_frame()["point"].unique()) == ["Ann", "Bob"]
    row = explain.effects(named, frame.iloc[1], 0.1)
    # another batch: the products differ in their last digits, and small effects lose some
    rounding = 1e-9 * np.abs(plain.lower[1]).max()
    np.testing.assert_allclose(row.lower[0], plain.lower[1], rtol=1e-9, atol=rounding)


def test_other_units_have_the_same_effects():
    rng = np.random.default_rng(3)
    Z, t = rng.normal(size=(5, 2)), rng.normal(size=5)
    A = np.linalg.inv(
        np.linalg.cholesky(SquaredExponential([1.0, 0.7], 1.3).value(Z, Z) + np.eye(5))
    )
    found = []
    for a, c in ((0, 0), (-1000, 0), (1000, 300), (0, -800)):
        model = gpcert.Posterior(
            SquaredExponential(np.ldexp([1.0, 0.7], c), np.ldexp(1.3, a)),
            np.ldexp(Z, c),
            np.ldexp(t, -a // 2),
            np.ldexp(A, -a // 2),
            scale=2.0 ** (-a // 2),
            likelihood=Probit(),
        )
        effects = explain.effects(model, np.ldexp([0.1, -0.2], c), np.ldexp(0.5, c))
        found.append((effects.lower, effects.upper, effects.boxes))
    for other in found[1:]:
        np.testing.assert_allclose(other[0], found[0][0], rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(other[1], found[0][1], rtol=1e-12, atol=1e-15)
        assert other[2] == found[0][2]


def test_tiny_means_have_effects_of_their_own_size():
    """Weights of 1e-200: intervals that hold in the units of the mean, not in those of one."""
    model = gpcert.Posterior(SquaredExponential(1.0), [[0.0, 0.0]], [1e-200])
    found = explain.effects(model, [0.5, 0.0], 0.25, tol=1e-205)
    assert found.converged
    assert -1e-200 < found.lower[0, 0, 0] <= found.upper[0, 0, 0] < 0


def with_names(binary):
    return replace(binary, feature_names=("age", "bmi", "c", "d"))


def test_radius_features_and_names(binary):
    named = with_names(binary)
    x = np.zeros(4)
    found = explain.effects(named, x, {"age": 0.1, "bmi": 0.2}, features=["age", "bmi"])
    assert found.feature_names == ("age", "bmi")
    assert found.radius.tolist() == [0.1, 0.2]
    again = explain.effects(named, x, {"bmi": 0.2, "age": 0.1})  # a dict names the features
    assert again.features == (0, 1)
    assert again.radius.tolist() == [0.1, 0.2]
    alone = explain.effects(named, x, 0.2, features=["bmi"])
    assert found.interval("bmi").lower <= alone.interval("bmi").upper
    assert alone.interval(1) == alone.interval("bmi")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"radius": -1.0}, "radius"),
        ({"radius": 0.0}, "positive"),
        ({"radius": [0.1, 0.2]}, "one per feature"),
        ({"radius": {"weight": 0.1}}, "fitted without names"),
        ({"radius": {0: -0.1}}, "radius"),
        ({"radius": 0.1, "features": ["weight"]}, "fitted without names"),
        ({"radius": 0.1, "tol": -1.0}, "tol"),
        ({"radius": 0.1, "n_jobs": 0}, "n_jobs"),
        ({"radius": 0.1, "progress": "yes"}, "progress"),
        ({"radius": 0.1, "quantity": "colour"}, "quantity"),
        ({"radius": 0.1, "method": "magic"}, "method"),
        ({"radius": np.nan}, "finite"),
        ({"radius": 0.1, "domain": (1.0, 2.0)}, "inside the domain"),
    ],
)
def test_bad_input_says_what_to_do(binary, options, message):
    with pytest.raises(InputError, match=message):
        explain.effects(binary, np.zeros(4), **options)


def test_a_regression_has_no_probability():
    model = gpcert.Posterior(SquaredExponential(1.0), [[0.0]], [1.0])
    with pytest.raises(InputError, match="no probability"):
        explain.effects(model, [0.0], 0.1, quantity="probability")
