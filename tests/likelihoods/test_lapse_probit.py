import numpy as np
import pytest
from flint import arb

from gpcert.errors import InputError
from gpcert.likelihoods import LapseProbit, Probit, likelihood_from_config
from gpcert.testing.arb_reference import normal_cdf
from gpcert.testing.likelihood_contract import LikelihoodContract


class TestLapseProbit(LikelihoodContract):
    likelihood = LapseProbit(0.001)
    width = 1e-13

    def reference(self, mu: arb, v: arb) -> arb:
        lapse = arb(0.001)
        return lapse + (1 - 2 * lapse) * normal_cdf(mu / (1 + v).sqrt())


def test_without_lapses_it_is_the_probit():
    mu, v = np.linspace(-3.0, 3.0, 7), np.linspace(0.0, 2.0, 7)
    np.testing.assert_array_equal(LapseProbit(0.0).value(mu, v), Probit().value(mu, v))
    assert LapseProbit(0.01).fair


def test_it_is_rebuilt_from_its_config():
    assert likelihood_from_config("lapse-probit", {"lapse": 0.25}) == LapseProbit(0.25)
    for bad in (-0.1, 0.5, float("nan"), "much"):
        with pytest.raises(InputError):
            LapseProbit(bad)
