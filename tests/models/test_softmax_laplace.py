"""Softmax Laplace against a dense Newton, against the binary one, and finite differences."""

import numpy as np
import pytest
from scipy import special
from sklearn.exceptions import ConvergenceWarning

from gpcert.errors import InputError
from gpcert.models.inference import laplace, softmax_laplace
from gpcert.models.links import LogisticLink, softmax_log_likelihood
from tests.models.inference_problems import covariance, derivative


def problem(N=24, m=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 2))
    angle = np.arctan2(X[:, 1], X[:, 0]) + 0.4 * rng.normal(size=N)
    y = np.floor((angle + np.pi) / (2 * np.pi) * m).astype(int) % m
    y[:m] = np.arange(m)
    return X, y


def covariances(X, m=3, variance=3.0):
    return np.stack([covariance(X, 0.7 + 0.4 * c, variance * (1 + c)) for c in range(m)])


def dense_newton(Ks, y):
    """Mode, precision S and evidence with (m N, m N) matrices throughout."""
    m, N, _ = Ks.shape
    K = np.zeros((m * N, m * N))
    for c in range(m):
        K[c * N : (c + 1) * N, c * N : (c + 1) * N] = Ks[c]
    one_hot = np.concatenate([(y == c).astype(float) for c in range(m)])
    f = np.zeros(m * N)

    def curvature(f):
        p = special.softmax(f.reshape(m, N), axis=0)
        stacked = np.vstack([np.diag(row) for row in p])
        return p.ravel(), np.diag(p.ravel()) - stacked @ stacked.T

    for _ in range(60):
        p, W = curvature(f)
        f = np.linalg.solve(np.eye(m * N) + K @ W, K @ (W @ f + one_hot - p))
    p, W = curvature(f)
    S = W @ np.linalg.inv(np.eye(m * N) + K @ W)
    t = one_hot - p
    evidence = softmax_log_likelihood(y, f.reshape(m, N)).sum() - 0.5 * t @ f
    return f, S, evidence - 0.5 * np.linalg.slogdet(np.eye(m * N) + K @ W)[1]


def precision_of(fit):
    """S (m N, m N) from the coupled factor, or from the classes' own and what couples them."""
    stacked = np.concatenate(list(fit.factor), axis=1)
    if fit.coupling is None:
        return stacked.T @ stacked
    m, N, _ = fit.factor.shape
    coupling = np.concatenate(list(fit.coupling), axis=1)
    return np.kron(np.eye(m), np.ones((N, N))) * (stacked.T @ stacked) - coupling.T @ coupling


@pytest.mark.parametrize("m", [2, 3, 5])
def test_equals_a_dense_newton(m):
    X, y = problem(m=m)
    Ks = covariances(X, m)
    fit = softmax_laplace(Ks, y)
    f, S, evidence = dense_newton(Ks, y)
    assert fit.converged
    rows = len(X) if m > 4 else (m - 1) * len(X)
    assert fit.factor.shape == (m, rows, len(X))
    assert (fit.coupling is None) == (m <= 4)
    found = np.concatenate([K @ t for K, t in zip(Ks, fit.weights, strict=True)])
    np.testing.assert_allclose(found, f, atol=1e-8)
    np.testing.assert_allclose(precision_of(fit), S, atol=1e-9)
    assert fit.evidence == pytest.approx(evidence, abs=1e-8)


def test_two_classes_are_the_binary_model_with_a_doubled_kernel():
    X, y = problem(40, m=2)
    K = covariance(X, 1.0, 4.0)
    two = softmax_laplace(K[None], y)
    one = laplace(2.0 * K, np.where(y == 1, 1.0, -1.0), LogisticLink())
    assert two.evidence == pytest.approx(one.evidence, abs=1e-9)
    np.testing.assert_allclose(
        K @ (two.weights[1] - two.weights[0]), 2 * K @ one.weights, atol=1e-8
    )
    # variance of f_1 - f_0: 2 k - |(A_1 - A_0) k|^2
    explained = np.square((two.factor[1] - two.factor[0]) @ K).sum(0)
    np.testing.assert_allclose(explained, np.square(one.factor @ (2 * K)).sum(0), atol=1e-8)
    # E(K) is the same function of K: its gradients agree, dE/dK = 2 dE/d(2K)
    np.testing.assert_allclose(two.gradient.square[0], 2 * one.gradient.square, atol=1e-8)


