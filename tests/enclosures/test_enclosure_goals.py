"""Goals: the bound lies below the goal on the whole cell, the ceiling above it at the centre."""

import numpy as np
import pytest
from hypothesis import given, settings

from gpcert import Box, Posterior
from gpcert.enclosures import Evaluation
from gpcert.enclosures.goals import QuantityGoal
from gpcert.enclosures.local_posterior import LocalPosterior
from gpcert.kernels import Matern
from gpcert.likelihoods import Logistic, Probit, SklearnLogistic
from gpcert.numerics.arrays import Backend, to_numpy
from gpcert.quantities import Band, Deviation, Mean, Probability, Variance
from gpcert.regions import Cells
from gpcert.testing.arb_reference import ArbPosterior
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import exact
from tests.enclosures.enclosure_checks import arb, check_goal, evaluation_of
from tests.strategies import cases


@settings(max_examples=examples(40))
@given(case=cases())
def test_mean_goal(case):
    reference = ArbPosterior(case.posterior)
    evaluation = evaluation_of(case, variance=False)
    for c in range(case.posterior.outputs):
        for sign in (1, -1):
            middle = sign * float(case.posterior.predict(case.region.center[None])[0][0, c])
            for target in (None, middle, 0.0):
                check_goal(
                    case,
                    QuantityGoal(Mean(c, sign)),
                    lambda x, c=c, sign=sign: sign * reference.mean(x, c),
                    evaluation,
                    target,
                )


@settings(max_examples=examples(40))
@given(case=cases())
def test_variance_goal(case):
    reference = ArbPosterior(case.posterior)
    evaluation = evaluation_of(case)
    for c in range(case.posterior.outputs):
        for sign in (1, -1):
            check_goal(
                case,
                QuantityGoal(Variance(c, sign)),
                lambda x, c=c, sign=sign: sign * reference.variance(x, c),
                evaluation,
            )


def check_probability(case):
    reference = ArbPosterior(case.posterior)
    evaluation = evaluation_of(case, splits=4, keep=3)
    values = {}

    def probability(x):
        key = x.tobytes()
        if key not in values:
            values[key] = reference.probability(x)
        return values[key]

    for sign in (1, -1):
        goal = QuantityGoal(Probability(case.posterior.likelihood, 0, sign))
        check_goal(case, goal, lambda x, sign=sign: sign * probability(x), evaluation)


@settings(max_examples=examples(60))
@given(case=cases(likelihood=Probit()))
def test_probit_goal(case):
    check_probability(case)


@settings(max_examples=examples(40))
@given(case=cases(likelihood=SklearnLogistic()))
def test_sklearn_logistic_goal(case):
    check_probability(case)


@settings(
    max_examples=examples(6, quick=2)
)  # the reference is a quadrature in ball arithmetic: slow
@given(case=cases(max_points=4, max_dim=2, likelihood=Logistic()))
def test_logistic_goal(case):
    check_probability(case)


@pytest.mark.parametrize("norm", [1.0, 2.0, np.inf])
@settings(max_examples=examples(20))
@given(case=cases())
def test_deviation_goal(norm, case):
    reference = ArbPosterior(case.posterior)
    evaluation = evaluation_of(case, variance=False)
    values = case.posterior.predict(case.region.center[None])[0][0]
    goal = QuantityGoal(Deviation(tuple(map(float, values)), (0.0,) * len(values), norm))

    def deviation(x):
        gaps = [abs(reference.mean(x, c) - value) for c, value in enumerate(exact(values))]
        if norm == 1.0:
            return -sum(gaps, arb(0))
        if norm == 2.0:
            return -sum((g * g for g in gaps), arb(0)).sqrt()
        largest = gaps[0]
        for g in gaps[1:]:
            largest = largest.max(g)
        return -largest

    check_goal(case, goal, deviation, evaluation)


