"""One box, functions that attain the bounds: half a remainder, or one order less, is caught.

In one dimension with unit length-scale, `e_k(x) = exp(-x^2/2) x^k / sqrt(k!)` are orthonormal in
the kernel's space. `combination` finds weights of a function with given coefficients, so that the
part which an enclosure bounds by Cauchy-Schwarz is as large as it can be.
"""

import math

import numpy as np
import pytest

import gpcert
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Probit
from gpcert.search.local_search import Descent
from gpcert.testing.effort import crossed, variants

ONE_BOX = gpcert.Budget(seconds=None, boxes=1)
ORDERS = 7
POINTS = np.linspace(-1.2, 1.2, ORDERS)[:, None]
GRID = np.linspace(-1.0, 1.0, 401)[:, None]


@pytest.fixture(autouse=True)
def _no_local_search(monkeypatch):
    """Only the proved side is looked at here."""
    monkeypatch.setattr(Descent, "improved", lambda _, g, question, points: points)


def combination(coefficients):
    """Weights at POINTS of `sum c_k e_k`, up to terms of order 7 and more."""
    orders = np.arange(ORDERS)
    scale = np.sqrt([math.factorial(k) for k in orders])
    features = np.exp(-(POINTS**2) / 2) * POINTS**orders / scale
    target = np.zeros(ORDERS)
    target[: len(coefficients)] = coefficients
    return np.linalg.solve(features.T, target)


def mean_only(coefficients, s2=1.0, **options):
    """A mean whose part of degree k has norm `|c_k|`, for a kernel of variance s2."""
    weights = combination(coefficients) / math.sqrt(s2)
    return gpcert.Posterior(SquaredExponential(1.0, s2), POINTS, weights, **options)


def with_variance(u, s2=1.0):
    """`v = s2 - <u, phi>^2` for a function u of norm 1."""
    u = np.asarray(u) / np.linalg.norm(u)
    factor = combination(u)[None] / math.sqrt(s2)
    options = {"factor": factor * (1 - 1e-6), "likelihood": Probit()}
    return gpcert.Posterior(SquaredExponential(1.0, s2), POINTS, 0.0 * factor[0], **options)


def root_range(posterior, radius, quantity, center=0.0):
    """The root's own bounds, and the values on a grid of the interval."""
    region = gpcert.Box([center - radius], [center + radius])
    found = gpcert.prediction_range(posterior, region, tol=0.0, quantity=quantity, budget=ONE_BOX)
    assert found.boxes == 1
    mean, variance = posterior.predict(center + radius * GRID)
    values = {"mean": mean[:, 0], "variance": variance[:, 0]}
    if quantity == "probability":
        return found, posterior.prediction(center + radius * GRID)[:, 0]
    return found, values[quantity]


def assert_encloses(found, values):
    assert found.minimum.lower <= values.min() + 1e-13
    assert found.maximum.upper >= values.max() - 1e-13


@crossed({"radius": [0.05, 0.1, 0.2, 0.4, 0.8], "order": [0, 1, 2, 3, 4, 5], "s2": [1.0, 0.2, 5.0]})
def test_mean_along_one_basis_function(order, s2, radius):
    coefficients = np.zeros(6)
    coefficients[order] = 1.0
    found, values = root_range(mean_only(coefficients, s2), radius, "mean")
    assert_encloses(found, values)
    if order == 3 and radius <= 0.2:  # nearly attained: less than 15 % is given away
        assert found.maximum.upper <= 1.15 * values.max()


@variants("seed", range(30), quick=10)
def test_mean_of_mixed_orders(seed):
    rng = np.random.default_rng(seed)
    posterior = mean_only(
        rng.normal(size=6), rng.uniform(0.2, 4), offset=rng.normal(), scale=rng.uniform(0.5, 2)
    )
    for radius in (0.1, 0.3, 0.7):
        found, values = root_range(posterior, radius, "mean")
        assert_encloses(found, values)


@pytest.mark.parametrize("distance", [1.5, 2.0, 3.0, 4.0])
@pytest.mark.parametrize("weight", [1.0, -1.0])
def test_mean_of_one_far_point(distance, weight):
    """Point by point: `e^y - 1 - y - y^2/2` is nearly `y^3/6` at both ends."""
    posterior = gpcert.Posterior(SquaredExponential(1.0), [[0.0]], [weight])
    for radius in (0.05, 0.1, 0.3, 0.6):
        found, values = root_range(posterior, radius, "mean", center=distance)
        assert_encloses(found, values)
        if radius <= 0.1:
            width = values.max() - values.min()
            assert found.maximum.upper - found.minimum.lower <= 1.1 * width


