"""Pixel budgets, LIME beside them, salient features."""

import sys
from dataclasses import replace

import numpy as np
import pytest

import gpcert
from gpcert import explain
from gpcert.errors import InputError, MissingExtraError
from gpcert.explain.arguments import predictions
from gpcert.explain.rankings import ranked_features
from gpcert.kernels import SquaredExponential
from gpcert.search import StopReason, solve
from gpcert.testing.effort import THOROUGH


@pytest.fixture(scope="module")
def image():
    x = np.full(9, 0.5)
    x[3:6] = [0.9, 0.8, 0.7]
    return x


def gap(model, X, label):
    """Lead of the class over the best other one."""
    scores = predictions(model, X)
    k = list(model.labels).index(label)
    return scores[:, k] - np.delete(scores, k, axis=1).max(1)


@pytest.mark.parametrize("ranking", ["effects", "gradient", "sufficient", [4, 3, 5]])
def test_gaps_enclose_the_samples_and_points_attain_them(image_model, image, ranking):
    found = explain.pixel_budget(image_model, image, ranking=ranking, radius=0.6, domain=(0, 1))
    assert found.betas == (1, 2, 4, 8, 9)
    assert len(set(found.ranking)) == 9
    for k, beta in enumerate(found.betas):
        pixels = list(found.ranking[:beta])
        part = gpcert.Ball(image, 0.6, features=pixels, domain=(0, 1))
        samples = gap(image_model, part.sample(500, 0), found.decision)
        assert found.lower[k] <= samples.min() + 1e-12
        at = found.points[k]
        assert part.contains(at)
        assert abs(gap(image_model, at[None], found.decision)[0] - found.upper[k]) < 1e-9
    assert np.all(np.diff(found.upper) <= 0.011)  # regions are nested, up to the tolerance


def test_both_methods_enclose_the_same_gap(image_model, image):
    words = {"ranking": [4, 3, 5], "radius": 0.3, "domain": (0, 1), "budget": 5}
    plain = explain.pixel_budget(image_model, image, [2], **words)
    both = explain.pixel_budget(image_model, image, [2], method="both", **words)
    assert (plain.method, both.method) == ("taylor", "both")
    assert max(plain.lower[0], both.lower[0]) <= min(plain.upper[0], both.upper[0]) + 1e-12
    with pytest.raises(InputError, match="method"):
        explain.pixel_budget(image_model, image, [2], method="magic", **words)


def test_least_beta_flips_and_the_one_before_does_not(image_model, image):
    found = explain.pixel_budget(image_model, image, [0, 9], radius=0.6, domain=(0, 1))
    assert found.least_beta is not None
    assert gap(image_model, found.adversarial[None], found.decision)[0] < 0
    changed = np.flatnonzero(found.adversarial != image)
    assert set(changed) <= set(found.ranking[: found.least_beta])
    before = explain.pixel_budget(
        image_model, image, [found.least_beta - 1], radius=0.6, domain=(0, 1)
    )
    assert before.least_beta is None
    assert before.upper[0] > 0
    assert found.safe_beta < found.least_beta


def test_several_classes(classes):
    x = np.array([-0.9, 0.3])
    found = explain.pixel_budget(
        classes, x, [1, 2], ranking="gradient", radius=0.6, tol=0.05 if THOROUGH else 0.2
    )
    for k, beta in enumerate(found.betas):
        part = gpcert.Ball(x, 0.6, features=list(found.ranking[:beta]))
        assert found.lower[k] <= gap(classes, part.sample(300, 0), found.decision).min() + 1e-9


def test_an_interrupt_leaves_the_betas_that_were_reached(image_model, image, monkeypatch):
    done = []

    def interrupted(problem):
        done.append(solve(problem))
        return replace(done[-1], reason=StopReason.INTERRUPTED) if len(done) == 3 else done[-1]

    monkeypatch.setattr("gpcert.explain.pixels.solve", interrupted)
    found = explain.pixel_budget(
        image_model, image, ranking="gradient", radius=0.6, domain=(0, 1), budget=20
    )
    assert found.betas == (1, 2, 4)
    assert found.reason is StopReason.INTERRUPTED
    assert len(done) == 3


def test_a_tie_at_x_has_no_decision(image_model, tmp_path):
    model = replace(image_model, weights=0.0 * image_model.weights)
    nothing = explain.pixel_budget(model, np.full(9, 0.5), radius=0.1)
    assert nothing.reason is StopReason.UNDECIDED_AT_X
    assert (nothing.decision, nothing.least_beta, nothing.safe_beta) == (None, None, None)
    assert nothing.betas == nothing.ranking == ()
    assert f"none known: {nothing.reason.value}" in repr(nothing)
    assert nothing.plot().get_xlabel()
    nothing.save(tmp_path / "pixels.json")
    assert explain.PixelBudget.load(tmp_path / "pixels.json").reason is nothing.reason
    with pytest.raises(InputError, match="at most 9"):
        explain.pixel_budget(model, np.full(9, 0.5), [10], radius=0.1)
    ball = gpcert.Ball(np.full(9, 0.5), 0.1)
    with pytest.raises(InputError, match="ranking: there is no sufficient reason"):
        ranked_features(model, ball.center, ball, "sufficient", None, 0)


