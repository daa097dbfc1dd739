"""Proved optima: bounds hold at every point, whatever the quantity, the kernel and the domain."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

import gpcert
from gpcert.errors import InputError
from gpcert.kernels import Matern, SquaredExponential
from gpcert.models import GPRegressor
from gpcert.search import StopReason
from gpcert.testing.effort import examples

QUANTITIES = ("mean", "std", "variance", "ucb", "lcb")
IMPROVEMENTS = ("ei", "log_ei", "pi", "log_pi")


def regression(seed, d=2, N=15, kernel=None, noise=1e-4):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(N, d))
    y = np.sin(7.0 * X @ rng.normal(size=d)) + 0.3 * rng.normal(size=N)
    kernel = SquaredExponential(np.full(d, 0.25)) if kernel is None else kernel
    return GPRegressor(kernel, noise=noise, max_epochs=0).fit(X, y), X


def values(model, quantity, X, beta=2.0):
    """By the posterior's own prediction in plain floating point."""
    mean, variance = (part[:, 0] for part in gpcert.as_posterior(model).predict(X))
    std = np.sqrt(np.maximum(variance, 0.0))
    table = {"mean": mean, "variance": variance, "std": std}
    return {**table, "ucb": mean + beta * std, "lcb": mean - beta * std}[quantity]


@settings(max_examples=examples(60, quick=12))
@given(
    seed=st.integers(0, 2**31),
    d=st.integers(1, 3),
    rough=st.booleans(),
    side=st.sampled_from(["maximum", "minimum"]),
    quantity=st.sampled_from(QUANTITIES),
)
def test_no_point_of_the_domain_is_better_than_the_bound(seed, d, rough, side, quantity):
    kernel = Matern(np.full(d, 0.4), nu=2.5) if rough else None
    model, _ = regression(seed, d, kernel=kernel)
    verb = gpcert.maximize if side == "maximum" else gpcert.minimize
    best = verb(model, [(-0.2, 1.1)] * d, quantity, tol=0.05, budget=gpcert.Budget(boxes=400))
    sign = 1.0 if side == "maximum" else -1.0
    X = np.random.default_rng(seed).uniform(-0.2, 1.1, (2000, d))
    sampled = sign * values(model, quantity, X)
    assert sampled.max() <= sign * best.bound + 1e-9
    attained = sign * float(values(model, quantity, best.x[None])[0])
    assert sign * best.value <= attained + 1e-9
    assert np.all((best.x >= -0.2) & (best.x <= 1.1))
    assert 0.0 <= sign * (best.bound - best.value) <= best.gap
    if best.converged:
        assert sampled.max() <= sign * best.value + 0.05 + 1e-9  # no sample beats the point
    assert best.side == side


def test_a_peak_between_the_observations_is_not_missed():
    """A weight on a far and narrow bump: 10^5 random points see nothing of it."""
    centers = np.array([[0.2] * 4, [0.7123, 0.1234, 0.9012, 0.3456]])
    model = gpcert.Posterior(SquaredExponential(0.01), centers, weights=[1.0, 1.5])
    best = gpcert.maximize(model, gpcert.Box([0.0] * 4, [1.0] * 4), tol=0.01)
    assert best.converged
    assert best.bound >= 1.5
    assert np.allclose(best.x, centers[1], atol=0.01)
    seen = values(model, "mean", np.random.default_rng(0).uniform(size=(100_000, 4)))
    assert seen.max() < 0.5


def test_the_value_is_proved_at_x_and_the_range_agrees():
    model, _ = regression(3)
    cube = gpcert.Box([0.0, 0.0], [1.0, 1.0])
    high = gpcert.maximize(model, cube, "ucb", beta=1.5, tol=1e-3)
    low = gpcert.minimize(model, cube, "ucb", beta=1.5, tol=1e-3)
    both = gpcert.prediction_range(model, cube, quantity="ucb", beta=1.5, tol=1e-3)
    assert high.value <= both.maximum.upper
    assert both.maximum.lower <= high.bound
    assert low.bound <= both.minimum.upper
    assert both.minimum.lower <= low.value
    assert high.beta == 1.5
    assert high.quantity == "ucb"
    at = gpcert.prediction_range(model, gpcert.Box(high.x, high.x), quantity="ucb", beta=1.5)
    assert at.maximum.upper >= high.value


SQUARE = [(0.0, 1.0), (0.25, 0.5)]


