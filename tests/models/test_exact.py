"""Exact regression against scikit-learn's, and its gradient against finite differences."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential
from gpcert.models.inference import exact
from tests.models.inference_problems import covariance, derivative, latent


def problem(N=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 3))
    return X, np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=N)


def test_equals_scikit_learn():
    X, y = problem()
    kernel = ConstantKernel(1.7) * RBF(1.4) + WhiteKernel(0.05)
    model = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0).fit(X, y)
    K = covariance(X, 1.4, 1.7)
    fit = exact(K, y, noise=0.05)
    new = problem(seed=1)[0]
    k = SquaredExponential(1.4, 1.7)
    mean, variance = latent(fit, k.value(new, X), k.diagonal(new))
    expected_mean, deviation = model.predict(new, return_std=True)
    np.testing.assert_allclose(mean, expected_mean, atol=1e-9)
    np.testing.assert_allclose(variance + 0.05, deviation**2, atol=1e-9)
    # theta of scikit-learn: log variance, log length-scale, log noise
    evidence, gradient = model.log_marginal_likelihood(model.kernel_.theta, eval_gradient=True)
    assert fit.evidence == pytest.approx(evidence, abs=1e-8)
    W = fit.gradient.square
    squared = np.square(X[:, None] - X[None]).sum(-1)
    by_hand = [(W * K).sum(), (W * K * squared / 1.4**2).sum(), fit.gradient.noise]
    np.testing.assert_allclose(by_hand, gradient, atol=1e-8)


def test_several_outputs_add_up():
    X, y = problem()
    K = covariance(X)
    both = exact(K, np.stack([y, y**2]), noise=0.1)
    one, two = exact(K, y, noise=0.1), exact(K, y**2, noise=0.1)
    assert both.evidence == pytest.approx(one.evidence + two.evidence)
    np.testing.assert_allclose(both.weights, np.stack([one.weights, two.weights]), atol=1e-12)
    np.testing.assert_allclose(
        both.gradient.square, one.gradient.square + two.gradient.square, atol=1e-11
    )


def test_gradient_against_finite_differences():
    X, y = problem()

    def evidence(log_length):
        return exact(covariance(X, np.exp(log_length)), y, noise=0.1).evidence

    fit = exact(covariance(X, np.exp(0.2)), y, noise=0.1)
    change = derivative(lambda s: covariance(X, np.exp(s)), 0.2)
    assert (fit.gradient.square * change).sum() == pytest.approx(derivative(evidence, 0.2), 1e-7)
    by_noise = derivative(lambda s: exact(covariance(X), y, noise=np.exp(s)).evidence, -2.0)
    assert exact(covariance(X), y, noise=np.exp(-2.0)).gradient.noise == pytest.approx(
        by_noise, 1e-7
    )


def test_duplicated_points_without_noise_get_a_recorded_jitter():
    X, y = problem(10)
    fit = exact(covariance(np.vstack([X, X])), np.concatenate([y, y]), noise=0.0)
    assert 0 < fit.jitter <= 1e-6
    assert np.isfinite(fit.evidence)


def test_bad_covariances_are_refused():
    with pytest.raises(InputError, match="expected shape"):
        exact(np.eye(3), np.ones(2), noise=0.1)
    with pytest.raises(InputError, match="NaN"):
        exact(np.full((2, 2), np.nan), np.ones(2), noise=0.1)
    with pytest.raises(InputError, match="semi-definite"):
        exact(np.array([[1.0, 3.0], [3.0, 1.0]]), np.ones(2), noise=0.1)
