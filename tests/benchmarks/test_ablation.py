"""The ablation's switches: what they replace is there, and bounds without a piece still hold."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

import gpcert
from gpcert.enclosures.evaluation import Portfolio
from gpcert.kernels import Matern, SquaredExponential
from gpcert.likelihoods import Probit
from gpcert.models import GPClassifier
from gpcert.testing.effort import THOROUGH, variants

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PIECES = runpy.run_path(str(BENCHMARKS / "ablation_pieces.py"))["PIECES"]
NAMES = ("paper", "pointwise", "pointwise variance", "further slopes", "ranges", "pieces")
NAMES += ("inner line",)


@pytest.fixture(scope="module")
def questions() -> dict:
    """Small models: two latent functions, and three and five classes."""
    X, y = np.random.default_rng(0).normal(size=(12, 2)), np.arange(12)
    weights, factor = np.sin(3.0 * np.arange(12.0)), 0.5 * np.eye(12)
    latent = [
        gpcert.Posterior(kernel, X, weights, factor, likelihood=Probit())
        for kernel in (SquaredExponential(1.0), Matern(1.0, nu=2.5))
    ]
    own = GPClassifier(SquaredExponential(1.0), likelihood="softmax", max_epochs=0)
    several = [gpcert.as_posterior(own.fit(X, y % m)) for m in (3, 5)]
    few = several if THOROUGH else several[:1]
    models = {"latent": latent, "classes": few, "many_classes": several[1:]}
    return {kind: (chosen, bounds(chosen)) for kind, chosen in models.items()}


def bounds(models: list) -> list:
    """The least probability with one box."""
    one = {"sides": "minimum", "budget": gpcert.Budget(boxes=1)}
    return [
        gpcert.prediction_range(m, [0.1, 0.2], 0.3, output=0 if m.outputs > 1 else None, **one)
        for m in models
    ]


@pytest.mark.parametrize("piece", PIECES, ids=lambda piece: piece.name)
def test_what_a_piece_replaces_is_there(piece) -> None:
    before = [getattr(holder, name) for holder, name in piece.owners]
    with piece.switched_off():
        for there, (holder, name) in zip(before, piece.owners, strict=True):
            assert getattr(holder, name) is not there
    assert before == [getattr(holder, name) for holder, name in piece.owners]


SPREAD = [piece for start in range(3) for piece in PIECES[start::3]]
"""Neighbours in the list are much alike."""


@variants("piece", SPREAD, quick=len(PIECES) // 3, ids=lambda piece: piece.name)
def test_a_piece_can_be_switched_off(piece, questions) -> None:
    before = [getattr(holder, name) for holder, name in piece.owners]
    kinds = piece.on.replace("coupled", "classes").split()
    several = (kind for kind in ("many_classes", "classes") if kind in kinds)
    models, whole = questions[next(several, "latent")]
    with piece.switched_off():
        for there, (holder, name) in zip(before, piece.owners, strict=True):
            assert getattr(holder, name) is not there
        without = bounds(models)
    assert before == [getattr(holder, name) for holder, name in piece.owners]
    for one, other in zip(whole, without, strict=True):
        assert one.minimum.lower <= other.minimum.upper
        assert other.minimum.lower <= one.minimum.upper


def test_the_portfolio_knows_the_names(monkeypatch, questions) -> None:
    asked, wants = set(), Portfolio.wants
    monkeypatch.setattr(Portfolio, "wants", lambda self, key: asked.add(key[1]) or wants(self, key))
    for models, _ in questions.values():
        bounds(models)
    for name in NAMES:
        assert any(each.startswith(name) for each in asked), name
