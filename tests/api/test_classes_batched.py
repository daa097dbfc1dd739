"""Many points of several classes in shared batches: the answers are those of separate calls."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.svm import SVC

import gpcert
import gpcert.api.batched as batched
from gpcert.api.options import SearchSettings
from gpcert.api.regions import RegionSpecification
from gpcert.attacks import Decision
from gpcert.certificates import Status
from gpcert.kernels import SquaredExponential
from gpcert.models import GPClassifier
from gpcert.regions import Ball, Box
from gpcert.testing.effort import THOROUGH, crossed, examples, variants

POINTS = np.random.default_rng(1).uniform(-1.2, 1.2, (24, 2))
FEW = POINTS[:8] if THOROUGH else POINTS[2:4]
"""Few, but with decisions that hold and decisions that do not."""


@cache
def _model(kind):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.5, 1.5, (24, 2))
    y = np.digitize(X[:, 0] + np.sin(2 * X[:, 1]), [-0.5, 0.5])
    models = {
        "softmax": GPClassifier(SquaredExponential(0.7), likelihood="softmax", max_epochs=0),
        "one_vs_rest": GaussianProcessClassifier(4.0 * RBF(0.7), optimizer=None),
        "one_vs_one": GaussianProcessClassifier(
            4.0 * RBF(0.7), optimizer=None, multi_class="one_vs_one"
        ),
        "machine": SVC(gamma=1.0),
    }
    return gpcert.as_posterior(models[kind].fit(X, y))


KINDS = ("softmax", "one_vs_rest", "one_vs_one", "machine")


def _overlap(one, two):
    return one.lower <= two.upper and two.lower <= one.upper


def _work(model, radius=0.02, **where):
    regions = RegionSpecification(radius, **where).around_each(model, POINTS)
    return model, [
        (x, r, Decision(), SearchSettings()) for x, r in zip(POINTS, regions, strict=True)
    ]


@crossed(
    {"kind": KINDS, "words": [{}, {"class_weight": [1.0, 2.0, 1.0]}, {"features": [0]}]}, quick=3
)
def test_certificates_are_those_of_separate_calls(kind, words):
    model = _model(kind)
    if kind in ("one_vs_one", "machine") and "class_weight" in words:  # these only count votes
        with pytest.raises(gpcert.InputError, match="class_weight"):
            gpcert.certify_many(model, FEW, 0.02, **words)
        return
    for radius in (0.02, 0.15):
        table = gpcert.certify_many(model, FEW, radius, budget=20, **words)
        for x, found in zip(FEW, table, strict=True):
            alone = gpcert.certify(model, x, radius, budget=20, **words)
            for name in ("status", "decision", "rule", "region", "unit", "model"):
                assert getattr(found, name) == getattr(alone, name)
            assert _overlap(found.margin, alone.margin)
            assert found.margin_at_x == pytest.approx(alone.margin_at_x, rel=1e-6, abs=1e-9)
            if found.counterexample is not None:
                there = gpcert.certify(model, found.counterexample, 0.0, **words)
                assert there.decision != found.decision


@pytest.mark.parametrize("kind", KINDS)
def test_one_box_answers_most_points(kind):
    model = _model(kind)
    found = batched.certify_batched(*_work(model))
    assert len(found) >= 18
    assert {c.boxes for c in found.values()} == {1}
    for k, certificate in list(found.items())[: examples(6, quick=3)]:
        if certificate.status is Status.ROBUST:
            inside = Ball(POINTS[k], 0.02).sample(examples(4, quick=2), k)
            decided = {gpcert.certify(model, x, 0.0).decision for x in inside}
            assert decided == {certificate.decision}


@variants("kind", KINDS, quick=3)
def test_a_wrong_guess_refutes_nothing(kind, monkeypatch):
    """What is refuted of a decision that is not the one at x says nothing about x."""
    honest = batched.common_candidates

    def wrong(*arguments):
        return [replace(each, order=each.order[::-1]) for each in honest(*arguments)]

    monkeypatch.setattr(batched, "common_candidates", wrong)
    assert batched.certify_batched(*_work(_model(kind))) == {}


@pytest.mark.parametrize("kind", ["softmax", "one_vs_rest"])
def test_ranges_are_those_of_separate_calls(kind):
    model = _model(kind)
    boxes = [Box(x, x + 0.02) for x in POINTS[:6]]
    table = gpcert.prediction_range_many(model, boxes, output=1, tol=0.05)
    assert sum(each.boxes == 1 for each in table) >= 3
    for box, found in list(zip(boxes, table, strict=True))[: examples(6, quick=3)]:
        alone = gpcert.prediction_range(model, box, output=1, tol=0.05)
        assert found.meaning == alone.meaning
        assert _overlap(found.minimum, alone.minimum)
        assert _overlap(found.maximum, alone.maximum)
        assert box.contains(found.argmin)


@variants("kind", KINDS[::-1])
def test_radii_are_those_of_separate_calls(kind):
    model = _model(kind)
    points = POINTS[: examples(4, quick=2)]
    table = gpcert.certified_radius_many(model, points, rtol=0.1, budget=20)
    for x, found in zip(points, table, strict=True):
        alone = gpcert.certified_radius(model, x, rtol=0.1, budget=20)
        assert (found.decision, found.rule) == (alone.decision, alone.rule)
        assert _overlap(found, alone)
