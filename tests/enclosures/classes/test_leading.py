"""The sign of a difference of two class probabilities from means and covariances alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.enclosures.classes.leading import least_lead
from gpcert.integrals.plain_probabilities import expected_softmax
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Softmax
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import to_numpy
from gpcert.regions import Ball
from gpcert.testing.effort import examples
from gpcert.testing.node_case import cell_points
from tests.enclosures.classes.class_cases import (
    class_cases,
    evaluation_of,
    random_evaluation,
    true_sums,
)


def law_of(rng, m):
    """A mean and a covariance of m latent values, some of them nearly singular or very unlike."""
    A = rng.normal(size=(m, m)) * 10.0 ** rng.uniform(-1.5, 0.5, size=(m, 1))
    return rng.normal(size=m) * rng.uniform(0.1, 3.0), A @ A.T


def parts_of(mean, V):
    """mu, D, Delta_j, m_j, H_j of the classes 0 and 1 against the others."""
    m = len(mean)
    u = np.eye(m)[0] - np.eye(m)[1]
    h = np.eye(m)[2:] - 0.5 * (np.eye(m)[0] + np.eye(m)[1])
    return u @ mean, u @ V @ u, h @ V @ u, h @ mean, np.einsum("ji,ik,jk->j", h, V, h)


@settings(max_examples=examples(300, quick=25))
@given(seed=st.integers(0, 2**31), m=st.integers(3, 5), over=st.floats(1e-3, 1.0))
def test_the_leader_has_the_larger_probability(seed, m, over):
    """With a mean difference just above what is asked, whatever the covariance."""
    rng = np.random.default_rng(seed)
    mean, V = law_of(rng, m)
    mu, D, Delta, eta, H = parts_of(mean, V)
    wanted = max(Delta.max(), 0.0) + over
    mean = mean + (wanted - mu) * 0.5 * (np.eye(m)[0] - np.eye(m)[1])  # the h_j stay
    pi = expected_softmax(mean[None], V[None])[0]
    one = np.ones(1)
    lead = least_lead(
        wanted * one, over * one, D * one, [e * one for e in eta], [h * one for h in H]
    )
    assert float(lead[0]) > 0.0
    assert pi[0] - pi[1] >= float(lead[0]) - 1e-9  # what the integral in plain floats is off by


def test_without_the_covariance_the_claim_is_false():
    """A third class that rises with u takes more from the first: mu > 0 is not enough."""
    V = np.array([[8.0, 0.0, 7.0], [0.0, 1.0, 0.0], [7.0, 0.0, 8.0]])
    mean = np.array([0.01, 0.0, 0.5])
    mu, _, Delta, _, _ = parts_of(mean, V)
    pi = expected_softmax(mean[None], V[None])[0]
    assert mu > 0
    assert Delta[0] > 0
    assert pi[0] < pi[1]


@settings(max_examples=examples(40, quick=8))
@given(case=class_cases(coupled=True) | class_cases(coupled=False))
def test_decisions_over_cells(case):
    """Bounds of margins as a decision asks for them hold at the cells' points."""
    own = random_evaluation(case)
    cells, m = own.evaluation.cells, own.layout.classes
    for c in range(m):
        weights = tuple(float(w) for w in np.eye(m)[c] - np.eye(m)[(c + 1) % m])
        with np.errstate(over="ignore", invalid="ignore"):  # as goals do
            lower = to_numpy(own.lower(weights, 0.0).lower)
        for b in range(len(cells)):
            points = cell_points(cells, b, case.rng)
            if len(points):
                assert lower[b] <= true_sums(case.posterior, points, weights)[1].min()


@pytest.mark.parametrize("coupled", [True, False])
def test_many_features_are_decided_by_a_mean(coupled):
    """One box that no expansion of the probabilities decides: they bend, the mean hardly does."""
    rng = np.random.default_rng(3)
    points = rng.normal(size=(12, 20))
    weights = np.array([[3.0], [-2.0], [-1.0]]) * np.exp(-0.1 * np.sum(points**2, axis=1))
    A = 0.3 * rng.normal(size=(3, 12, 12))
    A = A - A.mean(axis=0) if coupled else A
    norm = np.linalg.norm(SquaredExponential(8.0, 4.0).value(points, points), 2)
    factor = A / np.sqrt(3.0 * norm * np.linalg.norm(A, 2, axis=(1, 2)).max() ** 2)
    posterior = Posterior(
        SquaredExponential(8.0, 4.0),
        points,
        weights,
        factor,
        likelihood=Softmax(),
        coupled=coupled,
        classes=("a", "b", "c"),
    )
    own = evaluation_of(posterior, Ball(np.zeros(20), 1.5))
    found = own.by_leader((1.0, -1.0, 0.0))
    assert float(found[0]) > 0.0
    X = rng.uniform(-1.5, 1.5, size=(200, 20))
    low, high = true_sums(posterior, X, (1.0, -1.0, 0.0))
    assert float(found[0]) <= high.min()
    assert low.min() > 0.0
    weighted = own.by_leader((2.0, -1.0, 0.0))
    assert np.all(np.isneginf(to_numpy(weighted)))


def test_a_single_point_has_no_leader():
    """A ball of radius 0 has no free feature."""
    posterior = Posterior(SquaredExponential(1.0), [[0.0]], np.zeros((3, 1)), likelihood=Softmax())
    own = evaluation_of(posterior, Ball([0.5], 0.0))
    assert float(own.lower((1.0, -1.0, 0.0), 0.0).lower[0]) <= 0.0


@pytest.mark.parametrize("swapped", [False, True])
def test_a_larger_mean_does_not_lead_against_a_larger_variance(swapped):
    """Both are behind a third class, which the one with the larger variance beats more often."""
    precise, vague = ([[0.999 / 2.0]], [[0.0]])
    factor = np.array([vague, precise, vague] if swapped else [precise, vague, vague])
    weights = np.array([[0.0], [0.05 / 4.0], [0.4]] if swapped else [[0.05 / 4.0], [0.0], [0.4]])
    posterior = Posterior(
        SquaredExponential(1.0, 4.0), [[0.0]], weights, factor, likelihood=Softmax()
    )
    own = evaluation_of(posterior, Ball([0.0], 1e-3))
    row = (-1.0, 1.0, 0.0) if swapped else (1.0, -1.0, 0.0)
    assert true_sums(posterior, np.zeros((1, 1)), row)[1][0] < 0.0
    assert np.isneginf(float(own.by_leader(row)[0]))
    assert float(own.lower(row, 0.0).lower[0]) < 0.0
