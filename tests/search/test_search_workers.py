"""One search in several processes: shares of the open boxes cover what the search covers, and
bounds hold and are as near as with one process."""

import time
from dataclasses import replace
from itertools import pairwise

import joblib
import numpy as np
import pytest

import gpcert
from gpcert.enclosures.goals import QuantityGoal
from gpcert.errors import InputError, SoundnessError
from gpcert.numerics.arrays import to_numpy
from gpcert.quantities import Mean
from gpcert.regions import Ball
from gpcert.search import Budget, Problem, StopReason, solve, workers
from gpcert.search.branch_and_bound import search_share
from gpcert.search.state import State
from gpcert.search.workers import Shares
from gpcert.testing.effort import variants
from tests.search.search_problems import (
    ConesGoal,
    bump,
    cones,
    cube,
    random_posterior,
    random_region,
)
from tests.search.test_search_leaves import check_leaves

PLENTY = Budget(seconds=60.0, boxes=200_000)


@pytest.fixture
def at_once(monkeypatch):
    """Shares are dealt from the first boxes on."""
    for name, value in {"ALONE": -1.0, "STARTING": 0.0, "ROUND": 0.02, "FEWEST": 1}.items():
        monkeypatch.setattr(workers, name, value)


def in_threads(problem, count):
    """Searched by threads of this process, which start at once."""
    with joblib.parallel_config(backend="threading"):
        return solve(replace(problem, n_jobs=count))


def started(seed, boxes):
    """A search whose budget of boxes is used up: the problem without it, and a state to go on."""
    goal, truth = cones(seed, d=2)
    problem = Problem(bump(2), cube(2), [goal], tol=1e-3, budget=Budget(boxes=boxes), record=True)
    low, high = cube(2).lower[None], cube(2).upper[None]
    state = State.start((low, high), np.array([goal.known]), 0.1, 0, True)
    state = search_share(f"started {seed} {boxes}", problem, state, problem.budget, 60.0)
    return problem, state, truth


@variants("seed", range(12), quick=4)
@pytest.mark.parametrize("count", [1, 2, 5])
def test_shares_take_the_place_of_their_boxes(seed, count):
    problem, before, truth = started(seed, 40 + 20 * seed)
    rng = np.random.default_rng(seed)
    n = len(before.frontier.boxes)
    shares = Shares(before, rng.permutation(n)[: rng.integers(1, n + 1)], count)
    states = [before]
    for number in rng.permutation(count).tolist():
        budget = Budget(boxes=before.boxes + 50)
        share = search_share("shares", problem, shares.share(number), budget, 60.0)
        states.append(shares.put_back(number, share))
    for earlier, later in pairwise(states):
        assert np.all(earlier.frontier.bounds() <= later.frontier.bounds())
        assert np.all(earlier.incumbents.values >= later.incumbents.values)
        assert later.frontier.bounds()[0, 0] <= truth <= later.incumbents.values[0, 0]
        leaves = later.frontier.leaves()
        sides = leaves.high - leaves.low
        assert np.isclose(np.prod(sides, axis=1).sum(), np.prod(cube(2).upper - cube(2).lower))
    assert states[-1].boxes > before.boxes


@variants("seed", range(8), quick=3)
@pytest.mark.parametrize("count", [2, 3])
def test_the_same_bound_as_with_one_process(at_once, seed, count):
    goal, truth = cones(seed, d=3)
    problem = Problem(bump(3), cube(3), [goal], tol=1e-3, budget=PLENTY)
    (found,), alone = in_threads(problem, count).goals, solve(problem)
    assert found.lower <= truth <= found.upper <= found.lower + 1e-3
    assert alone.goals[0].lower <= truth <= alone.goals[0].upper
    height = np.min(goal.heights + goal.slope * np.abs(found.point - goal.tips).sum(axis=1))
    assert found.upper == pytest.approx(height, abs=1e-8)  # it allows 1e-9 for rounding


