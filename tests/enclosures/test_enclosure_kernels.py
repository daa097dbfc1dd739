"""Every kernel, alone and composed, through every enclosure: against ball arithmetic."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gpcert
from gpcert.enclosures.goals import QuantityGoal
from gpcert.errors import InputError
from gpcert.kernels import ExponentialTilt, Polynomial, SquaredExponential
from gpcert.likelihoods import Probit
from gpcert.model.posterior import Posterior
from gpcert.quantities import Mean, Probability, Variance
from gpcert.regions import Box
from gpcert.testing.arb_reference import ArbPosterior
from gpcert.testing.effort import examples, variants
from tests.enclosures.enclosure_checks import (
    check_goal,
    check_mean,
    check_variance,
    evaluation_of,
    refused_growth,
)
from tests.strategies import any_kernels, cases

slow = settings(
    max_examples=examples(60, quick=8),
    deadline=None,
    suppress_health_check=[HealthCheck.data_too_large],
)
any_case = cases(max_points=5, max_dim=3, make_kernels=any_kernels)


def evaluated(case, **options):
    """Enclosures of random cells; a kernel that leaves float64 on the region is refused."""
    with refused_growth():
        return evaluation_of(case, **options)


@variants("backend", ["numpy", "torch"])
@slow
@given(case=any_case, optional=st.booleans())
def test_mean(backend, case, optional):
    if backend == "torch":
        pytest.importorskip("torch")
    evaluation = evaluated(case, variance=False, optional=optional, keep=3, backend=backend)
    check_mean(case, evaluation=evaluation)


@slow
@given(case=any_case, optional=st.booleans())
def test_variance(case, optional):
    check_variance(case, evaluation=evaluated(case, optional=optional, keep=3))


@slow
@given(case=any_case, sign=st.sampled_from([1, -1]))
def test_mean_and_variance_goals(case, sign):
    evaluation = evaluated(case, keep=3)
    reference = ArbPosterior(case.posterior)
    check_goal(case, QuantityGoal(Mean(0, sign)), lambda x: sign * reference.mean(x, 0), evaluation)
    check_goal(
        case, QuantityGoal(Variance(0, sign)), lambda x: sign * reference.variance(x, 0), evaluation
    )


@slow
@given(
    case=cases(max_points=5, max_dim=2, likelihood=Probit(), make_kernels=any_kernels),
    sign=st.sampled_from([1, -1]),
)
def test_probability_goal(case, sign):
    evaluation = evaluated(case, keep=3)
    reference = ArbPosterior(case.posterior)
    goal = QuantityGoal(Probability(case.posterior.likelihood, 0, sign))
    check_goal(case, goal, lambda x: sign * reference.probability(x), evaluation)


@pytest.mark.parametrize("kernel", [ExponentialTilt([1.0]), Polynomial(6, 1.0, 1.0)])
def test_kernels_that_leave_float64_are_refused(kernel):
    """On a region where k(x, x) is beyond 2^200 nothing is bounded, and the error says why."""
    model = Posterior(kernel, np.zeros((1, 1)), [1.0], [[0.1]])
    with pytest.raises(InputError, match="smaller region"):
        gpcert.prediction_range(model, Box([-1e12], [1e12]))
    assert gpcert.prediction_range(model, Box([-0.1], [0.1]), tol=0.1).converged


@pytest.mark.parametrize("size", [1e10, 1e100, 1e300])
def test_huge_parameters_end_in_bounds_or_an_error(size):
    """Overflow on the way never becomes a bound: the truth lies inside, or there is an error."""
    kernel = SquaredExponential(1.0, 2.0) + Polynomial(2, 1.0, size)
    for weight in (1.0, size):
        try:
            model = Posterior(kernel, np.zeros((1, 1)), [weight], [[1e-3 / size**0.5]])
            found = gpcert.prediction_range(
                model, Box([-0.5], [0.5]), quantity="variance", budget=gpcert.Budget(boxes=50)
            )
        except (InputError, gpcert.errors.SoundnessError):
            continue
        truth = model.predict(np.linspace(-0.5, 0.5, 11)[:, None])[1]
        assert found.minimum.lower <= truth.min() * (1 + 1e-9)
        assert found.maximum.upper >= truth.max() * (1 - 1e-9)