def test_record(image_model, image, tmp_path):
    found = explain.pixel_budget(image_model, image, [1, 9], radius=0.6, domain=(0, 1))
    found.save(tmp_path / "pixels.json")
    again = explain.PixelBudget.load(tmp_path / "pixels.json")
    assert np.array_equal(again.lower, found.lower)
    assert again.least_beta == found.least_beta
    assert list(found.to_frame()["beta"]) == [1, 9]
    assert "effects" in repr(found)
    assert found.plot().get_xlabel()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"betas": [10]}, "at most 9"),
        ({"betas": [-1]}, "whole numbers"),
        ({"ranking": "colour"}, "ranking"),
        ({"ranking": [1, 1]}, "distinct"),
        ({"radius": None}, "exactly one of radius"),
    ],
)
def test_bad_input_says_what_to_do(image_model, image, options, message):
    with pytest.raises(InputError, match=message):
        explain.pixel_budget(image_model, image, **{"radius": 0.5, **options})


def test_a_regression_has_no_decision():
    model = gpcert.Posterior(SquaredExponential(1.0), [[0.0]], [1.0])
    with pytest.raises(InputError, match="classifier"):
        explain.pixel_budget(model, [0.0], radius=0.1)


def test_lime_finds_the_middle_row(image_model, image, tmp_path):
    pytest.importorskip("lime")
    found = explain.lime(image_model, image, n_samples=1000)
    assert set(found.ranking()[:3]) == {3, 4, 5}
    assert np.array_equal(found.values[:, 0], -found.values[:, 1])
    found.save(tmp_path / "lime.json")
    assert np.array_equal(explain.Attribution.load(tmp_path / "lime.json").values, found.values)
    assert len(found.mean().to_frame()) == 18
    assert found.plot().get_xlabel()
    assert found.heat_map((3, 3)).images
    budget = explain.pixel_budget(image_model, image, [9], ranking="lime", radius=0.6)
    assert budget.ranked_by == "lime"
    for wrong in (0, "many"):
        with pytest.raises(InputError, match="n_samples"):
            explain.lime(image_model, image, n_samples=wrong)


def test_without_lime_the_extra_is_named(image_model, image, monkeypatch):
    monkeypatch.setitem(sys.modules, "lime", None)
    monkeypatch.setitem(sys.modules, "lime.lime_tabular", None)
    with pytest.raises(MissingExtraError, match=r"gpcert\[explain\]"):
        explain.lime(image_model, image)


def test_salient_features(image_model, image):
    steep = explain.salient_features(image_model, image, 3, method="sensitivity")
    assert set(steep) == {3, 4, 5}
    varied = explain.salient_features(image_model, image, 2, method="variance")
    spread = np.var(image_model.points, axis=0)
    assert set(varied) == set(np.argsort(-spread)[:2])
    for options, message in (
        ({"method": "colour"}, "method"),
        ({"method": ["variance"]}, "method"),
        ({"count": 0}, "count"),
        ({"method": "sift"}, "shape"),
    ):
        with pytest.raises(InputError, match=message):
            explain.salient_features(image_model, image, **options)


def test_key_points_of_a_blob_and_of_nothing(image_model, image):
    pytest.importorskip("skimage")
    from gpcert.explain.rankings import key_points

    grid = np.hypot(*np.mgrid[-10:11, -10:11])
    blob = np.exp(-0.5 * (grid / 2.5) ** 2)
    rows, columns = np.divmod(key_points(blob.ravel(), (21, 21)), 21)
    assert np.hypot(rows - 10, columns - 10).min() <= 2
    with pytest.raises(InputError, match="no key points"):
        explain.salient_features(image_model, np.full(9, 0.5), method="sift", shape=(3, 3))
    for wrong in ((9,), (3, 3, 1), (3.0, 3.0), (-3, -3), "33", (2, 4)):
        with pytest.raises(InputError, match="shape"):
            key_points(image, wrong)


def test_without_scikit_image_the_extra_is_named(image_model, image, monkeypatch):
    monkeypatch.setitem(sys.modules, "skimage", None)
    monkeypatch.setitem(sys.modules, "skimage.feature", None)
    with pytest.raises(MissingExtraError, match=r"gpcert\[explain\]"):
        explain.salient_features(image_model, image, method="sift", shape=(3, 3))