@settings(max_examples=examples(20))
@given(case=cases(likelihood=Probit()))
def test_children_are_never_looser_once_clipped(case):
    """A child takes the better of its own bound and its parent's: the search relies on it."""
    evaluation = evaluation_of(case)
    if len(case.region.free) == 0:
        return
    cells = evaluation.cells
    axis = to_numpy(cells.widths).argmax(axis=1)
    children = Evaluation(evaluation.local, cells.split(axis))
    for goal in (
        QuantityGoal(Mean(0, 1)),
        QuantityGoal(Variance(0, -1)),
        QuantityGoal(Probability(Probit(), 0, 1)),
    ):
        parents = np.tile(to_numpy(goal.bound(evaluation, None).lower), 2)
        own = to_numpy(goal.bound(children, None).lower)
        keep = ~to_numpy(children.cells.empty())
        clipped = np.maximum(parents, own)
        ceiling = to_numpy(goal.ceiling(children))
        inside = case.region.contains(children.cells.points_full(children.cells.center))
        assert np.all(clipped[keep] >= parents[keep])
        assert np.all(clipped[keep & inside] <= ceiling[keep & inside])


def test_lines_that_gained_nothing_are_tried_on_few_cells(monkeypatch):
    """On batches of many cells; where the few gain, all cells have them."""
    rng = np.random.default_rng(0)
    Z = rng.uniform(-1.0, 1.0, (30, 1))
    posterior = Posterior(Matern(0.3, nu=0.5), Z, rng.normal(size=30))
    cells = Box([-1.0], [1.0]).root()
    for _ in range(7):
        cells = cells.split(np.zeros(len(cells), dtype=int))
    asked, shift = [], [0.0]
    lines = LocalPosterior.lines_mean

    def counted(self, expansion, output, sign):
        found = lines(self, expansion, output, sign)
        asked.append(len(found))
        return found - shift[0]

    monkeypatch.setattr(LocalPosterior, "lines_mean", counted)
    lower = []
    for shift[0] in (10.0, 0.0):
        local = LocalPosterior.build(posterior, cells.region, Backend(), variance=False)
        lower.append(QuantityGoal(Mean(0, 1)).bound(Evaluation(local, cells), None).lower)
    assert asked[0] <= 16
    assert asked[2] == len(cells) == 128
    assert np.all(lower[1] >= lower[0])
    assert np.any(lower[1] > lower[0])


def test_values_that_are_not_among_the_few_stay_what_is_known():
    rng = np.random.default_rng(4)
    points, factor = rng.uniform(-1, 1, (6, 2)), 0.3 * rng.normal(size=(6, 6))
    model = Posterior(Matern([0.7, 0.9], nu=2.5), points, rng.normal(size=6), factor)
    region = Box([-1.0, -1.0], [1.0, 1.0])
    local = LocalPosterior.build(model, region, Backend(), variance=True)
    low = rng.uniform(-1.0, 0.9, (40, 2))
    for sign in (1, -1):
        goal = QuantityGoal(Band(0, sign, 2.0))
        every = goal.ceiling(Evaluation(local, Cells(region, low, low + 0.1)))
        evaluation = Evaluation(local, Cells(region, low, low + 0.1))
        evaluation.few = 5
        values = goal.ceiling(evaluation)
        certified = values < np.inf
        assert certified.sum() == 5
        assert np.argmin(every) == np.argmin(values)
        assert np.array_equal(values[certified], every[certified])


def test_both_ends_of_a_variance_come_from_one_batch_as_from_two():
    rng = np.random.default_rng(5)
    points, factor = rng.uniform(-1, 1, (6, 2)), 0.3 * rng.normal(size=(6, 6))
    model = Posterior(Matern([0.7, 0.9], nu=2.5), points, rng.normal(size=6), factor)
    region = Box([-1.0, -1.0], [1.0, 1.0])
    local = LocalPosterior.build(model, region, Backend(), variance=True)
    low = rng.uniform(-1.0, 0.9, (8, 2))
    variance = Evaluation(local, Cells(region, low, low + 0.1)).variance(0)
    below, above = variance.below.both_least(variance.above)
    assert below == pytest.approx(variance.below.minimum().lower, rel=1e-9)
    assert above == pytest.approx(variance.above.minimum().lower, rel=1e-9)
    rows = np.array([3, 3, 0])
    some = variance.times(np.array([-1.0, 2.0, 0.5]), rows).minimum().lower
    whole = [variance.times(np.full(8, c)).minimum().lower for c in (-1.0, 2.0, 0.5)]
    assert some == pytest.approx([whole[0][3], whole[1][3], whole[2][0]], rel=1e-9)
