import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.likelihoods import LapseProbit, Logistic, Probit
from gpcert.likelihoods.probit import StepLink
from gpcert.testing.arb_reference import normal_cdf
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import BITS
from gpcert.testing.likelihood_contract import LikelihoodContract


class TestProbit(LikelihoodContract):
    likelihood = Probit()
    width = 1e-13

    def reference(self, mu: arb, v: arb) -> arb:
        return normal_cdf(mu / (1 + v).sqrt())


@settings(deadline=None, max_examples=examples(200))
@given(
    beta=st.floats(1e-3, 1e3),
    v=st.floats(0.0, 1e4),
    left=st.sampled_from([0.0, 1e-16, 1e-8, 0.1, 1.0]),
    right=st.sampled_from([0.0, 1e-16, 1e-8, 0.1, 1.0]),
)
def test_interior_minimum_is_exact_and_below(beta, v, left, right):
    # the turning point v* = alpha / beta - 2 lies in, at an end of, or just outside the segment
    alpha = beta * (v + 2.0)
    segment = (alpha, beta, max(v - left * v, 0.0), v + right * v)
    low = float(Probit().line_minimum(*(np.array([x]) for x in segment))[0])
    with ctx.workprec(BITS):
        turn = arb(alpha) / arb(beta) - 2
        inside = arb(segment[2]) <= turn <= arb(segment[3])
        points = [arb(segment[2]), arb(segment[3]), *([turn] if inside else [])]
        values = [normal_cdf((arb(alpha) + arb(beta) * p) / (1 + p).sqrt()) for p in points]
        assert all(not arb(low) > value for value in values)
        # tight as well: exact up to rounding
        assert min(float(value) for value in values) - low < 1e-12


@pytest.mark.parametrize("likelihood", [Probit(), StepLink(), LapseProbit(), Logistic()])
def test_one_variance_for_many_means(likelihood):
    mu = np.array([-1.0, 0.0, 0.5])
    many = np.full_like(mu, 2.0)
    assert np.array_equal(likelihood.value(mu, 2.0), likelihood.value(mu, many))
    assert np.array_equal(likelihood.slopes(mu, 2.0), likelihood.slopes(mu, many))
    assert np.array_equal(likelihood.level_slope(mu, 2.0), likelihood.level_slope(mu, many))
