"""Laplace against scikit-learn's, finite differences, and extreme inputs."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from gpcert.kernels import SquaredExponential
from gpcert.models.inference import laplace
from gpcert.models.links import LINKS, LogisticLink
from tests.models.inference_problems import binary, covariance, derivative, latent

ALL_LINKS = pytest.mark.parametrize("link", list(LINKS.values()), ids=list(LINKS))


@pytest.mark.parametrize(("length", "variance"), [(1.3, 2.0), (0.4, 20.0), (3.0, 0.1)])
def test_equals_scikit_learn(length, variance):
    X, y = binary(60)
    model = GaussianProcessClassifier(
        ConstantKernel(variance) * RBF(length), optimizer=None, max_iter_predict=200
    ).fit(X, y)
    base = model.base_estimator_
    fit = laplace(covariance(X, length, variance), y, LogisticLink())
    assert fit.converged
    evidence, gradient = base.log_marginal_likelihood(base.kernel_.theta, eval_gradient=True)
    assert fit.evidence == pytest.approx(evidence, abs=1e-6)
    np.testing.assert_allclose(
        covariance(X, length, variance) @ fit.weights, base.f_cached, atol=1e-6
    )
    new = binary(25, seed=1)[0]
    kernel = SquaredExponential(length, variance)
    mean, spread = latent(fit, kernel.value(new, X), kernel.diagonal(new))
    expected_mean, expected_spread = model.latent_mean_and_variance(new)
    np.testing.assert_allclose(mean, expected_mean, atol=1e-6)
    np.testing.assert_allclose(spread, expected_spread, atol=1e-6)
    K, squared = covariance(X, length, variance), np.square(X[:, None] - X[None]).sum(-1)
    W = fit.gradient.square
    by_hand = [(W * K).sum(), (W * K * squared / length**2).sum()]
    np.testing.assert_allclose(by_hand, gradient, atol=1e-6)


@ALL_LINKS
@pytest.mark.parametrize("variance", [0.5, 3.0, 100.0])
def test_gradient_against_finite_differences(link, variance):
    X, y = binary()

    def evidence(log_length):
        return laplace(covariance(X, np.exp(log_length), variance), y, link).evidence

    fit = laplace(covariance(X, np.exp(0.2), variance), y, link)
    change = derivative(lambda s: covariance(X, np.exp(s), variance), 0.2)
    found = float((fit.gradient.square * change).sum())
    assert found == pytest.approx(derivative(evidence, 0.2), rel=1e-6)
    np.testing.assert_array_equal(fit.gradient.square, fit.gradient.square.T)


@ALL_LINKS
def test_mode_equation_and_posterior_by_plain_inverses(link):
    X, y = binary()
    K = covariance(X) + 1e-3 * np.eye(len(X))
    fit = laplace(K, y, link)
    f = K @ fit.weights
    found = link.derivatives(y, f)
    np.testing.assert_allclose(fit.weights, found.first, atol=1e-9)
    S = np.linalg.inv(K + np.diag(1 / found.curvature))
    np.testing.assert_allclose(fit.factor.T @ fit.factor, S, atol=1e-9)
    sign, determinant = np.linalg.slogdet(np.eye(len(X)) + K * found.curvature)
    by_hand = link.log_likelihood(y, f).sum() - 0.5 * f @ np.linalg.solve(K, f) - 0.5 * determinant
    assert sign > 0
    assert fit.evidence == pytest.approx(by_hand, abs=1e-9)


@ALL_LINKS
def test_a_warm_start_saves_steps_and_changes_nothing(link):
    X, y = binary(60)
    before = laplace(covariance(X, 1.0, 10.0), y, link)
    cold, warm = (laplace(covariance(X, 1.05, 10.0), y, link, s) for s in (None, before.start))
    assert warm.iterations < cold.iterations
    assert warm.evidence == pytest.approx(cold.evidence, abs=1e-8)
    np.testing.assert_allclose(warm.weights, cold.weights, atol=1e-9)
    # a hopeless start is not used
    bad = laplace(covariance(X, 1.05, 10.0), y, link, start=1e6 * y)
    np.testing.assert_allclose(bad.weights, cold.weights, atol=1e-9)


@ALL_LINKS
@pytest.mark.parametrize("variance", [1e3, 1e6, 1e10])
@pytest.mark.parametrize("case", ["plain", "duplicated", "contradicting", "one-sided"])
def test_extreme_inputs(link, variance, case):
    X, y = binary(40)
    if case in {"duplicated", "contradicting"}:
        X, y = np.vstack([X, X]), np.concatenate([y, y if case == "duplicated" else -y])
    if case == "one-sided":
        y = np.ones(40)
        y[0] = -1.0
    fit = laplace(covariance(X, 0.8, variance), y, link)
    assert fit.converged
    assert np.isfinite(fit.evidence)
    assert fit.evidence <= 0
    assert np.isfinite(fit.gradient.square).all()
    variances = variance - np.square(fit.factor @ covariance(X, 0.8, variance)).sum(0)
    assert variances.min() > -1e-9 * variance


def test_too_few_steps_are_told():
    X, y = binary()
    with pytest.warns(ConvergenceWarning, match=r"after 1 steps with .* = \d"):
        fit = laplace(covariance(X, 1.0, 50.0), y, LogisticLink(), max_iterations=1)
    assert not fit.converged
