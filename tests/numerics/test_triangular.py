"""Inverses of triangular matrices and what is proved of them, against 300-bit arithmetic."""

from __future__ import annotations

import dataclasses
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert.model.unit_form as unit_form
import gpcert.numerics.triangular as triangular
from gpcert import Posterior
from gpcert.kernels import SquaredExponential
from gpcert.numerics.triangular import Inverse, is_triangular, square, triangular_inverse
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import flint


def _left(A, L):
    """`|A L - I|_2` of floats, from entries that are exact to 300 bits."""
    module = flint()
    before, module.ctx.prec = module.ctx.prec, 300
    try:
        balls = [
            module.arb_mat([[module.arb(x) for x in row] for row in M.tolist()]) for M in (A, L)
        ]
        product = balls[0] * balls[1]
        N = len(A)
        entries = [[float((product[i, j] - int(i == j)).mid()) for j in range(N)] for i in range(N)]
    finally:
        module.ctx.prec = before
    return float(np.linalg.norm(np.array(entries), 2))


def _triangle(rng, N, kind):
    if kind == "kernel":
        X = rng.uniform(0, 1, (N, 2))
        K = SquaredExponential(rng.uniform(0.1, 2.0)).value(X, X)
        return np.linalg.cholesky(K + 10.0 ** rng.uniform(-6, 1) * np.eye(N))
    L = np.tril(rng.normal(size=(N, N)) * 10.0 ** rng.uniform(-3, 3, (N, 1)))
    L[np.diag_indices(N)] += np.copysign(2.0, np.diag(L)) * np.abs(L).max(axis=1)
    return L


@given(
    st.integers(0, 2**32 - 1), st.sampled_from(["kernel", "any"]), st.sampled_from([1, 2, 5, 128])
)
@settings(max_examples=examples(60), deadline=None)
def test_what_an_inverse_leaves_is_below_its_residual(seed, kind, strip):
    """Both ways: A found from L, and L found from A; LAPACK right, wrong by a part, and by much."""
    rng = np.random.default_rng(seed)
    L = _triangle(rng, int(rng.integers(1, 20)), kind)
    wrong = rng.choice([0.0, 1e-10, 1e-3, 0.3])
    lapack = triangular.trtri

    def careless(block, lower):
        found, info = lapack(block, lower=lower)
        return found * (1.0 + wrong * rng.normal(size=found.shape)), info

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(triangular, "STRIP", strip)
        patch.setattr(triangular, "GRAIN", int(rng.integers(1, strip + 1)))
        patch.setattr(triangular, "SIDE", 3)
        patch.setattr(triangular, "trtri", careless)
        found = Inverse.of(L + np.triu(np.ones_like(L), 1))  # what stands above is not read
        other = Inverse.with_matrix(L)
    np.testing.assert_array_equal(found.root, L)
    assert other.matrix is L
    for each in (found, other):
        assert is_triangular(each.matrix)
        assert is_triangular(each.root)
        assert _left(each.matrix, each.root) <= each.residual * (1 + 1e-12)


def test_residuals_of_kernel_matrices_are_small():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (300, 3))
    L = np.linalg.cholesky(SquaredExponential(0.5).value(X, X) + 1e-4 * np.eye(300))
    for found in (Inverse.of(L), Inverse.with_matrix(L)):
        assert found.residual < 1e-8
        np.testing.assert_allclose(found.matrix @ found.root, np.eye(300), atol=1e-11)


@pytest.mark.parametrize("strip", [1, 2])
def test_rounding_of_sums_that_cancel_counts(strip, monkeypatch):
    """Entries below the diagonal of the inverse are small differences of large numbers: their
    errors are far above the rounding of what is left."""
    monkeypatch.setattr(triangular, "STRIP", strip)
    monkeypatch.setattr(triangular, "GRAIN", 1)
    rng = np.random.default_rng(1)
    N = 24
    L = np.eye(N)
    L[1 : N - 1, 0] = rng.uniform(1e3, 2e3, N - 2)
    L[N - 1, 1 : N - 1] = rng.normal(size=N - 2) * 1e6
    L[N - 1, 0] = float(L[N - 1, 1 : N - 1] @ L[1 : N - 1, 0])
    found = Inverse.with_matrix(L)
    true = _left(found.matrix, found.root)
    assert 1e-8 < true <= found.residual


