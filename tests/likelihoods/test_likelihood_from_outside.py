"""The recipe of CONTRIBUTING.md: a likelihood of another package is one class, and its contract."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from flint import arb

import gpcert
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import LIKELIHOODS, ExpLink, Probit, ResponseLikelihood
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


@dataclass(frozen=True)
class Doubled(ResponseLikelihood):
    """`F(mu, v) = 2 E exp(f)`: expected counts over two periods; doubling is exact."""

    name: ClassVar[str] = "doubled-counts"
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)

    def value(self, mu: Array, v: Array) -> Array:
        return 2 * ExpLink().value(mu, v)

    def slopes(self, mu: Array, v: Array) -> tuple[Array, Array]:
        by_mu, by_v = ExpLink().slopes(mu, v)
        return 2 * by_mu, 2 * by_v

    def enclose(self, mu: Array, v: Array) -> tuple[Array, Array]:
        lower, upper = ExpLink().enclose(mu, v)
        return 2 * lower, 2 * upper

    def line_minimum(self, alpha: Array, beta: Array, v_low: Array, v_high: Array) -> Array:
        return 2 * ExpLink().line_minimum(alpha, beta, v_low, v_high)

    def line_maximum(self, alpha: Array, beta: Array, v_low: Array, v_high: Array) -> Array:
        return 2 * ExpLink().line_maximum(alpha, beta, v_low, v_high)


class TestDoubled(LikelihoodContract):
    likelihood = Doubled()
    width = 1e-12
    reach = 1e-6

    def reference(self, mu: arb, v: arb) -> arb:
        return 2 * (mu + v / 2).exp()


def test_a_response_is_asked_for_by_default():
    points, weights = [[-1.0, 0.0], [1.0, 0.0]], [-1.0, 1.0]
    factor, likelihood = 0.5 * np.eye(2), Doubled()
    model = gpcert.Posterior(
        SquaredExponential(1.0), points, weights, factor, likelihood=likelihood
    )
    found = gpcert.prediction_range(model, [1.0, 0.0], radius=0.1)
    inside = np.array([1.0, 0.0]) + np.random.default_rng(0).uniform(-0.1, 0.1, (200, 2))
    values = model.prediction(inside)[:, 0]
    assert found.quantity == "response"
    assert found.minimum.lower <= values.min() <= values.max() <= found.maximum.upper
    cert = gpcert.certify(model, [1.0, 0.0], radius=0.1, threshold=values.min() / 2)
    assert cert.rule.startswith("response above")
    assert cert.robust
