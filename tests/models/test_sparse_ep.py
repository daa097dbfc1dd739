"""Sparse EP: equal to dense EP with the same prior, exact gradients, linear memory in N."""

import tracemalloc

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from gpcert import Posterior
from gpcert.errors import InputError
from gpcert.kernels import Kernel, Matern, SquaredExponential
from gpcert.models.inference.ep import ep
from gpcert.models.inference.sparse_ep import sparse_ep
from gpcert.models.links import LINKS
from gpcert.models.training import LogParameters
from gpcert.testing.effort import crossed
from tests.models.inference_problems import binary, derivative, latent

KINDS = ("fic", "dtc", "var")
KERNEL = SquaredExponential([0.9, 1.6], variance=2.3)


def fitted(kernel: Kernel, X, Z, y, kind: str, link: str = "probit", **options):
    covariances = kernel.value(Z, Z), kernel.value(X, Z), kernel.diagonal(X)
    return sparse_ep(*covariances, y, LINKS[link], kind, **options)


def new_points(n: int = 25, d: int = 2) -> np.ndarray:
    return np.random.default_rng(7).normal(size=(n, d)) * 1.5


def moments(fit, kernel: Kernel, Z, T):
    return latent(fit, kernel.value(T, Z), kernel.diagonal(T))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("link", ["probit", "logistic"])
