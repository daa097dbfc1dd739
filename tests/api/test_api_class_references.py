"""Ranges of class probabilities against cubature in extended precision and plain sampling."""

import numpy as np
import pytest

import gpcert
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import MultinomialProbit, Softmax
from gpcert.model.posterior import Posterior
from gpcert.testing.effort import THOROUGH, examples, variants

LABELS = (3, 5, 8)


def model(likelihood, seed=0):
    """Three classes, coupled by noisy observations of mixtures of their latent functions."""
    rng = np.random.default_rng(seed)
    Z = rng.uniform(-1.5, 1.5, (6, 2))
    kernel = SquaredExponential([0.9, 1.3], variance=6.0)
    K = kernel.value(Z, Z)
    H = np.kron(rng.normal(size=(2, 3)), np.eye(6))
    S = H @ np.kron(np.eye(3), K) @ H.T + 0.5 * np.eye(12)
    L = np.linalg.cholesky(S)
    A = np.linalg.solve(L, H)
    weights = (A.T @ np.linalg.solve(L, 4.0 * rng.normal(size=12))).reshape(3, 6)
    factor = np.moveaxis(A.reshape(12, 3, 6), 1, 0)
    return Posterior(
        kernel, Z, weights, factor, likelihood=likelihood, classes=LABELS, coupled=True
    )


def cubature(posterior, X, nodes=241, reach=9.0):
    """(n, 3): `E softmax` by the trapezoidal rule over two standard normals, in long double.

    The rule is exponentially accurate; its error here is below 1e-14, which the test allows for.
    """
    z = np.linspace(-reach, reach, nodes, dtype=np.longdouble)
    w = np.exp(-(z**2) / 2)
    w = w / w.sum()
    T = np.array([[-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]])
    mean, covariance = posterior.predict(X)[0], posterior.covariances(X)
    found = np.empty((len(X), 3))
    for i in range(len(X)):
        L = np.linalg.cholesky(T @ covariance[i] @ T.T).astype(np.longdouble)
        a = (T @ mean[i]).astype(np.longdouble)
        d1 = a[0] + L[0, 0] * z[:, None] + 0.0 * z[None, :]
        d2 = a[1] + L[1, 0] * z[:, None] + L[1, 1] * z[None, :]
        top = np.maximum(np.maximum(d1, d2), 0.0)
        parts = np.stack([np.exp(-top), np.exp(d1 - top), np.exp(d2 - top)])
        shares = parts / parts.sum(0)
        found[i] = np.einsum("cij,i,j->c", shares, w, w)
    return found


@variants("seed", [0, 1, 2])
def test_cubature_at_points_of_the_region_stays_inside(seed):
    posterior = model(Softmax(), seed)
    region, count = gpcert.Ball([0.2, -0.3], 0.25), examples(40, quick=15)
    ranges = gpcert.prediction_ranges(posterior, region, tol=0.005 if THOROUGH else 0.02)
    X = np.concatenate([region.sample(count, np.random.default_rng(seed)), region.center[None]])
    X = np.concatenate([X, [x for r in ranges for x in (r.argmin, r.argmax)]])
    values = cubature(posterior, X)
    for c, found in enumerate(ranges):
        assert found.output == LABELS[c]
        assert found.converged
        assert np.all(values[:, c] >= found.minimum.lower - 1e-12)
        assert np.all(values[:, c] <= found.maximum.upper + 1e-12)
    assert sum(r.minimum.lower for r in ranges) <= 1.0 <= sum(r.maximum.upper for r in ranges)


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", [Softmax(), MultinomialProbit(0.7)])
def test_a_million_samples_at_points_of_the_region(likelihood):
    posterior = model(likelihood, 3)
    region = gpcert.Ball([-0.4, 0.1], 0.2, norm=2)
    ranges = gpcert.prediction_ranges(posterior, region, tol=0.01)
    rng = np.random.default_rng(0)
    count = 1_000_000
    for x in region.sample(3, rng):
        mean, covariance = posterior.predict(x[None])[0][0], posterior.covariances(x[None])[0]
        f = rng.multivariate_normal(mean, covariance, count)
        if isinstance(likelihood, Softmax):
            shares = np.exp(f - f.max(1, keepdims=True))
            drawn = (shares / shares.sum(1, keepdims=True)).mean(0)
        else:
            noisy = f + np.sqrt(likelihood.noise) * rng.normal(size=f.shape)
            drawn = np.bincount(noisy.argmax(1), minlength=3) / count
        slack = 6.0 * 0.5 / np.sqrt(count)  # six standard deviations of the mean
        for c, found in enumerate(ranges):
            assert found.minimum.lower - slack <= drawn[c] <= found.maximum.upper + slack
