"""Votes of several pairs at once: what no point of a cell can have, and what is exact about it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert
from gpcert.enclosures import Evaluation, local_model
from gpcert.enclosures.goals import QuantityGoal
from gpcert.kernels import Linear, Polynomial
from gpcert.likelihoods import MeanOnly
from gpcert.model.committee import Committee
from gpcert.numerics.arrays import Backend
from gpcert.quantities import PairVotes
from gpcert.regions import Ball, Box
from gpcert.testing.effort import examples


def machine(weights, offset, points, kernel=None):
    """One-vs-one votes of `weights @ k + offset`."""
    classes = round((1 + np.sqrt(1 + 8 * len(offset))) / 2)
    member = gpcert.Posterior(
        kernel or Linear(1.0), points, weights, offset=offset, likelihood=MeanOnly()
    )
    return Committee((member,), tuple(range(classes)), "pair_votes")


def bound(committee, region, winner):
    evaluation = Evaluation(local_model(committee, region, Backend(), False), region.root())
    goal = QuantityGoal(PairVotes(winner, len(committee.classes)))
    return goal.bound(evaluation, 0.0), evaluation


def cycle(*levels):
    """Class 0 loses to 1 below the first level and to 2 above the second; 2 beats 1 below the
    third."""
    low, high, middle = levels
    return machine([[-1.0], [1.0], [-1.0]], [low, -high, middle], [[1.0]])


def test_votes_that_no_point_has_at_once():
    """Either rival may win its pair with class 0, but loses the third one there: all are equal,
    and the first wins. A third level of -0.7 lets class 1 win between both."""
    region = Box([-1.0], [1.0])
    found, _ = bound(cycle(-0.5, 0.5, -0.3), region, 0)
    assert found.lower[0] > 0
    found, evaluation = bound(cycle(-0.5, 0.5, -0.7), region, 0)
    assert found.lower[0] <= 0
    point = evaluation.cells.center + found.point
    assert cycle(-0.5, 0.5, -0.7).scores(point)[0].argmax() == 1


@settings(max_examples=examples(15), deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 3, 15]), st.sampled_from([0.05, 0.3, 1.0]))
def test_one_box_decides_linear_machines(seed, f, size):
    """Proved only if no sample differs; refuted by a point; only rounding leaves any open."""
    rng = np.random.default_rng(seed)
    classes = int(rng.integers(3, 6))
    pairs = classes * (classes - 1) // 2
    committee = machine(rng.normal(size=(pairs, f)), 0.3 * rng.normal(size=pairs), np.eye(f) + 0.0)
    x = rng.normal(size=f)
    region = Ball(x, size, norm=2) if seed % 3 == 0 and f > 1 else Box(x - size, x + size)
    found = gpcert.certify(committee, x, region=region, budget=gpcert.Budget(boxes=1))
    inside = np.concatenate([region.sample(200, rng), x[None]])
    decided = committee.scores(inside).argmax(axis=1)
    if found.status.name == "ROBUST":
        assert np.all(decided == decided[-1])
    elif isinstance(region, Box):
        assert found.status.name == "NOT_ROBUST"


@settings(max_examples=examples(15), deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.02, 0.1, 0.4]))
def test_patterns_of_curved_machines_hold_at_samples(seed, size):
    rng = np.random.default_rng(seed)
    classes = int(rng.integers(3, 6))
    pairs, kernel = classes * (classes - 1) // 2, Polynomial(int(rng.integers(2, 5)), 0.1, 0.5)
    points = rng.normal(size=(8, 14))
    committee = machine(rng.normal(size=(pairs, 8)), 0.1 * rng.normal(size=pairs), points, kernel)
    x = rng.normal(size=14)
    region = Box(x - size, x + size)
    inside = np.concatenate([region.sample(300, rng), x[None]])
    scores = committee.scores(inside)
    winner = int(scores[-1].argmax())
    lower = bound(committee, region, winner)[0].lower[0]
    others = np.delete(scores, winner, axis=1).max(axis=1)
    assert lower <= (scores[:, winner] - others).min() + 1e-12


@pytest.mark.parametrize("winner", range(4))
def test_bounds_are_whole_votes_and_ties(winner):
    """A proof by patterns gives the least lead that is positive: the goal is at least that."""
    rng = np.random.default_rng(winner)
    for _ in range(10):
        committee = machine(rng.normal(size=(6, 2)), 0.3 * rng.normal(size=6), np.eye(2))
        x = rng.normal(size=2)
        region = Box(x - 0.4, x + 0.4)
        scores = committee.scores(region.sample(400, rng))
        goal = QuantityGoal(PairVotes(winner, 4))
        least = min(goal.plain_values(committee, region.sample(200, rng)))
        lower = float(bound(committee, region, winner)[0].lower[0])
        assert lower <= least + 1.0 / 3.0
        if np.any(scores.argmax(axis=1) != winner):
            assert lower <= 0.0
