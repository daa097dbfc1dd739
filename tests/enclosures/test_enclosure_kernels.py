"""Every kernel, alone and composed, through every enclosure: against ball arithmetic."""

import pytest
from enclosure_checks import check_goal, check_mean, check_variance, evaluation_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpcert.enclosures.goals import MeanGoal, ProbabilityGoal, VarianceGoal
from gpcert.likelihoods import Probit
from gpcert.testing.arb_reference import ArbPosterior
from gpcert.testing.strategies import any_kernels, cases

slow = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.data_too_large])
any_case = cases(max_points=5, max_dim=3, make_kernels=any_kernels)


@pytest.mark.parametrize("backend", ["numpy", "torch"])
@slow
@given(case=any_case, optional=st.booleans())
def test_mean(backend, case, optional):
    if backend == "torch":
        pytest.importorskip("torch")
    evaluation = evaluation_of(case, variance=False, optional=optional, keep=3, backend=backend)
    check_mean(case, evaluation=evaluation)


@slow
@given(case=any_case, optional=st.booleans())
def test_variance(case, optional):
    check_variance(case, evaluation=evaluation_of(case, optional=optional, keep=3))


@slow
@given(case=any_case, sign=st.sampled_from([1, -1]))
def test_mean_and_variance_goals(case, sign):
    evaluation = evaluation_of(case, keep=3)
    reference = ArbPosterior(case.posterior)
    check_goal(case, MeanGoal(0, sign), lambda x: sign * reference.mean(x, 0), evaluation)
    check_goal(case, VarianceGoal(0, sign), lambda x: sign * reference.variance(x, 0), evaluation)


@slow
@given(
    case=cases(max_points=5, max_dim=2, likelihood=Probit(), make_kernels=any_kernels),
    sign=st.sampled_from([1, -1]),
)
def test_probability_goal(case, sign):
    evaluation = evaluation_of(case, keep=3)
    reference = ArbPosterior(case.posterior)
    goal = ProbabilityGoal(case.posterior.likelihood, 0, sign)
    check_goal(case, goal, lambda x: sign * reference.probability(x), evaluation)
