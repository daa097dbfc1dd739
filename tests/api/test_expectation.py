"""`expectation`, and probabilities that count the model's own uncertainty."""

import numpy as np
import pytest
from scipy import stats
from scipy.stats import norm, truncnorm, uniform

import gpcert
from gpcert.errors import InputError
from gpcert.kernels import Linear, Matern, SquaredExponential
from gpcert.models import GPRegressor

BUMP = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0]], weights=[1.0])
X = np.random.default_rng(0).uniform(-2.0, 2.0, (12, 2))
Y = np.sin(X[:, 0]) + 0.3 * X[:, 1] ** 2
NOISY = gpcert.as_posterior(
    GPRegressor(SquaredExponential([1.2, 1.5]), noise=0.01, max_epochs=0).fit(X, Y)
)
LAWS = [norm(0, 0.8), uniform(-1.0, 2.0)]


def predicted(Z):
    mean, variance = NOISY.predict(Z)
    return mean[:, 0], np.sqrt(variance[:, 0])


def sample(count=100_000):
    rng = np.random.default_rng(1)
    return np.stack([law.rvs(size=count, random_state=rng) for law in LAWS], axis=1)


def test_closed_forms():
    found = gpcert.expectation(BUMP, [norm(0, 1)], rtol=1e-6)
    assert found.lower <= 0.5**0.5 <= found.upper <= found.lower * (1 + 1e-6)
    two = gpcert.Posterior(SquaredExponential([1.0, 2.0]), points=[[0.0, 1.0]], weights=[3.0])
    found = gpcert.expectation(two, [norm(1, 2), norm(0, 1)], tol=1e-4)
    exact = 3.0 * np.exp(-0.1) / 5**0.5 * np.exp(-0.5 / 5.0) / (1.25**0.5)
    assert found.lower <= exact <= found.upper <= found.lower + 1e-4
    box = gpcert.Posterior(Matern(1.0, nu=1.5), points=[[0.0]], weights=[1.0])
    found = gpcert.expectation(box, [uniform(0, 1)], tol=1e-4)
    a = 3**0.5  # the mean of (1 + a x) exp(-a x)
    exact = (2.0 - (2.0 + a) * np.exp(-a)) / a
    assert found.lower <= exact <= found.upper <= found.lower + 1e-4


@pytest.mark.parametrize(
    ("quantity", "tol"), [("mean", 1e-3), ("std", 3e-3), ("variance", 3e-3), ("ucb", 0.01)]
)
def test_against_samples(quantity, tol):
    Z = sample()
    mean, std = predicted(Z)
    values = {"mean": mean, "std": std, "variance": std**2, "ucb": mean + 2 * std}[quantity]
    found = gpcert.expectation(NOISY, LAWS, quantity, tol=tol)
    slack = 5.0 * values.std() / np.sqrt(len(Z))
    assert found.converged
    assert found.lower - slack <= values.mean() <= found.upper + slack
    assert found.upper - found.lower <= tol


@pytest.mark.parametrize("side", ["below", "above"])
def test_predictions_count_the_models_uncertainty(side):
    Z = sample()
    mean, std = predicted(Z)
    sign = 1.0 if side == "below" else -1.0
    values = norm.cdf(sign * (-0.5 - mean) / std)
    found = gpcert.failure_probability(NOISY, LAWS, -0.5, quantity="prediction", side=side)
    slack = 5.0 * values.std() / np.sqrt(len(Z))
    assert found.lower - slack <= values.mean() <= found.upper + slack
    assert found.upper <= 1.01 * found.lower
    narrow = gpcert.failure_probability(
        NOISY, LAWS, -0.5, quantity="prediction", side=side, tol=0.1
    )
    assert narrow.lower <= found.upper
    assert found.lower <= narrow.upper


def test_bounds_of_a_band_surround_the_mean():
    found = {
        q: gpcert.failure_probability(NOISY, LAWS, -0.2, quantity=q, rtol=0.05)
        for q in ("ucb", "mean", "lcb")
    }
    assert found["ucb"].lower <= found["mean"].upper
    assert found["mean"].lower <= found["lcb"].upper
    Z = sample()
    for q, reach in (("ucb", 2.0), ("lcb", -2.0)):
        mean, std = predicted(Z)
        share = np.mean(mean + reach * std < -0.2)
        slack = 5.0 * np.sqrt(share / len(Z))
        assert found[q].lower - slack <= share <= found[q].upper + slack


def test_probabilities_of_classes_add_up():
    labels = (X.sum(axis=1) > 0).astype(int)
    model = gpcert.models.GPClassifier(SquaredExponential(1.0), max_epochs=0).fit(X, labels)
    zero, one = (
        gpcert.expectation(model, LAWS, "probability", output=label, tol=0.02) for label in (0, 1)
    )
    assert zero.lower + one.lower <= 1.0 <= zero.upper + one.upper


def test_record(tmp_path):
    found = gpcert.expectation(BUMP, [norm(0, 1)])
    found.save(tmp_path / "e.json")
    assert repr(gpcert.load(tmp_path / "e.json")) == repr(found)
    assert "proved" in str(found)
    short = gpcert.expectation(NOISY, LAWS, tol=1e-12, budget=gpcert.Budget(boxes=50))
    assert short.lower < short.upper
    assert not short.converged


def test_what_has_no_bound_everywhere():
    line = gpcert.Posterior(Linear(1.0), points=[[1.0]], weights=[2.0])
    with pytest.raises(InputError, match="such as truncnorm"):
        gpcert.expectation(line, [norm(1, 1)])
    found = gpcert.expectation(line, [truncnorm(-2, 2, 1.0, 1.0)], tol=1e-6)
    assert found.lower <= 2.0 <= found.upper <= found.lower + 1e-6


def test_options_that_are_refused():
    with pytest.raises(InputError, match="a band has two ends"):
        gpcert.expectation(BUMP, [norm()], "band")
    with pytest.raises(InputError, match="discrete"):
        gpcert.expectation(BUMP, [stats.binom(3, 0.5)])
    with pytest.raises(InputError, match="paving"):
        gpcert.failure_probability(BUMP, [norm()], 0.5, quantity="prediction", paving=True)
