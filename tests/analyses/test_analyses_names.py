"""Names of features, data frames, radii of each feature, labels of two classes."""

from dataclasses import replace

import numpy as np
import pytest

import gpcert
from gpcert.analyses import accuracy
from gpcert.attacks.class_means import class_means
from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Probit, Softmax

pd = pytest.importorskip("pandas")

NAMES = ("age", "bmi")
SHORT = {"iterations": 4, "restarts": 0}
X = np.array([[0.3, -0.2], [0.9, 0.6]])
FRAME = pd.DataFrame(X, columns=list(NAMES), index=["Ann", "Bob"])[["bmi", "age"]]
RADII = {"age": 0.2}


@pytest.fixture
def named(binary):
    return replace(binary, feature_names=NAMES)


@pytest.fixture
def named_regression(regression):
    return replace(regression, feature_names=NAMES)


def same(found, expected):
    """The same rows, but for the time they took, and the frame's own labels."""
    assert found.labels == ("Ann", "Bob")
    assert expected.labels == (0, 1)
    frames = [table.to_frame().drop(columns=["point"]) for table in (found, expected)]
    hidden = [name for name in ("seconds", "radius") if name in frames[0]]
    pd.testing.assert_frame_equal(*(frame.drop(columns=hidden) for frame in frames))


def test_frames_and_radii_by_name(named, named_regression):
    around = {"domain": {"age": (0.0, 1.0)}}
    plain = {"domain": ([0.0, -np.inf], [1.0, np.inf])}
    for verb, model, words in (
        (gpcert.attack, named, SHORT),
        (gpcert.prediction_range_many, named, {}),
        (gpcert.robustness, named, {}),
        (gpcert.worst_case, named_regression, {}),
    ):
        found = verb(model, FRAME, RADII, **around, **words)
        same(found, verb(model, X, [0.2, 0.0], **plain, **words))
        assert all(row.model == model.fingerprint for row in found)


def test_features_by_name(named):
    words = {"budget": 0.5, "rtol": 0.2, "max_radius": 1.0}
    found = gpcert.certified_radius_many(named, FRAME, features="bmi", **words)
    same(found, gpcert.certified_radius_many(named, X, features=[1], **words))
    words = {"budget": 0.5, "rtol": 0.2}
    y = ["a", "b"]
    found = gpcert.certified_accuracy(named, FRAME, y, [0.1], features=["bmi"], **words)
    same(found, gpcert.certified_accuracy(named, X, y, [0.1], features=[1], **words))


def test_a_point_by_name(named):
    by_name = gpcert.safety_curve(
        named, {"bmi": -0.2, "age": 0.3}, [0.1, 0.3], features="age", budget=5
    )
    plain = gpcert.safety_curve(named, X[0], [0.1, 0.3], features=[0])
    assert [row.minimum for row in by_name] == [row.minimum for row in plain]
    with pytest.raises(InputError, match="missing: 'age'"):
        gpcert.safety_curve(named, {"bmi": -0.2}, [0.1])


def test_groups_of_radii_by_name(named):
    table = gpcert.robustness(named, FRAME, radii=[RADII, [0.1, 0.1], 0.1], tol=0.1)
    assert [row.setting for row in table[::2]] == ["age=0.2", "0.1, 0.1", "0.1"]
    assert table.labels == ("Ann", "Bob") * 3


def test_curves_of_both_of_two_classes_mirror_each_other(binary):
    curves = {
        name: gpcert.safety_curve(binary, X[0], [0.1, 0.5], output=name, threshold=0.3, tol=0.05)
        for name in (None, "a", "b")
    }
    for first, second, default in zip(curves["a"], curves["b"], curves[None], strict=True):
        assert second.minimum == default.minimum
        assert first.value == pytest.approx(1 - second.value)
        assert first.attack == pytest.approx(1 - second.attack)
        assert first.minimum.lower == pytest.approx(1 - second.maximum.upper, abs=1e-12)
        assert first.minimum.lower <= first.value <= first.maximum.upper
        ends = [None if end is None else 1 - end for end in (first.upper_level, first.lower_level)]
        assert ends == pytest.approx([second.lower_level, second.upper_level])
        assert first.status is second.status
        assert first.quantity == "probability of class a"
    with pytest.raises(InputError, match="output: expected one of"):
        gpcert.safety_curve(binary, X[0], [0.1], output="z")


