"""`certified_radius`: a proved lower end and an attained upper end."""

from dataclasses import replace

import numpy as np
import pytest

import gpcert
from gpcert.api import radius as radius_search
from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential
from gpcert.search import StopReason
from gpcert.search.local_search import Descent
from gpcert.testing.effort import crossed, variants

TWO_BUMPS = gpcert.Posterior(
    SquaredExponential(1.0), points=[[0.0, 0.0], [3.0, 0.0]], weights=[1.0, -1.0]
)
"""The mean changes sign at x_0 = 1.5, whatever x_1."""

POSITIVE = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0, 0.0]], weights=[1.0], offset=0.5)


@variants("norm", [np.inf, 2, 1, 3], quick=2)
def test_known_radius_in_every_norm(norm):
    found = gpcert.certified_radius(TWO_BUMPS, [0.5, 0.3], norm=norm, threshold=0.0, rtol=0.02)
    assert found.lower <= 1.0 <= found.upper
    assert found.lower >= 0.97 * found.upper
    assert found.norm == norm
    assert TWO_BUMPS.predict(found.counterexample[None])[0][0, 0] < 0
    distance = np.linalg.norm(found.counterexample - [0.5, 0.3], ord=norm)
    assert distance == pytest.approx(found.upper, rel=1e-12)
    assert found.upper >= distance * (1 - 1e-15)


@variants("norm", [np.inf, 2])
def test_both_ends_of_a_classifier(classifier, norm):
    for x in np.random.default_rng(4).uniform(-1, 1, (3, 2)):
        options = {"norm": norm, "rtol": 0.05}
        found = gpcert.certified_radius(classifier, x, **options)
        assert 0 < found.lower <= found.upper < np.inf
        assert found.lower >= 0.94 * found.upper
        assert found.reason is StopReason.CONVERGED
        label = classifier.predict(x[None])[0]
        assert found.decision == label
        assert classifier.predict(found.counterexample[None])[0] != label
        inside = gpcert.Ball(x, found.lower, norm=norm)
        assert np.all(classifier.predict(inside.sample(2000, 0)) == label)
        again = gpcert.certify(classifier, x, found.lower, norm=norm)
        assert again.status is gpcert.Status.ROBUST
        beyond = gpcert.certify(classifier, x, found.upper, norm=norm)
        assert beyond.status is not gpcert.Status.ROBUST


def test_radius_of_a_hole_hidden_from_every_attack(monkeypatch):
    """A plateau with a hole at distance 0.3 that random points miss, and no local search: only
    proofs count."""
    length, hole = 0.002, 0.8
    grid = np.arange(-0.3, 1.3, length)
    points = np.append(grid, hole)[:, None]
    weights = np.append(np.full(len(grid), 1 / np.sqrt(2 * np.pi)), -1.01)
    model = gpcert.Posterior(SquaredExponential(length), points, weights)
    monkeypatch.setattr(radius_search, "attack", lambda function, ball, **_: ball.center)
    monkeypatch.setattr(Descent, "improved", lambda _, g, question, points: points)
    found = gpcert.certified_radius(model, [0.5], threshold=0.0, max_radius=0.5)
    assert found.lower <= 0.3 <= found.upper + 0.01
    assert 0.28 < found.lower <= found.upper < 0.31
    assert model.predict(found.counterexample[None])[0][0, 0] < 0


def test_features_and_threshold(classifier):
    x = np.array([0.4, 0.5])
    found = gpcert.certified_radius(classifier, x, features=[0], threshold=0.6, rtol=0.05)
    assert found.counterexample[1] == x[1]
    here = classifier.predict_proba(x[None])[0, 1] > 0.6
    there = classifier.predict_proba(found.counterexample[None])[0, 1] > 0.6
    assert here != there
    again = gpcert.certify(classifier, x, found.lower, features=[0], threshold=0.6)
    assert again.status is gpcert.Status.ROBUST


def test_regression_delta(regressor):
    x = np.array([0.1, 0.2])
    found = gpcert.certified_radius(regressor, x, delta=0.1, rtol=0.05)
    assert 0 < found.lower <= found.upper < np.inf
    moved = regressor.predict(found.counterexample[None])[0] - regressor.predict(x[None])[0]
    assert abs(moved) > 0.1 - 1e-9
    again = gpcert.certify(regressor, x, found.lower, delta=0.1)
    assert again.status is gpcert.Status.ROBUST


