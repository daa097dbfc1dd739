"""Questions about several classes, end to end."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert
from gpcert.certificates import Status
from gpcert.errors import InputError
from gpcert.kernels import Matern, SquaredExponential
from gpcert.likelihoods import MultinomialProbit, Softmax
from gpcert.model.posterior import Posterior
from gpcert.models import GPClassifier
from gpcert.regions import Ball, Box
from gpcert.search import Budget, StopReason
from gpcert.testing.effort import THOROUGH, examples, variants
from tests.api.class_models import ROUNDING, check_ranges, tiny

CENTERS = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 1.8]])


def fitted(labels):
    rng = np.random.default_rng(0)
    X = np.concatenate([c + 0.4 * rng.normal(size=(6, 2)) for c in CENTERS])
    model = GPClassifier(SquaredExponential(1.2, 4.0), likelihood="softmax", max_epochs=0)
    return model.fit(X, np.repeat(labels, 6))


@pytest.fixture(scope="module")
def model():
    return fitted(["blue", "green", "red"])


def test_ranges_of_a_trained_classifier(model):
    region = Ball([1.0, 0.6], 0.2 if THOROUGH else 0.1)
    ranges = gpcert.prediction_ranges(model, region, tol=0.02)
    assert [r.output for r in ranges] == ["blue", "green", "red"]
    assert {r.quantity for r in ranges} == {"probability"}
    check_ranges(model, region, ranges, 0.02)
    np.testing.assert_allclose(
        model.predict_proba(ranges[2].argmax[None])[0, 2], ranges[2].maximum.lower, atol=0.03
    )


def test_one_class_is_asked_for_by_its_label(model):
    region = Ball([1.0, 0.6], 0.1)
    every = gpcert.prediction_ranges(model, region, tol=0.02)
    one = gpcert.prediction_range(model, region, tol=0.02, output="red")
    assert one.output == "red"
    assert one.minimum.lower <= every[2].minimum.upper
    assert one.minimum.upper >= every[2].minimum.lower
    with pytest.raises(InputError, match="output: expected the label of a class"):
        gpcert.prediction_range(model, region)
    with pytest.raises(InputError, match="output: expected one of"):
        gpcert.prediction_range(model, region, output="pink")
    with pytest.raises(InputError, match="output: expected one of"):
        gpcert.prediction_range(model, region, output=0)


def test_labels_that_are_numbers_but_not_indices():
    model = fitted([3, 5, 8])
    region = Ball([0.2, 0.1], 0.05)
    found = gpcert.prediction_range(model, region, output=5, tol=0.05)
    assert found.output == 5
    p = model.predict_proba([[0.2, 0.1]])[0]
    assert found.minimum.lower <= p[1] <= found.maximum.upper
    assert gpcert.certify(model, [0.0, 0.0], 0.02).decision == 3
    with pytest.raises(InputError, match="output"):
        gpcert.prediction_range(model, region, output=1)


@pytest.mark.parametrize("quantity", ["mean", "variance"])
@pytest.mark.parametrize("coupled", [True, False])
def test_latent_quantities_of_a_class(quantity, coupled):
    posterior = tiny(coupled=coupled, classes=("a", "b", "c"), offset=[0.0, 1.0, 2.0])
    region = Box([0.2], [0.5])
    found = gpcert.prediction_range(posterior, region, quantity=quantity, output="c", tol=1e-3)
    X = np.linspace(0.2, 0.5, 51)[:, None]
    values = posterior.predict(X)[quantity == "variance"][:, 2]
    assert found.minimum.lower <= values.min() + 1e-9
    assert found.maximum.upper >= values.max() - 1e-9
    assert found.minimum.upper == pytest.approx(values.min(), abs=2e-3)


def check_certificate(posterior, x, certificate, region, rng):
    labels = list(posterior.labels)
    X = region.sample(200, rng)
    winners = posterior.prediction(X).argmax(1)
    if certificate.decision is None:  # a busy machine: not even x was proved in time
        assert (certificate.status, certificate.reason) == (Status.UNKNOWN, StopReason.TIME)
        return
    own = labels.index(certificate.decision)
    assert own == posterior.prediction(x[None])[0].argmax()
    if certificate.status is Status.ROBUST:
        assert certificate.margin.lower > 0
        assert np.all(winners == own)
        gaps = np.sort(posterior.prediction(X), axis=1)
        assert certificate.margin.lower <= (gaps[:, -1] - gaps[:, -2]).min() + ROUNDING
    if certificate.status is Status.NOT_ROBUST:
        other = certificate.counterexample
        assert bool(region.contains(other))
        p = posterior.prediction(other[None])[0]
        assert p.argmax() != own or np.sort(p)[-2] > p[own] - ROUNDING


@settings(max_examples=examples(8, quick=2))
@given(seed=st.integers(0, 2**32 - 1), coupled=st.booleans(), probit=st.booleans())
def test_certificates_hold(seed, coupled, probit):
    rng = np.random.default_rng(seed)
    N, d, m = 4, 2, 3
    kernel = [SquaredExponential(1.0, 2.0), Matern(1.0, 2.5, 2.0)][seed % 2]
    posterior = Posterior(
        kernel,
        rng.normal(size=(N, d)),
        2.0 * rng.normal(size=(m, N)),
        0.15 * rng.normal(size=(m, 3, N)) if coupled else 0.3 * np.eye(N),
        likelihood=MultinomialProbit() if probit else Softmax(),
        coupled=coupled,
        classes=("a", "b", "c"),
    )
    x = rng.normal(size=d)
    for radius in (0.05, 0.5):
        region = Ball(x, radius)
        certificate = gpcert.certify(posterior, x, radius, budget=Budget(seconds=1.0))
        check_certificate(posterior, x, certificate, region, rng)


def test_certificates_of_a_trained_classifier(model):
    x = np.array([0.1, 0.0])
    certificate = gpcert.certify(model, x, 0.3)
    assert (certificate.status, certificate.decision) == (Status.ROBUST, "blue")
    certificate = gpcert.certify(model, x, 2.0)
    assert certificate.status is Status.NOT_ROBUST
    p = model.predict_proba(certificate.counterexample[None])[0]
    assert p.argmax() != 0
    assert model.predict(certificate.counterexample[None])[0] != "blue"


@variants("rtol", [0.6, 0.1])
def test_the_radius_of_a_trained_classifier(model, rtol):
    x = np.array([0.1, 0.0])
    radius = gpcert.certified_radius(model, x, rtol=rtol, budget=Budget(seconds=60.0))
    assert 0.3 <= radius.lower <= radius.upper <= 2.0
    X = Ball(x, radius.lower).sample(500, np.random.default_rng(0))
    assert np.all(model.predict(X) == "blue")
    assert model.predict(radius.counterexample[None])[0] != "blue"


def test_costs_of_mistakes(model):
    x = np.array([1.0, 0.6])
    p = model.predict_proba(x[None])[0]
    costs = {"blue": 1.0, "green": 1.0, "red": 1.0}
    for label, index in (("blue", 0), ("green", 1), ("red", 2)):
        weights = {**costs, label: 100.0 * p.max() / p[index]}
        assert gpcert.certify(model, x, 0.01, class_weight=weights).decision == label
        listed = [weights[c] for c in ("blue", "green", "red")]
        certificate = gpcert.certify(model, x, 0.05, class_weight=listed)
        assert certificate.decision == label
        X = Ball(x, 0.05).sample(100, np.random.default_rng(0))
        if certificate.status is Status.ROBUST:
            assert np.all((model.predict_proba(X) * listed).argmax(1) == index)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 0.5}, "threshold: expected two classes"),
        ({"delta": 0.1}, "delta: expected a regression"),
        ({"class_weight": {"blue": 1.0}}, "missing"),
        ({"class_weight": [1.0, 2.0]}, "3 positive weights"),
        ({"class_weight": [1.0, 0.0, 1.0]}, "3 positive weights"),
        ({"class_weight": [1.0, np.nan, 1.0]}, "class_weight"),
    ],
)
def test_decisions_that_are_refused(model, options, message):
    with pytest.raises(InputError, match=message):
        gpcert.certify(model, [0.0, 0.0], 0.1, **options)


def test_inputs_that_are_no_numbers_are_refused(model):
    with pytest.raises(InputError, match="finite"):
        gpcert.certify(model, [np.nan, 0.0], 0.1)
    with pytest.raises(InputError):
        gpcert.prediction_ranges(model, Ball([np.nan, 0.0], 0.1))
    with pytest.raises(InputError):
        gpcert.prediction_ranges(model, Ball([0.0], 0.1))


@variants("budget", [Budget(boxes=1), Budget(seconds=0.05), Budget(boxes=10)], quick=2)
def test_a_budget_leaves_valid_bounds(model, budget):
    region = Ball([1.0, 0.6], 1.5)
    p = model.predict_proba(region.sample(300, np.random.default_rng(0)))
    for c, found in enumerate(gpcert.prediction_ranges(model, region, budget=budget)):
        assert not found.converged
        assert found.minimum.lower <= p[:, c].min()
        assert found.maximum.upper >= p[:, c].max()


def test_one_box_is_enough_for_a_status(model):
    certificate = gpcert.certify(model, [1.0, 0.6], 0.05, budget=Budget(boxes=1))
    assert certificate.status in set(Status)


def test_an_interrupt_leaves_valid_bounds(model, monkeypatch):
    from gpcert.enclosures.classes import bounds

    calls, original = itertools.count(), bounds.ClassBounds.lower

    def lower(self, weights, target):
        if next(calls) == 9:
            raise KeyboardInterrupt
        return original(self, weights, target)

    monkeypatch.setattr(bounds.ClassBounds, "lower", lower)
    region = Ball([1.0, 0.6], 1.0)
    ranges = gpcert.prediction_ranges(model, region, tol=1e-4)
    p = model.predict_proba(region.sample(100, np.random.default_rng(0)))
    for c, found in enumerate(ranges):
        assert found.reason is StopReason.INTERRUPTED
        assert found.minimum.lower <= p[:, c].min()
        assert found.maximum.upper >= p[:, c].max()
