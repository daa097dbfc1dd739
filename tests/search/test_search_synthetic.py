"""Regressions of known failures of such searches, on goals whose minimum is known exactly."""

from itertools import pairwise

import numpy as np
import pytest

from gpcert.enclosures.goals import QuantityGoal
from gpcert.errors import InputError, SoundnessError
from gpcert.quantities import Mean
from gpcert.regions import Ball, Box
from gpcert.search import Budget, Problem, Progress, StopReason, region_evaluator, solve
from gpcert.testing.effort import examples
from tests.search.search_problems import ConesGoal, bump, cones, cube, random_posterior

UNLIMITED = Budget(seconds=None)


def run(goals, d=1, region=None, **options):
    options = {"tol": 1e-3, "budget": UNLIMITED} | options
    return solve(Problem(bump(d), region or cube(d), goals, **options))


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 6))]
)
def test_bounds_hold_at_every_budget_and_only_improve(seed, d):
    goal, truth = cones(seed, d)
    lowers = []
    for boxes in range(1, examples(80, quick=40)):
        states = []
        told = Progress(report=states.append)
        budget = Budget(seconds=None, boxes=boxes)
        result = run([goal], d, tol=0.0, budget=budget, progress=told)
        (found,) = result.goals
        assert found.lower <= truth <= found.upper
        assert result.reason is StopReason.BOXES
        assert boxes <= result.boxes <= boxes + 1
        assert cube(d).contains(found.point)
        assert goal.value(found.point[None])[0] <= found.upper
        for state, later in pairwise(states):
            assert np.all(later.lower >= state.lower)
            assert np.all(later.upper <= state.upper)
        lowers.append(found.lower)
    # a child's own bound may be looser than its parent's; what is reported never is
    assert np.all(np.diff(lowers) >= 0)


@pytest.mark.parametrize("batch", [1, 3, 4096])
@pytest.mark.parametrize("seed", range(6))
def test_converged_bounds_enclose_the_minimum(seed, batch, monkeypatch):
    monkeypatch.setattr(region_evaluator, "LARGEST_BATCH", batch)
    goal, truth = cones(seed)
    for tol in (0.5, 0.1, 1e-2):
        (found,) = (result := run([goal], tol=tol)).goals
        assert result.reason is StopReason.CONVERGED
        assert found.lower <= truth <= found.upper
        assert found.upper - found.lower <= tol


def test_set_aside_boxes_still_bound_the_answer():
    """The minimum hides in a box that is set aside early, within the tolerance of the incumbent."""
    goal = ConesGoal(np.array([[-0.5], [0.5]]), np.array([0.0, 0.009]), looseness=0.0)
    for boxes in range(1, examples(120, quick=50)):
        (found,) = run([goal], tol=0.05, budget=Budget(seconds=None, boxes=boxes)).goals
        assert found.lower <= 0.0 <= found.upper


@pytest.mark.parametrize("seed", range(8))
def test_target_is_decided_rightly_at_every_budget(seed):
    goal, truth = cones(seed)
    for target in (truth - 0.05, truth + 0.05):
        for boxes in (1, 2, 3, 5, 9, 20, None):
            limits = Budget(seconds=None, boxes=boxes)
            result = run([goal], tol=0.0, target=target, budget=limits)
            (found,) = result.goals
            assert found.lower <= truth <= found.upper
            proved, refuted = found.lower > target, found.upper < target
            assert (result.reason is StopReason.DECIDED) == (proved or refuted)
            assert not proved or truth > target
            assert not refuted or truth < target
            if boxes is None:
                assert proved or refuted
                assert proved == (truth > target)


def test_target_equal_to_the_minimum_is_never_proved():
    goal = ConesGoal(np.array([[0.0]]), np.array([0.25]))
    for boxes in (1, 5, 50, 500):
        result = run([goal], target=0.25, budget=Budget(seconds=None, boxes=boxes))
        (found,) = result.goals
        assert not found.lower > 0.25
        assert not found.upper < 0.25
        assert result.reason is not StopReason.DECIDED