@variants("seed", range(6), quick=3)
def test_leaves_of_shares_cover_the_region(at_once, seed):
    model, region = random_posterior(seed, d=2, n=10), random_region(seed, d=2)
    goals = [QuantityGoal(Mean(0, 1)), QuantityGoal(Mean(0, -1))]
    result = in_threads(Problem(model, region, goals, tol=1e-6, record=True, budget=PLENTY), 2)
    check_leaves(result.leaves, region, goals, model, result)


@pytest.mark.parametrize("boxes", [1, 2, 63, 500, 1001])
def test_the_budget_of_boxes_is_kept(at_once, boxes):
    goal, truth = cones(3, d=3)
    problem = Problem(bump(3), cube(3), [goal], tol=0.0, budget=Budget(boxes=boxes))
    result = in_threads(problem, 2)
    assert result.boxes <= boxes + 2
    assert result.reason is StopReason.BOXES
    assert result.goals[0].lower <= truth <= result.goals[0].upper


def test_the_budget_of_seconds_is_kept(at_once):
    goal, truth = cones(3, d=3)
    problem = Problem(bump(3), cube(3), [goal], tol=0.0, budget=Budget(seconds=1.0))
    start = time.perf_counter()
    result = in_threads(problem, 2)
    assert time.perf_counter() - start < 6.0  # other work takes the cores
    assert result.reason is StopReason.TIME
    assert result.goals[0].lower <= truth <= result.goals[0].upper


def test_a_level_is_decided(at_once):
    ball = Ball([0.2, 0.1], 0.8, norm=2)
    goal, _ = cones(4, d=2)
    how = {"tol": 0.0, "budget": PLENTY}
    least = solve(Problem(bump(2), ball, [goal], tol=1e-4, budget=PLENTY)).goals[0].upper
    for level, sign in ((least - 1e-3, 1), (least + 1e-3, -1)):
        result = in_threads(Problem(bump(2), ball, [goal], target=level, **how), 2)
        assert result.reason is StopReason.DECIDED
        (found,) = result.goals
        assert found.lower > level if sign > 0 else found.upper < level


class WrongGoal(ConesGoal):
    """Its bounds of small boxes exceed its values."""

    def bound(self, evaluation, target):
        found = super().bound(evaluation, target)
        small = to_numpy(evaluation.cells.half).sum(axis=1) < 0.1
        return replace(found, lower=found.lower + 3.0 * small)


def test_crossed_bounds_are_an_error(at_once):
    goal, _ = cones(3, d=2)
    wrong = WrongGoal(goal.tips, goal.heights)
    with pytest.raises(SoundnessError, match="crossed"):
        in_threads(Problem(bump(2), cube(2), [wrong], tol=1e-3, budget=PLENTY), 2)


def test_real_processes(at_once):
    """Their answers, the progress told meanwhile, and all verbs with one search."""
    posterior, told = random_posterior(2, d=4, n=60), []
    box = gpcert.Box([-1.0] * 4, [1.0] * 4)
    problem = Problem(posterior, box, [QuantityGoal(Mean(0, 1))], tol=1e-3, n_jobs=2)
    watched = replace(problem, progress=gpcert.search.Progress(report=told.append))
    result, alone = solve(watched), solve(replace(problem, n_jobs=1))
    assert result.reason is StopReason.CONVERGED
    assert result.goals[0].lower <= alone.goals[0].upper
    assert alone.goals[0].lower <= result.goals[0].upper <= result.goals[0].lower + 1e-3
    assert len(told) > 2
    best = gpcert.maximize(posterior, box, tol=1e-3, n_jobs=2)
    rng = gpcert.prediction_range(posterior, box, tol=1e-3, quantity="mean", n_jobs=2)
    assert best.value <= rng.maximum.upper
    assert rng.maximum.lower <= best.bound
    level = rng.minimum.lower - 1e-3
    cert = gpcert.certify(posterior, box.center, region=box, threshold=level, n_jobs=2)
    assert cert.status is gpcert.Status.ROBUST


@pytest.mark.parametrize("jobs", [0, 1.5, "two", True])
def test_a_wrong_number_of_processes(jobs):
    with pytest.raises(InputError, match="n_jobs"):
        gpcert.maximize(bump(1), [(0.0, 1.0)], n_jobs=jobs)