@crossed({"radius": [0.05, 0.1, 0.2, 0.4, 0.8], "s2": [1.0, 0.2, 5.0], "order": [3, 4]})
def test_variance_whose_higher_order_part_is_all_there_is(radius, s2, order):
    """u = a e0 + b e3: the covariance with the centre has the largest remainder allowed."""
    u = np.zeros(5)
    u[0], u[order] = 0.7, 0.7 * (-1) ** order
    found, values = root_range(with_variance(u, s2), radius, "variance")
    assert_encloses(found, values)


@crossed(
    {"radius": [0.05, 0.1, 0.2, 0.4, 0.8], "sign": [1.0, -1.0], "first": [0.6, 0.8, 0.85, 0.9]}
)
def test_variance_whose_first_and_second_order_meet(radius, sign, first):
    """u = c e0 + a e1 + b e2: the square's remainder is aligned with its linear part."""
    second = sign * math.sqrt(1 - 0.09 - first**2)
    found, values = root_range(with_variance([0.3, first, second]), radius, "variance")
    assert_encloses(found, values)


@variants("seed", range(30), quick=10)
def test_variance_of_mixed_orders(seed):
    rng = np.random.default_rng(seed)
    posterior = with_variance(rng.normal(size=5) * [1, 1, 1, 1, 0.3], rng.uniform(0.2, 4))
    for radius in (0.1, 0.3, 0.7):
        found, values = root_range(posterior, radius, "variance")
        assert_encloses(found, values)


@crossed({"norm": [1.05, 1.3, 2.0, 3.0], "seed": range(10)})
def test_variance_of_an_overconfident_factor(seed, norm):
    """A factor with |A K A^T| > 1: the formula's v is negative in places, and cut at 0."""
    rng = np.random.default_rng(seed)
    # large where the centre is not, so that v falls from positive to negative on the interval
    base = with_variance(rng.normal(size=5) * [0.3, 1, 1, 0.5, 0.3])
    posterior = gpcert.Posterior(
        base.kernel, base.points, base.weights[0], base.factor[0] * norm, likelihood=Probit()
    )
    for radius in (0.1, 0.3, 0.7, 1.5):
        found, values = root_range(posterior, radius, "variance")
        assert_encloses(found, values)


@crossed({"radius": [0.1, 0.2, 0.3, 0.5], "norm": [2.0, 3.0, 4.0], "s2": [1.0, 3.0]})
def test_remainder_of_an_overconfident_factor(radius, norm, s2):
    """u = norm (a e0 - b e4): the remainder of `P e0` is larger than any positive P allows."""
    first = 0.7 / norm
    base = with_variance([first, 0, 0, 0, -math.sqrt(1 - first**2)], s2)
    posterior = gpcert.Posterior(
        base.kernel, base.points, base.weights[0], base.factor[0] * norm, likelihood=Probit()
    )
    found, values = root_range(posterior, radius, "variance")
    assert_encloses(found, values)


@variants("seed", range(20), quick=8)
def test_probability_of_mixed_orders(seed):
    rng = np.random.default_rng(seed)
    base = with_variance(rng.normal(size=4))
    posterior = gpcert.Posterior(
        base.kernel, base.points, combination(rng.normal(size=4)), base.factor, likelihood=Probit()
    )
    for radius in (0.1, 0.3, 0.7):
        found, values = root_range(posterior, radius, "probability")
        assert_encloses(found, values)


@pytest.mark.parametrize("seed", range(8))
def test_roots_in_several_dimensions(seed):
    """Root bounds of random posteriors over boxes and balls, small and large."""
    rng = np.random.default_rng(seed)
    d = 2 + seed % 2
    kernel = SquaredExponential(rng.uniform(0.5, 1.5, d))
    posterior = gpcert.Posterior(kernel, rng.normal(size=(5, d)), rng.normal(size=5))
    center = rng.normal(size=d) * 0.5
    for radius in (0.05, 0.3, 1.5):
        for norm in (1, 2, 3):
            region = gpcert.Ball(center, radius, norm=norm)
            found = gpcert.prediction_range(posterior, region, tol=0.0, budget=ONE_BOX)
            directions = np.concatenate(
                [region.sample(200, 1), region.linear_minimizer(rng.normal(size=(100, d)))]
            )
            assert_encloses(found, posterior.predict(directions)[0][:, 0])
