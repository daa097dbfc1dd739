"""Ranges of real posteriors: against dense samples and many local optimisations."""

import numpy as np
import pytest
from scipy.optimize import minimize

import gpcert
from gpcert.enclosures.goals import QuantityGoal
from gpcert.quantities import Mean, Probability, Variance
from gpcert.search import Budget, Problem, StopReason, solve
from gpcert.testing.effort import examples, variants
from tests.search.search_problems import function_of, random_posterior, random_region

SLACK = 1e-9
"""Of plain floating point in the reference values; never of the bounds."""


def all_goals(posterior, binary):
    goals = [
        QuantityGoal(Mean(0, 1)),
        QuantityGoal(Mean(0, -1)),
        QuantityGoal(Variance(0, 1)),
        QuantityGoal(Variance(0, -1)),
    ]
    if binary:
        goals += [QuantityGoal(Probability(posterior.likelihood, 0, sign)) for sign in (1, -1)]
    return goals


def optimum(goal, posterior, region, starts=1000, polished=12):
    """The best of many random points, the most promising of them polished by L-BFGS-B."""
    function = goal.function(posterior)
    points = region.sample(starts, 7)
    values = function(points)[0]
    best = float(values.min())
    free = region.free
    if region.norm_constraint is not None or len(free) == 0:
        return best  # L-BFGS-B knows boxes only
    for start in points[np.argsort(values)[:polished]]:

        def objective(z, start=start):
            x = start.copy()
            x[free] = z
            value, gradient = function(x[None])
            return value[0], gradient[0, free]

        ends = list(zip(region.lower[free], region.upper[free], strict=True))
        found = minimize(objective, start[free], jac=True, method="L-BFGS-B", bounds=ends)
        best = min(best, float(found.fun))
    return best


@variants("seed", [5, 9, 10, 2, 8, 0, 1, 3, 4, 6, 7, 11], quick=2)
def test_ranges_contain_every_optimum_found(seed):
    d, binary = 1 + seed % 3, bool(seed % 2)
    posterior, region = random_posterior(seed, d, binary=binary), random_region(seed, d)
    goals = all_goals(posterior, binary)
    tol = 0.02
    limits = Budget(seconds=None, boxes=4000)
    result = solve(Problem(posterior, region, goals, tol=tol, budget=limits))
    for goal, found in zip(goals, result.goals, strict=True):
        assert found.lower <= optimum(goal, posterior, region) + SLACK
        assert region.contains(found.point)
        attained = function_of(goal, posterior, found.point[None])[0]
        assert found.lower <= attained + SLACK
        assert abs(attained - found.upper) <= 1e-9
        if result.reason is StopReason.CONVERGED:
            assert found.upper - found.lower <= tol
    assert result.reason is StopReason.CONVERGED


@pytest.mark.slow
@variants("seed", [3, 7])
def test_range_contains_a_thousand_local_optima(seed):
    posterior = random_posterior(seed, 2, binary=True)
    region = gpcert.Box([-1.5, -1.0], [1.0, 1.5])
    for quantity in ("mean", "probability"):
        found = gpcert.prediction_range(posterior, region, quantity=quantity, sides="minimum")
        goal = all_goals(posterior, True)[0 if quantity == "mean" else 4]
        best = optimum(goal, posterior, region, starts=1000, polished=1000)
        assert found.converged
        assert found.minimum.lower <= best + SLACK
        assert best <= found.minimum.upper + SLACK


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]
)
def test_bounds_hold_at_every_small_budget(seed):
    """The incumbent's own box bounds nothing: every other one counts until the very end."""
    posterior, region = random_posterior(seed, 2, binary=True), random_region(seed, 2)
    goals = all_goals(posterior, binary=True)
    samples = region.sample(3000, 1)
    known = [function_of(goal, posterior, samples).min() for goal in goals]
    for boxes in (1, 3, 9, 2, 4, 6, 15, 40)[: examples(8, quick=3)]:
        limits = Budget(seconds=None, boxes=boxes)
        result = solve(Problem(posterior, region, goals, tol=0.0, budget=limits))
        for value, found in zip(known, result.goals, strict=True):
            assert found.lower <= value + SLACK
            assert found.lower <= found.upper