@pytest.mark.parametrize(
    "bounds",
    [
        SQUARE,
        tuple(SQUARE),
        np.array(SQUARE).T,
        gpcert.Box([0.0, 0.25], [1.0, 0.5]),
        {0: (0.0, 1.0), 1: [0.25, 0.5]},
    ],
    ids=["pairs", "tuple", "corners", "box", "numbers"],
)
def test_every_kind_of_bounds_is_the_same_domain(bounds):
    model, _ = regression(1)
    best = gpcert.maximize(model, bounds, tol=0.01)
    assert best.region == gpcert.Box([0.0, 0.25], [1.0, 0.5]).describe()


def test_names_fix_and_name_the_point():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(np.random.default_rng(0).uniform(size=(12, 2)), columns=["dose", "age"])
    model = GPRegressor(SquaredExponential([0.5, 0.5]), max_epochs=0).fit(X, X["dose"] - X["age"])
    best = gpcert.maximize(model, {"age": (0.0, 1.0), "dose": (0.0, 1.0)}, fixed={"age": 0.5})
    assert best.point["age"] == 0.5
    assert set(best.point) == {"age", "dose"}
    assert "dose" in str(best)
    one = gpcert.maximize(model, {"age": 0.5, "dose": (0.0, 1.0)})
    assert one.region == best.region


@pytest.mark.parametrize(
    ("bounds", "told"),
    [
        ([(0.0, 1.0)], "2 pairs"),
        (np.zeros((3, 2)), "shape"),
        ([(1.0, 0.0), (0.0, 1.0)], "low <= high"),
        ([(0.0, np.inf), (0.0, 1.0)], "finite"),
        ({0: (0.0, 1.0)}, "every feature"),
        ({"dose": (0.0, 1.0)}, "dose"),
        ("nothing", "bounds"),
    ],
)
def test_bounds_that_are_none(bounds, told):
    model, _ = regression(1)
    with pytest.raises(InputError, match=told):
        gpcert.maximize(model, bounds)


def test_other_errors_say_what_to_do():
    model, _ = regression(1)
    with pytest.raises(InputError, match="band has two ends"):
        gpcert.maximize(model, SQUARE, "band")
    with pytest.raises(InputError, match="within its bounds"):
        gpcert.maximize(model, SQUARE, fixed={0: 2.0})
    with pytest.raises(InputError, match="shape of its own"):
        gpcert.maximize(model, gpcert.Ball([0.5, 0.5], 0.1), fixed={0: 0.5})
    with pytest.raises(InputError, match="beta"):
        gpcert.maximize(model, SQUARE, "mean", beta=2.0)
    with pytest.raises(InputError, match="point of the domain"):
        gpcert.regret_bound(model, SQUARE, observed=[[5.0, 5.0]])
    with pytest.raises(InputError, match="side"):
        gpcert.regret_bound(model, SQUARE, side="largest")
    with pytest.raises(InputError, match="without names"):
        _ = gpcert.maximize(model, SQUARE).point


def test_a_spent_budget_leaves_bounds_that_hold():
    model, _ = regression(5, d=6, N=40)
    best = gpcert.maximize(model, [(0.0, 1.0)] * 6, "ucb", tol=1e-9, budget=gpcert.Budget(boxes=9))
    assert best.reason is StopReason.BOXES
    assert not best.converged
    X = np.random.default_rng(0).uniform(size=(3000, 6))
    assert values(model, "ucb", X).max() <= best.bound


@settings(max_examples=examples(30, quick=8))
@given(seed=st.integers(0, 2**31), side=st.sampled_from(["maximum", "minimum"]))
def test_the_regret_is_bounded(seed, side):
    """Max UCB over a dense sample less the best LCB at an observed point, never above."""
    model, X = regression(seed)
    found = gpcert.regret_bound(model, [(0.0, 1.0)] * 2, side=side, beta=1.7, tol=0.02)
    sign = 1.0 if side == "maximum" else -1.0
    places = np.concatenate([X, np.random.default_rng(seed).uniform(size=(3000, 2))])
    outward = sign * values(model, "ucb" if sign > 0 else "lcb", places, 1.7)
    inward = sign * values(model, "lcb" if sign > 0 else "ucb", X, 1.7)
    assert found.bound >= outward.max() - inward.max() - 1e-9
    assert found.bound <= outward.max() - inward.max() + 0.3
    given = gpcert.regret_bound(model, [(0.0, 1.0)] * 2, X[:3], side=side, beta=1.7, tol=0.02)
    assert given.bound >= outward.max() - inward[:3].max() - 1e-9


