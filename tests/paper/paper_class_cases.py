"""Class posteriors, and their probabilities by certified integrals."""

import math

import numpy as np

from gpcert.likelihoods import MultinomialProbit, Softmax
from gpcert.model.posterior import Posterior
from tests.enclosures.enclosure_checks import arb

LIKELIHOODS = [Softmax(), MultinomialProbit(0.7)]


def class_posterior(rng, kernel, points, m, coupled, likelihood, size=1.0):
    """Means of the size `size`, and factors whose posterior covariance is semi-definite."""
    N = len(points)
    K = kernel.value(points, points)
    A = rng.normal(size=(m, int(rng.integers(1, N + 2)), N)) @ np.linalg.inv(K + 0.1 * np.eye(N))
    joint = sum(a @ K @ a.T for a in A)
    A = A * (rng.uniform(0.3, 0.99) / math.sqrt(np.linalg.eigvalsh(joint)[-1]))
    weights = size * rng.normal(size=(m, N)) / float(K[0, 0])
    noise = rng.choice([0.0, 0.3])
    return Posterior(
        kernel, points, weights, A, noise=noise, likelihood=likelihood, coupled=coupled
    )


def cholesky(V):
    """Lower factor of a ball matrix (n <= 2) that may be singular."""
    L = [[arb(0)] * len(V) for _ in V]
    zero = arb(0)
    L[0][0] = V[0][0].max(zero).sqrt()
    if len(V) == 2:
        L[1][0] = V[0][1] / L[0][0] if L[0][0] > 0 else zero
        L[1][1] = (V[1][1] - L[1][0] ** 2).max(zero).sqrt()
    return np.array([[float(x.mid()) for x in row] for row in L])


def certified(likelihood, a, V):
    """Balls of all class probabilities for means and covariance in balls.

    a and L are rounded to floats; every link moves by less than |change of d|, also the averaged
    step of the probit, whose noise is at least 0.7.
    """
    L = cholesky(V)
    mean = np.array([float(x.mid()) for x in a])
    found = likelihood.moments(mean[None], L[None], 0)
    radius = float(found.errors[0, 0]) + 2.0**-48 * (1.0 + np.abs(mean).sum() + np.abs(L).sum())
    return [arb(float(value), radius) for value in found.value[0]]
