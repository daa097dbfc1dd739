"""One search for many questions: the same answers as separate searches, valid whenever it stops."""

from dataclasses import replace

import numpy as np
import pytest

import gpcert
from gpcert.enclosures.evaluation import SectionModel
from gpcert.enclosures.goals import QuantityGoal
from gpcert.errors import InputError, SoundnessError
from gpcert.likelihoods import Probit
from gpcert.numerics.arrays import Backend
from gpcert.quantities import Mean, Probability
from gpcert.search import Budget, Progress, StopReason
from gpcert.search.branch_and_bound import FIRST_BOX_SECONDS, solve_batch
from gpcert.search.problem import Tolerance
from gpcert.search.questions import (
    BatchProblem,
    FirstPoints,
    ManyBoxes,
    WithinTolerance,
    nothing_searched,
)
from gpcert.testing.effort import variants
from gpcert.utils.processes import OutOfTime
from tests.search.search_problems import random_posterior


def problem_of(posterior, X, reach, tol=1e-4, budget=None, family=None):
    P, d = X.shape
    rows, features = np.repeat(np.arange(P), d), np.tile(np.arange(d), P)
    if family is None:
        parts = SectionModel.parts_of(posterior, Backend(), False)
        lines = (rows, features)
        extent = np.full(P * d, reach)
        family = SectionModel.on(parts, X, lines, extent, Backend())
    low, high = np.full((P * d, 1), -reach), np.full((P * d, 1), reach)
    return BatchProblem(
        family,
        [QuantityGoal(Mean(0, 1)), QuantityGoal(Mean(0, -1))],
        ManyBoxes(low, high, low, high),
        WithinTolerance(Tolerance(np.full(2, tol))),
        first_points=FirstPoints(np.zeros((P * d, 1)), rows),
        first_seconds=FIRST_BOX_SECONDS,
        budget=budget or Budget(),
    )


