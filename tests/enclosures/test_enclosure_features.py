"""Posteriors behind linear features: every enclosure against ball arithmetic, and exact numbers."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert
from gpcert.enclosures.goals import QuantityGoal
from gpcert.enclosures.lower_model import plain_geometry
from gpcert.enclosures.polynomials import quadratic_minimum
from gpcert.errors import InputError
from gpcert.kernels import Matern, SquaredExponential
from gpcert.likelihoods import Probit, SklearnLogistic
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import Backend
from gpcert.quantities import Mean, Probability, Variance
from gpcert.regions import Ball, Box, LinearMap
from gpcert.regions.cells import widths_as_units
from gpcert.regions.image import Image
from gpcert.regions.scaled import ScaledCells
from gpcert.testing.arb_reference import ArbPosterior
from gpcert.testing.effort import examples, variants
from tests.enclosures.enclosure_checks import (
    check_goal,
    check_mean,
    check_variance,
    evaluation_of,
    refused_growth,
)
from tests.strategies import Case, any_kernels, kernels, posteriors, random_cells, units

seeds = st.integers(0, 2**32)


def random_map(rng, q, d, size=1.0):
    """A map with rows of different lengths, of low rank or with zeros sometimes."""
    W = size * rng.normal(size=(q, d)) * 10.0 ** rng.integers(-1, 2, size=(q, 1))
    W[rng.random((q, d)) < rng.choice([0.0, 0.5])] = 0.0
    if rng.random() < 0.2:
        W[:] = W[:1]
    return W


def region_about(rng, center, size):
    """A box or a ball, some features fixed."""
    d = len(center)
    moves = rng.random(d) < rng.choice([1.0, 0.6])
    if rng.random() < 0.5:
        half = np.where(moves, size * rng.random(d), 0.0)
        return Box(center - half, center + half)
    radius = size * np.where(moves, rng.uniform(0.5, 2.0, d), 0.0)
    return Ball(center, radius if rng.random() < 0.5 else size, norm=rng.choice([1.0, 2.0, np.inf]))


@st.composite
def mapped(draw, likelihood=None, make_kernels=kernels):
    """A posterior behind linear features, with a region near one of its points."""
    inner = draw(posteriors(6, 3, likelihood, make_kernels))
    rng = np.random.default_rng(draw(seeds))
    q, d = inner.dim, draw(st.integers(1, 4))
    lengths = units(inner.kernel, q)
    W = lengths[:, None] * random_map(rng, q, d)
    x = rng.normal(size=d) * draw(st.sampled_from([0.0, 1.0, 1e4]))
    features = LinearMap(W, inner.points[0] + 0.3 * lengths * rng.normal(size=q) - W @ x)
    region = region_about(rng, x, draw(st.sampled_from([0.0, 1e-12, 0.03, 0.3, 1.0, 30.0])))
    fields = {
        name: getattr(inner, name) for name in ("weights", "offset", "scale", "noise", "slope")
    }
    posterior = Posterior(
        inner.kernel,
        inner.points,
        factor=inner.factor,
        likelihood=inner.likelihood,
        features=features,
        **fields,
    )
    return Case(posterior, region, rng)


@pytest.mark.parametrize("pointwise", [True, False])
@settings(max_examples=examples(60, quick=8), deadline=None)
@given(case=mapped(make_kernels=any_kernels))
def test_models_of_the_mean(case, pointwise):
    with refused_growth():
        check_mean(case, pointwise)


@settings(max_examples=examples(60), deadline=None)
@given(case=mapped())
def test_models_of_the_mean_of_squared_exponentials(case):
    check_mean(case)


@settings(max_examples=examples(40), deadline=None)
@given(case=mapped(make_kernels=any_kernels))
def test_models_of_the_variance(case):
    with refused_growth():
        check_variance(case)


@settings(max_examples=examples(40), deadline=None)
@given(case=mapped())
def test_models_of_the_variance_of_squared_exponentials(case):
    check_variance(case)


@settings(max_examples=examples(40, quick=5), deadline=None)
@given(case=mapped(make_kernels=any_kernels))
def test_goals_of_mean_and_variance(case):
    reference = ArbPosterior(case.posterior)
    with refused_growth():
        evaluation = evaluation_of(case)
    for c in range(case.posterior.outputs):
        for sign in (1, -1):
            mean, variance = (
                lambda x, f=f, c=c, sign=sign: sign * f(x, c)
                for f in (reference.mean, reference.variance)
            )
            check_goal(case, QuantityGoal(Mean(c, sign)), mean, evaluation)
            check_goal(case, QuantityGoal(Mean(c, sign)), mean, evaluation, 0.0)
            check_goal(case, QuantityGoal(Variance(c, sign)), variance, evaluation)


@pytest.mark.parametrize("likelihood", [Probit(), SklearnLogistic()])
@settings(max_examples=examples(25), deadline=None)
@given(data=st.data())
def test_goals_of_probabilities(likelihood, data):
    case = data.draw(mapped(likelihood))
    reference = ArbPosterior(case.posterior)
    evaluation = evaluation_of(case, splits=3, keep=3)
    for sign in (1, -1):
        check_goal(
            case,
            QuantityGoal(Probability(likelihood, 0, sign)),
            lambda x, sign=sign: sign * reference.probability(x),
            evaluation,
            0.5 * sign,
        )


def rational(values):
    return [Fraction(float(v)) for v in np.ravel(values)]


def images(seed, splits=4):
    """A map, a region with cells, their images, and points of the cells, one per cell."""
    rng = np.random.default_rng(seed)
    q, d = rng.integers(1, 5, size=2)
    size = 10.0 ** rng.integers(-3, 4)
    features = LinearMap(random_map(rng, q, d, size), rng.normal(size=q))
    x = rng.choice([0.0, 1.0, 1e6]) * rng.normal(size=d)
    region = region_about(rng, x, float(rng.choice([1e-9, 0.1, 10.0])))
    cells = random_cells(region, rng, splits)
    image = Image.of(features, region, widths_as_units(region), Backend())
    share = rng.choice([0.0, 1.0, 0.5], size=cells.lower.shape)
    free = np.clip(cells.lower + share * (cells.upper - cells.lower), cells.lower, cells.upper)
    points = cells.points_full(free)
    inside = np.asarray(region.contains(points))
    return features, image.cells(cells), points, inside, rng


def exact_displacement(features, cells, b, x):
    """`W x + b - c^` in rational arithmetic."""
    at = rational(x)
    return [
        sum((w * a for w, a in zip(rational(row), at, strict=True)), Fraction(float(shift)))
        - Fraction(float(center))
        for row, shift, center in zip(features.matrix, features.shift, cells.center[b], strict=True)
    ]


@settings(max_examples=examples(150), deadline=None)
@given(seed=seeds)
def test_images_hold_every_point_in_exact_arithmetic(seed):
    features, cells, points, inside, rng = images(seed)
    g = rng.normal(size=cells.center.shape) * 10.0 ** rng.integers(-6, 6, size=cells.center.shape)
    weights = rng.random(g.shape[1]) * 10.0 ** rng.integers(-6, 6, size=g.shape[1])
    unit = np.ldexp(1.0, rng.integers(-8, 8, size=g.shape[1]))
    low, high = cells.linear_minimum(g), cells.linear_maximum(g)
    batched = cells.linear_minimum(np.stack([g, -g], axis=1))
    np.testing.assert_allclose(batched[:, 0], low, rtol=1e-12)
    squares = cells.squared_norm_maximum(weights, unit)
    for b in np.flatnonzero(inside):
        e = exact_displacement(features, cells, b, points[b])
        for a, half in zip(e, rational(cells.half[b]), strict=True):
            assert abs(a) <= half
        value = sum(a * s for a, s in zip(e, rational(g[b]), strict=True))
        assert Fraction(float(low[b])) <= value <= Fraction(float(high[b]))
        terms = zip(e, rational(weights), rational(unit), strict=True)
        assert sum(w * (a / u) ** 2 for a, w, u in terms) <= Fraction(float(squares[b]))


@settings(max_examples=examples(150), deadline=None)
@given(seed=seeds)
def test_quadratics_are_minimised_over_the_cells_themselves(seed):
    features, cells, points, inside, rng = images(seed)
    q = cells.center.shape[1]
    inverse = np.ldexp(1.0, rng.integers(-4, 4, size=q))  # exact, so that e / l is
    geometry = ScaledCells.of(cells, inverse, np.ones(q), 1.0 / inverse)
    g = rng.normal(size=(len(cells.half), q))
    H = rng.normal(size=(len(g), q, q)) * 10.0 ** rng.integers(-3, 3)
    H = H + H.transpose(0, 2, 1)
    lower = quadratic_minimum(geometry, g, H).lower
    for b in np.flatnonzero(inside):
        e = exact_displacement(features, cells, b, points[b])
        e = [a * s for a, s in zip(e, rational(inverse), strict=True)]
        rows = [sum(h * a for h, a in zip(rational(row), e, strict=True)) for row in H[b]]
        slopes = zip(rational(g[b]), rows, e, strict=True)
        assert Fraction(float(lower[b])) <= sum((s + r / 2) * a for s, r, a in slopes)


def test_linear_dependence_is_kept():
    """z = (x, x): z_0 - z_1 is 0 on every cell, though the image's box is a square."""
    region = Box([-1.0], [1.0])
    image = Image.of(LinearMap([[1.0], [1.0]]), region, widths_as_units(region), Backend())
    cells = image.cells(region.root())
    assert abs(cells.linear_minimum(np.array([[1.0, -1.0]]))[0]) < 1e-14
    geometry = ScaledCells.of(cells, np.ones(2), np.ones(2), np.ones(2))
    H = np.array([[[2.0, -2.0], [-2.0, 2.0]]])
    assert abs(quadratic_minimum(geometry, np.zeros((1, 2)), -H).lower[0]) < 1e-13


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # no inverse of so small a map, to look with
@pytest.mark.parametrize("exponent", [300, 900, 1000])
def test_slopes_that_underflow_in_the_units_of_the_inputs_are_counted(exponent):
    rng, side = np.random.default_rng(0), 2.0**exponent
    for _ in range(20):
        region = Box(-side * rng.random(2), side * rng.random(2))
        W, g = np.ldexp(rng.normal(size=(1, 2)), -1040), rng.normal(size=(1, 1))
        image = Image.of(LinearMap(W), region, widths_as_units(region), Backend())
        cells = image.cells(region.root())
        slopes, center = [Fraction(g[0, 0]) * Fraction(w) for w in W[0]], rational(cells.center[0])
        ends = zip(slopes, rational(region.lower), rational(region.upper), strict=True)
        least = sum(min(s * low, s * high) for s, low, high in ends)
        least -= Fraction(g[0, 0]) * center[0]
        assert Fraction(float(cells.linear_minimum(g)[0])) <= least


