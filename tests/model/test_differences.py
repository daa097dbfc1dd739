"""Differences of coupled outputs: exact in real arithmetic, with a proved excess; grids."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Gaussian, Logistic, MultinomialProbit, Softmax
from gpcert.model.posterior import Posterior
from gpcert.numerics.rounding import on_grid
from gpcert.numerics.spectral import coupling_excess
from gpcert.testing.arb_reference import ArbPosterior, kernel_reference
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import exact, flint
from tests.model.coupled_cases import apart_posterior, coupled_posterior

arb, arb_mat = flint().arb, flint().arb_mat

seeds, counts = st.integers(0, 2**32 - 1), st.sampled_from([2, 3, 4])


def arb_covariance(posterior, x):
    """Covariances of the outputs at x by the definition, as balls."""
    reference, at = ArbPosterior(posterior), exact(x)
    row, m = reference.row(x), posterior.outputs
    explained, added = (
        [
            [sum((a * k for a, k in zip(line, row, strict=True)), arb(0)) for line in A]
            for A in factors
        ]
        for factors in (reference.factors, reference.negative)
    )
    scale2, noise = exact(posterior.scale)[0] ** 2, exact(posterior.noise)
    prior = kernel_reference(posterior.kernel, at, at)
    found = []
    for i in range(m):
        shared = [
            sum((a * b for a, b in zip(explained[i], explained[j], strict=True)), arb(0))
            for j in range(m)
        ]
        if posterior.negative_factor.size:  # the factors are the outputs' own
            shared = [
                (shared[j] if i == j else arb(0))
                - sum((a * b for a, b in zip(added[i], added[j], strict=True)), arb(0))
                for j in range(m)
            ]
        found.append(
            [
                scale2 * ((prior if i == j else arb(0)) - shared[j]) + (noise[i] if i == j else 0)
                for j in range(m)
            ]
        )
    return found


makers = st.sampled_from([coupled_posterior, apart_posterior])


@settings(max_examples=examples(30))
@given(seed=seeds, m=counts, make=makers)
def test_differences_are_exact(seed, m, make):
    posterior = make(seed, m)
    differences, rng = posterior.differences, np.random.default_rng(seed)
    own, both = ArbPosterior(posterior), ArbPosterior(differences)
    for x in (posterior.points[0], posterior.points[0] + rng.normal(size=posterior.dim)):
        covariance = arb_covariance(posterior, x)
        for j, (k, c) in enumerate(zip(*np.triu_indices(m, 1), strict=True)):
            gap = own.mean(x, c) - own.mean(x, k)
            assert abs(both.mean(x, j) - gap) < arb(1e-40) * (1 + abs(gap))
            spread = covariance[c][c] + covariance[k][k] - covariance[k][c] - covariance[c][k]
            assert abs(both.variance(x, j) - spread) < arb(1e-40) * (1 + spread)


@settings(max_examples=examples(20))
@given(seed=seeds, m=counts, make=makers)
def test_covariances_are_the_definition(seed, m, make):
    posterior = make(seed, m)
    x = posterior.points[0] + 0.3
    found = posterior.covariances(x[None])[0]
    true = np.array([[float(c) for c in row] for row in arb_covariance(posterior, x)])
    np.testing.assert_allclose(found, true, rtol=1e-8, atol=1e-9 * np.abs(true).max())
    np.testing.assert_allclose(np.diag(found), posterior.predict(x[None])[1][0], rtol=1e-7)


def is_positive(matrix):
    """Whether Gaussian elimination proves an arb matrix to be positive definite."""
    rows = [list(row) for row in matrix]
    for i, pivot in enumerate(rows):
        if not pivot[i] > 0:
            return False
        for other in rows[i + 1 :]:
            factor = other[i] / pivot[i]
            for j in range(i, len(rows)):
                other[j] -= factor * pivot[j]
    return True


def below_identity(factors, gram, height):
    """Whether `sum_c A_c K A_c^T < height I` is proved."""
    r = len(factors[0])
    total = [[arb(0)] * r for _ in range(r)]
    K = gram.tolist()
    for A in factors:
        rows = [exact(a) for a in A]
        AK = [
            [sum((a * k[j] for a, k in zip(row, K, strict=True)), arb(0)) for j in range(len(K))]
            for row in rows
        ]
        for i in range(r):
            for j in range(r):
                total[i][j] += sum((a * b for a, b in zip(AK[i], rows[j], strict=True)), arb(0))
    return is_positive(
        [[(height if i == j else 0) - total[i][j] for j in range(r)] for i in range(r)]
    )


@settings(max_examples=examples(15))
@given(
    seed=seeds,
    m=counts,
    size=st.sampled_from([1.0, 1.0 + 1e-9, 1.5]),
    ridge=st.sampled_from([1e-12, 1e-3]),
)
def test_the_excess_dominates(seed, m, size, ridge):
    """Together, and for every difference; and it is the larger eigenvalue that counts."""
    base = coupled_posterior(seed, m, ridge)
    posterior = Posterior(
        base.kernel,
        base.points,
        base.weights,
        size * base.factor,
        likelihood=Softmax(),
        coupled=True,
    )
    height = 1 + arb(posterior.excess)
    gram = ArbPosterior(posterior).gram()
    assert below_identity(posterior.factor, gram, height + arb(1e-25))
    if posterior.excess > 0.01:
        assert not below_identity(posterior.factor, gram, height - arb(1e-6))
    differences = posterior.differences
    assert differences.excess == posterior.excess
    doubled = ArbPosterior(differences).gram()
    for A in differences.factor:
        assert below_identity([A], doubled, height + arb(1e-25))


def between(posterior, excess, gain):
    """Whether `-excess < P < gain` is proved for the joint operator of outputs that a C couples.

    On functions `sum_c Phi a_c`, to which it is the identity beside, P is `K - K S K` in the inner
    product of K, both (m N, m N).
    """
    reference = ArbPosterior(posterior)
    m, N, K = posterior.outputs, len(posterior.points), ArbPosterior(posterior).gram().tolist()
    rows, couplings = (
        [arb_mat([list(line) for line in F]) for F in factors]
        for factors in (reference.factors, reference.negative)
    )
    gram = arb_mat(K)

    def entry(c, d):
        S = -(couplings[c].transpose() * couplings[d])
        if c == d:
            S += rows[c].transpose() * rows[c]
        return gram * S * gram

    blocks = [[entry(c, d) for d in range(m)] for c in range(m)]

    def whole(factor, sign):
        return [
            [
                sign * ((K[i][j] if c == d else arb(0)) * (1 - factor) - blocks[c][d][i, j])
                for d in range(m)
                for j in range(N)
            ]
            for c in range(m)
            for i in range(N)
        ]

    return is_positive(whole(-excess, 1)), is_positive(whole(gain, -1))


@settings(max_examples=examples(12))
@given(
    seed=seeds,
    m=counts,
    spread=st.sampled_from([0.3, 3.0, 30.0]),
    size=st.sampled_from([1.0, 1.0 + 1e-7, 1.3]),
    coupling=st.sampled_from([1.0, 1.0 + 1e-7, 1.4]),
)
def test_excess_and_gain_dominate_where_outputs_are_coupled_by_one(seed, m, spread, size, coupling):
    base = apart_posterior(seed, m, spread)
    posterior = apart_posterior(
        seed, m, spread, negative_factor=coupling * size * base.negative_factor
    )
    if size != 1.0:
        posterior = Posterior(
            posterior.kernel,
            posterior.points,
            posterior.weights,
            size * posterior.factor,
            negative_factor=posterior.negative_factor,
            coupled=True,
            likelihood=Softmax(),
        )
    slack = arb(1e-20)
    excess, gain = arb(posterior.excess), arb(posterior.gain)
    assert between(posterior, excess + slack, gain + slack) == (True, True)
    differences = posterior.differences
    assert (differences.excess, differences.gain) == (posterior.excess, posterior.gain)
    if (size, coupling) == (1.0, 1.0):
        assert posterior.gain < 1.0 + 1e-5
    if coupling == 1.4:
        assert posterior.gain > 1.0 + 1e-12


@pytest.mark.parametrize("small", [1.0, 1e-4, 1e-9, 1e-30])
def test_the_excess_of_a_coupling_is_an_upper_bound(small):
    """Also where a factor has next to nothing of what the coupling has."""
    rng = np.random.default_rng(5)
    m, N = 3, 4
    scales = np.where(np.arange(N) == 2, small, 1.0)
    for coupling in (0.0, 0.3, 3.0):
        A = np.tril(rng.normal(size=(m, N, N)) * 0.2 + np.eye(N)) * scales
        C = coupling * rng.normal(size=(m, N, N))
        if coupling == 0.0:  # all of it is the factors', but for something in the short columns
            Q = np.linalg.qr(np.concatenate(list(A)))[0].reshape(m, N, N)
            C = Q.transpose(0, 2, 1) @ A
            C[:, :, 2] += 0.3
        both = np.concatenate(list(C), axis=1)
        own = scipy.linalg.block_diag(*A)
        largest = np.linalg.eigvalsh(own.T @ own)[-1]
        true = np.linalg.eigvalsh(both.T @ both - own.T @ own)[-1]
        found = coupling_excess(A, C, max(largest - 1.0, 0.0), float(N))
        assert true <= found


def test_a_coupling_without_a_triangular_factor_has_the_gain_of_its_eigenvalue():
    posterior = apart_posterior(3)
    turned = posterior.factor[:, ::-1]
    other = Posterior(
        posterior.kernel,
        posterior.points,
        posterior.weights,
        turned,
        negative_factor=posterior.negative_factor,
        coupled=True,
        likelihood=Softmax(),
    )
    if len(posterior.points) > 1:
        assert 1.0 < other.gain <= 2.0 + 1e-6
    assert between(other, arb(other.excess) + arb(1e-20), arb(other.gain)) == (True, True)


@settings(max_examples=examples(50))
@given(seed=seeds, spread=st.floats(0.0, 40.0))
def test_sums_and_differences_on_a_grid_are_exact(seed, spread):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=20) * 10.0 ** rng.uniform(-spread, spread, 20)
    grid = on_grid(values)
    largest = np.abs(values).max()
    assert np.all(np.abs(grid - values) <= 2.0**-50 * largest)
    for a, b in zip(grid, rng.permutation(grid), strict=True):
        assert Fraction(a) - Fraction(b) == Fraction(a - b)
        assert Fraction(a) + Fraction(b) == Fraction(a + b)
        assert (Fraction(a) - Fraction(b)) / 2 == Fraction((a - b) / 2.0)


def test_a_grid_of_zeros():
    assert on_grid(np.zeros(3)).tolist() == [0.0] * 3


TWO = {"kernel": SquaredExponential(1.0), "points": [[0.0], [1.0]], "weights": np.ones((3, 2))}
JOINT = {"factor": np.ones((3, 2, 2)), "coupled": True}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"likelihood": Softmax(), "classes": ("a", "b")}, "expected 3 labels"),
        ({"likelihood": Softmax(), "weights": [1.0, 2.0]}, "needs 2 outputs"),
        ({"likelihood": MultinomialProbit(), "weights": [[1.0, 2.0]]}, "needs 2 outputs"),
        ({"likelihood": Softmax(), "scale": [1.0, 1.0, 2.0], **JOINT}, "scale.*same"),
        ({"likelihood": Gaussian(), "classes": ("a", "b", "c")}, "two labels"),
        ({"likelihood": Logistic(), "classes": ("a", "b")}, "two labels of one output"),
        ({"coupled": True}, "coupled: expected a factor"),
        ({"coupled": True, "factor": np.ones((2, 2))}, "coupled: expected a factor"),
        ({**JOINT, "negative_factor": np.ones((1, 2))}, "coupled: expected a factor"),
    ],
)
def test_what_is_refused(changes, message):
    with pytest.raises(InputError, match=message):
        Posterior(**{**TWO, **changes})


def test_independent_outputs_have_no_differences():
    with pytest.raises(InputError, match="coupled"):
        _ = Posterior(**TWO, likelihood=Softmax()).differences


def test_labels():
    assert Posterior(**TWO, likelihood=Softmax()).labels == (0, 1, 2)
    assert Posterior(**TWO, likelihood=Softmax(), classes=(3, 5, 8)).labels == (3, 5, 8)
