"""Which outputs make up the latent differences and their covariance."""

from itertools import permutations

import numpy as np
import pytest

from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Softmax
from gpcert.model.class_layout import ClassLayout, class_layout
from gpcert.model.posterior import Posterior
from gpcert.quantities.compound import margins
from tests.enclosures.classes.class_cases import difference_map

COUNTS = [2, 3, 4, 5, 8]


def integer_covariance(m, seed):
    """Small integers: sums and differences of them are exact."""
    root = np.random.default_rng(seed).integers(-3, 4, (m, m))
    return (root @ root.T).astype(float)


@pytest.mark.parametrize("m", COUNTS)
@pytest.mark.parametrize("seed", range(5))
def test_the_covariance_of_coupled_outputs(m, seed):
    layout, Sigma = ClassLayout(m), integer_covariance(m, seed)
    y = np.array(
        [
            Sigma[k, k] + Sigma[c, c] - 2 * Sigma[k, c]
            for k, c in zip(*np.triu_indices(m, 1), strict=True)
        ]
    )
    T = difference_map(m)
    np.testing.assert_array_equal(np.einsum("j,jkl->kl", y, layout.matrices), T @ Sigma @ T.T)
    assert layout.matrices.shape == (m * (m - 1) // 2, m - 1, m - 1)


@pytest.mark.parametrize("m", COUNTS)
@pytest.mark.parametrize("seed", range(5))
def test_the_covariance_of_independent_outputs(m, seed):
    layout = ClassLayout(m, np.eye(m))
    v = np.random.default_rng(seed).integers(0, 9, m).astype(float)
    T = difference_map(m)
    np.testing.assert_array_equal(np.einsum("j,jkl->kl", v, layout.matrices), T @ np.diag(v) @ T.T)


@pytest.mark.parametrize("independent", [True, False])
@pytest.mark.parametrize("m", COUNTS)
def test_pairs_have_the_right_signs(m, independent):
    layout, f = (
        ClassLayout(m, np.eye(m) if independent else None),
        np.random.default_rng(m).integers(-9, 9, m),
    )
    first, second = np.triu_indices(m, 1)
    outputs = f if independent else f[second] - f[first]
    assert len(outputs) == layout.outputs
    for k, c in permutations(range(m), 2):
        assert sum(sign * outputs[j] for j, sign in layout.pair(k, c)) == f[c] - f[k]


@pytest.mark.parametrize("independent", [True, False])
@pytest.mark.parametrize("m", COUNTS)
def test_ranks_are_large_enough(m, independent):
    layout = ClassLayout(m, np.eye(m) if independent else None)
    ranks = [np.linalg.matrix_rank(C) for C in layout.matrices]
    assert np.all(ranks <= layout.ranks)
    assert max(ranks) == layout.ranks.max() or m == 2


def test_coupled_outputs_are_searched_by_their_differences():
    rng = np.random.default_rng(0)
    kernel, Z, t = SquaredExponential(1.0), rng.normal(size=(2, 1)), rng.normal(size=(3, 2))
    alone = Posterior(kernel, Z, t, likelihood=Softmax())
    layout, searched = class_layout(alone)
    assert layout.independent
    assert searched is alone
    coupled = Posterior(
        kernel, Z, t, 0.1 * rng.normal(size=(3, 2, 2)), likelihood=Softmax(), coupled=True
    )
    layout, searched = class_layout(coupled)
    assert not layout.independent
    assert searched is coupled.differences


@pytest.mark.parametrize("m", [2, 3, 5])
def test_margins_compare_the_winner_with_every_other_class(m):
    costs = tuple(float(c) for c in range(1, m + 1))
    p = np.random.default_rng(m).dirichlet(np.ones(m))
    for winner in range(m):
        rows = np.asarray(margins(m, winner, costs))
        gaps = sorted(costs[winner] * p[winner] - costs[k] * p[k] for k in range(m) if k != winner)
        np.testing.assert_allclose(sorted(rows @ p), gaps, atol=1e-12)
