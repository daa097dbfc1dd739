"""EP against integrals, elliptical slice sampling and Laplace; gradients; extreme inputs."""

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.exceptions import ConvergenceWarning

from gpcert.models.inference import ep, laplace
from gpcert.models.links import LINKS, LogisticLink, ProbitLink
from gpcert.testing.effort import examples, variants
from tests.models.inference_problems import binary, covariance, derivative, elliptical_slice

ALL_LINKS = pytest.mark.parametrize("link", list(LINKS.values()), ids=list(LINKS))


@ALL_LINKS
@pytest.mark.parametrize("variance", [0.3, 4.0, 300.0])
def test_one_point_is_exact(link, variance):
    def integrand(f, power):
        density = stats.norm.pdf(f, scale=variance**0.5)
        return f**power * density * np.exp(link.log_likelihood(np.array(1.0), np.array(f)))

    ends = 12 * variance**0.5
    Z, first, second = (
        integrate.quad(integrand, -ends, ends, args=(k,), points=[0.0], epsabs=1e-13, limit=200)[0]
        for k in range(3)
    )
    fit = ep(np.array([[variance]]), [1.0], link)
    assert fit.evidence == pytest.approx(np.log(Z), abs=1e-9)
    assert variance * fit.weights[0] == pytest.approx(first / Z, rel=1e-8)
    spread = variance - (variance * fit.factor[0, 0]) ** 2
    assert spread == pytest.approx(second / Z - (first / Z) ** 2, rel=1e-8)


@ALL_LINKS
@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.95, -0.8])
def test_evidence_of_two_points_against_an_integral(link, correlation):
    # EP is exact for a diagonal K; its error is small, and below Laplace's, for a coupled one
    K = 3.0 * np.array([[1.0, correlation], [correlation, 1.0]])
    y = np.array([1.0, -1.0])
    prior = stats.multivariate_normal(np.zeros(2), K)
    # smooth, and vanishing at the ends: the trapezoidal rule is exact to rounding
    axis, step = np.linspace(-14.0, 14.0, 561, retstep=True)
    f = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    Z = step**2 * np.sum(prior.pdf(f) * np.exp(link.log_likelihood(y, f).sum(1)))
    fit = ep(K, y, link)
    error = abs(fit.evidence - np.log(Z))
    assert error < (1e-6 if correlation == 0 else 6e-3)
    assert error < abs(laplace(K, y, link).evidence - np.log(Z))


def importance_evidence(K, y, link, seed=0, samples=200_000):
    """log E p(y | f) under the prior, sampled around EP's Gaussian, with its standard error."""
    fit = ep(K, y, link)
    S = K - K @ (fit.factor.T @ fit.factor) @ K
    proposal = stats.multivariate_t(K @ fit.weights, S * 1.2, df=12, seed=seed)
    f = proposal.rvs(samples)
    prior = stats.multivariate_normal(np.zeros(len(y)), K)
    ratio = np.exp(link.log_likelihood(y, f).sum(1) + prior.logpdf(f) - proposal.logpdf(f))
    return np.log(ratio.mean()), ratio.std() / ratio.mean() / samples**0.5


@variants("link", LINKS.values(), ids=list(LINKS))
def test_closer_to_sampling_than_laplace(link):
    # GPML section 3.7: EP's moments and evidence are accurate, Laplace underestimates both
    X, y = binary(10, seed=3)
    K = covariance(X, 1.5, 9.0) + 1e-6 * np.eye(10)
    samples = elliptical_slice(
        K, y, link, chains=400, steps=examples(400, quick=150), burn=100, seed=0
    )
    by_chain = samples.mean(0)
    mean, error = by_chain.mean(0), by_chain.std(0) / len(by_chain) ** 0.5
    spread = samples.std((0, 1))
    found = {name: fit(K, y, link) for name, fit in (("ep", ep), ("laplace", laplace))}
    means = {name: K @ fit.weights for name, fit in found.items()}
    spreads = {
        name: np.sqrt(np.diag(K) - np.square(fit.factor @ K).sum(0)) for name, fit in found.items()
    }
    # sampling error, and EP's own (small) error: 2% of a standard deviation
    assert np.all(np.abs(means["ep"] - mean) <= 5 * error + 0.02 * spread)
    np.testing.assert_allclose(spreads["ep"], spread, rtol=0.05)
    assert np.abs(means["ep"] - mean).max() < 0.2 * np.abs(means["laplace"] - mean).max()
    assert np.abs(spreads["ep"] - spread).max() < 0.5 * np.abs(spreads["laplace"] - spread).max()
    assert np.linalg.norm(means["laplace"]) < 0.8 * np.linalg.norm(mean)
    exact, uncertainty = importance_evidence(K, y, link)
    off = {name: abs(fit.evidence - exact) for name, fit in found.items()}
    assert off["ep"] < 5 * uncertainty + 0.01
    assert off["ep"] + 5 * uncertainty < 0.2 * off["laplace"]