def test_orthonormal_features_are_no_longer_than_their_inputs():
    rng = np.random.default_rng(0)
    W = np.linalg.qr(rng.normal(size=(64, 20)))[0].T
    for region in (Box(-np.ones(64), np.ones(64)), Ball(np.zeros(64), 1.0, norm=2)):
        cells = region.root()
        image = Image.of(LinearMap(W), region, widths_as_units(region), Backend())
        found = image.cells(cells).squared_norm_maximum(np.ones(20))[0]
        plain = cells.squared_norm_maximum(np.ones(64))[0]
        assert found <= plain * (1.0 + 1e-10)


def test_a_permutation_changes_nothing_but_rounding():
    """Behind W a permutation, boxes and bounds are those of the plain model."""
    rng = np.random.default_rng(3)
    Z = rng.normal(size=(20, 3))
    kernel, order = SquaredExponential(1.0), [2, 0, 1]
    K = kernel.value(Z, Z) + 0.1 * np.eye(20)
    factor = np.linalg.inv(np.linalg.cholesky(K))
    t = factor.T @ (factor @ np.sin(Z.sum(1)))
    plain = Posterior(kernel, Z[:, order], t, factor)
    behind = Posterior(kernel, Z, t, factor, features=LinearMap(np.eye(3)[order].T))
    region = Box(-0.4 * np.ones(3), 0.4 * np.ones(3))
    for quantity in ("mean", "variance"):
        # images are not searched inside their boxes, so only close ranges are the same
        asked = {"quantity": quantity, "tol": 1e-4}
        a, b = (gpcert.prediction_range(p, region, **asked) for p in (plain, behind))
        for one, two in ((a.minimum, b.minimum), (a.maximum, b.maximum)):
            assert abs(one.lower - two.lower) < 1e-3
            assert abs(one.upper - two.upper) < 1e-3


