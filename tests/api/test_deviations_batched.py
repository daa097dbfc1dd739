"""Deviations of many means in shared batches: the answers are those of separate calls."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert
import gpcert.api.batched as batched
from gpcert.api.options import SearchSettings
from gpcert.api.regions import RegionSpecification
from gpcert.attacks import Decision
from gpcert.certificates import Status
from gpcert.kernels import Matern, SquaredExponential
from gpcert.quantities.compound import Deviation, deviations
from gpcert.search.box_family import BoxFamily
from gpcert.testing.effort import examples

POINTS = np.random.default_rng(2).uniform(-1.5, 1.5, (24, 2))


def _regression(kernel, outputs):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.5, 1.5, (20, 2))
    return gpcert.Posterior(kernel, X, rng.normal(size=(outputs, 20)), offset=1.0, scale=2.0)


MODELS = [
    _regression(SquaredExponential([0.7, 0.9]), 1),
    _regression(Matern([0.8, 0.6], nu=2.5), 2),
    _regression(SquaredExponential(0.8), 3),
]


@settings(max_examples=examples(30), deadline=None)
@given(
    model=st.sampled_from(MODELS),
    seed=st.integers(0, 10**6),
    radius=st.sampled_from([0.0, 1e-3, 0.05, 0.2]),
    delta=st.sampled_from([1e-9, 0.01, 0.3, 2.0]),
    norm=st.sampled_from([1, 2, np.inf]),
    where=st.sampled_from([{}, {"features": [1]}, {"domain": (-1.5, 1.5)}, {"norm": 2}]),
)
def test_certificates_are_those_of_separate_calls(model, seed, radius, delta, norm, where):
    X = np.random.default_rng(seed).uniform(-1.5, 1.5, (6, 2))
    words = {"delta": delta, "output_norm": norm, "budget": 20, **where}
    table = gpcert.certify_many(model, X, radius, **words)
    for x, found in zip(X, table, strict=True):
        alone = gpcert.certify(model, x, radius, **words)
        for name in ("status", "decision", "rule", "region", "unit", "model", "method"):
            assert getattr(found, name) == getattr(alone, name)
        assert found.margin.lower <= alone.margin.upper
        assert alone.margin.lower <= found.margin.upper
        if found.status is Status.NOT_ROBUST:
            there = model.mean(found.counterexample[None])[0]
            assert np.linalg.norm(there - model.mean(x[None])[0], ord=norm) > delta * (1 - 1e-9)
            assert (
                RegionSpecification(radius, **where).around(model, x).contains(found.counterexample)
            )


@pytest.mark.parametrize("model", MODELS, ids=["one", "two", "three"])
@pytest.mark.parametrize("delta", [0.05, 0.6])
def test_one_box_answers_most_points(model, delta):
    regions = RegionSpecification(0.02).around_each(model, POINTS)
    options = Decision(delta=delta)
    work = [(x, r, options, SearchSettings()) for x, r in zip(POINTS, regions, strict=True)]
    found = batched.certify_batched(model, work)
    assert len(found) >= 18
    for k, certificate in found.items():
        inside = regions[k].sample(200, k)
        moved = np.abs(model.mean(inside) - model.mean(POINTS[k : k + 1])).max()
        assert moved <= delta or certificate.status is Status.NOT_ROBUST
        assert certificate.margin.lower <= delta - moved + 1e-9


def test_every_mean_is_compared_with_that_at_its_own_point(monkeypatch):
    X, words = POINTS[:10], {"radius": 0.01, "delta": 0.05}
    # as on a GPU, whose free memory changes: as many points in all, but not the same
    sizes = iter([4, 5, 3, *[2] * 100])
    monkeypatch.setattr(BoxFamily, "batch_size", property(lambda _: next(sizes)))
    table = gpcert.certify_many(MODELS[0], X, **words)
    monkeypatch.undo()
    for x, found in zip(X, table, strict=True):
        assert found.status is gpcert.certify(MODELS[0], x, **words).status


def test_bounds_count_the_error_of_the_reference():
    asked = [Deviation((1.0,), (0.25,), np.inf), Deviation((2.0,), (0.5,), np.inf)]
    lower = np.array([[0.5, -2.0], [1.0, -9.0]])  # means in [0.5, 2] and [1, 9]
    upper = np.array([[0.5, -2.0], [1.5, -8.0]])  # attained: 0.5 and 2; 1.5 and 8
    low, high, which = deviations(asked, lower, upper)
    np.testing.assert_allclose(low, [-1.25, -7.5])
    np.testing.assert_allclose(high, [-0.75, -5.5])
    assert np.all(low <= [-1.25, -7.5])
    assert np.all(high >= [-0.75, -5.5])
    assert which.tolist() == [1, 1]


@pytest.mark.parametrize("nan", [0, 1])
def test_nothing_is_said_of_means_whose_range_is_undefined(nan):
    ends = [np.array([0.0]), np.array([0.0])]
    ends[nan] = np.array([np.nan])
    assert Deviation((0.0,), (0.0,), np.inf).lowest([ends[0]], [ends[1]]) == -np.inf
