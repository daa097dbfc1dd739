"""Where rounding is what is left of a gap a search stops and says so, and nowhere else."""

import time
from dataclasses import dataclass

import numpy as np
import pytest

import gpcert
from gpcert import Status
from gpcert.enclosures import Evaluation, local_model
from gpcert.enclosures.goals import GoalBound, QuantityGoal
from gpcert.kernels import Matern, Polynomial, SquaredExponential
from gpcert.numerics.arrays import Backend, to_numpy
from gpcert.quantities import Mean, Std
from gpcert.regions import Box, Cells
from gpcert.search import Budget, Problem, StopReason, branch_and_bound, solve
from gpcert.search.branch_and_bound import solve_batch
from gpcert.search.problem import Tolerance
from gpcert.search.questions import BatchProblem, ManyBoxes, WithinTolerance
from gpcert.testing.effort import variants
from tests.search.search_problems import ConesGoal, bump, cones, cube, random_posterior

PLENTY = Budget(seconds=30.0, boxes=100_000)


@dataclass(eq=False)
class RoundedGoal(ConesGoal):
    """Cones whose bounds are all off by a `rounding` that no splitting lessens."""

    rounding: float = 0.01

    def bound(self, evaluation, target):
        found = super().bound(evaluation, target)
        return GoalBound(found.lower - self.rounding, found.point, found.scores)

    def ceiling(self, evaluation):
        return super().ceiling(evaluation) + self.rounding


def rounded(seed, d, rounding=0.01):
    goal, truth = cones(seed, d)
    return RoundedGoal(goal.tips, goal.heights, rounding=rounding), truth


@pytest.mark.parametrize("d", [1, 2])
@variants("seed", range(8), quick=3)
def test_rounding_ends_a_search(seed, d):
    """With twice the rounding and a tenth of it as the gap, long before the budget ends."""
    goal, truth = rounded(seed, d)
    result = solve(Problem(bump(d), cube(d), [goal], tol=0.01, budget=PLENTY))
    (found,) = result.goals
    assert result.reason is StopReason.RESOLUTION
    assert result.boxes < 20_000
    assert found.lower <= truth <= found.upper
    assert 0.019 < found.upper - found.lower <= 1.25 * 0.02


@variants("seed", range(8), quick=3)
def test_a_tolerance_that_rounding_allows_is_reached(seed):
    goal, truth = rounded(seed, 2)
    result = solve(Problem(bump(2), cube(2), [goal], tol=0.0205, budget=PLENTY))
    assert result.reason is StopReason.CONVERGED
    assert result.goals[0].lower <= truth <= result.goals[0].upper


def test_one_goal_at_its_end_does_not_end_the_others():
    stuck, least = rounded(1, 1)
    fine, truth = cones(2, 1)
    result = solve(Problem(bump(1), cube(1), [stuck, fine], tol=1e-4, budget=PLENTY))
    assert result.reason is StopReason.RESOLUTION
    first, second = result.goals
    assert first.lower <= least <= first.upper
    assert second.lower <= truth <= second.upper <= second.lower + 1e-4


@dataclass(eq=False)
class LateGoal(ConesGoal):
    """Nothing better than what is always known, 0, is proved before boxes are very small."""

    known = (0.0, np.inf)

    def bound(self, evaluation, target):
        cells = evaluation.cells
        center, half = to_numpy(cells.center), to_numpy(cells.half)
        lower = self.value(center) - 1e4 * half.sum(1) - 1e-12
        return GoalBound(np.maximum(lower, 0.0), 0.0 * center, half)


def test_a_bound_that_comes_late_is_waited_for():
    goal = LateGoal(np.array([[0.0]]), np.array([0.1]))  # its least value is known at once
    more = Budget(seconds=30.0, boxes=400_000)
    result = solve(Problem(bump(1), cube(1), [goal], tol=0.01, budget=more))
    assert result.reason is StopReason.CONVERGED
    assert result.goals[0].lower <= 0.1 <= result.goals[0].upper


@pytest.mark.parametrize("rough", [False, True])
@pytest.mark.parametrize("goal", [Mean(0, 1), Std(0, -1)])
@variants("seed", range(6), quick=2)
def test_ordinary_searches_are_what_they_were(seed, goal, rough, monkeypatch):
    """The same boxes, with and without a look at what rounding leaves."""
    posterior = random_posterior(seed, d=2, n=12)
    if rough:
        options = {"factor": posterior.factor, "scale": posterior.scale}
        kernel = Matern(0.8, nu=1.5, variance=posterior.kernel.variance)
        posterior = gpcert.Posterior(kernel, posterior.points, posterior.weights, **options)
    how = {"tol": 1e-2 if rough else 1e-4, "budget": Budget(seconds=None, boxes=3000)}
    found = solve(Problem(posterior, cube(2), [QuantityGoal(goal)], **how))
    monkeypatch.setattr(branch_and_bound, "FIRST_LOOK", 10**9)
    other = solve(Problem(posterior, cube(2), [QuantityGoal(goal)], **how))
    assert found.reason is other.reason
    assert found.reason is not StopReason.RESOLUTION
    assert found.boxes == other.boxes
    assert found.goals[0].lower == other.goals[0].lower