def test_models_without_their_weight():
    """An image's enclosure without its weight is in the cells' own units."""
    rng = np.random.default_rng(1)
    W = rng.normal(size=(2, 3))
    posterior = Posterior(SquaredExponential(1.0), [[0.0, 0.5]], [1.0], features=LinearMap(W))
    region = Box([-0.1, 0.0, -0.2], [0.1, 0.3, 0.2])
    case = Case(posterior, region, rng)
    evaluation = evaluation_of(case, variance=False)
    mean = evaluation.mean(0)
    plain = mean.below.unweighted(plain_geometry(evaluation.cells), mean.linear_error)
    lower = plain.minimum().lower
    for b, cell in enumerate(evaluation.cells.lower):
        X = rng.uniform(cell, evaluation.cells.upper[b], size=(200, 3))
        assert lower[b] <= posterior.unit.kernel.value(X @ W.T, posterior.points).min() + 1e-12


@variants("kernel", [SquaredExponential(1.0), Matern(1.0, 1.5)])
def test_ranges_decisions_and_files(kernel, tmp_path):
    rng = np.random.default_rng(5)
    X, W = rng.normal(size=(30, 6)), rng.normal(size=(2, 6))
    Z = X @ W.T + 1.0
    K = kernel.value(Z, Z) + 0.5 * np.eye(30)
    factor = np.linalg.inv(np.linalg.cholesky(K))
    t = factor.T @ (factor @ np.sign(Z[:, 0]))
    posterior = Posterior(
        kernel, Z, t, factor, likelihood=Probit(), features=LinearMap(W, np.ones(2))
    )
    posterior.save(tmp_path / "model.npz")
    again = Posterior.load(tmp_path / "model.npz")
    assert again.fingerprint == posterior.fingerprint
    assert again.fingerprint != Posterior(kernel, Z, t, factor, likelihood=Probit()).fingerprint
    np.testing.assert_array_equal(again.prediction(X), posterior.prediction(X))
    region = Box(X[0] - 0.02, X[0] + 0.02)
    found = gpcert.prediction_range(again, region, tol=1e-3)
    values = posterior.prediction(region.sample(10_000, 0))[:, 0]
    assert found.minimum.lower <= values.min()
    assert found.maximum.upper >= values.max()
    assert found.minimum.upper - found.minimum.lower <= 1e-3
    radius = gpcert.certified_radius(posterior, X[0])
    assert 0 < radius.lower <= radius.upper < 1.05 * radius.lower
    few = gpcert.certify(posterior, X[0], radius=0.01, features=[1, 4])
    assert few.robust