def test_several_goals_share_a_tree():
    for seed in range(examples(5, quick=2)):
        problems = [cones(10 * seed + k, d=2) for k in range(3)]
        result = run([goal for goal, _ in problems], 2, tol=0.05)
        assert result.reason is StopReason.CONVERGED
        for (goal, truth), found in zip(problems, result.goals, strict=True):
            (alone,) = run([goal], 2, tol=0.05).goals
            assert found.lower <= truth <= found.upper <= found.lower + 0.05
            assert abs(found.lower - alone.lower) <= 0.05
            assert abs(found.upper - alone.upper) <= 0.05


def test_one_refuted_goal_decides_but_its_neighbours_stay_valid():
    (low, low_truth), (high, high_truth) = cones(1), cones(2)
    target = low_truth + 0.2
    result = run([low, high], tol=0.0, target=target)
    assert result.reason is StopReason.DECIDED
    for truth, found in zip((low_truth, high_truth), result.goals, strict=True):
        assert found.lower <= truth <= found.upper


class Failing(ConesGoal):
    """Raises, or returns a wrong bound, from the k-th batch on."""

    def set(self, at, failure):
        self.at, self.failure = at, failure
        return self

    def bound(self, evaluation, target):
        bound = super().bound(evaluation, target)
        if self.calls < self.at:
            return bound
        if isinstance(self.failure, BaseException):
            raise self.failure
        bound.lower[self.calls % len(bound.lower)] = self.failure
        return bound


def failing(seed, at, failure):
    goal, truth = cones(seed)
    return Failing(goal.tips, goal.heights).set(at, failure), truth


@pytest.mark.parametrize("at", [1, 2, 4])
@pytest.mark.parametrize("error", [ValueError("x"), ZeroDivisionError("x"), RuntimeError("x")])
def test_errors_of_a_goal_are_not_swallowed(at, error):
    goal, _ = failing(0, at, error)
    with pytest.raises(type(error)):
        run([goal])


@pytest.mark.parametrize("at", [1, 2, 4])
def test_nan_bounds_are_a_soundness_error(at):
    goal, _ = failing(0, at, np.nan)
    with pytest.raises(SoundnessError, match="NaN"):
        run([goal])


class Crossed(ConesGoal):
    """Claims too much everywhere from the k-th batch on."""

    at = 1

    def bound(self, evaluation, target):
        bound = super().bound(evaluation, target)
        return (
            bound
            if self.calls < self.at
            else type(bound)(bound.lower + 10.0, bound.point, bound.scores)
        )


@pytest.mark.parametrize("at", [1, 2, 3])
def test_crossed_bounds_are_a_soundness_error(at):
    valid, _ = cones(3)
    goal = Crossed(valid.tips, valid.heights)
    goal.at = at
    with pytest.raises(SoundnessError, match="crossed"):
        run([goal], tol=0.0, budget=Budget(seconds=None, boxes=500))


@pytest.mark.parametrize("at", range(1, 12))
@pytest.mark.parametrize("target", [None, -0.5])
def test_interrupt_in_a_bound_returns_valid_bounds(at, target):
    goal, truth = failing(4, at, KeyboardInterrupt())
    result = run([goal], tol=1e-6, target=target)
    (found,) = result.goals
    if target is not None and result.reason is StopReason.DECIDED:
        assert goal.calls < at
        return
    assert result.reason is StopReason.INTERRUPTED
    assert found.lower <= truth <= found.upper
    assert np.isfinite(found.upper)
    assert np.isfinite(found.lower) == (at > 1)


@pytest.mark.parametrize("at", range(1, 8))
def test_interrupt_in_a_ceiling_returns_valid_bounds(at):
    goal, truth = cones(4)
    calls, ceiling = [], goal.ceiling

    def interrupted(evaluation):
        calls.append(1)
        if len(calls) >= at:
            raise KeyboardInterrupt
        return ceiling(evaluation)

    goal.ceiling = interrupted
    result = run([goal], tol=1e-6)
    assert result.reason is StopReason.INTERRUPTED
    assert result.goals[0].lower <= truth <= result.goals[0].upper


def test_interrupt_in_local_search_returns_valid_bounds():
    goal, truth = cones(5)
    function = goal.function(None)
    calls = []

    def interrupted(X):
        calls.append(1)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return function(X)

    goal.function = lambda posterior: interrupted
    result = run([goal], tol=1e-6)
    assert result.reason is StopReason.INTERRUPTED
    assert result.goals[0].lower <= truth <= result.goals[0].upper


