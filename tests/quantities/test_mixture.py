"""Mixtures of models: moments of a member drawn with its weight."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import BaggingRegressor, VotingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

import gpcert
from gpcert.adapters import sklearn_ensembles
from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Probit
from gpcert.quantities import MixtureMoment
from gpcert.testing.adapter_contract import AdapterContract
from gpcert.testing.effort import examples

numbers = st.floats(-3.0, 3.0)
MOMENTS = {
    "variance": {"variance": 1.0},
    "std": {"std": 1.0},
    "band": {"mean": 1.0, "std": -2.0},
    "other band": {"mean": -1.0, "std": 2.0},
}


@settings(deadline=None, max_examples=examples(300))
@given(
    means=st.lists(
        st.tuples(numbers, st.floats(0.0, 1.0), st.floats(0.0, 1.0)), min_size=2, max_size=4
    ),
    spread=st.floats(0.0, 2.0),
    name=st.sampled_from(sorted(MOMENTS)),
)
def test_bounds_hold_what_the_moments_are(means, spread, name) -> None:
    """Statement 7.9, in rational numbers, at points of the parts' ranges."""
    K = len(means)
    weights = tuple((np.arange(1.0, K + 1) / np.arange(1.0, K + 1).sum()).tolist())
    quantity = MixtureMoment(weights, **MOMENTS[name])
    low = [np.array([m]) for m, _, _ in means] + [np.array([0.1 * spread])] * K
    high = [np.array([m + w]) for m, w, _ in means] + [
        np.array([0.1 * spread + w]) for _, w, _ in means
    ]
    at = [min(m + t * w, m + w) for m, w, t in means]
    v = [min(0.1 * spread + t * w, 0.1 * spread + w) for _, w, t in means]
    W, mu = [Fraction(w) for w in weights], [Fraction(x) for x in at]
    variance = sum(w * Fraction(x) for w, x in zip(W, v, strict=True)) + sum(
        W[j] * W[k] * (mu[j] - mu[k]) ** 2 for j in range(K) for k in range(j)
    )
    mean = sum(w * m for w, m in zip(W, mu, strict=True))
    below, above = (float(f(low, high)[0]) for f in (quantity.lowest, quantity.highest))
    rest_low = Fraction(below) - Fraction(quantity.mean) * mean
    rest_high = Fraction(above) - Fraction(quantity.mean) * mean
    if quantity.variance:
        assert rest_low <= variance <= rest_high
        return
    factor = Fraction(quantity.std)
    ends = (rest_low / factor, rest_high / factor)
    least, most = min(ends), max(ends)  # of the standard deviation
    assert least <= 0 or least**2 <= variance
    assert most >= 0
    assert variance <= most**2


def test_slopes_are_derivatives() -> None:
    y = np.array([[0.3, -0.4, 1.2, 0.5, 0.7, 0.2]])
    for factors in MOMENTS.values():
        quantity, step = MixtureMoment((0.2, 0.5, 0.3), **factors), 1e-6
        for part in range(6):
            moved = step * np.eye(6)[part]
            difference = (quantity.value(y + moved) - quantity.value(y - moved)) / (2 * step)
            np.testing.assert_allclose(quantity.slopes(y)[:, part], difference, rtol=1e-6)


def members(count=3):
    random, found = np.random.default_rng(0), []
    for k in range(count):
        Z = random.uniform(size=(12, 2))
        kernel = SquaredExponential([0.4 + 0.1 * k, 0.6])
        weights = np.linalg.solve(kernel.value(Z, Z) + 0.01 * np.eye(12), np.sin(5 * Z[:, 0]))
        found.append(gpcert.Posterior(kernel, Z, weights, training_noise=0.01, noise=0.01 * k))
    return tuple(found)


REGION = gpcert.Box([0.3, 0.3], [0.5, 0.5])