def test_the_paper_is_refused_and_wrong_maps_are_named():
    posterior = Posterior(Matern(1.0, 0.5), [[0.0]], [1.0], features=LinearMap([[1.0, 2.0]]))
    region = Box([0.0, 0.0], [0.1, 0.1])
    with pytest.raises(InputError, match="is not known for a model behind linear features"):
        gpcert.prediction_range(posterior, region, method="paper")
    assert gpcert.prediction_range(posterior, region, quantity="variance", budget=1).boxes
    with pytest.raises(InputError, match="features: expected a map to the 1 features"):
        Posterior(Matern(1.0, 2.5), [[0.0]], [1.0], features=LinearMap(np.eye(2)))
    with pytest.raises(InputError, match="expected a matrix"):
        LinearMap([[1.0]], [1.0, 2.0])
    with pytest.raises(InputError, match="features: expected a LinearMap"):
        Posterior(Matern(1.0, 2.5), [[0.0]], [1.0], features=np.eye(1))


def test_features_beyond_float64_are_refused():
    posterior = Posterior(Matern(1.0, 2.5), [[0.0]], [1.0], features=LinearMap([[1e300, 1e300]]))
    with pytest.raises(InputError, match="leave float64"):
        gpcert.prediction_range(posterior, Box([0.0, 0.0], [1e10, 1e10]))


@variants("kernel", [SquaredExponential(1.0), Matern(1.0, 1.5)])
def test_torch_finds_the_same_ranges(kernel):
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    features = LinearMap(rng.normal(size=(2, 4)))
    points, weights = rng.normal(size=(10, 2)), rng.normal(size=10)
    posterior = Posterior(
        kernel, points, weights, 0.1 * np.eye(10), likelihood=Probit(), features=features
    )
    for region in (Box(-0.1 * np.ones(4), 0.1 * np.ones(4)), Ball(np.zeros(4), 0.1, norm=2)):
        a, b = (gpcert.prediction_range(posterior, region, backend=n) for n in ("numpy", "torch"))
        assert abs(a.minimum.lower - b.minimum.lower) < 1e-9
        assert abs(a.maximum.upper - b.maximum.upper) < 1e-9
