"""By how much a mean changes with its inputs: `difference_range`."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import gpcert
from gpcert.errors import InputError
from gpcert.kernels import (
    ActiveDimensions,
    Constant,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    SquaredExponential,
)
from gpcert.regions import LinearMap

pd = pytest.importorskip("pandas")

KERNELS = [
    SquaredExponential([0.7, 1.5, 1.0]),
    Matern([1.0, 2.0, 0.8], 2.5),
    Matern(1.0, 0.5),
    RationalQuadratic(1.0, 0.8) + Constant(0.3),
    Linear(1.0) + SquaredExponential(1.0),
    Polynomial(2, 0.3, 0.5) * ActiveDimensions(Matern(1.0, 1.5), (0, 2)),
    Periodic(1.0, 3.0),
]


def model_of(kernel, seed=0, scale=3.0, slope=None):
    rng = np.random.default_rng(seed)
    Z, t = rng.normal(size=(12, 3)), rng.normal(size=12)
    return gpcert.Posterior(kernel, Z, t, scale=scale, offset=1.0, slope=slope)


def inside(model, found, first, second, X, tol):
    """The range holds all differences, and both its ends are attained to within a tolerance."""
    apart = (model.mean(second(X)) - model.mean(first(X)))[:, 0]
    slack = 1e-9 * (1.0 + np.abs(apart).max())
    assert found.converged
    assert found.minimum.lower - slack <= apart.min()
    assert apart.max() <= found.maximum.upper + slack
    for point, value in ((found.argmin, found.minimum.upper), (found.argmax, found.maximum.lower)):
        x = point[None]
        at = (model.mean(second(x)) - model.mean(first(x)))[0, 0]
        assert abs(at - value) <= 1e-5  # a rough kernel's features move by the root of a step
    assert found.minimum.upper - found.minimum.lower <= tol * 1.001


BOX = gpcert.Box([-0.5, -0.3, 0.0], [0.5, 0.7, 0.0])
X = np.random.default_rng(1).uniform(BOX.lower, BOX.upper, (500, 3))


def with_value(j, value):
    def move(X):
        X = X.copy()
        X[:, j] = value
        return X

    return move


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
def test_values_and_steps(kernel):
    model = model_of(kernel)
    found = gpcert.difference_range(model, BOX, {2: (0.1, 0.7)}, tol=0.05)
    inside(model, found, with_value(2, 0.1), with_value(2, 0.7), X, 0.05)
    assert found.quantity == "difference"
    step = np.array([0.3, 0.0, -0.1])
    found = gpcert.difference_range(model, BOX, {0: 0.3, 2: -0.1}, tol=0.05)
    inside(model, found, lambda X: X, lambda X: X + step, X, 0.05)


@pytest.mark.parametrize("kernel", [KERNELS[0], KERNELS[1], KERNELS[4]], ids=lambda k: k.name)
def test_two_affine_maps(kernel):
    model = model_of(kernel, slope=[0.5, -1.0, 0.25])
    first = LinearMap(np.eye(3), [0.1, 0.0, 0.0])
    turned = LinearMap([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.5, 0.5, 1.0]], [0.0, 0.2, 0.0])
    same = LinearMap(turned.matrix, [0.3, 0.0, 1.0])
    for maps in ((first, turned), (turned, same)):
        found = gpcert.difference_range(model, BOX, maps, tol=0.05)
        inside(model, found, *maps, X, 0.05)


def test_one_function_is_far_sharper_than_two_ranges():
    """A small step: both means vary by ten times what the change does."""
    model = model_of(KERNELS[0])
    found = gpcert.difference_range(model, BOX, {0: 0.01}, budget=gpcert.Budget(boxes=1))
    apart = gpcert.prediction_range(model, BOX, budget=gpcert.Budget(boxes=1))
    width = found.maximum.upper - found.minimum.lower
    assert width < 0.05 * (apart.maximum.upper - apart.minimum.lower)
    general = LinearMap(np.eye(3)), LinearMap(np.diag([1.01, 1.0, 1.0]))
    small = gpcert.Box(0.1 * BOX.lower, 0.1 * BOX.upper)
    found = gpcert.difference_range(model, small, general, budget=gpcert.Budget(boxes=1))
    apart = gpcert.prediction_range(model, small, budget=gpcert.Budget(boxes=1))
    width = found.maximum.upper - found.minimum.lower
    assert width < 0.2 * (apart.maximum.upper - apart.minimum.lower)


@pytest.mark.parametrize("kernel", [SquaredExponential(0.7), Matern(1.1, 0.5)], ids=["se", "rough"])
def test_values_are_those_of_the_stored_numbers(kernel):
    """To 60 digits, with steps that round: a range over a point holds the exact difference."""
    rng = np.random.default_rng(4)
    for seed in range(6):
        model = model_of(kernel, seed, slope=rng.normal(size=3), scale=0.37)
        x, step, value = rng.normal(size=3), float(rng.normal()), float(rng.normal())
        change = {0: step, 1: (value, 1.0 / 3.0)}
        found = gpcert.difference_range(model, gpcert.Box(x, x), change, tol=0.0)
        x = [Fraction(v) for v in x.tolist()]
        before = [x[0], Fraction(value), x[2]]
        after = [x[0] + Fraction(step), Fraction(1.0 / 3.0), x[2]]
        with mpmath.workdps(60):
            exact = precise_mean(model, after) - precise_mean(model, before)
            assert found.minimum.lower <= exact <= found.maximum.upper
        assert found.maximum.upper - found.minimum.lower < 1e-6


def test_points_moved_far_are_rounded_and_that_counts():
    """A step of 2^44 leaves nine bits of the points behind the point."""
    for seed in range(4):
        model = model_of(SquaredExponential(0.7), seed, scale=1.0)
        x, step = np.array([-(2.0**44), 0.1, 0.2]), 2.0**44
        found = gpcert.difference_range(model, gpcert.Box(x, x), {0: step}, tol=0.0)
        after = [Fraction(0), Fraction(0.1), Fraction(0.2)]
        with mpmath.workdps(60):
            exact = precise_mean(model, after) - precise_mean(model, x.tolist())
            assert found.minimum.lower <= exact <= found.maximum.upper
        assert found.maximum.upper - found.minimum.lower < 1.0


def precise_mean(model, x):
    def number(value):
        value = Fraction(value)
        return mpmath.mpf(value.numerator) / value.denominator

    kernel, total = model.kernel, mpmath.mpf(0)
    lengths = np.broadcast_to(kernel.length_scale, 3).tolist()
    for z, t in zip(model.points.tolist(), model.weights[0].tolist(), strict=True):
        square = mpmath.fsum(
            ((number(a) - number(b)) / number(s)) ** 2
            for a, b, s in zip(x, z, lengths, strict=True)
        )
        rough = isinstance(kernel, Matern)
        total += number(t) * mpmath.exp(-mpmath.sqrt(square) if rough else -square / 2)
    total += mpmath.fsum(
        number(a) * number(b) for a, b in zip(model.slope[0].tolist(), x, strict=True)
    )
    return number(float(model.scale[0])) * total


def test_what_is_not_seen_changes_nothing():
    model = model_of(ActiveDimensions(SquaredExponential(1.0), (0, 1)))
    found = gpcert.difference_range(model, BOX, {2: (0.0, 1.0)})
    assert (found.minimum, found.maximum) == (gpcert.Interval(0.0, 0.0),) * 2


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.uniform(20.0, 60.0, 80), "pay": rng.normal(3e4, 8e3, 80)})
    frame["sex"] = np.where(rng.random(80) < 0.5, "f", "m")
    target = 0.02 * frame["age"] + 1e-5 * frame["pay"] + 0.4 * (frame["sex"] == "m")
    columns = [("n", StandardScaler(), ["age", "pay"]), ("c", OneHotEncoder(), ["sex"])]
    process = GaussianProcessRegressor(sk.RBF(2.0) + sk.WhiteKernel(0.05), optimizer=None)
    return make_pipeline(ColumnTransformer(columns), process).fit(frame, target)


def test_categories_by_their_labels_in_the_units_of_the_user(people):
    model = people
    bounds = {"age": (30.0, 40.0), "pay": (2.5e4, 3e4), "sex": 0.0}
    found = gpcert.difference_range(model, bounds, {"sex": ("f", "m")}, tol=1e-3)
    rows = pd.DataFrame({"age": np.linspace(30.0, 40.0, 50), "pay": np.linspace(2.5e4, 3e4, 50)})
    apart = model.predict(rows.assign(sex="m")) - model.predict(rows.assign(sex="f"))
    assert found.converged
    assert found.minimum.lower <= apart.min()
    assert apart.max() <= found.maximum.upper
    assert "'sex' goes from 'f' to 'm'" in found.meaning
    older = gpcert.difference_range(model, bounds, {"age": 1.0}, tol=1e-3)
    apart = model.predict(rows.assign(sex="f", age=rows["age"] + 1.0))
    apart = apart - model.predict(rows.assign(sex="f"))
    assert older.minimum.lower <= apart.min()
    assert apart.max() <= older.maximum.upper
    with pytest.raises(InputError, match="categories"):
        gpcert.difference_range(model, bounds, {"sex": ("f", "x")})


def test_changes_that_say_nothing_are_refused():
    model = model_of(KERNELS[0])
    for change in ({}, 3.0, {2: (0.0, 0.0)}, {2: (0.0, 1.0, 2.0)}, (LinearMap(np.eye(2)),) * 2):
        with pytest.raises(InputError, match="expected"):
            gpcert.difference_range(model, BOX, change)
    ball = gpcert.Ball([0.0] * 3, 0.5, 2)
    with pytest.raises(InputError, match="hold it fixed"):
        gpcert.difference_range(model, ball, {2: (0.0, 1.0)})
    moved = gpcert.difference_range(model, gpcert.Ball([0.0] * 3, 0.5, 2), {2: 0.5}, tol=0.05)
    assert moved.converged