@crossed({"norm": [1, 2, np.inf], "max_radius": [0.3, 2.0, 7.0]})
def test_no_counter_example_up_to_the_largest_radius(norm, max_radius):
    found = gpcert.certified_radius(
        POSITIVE, [0.1, 0.2], norm=norm, threshold=0.0, max_radius=max_radius
    )
    assert found.lower == max_radius
    assert found.upper == np.inf
    assert found.counterexample is None
    assert found.reason is StopReason.CONVERGED


def test_domain_without_a_counter_example():
    found = gpcert.certified_radius(POSITIVE, [0.1, 0.2], threshold=0.0, domain=(0.0, 1.0))
    assert found.upper == np.inf
    assert found.lower >= 0.9


def test_largest_radius_below_the_true_one():
    found = gpcert.certified_radius(TWO_BUMPS, [0.5, 0.3], threshold=0.0, max_radius=0.6)
    assert (found.lower, found.upper) == (0.6, np.inf)


def test_a_small_budget_keeps_both_ends_valid(classifier):
    x = np.array([0.6, 0.3])
    budget = gpcert.Budget(seconds=0.02)
    found = gpcert.certified_radius(classifier, x, budget=budget)
    assert 0 <= found.lower <= found.upper
    if found.lower:
        ball = gpcert.Ball(x, found.lower)
        assert np.all(classifier.predict(ball.sample(2000, 0)) == found.decision)


def test_interrupt_keeps_what_is_known(monkeypatch):
    certify_rule, calls = radius_search.certify_rule, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) > 3:
            raise KeyboardInterrupt
        return certify_rule(*arguments)

    monkeypatch.setattr(radius_search, "certify_rule", interrupted)
    found = gpcert.certified_radius(TWO_BUMPS, [0.5, 0.3], threshold=0.0)
    assert found.reason is StopReason.INTERRUPTED
    assert found.lower <= 1.0 <= found.upper


@pytest.mark.parametrize("at", [1, 2, 5, 9, 16])
def test_no_search_follows_one_that_was_interrupted(monkeypatch, at):
    """A search catches Ctrl-C itself: its certificate says so, and that ends the call."""
    certify_rule, calls = radius_search.certify_rule, []

    def interrupted(*arguments):
        calls.append(1)
        found = certify_rule(*arguments)
        return replace(found, reason=StopReason.INTERRUPTED) if len(calls) == at else found

    monkeypatch.setattr(radius_search, "certify_rule", interrupted)
    found = gpcert.certified_radius(TWO_BUMPS, [0.5, 0.3], threshold=0.0, rtol=1e-4)
    assert found.reason is StopReason.INTERRUPTED
    assert len(calls) == at
    assert found.lower <= 1.0 <= found.upper


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rtol": 1.0}, r"rtol: expected a number in \[0, 1\)"),
        ({"rtol": np.nan}, "rtol: expected"),
        ({"max_radius": 0.0}, "max_radius: expected a positive number"),
        ({"max_radius": np.inf}, "max_radius: expected finite"),
        ({"norm": 0.3}, "norm: expected p >= 1"),
        ({"domain": (1.0, 2.0)}, "inside the domain"),
        ({"threshold": None}, "needs either delta="),
        ({"backend": "nope"}, "backend: expected"),
    ],
)
def test_bad_inputs(options, message):
    with pytest.raises(InputError, match=message):
        gpcert.certified_radius(TWO_BUMPS, [0.5, 0.3], **({"threshold": 0.0} | options))


def test_bad_points():
    with pytest.raises(InputError, match="x: expected 2 features"):
        gpcert.certified_radius(TWO_BUMPS, [0.5], threshold=0.0)
    with pytest.raises(InputError, match="x: expected finite"):
        gpcert.certified_radius(TWO_BUMPS, [0.5, np.inf], threshold=0.0)


def test_a_far_first_counterexample_does_not_leave_the_upper_end_far(monkeypatch):
    """The attack's bracket shrinks to a part of itself, not of where it began."""
    for name in ("try_boxes", "prove"):
        monkeypatch.setattr(radius_search.RadiusSearch, name, lambda *_: StopReason.BOXES)
    slope = 1.0 / 8.0
    model = gpcert.Posterior(
        SquaredExponential(1e6), points=[[0.0] * 8], weights=[0.0], slope=[[slope] * 8], offset=1.0
    )
    found = gpcert.certified_radius(
        model, [0.0] * 8, threshold=0.0, max_radius=3.0 * 2.0**20, budget=gpcert.Budget(boxes=1)
    )
    assert 1.0 <= found.upper < 1.01
