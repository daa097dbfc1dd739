"""The paper's bounds of committees, through the verbs: valid, and no tighter than the engine's."""

from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF

import gpcert
from gpcert.testing.effort import THOROUGH, examples


@cache
def committee(scheme):
    X, y = load_iris(return_X_y=True)
    X, y = X[::6], y[::6]
    model = GaussianProcessClassifier(1.0 * RBF(1.0), optimizer=None, multi_class=scheme)
    return model.fit(X, y), X


def test_ranges_hold_at_samples_and_contain_the_engines_minimum():
    model, X = committee("one_vs_rest")
    x, radius = X[9], 0.05
    inside = x + np.random.default_rng(0).uniform(-radius, radius, (500, 4))
    values = model.predict_proba(inside)
    ask = {"radius": radius, "tol": 0.01, "budget": 10}
    papers = gpcert.prediction_ranges(model, x, method="paper", **ask)
    engines = gpcert.prediction_ranges(model, x, **ask)
    for c, (paper, engine) in enumerate(zip(papers, engines, strict=True)):
        assert paper.minimum.lower <= values[:, c].min()
        assert paper.maximum.upper >= values[:, c].max()
        assert paper.minimum.lower <= engine.minimum.upper  # attained by the engine's search
        assert paper.maximum.upper >= engine.maximum.lower


@pytest.mark.parametrize("scheme", ["one_vs_rest", "one_vs_one"])
def test_decisions_agree_where_both_decide(scheme):
    model, X = committee(scheme)
    budget = gpcert.Budget(seconds=1.0, boxes=None if THOROUGH else 4)
    for x in X[:: 27 // examples(3, quick=1)]:
        for radius in (0.05, 1.0):
            verdicts = {
                gpcert.certify(model, x, radius=radius, budget=budget, method=method).status.name
                for method in ("taylor", "paper")
            }
            assert len(verdicts - {"UNKNOWN"}) <= 1