def test_one_row_per_point_unless_all_outputs_are_asked_for(binary):
    words = {"tol": 0.1}
    one = gpcert.prediction_range_many(binary, X, 0.1, **words)
    assert [row.output for row in one] == ["b", "b"]
    every = gpcert.prediction_range_many(binary, X, 0.1, all_outputs=True, **words)
    assert [row.output for row in every] == ["a", "b"] * 2
    assert every.labels == (0, 0, 1, 1)
    first = gpcert.prediction_range_many(binary, X, 0.1, output="a", **words)
    assert [row.minimum for row in first] == [row.minimum for row in every[::2]]
    with pytest.raises(InputError, match="all_outputs"):
        gpcert.prediction_range_many(binary, X, 0.1, output="a", all_outputs=True)
    with pytest.raises(InputError, match="leave radius= out"):
        gpcert.prediction_range_many(binary, [gpcert.Ball(X[0], 0.1)], 0.1)
    with pytest.raises(InputError, match="radius"):
        gpcert.prediction_range_many(binary, X)


def test_a_point_at_a_tie_is_neither_certified_nor_called_wrong():
    """At 0 the mean is 0 in real arithmetic: nothing is proved, so the upper curve counts it."""
    tie = gpcert.Posterior(
        SquaredExponential(1.0),
        [[-1.0], [1.0]],
        [-1.0, 1.0],
        likelihood=Probit(),
        classes=("a", "b"),
    )
    for label in ("a", "b"):
        found = gpcert.certified_accuracy(tie, [[0.0]], [label], [0.0, 0.1], budget=1)
        assert found.certified().tolist() == [0.0, 0.0]
        assert found.attacked().tolist() == [1.0, 1.0]
        assert found[0].reason is gpcert.StopReason.UNDECIDED_AT_X


def test_a_computed_decision_that_is_refuted_does_not_count(binary, monkeypatch):
    """Plain floating point takes every point for its label; proofs say otherwise."""
    proved = ["b" if mean > 0 else "a" for mean in binary.predict(X)[0][:, 0]]
    others = ["a" if label == "b" else "b" for label in proved]

    class Lying:
        def __init__(self, *_):
            pass

        def decided(self, points):
            return others

    monkeypatch.setattr(accuracy, "decision_margins", Lying)
    wrong = gpcert.certified_accuracy(binary, X, others, [0.0], budget=1, rtol=0.5)
    assert wrong.accuracy == 0.0
    right = gpcert.certified_accuracy(binary, X, proved, [0.0], budget=1, rtol=0.5)
    assert right.accuracy == 1.0


def test_unknown_covariances_leave_the_other_points_alone():
    V = np.stack([np.full((2, 2), np.inf), np.eye(2), np.full((2, 2), np.nan)])
    found = class_means(Softmax(), np.zeros((3, 2)), V)
    alone = class_means(Softmax(), np.zeros((1, 2)), V[1:2])
    np.testing.assert_allclose(found.probabilities[1], alone.probabilities[0], rtol=1e-12)
    assert np.all(np.isfinite(found.probabilities))
    assert all(np.all(np.isfinite(part)) for part in found.slopes(np.eye(3)))


@pytest.mark.parametrize("norm", [2, np.inf])
@pytest.mark.parametrize("scale", [1e-160, 1e160])
def test_attacks_on_huge_latent_functions_end_in_the_region(norm, scale):
    model = gpcert.Posterior(
        SquaredExponential(1.0), X, [1.0, -0.7], 0.3 * np.eye(2), likelihood=Probit(), scale=scale
    )
    for method, effort in (("gpfgs", {}), ("best", SHORT)):
        table = gpcert.attack(model, X, 0.3, norm=norm, method=method, confirm=False, **effort)
        assert all(
            gpcert.Ball(x, 0.3, norm).contains(p) for x, p in zip(X, table.points, strict=True)
        )
