"""The link between two classes whose noise is in the variance."""

import math

import numpy as np
import pytest
from flint import arb

from gpcert.likelihoods.multinomial_probit import MultinomialProbit
from gpcert.likelihoods.probit import StepLink
from gpcert.testing.arb_reference import normal_cdf
from gpcert.testing.effort import backend_or_skip
from gpcert.testing.likelihood_contract import LikelihoodContract


def test_step_is_the_pair_with_noise_in_the_variance():
    likelihood = MultinomialProbit(2.0)
    assert likelihood.pair == StepLink()
    moments = likelihood.moments(np.array([[0.8]]), np.array([[[1.7]]]), 0)
    low, high = likelihood.pair.enclose(np.array([0.8]), np.array([1.7**2]))
    assert low[0] - 1e-15 <= moments.value[0, 1] <= high[0] + 1e-15
    assert likelihood.link_bound(3) == math.inf


class TestStepLink(LikelihoodContract):
    likelihood = StepLink()
    width = 1e-13

    def reference(self, mu, v):
        if v == 0 or mu == 0:
            return arb(1) / 2 if mu == 0 else arb(1 if mu > 0 else 0)
        return normal_cdf(mu / v.sqrt())

    @pytest.mark.parametrize("mu", [-2.5, 0.0, 0.3, 4.0])
    @pytest.mark.parametrize("v", [0.1, 1.0, 30.0])
    def test_slopes_are_derivatives(self, backend_name, mu, v):
        # F bends as 1 / v here: the steps are relative to v, unlike the contract's
        backend, step = backend_or_skip(backend_name), 1e-4 * v

        def value(m, w):
            return float(self.likelihood.value(backend.asarray([m]), backend.asarray([w]))[0])

        by_mu, by_variance = self.likelihood.slopes(backend.asarray([mu]), backend.asarray([v]))
        slopes = [
            (value(mu + step, v) - value(mu - step, v)) / (2 * step),
            (value(mu, v + step) - value(mu, v - step)) / (2 * step),
        ]
        assert float(by_mu[0]) == pytest.approx(slopes[0], abs=1e-7)
        assert float(by_variance[0]) == pytest.approx(slopes[1], abs=1e-7)
