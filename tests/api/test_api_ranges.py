"""`prediction_range` on models of scikit-learn, in the user's units."""

import math

import numpy as np
import pytest

import gpcert
from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential
from gpcert.search import StopReason
from gpcert.testing.effort import variants

SLACK = 1e-7
"""The library's own rounding in the reference values."""


def assert_range(found, samples, tol):
    assert found.minimum.lower <= samples.min() + SLACK
    assert found.maximum.upper >= samples.max() - SLACK
    assert found.minimum.lower <= found.minimum.upper
    assert found.maximum.lower <= found.maximum.upper
    assert found.converged
    assert found.minimum.width <= tol
    assert found.maximum.width <= tol
    # not vacuous: samples come near both ends
    assert found.minimum.upper >= samples.min() - 0.2 * np.ptp(samples) - tol
    assert found.maximum.lower <= samples.max() + 0.2 * np.ptp(samples) + tol


@variants("norm", [np.inf, 2, "inf", 1, 3], quick=3)
def test_probability_in_every_norm(classifier, norm):
    ball = gpcert.Ball([0.3, 0.2], 0.4, norm=norm)
    found = gpcert.prediction_range(classifier, ball, tol=0.02)
    assert found.quantity == "probability"
    assert_range(found, classifier.predict_proba(ball.sample(2000, 0))[:, 1], 0.02)
    for point, value in ((found.argmin, found.minimum.upper), (found.argmax, found.maximum.lower)):
        assert ball.contains(point)
        assert classifier.predict_proba(point[None])[0, 1] == pytest.approx(value, abs=SLACK)


def test_pipeline_in_the_users_units(scaled_classifier):
    center = np.array([55.0, 5.002])
    half = np.array([40.0, 0.003])
    box = gpcert.Box(center - half, center + half)
    found = gpcert.prediction_range(scaled_classifier, box, tol=0.02)
    assert_range(found, scaled_classifier.predict_proba(box.sample(2000, 0))[:, 1], 0.02)


def test_every_quantity_of_a_classifier(classifier):
    box = gpcert.Box([0.0, -0.3], [0.4, 0.3])
    samples = box.sample(2000, 0)
    mean, variance = classifier.latent_mean_and_variance(samples)
    assert_range(gpcert.prediction_range(classifier, box, tol=0.05, quantity="mean"), mean, 0.05)
    found = gpcert.prediction_range(classifier, box, tol=0.05, quantity="variance")
    assert_range(found, variance, 0.05)


def test_regression(regressor):
    box = gpcert.Box([-0.2, 0.0], [0.3, 0.5])
    mean, std = regressor.predict(box.sample(2000, 0), return_std=True)
    found = gpcert.prediction_range(regressor, box, tol=0.02)
    assert found.quantity == "mean"
    assert_range(found, mean, 0.02)
    found = gpcert.prediction_range(regressor, box, tol=0.02, quantity="variance")
    assert_range(found, std**2, 0.02)


def test_several_outputs(many_outputs):
    box = gpcert.Box([-0.2, 0.0], [0.3, 0.5])
    samples = many_outputs.predict(box.sample(2000, 0))
    together = gpcert.prediction_ranges(many_outputs, box, tol=0.02)
    assert len(together) == 3
    for c, found in enumerate(together):
        assert_range(found, samples[:, c], 0.02)
        alone = gpcert.prediction_range(many_outputs, box, tol=0.02, output=c)
        assert_range(alone, samples[:, c], 0.02)


def test_features_and_domain(classifier):
    x = np.array([0.9, 0.9])
    ball = gpcert.Ball(x, 0.5, features=[0], domain=(-1.0, 1.0))
    found = gpcert.prediction_range(classifier, ball, tol=0.02)
    samples = ball.sample(1000, 0)
    assert np.all(samples[:, 1] == 0.9)
    assert samples[:, 0].max() <= 1.0
    assert_range(found, classifier.predict_proba(samples)[:, 1], 0.02)
    assert found.argmin[1] == 0.9


