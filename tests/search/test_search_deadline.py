"""Time budgets: met within a second, with bounds that hold, and without a trace when not met."""

import itertools
import time

import numpy as np
import pytest

import gpcert
from gpcert.enclosures import Evaluation, local_model
from gpcert.enclosures.goals import QuantityGoal
from gpcert.kernels import Matern, Periodic, RationalQuadratic, SquaredExponential
from gpcert.likelihoods import MultinomialProbit, Softmax
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import Backend
from gpcert.quantities import Mean, Std
from gpcert.regions import Ball, Box, Cells
from gpcert.search import Budget, Problem, Progress, StopReason, solve
from gpcert.search.region_evaluator import batch_size
from gpcert.testing.effort import THOROUGH
from gpcert.utils.processes import OutOfTime, checkpoint, deadline, remaining, until
from tests.search.search_problems import bump, cones, cube, random_posterior


def coupled(likelihood, m, amplitude):
    rng = np.random.default_rng(m)
    factor = 0.3 / np.sqrt(amplitude) * rng.normal(size=(m, m, 2))
    return Posterior(
        SquaredExponential(1.0, amplitude),
        [[0.0], [1.0]],
        rng.normal(size=(m, 2)),
        factor,
        likelihood=likelihood,
        coupled=True,
    )


def timed(call):
    """The answer, its wall-clock seconds, and those that this process worked."""
    begin, work = time.perf_counter(), time.process_time()
    answer = call()
    return answer, time.perf_counter() - begin, time.process_time() - work


def test_deadlines_nest_and_end():
    assert deadline() == remaining() == np.inf
    now = time.perf_counter()
    with until(now + 100.0):
        with until(now + 200.0):
            assert deadline() == now + 100.0
        with until(now - 1.0, exactly=True):
            assert remaining() < 0
            with pytest.raises(OutOfTime):
                checkpoint()
        with until(now - 1.0), until(now + 300.0, exactly=True):
            checkpoint()
        assert deadline() == now + 100.0
    assert deadline() == np.inf


def test_one_enormous_integral_meets_its_budget():
    """Four coupled softmax classes of latent variance 1e7: the first box alone takes 20 seconds."""
    posterior = coupled(Softmax(), 4, 1e7)
    found, _, work = timed(
        lambda: gpcert.prediction_ranges(posterior, Box([-1.0], [1.0]), budget=Budget(seconds=0.1))
    )
    assert work < 2.0
    for each in found:
        assert each.reason is StopReason.TIME
        assert 0.0 <= each.minimum.lower <= each.minimum.upper <= 1.0
        assert 0.0 <= each.maximum.lower <= each.maximum.upper <= 1.0


def test_no_batch_of_a_sum_of_kernels_lasts():
    """As many points as in the CO2 example: 8192 boxes would take seven seconds."""
    rng = np.random.default_rng(0)
    kernel = SquaredExponential(52.0, 45.0) + RationalQuadratic(3.0, 1.0, variance=0.3)
    kernel = kernel + SquaredExponential(90.0, 2.6) * Periodic(1.0, 1.5) + Matern(0.1, nu=1.5)
    Z = np.linspace(0.0, 44.0, 500)[:, None]
    posterior = Posterior(kernel, Z, rng.normal(size=500), np.eye(500))
    region, goals = Box([0.0], [50.0]), [QuantityGoal(Std(0, 1))]
    count = batch_size(posterior, 1, goals, Backend())
    low = rng.uniform(0.0, 49.0, (count, 1))
    cells = Evaluation(local_model(posterior, region, Backend(), True), Cells(region, low, low + 1))
    _, _, work = timed(lambda: goals[0].bound(cells, None))
    assert work < 2.5


@pytest.mark.parametrize("verb", ["range", "certify", "radius"])
def test_the_programs_of_the_paper_meet_their_budget(verb):
    posterior = random_posterior(0, d=4, n=150, binary=True)
    how = {"method": "paper", "budget": Budget(seconds=0.3)}
    calls = {
        "range": lambda: gpcert.prediction_range(posterior, Ball(np.zeros(4), 0.3), **how),
        "certify": lambda: gpcert.certify(posterior, np.zeros(4), 0.3, threshold=0.4, **how),
        "radius": lambda: gpcert.certified_radius(posterior, np.zeros(4), threshold=0.4, **how),
    }
    _, _, work = timed(calls[verb])
    assert work < 2.5


def test_setting_up_counts_and_leaves_what_is_always_known():
    posterior = coupled(MultinomialProbit(), 4, 2.0)
    found = gpcert.prediction_range(
        posterior, Box([-1.0], [1.0]), output=0, budget=Budget(seconds=1e-9)
    )
    assert found.reason is StopReason.TIME
    assert 0.0 <= found.minimum.lower <= found.maximum.upper <= 1.0
    late = Progress(start=time.perf_counter() - 100.0)
    budget = Budget(seconds=1.0)
    problem = Problem(
        bump(1), cube(1), [QuantityGoal(Mean(0, 1))], tol=0.0, budget=budget, progress=late
    )
    result = solve(problem)
    assert result.reason is StopReason.TIME
    assert result.seconds > 100.0
    assert np.isfinite(result.goals[0].lower)  # the first box gets its half second


@pytest.mark.parametrize("after", range(1, 9))
def test_a_batch_that_is_not_finished_is_not_replaced(after):
    """The time runs out inside a batch: the boxes still cover the region, and the bounds hold."""
    goal, truth = cones(4, d=2)
    plain, calls = goal.bound, []

    def late(evaluation, target):
        calls.append(1)
        if len(calls) > after:
            raise OutOfTime
        return plain(evaluation, target)

    goal.bound = late
    result = solve(Problem(bump(2), cube(2), [goal], tol=0.0, record=True))
    assert result.reason is StopReason.TIME
    leaves = result.leaves
    X = cube(2).sample(500, np.random.default_rng(0))
    holds = np.all((X[:, None] >= leaves.low) & (X[:, None] <= leaves.high), axis=2)
    assert holds.any(axis=1).all()
    assert np.all(goal.value(X) >= np.where(holds, leaves.lower[:, 0], np.inf).min(axis=1))
    (found,) = result.goals
    assert found.lower == leaves.lower.min()
    assert found.lower <= truth <= found.upper


def test_a_deadline_that_is_not_met_changes_nothing():
    posterior = random_posterior(2, d=2, n=8, binary=True)
    box, tol = Box([-0.5, -0.5], [0.5, 0.5]), 1e-4 if THOROUGH else 1e-2
    found = [
        gpcert.prediction_range(posterior, box, tol=tol, budget=Budget(seconds=seconds))
        for seconds in (None, 1e4, 1e6)
    ]
    essence = {
        (each.minimum, each.maximum, tuple(each.argmin), tuple(each.argmax), each.boxes)
        for each in found
    }
    assert len(essence) == 1


def test_the_search_reports_bounds_that_tighten():
    goal, truth = cones(6, d=2)
    states = []
    budget = Budget(seconds=None, boxes=200)
    problem = Problem(
        bump(2), cube(2), [goal], tol=0.0, budget=budget, progress=Progress(report=states.append)
    )
    result = solve(problem)
    assert len(states) > 3
    assert all(state.lower[0] <= truth <= state.upper[0] for state in states)
    assert all(a.lower[0] <= b.lower[0] for a, b in itertools.pairwise(states))
    assert all(a.upper[0] >= b.upper[0] for a, b in itertools.pairwise(states))
    assert states[-1].lower[0] == result.goals[0].lower
    assert states[-1].boxes == result.boxes
