"""Many points in shared batches: the answers are those of separate calls."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import make_pipeline

import gpcert
import gpcert.api.batched as batched
from gpcert.api.options import SearchSettings
from gpcert.api.radius import radii_batched
from gpcert.api.radius_question import Bracket, RadiusQuestion
from gpcert.api.regions import RegionSpecification
from gpcert.attacks import Decision
from gpcert.certificates import Status
from gpcert.enclosures.goals import QuantityGoal
from gpcert.kernels import ExponentialTilt, Matern, SquaredExponential
from gpcert.likelihoods import Probit
from gpcert.numerics.arrays import backend_from_name
from gpcert.quantities import Mean, Probability
from gpcert.regions import Ball, Box
from gpcert.search import Budget
from gpcert.search.box_family import BoxFamily, balls_of, hull_of, one_box_each
from gpcert.search.problem import Tolerance
from gpcert.search.questions import WithinTolerance
from gpcert.testing.effort import THOROUGH, crossed, examples

KERNELS = (SquaredExponential([0.7, 0.9], 1.5), Matern([0.8, 0.6], nu=2.5))


def _classifier(kernel, seed=0, n=20):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.5, 1.5, (n, 2))
    K = kernel.value(X, X) + 0.1 * np.eye(n)
    weights = np.linalg.solve(K, 2.0 * np.sign(X[:, 0] + np.sin(2 * X[:, 1])))
    factor = np.linalg.inv(np.linalg.cholesky(K))
    return gpcert.Posterior(kernel, X, weights, factor, likelihood=Probit(), classes=("no", "yes"))


MODELS = [_classifier(kernel) for kernel in KERNELS]


def _essence(certificate):
    same = certificate.status, certificate.decision, certificate.rule, certificate.region
    return *same, certificate.unit, certificate.model, certificate.method


def _overlap(one, two):
    return one.lower <= two.upper and two.lower <= one.upper


@settings(max_examples=examples(25), deadline=None)
@given(
    model=st.sampled_from(MODELS),
    seed=st.integers(0, 10**6),
    radius=st.sampled_from([0.0, 1e-300, 1e-3, 0.05, 0.2, 0.6]),
    words=st.sampled_from(
        [{}, {"threshold": 0.3}, {"class_weight": {"no": 2.0, "yes": 1.0}}, {"threshold": 0.5}]
    ),
    where=st.sampled_from([{}, {"features": [1]}, {"domain": (-1.5, 1.5)}, {"norm": 2}]),
)
def test_certificates_are_those_of_separate_calls(model, seed, radius, words, where):
    X = np.random.default_rng(seed).uniform(-1.5, 1.5, (7, 2))
    X[6] = X[5]
    table = gpcert.certify_many(model, X, radius, budget=20, **words, **where)
    for x, found in zip(X, table, strict=True):
        alone = gpcert.certify(model, x, radius, budget=20, **words, **where)
        assert _essence(found) == _essence(alone)
        assert _overlap(found.margin, alone.margin)
        assert found.margin_at_x == pytest.approx(alone.margin_at_x, rel=1e-9, abs=1e-12)
        if found.counterexample is not None:
            ball = RegionSpecification(radius, **where).around(model, x)
            assert ball.contains(found.counterexample)


@settings(max_examples=examples(20), deadline=None)
@given(
    model=st.sampled_from(MODELS),
    seed=st.integers(0, 10**6),
    width=st.sampled_from([0.0, 1e-3, 0.05, 0.3]),
    words=st.sampled_from(
        [{}, {"quantity": "mean"}, {"quantity": "std"}, {"output": "no"}, {"all_outputs": True}]
    ),
)
def test_ranges_are_those_of_separate_calls(model, seed, width, words):
    rng = np.random.default_rng(seed)
    low = rng.uniform(-1.5, 1.5, (5, 2))
    boxes = [Box(a, a + width * rng.random(2)) for a in low]
    table = gpcert.prediction_range_many(model, boxes, tol=0.02, **words)
    every = words.get("all_outputs", False)
    ask = gpcert.prediction_ranges if every else gpcert.prediction_range
    options = {k: v for k, v in words.items() if k != "all_outputs"}
    alone = [ask(model, box, tol=0.02, **options) for box in boxes]
    flat = [row for rows in alone for row in rows] if every else alone
    places = np.repeat(boxes, 2) if every else boxes
    for found, single, box in zip(table, flat, places, strict=True):
        assert found.converged
        assert single.converged
        assert (found.output, found.meaning) == (single.output, single.meaning)
        assert found.nominal == pytest.approx(single.nominal, rel=1e-9)
        for own, other in ((found.minimum, single.minimum), (found.maximum, single.maximum)):
            assert own.upper - own.lower <= 0.02
            assert _overlap(own, other)
        assert box.contains(found.argmin)
        assert box.contains(found.argmax)


@settings(max_examples=examples(10, quick=2), deadline=None)
@given(
    model=st.sampled_from(MODELS),
    seed=st.integers(0, 10**6),
    words=st.sampled_from(
        [
            {},
            {"threshold": 0.3},
            {"scale": [1.0, 0.2]},
            {"domain": (-1.5, 1.5)},
            {"norm": 2},
            {"max_radius": 0.05},
        ]
    ),
)
def test_radii_are_those_of_separate_calls(model, seed, words):
    X = np.random.default_rng(seed).uniform(-1.5, 1.5, (examples(5, quick=3), 2))
    rtol = 0.05 if THOROUGH else 0.2
    table = gpcert.certified_radius_many(model, X, rtol=rtol, budget=20, **words)
    for x, found in zip(X, table, strict=True):
        alone = gpcert.certified_radius(model, x, rtol=rtol, budget=20, **words)
        same = ("decision", "rule", "unit", "norm", "model", "method")
        assert [getattr(found, name) for name in same] == [getattr(alone, name) for name in same]
        assert _overlap(found, alone)
        assert found.reason is alone.reason
        if found.counterexample is not None:
            moved = np.abs(found.counterexample - x) / words.get("scale", 1.0)
            order = words.get("norm", np.inf)
            assert np.linalg.norm(moved, ord=order) <= found.upper
        else:
            assert found.lower == words["max_radius"]


def test_brackets_of_many_radii_hold():
    work = [(x, RadiusQuestion.read(WORDS, MODELS[0], None, 0.05)) for x in POINTS]
    found = radii_batched(MODELS[0], work)
    done = {k for k, item in found.items() if not isinstance(item, Bracket)}
    assert 5 <= len(done) < len(found)
    decide = QuantityGoal(Mean(0, 1)).function(MODELS[0])
    for k, item in found.items():
        assert item.lower >= 0.95 * item.upper or k not in done
        sign = np.sign(decide(POINTS[[k]])[0][0])
        inside = Ball(POINTS[k], item.lower).sample(300, k)
        assert np.all(sign * decide(inside)[0] > 0)
        assert sign * decide(item.counterexample[None])[0][0] < 0


def _work(model, X, radius=0.05, means=None, **where):
    regions = RegionSpecification(radius, **where).around_each(model, X)
    options = Decision()
    return model, [
        (x, r, options, means or SearchSettings()) for x, r in zip(X, regions, strict=True)
    ]


WORDS = {
    "norm": np.inf, "features": None, "domain": None, "scale": None, "threshold": None,
    "class_weight": None, "delta": None, "output_norm": np.inf, "budget": None,
    "backend": "numpy", "random_state": 0, "method": "taylor", "variance_bound": None,
}  # fmt: skip
POINTS = np.random.default_rng(3).uniform(-1.5, 1.5, (30, 2))


@pytest.mark.parametrize("model", MODELS, ids=["smooth", "rough"])
def test_one_box_answers_most_points(model):
    found = batched.certify_batched(*_work(model, POINTS))
    assert len(found) >= 25
    assert {c.status for c in found.values()} == {Status.ROBUST, Status.NOT_ROBUST}
    assert all(c.boxes == 1 for c in found.values())


def test_what_shares_no_coordinates_is_left_to_searches_of_its_own():
    model, work = _work(MODELS[0], POINTS, norm=2)
    own = [(x, Ball(x, 0.1 + 0.01 * k, norm=2), *rest) for k, (x, _, *rest) in enumerate(work)]
    assert batched.certify_batched(model, own) == {}
    other = [(x, Ball(x, 0.1, norm=2 + k % 2), *rest) for k, (x, _, *rest) in enumerate(work)]
    assert batched.certify_batched(model, other) == {}
    assert hull_of([Ball([0.0] * 3, 1.0, norm=2), Ball([0.0] * 3, [1.0, 1.0, 0.0], norm=2)]) is None
    assert hull_of([Box([0.0] * 40, [1.0] * 40), Box([0.0] * 40, [1.0] * 39 + [0.0])]) is None
    assert hull_of([Box([0.0, 2.0], [1.0, 2.0]), Box([3.0, 3.0], [3.0, 4.0])]).upper.tolist() == [
        3.0,
        4.0,
    ]


@pytest.mark.parametrize("model", MODELS, ids=["smooth", "rough"])
def test_a_wrong_guess_refutes_nothing(model, monkeypatch):
    """What is refuted of a decision that is not the one at x says nothing about x."""
    honest = batched.common_candidates

    def wrong(*arguments):
        return [replace(each, order=each.order[::-1]) for each in honest(*arguments)]

    monkeypatch.setattr(batched, "common_candidates", wrong)
    assert batched.certify_batched(*_work(model, POINTS)) == {}


def test_a_deadline_leaves_the_points_to_searches_of_their_own(monkeypatch):
    monkeypatch.setattr(batched, "FIRST_BOX_SECONDS", 0.0)
    means = SearchSettings(budget=Budget(seconds=1e-9))
    assert batched.certify_batched(*_work(MODELS[0], POINTS, means=means)) == {}


@crossed({"model": MODELS, "norm": [1.0, 2.0, 3.0], "radius": [0.15, np.array([0.1, 0.3])]})
def test_balls_share_batches(model, norm, radius):
    """Decisions of many balls are those of a search of each, and proved where that needs one box;
    counter-examples lie in their balls."""
    words = {"norm": norm, "domain": (-1.2, 1.2)}
    X = np.clip(POINTS, -1.2, 1.2)
    table = gpcert.certify_many(model, X, radius=radius, progress=False, **words)
    found = batched.certify_batched(*_work(model, X, radius, **words))
    assert len(found) >= 20
    assert {each.status for each in found.values()} == {Status.ROBUST, Status.NOT_ROBUST}
    for k, (x, one) in enumerate(zip(X, table, strict=True)):
        if k < examples(30, quick=12):
            alone = gpcert.certify(model, x, radius=radius, progress=False, **words)
            assert one.status == alone.status
            assert alone.boxes > 1 or k in found
        if one.counterexample is not None:
            assert Ball(x, radius, **words).contains(one.counterexample)
            assert model.predict(one.counterexample[None])[0][0, 0] * model.mean(x[None])[0, 0] <= 0


@crossed({"backend": ["numpy", "torch"], "norm": [np.inf, 1.0, 2.0]})
def test_one_box_holds(backend, norm):
    if backend == "torch":
        pytest.importorskip("torch")
    model = MODELS[0]
    goals = tuple(
        QuantityGoal(kind)
        for sign in (1, -1)
        for kind in (Mean(0, sign), Probability(Probit(), 0, sign))
    )
    places = [Ball(x, 0.1, norm=norm, domain=(-1.5, 1.5)) for x in POINTS]
    hull, (balls, alike) = hull_of(places), balls_of(places)
    assert alike
    family = BoxFamily(model, goals, hull, backend_from_name(backend), balls=balls)
    box = one_box_each(family, places, WithinTolerance(Tolerance(1e-3)))
    for k, place in enumerate(places):
        X = place.sample(200, k)
        for g, goal in enumerate(goals):
            values = goal.function(model)(X)[0]
            assert box.lower[k, g] <= values.min() + 1e-9
            assert place.contains(box.points[k, g])
            attained = goal.function(model)(box.points[k, g][None])[0][0]
            assert box.upper[k, g] == pytest.approx(attained, abs=1e-9)


def test_ctrl_c_keeps_the_batches_that_are_done(monkeypatch):
    monkeypatch.setattr("gpcert.api.many.POINTS_PER_BATCH", 10)
    calls = []

    def interrupted(model, work):
        calls.append(len(work))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return batched.certify_batched(model, work)

    monkeypatch.setattr("gpcert.api.many.certify_batched", interrupted)
    table = gpcert.certify_many(MODELS[0], POINTS, 0.05)
    assert not table.complete
    assert 5 <= len(table) <= 10
    assert set(table.labels) <= set(range(10))


def test_models_behind_linear_features_share_batches_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4))
    gp = GaussianProcessClassifier(4.0 * RBF(1.0), optimizer=None)
    model = make_pipeline(PCA(2), gp).fit(X, X[:, 0] + np.sin(X[:, 1]) > 0)
    points = rng.normal(size=(8, 4))
    table = gpcert.certify_many(model, points, 0.1)
    for x, found in zip(points, table, strict=True):
        alone = gpcert.certify(model, x, 0.1)
        assert (found.status, found.decision) == (alone.status, alone.decision)
        assert _overlap(found.margin, alone.margin)


def test_points_between_which_the_kernel_leaves_float64_are_asked_alone():
    """exp(x_1 + x_2) is about 1 at every point, and 1e28 squared at a corner of the box around."""
    model = gpcert.Posterior(ExponentialTilt([1.0, 1.0]), [[0.0, 0.0]], [1.0])
    X = np.array([[33.0, -33.0], [-33.0, 33.0], [0.0, 0.0]])
    found = gpcert.certify_many(model, X, 0.01, threshold=0.5)
    assert [each.status for each in found] == [Status.ROBUST] * 3
    ranges = gpcert.prediction_range_many(model, X, radius=0.01)
    assert all(each.minimum.lower <= 1.0 <= each.maximum.upper for each in ranges)
    radii = gpcert.certified_radius_many(model, X, threshold=0.5, max_radius=1.0)
    truth = np.log(2.0) / 2.0
    assert all(each.lower <= truth <= each.upper * (1 + 1e-12) for each in radii)