@variants("seed", range(4), quick=2)
def test_answers_are_those_of_separate_searches(seed):
    posterior = random_posterior(seed, d=3, n=12)
    X = np.random.default_rng(seed).uniform(-1, 1, (2, 3))
    result = solve_batch(problem_of(posterior, X, 1.5))
    assert result.reason is StopReason.CONVERGED
    assert np.all(result.upper - result.lower <= 1e-4)
    for q in range(6):
        region = gpcert.Ball(X[q // 3], 1.5, features=[q % 3])
        alone = gpcert.prediction_range(posterior, region, tol=1e-4, quantity="mean")
        assert result.lower[q, 0] <= alone.minimum.upper
        assert result.upper[q, 0] >= alone.minimum.lower
        assert -result.lower[q, 1] >= alone.maximum.lower
        assert -result.upper[q, 1] <= alone.maximum.upper


@pytest.mark.parametrize("boxes", [1, 7, 20])
def test_bounds_hold_whenever_the_budget_ends(boxes):
    posterior = random_posterior(5, d=3, n=12)
    X = np.random.default_rng(5).uniform(-1, 1, (2, 3))
    result = solve_batch(problem_of(posterior, X, 2.0, 1e-9, Budget(boxes=boxes)))
    assert result.reason is StopReason.BOXES
    t = np.linspace(-2.0, 2.0, 201)
    for q in range(6):
        at = np.tile(X[q // 3], (len(t), 1))
        at[:, q % 3] += t
        values = posterior.predict(at)[0][:, 0]
        assert result.lower[q, 0] <= values.min() + 1e-12
        assert -result.lower[q, 1] >= values.max() - 1e-12
        assert np.isfinite(result.upper[q]).all()


def test_points_attain_the_upper_values():
    posterior = random_posterior(2, d=2, n=9)
    X = np.zeros((1, 2))
    result = solve_batch(problem_of(posterior, X, 1.0))
    for q in range(2):
        at = X[0].copy()
        at[q] += result.points[q, 0, 0]
        assert abs(posterior.predict(at[None])[0][0, 0] - result.upper[q, 0]) < 1e-9


def test_an_interrupt_leaves_valid_bounds():
    posterior = random_posterior(1, d=2, n=9)
    X = np.zeros((1, 2))
    whole = problem_of(posterior, X, 1.0)

    class Stops:
        batch_size, bytes_per_box, backend = 1, 1e3, Backend()
        calls = 0

        def evaluation(self, *args, **options):
            self.calls += 1
            if self.calls == 3:
                raise KeyboardInterrupt
            return whole.evaluator.evaluation(*args, **options)

    result = solve_batch(problem_of(posterior, X, 1.0, family=Stops()))
    assert result.reason is StopReason.INTERRUPTED
    assert np.all(result.lower <= result.upper)


@pytest.mark.parametrize("calls", [1, 2, 3, 5])
def test_a_deadline_leaves_valid_bounds(calls):
    """Time that ends inside of the n-th piece of work; the first of them even before any value."""
    posterior = random_posterior(1, d=2, n=9)
    X = np.zeros((1, 2))
    whole = problem_of(posterior, X, 1.0, tol=1e-9)
    seen = []

    class Late:
        batch_size, bytes_per_box, backend = 1, 1e3, Backend()

        def evaluation(self, *args, **options):
            seen.append(args)
            if len(seen) >= calls:
                raise OutOfTime("the deadline has passed")
            return whole.evaluator.evaluation(*args, **options)

    result = solve_batch(problem_of(posterior, X, 1.0, tol=1e-9, family=Late()))
    assert result.reason is StopReason.TIME
    t = np.linspace(-1.0, 1.0, 101)
    for q in range(2):
        at = np.tile(X[0], (len(t), 1))
        at[:, q] += t
        values = posterior.predict(at)[0][:, 0]
        assert result.lower[q, 0] <= values.min() + 1e-12
        assert result.upper[q, 0] >= values.min() - 1e-3
        known = np.isfinite(result.upper[q])
        assert np.array_equal(np.isfinite(result.points[q]).all(axis=1), known)


def test_trivial_bounds_are_known_before_any_search():
    posterior = random_posterior(1, d=2, n=9)
    goals = [QuantityGoal(Probability(Probit(), 0, sign)) for sign in (1, -1)]
    known = nothing_searched(goals, (3, 1), StopReason.TIME)
    assert np.all(known.lower == [0.0, -1.0])
    assert np.all(known.upper == [1.0, 0.0])
    problem = problem_of(posterior, np.zeros((1, 2)), 1.0)

    class Never:
        batch_size, bytes_per_box, backend = 1, 1e3, Backend()

        def evaluation(self, *args, **options):
            raise KeyboardInterrupt

    result = solve_batch(replace(problem, goals=goals, evaluator=Never()))
    assert result.reason is StopReason.INTERRUPTED
    assert np.all(result.lower == [0.0, -1.0])
    assert np.all(result.upper == [1.0, 0.0])


def test_bounds_are_reported_while_it_works():
    posterior = random_posterior(1, d=2, n=9)
    states = []
    problem = problem_of(posterior, np.zeros((1, 2)), 1.0)
    solve_batch(replace(problem, progress=Progress(report=states.append)))
    assert states
    assert all(np.all(state.lower <= state.upper) for state in states)


def test_a_shared_point_outside_a_question_is_a_defect():
    posterior = random_posterior(1, d=2, n=9)
    good = problem_of(posterior, np.zeros((1, 2)), 1.0)
    outside = good.first_points._replace(points=np.full((2, 1), 2.0))
    with pytest.raises(SoundnessError, match="point that questions share"):
        solve_batch(replace(good, first_points=outside))


def test_a_bad_tolerance_is_refused():
    with pytest.raises(InputError, match="tol"):
        problem_of(random_posterior(1), np.zeros((1, 2)), 1.0, tol=-1.0)