@variants("seed", range(3))
def test_same_seed_same_answer(seed):
    posterior, region = random_posterior(seed, 2, binary=True), random_region(seed, 2)
    goals = all_goals(posterior, binary=True)

    def run(random_state):
        limits = Budget(seconds=None, boxes=examples(30, quick=10))
        return solve(
            Problem(posterior, region, goals, tol=0.0, budget=limits, random_state=random_state)
        )

    first, again, other = run(0), run(0), run(1)
    assert (first.boxes, first.reason) == (again.boxes, again.reason)
    for one, two, three in zip(first.goals, again.goals, other.goals, strict=True):
        assert (one.lower, one.upper) == (two.lower, two.upper)
        np.testing.assert_array_equal(one.point, two.point)
        assert max(one.lower, three.lower) <= min(one.upper, three.upper)


def test_one_tree_answers_as_separate_ones_do():
    for seed in range(examples(3, quick=1)):
        posterior = random_posterior(seed, 2, outputs=3)
        region = random_region(seed, 2)
        together = gpcert.prediction_ranges(posterior, region, tol=0.05)
        for c, shared in enumerate(together):
            alone = gpcert.prediction_range(posterior, region, tol=0.05, output=c)
            assert shared.output == c
            for one, two in ((shared.minimum, alone.minimum), (shared.maximum, alone.maximum)):
                assert max(one.lower, two.lower) <= min(one.upper, two.upper)
                assert abs(one.lower - two.lower) <= 0.05
                assert abs(one.upper - two.upper) <= 0.05


@pytest.mark.parametrize("at", range(1, 6))
def test_interrupt_of_a_real_search(at, monkeypatch):
    posterior, region = random_posterior(1, 2, binary=True), random_region(2, 2)
    goals = all_goals(posterior, binary=True)
    calls, bound = [], QuantityGoal.bound

    def interrupted(self, evaluation, target):
        calls.append(1)
        if len(calls) >= at:
            raise KeyboardInterrupt
        return bound(self, evaluation, target)

    monkeypatch.setattr(QuantityGoal, "bound", interrupted)
    limits = Budget(seconds=None)
    result = solve(Problem(posterior, region, goals, tol=1e-9, budget=limits))
    assert result.reason is StopReason.INTERRUPTED
    samples = region.sample(1000, 3)
    for goal, found in zip(goals, result.goals, strict=True):
        assert found.lower <= function_of(goal, posterior, samples).min() + SLACK
        assert found.upper >= found.lower
        assert region.contains(found.point)


@variants("seed", range(12), quick=3)
def test_robust_is_never_contradicted_by_samples(seed):
    rng = np.random.default_rng(seed)
    posterior = random_posterior(seed, 2, binary=True)
    found = set()
    for _ in range(4):
        x = rng.uniform(-1, 1, 2)
        region = gpcert.Ball(x, float(rng.uniform(0.02, 0.4)), norm=[2, np.inf][seed % 2])
        threshold = None if seed % 3 else float(rng.uniform(0.3, 0.7))
        certificate = gpcert.certify(posterior, x, region=region, threshold=threshold)
        found.add(certificate.status)
        level = 0.5 if threshold is None else threshold
        samples = posterior.prediction(region.sample(10_000, 1))[:, 0]
        side = np.sign(posterior.prediction(x[None])[0, 0] - level)
        margins = side * (samples - level)
        if certificate.status is gpcert.Status.ROBUST:
            assert margins.min() > -SLACK
            assert certificate.margin.lower > 0
        else:
            assert certificate.status is gpcert.Status.NOT_ROBUST
            assert region.contains(certificate.counterexample)
            other = posterior.prediction(certificate.counterexample[None])[0, 0]
            assert side * (other - level) < SLACK
            assert certificate.margin.upper < 0
    assert found <= {gpcert.Status.ROBUST, gpcert.Status.NOT_ROBUST}
