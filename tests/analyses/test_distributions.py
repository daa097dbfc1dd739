"""Robustness, certified accuracy and worst cases hold the sampled truth."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert
from gpcert.certificates import Interval
from gpcert.errors import InputError
from gpcert.likelihoods import Probit
from gpcert.regions import Ball
from gpcert.testing.effort import THOROUGH, examples, variants
from tests.analyses.analysed_models import random_posterior

QUICK = gpcert.Budget(seconds=0.2, boxes=None if THOROUGH else 30)


def test_robustness_contains_the_sampled_differences(binary, regression, softmax, X):
    X = X[: examples(5, quick=2)]
    table = gpcert.robustness(None, X, radii=[0.1, 0.4], compare={"p": binary, "r": regression})
    assert len(table) == 2 * 2 * len(X)
    for label, row in zip(table.labels, table, strict=True):
        model = binary if row.group == "p" else regression
        P = Ball(X[label], float(row.setting)).sample(200, 0)
        values = model.prediction(P)[:, 0]
        assert values.max() - values.min() <= row.delta.upper
        assert 0 <= row.delta.lower <= row.delta.upper <= row.delta.lower + 0.05
    small, large = (table.deltas("p", setting) for setting in ("0.1", "0.4"))
    assert np.all(small <= large)
    table = gpcert.robustness(softmax, X[:2], 0.1, budget=QUICK)
    decided = softmax.prediction(X[:2]).argmax(axis=1)
    assert [row.output for row in table] == [softmax.labels[k] for k in decided]


def test_robustness_says_what_is_missing(binary, X):
    with pytest.raises(InputError, match="radius=, radii= and relative="):
        gpcert.robustness(binary, X)
    with pytest.raises(InputError, match="compare"):
        gpcert.robustness(None, X, 0.1)
    with pytest.raises(InputError, match="compare: 'model' is the name"):
        gpcert.robustness(binary, X, 0.1, compare={"model": binary})
    with pytest.raises(InputError, match="radii: expected a list"):
        gpcert.robustness(binary, X, radii=np.array(0.1))


@settings(max_examples=examples(8), deadline=None)
@given(seed=st.integers(0, 10**6), norm=st.sampled_from([1, 2, np.inf]))
def test_the_certified_curve_never_lies_above_the_attacks(seed, norm):
    model = random_posterior(seed, likelihood=Probit(), classes=("a", "b"))
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.5, 1.5, size=(4, 2))
    y = rng.choice(["a", "b"], 4)
    found = gpcert.certified_accuracy(model, X, y, [0.0, 0.1, 0.5, 1.0], norm=norm, budget=QUICK)
    ends = [end for row in found for end in (row.lower, row.upper) if np.isfinite(end)]
    near = [np.nextafter(end, side) for end in ends for side in (-np.inf, np.inf)]
    radii = np.unique(np.clip([*ends, *near, *rng.uniform(0, 2, 50)], 0, None))
    low, high = found.certified(radii), found.attacked(radii)
    assert np.all(low <= high)
    assert np.all(np.diff(low) <= 0)
    assert np.all(np.diff(high) <= 0)
    assert high.max(initial=0.0) <= found.accuracy
    # no attack contradicts the proofs, and every known counter-example is in the curve
    for radius in (0.1, 0.5):
        table = gpcert.attack(model, X, radius, norm=norm, method="pgd", iterations=10)
        for row, attacked in zip(found, table, strict=True):
            assert not (attacked.confirmed and row.right and row.lower >= radius)


def test_no_points_are_an_empty_table(binary, regression, committee, tmp_path):
    none = np.empty((0, 2))
    for model, y, rule in ((binary, [], {}), (committee, [], {}), (regression, None, {"delta": 1})):
        found = gpcert.certified_accuracy(model, none, y, [0.0, 0.1], **rule)
        assert (len(found), found.accuracy, found.complete, found.converged) == (0, 0.0, True, True)
        assert found.certified().tolist() == found.attacked().tolist() == [0.0, 0.0]
        assert repr(found) == "CertifiedAccuracy(0 points, complete=True, converged=True)"
        found.save(tmp_path / "none.json")
        assert str(gpcert.load(tmp_path / "none.json")) == str(found)


def test_shares_in_words_are_in_per_cent(binary, X):
    y = [binary.labels[int(p > 0.5)] for p in binary.prediction(X[:3])[:, 0]]
    found = gpcert.certified_accuracy(binary, X[:3], y, [0.0, 0.01], budget=QUICK)
    assert "3 points, 100 % right; right and robust at radius 0: 100 % to 100 %" in repr(found)
    row = replace(found[0], right=False, lower=0.0, upper=0.0)
    mixed = replace(found, rows=(row, *found.rows[1:]))
    assert "66.67 % right; right and robust at radius 0: 66.66 % to 66.67 %" in repr(mixed)


def test_certified_accuracy_of_classes_and_regression(committee, regression, X):
    y = [committee.classes[k] for k in committee.scores(X).argmax(axis=1)]
    budget = gpcert.Budget(seconds=5.0)
    found = gpcert.certified_accuracy(committee, X[:2], y[:2], [0.01], budget=budget, rtol=0.5)
    assert found.accuracy == 1.0
    assert found.certified()[0] > 0
    mean = regression.predict(X)[0][:, 0]
    found = gpcert.certified_accuracy(regression, X, mean + 0.1, [0.1], delta=0.2, budget=QUICK)
    assert found.accuracy == 1.0
    found = gpcert.certified_accuracy(regression, X, mean + 0.3, [0.1], delta=0.2, budget=QUICK)
    assert found.accuracy == 0.0
    found = gpcert.certified_accuracy(regression, X, None, [0.1], delta=0.2, budget=QUICK)
    assert found.accuracy == 1.0


def test_a_point_without_any_proof_is_not_certified_at_radius_zero(binary, X, monkeypatch):
    from gpcert.analyses import accuracy

    plain = accuracy.certified_radius_many

    def nothing_proved(*arguments, **options):
        from dataclasses import replace

        table = plain(*arguments, **options)
        return replace(table, rows=tuple(replace(row, lower=0.0) for row in table))

    monkeypatch.setattr(accuracy, "certified_radius_many", nothing_proved)
    y = ["b" if p > 0.5 else "a" for p in binary.prediction(X)[:, 0]]
    found = gpcert.certified_accuracy(binary, X, y, [0.0, 0.1], budget=QUICK)
    assert found.certified().tolist() == [0.0, 0.0]
    assert found.attacked()[0] == 1.0


@pytest.mark.parametrize(
    ("y", "text"),
    [
        (None, "one label for each"),
        (["a"] * 3, "one label for each"),
        (["a"] * 4 + ["z"], "'z'"),
    ],
)
def test_labels_are_checked(binary, X, y, text):
    with pytest.raises(InputError, match=text):
        gpcert.certified_accuracy(binary, X, y, [0.1])


@variants("rows", [slice(0, 1), slice(1, 2), slice(2, 5)])
def test_worst_cases_hold_means_and_bands(regression, X, rows):
    every, X = X[: examples(5, quick=2)], X[rows]
    table = gpcert.worst_case(regression, X, 0.3, beta=2.5, norm=2, tol=1e-3)
    for x, row in zip(X, table, strict=True):
        P = Ball(x, 0.3, norm=2).sample(300, 0)
        mean, variance = (part[:, 0] for part in regression.predict(P))
        assert row.minimum.lower <= mean.min()
        assert mean.max() <= row.maximum.upper
        assert row.band.lower <= (mean - 2.5 * np.sqrt(variance)).min()
        assert (mean + 2.5 * np.sqrt(variance)).max() <= row.band.upper
        at = regression.predict(np.stack([row.argmin, row.argmax]))[0][:, 0]
        assert at[0] <= row.minimum.upper + 1e-9
        assert at[1] >= row.maximum.lower - 1e-9
        ends = regression.predict(np.stack([row.band_argmin, row.band_argmax]))
        mean, std = (ends[0][:, 0], np.sqrt(ends[1][:, 0]))
        assert mean[0] - 2.5 * std[0] <= row.band_minimum.upper + 1e-9
        assert mean[1] + 2.5 * std[1] >= row.band_maximum.lower - 1e-9
        assert max(row.band_minimum.width, row.band_maximum.width) <= 1e-3
    box = gpcert.Box([-2.0, -2.0], [2.0, 2.0])
    one = gpcert.worst_case(regression, every, region=box, tol=0.05)
    assert len({row.minimum.lower for row in one}) == 1


def test_what_means_move_by_is_said_rounded_up(regression, X):
    (row,) = gpcert.worst_case(regression, X[:1], 0.1, tol=0.1)
    for lower, upper, text in ((-(2.0**-60), 1.0, "1.001"), (0.0, 1.23449, "1.235")):
        own = replace(row, minimum=Interval(lower, 0.5), maximum=Interval(0.5, upper))
        table = gpcert.WorstCaseTable((own,))
        assert table.widest > Fraction(upper) - Fraction(lower)
        assert f"at most {text}," in repr(table)


def test_worst_case_refuses_classifiers_and_bad_bands(binary, regression, X):
    with pytest.raises(InputError, match="regression"):
        gpcert.worst_case(binary, X, 0.1)
    with pytest.raises(InputError, match="beta"):
        gpcert.worst_case(regression, X, 0.1, beta=-1.0)


def test_results_save_load_and_draw(binary, regression, X, tmp_path):
    from matplotlib.figure import Figure

    y = ["a"] * 5
    results = [
        gpcert.robustness(None, X[:2], radii=[0.1, 0.2], compare={"A": binary, "B": binary}),
        gpcert.certified_accuracy(binary, X, y, [0.1, 0.2], budget=QUICK),
        gpcert.worst_case(regression, X[:2], 0.1),
    ]
    for result in results:
        result.save(tmp_path / "result.json")
        again = gpcert.load(tmp_path / "result.json")
        assert type(again) is type(result)
        assert again.to_frame().equals(result.to_frame())
        ax = Figure().subplots()
        assert result.plot(ax) is ax
        assert "(" in repr(result)
    assert gpcert.load(tmp_path / "result.json").kind == "worst_cases"


def test_curves_are_read_at_any_radius(binary, X, tmp_path):
    found = gpcert.certified_accuracy(binary, X, ["a"] * 5, [0.1, 0.2], budget=QUICK)
    found.save(tmp_path / "accuracy.json")
    again = gpcert.load(tmp_path / "accuracy.json")
    assert again.radii == (0.1, 0.2)
    assert list(again.curve()["radius"]) == [0.1, 0.2]
    assert list(found.curve([0.15])["certified"]) == list(found.certified(0.15))


def test_curves_are_drawn_as_they_are_between_their_steps(binary, X):
    from matplotlib.figure import Figure

    found = gpcert.certified_accuracy(binary, X[:2], ["a"] * 2, [0.0, 1.0], budget=QUICK)
    ends = ((0.2, 0.5), (0.3, np.inf))
    rows = (replace(r, right=True, lower=a, upper=b) for r, (a, b) in zip(found, ends, strict=True))
    found = replace(found, rows=tuple(rows))
    drawn = {str(line.get_label()): line for line in found.plot(Figure().subplots()).lines}
    radii = np.linspace(0.0, 1.0, 77)
    for name, shares in (("proved robust", found.certified), ("no attack known", found.attacked)):
        at = np.interp(radii, *drawn[name].get_data())
        assert np.array_equal(at, shares(radii)), name
