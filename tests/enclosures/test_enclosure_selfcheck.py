"""The checks bite: broken bounds, one at a time, make a check of this folder fail."""

import numpy as np
import pytest

from gpcert.enclosures import lower_model
from gpcert.enclosures.precision import LocalPrecision
from gpcert.kernels import SquaredExponential
from gpcert.kernels.expansions import squared_exponential
from gpcert.kernels.expansions.squared_exponential import LocalSquaredExponential
from gpcert.model.posterior import Posterior
from gpcert.regions import Box, Cells
from gpcert.testing.arb_reference import regression_posterior
from tests.enclosures.enclosure_checks import check_mean, check_variance, evaluation_of
from tests.enclosures.test_enclosure_joint import check_combination
from tests.strategies import Case, ill_conditioned


def edge_case(sign=1.0):
    """One point at the end of the cell: there Cauchy-Schwarz on the tail is an equality."""
    posterior = Posterior(SquaredExponential(1.0), [[1.0]], [sign], factor=[[0.9]])
    return Case(posterior, Box([-1.0], [1.0]), np.random.default_rng(0))


def plain_case():
    rng = np.random.default_rng(5)
    points = rng.normal(size=(8, 2))
    posterior = regression_posterior(SquaredExponential(1.0), points, rng.normal(size=(1, 8)), 0.1)
    return Case(posterior, Box([-0.5, -0.5], [0.5, 0.5]), rng)


def corner_check(case, pointwise):
    """`check_mean` on the root cell alone, corners included."""
    cells = case.region.root()
    check_mean(case, evaluation=evaluation_of(case, False, pointwise, cells=cells))


@pytest.fixture
def without_extras(monkeypatch):
    """Only the global remainder: the mean's other bounds are switched off."""
    if hasattr(LocalSquaredExponential, "higher_terms"):
        monkeypatch.setattr(LocalSquaredExponential, "higher_terms", lambda *_, **__: None)


@pytest.mark.usefixtures("without_extras")
class TestRemainder:
    @pytest.mark.parametrize("sign", [1.0, -1.0])
    def test_intact(self, sign):
        corner_check(edge_case(sign), pointwise=False)

    @pytest.mark.parametrize("sign", [1.0, -1.0])
    def test_halved(self, monkeypatch, sign):
        tail = LocalSquaredExponential.tail
        monkeypatch.setattr(LocalSquaredExponential, "tail", lambda s, n, r: 0.5 * tail(s, n, r))
        with pytest.raises(AssertionError):
            corner_check(edge_case(sign), pointwise=False)

    @pytest.mark.parametrize("sign", [1.0, -1.0])
    def test_one_order_too_high(self, monkeypatch, sign):
        tail = LocalSquaredExponential.tail
        monkeypatch.setattr(LocalSquaredExponential, "tail", lambda s, n, r: tail(s, n + 1, r))
        with pytest.raises(AssertionError):
            corner_check(edge_case(sign), pointwise=False)

    @pytest.mark.parametrize("sign", [1.0, -1.0])
    def test_pointwise_halved(self, monkeypatch, sign):
        real = squared_exponential.exponential_remainder
        monkeypatch.setattr(
            squared_exponential,
            "exponential_remainder",
            lambda *a: tuple(0.5 * e for e in real(*a)),
        )
        with pytest.raises(AssertionError):
            corner_check(edge_case(sign), pointwise=True)


def test_gradient_with_the_wrong_sign(monkeypatch):
    real = LocalSquaredExponential.moments_and_cubes

    def flipped(self, coefficients, scaled):
        (value, gradient, hessian), cubes = real(self, coefficients, scaled)
        return (value, -gradient, hessian), cubes

    check_mean(plain_case())
    check_variance(plain_case())
    monkeypatch.setattr(LocalSquaredExponential, "moments_and_cubes", flipped)
    with pytest.raises(AssertionError):
        check_mean(plain_case())
    with pytest.raises(AssertionError):
        check_variance(plain_case())


def test_joint_term_with_the_wrong_weight(monkeypatch):
    """A weight not taken back from `w` (beta < 0), and a lower variance that is too high."""
    check_combination(plain_case(), 10.0, 1)
    with pytest.raises(AssertionError):
        check_combination(plain_case(), 10.0, 1, v_low=lambda low: low + 20.0)
    monkeypatch.setattr(lower_model, "down", lambda x, n=1: 1.0 + 0.0 * x if n > 2 else x)
    with pytest.raises(AssertionError):
        check_combination(plain_case(), 10.0, 1)


@pytest.mark.parametrize("kind", ["weights", "noise"])
def test_rounding_left_out(monkeypatch, kind):
    def case():
        posterior = ill_conditioned(kind)
        x = posterior.points.mean(axis=0)
        return Case(posterior, Box(x - 1e-6, x + 1e-6), np.random.default_rng(0))

    check_mean(case())
    terms = LocalSquaredExponential.terms

    def exactly(self, K, weights):
        coefficients, errors = terms(self, K, weights)
        return coefficients, 0.0 * errors

    monkeypatch.setattr(LocalSquaredExponential, "terms", exactly)
    with pytest.raises(AssertionError):
        check_mean(case())


def test_variance_rounding_left_out(monkeypatch):
    """The error of `k.S k` zeroed on a model with a noise of 1e-10."""
    posterior = ill_conditioned("noise")
    points = np.random.default_rng(1).random((6, 2))
    case = Case(posterior, Box([0.0, 0.0], [1.0, 1.0]), np.random.default_rng(0))
    cells = Cells(case.region, points, points)
    check_variance(case, evaluation=evaluation_of(case, cells=cells))
    real = LocalPrecision.center

    def exactly(self, *arguments):
        found = real(self, *arguments)
        none = 0.0 * found.error
        return found._replace(deviation=none, error=none)

    monkeypatch.setattr(LocalPrecision, "center", exactly)
    with pytest.raises(AssertionError):
        check_variance(case, evaluation=evaluation_of(case, cells=cells))