@ALL_LINKS
@pytest.mark.parametrize("variance", [0.5, 3.0, 100.0])
def test_gradient_against_finite_differences(link, variance):
    X, y = binary()

    def evidence(log_length):
        return ep(covariance(X, np.exp(log_length), variance), y, link, tolerance=1e-10).evidence

    fit = ep(covariance(X, np.exp(0.2), variance), y, link)
    change = derivative(lambda s: covariance(X, np.exp(s), variance), 0.2)
    found = float((fit.gradient.square * change).sum())
    assert found == pytest.approx(derivative(evidence, 0.2), rel=2e-6)


@ALL_LINKS
def test_moments_match_at_the_fixed_point(link):
    # the definition, with plain inverses: cavities by removing one site at a time
    X, y = binary(15)
    K = covariance(X) + 1e-3 * np.eye(15)
    fit = ep(K, y, link)
    precision, shift = fit.start
    assert np.all(precision > 0)
    for i in range(15):
        others = precision.copy()
        others[i] = 0.0
        cavity = np.linalg.inv(np.linalg.inv(K) + np.diag(others))
        mean, variance = (cavity @ np.where(np.arange(15) == i, 0.0, shift))[i], cavity[i, i]
        moments = link.moments(y[i : i + 1], np.array([mean]), np.array([variance]))
        tilted_mean = mean + variance * moments.slope[0]
        assert (K @ fit.weights)[i] == pytest.approx(tilted_mean, abs=1e-6)
        posterior_variance = K[i, i] - np.square(fit.factor @ K[:, i]).sum()
        assert posterior_variance == pytest.approx(variance * moments.shrinkage[0], abs=1e-6)


@ALL_LINKS
def test_a_warm_start_saves_sweeps_and_changes_nothing(link):
    X, y = binary(60)
    before = ep(covariance(X, 1.0, 10.0), y, link)
    cold, warm = (ep(covariance(X, 1.02, 10.0), y, link, s) for s in (None, before.start))
    assert warm.iterations < cold.iterations
    assert warm.evidence == pytest.approx(cold.evidence, abs=1e-8)
    np.testing.assert_allclose(warm.weights, cold.weights, atol=1e-6)


@ALL_LINKS
@pytest.mark.parametrize("variance", [1e3, 1e6])
@pytest.mark.parametrize("case", ["plain", "duplicated", "contradicting", "one-sided", "single"])
def test_extreme_inputs(link, variance, case):
    X, y = binary(40)
    if case in {"duplicated", "contradicting"}:
        X, y = np.vstack([X, X]), np.concatenate([y, y if case == "duplicated" else -y])
    if case == "one-sided":
        y = np.ones(40)
        y[0] = -1.0
    if case == "single":
        y = np.ones(40)
    K = covariance(X, 0.8, variance)
    fit = ep(K, y, link)
    assert fit.converged
    assert np.isfinite(fit.evidence)
    assert fit.evidence <= 0
    assert np.all(fit.start[0] >= 0)
    assert np.isfinite(fit.gradient.square).all()
    assert (np.diag(K) - np.square(fit.factor @ K).sum(0)).min() > -1e-9 * variance


def test_too_few_sweeps_are_told_with_numbers():
    X, y = binary()
    with pytest.warns(ConvergenceWarning, match=r"differ by \d.* after 2 sweeps"):
        fit = ep(covariance(X, 1.0, 50.0), y, ProbitLink(), max_sweeps=2)
    assert not fit.converged
    assert fit.iterations == 2


def test_far_saturated_points_do_not_disturb():
    # one site so weak that precision * variance is below the rounding of 1 - (B^-1)_ii
    K = np.array([[4.0, 3.9999], [3.9999, 4.0]])
    pair = ep(K, [1.0, 1.0], LogisticLink())
    mean = K @ pair.weights
    assert np.isfinite(mean).all()
    weak = ep(np.diag([1e-9, 4.0]), [1.0, -1.0], LogisticLink())
    assert weak.evidence == pytest.approx(2 * np.log(0.5), abs=1e-9)