def test_a_recommendation_has_the_best_mean():
    model, _ = regression(8)
    chosen = gpcert.recommend(model, SQUARE, tol=1e-3)
    best = gpcert.maximize(model, SQUARE, tol=1e-3)
    assert abs(float(values(model, "mean", chosen.x[None])[0]) - best.value) <= 2e-3
    assert chosen.bound >= 0.0
    assert chosen.domain >= chosen.observed


def test_kept_boxes_surround_every_optimum():
    """Two bumps of one height: both are kept, and nothing outside is as good."""
    centers = np.array([[0.2, 0.3], [0.8, 0.6]])
    model = gpcert.Posterior(SquaredExponential(0.1), centers, weights=[1.0, 1.0])
    best = gpcert.maximize(model, [(0.0, 1.0)] * 2, tol=1e-4, keep="all")
    assert len(gpcert.maximize(model, [(0.0, 1.0)] * 2).kept) == 0

    def inside(X):
        low, high = best.kept[:, 0], best.kept[:, 1]
        return np.any(np.all((X[:, None] >= low) & (X[:, None] <= high), axis=2), axis=1)

    assert inside(centers).all()
    X = np.random.default_rng(0).uniform(size=(20_000, 2))
    outside = X[~inside(X)]
    assert len(outside) > 15_000
    assert values(model, "mean", outside).max() < best.value
    assert "boxes that may hold" in str(best)
    with pytest.raises(InputError, match="keep"):
        gpcert.maximize(model, [(0.0, 1.0)] * 2, keep="some")


@settings(max_examples=examples(40, quick=8))
@given(seed=st.integers(0, 2**31), quantity=st.sampled_from(IMPROVEMENTS), larger=st.booleans())
def test_improvements_over_a_domain(seed, quantity, larger):
    """Expected improvement and its probability, against their formulas at random points."""
    model, _ = regression(seed)
    best = gpcert.maximize(
        model, SQUARE, quantity, maximize=larger, tol=0.02, budget=gpcert.Budget(boxes=600)
    )
    X = np.random.default_rng(seed).uniform(size=(2000, 2)) * [1.0, 0.25] + [0.0, 0.25]
    mean, std = values(model, "mean", X), values(model, "std", X)
    u = (1.0 if larger else -1.0) * (mean - best.best_f)
    z = u / std
    logs = quantity.startswith("log")
    if quantity.endswith("pi"):
        sampled = norm.logcdf(z) if logs else norm.cdf(z)
    else:
        ei = u * norm.cdf(z) + std * norm.pdf(z)
        sampled = np.log(np.maximum(ei, 1e-300)) if logs else ei
    assert sampled.max() <= best.bound + 1e-6
    if best.converged:
        assert sampled.max() <= best.value + 0.02 + 1e-6


def test_whole_numbers_and_constraints_are_branched_on():
    """Against enumeration: three of the inputs are whole numbers or values, one constraint."""
    model, _ = regression(4, d=3, N=25)
    box = gpcert.Box([0.0, 0.0, 0.0], [1.0, 3.0, 1.0])
    allowed = gpcert.Discrete(box, integers=[1], values={0: [0.0, 0.3, 1.0], 2: [0.1, 0.7]})
    grid = np.array([[a, b, c] for a in (0.0, 0.3, 1.0) for b in range(4) for c in (0.1, 0.7)])
    best = gpcert.maximize(model, allowed, "ucb", tol=1e-9)
    table = values(model, "ucb", grid)
    assert np.allclose(best.x, grid[int(table.argmax())])
    assert best.value - 1e-9 <= table.max() <= best.bound + 1e-9
    simplex = gpcert.Polytope(
        ([0.0] * 3, [1.0] * 3), ({0: 1.0, 1: 1.0, 2: 1.0}, "==", 1.0), ({0: 1.0}, ">=", 0.2)
    )
    mixed = gpcert.minimize(model, simplex, tol=1e-3)
    sample = np.random.default_rng(0).dirichlet(np.ones(3), 5000)
    sample = sample[sample[:, 0] >= 0.2]
    assert values(model, "mean", sample).min() >= mixed.bound - 1e-9
    assert abs(mixed.x.sum() - 1.0) < 1e-12
    assert values(model, "mean", sample).min() >= mixed.value - 1e-2
    with pytest.raises(InputError, match="region is empty"):
        gpcert.Polytope(([0.0] * 3, [1.0] * 3), ({0: 1.0, 1: 1.0, 2: 1.0}, ">=", 3.5))