def test_with_all_points_inducing_it_is_dense_ep(kind, link):
    X, y = binary(60)
    dense = ep(KERNEL.value(X, X), y, LINKS[link])
    sparse = fitted(KERNEL, X, X, y, kind, link)
    assert sparse.converged
    assert sparse.evidence == pytest.approx(dense.evidence, abs=1e-5)
    T = new_points()
    for ours, theirs in zip(
        moments(sparse, KERNEL, X, T), moments(dense, KERNEL, X, T), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("link", ["probit", "logistic"])
def test_it_is_dense_ep_with_the_sparse_prior(kind, link):
    """Against N x N matrices: prior Q (+ diag(k - Q)), and its joint prior with a new value."""
    X, y = binary(50)
    Z, T = X[::6], new_points()
    sparse = fitted(KERNEL, X, Z, y, kind, link)
    K_fu, K_su = KERNEL.value(X, Z), KERNEL.value(T, Z)
    inverse = np.linalg.inv(KERNEL.value(Z, Z) + sparse.jitter * np.eye(len(Z)))
    Q, Q_star = K_fu @ inverse @ K_fu.T, K_su @ inverse @ K_fu.T
    left = KERNEL.diagonal(X) - np.diag(Q)
    dense = ep(Q + np.diag(left) if kind == "fic" else Q, y, LINKS[link])
    # `start` holds the sites, precisions first
    trace = 0.5 * float(dense.start[0] @ left) if kind == "var" else 0.0
    assert sparse.evidence == pytest.approx(dense.evidence - trace, abs=1e-5)
    mean, variance = latent(dense, Q_star, KERNEL.diagonal(T))
    ours = moments(sparse, KERNEL, Z, T)
    np.testing.assert_allclose(ours[0], mean, atol=1e-5)
    np.testing.assert_allclose(ours[1], variance, atol=1e-5)


@crossed(
    {
        "kind": KINDS,
        "link": ["probit", "logistic"],
        "kernel": [
            KERNEL,
            SquaredExponential([4.0, 6.0], variance=30.0),
            Matern([0.5, 0.7], 1.5, 4.0),
        ],
    }
)
def test_gradient_equals_finite_differences(kind, link, kernel):
    X, y = binary(70)
    Z = np.concatenate([X[:8], new_points(5)])
    parameters = LogParameters.of(kernel)
    found = fitted(kernel, X, Z, y, kind, link).gradient
    assert found.inducing is not None
    assert found.cross is not None
    assert found.diagonal is not None
    gradient = parameters.gradient(Z, Z, found.inducing)
    gradient = gradient + parameters.gradient(X, Z, found.cross)
    gradient = gradient + parameters.diagonal_gradient(X, found.diagonal)
    for i, value in enumerate(parameters.values):

        def evidence(v: float, i: int = i) -> float:
            vector = parameters.values
            vector[i] = v
            return fitted(parameters.rebuild(vector), X, Z, y, kind, link).evidence

        expected = derivative(evidence, value)
        assert gradient[i] == pytest.approx(expected, rel=2e-6, abs=2e-5)


def test_the_response_of_the_sites_matters_in_the_trace_term():
    """Treating VAR's sites as constants is no gradient: the difference is far above 1e-5."""
    X, y = binary(70)
    Z = X[:8]
    fit, dtc = fitted(KERNEL, X, Z, y, "var"), fitted(KERNEL, X, Z, y, "dtc")
    K_fu = KERNEL.value(X, Z)
    P = K_fu @ np.linalg.inv(KERNEL.value(Z, Z) + fit.jitter * np.eye(8))
    explicit = dtc.gradient.cross + fit.start[0][:, None] * P
    assert np.abs(fit.gradient.cross - explicit).max() > 1e-2


@pytest.mark.parametrize("kind", KINDS)
def test_precision_is_dominated_by_the_prior(kind):
    """`A K_uu A^T <= I`: the variance is never negative, and far away it is the prior's."""
    X, y = binary(80)
    Z = X[:20]
    fit = fitted(KERNEL, X, Z, y, kind)
    posterior = Posterior(KERNEL, Z, fit.weights, fit.factor)
    assert posterior.excess < 1e-10
    far = moments(fit, KERNEL, Z, np.full((1, 2), 60.0))
    assert far[0] == 0.0
    assert far[1] == 2.3


@pytest.mark.parametrize("kind", KINDS)
def test_duplicated_inducing_points_change_nothing(kind):
    X, y = binary(60)
    Z, T = X[:10], new_points()
    once, twice = fitted(KERNEL, X, Z, y, kind), fitted(KERNEL, X, np.tile(Z, (3, 1)), y, kind)
    assert twice.converged
    assert twice.jitter == pytest.approx(1e-10 * 2.3)
    assert twice.evidence == pytest.approx(once.evidence, abs=1e-5)
    a, b = moments(once, KERNEL, Z, T), moments(twice, KERNEL, np.tile(Z, (3, 1)), T)
    np.testing.assert_allclose(a[0], b[0], atol=1e-5)
    np.testing.assert_allclose(a[1], b[1], atol=1e-5)


@crossed(
    {
        "kind": KINDS,
        "link": ["probit", "logistic"],
        "amplitude": [1e-3, 1e3],
        "length": [0.01, 0.5, 100.0],
    }
)
def test_extreme_kernels_converge_to_finite_numbers(kind, link, amplitude, length):
    X, y = binary(150)
    X[:5] = 1e4  # explained by no inducing point
    kernel = SquaredExponential(length, variance=amplitude**2)
    fit = fitted(kernel, X, X[10:40], y, kind, link)
    assert fit.converged
    assert np.isfinite(fit.evidence)
    for part in (fit.weights, fit.factor, fit.gradient.inducing, fit.gradient.cross):
        assert np.isfinite(part).all()
    mean, variance = moments(fit, kernel, X[10:40], new_points())
    assert np.isfinite(mean).all()
    assert (variance >= -1e-8 * amplitude**2).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_start_changes_only_the_number_of_sweeps(kind):
    X, y = binary(80)
    Z = X[:15]
    cold = fitted(KERNEL, X, Z, y, kind)
    near = fitted(SquaredExponential([0.95, 1.5], variance=2.5), X, Z, y, kind)
    warm = fitted(KERNEL, X, Z, y, kind, start=near.start)
    assert warm.iterations < cold.iterations
    assert warm.evidence == pytest.approx(cold.evidence, abs=1e-7)
    np.testing.assert_allclose(warm.weights, cold.weights, atol=1e-6)


def test_memory_grows_with_n_times_m():
    """No N x N matrix: that alone would take 3.2 GB here."""
    N, m = 20_000, 20
    X, y = binary(N)
    covariances = KERNEL.value(X[:m], X[:m]), KERNEL.value(X, X[:m]), KERNEL.diagonal(X)
    tracemalloc.start()
    sparse_ep(*covariances, y, LINKS["probit"], "fic", max_sweeps=3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30 * N * m * 8


def test_a_warning_with_numbers_where_it_does_not_converge():
    X, y = binary(40)
    with pytest.warns(ConvergenceWarning, match=r"differ by \d.* after 2 sweeps, evidence -\d"):
        fit = fitted(KERNEL, X, X[:9], y, "fic", max_sweeps=2)
    assert not fit.converged


def test_bad_inputs_are_refused():
    X, y = binary(20)
    K_uu, K_fu, k = KERNEL.value(X[:4], X[:4]), KERNEL.value(X, X[:4]), KERNEL.diagonal(X)
    probit = LINKS["probit"]
    with pytest.raises(InputError, match="kind: expected one of fic, dtc, var, got 'sor'"):
        sparse_ep(K_uu, K_fu, k, y, probit, "sor")
    with pytest.raises(InputError, match="y: expected 20 targets"):
        sparse_ep(K_uu, K_fu, k, y[:5], probit, "fic")
    with pytest.raises(InputError, match=r"K_uu: expected shape \(4, 4\), got \(3, 4\)"):
        sparse_ep(K_uu[:3], K_fu, k, y, probit, "fic")
    with pytest.raises(InputError, match="k_diag: expected finite"):
        sparse_ep(K_uu, K_fu, np.full(20, np.nan), y, probit, "fic")
    with pytest.raises(InputError, match="K_uu: expected a positive semi-definite"):
        sparse_ep(K_uu - 5.0 * np.eye(4), K_fu, k, y, probit, "fic")
