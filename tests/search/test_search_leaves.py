"""Recorded leaves cover the region with bounds that hold, cost memory that the budget counts, and
nothing where they are not asked for."""

import numpy as np
import pytest

import gpcert
from gpcert.enclosures.goals import QuantityGoal
from gpcert.quantities import Mean
from gpcert.regions import Ball, Box
from gpcert.search import Budget, Problem, StopReason, solve
from gpcert.testing.effort import variants
from tests.search.search_problems import bump, cones, cube, random_posterior, random_region


def check_leaves(leaves, region, goals, model, result):
    """The leaves tile the box around the region, and each bound holds on what lies inside."""
    low, high = region.lower[region.free], region.upper[region.free]
    volume = np.prod(leaves.high - leaves.low, axis=1).sum()
    np.testing.assert_allclose(volume, np.prod(high - low), rtol=1e-9)
    assert np.all((leaves.low >= low) & (leaves.high <= high) & (leaves.low <= leaves.high))
    assert np.all(leaves.question == 0)
    X = region.sample(400, 0)
    free = X[:, None, region.free]
    holds = np.all((free >= leaves.low) & (free <= leaves.high), axis=2)
    assert holds.any(axis=1).all()
    for g, goal in enumerate(goals):
        values = goal.function(model)(X)[0]
        bounds = np.where(holds, leaves.lower[:, g], -np.inf).max(axis=1)
        assert np.all(values >= bounds - 1e-9)
        assert leaves.lower[:, g].min() == result.goals[g].lower


@variants("seed", range(12), quick=6)
@pytest.mark.parametrize("boxes", [1, 30, None])
def test_leaves_cover_the_region(seed, boxes):
    model, region = random_posterior(seed, d=2, n=10), random_region(seed, d=2)
    goals = [QuantityGoal(Mean(0, 1)), QuantityGoal(Mean(0, -1))]
    how = {"tol": 1e-3, "budget": Budget(seconds=None, boxes=boxes)}
    result = solve(Problem(model, region, goals, record=True, **how))
    check_leaves(result.leaves, region, goals, model, result)
    plain = solve(Problem(model, region, goals, **how))
    assert plain.leaves is None
    assert (plain.boxes, plain.reason) == (result.boxes, result.reason)
    for one, other in zip(plain.goals, result.goals, strict=True):
        assert (one.lower, one.upper) == (other.lower, other.upper)


def test_leaves_outside_a_ball_are_marked():
    disk, (goal, _) = Ball([0.2, 0.1], 0.8, norm=2), cones(4, d=2, blind=False)
    budget = Budget(seconds=None, boxes=1000)
    result = solve(Problem(bump(2), disk, [goal], tol=0.0, record=True, budget=budget))
    check_leaves(result.leaves, disk, [goal], bump(2), result)
    outside = np.isinf(result.leaves.lower[:, 0])
    assert outside.any()
    low, high = result.leaves.low[outside], result.leaves.high[outside]
    nearest = np.clip(disk.center, low, high) - disk.center
    assert np.all(np.linalg.norm(nearest, axis=1) > 0.8)


def test_leaves_of_a_decision_prove_it():
    goal, truth = cones(3, d=2)
    target = truth - 0.05
    result = solve(Problem(bump(2), cube(2), [goal], tol=0.0, target=target, record=True))
    assert result.reason is StopReason.DECIDED
    assert np.all(result.leaves.lower > target)


def test_recorded_boxes_count_towards_the_memory():
    goal, truth = cones(6, d=2, looseness=10.0)
    budget = Budget(seconds=None, boxes=50_000, memory=1.6e5)
    how = {"tol": 1e-4, "budget": budget}
    plain = solve(Problem(bump(2), cube(2), [goal], **how))
    found = solve(Problem(bump(2), cube(2), [goal], record=True, **how))
    assert plain.reason is StopReason.CONVERGED
    assert found.reason is StopReason.MEMORY
    assert found.boxes < plain.boxes
    assert found.goals[0].lower <= truth <= found.goals[0].upper
    assert sum(part.nbytes for part in found.leaves) < budget.memory


@pytest.mark.parametrize("quantity", ["mean", "std", "probability"])
def test_a_side_that_is_not_asked_is_not_searched(quantity):
    """One side takes the boxes of a search for that side alone, and no goal of the other."""
    model = random_posterior(2, d=2, n=20, binary=True)
    box, how = Box([-0.8, -0.8], [0.8, 0.8]), {"quantity": quantity, "tol": 1e-3}
    how["budget"] = Budget(seconds=None, boxes=10**5)  # boxes are then halved one at a time
    both = gpcert.prediction_range(model, box, **how)
    for side, other in (("minimum", "maximum"), ("maximum", "minimum")):
        one = gpcert.prediction_range(model, box, sides=side, **how)
        assert one.boxes <= both.boxes
        end = getattr(one, side)
        assert end.upper - end.lower <= 1e-3
        assert getattr(one, other).upper == np.inf or getattr(one, other).lower == -np.inf
