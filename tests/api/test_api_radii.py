"""Radii per point and feature, and radii in parts of each value."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import gpcert
from gpcert import explain
from gpcert.api.regions import RegionSpecification
from gpcert.errors import InputError, RegionWarning
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Probit
from gpcert.testing.effort import examples

NAMES = ("age", "bmi")
P = gpcert.Posterior(
    SquaredExponential(1.0),
    [[0.0, 0.0], [3.0, 0.0]],
    [2.0, -2.0],
    likelihood=Probit(),
    feature_names=NAMES,
)
PLAIN = gpcert.Posterior(SquaredExponential(1.0), [[0.0, 0.0], [3.0, 0.0]], [2.0, -2.0])
X = np.array([[1.0, 0.2], [-0.5, 2.0], [0.3, -0.1]])
RADII = np.array([[0.1, 0.2], [0.3, 0.0], [0.0, 0.05]])


def regions(table):
    return [row.region["radius"] for row in table]


def test_a_row_of_radii_per_point_is_the_ball_of_each():
    table = gpcert.certify_many(P, X, RADII)
    assert regions(table) == RADII.tolist()
    for row, x, radius in zip(table, X, RADII, strict=True):
        own = gpcert.certify(P, x, radius)
        assert (row.status, row.region) == (own.status, own.region)
    ranges = gpcert.prediction_range_many(P, X, RADII, norm=2, scale=[2.0, 1.0])
    assert regions(ranges) == (RADII * [2.0, 1.0]).tolist()
    for row, x, radius in zip(ranges, X, RADII, strict=True):
        own = gpcert.prediction_range(P, x, radius, norm=2, scale=[2.0, 1.0])
        assert row.minimum.lower <= own.minimum.upper
        assert own.maximum.lower <= row.maximum.upper


def test_every_verb_of_many_points_takes_them():
    attacked = gpcert.attack(P, X, RADII)
    assert regions(attacked) == RADII.tolist()
    assert np.all(np.abs(attacked.points - X) <= RADII + 1e-12)
    assert regions(gpcert.worst_case(PLAIN, X, RADII)) == RADII.tolist()
    table = gpcert.robustness(P, X, RADII)
    assert regions(table) == RADII.tolist()
    assert {row.setting for row in table} == {"per point"}
    three = gpcert.Posterior(
        SquaredExponential(1.0), X, np.eye(3), 0.3 * np.eye(3),
        likelihood=gpcert.likelihoods.Softmax(), classes=("a", "b", "c"),
    )  # fmt: skip
    # points are asked about class by class: each keeps its own radii
    assert regions(gpcert.robustness(three, X[[0, 2, 1]], RADII)) == RADII.tolist()
    found = explain.effects(P, X, RADII)
    assert found.radius.tolist() == RADII.tolist()
    for k, radius in enumerate(RADII):
        own = explain.effects(P, X[k], np.maximum(radius, 1e-9))
        low, high = found.lower[k], found.upper[k]
        assert np.all(low <= own.upper + 1e-6)
        assert np.all(own.lower - 1e-6 <= high)
    assert np.all(found.lower[1, :, 1] == 0)  # which does not move there
    assert np.all(found.upper[1, :, 1] == 0)


def test_columns_are_matched_by_name_and_rows_by_the_index():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=NAMES, index=["r", "s", "t"])
    radii = pd.DataFrame(RADII, columns=NAMES, index=frame.index)[["bmi", "age"]]
    assert regions(gpcert.certify_many(P, frame, radii)) == RADII.tolist()
    with pytest.raises(InputError, match="radius: expected the index of X"):
        gpcert.certify_many(P, frame, radii.iloc[::-1])
    with pytest.raises(InputError, match="missing: 'bmi'"):
        gpcert.certify_many(P, frame, radii.rename(columns={"bmi": "BMI"}))


def test_parts_of_each_value():
    table = gpcert.certify_many(P, X, relative=0.05)
    for row, x in zip(table, X, strict=True):
        own = gpcert.certify(P, x, relative=0.05)
        assert (row.status, row.region) == (own.status, own.region)
        np.testing.assert_allclose(row.region["radius"], 0.05 * np.abs(x), rtol=1e-15)
    one = gpcert.certify(P, X[0], relative={"bmi": 0.5})
    assert one.region["radius"] == [0.0, 0.1]
    assert gpcert.certify(P, X[0], relative=[0.1, 0.5], features=["bmi"]).region["features"] == [1]
    for found in (
        gpcert.prediction_range(P, X[0], relative=0.05),
        *gpcert.prediction_ranges(P, X[0], relative=0.05),
        explain.sufficient(P, X[0], relative=0.05),
        explain.contrastive(P, X[0], relative=0.05),
        explain.pixel_budget(P, X[0], relative=0.05, ranking="gradient"),
        *gpcert.attack(P, X[:1], relative=0.05),
        *gpcert.prediction_range_many(P, X[:1], relative=0.05),
        *gpcert.worst_case(PLAIN, X[:1], relative=0.05),
    ):
        assert found.region["radius"] == table[0].region["radius"]
    table = gpcert.robustness(P, X[:1], relative=0.05)
    assert table[0].setting == "0.05 of each value"
    np.testing.assert_allclose(explain.effects(P, X, relative=0.1).radius, 0.1 * np.abs(X))


floats = st.floats(-1e300, 1e300) | st.sampled_from([0.1, -0.3, 5e-324, 1e-310, 1e17])


@settings(max_examples=examples(100))
@given(x=arrays(float, 2, elements=floats), part=st.floats(0.0, 10.0))
def test_balls_hold_the_exact_parts(x, part):
    """In real arithmetic, whatever the sizes: radius and both ends are rounded outwards."""
    if part > 0 and not x.any():
        with pytest.raises(InputError, match="got 0 everywhere"):
            RegionSpecification(relative=part).around(PLAIN, x)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RegionWarning)
        ball = RegionSpecification(relative=part).around(PLAIN, x)
    for j in range(2):
        reach = Fraction(part) * abs(Fraction(x[j]))
        assert Fraction(ball.lower[j]) <= Fraction(x[j]) - reach
        assert Fraction(x[j]) + reach <= Fraction(ball.upper[j])
        assert (reach == 0) == (ball.lower[j] == ball.upper[j])


def test_values_of_zero_are_said_to_stay_fixed():
    zeros = np.array([[0.0, 1.0], [0.5, 0.0], [0.0, 0.0]])
    with pytest.warns(RegionWarning, match="4 of 6 values are 0 and stay fixed"):
        table = gpcert.certify_many(P, zeros, relative=0.1)
    assert regions(table) == [[0.0, 0.1], [0.05, 0.0], [0.0, 0.0]]
    assert "in 1 of 2 features" in str(table[0])
    with pytest.raises(InputError, match="relative: expected values other than 0"):
        gpcert.certify(P, [0.0, 0.0], relative=0.1)
    with pytest.raises(InputError, match="relative: expected values other than 0"):
        gpcert.certify(P, [0.0, 1.0], relative=0.1, features=[0])
    gpcert.certify(P, [0.0, 1.0], relative=0.1, features=[1])  # nothing to say
    gpcert.certify(P, [0.0, 1.0], relative={"bmi": 0.1})


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"radius": RADII[:2]}, r"or shape \(3, 2\), a row of them per point, got shape \(2, 2\)"),
        ({"radius": RADII[:, :1]}, r"got shape \(3, 1\)"),
        ({"radius": [0.1, 0.1, 0.1]}, "radius: expected a number or 2 numbers"),
        ({"radius": -RADII}, "radius: expected numbers >= 0, got -0.3"),
        ({"radius": np.where(RADII > 0, RADII, np.nan)}, "radius: expected finite"),
        ({"radius": [[0.1, 0.1], [0.1], [0.1, 0.1]]}, "radius: expected"),
        ({"radius": 0.1, "relative": 0.1}, "got radius= and relative="),
        ({"relative": 0.1, "region": gpcert.Box([-9, -9], [9, 9])}, "got relative= and region="),
        ({}, "exactly one of radius=, relative= and region=, got none"),
        ({"relative": 0.1, "scale": [1.0, 1.0]}, "scale: .* got relative="),
        ({"relative": -0.1}, "relative: expected numbers >= 0"),
        ({"relative": [0.1] * 3}, "relative: expected a number or 2 numbers"),
        ({"relative": {"BMI": 0.1}}, "relative: expected names out of"),
        ({"relative": "5 %"}, "relative: expected numbers"),
        ({"relative": {"bmi": 0.1}, "features": ["age"]}, "relative: 'bmi' has no effect"),
        ({"radius": {"bmi": 0.1}, "features": ["age"]}, "radius: 'bmi' has no effect"),
        ({"radius": {"bmi": 0.1}, "features": [0, 1]}, "features: 'age' has no effect, as radius="),
        ({"relative": {"bmi": 0.1}, "features": [True, True]}, "features: 'age' .* as relative="),
        ({"radius": 0.1, "scale": {"bmi": 2}, "features": ["age"]}, "'age' .* as scale= leaves"),
    ],
)
def test_what_makes_no_sense_is_refused(words, message):
    for verb in (gpcert.certify_many, gpcert.prediction_range_many, gpcert.attack):
        with pytest.raises(InputError, match=message):
            verb(P, X, **words)


def test_a_table_of_radii_is_none_of_one_point():
    for verb in (gpcert.certify, gpcert.prediction_range, explain.sufficient):
        with pytest.raises(InputError, match="belong to the verbs for many points"):
            verb(P, X[0], RADII)
    with pytest.raises(InputError, match="exactly one of radius= and relative=, got none"):
        explain.effects(P, X)
    with pytest.raises(InputError, match=r"has no relative=; .* scale=abs\(x\)"):
        gpcert.certified_radius(P, X[0], relative=0.1)
    with pytest.raises(InputError, match="radius=, radii= and relative=, got radii= and relative="):
        gpcert.robustness(P, X, radii=[0.1], relative=0.1)
    box = gpcert.Box([0.0, 0.0], [1.0, 1.0])
    with pytest.raises(InputError, match="relative: expected a point x"):
        gpcert.prediction_range(P, box, relative=0.1)
    with pytest.raises(InputError, match="relative: expected points as X"):
        gpcert.prediction_range_many(P, [box], relative=0.1)