def test_singular_matrices():
    L = np.array([[1.0, 0.0], [1.0, 0.0]])
    with pytest.raises(np.linalg.LinAlgError):
        Inverse.of(L)
    with pytest.raises(np.linalg.LinAlgError):
        triangular_inverse(L)
    assert math.isinf(Inverse.with_matrix(L).residual)
    assert math.isinf(Inverse.with_matrix(np.array([[1e-320, 0.0], [1.0, 1.0]])).residual)


def test_scaled_by_a_power_of_two_or_nothing_is_known():
    rng = np.random.default_rng(3)
    found = Inverse.of(np.tril(rng.normal(size=(5, 5))) + 3 * np.eye(5))
    twice = found.scaled(3)
    np.testing.assert_array_equal(twice.matrix, 8.0 * found.matrix)
    np.testing.assert_array_equal(twice.root, found.root / 8.0)
    assert twice.residual == found.residual
    for exponent in (1022, -1060, 1060):
        assert math.isinf(found.scaled(exponent).residual)


@pytest.mark.parametrize("known", [True, False])
def test_the_gram_matrix_is_formed_once_for_excess_and_norms(known, monkeypatch):
    """The excess leaves the norms' sums behind; norms that are asked for first are the same."""
    formed = []
    plain = SquaredExponential.gram_with_error
    monkeypatch.setattr(
        SquaredExponential, "gram_with_error", lambda *a: formed.append(1) or plain(*a)
    )
    unit = _posterior(known, N=triangular.SIDE + 3).unit
    excess = unit.excess
    count = len(formed)
    assert unit_form.SUMMED in vars(unit)
    again = pickle.loads(pickle.dumps(unit))
    norms = unit.norms
    assert unit_form.SUMMED not in vars(unit)
    np.testing.assert_array_equal(again.norms, norms)
    assert len(formed) == count
    other = _posterior(known, N=triangular.SIDE + 3).unit
    np.testing.assert_array_equal(other.norms, norms)
    assert len(formed) == 2 * count
    assert other.excess == excess
    assert unit_form.SUMMED not in vars(other)  # known already


def _posterior(inverse, N=20, **options):
    rng = np.random.default_rng(4)
    X = rng.uniform(0, 1, (N, 2))
    kernel = SquaredExponential([0.4, 0.6], variance=37.0)
    L = np.linalg.cholesky(kernel.value(X, X) + 0.1 * np.eye(N))
    factor = Inverse.of(L) if inverse else Inverse.of(L).matrix
    return Posterior(kernel, X, rng.normal(size=N), factor, **options)


def test_posterior_keeps_what_is_proved_of_its_factor(monkeypatch, tmp_path):
    """The known inverse spares the other; a posterior without it is the same."""
    known, plain = _posterior(True), _posterior(False)
    assert known.inverse is not None
    assert plain.inverse is None
    np.testing.assert_array_equal(known.factor, plain.factor)
    assert known.fingerprint == plain.fingerprint
    assert plain.excess == 0.0
    copies = dataclasses.replace(known, offset=1.0), pickle.loads(pickle.dumps(known))
    known.save(tmp_path / "model.npz")
    assert Posterior.load(tmp_path / "model.npz").excess == 0.0
    monkeypatch.setattr(Inverse, "with_matrix", None)  # not called
    for each in (known, *copies):
        assert each.inverse is not None
        assert each.unit.exponent != 0
        assert each.unit.inverse is not None
        assert each.excess == 0.0
        assert each.inverse is each.unit.inverse is None  # of no further use


