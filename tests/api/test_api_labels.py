"""Outputs go by their labels: classes of two and of several, targets by number."""

import json
from fractions import Fraction

import numpy as np
import pytest

import gpcert
from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Probit, SklearnLogistic
from gpcert.model.posterior import Posterior
from gpcert.search import Budget

BOX = gpcert.Box([0.2], [0.9])


def binary(classes=None, likelihood=None, noise=0.0):
    return Posterior(
        SquaredExponential(1.0, 2.0),
        [[0.0], [1.0]],
        [1.0, -0.5],
        0.4 * np.eye(2),
        likelihood=likelihood or Probit(),
        classes=classes,
        noise=noise,
    )


def test_labels_that_are_numbers_name_classes_and_not_positions():
    """`output=0` of labels 0 and 1 once gave the probability of class 1."""
    posterior = binary((0, 1))
    X = np.linspace(0.2, 0.9, 101)[:, None]
    second = posterior.prediction(X)[:, 0]
    for label, values in ((0, 1.0 - second), (1, second), (np.int64(0), 1.0 - second)):
        found = gpcert.prediction_range(posterior, BOX, output=label, tol=1e-4)
        assert found.output == label
        assert found.meaning == f"probability of class {label}"
        assert found.minimum.lower <= values.min() + 1e-12
        assert found.maximum.upper >= values.max() - 1e-12
        assert found.minimum.upper == pytest.approx(values.min(), abs=2e-4)
        assert found.maximum.lower == pytest.approx(values.max(), abs=2e-4)
    default = gpcert.prediction_range(posterior, BOX, tol=1e-4)
    assert default.output == 1
    assert default.minimum == gpcert.prediction_range(posterior, BOX, tol=1e-4, output=1).minimum


def test_both_classes_of_two_come_from_one_search_and_add_up_to_one():
    posterior = binary(("no", "yes"), SklearnLogistic())
    first, second = gpcert.prediction_ranges(posterior, BOX, tol=1e-3)
    alone = gpcert.prediction_range(posterior, BOX, tol=1e-3)
    assert (first.output, second.output) == ("no", "yes")
    assert (second.minimum, second.maximum) == (alone.minimum, alone.maximum)
    assert first.boxes == second.boxes == alone.boxes
    for one, two in (
        (first.minimum.lower, second.maximum.upper),
        (first.minimum.upper, second.maximum.lower),
        (first.maximum.lower, second.minimum.upper),
        (first.maximum.upper, second.minimum.lower),
    ):
        assert one + two == pytest.approx(1.0, abs=1e-15)
    np.testing.assert_array_equal(first.argmin, second.argmax)
    np.testing.assert_array_equal(first.argmax, second.argmin)


def test_the_complement_is_rounded_outwards():
    hill = gpcert.Posterior(SquaredExponential(1.0), [[0.0]], [-14.0], likelihood=Probit())
    first, second = gpcert.prediction_ranges(hill, gpcert.Box([-0.1], [0.1]), tol=1e-3)
    for one, other in ((first.minimum, second.maximum), (first.maximum, second.minimum)):
        assert Fraction(one.lower) <= 1 - Fraction(other.upper)
        assert Fraction(one.upper) >= 1 - Fraction(other.lower)
    assert 0 < second.minimum.lower < 1e-18
    assert first.maximum.upper == 1.0  # 1 less that is below 1


@pytest.mark.parametrize(("side", "other"), [("minimum", "maximum"), ("maximum", "minimum")])
def test_one_side_of_the_first_class(side, other):
    posterior = binary((0, 1))
    found = gpcert.prediction_range(posterior, BOX, output=0, sides=side, tol=1e-3)
    both = gpcert.prediction_range(posterior, BOX, output=0, tol=1e-3)
    assert getattr(found, side).width <= 1.01e-3
    assert getattr(found, side).lower <= getattr(both, side).upper
    assert getattr(both, side).lower <= getattr(found, side).upper
    assert np.isinf(getattr(found, other).width)


