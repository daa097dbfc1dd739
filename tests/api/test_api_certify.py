"""`certify`: verdicts agree with the model's own decisions on samples."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.linear_model import LogisticRegression

import gpcert
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.testing.effort import examples, variants

ROBUST, NOT_ROBUST, UNKNOWN = gpcert.Status.ROBUST, gpcert.Status.NOT_ROBUST, gpcert.Status.UNKNOWN


def points(seed, n=8, size=1.2):
    return np.random.default_rng(seed).uniform(-size, size, (n, 2))


def assert_verdict(certificate, ball, same):
    """`same(X)`: whether the decision at each row is that at the centre."""
    assert certificate.status is not UNKNOWN
    if certificate.status is ROBUST:
        assert np.all(same(ball.sample(1500, 0)))
        assert certificate.counterexample is None
        assert 0 < certificate.margin.lower <= certificate.margin.upper
    else:
        assert ball.contains(certificate.counterexample)
        assert not same(certificate.counterexample[None])[0]
        assert certificate.margin.lower <= certificate.margin.upper < 0


@pytest.mark.parametrize("norm", [1, 2, 3, np.inf])
def test_default_decision_is_that_of_predict(classifier, norm):
    statuses = set()
    for x in points(int(min(norm, 9))):
        ball = gpcert.Ball(x, 0.3, norm=norm)
        certificate = gpcert.certify(classifier, x, radius=0.3, norm=norm)
        label = classifier.predict(x[None])[0]
        assert certificate.decision == label
        assert_verdict(certificate, ball, lambda X, label=label: classifier.predict(X) == label)
        statuses.add(certificate.status)
    assert statuses == {ROBUST, NOT_ROBUST}


def test_pipeline_in_the_users_units(scaled_classifier):
    center = np.array([5.0, 5.0])
    for seed in range(6):
        x = center + np.random.default_rng(seed).uniform(-1, 1, 2) * [120.0, 0.012]
        half = np.array([30.0, 0.003])
        box = gpcert.Box(x - half, x + half)
        label = scaled_classifier.predict(x[None])[0]
        certificate = gpcert.certify(scaled_classifier, x, region=box)
        assert certificate.decision == label
        assert_verdict(
            certificate, box, lambda X, label=label: scaled_classifier.predict(X) == label
        )


def test_features_and_domain(classifier):
    for x in points(5):
        options = {"features": [1], "domain": (-1.2, [1.2, 1.2])}
        ball = gpcert.Ball(x, 0.6, **options)
        label = classifier.predict(x[None])[0]
        certificate = gpcert.certify(classifier, x, 0.6, **options)
        assert_verdict(certificate, ball, lambda X, label=label: classifier.predict(X) == label)
        if certificate.counterexample is not None:
            assert certificate.counterexample[0] == x[0]


@variants("threshold", [0.2, 0.5, 0.7], quick=2)
def test_threshold(classifier, threshold):
    def decide(X):
        return classifier.predict_proba(X)[:, 1] > threshold

    for x in points(6):
        ball = gpcert.Ball(x, 0.25, norm=2)
        certificate = gpcert.certify(classifier, x, 0.25, norm=2, threshold=threshold)
        here = decide(x[None])[0]
        assert certificate.decision == classifier.classes_[int(here)]
        assert_verdict(certificate, ball, lambda X, here=here: decide(X) == here)


def test_class_weights_move_the_decision(classifier):
    """Class 2 is chosen where `w2 pi > w1 (1 - pi)`."""
    weights = {"no": 3.0, "yes": 1.0}

    def decide(X):
        pi = classifier.predict_proba(X)[:, 1]
        return weights["yes"] * pi > weights["no"] * (1 - pi)

    changed = 0
    for x in points(7, n=12):
        ball = gpcert.Ball(x, 0.15)
        certificate = gpcert.certify(classifier, x, 0.15, class_weight=weights)
        pair = gpcert.certify(classifier, x, 0.15, class_weight=[3.0, 1.0])
        assert pair.status is certificate.status
        assert pair.margin == certificate.margin
        here = decide(x[None])[0]
        assert certificate.decision == ("yes" if here else "no")
        assert_verdict(certificate, ball, lambda X, here=here: decide(X) == here)
        changed += certificate.decision != classifier.predict(x[None])[0]
    assert changed
    # equal weights ask about the probability, which predict does not
    equal = gpcert.certify(classifier, [1.0, 0.5], 0.1, class_weight=(2.0, 2.0))
    assert equal.rule.endswith("probability against about 0.5")
    assert equal.unit == "probability"


@pytest.mark.parametrize("norm", [1, 2, np.inf])
def test_deviation_of_several_outputs(many_outputs, norm):
    for x in points(8, n=4, size=0.7):
        ball = gpcert.Ball(x, 0.2)
        center = many_outputs.predict(x[None])[0]

        def deviation(X, center=center):
            return np.linalg.norm(many_outputs.predict(X) - center, ord=norm, axis=1)

        largest = deviation(ball.sample(1500, 0)).max()
        for delta in (0.7 * largest, 1.6 * largest):
            certificate = gpcert.certify(
                many_outputs,
                x,
                0.2,
                delta=delta,
                output_norm=norm,
                budget=gpcert.Budget(seconds=None, boxes=20_000),
            )
            assert certificate.decision is None
            assert certificate.status is (NOT_ROBUST if delta < largest else ROBUST)
            if certificate.status is NOT_ROBUST:
                assert deviation(certificate.counterexample[None])[0] > delta
                assert ball.contains(certificate.counterexample)


def test_deviation_of_one_output_is_decided_near_its_maximum(regressor):
    x = np.array([0.1, 0.2])
    box = gpcert.Box(x - 0.2, x + 0.2)
    found = gpcert.prediction_range(regressor, box, tol=1e-4)
    value = regressor.predict(x[None])[0]
    largest = max(value - found.minimum.upper, found.maximum.lower - value)
    inside = gpcert.certify(regressor, x, region=box, delta=largest + 1e-3)
    assert inside.status is ROBUST
    outside = gpcert.certify(regressor, x, region=box, delta=largest - 1e-3)
    assert outside.status is NOT_ROBUST


def test_regression_threshold(regressor):
    statuses = set()
    for x in points(9, size=0.8):
        level = 3.0

        def above(X, level=level):
            return regressor.predict(X) > level

        here = above(x[None])[0]
        certificate = gpcert.certify(regressor, x, 0.1, threshold=level)
        assert_verdict(certificate, gpcert.Ball(x, 0.1), lambda X, here=here: above(X) == here)
        statuses.add(certificate.status)
    assert statuses == {ROBUST, NOT_ROBUST}


def test_a_small_budget_may_leave_it_open(classifier):
    x = np.array([0.6, 0.3])
    budget = gpcert.Budget(seconds=None, boxes=1)
    certificate = gpcert.certify(classifier, x, 1.0, threshold=0.02, budget=budget)
    assert certificate.status in (UNKNOWN, NOT_ROBUST)
    assert certificate.boxes == 1


def test_torch_gives_the_same_verdicts(classifier, many_outputs):
    pytest.importorskip("torch")
    for x in points(10, n=examples(4, quick=2)):
        for options in ({"norm": 2}, {"threshold": 0.3}):
            here = gpcert.certify(classifier, x, 0.2, **options)
            there = gpcert.certify(classifier, x, 0.2, backend="torch", **options)
            assert here.status is there.status
    here = gpcert.certify(many_outputs, [0.1, 0.2], 0.1, delta=0.3, output_norm=2)
    there = gpcert.certify(
        many_outputs, [0.1, 0.2], 0.1, delta=0.3, output_norm=2, backend="torch:cpu"
    )
    assert here.status is there.status


X0 = [0.5, 0.5]
BOX = gpcert.Box([0.0, 0.0], [1.0, 1.0])


@pytest.mark.parametrize(
    ("x", "options", "message"),
    [
        ([np.nan, 0.0], {"radius": 0.1}, "x: expected finite numbers"),
        ([0.5], {"radius": 0.1}, "x: expected 2 features, got 1"),
        ([X0], {"radius": 0.1}, "x: expected one point"),
        (["a", "b"], {"radius": 0.1}, "x: expected numbers"),
        (X0, {"radius": -0.1}, "radius: expected numbers >= 0"),
        (X0, {"radius": np.inf}, "radius: expected finite"),
        (X0, {"radius": 0.1, "norm": 0.5}, "norm: expected p >= 1"),
        (X0, {"radius": 0.1, "norm": "two"}, "norm: expected a number"),
        (X0, {"radius": 0.1, "features": [2]}, "features: expected indices in 0..1"),
        (X0, {"radius": 0.1, "domain": (0.6, 1.0)}, "inside the domain"),
        (X0, {"radius": 0.1, "region": BOX}, "exactly one of radius=, relative= and region="),
        (X0, {}, "exactly one of radius=, relative= and region="),
        ([2.0, 0.5], {"region": BOX}, "x: expected a point of the region"),
        (X0, {"region": gpcert.Box([0.0], [1.0])}, "region: expected 2 features"),
        (X0, {"region": np.zeros((2, 2))}, r"region: expected a gpcert\.Box"),
        (X0, {"region": []}, r"region: expected a gpcert\.Box"),
        (X0, {"radius": 0.1, "threshold": 0.0}, "threshold: expected a probability between"),
        (X0, {"radius": 0.1, "threshold": 1.5}, "threshold: expected a probability between"),
        (X0, {"radius": 0.1, "threshold": np.nan}, "threshold: expected finite"),
        (X0, {"radius": 0.1, "delta": 0.1}, "for a classifier use threshold="),
        (X0, {"radius": 0.1, "class_weight": [1.0]}, "expected 2 positive weights"),
        (X0, {"radius": 0.1, "class_weight": [1.0, 0.0]}, "expected 2 positive weights"),
        (X0, {"radius": 0.1, "class_weight": {"no": 1.0}}, "missing"),
        (X0, {"radius": 0.1, "class_weight": [1, 2], "threshold": 0.3}, "drop one"),
        (X0, {"radius": 0.1, "backend": "tensorflow"}, "backend: expected 'numpy'"),
    ],
)
def test_bad_inputs(classifier, x, options, message):
    with pytest.raises(InputError, match=message):
        gpcert.certify(classifier, x, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs either delta= .* got neither"),
        ({"delta": 0.1, "threshold": 0.1}, "needs either delta= .* got both"),
        ({"delta": 0.0}, "delta: expected a positive number"),
        ({"delta": np.nan}, "delta: expected finite"),
        ({"delta": 0.1, "output_norm": 0.1}, "norm: expected p >= 1"),
        ({"class_weight": [1, 2]}, "class_weight: expected a classifier"),
    ],
)
def test_bad_inputs_in_regression(regressor, many_outputs, options, message):
    with pytest.raises(InputError, match=message):
        gpcert.certify(regressor, X0, 0.1, **options)
    with pytest.raises(InputError, match="threshold: expected output=, which of 3 targets"):
        gpcert.certify(many_outputs, X0, 0.1, threshold=1.0)


def test_bad_models():
    with pytest.raises(InputError, match="fit"):
        gpcert.certify(GaussianProcessClassifier(), X0, 0.1)
    with pytest.raises(InputError, match="fit"):
        gpcert.certify(GaussianProcessRegressor(), X0, 0.1, delta=0.1)
    other = LogisticRegression().fit([[0.0, 0.0], [1.0, 1.0]], [0, 1])
    with pytest.raises(UnsupportedModelError, match="LogisticRegression"):
        gpcert.certify(other, X0, 0.1)
    with pytest.raises(UnsupportedModelError, match="expected a gpcert Posterior"):
        gpcert.certify(object(), X0, 0.1)


def test_empty_box_and_bad_budget():
    with pytest.raises(InputError, match="the box is empty"):
        gpcert.Box([0.0, 1.0], [1.0, 0.0])
    with pytest.raises(InputError, match="budget seconds: expected a positive number"):
        gpcert.Budget(seconds=-1.0)
