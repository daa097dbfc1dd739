"""Proved eigenvalues and norms of a posterior's matrices, against 60-digit arithmetic."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert.numerics.triangular as triangular
from gpcert import Posterior
from gpcert.kernels import Matern, SquaredExponential
from gpcert.numerics.spectral import GramBlock, absolute_norm, gram_circles, triangular_eigenvalue
from gpcert.numerics.triangular import Inverse
from gpcert.testing.effort import examples


def _exact_eigenvalue(A, K):
    """Largest eigenvalue of A K A^T for floats, to 60 digits."""
    with mpmath.workdps(60):
        A, K = mpmath.matrix(A.tolist()), mpmath.matrix(K.tolist())
        return max(mpmath.eigsy(A * K * A.T, eigvals_only=True))


def _blocks(K, errors, size=4):
    slices = [slice(k, min(k + size, len(K))) for k in range(0, len(K), size)]
    for number, rows in enumerate(slices):
        for columns in slices[: number + 1]:
            yield GramBlock(rows, columns, K[rows, columns], errors[rows, columns])


def _bound(A, *blocks):
    """`triangular_eigenvalue` from a factor and the blocks of K."""
    inverse = Inverse.with_matrix(A)
    return triangular_eigenvalue(inverse, gram_circles(inverse.root, _blocks(*blocks)))


def _gram(rng, N):
    X = rng.uniform(0, 1, (N, 2))
    kernel = (
        SquaredExponential(rng.uniform(0.1, 3.0)) if rng.random() < 0.5 else Matern(0.5, nu=1.5)
    )
    return kernel.value(X, X)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-14, 1e-10, 1e-6, 1e-2, 1.0, 100.0]))
@settings(max_examples=examples(40), deadline=None)
def test_never_below_the_largest_eigenvalue(seed, noise):
    """Exact factors, with wrong digits, scaled, and any triangular matrix."""
    rng = np.random.default_rng(seed)
    N = int(rng.integers(1, 12))
    K = _gram(rng, N)
    diagonal = noise * rng.uniform(0.5, 2.0, N)
    try:
        L = np.linalg.cholesky(K + np.diag(diagonal))
    except np.linalg.LinAlgError:
        L = np.linalg.cholesky(K + np.eye(N))
    A = scipy.linalg.solve_triangular(L, np.eye(N), lower=True)
    kind = rng.integers(0, 4)
    if kind == 1:
        A = A * (1.0 + 1e-9 * rng.normal(size=A.shape))
    elif kind == 2:
        A = A * rng.uniform(0.5, 2.0)
    elif kind == 3:
        A = np.tril(rng.normal(size=(N, N)))
    found = _bound(A, K, np.zeros_like(K))
    assert found >= _exact_eigenvalue(A, K)


@pytest.mark.parametrize("noise", [1e-6, 1e-3, 1.0])
def test_exact_factors_have_no_excess(noise):
    rng = np.random.default_rng(0)
    K = _gram(rng, 60)
    A = np.linalg.inv(np.linalg.cholesky(K + noise * np.eye(60)))
    assert _bound(np.tril(A), K, np.zeros_like(K), 16) <= 1.0


@pytest.mark.parametrize("size", [1, 2])
def test_every_row_sees_both_sides_of_the_diagonal(size):
    """The circle of the first row alone says that K does not lie below the identity."""
    K = np.array([[1.0, 0.5], [0.5, 0.3]])
    found = _bound(np.eye(2), K, np.zeros_like(K), size)
    assert _exact_eigenvalue(np.eye(2), K) <= found <= 1.5 + 1e-12


def test_errors_of_the_gram_matrix_count():
    """What K may be is K plus its errors: the bound holds for that too."""
    rng = np.random.default_rng(1)
    K = _gram(rng, 8)
    A = np.tril(np.linalg.inv(np.linalg.cholesky(K + 0.01 * np.eye(8))))
    errors = 0.004 * np.ones_like(K)
    found = _bound(A, K, errors)
    assert found >= _exact_eigenvalue(A, K + errors)
    assert found > _bound(A, K, np.zeros_like(K))


def test_what_cannot_be_inverted_is_not_believed():
    K = np.eye(2)
    for A in ([[1.0, 0.0], [1.0, 1e-320]], [[1e300, 0.0], [0.0, 1e-300]]):
        assert _bound(np.array(A), K, 0 * K) >= _exact_eigenvalue(np.array(A), K)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=examples(40), deadline=None)
def test_norms_of_sizes_are_bounded_well(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=rng.integers(1, 9, 2)) * 10.0 ** rng.integers(-3, 3)
    A[rng.random(A.shape) < 0.3] = 0.0
    true = np.linalg.norm(np.abs(A), 2)
    assert true * (1 - 1e-13) <= absolute_norm(A)
    assert absolute_norm(A + 1.0) <= 1.1 * np.linalg.norm(np.abs(A + 1.0), 2)


@pytest.mark.parametrize("N", [1, 8, triangular.SIDE + 3])
@pytest.mark.parametrize("size", [1.0, 1e-200, 1e200])
def test_norms_of_sizes_of_triangular_matrices(N, size):
    """What is left out of a triangular matrix is zero."""
    L = np.tril(np.random.default_rng(N).normal(size=(N, N)))
    true = np.linalg.norm(np.abs(L), 2)
    for M in (L, L.T, np.vstack([L, L])):
        found = absolute_norm(size * M) / size
        assert np.linalg.norm(np.abs(M), 2) * (1 - 1e-13) <= found <= 1.6 * true


@pytest.mark.parametrize("kernel", [SquaredExponential([0.4, 0.6]), Matern([0.4, 0.6], nu=1.5)])
def test_norm_and_excess_do_not_depend_on_the_blocks(kernel, monkeypatch):
    rng = np.random.default_rng(3)
    X, t = rng.uniform(0, 1, (40, 2)), rng.normal(size=(2, 40))
    A = np.linalg.inv(np.linalg.cholesky(kernel.value(X, X) + 0.01 * np.eye(40)))
    posteriors = [Posterior(kernel, X, t, np.tril(A)) for _ in range(2)]
    whole = posteriors[0].norms, posteriors[0].excess
    monkeypatch.setattr(triangular, "SIDE", 7)
    np.testing.assert_allclose(posteriors[1].norms, whole[0], rtol=1e-12)
    assert posteriors[1].excess == whole[1] == 0.0
    K = kernel.value(X, X)
    assert np.all(whole[0] >= np.sqrt(np.einsum("ci,ij,cj->c", t, K, t)) * (1 - 1e-12))
    # the rounding is counted from the sizes of all terms, far above the value where they cancel
    assert np.all(whole[0] <= np.sqrt(np.einsum("ci,ij,cj->c", t, K, t)) * (1 + 1e-6))