@pytest.mark.parametrize("quantity", ["mean", "variance"])
def test_two_classes_have_one_latent_function(quantity):
    posterior = binary((0, 1), noise=0.25)
    found = gpcert.prediction_range(posterior, BOX, quantity=quantity)
    assert found.output is None
    assert found.meaning.startswith(f"{quantity} of the latent function")
    assert ("noise variance 0.25" in found.meaning) == (quantity == "variance")
    assert len(gpcert.prediction_ranges(posterior, BOX, quantity=quantity)) == 1
    for output in (0, 1, "a"):
        with pytest.raises(InputError, match="output: expected none"):
            gpcert.prediction_range(posterior, BOX, quantity=quantity, output=output)


BAD = [-1, 2, True, False, np.bool_(True), 0.5, "0", [0], np.array([0, 1]), np.zeros(0), {}, (0,)]


@pytest.mark.parametrize("output", BAD, ids=repr)
def test_targets_go_by_number_and_nothing_else(output):
    regression = Posterior(SquaredExponential(1.0), [[0.0]], [[1.0], [2.0]])
    with pytest.raises(InputError, match=r"output: expected one of \[0, 1\]"):
        gpcert.prediction_range(regression, BOX, output=output)
    with pytest.raises(InputError, match=r"output: expected one of \[0, 1\]"):
        gpcert.prediction_range(binary((0, 1)), BOX, output=output)
    assert gpcert.prediction_range(regression, BOX, output=np.int64(1)).output == 1


def test_truth_values_can_be_labels():
    posterior = binary((False, True))
    assert gpcert.prediction_range(posterior, BOX, output=False).output is False
    with pytest.raises(InputError, match="output"):
        gpcert.prediction_range(posterior, BOX, output=0)


def test_records_say_what_is_bounded_and_in_which_unit(tmp_path):
    posterior = binary(("no", "yes"))
    options = {"budget": Budget(seconds=None, boxes=9)}
    certificate = gpcert.certify(posterior, [0.1], 0.2, **options)
    assert (certificate.unit, certificate.method) == ("latent mean", "taylor")
    np.testing.assert_array_equal(certificate.x, [0.1])
    assert gpcert.certify(posterior, [0.1], 0.2, threshold=0.4, **options).unit == "probability"
    found = gpcert.prediction_range(posterior, BOX, method="both", **options)
    assert found.method == "both"
    found.save(tmp_path / "range.json")
    record = json.loads((tmp_path / "range.json").read_text())["record"]
    assert (record["output"], record["meaning"]) == ("yes", "probability of class yes")
    assert gpcert.PredictionRange.load(tmp_path / "range.json").meaning == found.meaning
    radius = gpcert.certified_radius(posterior, [0.1], max_radius=0.2)
    assert (radius.unit, radius.rule) == ("latent mean", "sign of the latent mean")
    assert radius.region["radius"] == radius.lower
    for item in (certificate, found, radius):
        assert len(repr(item)) < 200
        assert "\n" in str(item)


def test_regression_speaks_of_levels_and_deviations_not_of_decisions():
    posterior = Posterior(SquaredExponential(1.0), [[0.0], [3.0]], [1.0, -1.0])
    level = gpcert.certify(posterior, [0.0], 1.0, threshold=0.0)
    assert level.summary == "proved: mean above 0.0 at every point of the region"
    crossed = gpcert.certify(posterior, [0.0], 2.0, threshold=0.0)
    assert crossed.summary == "refuted: mean above 0.0 at x, but not at the counter-example"
    moved = gpcert.certify(posterior, [0.0], 2.0, delta=0.5)
    assert "deviation of the mean at most 0.5" in moved.summary
    assert moved.unit == "units of the target"
    for certificate in (level, crossed, moved):
        assert "decision" not in str(certificate)
        assert "decision" not in certificate.status.value


def test_a_text_stays_short_with_many_features():
    d = 196
    posterior = Posterior(
        SquaredExponential(9.0), np.zeros((1, d)), [1.0], likelihood=Probit(), offset=1.0
    )
    certificate = gpcert.certify(posterior, np.zeros(d), 0.1)
    assert len(repr(certificate)) < 200
    assert len(str(certificate)) < 500
    assert "196 features" in str(certificate)