@pytest.mark.parametrize("variance", [0.5, 3.0, 100.0])
@pytest.mark.parametrize("moved", [0, 2])
def test_gradient_of_one_class_against_finite_differences(variance, moved):
    X, y = problem()

    def at(log_length):
        Ks = covariances(X, variance=variance)
        Ks[moved] = covariance(X, np.exp(log_length), variance)
        return Ks

    fit = softmax_laplace(at(0.1), y, factored=False)
    assert fit.factor is None
    change = derivative(at, 0.1)
    expected = derivative(lambda s: softmax_laplace(at(s), y, factored=False).evidence, 0.1)
    assert float((fit.gradient.square * change).sum()) == pytest.approx(expected, rel=1e-6)


def test_a_shared_covariance_adds_the_gradients():
    X, y = problem()
    K = covariance(X)
    shared, apart = softmax_laplace(K[None], y), softmax_laplace(np.stack([K, K, K]), y)
    assert shared.evidence == apart.evidence
    assert shared.gradient.square.shape == (1, len(X), len(X))
    np.testing.assert_allclose(shared.gradient.square[0], apart.gradient.square.sum(0), atol=1e-12)


def test_a_warm_start_saves_steps_and_changes_nothing():
    X, y = problem(60)
    before = softmax_laplace(covariance(X, 1.0, 10.0)[None], y)
    K = covariance(X, 1.05, 10.0)[None]
    cold, warm = (softmax_laplace(K, y, start) for start in (None, before.start))
    assert warm.iterations < cold.iterations
    assert warm.evidence == pytest.approx(cold.evidence, abs=1e-9)
    np.testing.assert_allclose(warm.weights, cold.weights, atol=1e-8)


@pytest.mark.parametrize("variance", [1e3, 1e6])
@pytest.mark.parametrize(
    "case", ["plain", "duplicated", "contradicting", "dominated", "unseen", "many"]
)
def test_extreme_inputs(variance, case):
    X, y = problem(30)
    m = 3
    if case in {"duplicated", "contradicting"}:
        X, y = np.vstack([X, X]), np.concatenate([y, y if case == "duplicated" else (y + 1) % 3])
    if case == "dominated":
        y = np.zeros(30, dtype=int)
        y[:2] = [1, 2]
    if case == "unseen":
        m = 4  # a class without examples
    if case == "many":
        m = 6  # three without
    Ks = np.stack([covariance(X, 0.8, variance)] * m)
    fit = softmax_laplace(Ks, y)
    assert fit.converged
    assert np.isfinite(fit.evidence)
    assert fit.evidence <= 0
    assert np.isfinite(fit.gradient.square).all()
    assert np.isfinite(fit.factor).all()
    np.testing.assert_allclose(fit.weights.sum(0), 0.0, atol=1e-12)
    for c in range(m):
        explained = np.square(fit.factor[c] @ Ks[c]).sum(0)
        if fit.coupling is not None:
            explained -= np.square(fit.coupling[c] @ Ks[c]).sum(0)
        assert (np.diag(Ks[c]) - explained).min() > -1e-8 * variance


def test_bad_targets_and_too_few_steps():
    X, y = problem()
    with pytest.raises(InputError, match="classes"):
        softmax_laplace(covariances(X, 2), y)
    with pytest.raises(InputError, match="classes"):
        softmax_laplace(covariance(X)[None], np.zeros(len(X), dtype=int))
    with pytest.warns(ConvergenceWarning, match=r"after 1 steps"):
        softmax_laplace(covariance(X, 1.0, 50.0)[None], y, max_iterations=1)