def test_budgets_stop_for_their_own_reason():
    goal, truth = cones(6, d=2, looseness=30.0)
    cases = {
        StopReason.TIME: Budget(seconds=1e-9),
        StopReason.BOXES: Budget(seconds=None, boxes=50),
        StopReason.MEMORY: Budget(seconds=None, memory=4e3),
    }
    for reason, budget in cases.items():
        result = run([goal], 2, tol=0.0, budget=budget)
        assert result.reason is reason
        assert result.goals[0].lower <= truth <= result.goals[0].upper


@pytest.mark.parametrize("name", ["seconds", "boxes", "memory"])
@pytest.mark.parametrize("value", [0, -1, np.nan, "1", [1]])
def test_bad_budgets(name, value):
    with pytest.raises(InputError, match=f"budget {name}"):
        Budget(**{name: value})


def test_boxes_must_be_a_whole_number():
    with pytest.raises(InputError, match="budget boxes"):
        Budget(boxes=10.5)
    assert Budget(boxes=np.inf).boxes is None  # infinity is no limit
    goal, truth = cones(0)
    result = run([goal], tol=0.0, budget=Budget(seconds=None, boxes=1e2))
    assert result.reason is StopReason.BOXES
    assert result.goals[0].lower <= truth <= result.goals[0].upper


@pytest.mark.parametrize("options", [{"tol": -1.0}, {"tol": np.nan}, {"target": np.inf}])
def test_bad_problems(options):
    with pytest.raises(InputError):
        run([cones(0)[0]], **options)
    with pytest.raises(InputError, match="features"):
        run([cones(0)[0]], region=cube(3))


def test_boxes_that_cannot_be_split_end_the_search():
    goal = ConesGoal(np.array([[1.0]]), np.array([0.0]), looseness=1.0)
    tiny = Box([1.0], [np.nextafter(np.nextafter(1.0, 2), 2)])
    result = run([goal], region=tiny, tol=0.0)
    assert result.reason is StopReason.RESOLUTION
    assert result.goals[0].lower <= 0.0 <= result.goals[0].upper
    # one axis too thin, the other not: the search goes on along the other
    flat = Box([1.0, -1.0], [np.nextafter(1.0, 2), 1.0])
    plane = ConesGoal(np.array([[1.0, 0.3]]), np.array([0.0]), looseness=1.0)
    result = run([plane], 2, region=flat, tol=1e-3)
    assert result.reason is StopReason.CONVERGED
    assert result.goals[0].lower <= 0.0 <= result.goals[0].upper
    # also where the thin one is the widest
    step = 2.0**-52
    thin = Box([1.0, -0.25 * step], [1.0 + step, 0.5 * step])
    plane = ConesGoal(np.array([[1.0, 0.1 * step]]), np.array([0.0]), 1.0 / step, looseness=0.0)
    result = run([plane], 2, region=thin, tol=0.0, budget=Budget(seconds=None, boxes=200))
    assert -1.01 < result.goals[0].lower <= -1.0  # of the first box -1.4


@pytest.mark.parametrize(
    "region",
    [
        Box([0.25, 0.25], [0.25, 0.25]),
        Box([0.25, -1.0], [0.25, 1.0]),
        Ball([0.25, 0.0], 0.0, norm=2),
        Ball([0.25, 0.0], 0.5, norm=1, features=[1]),
        Ball([0.25, 0.0], 0.5, features=[]),
        Ball([0.25, 0.0], 0.5, domain=([0.25, -9.0], [0.25, 9.0])),
        Ball([0.25, 0.0], 5e-324, norm=2),
    ],
)
def test_degenerate_regions(region):
    posterior = random_posterior(3, d=2)
    result = solve(
        Problem(
            posterior,
            region,
            [QuantityGoal(Mean(0, 1)), QuantityGoal(Mean(0, -1))],
            tol=1e-6,
            budget=UNLIMITED,
        )
    )
    samples = posterior.predict(region.sample(200, 0))[0][:, 0]
    low, high = result.goals
    assert low.lower <= samples.min() + 1e-12
    assert -high.lower >= samples.max() - 1e-12
    assert low.upper - low.lower <= 1e-6
    assert low.lower <= low.upper <= -high.upper + 1e-12