@given(st.integers(0, 2**32 - 1), st.floats(-10.0, -1.0))
@settings(max_examples=examples(100), deadline=None)
def test_loaded_model_has_the_excess_of_the_saved_one(seed, digits):
    """Bit by bit, though the file holds no inverse; with little noise it is small, not zero."""
    rng = np.random.default_rng(seed)
    N, kernel = int(rng.integers(5, 100)), SquaredExponential(rng.uniform(0.3, 3.0))
    X = rng.uniform(-1, 1, (N, int(rng.integers(1, 4))))
    L = np.linalg.cholesky(kernel.value(X, X) + 10.0**digits * np.eye(N))
    saved = Posterior(kernel, X, np.ones(N), Inverse.of(L))
    loaded = Posterior.from_arrays(saved.header(), saved.arrays(), "a file")
    assert saved.inverse is not None
    assert loaded.inverse is None
    assert saved.excess == loaded.excess
    # with less noise neither way may prove a residual below one, and then as much as 0.3 is left
    assert saved.excess < 1e-6 or digits < -8.0


def test_short_way_is_taken_where_the_long_one_proves_less(monkeypatch):
    """Of a model with next to no noise: `A K A^T` loses more digits than the inverse does."""
    rng = np.random.default_rng(0)
    X, kernel = rng.uniform(-1, 1, (77, 2)), SquaredExponential(0.5)
    L = np.linalg.cholesky(kernel.value(X, X) + 1e-9 * np.eye(77))
    unit = Posterior(kernel, X, np.ones(77), Inverse.of(L).matrix).unit
    monkeypatch.setattr(unit_form, "SMALL_EXCESS", 0.0)
    long = unit_form.largest_eigenvalue(list(unit.factor), *unit.gram) - 1.0
    assert 0.0 < unit.excess < 0.01 * long


def test_what_is_proved_of_another_factor_is_not_believed():
    """A factor that was put in the place of the one that the inverse belongs to."""
    known = _posterior(True)
    wrong = dataclasses.replace(known, factor=2.0 * known.factor)
    assert wrong.inverse is None
    assert wrong.excess > 1.0
    again = Posterior(known.kernel, known.points, known.weights, 2.0 * known.factor[0])
    assert wrong.excess == again.excess
    assert _posterior(True, coupled=True).inverse is None  # its factor is rounded to a grid
    bent = dataclasses.replace(known, factor=known.factor * (1.0 + 1e-15))
    assert bent.inverse is None
    assert known.inverse is not None
    assert not known.inverse.root.flags.writeable


SIZES = pytest.mark.parametrize("N", [1, 8, 2 * triangular.SIDE + 3])
"""Of one block, and of several."""


@SIZES
@pytest.mark.parametrize("order", ["C", "F"])
def test_plain_inverse(N, order):
    rng = np.random.default_rng(N)
    L = np.asarray(np.tril(rng.normal(size=(N, N))) / N**0.5 + 3 * np.eye(N), order=order)
    A = triangular_inverse(L + np.triu(np.ones((N, N)), 1))  # what stands above is not read
    np.testing.assert_allclose(A @ L, np.eye(N), atol=1e-12)
    assert is_triangular(A)


@pytest.mark.parametrize("N", [3, 2 * triangular.SIDE + 3])
def test_triangular_matrices_are_told_apart(N):
    A = np.tril(np.ones((N, N)))
    assert is_triangular(A)
    assert not is_triangular(A.T)
    assert not is_triangular(A[:-1])
    assert not is_triangular(np.diag([1.0, *np.zeros(N - 2), 1.0]))
    A[N // 2, -1] = 1e-300
    assert not is_triangular(A)
    assert not is_triangular(np.empty((0, 0)))


@SIZES
def test_square_is_a_transposed_a(N):
    rng = np.random.default_rng(2)
    for A in (np.tril(rng.normal(size=(N, N))), rng.normal(size=(20, N))):
        np.testing.assert_allclose(square(A), A.T @ A, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(square(A), square(A).T)


@SIZES
def test_size_of_a_product_of_absolute_values(N):
    """Signs that cancel in every row and column do not count as zero."""
    rng = np.random.default_rng(5)
    for _ in range(2 if N > 8 else 20):
        A, L = (np.tril(rng.choice([-1.0, 1.0], (N, N)) * rng.random((N, N))) for _ in range(2))
        true = float(np.linalg.norm(np.abs(A) @ np.abs(L), 2))
        assert true <= triangular.product_size(A, L) <= 3.0 * true
