"""Standard deviations and credible bands: bounds against 200 bits, and what the joint bound gains."""

import math

import numpy as np
import pytest
from enclosure_checks import arb, check_goal, evaluation_of
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.arrays import to_numpy
from gpcert.enclosures.goals import BandGoal, MeanGoal, StdGoal, VarianceGoal
from gpcert.enclosures.goals.both import BothGoals
from gpcert.enclosures.goals.paper import PaperGoal
from gpcert.enclosures.paper import PaperEnclosures
from gpcert.kernels import SquaredExponential
from gpcert.posterior import Posterior
from gpcert.regions import Box
from gpcert.testing.arb_reference import ArbPosterior
from gpcert.testing.effort import examples
from gpcert.testing.strategies import Case, any_kernels, cases, ill_conditioned

betas = st.sampled_from([2.0, 0.3, 1e-6, 50.0, 1e12])


def band(reference, output, sign, beta):
    """`sign mu - beta std` at a point, as a ball."""
    return lambda x: (
        sign * reference.mean(x, output) - arb(beta) * reference.variance(x, output).sqrt()
    )


def check_both(case, beta, evaluation):
    reference = ArbPosterior(case.posterior)
    for c in range(case.posterior.outputs):
        for sign in (1, -1):
            check_goal(
                case, BandGoal(c, sign, beta), band(reference, c, sign, beta), evaluation
            )
            check_goal(
                case,
                StdGoal(c, sign),
                lambda x, c=c, sign=sign: sign * reference.variance(x, c).sqrt(),
                evaluation,
            )


@settings(max_examples=examples(30))
@given(case=cases(), beta=betas)
def test_band_and_std_goals(case, beta):
    check_both(case, beta, evaluation_of(case))


@settings(max_examples=examples(12))
@given(case=cases(make_kernels=any_kernels, max_points=5), beta=betas)
def test_band_and_std_goals_of_any_kernel(case, beta):
    check_both(case, beta, evaluation_of(case, splits=4, keep=3))
