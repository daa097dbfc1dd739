"""The recipe of CONTRIBUTING.md: a likelihood of another package is one class, and its contract."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from flint import arb

import gpcert
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import LIKELIHOODS, Probit
from gpcert.likelihoods.base import BinaryLikelihood
from gpcert.numerics.arrays import Array
from gpcert.testing.arb_reference import normal_cdf
from gpcert.testing.likelihood_contract import LikelihoodContract


@dataclass(frozen=True)
class NoisyProbit(BinaryLikelihood):
    """`F(mu, v) = Phi(mu / sqrt(4 + v))`: a probit whose noise has variance 4.

    Reason: it is the probit's at `(mu / 2, v / 4)`, which are exact. F is nondecreasing in mu, as
    Phi is.
    """

    name: ClassVar[str] = "noisy-probit"

    def value(self, mu: Array, v: Array) -> Array:
        return Probit().value(mu / 2, v / 4)

    def slopes(self, mu: Array, v: Array) -> tuple[Array, Array]:
        by_mu, by_v = Probit().slopes(mu / 2, v / 4)
        return by_mu / 2, by_v / 4

    def enclose(self, mu: Array, v: Array) -> tuple[Array, Array]:
        return Probit().enclose(mu / 2, v / 4)

    def line_minimum(self, alpha: Array, beta: Array, v_low: Array, v_high: Array) -> Array:
        return Probit().line_minimum(alpha / 2, 2 * beta, v_low / 4, v_high / 4)


class TestNoisyProbit(LikelihoodContract):
    likelihood = NoisyProbit()
    width = 1e-13

    def reference(self, mu: arb, v: arb) -> arb:
        return normal_cdf(mu / (4 + v).sqrt())


@pytest.fixture
def registered():
    gpcert.likelihoods.register(NoisyProbit)
    yield
    del LIKELIHOODS[NoisyProbit.name]


@pytest.mark.usefixtures("registered")
def test_it_is_certified_saved_and_loaded(tmp_path):
    model = gpcert.Posterior(
        SquaredExponential(1.0),
        points=[[-1.0, 0.0], [1.0, 0.0]],
        weights=[-1.0, 1.0],
        factor=0.5 * np.eye(2),
        likelihood=NoisyProbit(),
        classes=("a", "b"),
    )
    assert gpcert.certify(model, [1.0, 0.0], radius=0.1).status.name == "ROBUST"
    found = gpcert.prediction_range(model, [1.0, 0.0], radius=0.1, tol=1e-3)
    inside = np.array([1.0, 0.0]) + np.random.default_rng(0).uniform(-0.1, 0.1, (200, 2))
    values = model.prediction(inside)[:, 0]
    assert found.minimum.lower <= values.min() <= values.max() <= found.maximum.upper
    model.save(tmp_path / "model.npz")
    assert gpcert.load(tmp_path / "model.npz").likelihood == NoisyProbit()
