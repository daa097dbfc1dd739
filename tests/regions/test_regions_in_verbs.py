"""Polytopes, discrete regions and unions in the verbs, against enumeration and dense sampling."""

import itertools

import numpy as np
import pytest

import gpcert
from gpcert.certificates import Status
from gpcert.enclosures.goals import QuantityGoal
from gpcert.errors import InputError
from gpcert.kernels import Matern, SquaredExponential
from gpcert.quantities import Mean
from gpcert.regions import Ball, Box, Discrete, Polytope, Union
from gpcert.search import Problem, solve
from gpcert.testing.arb_reference import ArbPosterior, regression_posterior
from tests.regions.constrained_strategies import random_polytope

SUM = ([1, 1, 1], "==", 1.0)


def model(seed=0, kernel=None):
    """A regression in three features."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 1.0, (25, 3))
    kernel = kernel or SquaredExponential([0.4, 0.6, 0.8])
    inverse = np.linalg.inv(np.linalg.cholesky(kernel.value(X, X) + 0.01 * np.eye(25)))
    targets = np.sin(5 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2
    return gpcert.Posterior(kernel, X, inverse.T @ (inverse @ targets), inverse)


REGIONS = {
    "simplex": Polytope(([0] * 3, [1] * 3), SUM),
    "capped": Polytope(([0] * 3, [0.6] * 3), SUM, ([1, -1, 0], ">=", 0.1)),
    "budget": Polytope(([0] * 3, [1] * 3), ([1, 2, 3], "<=", 2.0)),
    "redundant": Polytope(([0] * 3, [1] * 3), ([1, 2, 3], "<=", 7.0)),
    "integers": Discrete(Box([-2.5, 0, 0], [2.5, 1, 1]), integers=[0]),
    "levels": Discrete(Box([0] * 3, [1] * 3), values={0: [0.1, 0.4, 0.8], 2: [0.0, 0.5]}),
    "ball of integers": Discrete(Ball([0.5, 0.5, 0.5], 1.9, 2), integers=[0, 1, 2]),
    "mixed": Discrete(Polytope(([0] * 3, [1, 2, 2]), ([1, 1, 1], "==", 2.5)), integers=[1, 2]),
    "union": Union(Box([0] * 3, [0.2] * 3), Ball([0.8] * 3, 0.2, 2)),
    "union of slices": Union(Box([0] * 3, [0, 1, 1]), Box([1, 0, 0], [1, 1, 1])),
}


@pytest.mark.parametrize("name", REGIONS)
@pytest.mark.parametrize("quantity", ["mean", "std"])
def test_ranges_hold_all_samples_and_are_attained(name, quantity):
    region, posterior = REGIONS[name], model()
    rng = gpcert.prediction_range(posterior, region, tol=2e-3, quantity=quantity)
    X = np.concatenate([region.sample(1500, 0), region.linear_minimizer(np.eye(3) - 0.5)])
    mean, variance = posterior.predict(X)
    values = mean[:, 0] if quantity == "mean" else np.sqrt(variance[:, 0])
    assert rng.converged
    assert rng.minimum.lower <= values.min()
    assert values.max() <= rng.maximum.upper
    assert rng.minimum.upper - rng.minimum.lower <= 2e-3
    assert region.contains(np.stack([rng.argmin, rng.argmax])).all()


@pytest.mark.parametrize("seed", range(4))
def test_ranges_hold_in_200_bits(seed):
    """At members of random regions, thin ones included, and where the ends are attained."""
    rng = np.random.default_rng(seed)
    posterior = regression_posterior(
        Matern([0.7, 1.5, 1.0], 1.5), rng.normal(size=(8, 3)), rng.normal(size=8), 0.05
    )
    reference = ArbPosterior(posterior)
    both = Union(random_polytope(rng, 3), Ball([2.0] * 3, 0.5, 2))
    for region in (random_polytope(rng, 3), both):
        found = gpcert.prediction_range(
            posterior, region, quantity="mean", tol=0.05, budget=gpcert.Budget(boxes=300)
        )
        members = [*region.sample(4, rng), *region.linear_minimizer(rng.normal(size=(2, 3)))]
        for x in members:
            mean = reference.mean(x)
            assert not mean < found.minimum.lower
            assert not mean > found.maximum.upper
        assert not reference.mean(found.argmin) > found.minimum.upper
        assert not reference.mean(found.argmax) < found.maximum.lower


@pytest.mark.parametrize("seed", range(6))
def test_integers_are_as_by_enumeration(seed):
    rng = np.random.default_rng(seed)
    a = rng.integers(-2, 3, 3)
    posterior = model(seed, Matern([1.0, 2.0, 1.5], 2.5))
    constrained = Polytope((np.zeros(3), [3.0, 3.0, 2.0]), (a, "<=", float(rng.integers(0, 4))))
    region = Discrete(constrained, [0, 1, 2])
    grid = np.array(list(itertools.product(range(4), range(4), range(3))), dtype=float)
    points = grid[constrained.contains(grid)]
    means = posterior.predict(points)[0][:, 0]
    found = gpcert.prediction_range(posterior, region, tol=1e-6, quantity="mean")
    np.testing.assert_allclose(
        [found.minimum.lower, found.maximum.upper], [means.min(), means.max()], atol=2e-6
    )
    assert points.tolist().count(found.argmin.tolist()) == 1
    level = float(np.sort(means)[len(means) // 2])
    x = points[np.argmax(means)]
    cert = gpcert.certify(posterior, x, region=region, threshold=level)
    assert cert.status is (Status.ROBUST if means.min() > level else Status.NOT_ROBUST)
    if cert.status is Status.NOT_ROBUST:
        assert region.contains(cert.counterexample)


def test_a_constraint_decides_a_verdict():
    """The box holds a counter-example that the simplex does not."""
    posterior, x = model(), np.array([0.2, 0.3, 0.5])
    box = gpcert.prediction_range(posterior, Box([0] * 3, [1] * 3), quantity="mean")
    mixture = gpcert.prediction_range(posterior, REGIONS["simplex"], quantity="mean")
    level = 0.5 * (box.minimum.upper + mixture.minimum.lower)
    assert gpcert.certify(posterior, x, region=REGIONS["simplex"], threshold=level).robust
    refuted = gpcert.certify(posterior, x, region=Box([0] * 3, [1] * 3), threshold=level)
    assert refuted.status is Status.NOT_ROBUST
    table = gpcert.certify_many(
        posterior, [x, x[[1, 0, 2]]], region=REGIONS["simplex"], threshold=level
    )
    assert [row.status for row in table] == [Status.ROBUST] * 2


def test_many_regions_in_one_table():
    posterior, regions = model(), [REGIONS["simplex"], Box([0] * 3, [1] * 3), REGIONS["union"]]
    table = gpcert.prediction_range_many(posterior, regions, quantity="mean", tol=0.01)
    alone = [
        gpcert.prediction_range(posterior, each, quantity="mean", tol=0.01) for each in regions
    ]
    for row, one in zip(table, alone, strict=True):
        assert row.converged
        assert max(row.minimum.lower, one.minimum.lower) <= min(
            row.minimum.upper, one.minimum.upper
        )


def test_classes_and_committees_take_them():
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF

    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (40, 3))
    y = np.digitize(X[:, 0] + 0.3 * X[:, 1], [0.4, 0.9])
    classifier = GaussianProcessClassifier(RBF(0.5), optimizer=None).fit(X, y)
    band = ([1, 0.3, 0], "in", (0.55, 0.7))
    region = Polytope(([0] * 3, [1] * 3), band, ([0, 0, 1], "<=", 0.5))
    x = region.center
    cert = gpcert.certify(classifier, x, region=region)
    assert cert.status is Status.ROBUST
    assert cert.decision == 1
    mixed = gpcert.certify(classifier, [0.2, 0.3, 0.5], region=REGIONS["simplex"])
    assert mixed.status is Status.NOT_ROBUST
    assert REGIONS["simplex"].contains(mixed.counterexample)
    attacked = gpcert.attack(classifier, [[0.2, 0.3, 0.5]], region=REGIONS["simplex"])
    assert REGIONS["simplex"].contains(attacked[0].point)


def test_names_are_those_of_the_model():
    pandas = pytest.importorskip("pandas")
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF

    rng = np.random.default_rng(0)
    data = pandas.DataFrame(rng.uniform(0, 1, (30, 2)), columns=["water", "sand"])
    fitted = GaussianProcessRegressor(RBF(0.5), alpha=1e-3, optimizer=None)
    fitted.fit(data, 2 * data["water"] + data["sand"])
    swapped = {"sand": (0.0, 1.0), "water": (0.2, 0.8)}
    region = Polytope(swapped, ({"sand": 1, "water": 1}, "==", 1.0))
    found = gpcert.prediction_range(fitted, region, quantity="mean", tol=1e-3)
    np.testing.assert_allclose(found.argmax, [0.8, 0.2], atol=0.02)
    other = Polytope({"sand": (0, 1), "salt": (0, 1)}, ({"salt": 1}, "<=", 0.5))
    with pytest.raises(InputError, match="expected the features"):
        gpcert.prediction_range(fitted, other)


def test_records_save_and_load(tmp_path):
    for name, region in REGIONS.items():
        found = gpcert.prediction_range(model(), region, quantity="mean", tol=0.05)
        found.save(tmp_path / "range.json")
        again = gpcert.load(tmp_path / "range.json")
        assert again.region == region.describe(), name
        assert str(region) in str(again)


def test_explanations_say_which_regions_they_take():
    from gpcert import explain

    with pytest.raises(InputError, match="expected a Box or a Ball, got a polytope"):
        explain.sufficient(model(), [0.2, 0.3, 0.5], region=REGIONS["simplex"], threshold=-5.0)


def test_recorded_leaves_cover_the_bounds_of_a_polytope():
    """Leaves are halves of halves of the bounding box, whatever cells were shrunk to."""
    region, posterior = REGIONS["capped"], model()
    question = Problem(posterior, region, [QuantityGoal(Mean(0, 1))], tol=1e-3, record=True)
    result = solve(question)
    leaves = result.leaves
    volume = np.prod(region.upper - region.lower)
    np.testing.assert_allclose(np.prod(leaves.high - leaves.low, axis=1).sum(), volume)
    assert leaves.lower.min() >= result.goals[0].lower
    assert np.isinf(leaves.lower).any()  # outside
    X = region.sample(200, 0)
    means = posterior.predict(X)[0][:, 0]
    for low, high, lower in zip(leaves.low, leaves.high, leaves.lower[:, 0], strict=True):
        inside = np.all((low <= X) & (high >= X), axis=1)
        assert np.all(means[inside] >= lower - 1e-12)