def test_ranges_and_verdicts(tmp_path) -> None:
    model = gpcert.Mixture(members(), [1.0, 2.0, 1.0])
    model.save(tmp_path / "model.npz")
    model = gpcert.load(tmp_path / "model.npz")
    assert model.weights == (0.25, 0.5, 0.25)
    mean, variance = (part[:, 0] for part in model.predict(REGION.sample(2000, 0)))
    std = np.sqrt(variance)
    values = {"mean": mean, "variance": variance, "std": std, "ucb": mean + 2 * std}
    for quantity, each in values.items():
        tol = 0.1 * np.ptp(each) + 0.001
        found = gpcert.prediction_range(model, REGION, quantity=quantity, tol=tol)
        assert found.minimum.lower <= each.min() <= each.max() <= found.maximum.upper
        assert found.converged
        assert found.maximum.upper - found.minimum.lower <= 1.5 * np.ptp(each) + 0.01
    cert = gpcert.certify(
        model, REGION.center, region=REGION, quantity="ucb", threshold=values["ucb"].max() + 0.1
    )
    assert cert.robust
    best = gpcert.maximize(model, REGION, quantity="lcb", tol=0.05)
    assert best.bound >= (mean - 2 * std).max()


def test_what_has_one_function_says_so() -> None:
    model = gpcert.Mixture(members())
    with pytest.raises(InputError, match=r"no output of its own.*\.members"):
        gpcert.certify(model, [0.5, 0.5], 0.1, delta=0.1)
    with pytest.raises(InputError, match="no output of its own"):
        gpcert.slope_ranges(model, REGION)
    with pytest.raises(InputError, match="of a mixture of models is not known; ask for"):
        gpcert.prediction_range(model, REGION, quantity="ei")
    with pytest.raises(InputError, match="two or more regressions"):
        gpcert.Mixture(members()[:1])
    with pytest.raises(InputError, match="3 positive numbers"):
        gpcert.Mixture(members(), [1.0, -1.0, 1.0])
    binary = gpcert.Posterior(SquaredExponential(1.0), [[0.0]], [1.0], likelihood=Probit())
    with pytest.raises(InputError, match="two or more regressions"):
        gpcert.Mixture((binary, binary))


RNG = np.random.default_rng(0)
X = RNG.uniform(size=(30, 2))
y = np.sin(5.0 * X[:, 0]) + X[:, 1]


def process(kernel):
    return GaussianProcessRegressor(kernel + WhiteKernel(0.01), optimizer=None, normalize_y=True)


class TestEnsembles(AdapterContract):
    adapter = sklearn_ensembles
    models = {  # noqa: RUF012
        "voting": lambda: VotingRegressor(
            [("a", process(RBF(0.5))), ("b", process(Matern(1.0, nu=2.5)))], weights=[1.0, 3.0]
        ).fit(X, y),
        "machines": lambda: VotingRegressor(
            [("a", make_pipeline(StandardScaler(), SVR())), ("b", process(RBF(0.5)))]
        ).fit(X, y),
        "bagging": lambda: BaggingRegressor(process(RBF(0.5)), 3, random_state=0).fit(X, y),
        "some features": lambda: BaggingRegressor(
            process(RBF(0.5)), 4, max_features=1, random_state=0
        ).fit(X, y),
    }
    refused = {  # noqa: RUF012
        "other parts": (
            lambda: VotingRegressor([("a", LinearRegression()), ("b", SVR())]).fit(X, y),
            "LinearRegression",
        ),
        "features twice": (
            lambda: BaggingRegressor(SVR(), 4, bootstrap_features=True, random_state=0).fit(X, y),
            "bootstrap_features=False",
        ),
    }
    not_ready = {"unfitted": (lambda: VotingRegressor([("a", SVR())]), "fit")}  # noqa: RUF012


def test_a_mean_alone_has_no_variance() -> None:
    model = TestEnsembles.models["machines"]()
    with pytest.raises(InputError, match="without a variance"):
        gpcert.prediction_range(model, X[0], 0.1, quantity="std")
    assert math.isfinite(gpcert.prediction_range(model, X[0], 0.1).maximum.upper)