def rough_fit(d=1):
    """A parabola through a sine, with hardly any noise: weights of 1e10."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (60, d))
    y = np.sin(2.0 * X[:, 0]) + X.sum(axis=1) ** 2
    kernel = Polynomial(2, weights=1.0, offset=1.0)
    weights = np.linalg.solve(kernel.value(X, X) + 1e-10 * np.eye(len(X)), y)
    return gpcert.Posterior(kernel, X, weights)


@pytest.mark.parametrize("d", [1, 2])
def test_a_hardly_noisy_model_ends_in_words(d):
    box = Box(np.full(d, -2.0), np.full(d, 2.0))
    found = gpcert.prediction_range(rough_fit(d), box, budget=30, tol=0.01)
    assert found.reason is StopReason.RESOLUTION
    assert found.seconds < 10.0
    assert not found.converged
    assert "rounding" in str(found)
    assert "tolerance" in found.reason.value
    means = rough_fit(d).mean(box.sample(2000, 0))[:, 0]
    assert found.minimum.lower <= means.min()
    assert means.max() <= found.maximum.upper


def test_verdicts_and_radii_carry_the_reason():
    model = rough_fit()
    low = gpcert.prediction_range(model, Box([-0.05], [0.15]), budget=30, tol=0.01).minimum
    level = 0.5 * (low.lower + low.upper)
    start = time.perf_counter()
    found = gpcert.certify(model, [0.05], 0.1, threshold=level, budget=30)
    assert found.status is Status.UNKNOWN
    assert found.reason is StopReason.RESOLUTION
    radius = gpcert.certified_radius(model, [0.05], threshold=level, max_radius=0.1, budget=30)
    assert radius.reason is StopReason.RESOLUTION
    assert radius.lower < 0.1
    assert time.perf_counter() - start < 15.0


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_tie_inside_of_a_region_ends_in_words(sign):
    """`k(x, 0) - k(x, 2)` is exactly 0 on a face of the box, on which nothing can be decided."""
    kernel, points = SquaredExponential([1.0, 1.0]), [[0.0, 0.0], [2.0, 0.0]]
    model = gpcert.Posterior(kernel, points, [sign, -sign])
    region = Box([0.5, -0.01], [1.0, 0.01])
    found = gpcert.certify(model, [0.5, 0.0], region=region, threshold=0.0, budget=30)
    assert found.status is Status.UNKNOWN
    assert found.reason is StopReason.RESOLUTION


class Intervals:
    """One question per interval, as boxes of one region."""

    batch_size, bytes_per_box, backend = 512, 1e3, Backend()

    def __init__(self, posterior, region):
        self.inner = local_model(posterior, region, Backend(), False)
        self.region = region

    def evaluation(self, question, low, high, optional=True, portfolio=None):
        cells = Cells(self.region, low, low if high is None else high)
        return Evaluation(self.inner, cells, optional, portfolio)


def test_questions_that_rounding_keeps_open_end():
    """The others are answered as well as they would be alone."""
    goal, truth = rounded(3, 1)
    edges = np.linspace(-1.0, 1.0, 9)[:, None]
    low, high = edges[:-1], edges[1:]
    ask = Intervals(bump(1), cube(1)), [goal], ManyBoxes(low, high, low, high)
    found = solve_batch(BatchProblem(*ask, WithinTolerance(Tolerance(0.01)), budget=PLENTY))
    assert found.reason is StopReason.RESOLUTION
    assert found.boxes < 20_000
    assert found.lower.min() <= truth <= found.upper.min()
    assert np.all(found.upper - found.lower <= 1.25 * 0.02)
    again = solve_batch(BatchProblem(*ask, WithinTolerance(Tolerance(0.021)), budget=PLENTY))
    assert again.reason is StopReason.CONVERGED


def test_many_boxes_of_a_hardly_noisy_model_end():
    edges = np.linspace(-2.0, 2.0, 21)[:, None]
    start = time.perf_counter()
    found = gpcert.bound_boxes(rough_fit(), edges[:-1], edges[1:], tol=0.01, budget=60)
    assert time.perf_counter() - start < 20.0
    assert found.complete
    assert not found.converged
