"""Goals by the paper's method, and by both: below the goal on the whole cell, in 200 bits."""

import numpy as np
import pytest
from hypothesis import given, settings

from gpcert.enclosures.goals import QuantityGoal
from gpcert.errors import InputError
from gpcert.likelihoods import Probit, SklearnLogistic
from gpcert.numerics.arrays import to_numpy
from gpcert.paper.method import PaperMethod
from gpcert.quantities import Deviation, Mean, Probability, Quantity, Variance
from gpcert.testing.arb_reference import ArbPosterior
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import exact
from tests.enclosures.enclosure_checks import arb, check_goal, evaluation_of, refused_growth
from tests.strategies import any_kernels, cases


def both_ways(goal, how="analytic"):
    enclosures = PaperMethod(how)
    return (QuantityGoal(goal.quantity, enclosures, taylor) for taylor in (False, True))


@settings(max_examples=examples(25))
@given(case=cases(make_kernels=any_kernels, max_points=5))
def test_mean(case):
    reference = ArbPosterior(case.posterior)
    with refused_growth():
        evaluation = evaluation_of(case, variance=False, splits=4, keep=3)
    for c in range(case.posterior.outputs):
        for sign in (1, -1):
            for goal in both_ways(QuantityGoal(Mean(c, sign))):
                check_goal(
                    case,
                    goal,
                    lambda x, c=c, sign=sign: sign * reference.mean(x, c),
                    evaluation,
                )


@pytest.mark.parametrize("how", ["analytic", "solver"])
@settings(max_examples=examples(10), deadline=None)
@given(case=cases(max_points=5))
def test_variance(how, case):
    reference = ArbPosterior(case.posterior)
    evaluation = evaluation_of(case, splits=3, keep=2)
    for c in range(case.posterior.outputs):
        for sign in (1, -1):
            for goal in both_ways(QuantityGoal(Variance(c, sign)), how):
                check_goal(
                    case,
                    goal,
                    lambda x, c=c, sign=sign: sign * reference.variance(x, c),
                    evaluation,
                )


@pytest.mark.parametrize("likelihood", [Probit(), SklearnLogistic()], ids=["probit", "sklearn"])
def test_probability(likelihood):
    @settings(max_examples=examples(12), deadline=None)
    @given(case=cases(max_points=5, likelihood=likelihood))
    def check(case):
        reference = ArbPosterior(case.posterior)
        evaluation = evaluation_of(case, splits=3, keep=2)
        for sign in (1, -1):
            for goal in both_ways(QuantityGoal(Probability(case.posterior.likelihood, 0, sign))):
                check_goal(
                    case, goal, lambda x, sign=sign: sign * reference.probability(x), evaluation
                )

    check()


@settings(max_examples=examples(15))
@given(case=cases())
def test_deviation(case):
    reference = ArbPosterior(case.posterior)
    evaluation = evaluation_of(case, variance=False, splits=3, keep=3)
    values = case.posterior.predict(case.region.center[None])[0][0]
    plain = QuantityGoal(Deviation(tuple(map(float, values)), (0.0,) * len(values), 2.0))

    def deviation(x):
        gaps = [reference.mean(x, c) - value for c, value in enumerate(exact(values))]
        return -sum((g * g for g in gaps), arb(0)).sqrt()

    for goal in both_ways(plain):
        check_goal(case, goal, deviation, evaluation)


@settings(max_examples=examples(15))
@given(case=cases())
def test_both_is_the_larger_bound(case):
    evaluation = evaluation_of(case, splits=3, keep=3)
    plain = QuantityGoal(Variance(0, -1))
    paper, both = both_ways(plain)
    bounds = [to_numpy(goal.bound(evaluation, None).lower) for goal in (plain, paper, both)]
    assert np.array_equal(bounds[2], np.maximum(bounds[0], bounds[1]))


def test_splits_are_random_features_with_width():
    @settings(max_examples=1)
    @given(case=cases())
    def check(case):
        evaluation = evaluation_of(case)
        half = to_numpy(evaluation.cells.half)
        first, again, other = (
            PaperMethod("analytic", seed).random_axes(evaluation) for seed in (1, 1, 2)
        )
        assert np.array_equal(first, again)
        assert half.size == 0 or not half.any() or not np.array_equal(first, other)
        assert np.all((to_numpy(first) > 0) == (half > 0))

    check()


def test_unknown_quantities_are_refused():
    class Other(Quantity):
        by_variance = False

    @settings(max_examples=1)
    @given(case=cases())
    def check(case):
        evaluation = evaluation_of(case, variance=False)
        with pytest.raises(InputError, match="taylor"):
            QuantityGoal(Other(), PaperMethod("analytic"), False).bound(evaluation, None)
        with pytest.raises(NotImplementedError, match="Other"):
            QuantityGoal(Other()).bound(evaluation, None)

    check()
