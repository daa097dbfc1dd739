"""Slopes through the verbs: ranges, monotony, Lipschitz constants."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import gpcert
from gpcert.errors import InputError
from gpcert.kernels import Matern, RationalQuadratic, SquaredExponential
from gpcert.likelihoods import Probit
from gpcert.quantities import Slope
from gpcert.testing.effort import crossed

KERNELS = [SquaredExponential([0.7, 1.5]), Matern([1.0, 2.0], 2.5), RationalQuadratic(1.0, 0.8)]


def model_of(kernel, outputs=1, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(12, 2))
    return gpcert.Posterior(kernel, Z, rng.normal(size=(outputs, 12)), scale=3.0, offset=1.0)


def differences(model, X, j, output=0, step=1e-5):
    e = step * np.eye(model.dim)[j]
    return ((model.mean(X + e) - model.mean(X - e)) / (2.0 * step))[:, output]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_ranges_hold_the_differences(kernel):
    model, box = model_of(kernel, 2), gpcert.Box([-0.5, -0.3], [0.5, 0.7])
    X = np.random.default_rng(1).uniform(box.lower, box.upper, (2000, 2))
    X = np.concatenate([X, [box.lower, box.upper], [[-0.5, 0.7], [0.5, -0.3]]])
    for output in (0, 1):
        table = gpcert.slope_ranges(model, box, output=output, rtol=0.02)
        assert table.converged
        assert table.labels == (0, 1)
        for j, row in enumerate(table):
            slopes = differences(model, X, j, output)
            assert row.minimum.lower - 1e-6 <= slopes.min() <= row.minimum.upper + 0.1
            assert row.maximum.lower - 0.1 <= slopes.max() <= row.maximum.upper + 1e-6
            at = differences(model, row.argmin[None], j, output)[0]
            assert at == pytest.approx(row.minimum.upper, abs=1e-4)


def test_the_same_slopes_by_every_verb():
    model, box = model_of(KERNELS[0]), gpcert.Box([-0.5, -0.3], [0.5, 0.7])
    row = gpcert.slope_ranges(model, box, [1], tol=1e-3)[0]
    found = gpcert.prediction_range(model, box, quantity=Slope(1), tol=1e-3)
    assert (found.minimum, found.maximum) == (row.minimum, row.maximum)
    assert found.quantity == "slope"
    assert "slope of the mean" in found.meaning
    best = gpcert.maximize(model, box, quantity=Slope(1), tol=1e-3)
    assert best.value <= row.maximum.upper
    assert best.bound >= row.maximum.lower
    ends = gpcert.bound_boxes(model, box.lower[None], box.upper[None], quantity=Slope(1), tol=1e-3)
    assert ends["Slope"][0, 0] == pytest.approx([row.minimum.lower, row.maximum.upper], abs=2e-3)
    level = row.minimum.lower - 1.0
    verdict = gpcert.certify(model, box.center, region=box, quantity=Slope(1), threshold=level)
    assert verdict.status == "ROBUST"
    along = gpcert.prediction_range(model, box, quantity=Slope(direction=(0.0, -2.0)), tol=1e-3)
    assert along.minimum.lower == pytest.approx(-2.0 * row.maximum.upper, abs=4e-3)


def test_monotone_proved_and_refuted_by_two_points():
    model = gpcert.Posterior(SquaredExponential([1.0, 1.0]), [[0.0, 0.0]], [1.0])
    table = gpcert.certify_monotone(model, [(0.1, 1.0), (-0.5, 0.5)], {0: "-", 1: "-"})
    first, second = table
    assert (first.status, second.status) == ("ROBUST", "NOT_ROBUST")
    assert table.status == "NOT_ROBUST"
    low, high = second.pair
    assert np.array_equal(low[:1], high[:1])
    assert low[1] < high[1]
    assert second.values[0].upper < second.values[1].lower  # it rises
    for point, value in zip(second.pair, second.values, strict=True):
        assert value.lower - 1e-12 <= model.mean(point[None])[0, 0] <= value.upper + 1e-12
    with pytest.raises(InputError, match="truth value"):
        bool(first)


def test_monotony_of_all_outputs():
    model, box = model_of(KERNELS[0], 2), gpcert.Box([-0.1, -0.1], [0.1, 0.1])
    table = gpcert.certify_monotone(model, box, {0: "+", 1: "-"}, all_outputs=True)
    assert table.labels == ("0: 0", "0: 1", "1: 0", "1: 1")
    for c in (0, 1):
        alone = gpcert.certify_monotone(model, box, {0: "+", 1: "-"}, output=c)
        assert [row.status for row in alone] == [row.status for row in table][2 * c : 2 * c + 2]
        assert alone.labels == (0, 1)
    with pytest.raises(InputError, match="all_outputs"):
        gpcert.certify_monotone(model, box, {0: "+"}, output=1, all_outputs=True)


def test_a_feature_that_does_not_matter_is_monotone_both_ways():
    model = gpcert.Posterior(
        gpcert.kernels.ActiveDimensions(SquaredExponential(1.0), (0,)), [[0.0, 0.0]], [1.0]
    )
    for sign in "+-":
        assert gpcert.certify_monotone(model, [(0.0, 1.0)] * 2, {1: sign}).status == "ROBUST"
    assert gpcert.slope_ranges(model, [(0.1, 1.0)] * 2).signs == {0: "-", 1: "0"}


def test_monotone_on_a_mixture_needs_two_points():
    """On x + y = 1 no segment goes along a feature: a wrong slope alone refutes nothing."""
    model = gpcert.Posterior(SquaredExponential(1.0), [[0.0, 0.0]], [1.0])
    line = gpcert.Polytope(([0.2, 0.2], [0.8, 0.8]), ({0: 1.0, 1: 1.0}, "==", 1.0))
    assert gpcert.certify_monotone(model, line, {0: "+"})[0].status == "UNKNOWN"


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("norm", [1, 2, "inf"])
def test_lipschitz_bounds_difference_quotients(kernel, norm):
    model, box = model_of(kernel), gpcert.Box([-0.5, -0.3], [0.5, 0.7])
    bound = gpcert.lipschitz(model, box, norm=norm)
    assert bound.converged
    assert bound.upper <= 1.0101 * bound.lower
    rng = np.random.default_rng(2)
    X, Y = rng.uniform(box.lower, box.upper, (2, 20000, 2))
    change = np.abs(model.mean(X) - model.mean(Y))[:, 0]
    quotients = change / np.linalg.norm(X - Y, ord=float(norm), axis=1)
    assert quotients.max() <= bound.upper
    near = bound.point + 1e-6 * rng.normal(size=(2000, 2))
    change = np.abs(model.mean(near) - model.mean(bound.point[None]))[:, 0]
    steepest = change / np.linalg.norm(near - bound.point, ord=float(norm), axis=1)
    assert steepest.max() >= 0.98 * bound.lower


@pytest.mark.parametrize("equation", [((0, 1), 1.0), ((0, 1, 2), 1.5)])
def test_equations_leave_no_gradient_to_attain(equation):
    """The mean is steep across the plane and flat along it: no two points show the gradient."""
    used, bound = equation
    plane = dict.fromkeys(used, 1.0)
    model = gpcert.Posterior(gpcert.kernels.Linear(1.0), [[1.0, 1.0, 1.0]], [100.0])
    region = gpcert.Polytope(([0.0] * 3, [1.0] * 3), (plane, "==", bound))
    found = gpcert.lipschitz(model, region)
    assert not region.has_interior
    assert found.lower <= (100.0 if len(used) == 2 else 1e-6)
    assert found.upper >= 100.0 * 3**0.5
    bent = model_of(SquaredExponential([0.7, 1.5]))
    line = gpcert.Polytope(([0.0, 0.0], [1.0, 1.0]), ({0: 1.0, 1: 1.0}, "==", 1.0))
    for norm in (1, 2, "inf"):
        found = gpcert.lipschitz(bent, line, norm=norm)
        x = np.linspace(0.0, 1.0, 4001)
        points = np.stack([x, 1.0 - x], axis=1)
        rises = np.abs(np.diff(bent.mean(points)[:, 0]))
        length = np.linalg.norm([1.0, -1.0], ord=float(norm)) * np.diff(x)
        steepest = np.max(rises / length)
        assert 0.5 * steepest < found.lower <= steepest * (1.0 + 1e-6)
        first, second = found.pair
        assert line.contains(found.pair).all()
        change = abs(bent.mean(first[None]) - bent.mean(second[None]))[0, 0]
        apart = np.linalg.norm(first - second, ord=float(norm))
        assert change / apart == pytest.approx(found.lower)


def test_a_polytope_with_an_interior_attains_gradients():
    model = model_of(KERNELS[0])
    region = gpcert.Polytope(([0.0, 0.0], [1.0, 1.0]), ({0: 1.0, 1: 1.0}, "<=", 1.5))
    assert region.has_interior
    found = gpcert.lipschitz(model, region)
    assert found.converged
    assert not len(found.pair)
    assert found.upper <= 1.0101 * found.lower


def test_jacobians_of_several_outputs():
    """Between the spectral norm somewhere and the Frobenius norm everywhere."""
    model, box = model_of(KERNELS[0], 3), gpcert.Box([-0.5, -0.3], [0.5, 0.7])
    found = gpcert.lipschitz(model, box, of="jacobian")
    X = np.random.default_rng(0).uniform(box.lower, box.upper, (4000, 2))
    columns = [[differences(model, X, j, c) for j in range(2)] for c in range(3)]
    spectral = np.linalg.norm(np.moveaxis(np.array(columns), -1, 0), ord=2, axis=(1, 2))
    assert spectral.max() <= found.upper
    at = [[differences(model, found.point[None], j, c)[0] for j in range(2)] for c in range(3)]
    assert found.lower == pytest.approx(np.linalg.norm(at, ord=2), rel=1e-6)
    assert found.upper <= 3**0.5 * found.lower
    alone = gpcert.lipschitz(model, box, output=1)
    assert alone.lower <= found.upper
    single = model_of(KERNELS[0], 1)
    pair = gpcert.lipschitz(single, box), gpcert.lipschitz(single, box, of="jacobian")
    assert pair[0].upper == pytest.approx(pair[1].upper, rel=0.02)
    assert pair[1].converged


@crossed({"norm": [1, 2, "inf"], "known": [True, False]})
def test_standard_deviations_and_probabilities(norm, known):
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(10, 2)), rng.normal(size=10)
    kernel = SquaredExponential([0.7, 1.5]) + Matern(1.0, 2.5)
    K = kernel.value(Z, Z) + 0.1 * np.eye(10)
    exact = {"training_noise": 0.1} if known else {"factor": np.linalg.inv(np.linalg.cholesky(K))}
    weights = np.linalg.solve(K, y)
    box = gpcert.Box([-0.5, -0.3], [0.5, 0.7])
    X = rng.uniform(box.lower, box.upper, (4000, 2))
    Y = np.clip(X + 0.05 * rng.normal(size=X.shape), box.lower, box.upper)
    lengths = np.linalg.norm(X - Y, ord=float(norm), axis=1)
    regression = gpcert.Posterior(kernel, Z, weights, scale=2.0, noise=0.01, **exact)
    binary = gpcert.Posterior(kernel, Z, weights, likelihood=Probit(), classes=("a", "b"), **exact)

    def std(X):
        return np.sqrt(regression.predict(X)[1][:, 0])

    def probability(X):
        return binary.prediction(X)[:, 0]

    for model, of, function in ((regression, "std", std), (binary, "probability", probability)):
        found = gpcert.lipschitz(model, box, norm=norm, of=of)
        steepest = np.max(np.abs(function(X) - function(Y)) / lengths)
        assert steepest <= found.upper
        assert 0.9 * steepest < found.lower <= found.upper <= 1.0101 * found.lower
        assert found.converged
        step, dual = 1e-6 * np.eye(2), {1: np.inf, 2: 2, "inf": 1}[norm]
        slopes = (function(found.point + step) - function(found.point - step)) / 2e-6
        assert found.lower == pytest.approx(np.linalg.norm(slopes, ord=dual), rel=1e-5)


def test_deviations_of_a_linear_function_with_unknown_weights():
    """The standard deviation is the length of x: it grows by the root of 2 along the diagonal."""
    model = gpcert.Posterior(gpcert.kernels.Linear(1.0), [[1.0, 1.0]], [0.0])
    box = gpcert.Box([0.5, 0.5], [1.0, 1.0])
    for norm, steepest in ((1, 0.8), (2, 1.0), ("inf", 2**0.5)):
        found = gpcert.lipschitz(model, box, norm=norm, of="std")
        assert steepest <= found.upper <= 2.0 + 1e-9
        assert 0.7 * steepest < found.lower <= found.upper
    with pytest.raises(InputError, match="search"):
        gpcert.lipschitz(model, box, of="std", rtol=0.1)


def test_deviations_and_probabilities_of_a_linear_classifier():
    """Without a search: the least constant of the probability stays below what is proved."""
    model = gpcert.Posterior(
        gpcert.kernels.Linear(1.0), [[1.0, 1.0]], [3.0], likelihood=Probit(), classes=("a", "b")
    )
    box = gpcert.Box([-0.2, -0.2], [0.2, 0.2])
    X = np.random.default_rng(0).uniform(box.lower, box.upper, (200, 2))
    steps = 1e-5 * np.array([[1.0, 1.0]]) / np.sqrt(2.0)
    steepest = np.max(np.abs(model.prediction(X + steps) - model.prediction(X))) / 1e-5
    assert 1.0 < steepest <= gpcert.lipschitz(model, box, of="probability").upper < 3.0


def test_boxes_of_slopes():
    model = model_of(KERNELS[0], 2)
    low = np.array([[-0.5, -0.3], [0.1, 0.2]])
    bounds = gpcert.bound_boxes(model, low, low + 0.05, quantity=["slope", "mean"])
    assert bounds["slope"].shape == (2, 4, 2)
    assert bounds.outputs["slope"] == ("0: 0", "0: 1", "1: 0", "1: 1")
    X = np.random.default_rng(0).uniform(low, low + 0.05, (200, 2, 2))
    for box in range(2):
        for place, (output, j) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
            slopes = differences(model, X[:, box], j, output)
            least, most = bounds["slope"][box, place]
            assert least - 1e-6 <= slopes.min()
            assert slopes.max() <= most + 1e-6
            assert most - least < 3.0 * (slopes.max() - slopes.min()) + 0.1


def test_only_free_features_count():
    model = model_of(KERNELS[0])
    held = gpcert.lipschitz(model, [(-0.5, 0.5), 0.2], rtol=1e-3)
    row = gpcert.slope_ranges(model, [(-0.5, 0.5), 0.2], [0], rtol=1e-3)[0]
    largest = max(row.maximum.upper, -row.minimum.lower)
    assert held.upper == pytest.approx(largest, rel=3e-3)
    assert gpcert.lipschitz(model, [0.1, 0.2]).upper == 0.0


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 3)) * [1.0, 100.0, 0.01] + [5.0, 0.0, 1.0]
    return X, X[:, 0] + 0.01 * X[:, 1] + np.sin(100.0 * X[:, 2])


@pytest.mark.parametrize("linear", [False, True])
def test_pipelines_in_the_units_of_the_user(table, linear):
    X, y = table
    process = GaussianProcessRegressor(sk.RBF(2.0) + sk.WhiteKernel(0.1), optimizer=None)
    steps = [StandardScaler(), *([PCA(3)] if linear else []), process]
    pipe = make_pipeline(*steps).fit(X, y)
    half = 0.1 * X.std(axis=0)
    box = gpcert.Box(X[0] - half, X[0] + half)
    slopes = gpcert.slope_ranges(pipe, box)
    points = np.random.default_rng(0).uniform(box.lower, box.upper, (200, 3))
    for j, row in enumerate(slopes):
        e = 1e-5 * X.std(axis=0)[j] * np.eye(3)[j]
        real = (pipe.predict(points + e) - pipe.predict(points - e)) / (2.0 * e[j])
        slack = 1e-6 * np.abs(real).max()
        assert row.minimum.lower <= real.min() + slack
        assert real.max() <= row.maximum.upper + slack


def test_classifiers_by_their_latent_means(table):
    X, y = table
    for inner in (GaussianProcessClassifier(sk.RBF(2.0), optimizer=None), SVC(gamma=0.3)):
        pipe = make_pipeline(StandardScaler(), inner).fit(X, y > np.median(y))
        half = 0.05 * X.std(axis=0)
        slopes = gpcert.slope_ranges(pipe, gpcert.Box(X[0] - half, X[0] + half))
        assert slopes.converged


def test_what_has_no_slopes_is_refused_by_name():
    box = [(0.0, 1.0)] * 2
    rough = gpcert.Posterior(Matern(1.0, 0.5), [[0.0, 0.0]], [1.0])
    with pytest.raises(InputError, match="no derivative"):
        gpcert.slope_ranges(rough, box)
    with pytest.raises(InputError, match=r"modulus of continuity: .* <= 1\.0.* \|phi"):
        gpcert.lipschitz(rough, box)
    model = model_of(KERNELS[0], 2)
    with pytest.raises(InputError, match="all outputs"):
        gpcert.lipschitz(model, box, of="jacobian", output=1)
    slopes = gpcert.model.slopes.slope_of(model, np.array([1.0, 0.0]))
    with pytest.raises(InputError, match="variance"):
        gpcert.prediction_range(slopes, gpcert.Box([0.0] * 2, [1.0] * 2), quantity="variance")
    region = gpcert.Discrete(gpcert.Box([0.0] * 2, [2.0] * 2), integers=[0])
    with pytest.raises(InputError, match="Box, Ball or Polytope"):
        gpcert.lipschitz(model, region)
    with pytest.raises(InputError, match="held fixed"):
        gpcert.certify_monotone(model, [0.5, (0.0, 1.0)], {0: "+"})
    with pytest.raises(InputError, match="'convex', 'concave' for each"):
        gpcert.certify_monotone(model, box, {0: "up"})
    with pytest.raises(InputError, match="different ones"):
        gpcert.slope_ranges(model, box, [0, 0])
    with pytest.raises(InputError, match="1, 2 or 'inf'"):
        gpcert.lipschitz(model, box, norm=3)
    with pytest.raises(InputError, match="either a feature"):
        Slope()


def test_a_trend_is_part_of_the_slope():
    model = replace(model_of(KERNELS[0]), slope=[0.5, -2.0], scale=2.0)
    row = gpcert.slope_ranges(model, gpcert.Box([5e3] * 2, [6e3] * 2), [1])[0]  # far from all data
    assert row.minimum.lower <= -4.0 <= row.maximum.upper
    assert row.maximum.upper - row.minimum.lower < 1e-6
    odd = replace(model_of(KERNELS[0]), slope=[0.1, -2.0], scale=0.3)
    with pytest.raises(InputError, match="linear trend"):
        gpcert.slope_ranges(odd, gpcert.Box([0.0] * 2, [1.0] * 2))


def test_budgets_end_in_valid_bounds():
    model, box = model_of(KERNELS[1]), gpcert.Box([-2.0] * 2, [2.0] * 2)
    short = gpcert.lipschitz(model, box, budget=gpcert.Budget(boxes=1))
    long = gpcert.lipschitz(model, box)
    assert not short.converged
    assert short.lower <= long.upper
    assert short.upper >= long.lower


@pytest.mark.parametrize("direction", ["convex", "concave"])
def test_curvature_along_a_feature(direction):
    """A bump is concave within one length-scale and convex beyond."""
    bump = gpcert.Posterior(SquaredExponential(1.0), [[0.0, 0.0]], [1.0])
    sign = 1.0 if direction == "concave" else -1.0
    bump = gpcert.Posterior(SquaredExponential(1.0), [[0.0, 0.0]], [sign])
    inner, outer = ((-0.6, 0.6), (-0.5, 0.5)), ((1.1, 2.0), (-0.5, 0.5))
    table = gpcert.certify_monotone(bump, inner, {0: direction, 1: direction})
    assert [row.status.name for row in table] == ["ROBUST", "ROBUST"]
    table = gpcert.certify_monotone(bump, outer, {0: direction, 1: direction})
    assert [row.status.name for row in table] == ["NOT_ROBUST", "ROBUST"]
    x = table[0].pair
    assert np.array_equal(x[0] + x[2], 2.0 * x[1])
    value = bump.mean(x)[:, 0]
    assert sign * (2.0 * value[1] - value[0] - value[2]) < 0
    assert all(v.lower <= at <= v.upper for v, at in zip(table[0].values, value, strict=True))
    assert direction in table.summary
    assert direction in table[0].summary


@pytest.mark.parametrize("of", ["mean", "probability"])
def test_where_a_sign_is_not_decided(of):
    """A level set of a slope: proved to rise, proved to fall, and what is left, as a picture."""
    bump = gpcert.Posterior(SquaredExponential(1.0), [[0.0, 0.0]], [1.0], likelihood=Probit())
    signs = gpcert.level_set(bump, [(-1.0, 1.0)] * 2, 0.0, quantity=Slope(0, of=of), tol=0.1)
    assert signs.share.lower <= 0.5 <= signs.share.upper
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (200, 2))
    states = signs.contains(X).tolist()
    assert all(x <= 0.0 for x, state in zip(X[:, 0], states, strict=True) if state is True)
    assert all(x >= 0.0 for x, state in zip(X[:, 0], states, strict=True) if state is False)
    assert states.count(None) < 40


def test_curvature_refuses_what_has_none():
    rough = gpcert.Posterior(Matern(1.0, 1.5), [[0.0]], [1.0])
    with pytest.raises(InputError, match="second derivatives"):
        gpcert.certify_monotone(rough, [(0.1, 0.5)], {0: "convex"})
    with pytest.raises(InputError, match="quantity='mean'"):
        gpcert.certify_monotone(rough, [(0.1, 0.5)], {0: "convex"}, quantity="variance")


def test_monotony_of_probabilities():
    """Where the latent mean rises and the probability falls, as the variance grows faster."""
    Z = np.array([[-1.0], [0.0]])
    K = SquaredExponential(0.7).value(Z, Z) + 0.01 * np.eye(2)
    factor = np.linalg.inv(np.linalg.cholesky(K))
    parts = {"factor": factor, "likelihood": Probit(), "classes": ("a", "b")}
    model = gpcert.Posterior(SquaredExponential(0.7), Z, [3.0, 3.0], **parts)
    X = np.linspace(-0.9, 2.0, 400)[:, None]
    for low, high in ((-0.9, -0.6), (0.3, 1.0), (-0.9, 1.0), (3.0, 5.0)):
        steps = np.diff(model.prediction(np.linspace(low, high, 200)[:, None])[:, 0])
        for sign, rises in (("+", np.all(steps >= 0)), ("-", np.all(steps <= 0))):
            asked = {"features": {0: sign}, "quantity": "probability"}
            (row,) = gpcert.certify_monotone(model, [(low, high)], **asked)
            assert row.status.name == ("ROBUST" if rises else "NOT_ROBUST")
            assert "probability of class b" in row.summary
            if not rises:
                first, second = model.prediction(row.pair)[:, 0]
                assert (first > second) == (sign == "+")
    table = gpcert.slope_ranges(model, [(-0.9, 2.0)], quantity="probability")
    steps = np.diff(model.prediction(X)[:, 0]) / np.diff(X[:, 0])
    assert table[0].minimum.lower <= steps.min()
    assert table[0].maximum.upper >= steps.max()
    found = gpcert.prediction_range(
        model, region=gpcert.Box([-0.9], [2.0]), quantity=Slope(0, of="probability")
    )
    assert found.minimum.lower == pytest.approx(table[0].minimum.lower, rel=0.05, abs=0.01)
    with pytest.raises(InputError, match="regression"):
        gpcert.slope_ranges(model_of(KERNELS[0]), [(0.0, 1.0), (0.0, 1.0)], quantity="probability")
    with pytest.raises(InputError, match="quantity"):
        gpcert.slope_ranges(model, [(0.0, 1.0)], quantity="median")
