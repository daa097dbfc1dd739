from flint import arb

from gpcert.likelihoods import Gaussian
from gpcert.testing.likelihood_contract import LikelihoodContract


class TestGaussian(LikelihoodContract):
    likelihood = Gaussian()

    def reference(self, mu: arb, v: arb) -> arb:
        return mu
