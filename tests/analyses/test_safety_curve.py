"""Safety curves hold the sampled truth, grow with the radius, and agree with single searches."""

from dataclasses import replace

import numpy as np
import pytest

import gpcert
from gpcert.analyses import safety
from gpcert.certificates import Interval, Status
from gpcert.errors import InputError
from gpcert.regions import Ball
from gpcert.testing.effort import THOROUGH, variants

UNPROVED = Interval(-1.0, 1.0)

RADII = [0.0, 0.1, 0.3, 0.6, 1.0, 1.5] if THOROUGH else [0.0, 0.1, 0.4, 1.5]


def check(curve, value, x, **shape):
    """Bounds hold samples, are monotone, attained where they say, and verdicts follow."""
    low = np.array([[s.minimum.lower, s.minimum.upper] for s in curve])
    high = np.array([[s.maximum.lower, s.maximum.upper] for s in curve])
    assert np.all(np.diff(low, axis=0) <= 0)
    assert np.all(np.diff(high, axis=0) >= 0)
    for step in curve:
        ball = Ball(x, step.radius, **shape)
        values = value(ball.sample(100, 0))
        assert step.minimum.lower <= values.min() + 1e-12
        assert step.maximum.upper >= values.max() - 1e-12
        assert ball.contains(step.argmin)
        assert ball.contains(step.argmax)
        assert value(step.argmin[None])[0] <= step.minimum.upper + 1e-9
        assert value(step.argmax[None])[0] >= step.maximum.lower - 1e-9
        assert ball.contains(step.attack_point)
        assert step.minimum.lower <= step.attack + 1e-9 <= step.maximum.upper + 2e-9
    order = ["ROBUST", "UNKNOWN", "NOT_ROBUST"]
    places = [order.index(step.status.name) for step in curve]
    assert places == sorted(places)


@variants("norm", [np.inf, 2])
def test_two_classes(binary, X, norm):
    curve = gpcert.safety_curve(binary, X[0], RADII, norm=norm)
    check(curve, lambda P: binary.prediction(P)[:, 0], X[0], norm=norm)
    for step in curve:
        expected = gpcert.certify(binary, X[0], step.radius, norm=norm).status
        assert step.status is expected
        single = gpcert.prediction_range(binary, Ball(X[0], step.radius, norm=norm))
        assert abs(single.minimum.lower - step.minimum.lower) <= 0.02
        assert abs(single.maximum.upper - step.maximum.upper) <= 0.02
    assert curve.complete
    assert curve.first_unsafe is None or curve.safe_up_to < curve.first_unsafe


def test_regression_and_classes(regression, softmax, X):
    curve = gpcert.safety_curve(regression, X[1], RADII, delta=0.3)
    check(curve, lambda P: regression.predict(P)[0][:, 0], X[1])
    mean = float(regression.predict(X[1:2])[0][0, 0])
    assert (curve[0].lower_level, curve[0].upper_level) == pytest.approx((mean - 0.3, mean + 0.3))
    quick = gpcert.Budget(boxes=40)
    curve = gpcert.safety_curve(softmax, X[0], [0.0, 0.05, 0.1], attack="pgd", budget=quick)
    column = softmax.labels.index(curve[0].decision)
    check(curve, lambda P: softmax.prediction(P)[:, column], X[0])


def test_a_verdict_that_is_not_known_follows_from_other_radii(binary, X, monkeypatch):
    plain, asked = safety.certify, []

    def hasty(model, x, region, **words):  # as if the first search had met its budget
        found = plain(model, x, region=region, **words)
        asked.append(region.radius)
        return found if len(asked) > 1 else replace(found, status=Status.UNKNOWN, margin=UNPROVED)

    monkeypatch.setattr(safety, "certify", hasty)
    curve = gpcert.safety_curve(binary, X[0], np.linspace(0.0, 1e-3, 8), tol=0.5)
    assert len(asked) > 1
    assert all(step.status is Status.ROBUST for step in curve)


@variants("attack", ["best", "gpfgs"])
def test_no_attack_is_beyond_what_is_attained(binary, regression, X, attack):
    for model, rule in ((binary, {}), (regression, {"delta": 0.3})):
        beaten = 0
        for x in X[:3]:
            curve = gpcert.safety_curve(model, x, RADII, tol=0.5, attack=attack, **rule)
            check(curve, lambda P, model=model: model.prediction(P)[:, 0], x)
            for step in curve:
                if step.radius > 0:
                    assert step.minimum.upper <= step.attack <= step.maximum.lower
                    beaten += np.array_equal(step.argmin, step.attack_point)
                    beaten += np.array_equal(step.argmax, step.attack_point)
        assert beaten or attack != "best"  # searches that end early find less than the attack


def test_settled_radii_are_not_searched(binary, X, monkeypatch):
    calls = []
    plain = safety.prediction_range

    def counted(*arguments, **options):
        calls.append(options["sides"])
        return plain(*arguments, **options)

    monkeypatch.setattr(safety, "prediction_range", counted)
    curve = gpcert.safety_curve(binary, X[0], np.linspace(0.1, 0.11, 30), tol=0.05)
    assert len(calls) < 6
    check(curve, lambda P: binary.prediction(P)[:, 0], X[0])


def test_an_interrupt_leaves_bounds_that_hold(binary, X, monkeypatch):
    plain = safety.prediction_range
    calls = []

    def interrupted(*arguments, **options):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return plain(*arguments, **options)

    monkeypatch.setattr(safety, "prediction_range", interrupted)
    curve = gpcert.safety_curve(binary, X[0], RADII)
    assert not curve.complete
    assert len(curve) == len(RADII)
    check(curve, lambda P: binary.prediction(P)[:, 0], X[0])


def test_saves_loads_and_draws(binary, X, tmp_path):
    from matplotlib.figure import Figure

    curve = gpcert.safety_curve(binary, X[0], RADII[:3])
    curve.save(tmp_path / "curve.json")
    again = gpcert.load(tmp_path / "curve.json")
    assert again.to_frame().equals(curve.to_frame())
    ax = Figure().subplots()
    assert curve.plot(ax) is ax
    # between two radii a line would claim what nobody proved
    steps = {line.get_label(): line.get_drawstyle() for line in ax.lines}
    assert {steps[f"{end}: proved"] for end in ("maximum", "minimum")} == {"steps-pre"}
    assert {steps[f"{end}: attained"] for end in ("maximum", "minimum")} == {"steps-post"}
    assert len(ax.lines) >= 6
    assert "safe up to" in str(curve)


@pytest.mark.parametrize("radii", [[], [-0.1], [float("nan")], 0.5])
def test_bad_radii(binary, X, radii):
    with pytest.raises(InputError, match="radii"):
        gpcert.safety_curve(binary, X[0], radii)


def test_a_table_of_points_is_refused(binary, X):
    with pytest.raises(InputError, match="one point"):
        gpcert.safety_curve(binary, X, RADII)