def test_one_side_only(classifier):
    box = gpcert.Box([0.0, -0.3], [0.4, 0.3])
    samples = classifier.predict_proba(box.sample(1000, 0))[:, 1]
    low = gpcert.prediction_range(classifier, box, sides="minimum")
    assert low.argmax is None
    assert low.minimum.width <= 0.01
    assert low.minimum.lower <= samples.min() + SLACK
    assert low.maximum.lower <= samples.max() + SLACK
    assert low.maximum.upper == np.inf
    high = gpcert.prediction_range(classifier, box, sides="maximum")
    assert high.argmin is None
    assert high.maximum.width <= 0.01
    assert high.maximum.upper >= samples.max() - SLACK
    assert high.minimum.lower == -np.inf
    assert high.minimum.upper >= samples.min() - SLACK


def test_a_budget_ends_early_with_valid_bounds(classifier):
    box = gpcert.Box([-1.5, -1.5], [1.5, 1.5])
    samples = classifier.predict_proba(box.sample(2000, 0))[:, 1]
    found = gpcert.prediction_range(
        classifier, box, tol=1e-9, budget=gpcert.Budget(seconds=None, boxes=9)
    )
    assert not found.converged
    assert found.reason is StopReason.BOXES
    assert found.boxes in (9, 10)
    assert found.minimum.lower <= samples.min() + SLACK
    assert found.maximum.upper >= samples.max() - SLACK


def test_torch_gives_the_same_range(classifier):
    pytest.importorskip("torch")
    box = gpcert.Box([0.0, -0.3], [0.4, 0.3])
    here = gpcert.prediction_range(classifier, box, tol=0.02)
    there = gpcert.prediction_range(classifier, box, tol=0.02, backend="torch")
    assert there.converged
    for one, two in ((here.minimum, there.minimum), (here.maximum, there.maximum)):
        assert max(one.lower, two.lower) <= min(one.upper, two.upper)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"quantity": "entropy"},
            "quantity: expected one of 'probability', 'response', 'mean', 'variance'",
        ),
        ({"sides": "left"}, "sides: expected one of 'both', 'minimum', 'maximum'"),
        ({"output": 1}, r"output: expected one of \['no', 'yes'\], got 1"),
        ({"output": "maybe"}, r"output: expected one of \['no', 'yes'\]"),
        ({"output": np.array([1, 2])}, r"output: expected one of \['no', 'yes'\]"),
        ({"output": ["yes"]}, r"output: expected one of \['no', 'yes'\]"),
        ({"quantity": "mean", "output": "yes"}, "output: expected none"),
        ({"quantity": ["mean"]}, "quantity: expected"),
        ({"backend": "jax"}, "backend: expected 'numpy'"),
        ({"tol": -1.0}, "tol: expected"),
        ({"tol": np.nan}, "tol: expected"),
    ],
)
def test_bad_options(classifier, options, message):
    with pytest.raises(InputError, match=message):
        gpcert.prediction_range(classifier, gpcert.Box([0, 0], [1, 1]), **options)


def test_bad_regions_and_quantities(classifier, regressor):
    with pytest.raises(InputError, match="use prediction_range_many"):
        gpcert.prediction_range(classifier, ([0, 0], [1, 1]))
    with pytest.raises(InputError, match="expected 2 features"):
        gpcert.prediction_range(classifier, gpcert.Box([0], [1]))
    with pytest.raises(InputError, match="no probability; use 'mean'"):
        gpcert.prediction_range(regressor, gpcert.Box([0, 0], [1, 1]), quantity="probability")


def test_a_known_function_has_the_variance_of_its_prior():
    plain = gpcert.Posterior(SquaredExponential(1.0, 2.0), [[0.0, 0.0]], [1.0], scale=3.0)
    box = gpcert.Box([0, 0], [1, 1])
    found = gpcert.prediction_range(plain, box, quantity="variance", tol=0.01)
    assert found.minimum.lower <= 18.0 <= found.maximum.upper
    assert found.maximum.upper - found.minimum.lower <= 0.01


def test_a_maximum_of_nothing_has_no_sign():
    bump = gpcert.Posterior(SquaredExponential(1.0), [[0.0]], [1.0], [[1.0]])
    found = gpcert.prediction_range(bump, [0.0], 0.0, quantity="std")  # exactly 0 at its point
    assert found.maximum.lower == 0.0
    assert math.copysign(1.0, found.maximum.lower) == 1.0
    assert " -0" not in str(found)
