"""The softmax likelihood: certified moments against a dense cubature, other routes, torch."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.errors import InputError
from gpcert.integrals import normal_rule as rules
from gpcert.integrals import softmax_moments as module
from gpcert.integrals.plain_probabilities import expected_softmax
from gpcert.likelihoods.logistic import Logistic
from gpcert.likelihoods.softmax import Softmax
from gpcert.numerics.arrays import backend_from_name, to_numpy
from gpcert.testing.effort import examples, variants

ORDER = 4


def hermite(degree, x):
    before, value = 0, 1
    for k in range(degree):
        before, value = value, x * value - k * before
    return value


sizes = st.one_of(st.floats(-30.0, 30.0), st.floats(-3.0, 3.0), st.just(0.0))
deviations = st.one_of(
    st.floats(1e-3, 0.1), st.floats(0.1, 6.0), st.floats(6.0, 40.0), st.just(100.0)
)


def dense_moments(a, L, order, step, end=9.0, offset=0.37):
    """Cubature on another grid, offset and finer, with the softmax itself: list by order.

    Returns the tensors (m, n, ..., n), each from all its entries' own Hermite products.
    """
    n = len(a)
    x = np.arange(-end, end, step) + offset * step
    w = np.exp(-0.5 * x * x)
    w /= math.sqrt(2.0 * math.pi) / step
    grid = np.stack(np.meshgrid(*[x] * n, indexing="ij"), axis=-1).reshape(-1, n)
    d = np.concatenate([np.zeros((len(grid), 1)), a + grid @ L.T], axis=1)
    e = np.exp(d - d.max(axis=1, keepdims=True))
    values = (e / e.sum(axis=1, keepdims=True)).T.reshape(n + 1, *[len(x)] * n)
    table = np.stack([w * hermite(r, x) for r in range(order + 1)])
    for _ in range(n):  # contracts the first coordinate and appends its degree
        values = np.tensordot(values, table, axes=([1], [1]))
    result = [values[(slice(None), *[0] * n)]]
    for j in range(1, order + 1):
        tensor = np.empty((n + 1, *[n] * j))
        for entry in itertools.product(range(n), repeat=j):
            degrees = tuple(entry.count(k) for k in range(n))
            tensor[(slice(None), *entry)] = values[(slice(None), *degrees)]
        result.append(tensor)
    return result


def form_norm(tensor, order, rng):
    """Lower bound of the largest value of a form (m, n, ...) on unit vectors."""
    n = tensor.shape[-1]
    best = 0.0
    for u in np.concatenate([np.eye(n), rng.normal(size=(40, n))]):
        value = tensor
        for _ in range(order):
            value = value @ (u / np.linalg.norm(u))
        best = max(best, float(abs(value).max()))
    return best


REFERENCE_ERRORS = (1e-13, 2e-13, 6e-13, 2e-12, 1.1e-11, 4e-11, 1.5e-10)
"""Of `dense_moments` by order: rounding, times the sizes of the Hermite products of all entries."""


def excess(a, L, moments, row, step, rng):
    """Largest (true error + that of the reference) / certified error over the orders."""
    worst = 0.0
    for j, true in enumerate(dense_moments(a, L, ORDER, step)):
        computed = (moments.value if j == 0 else moments.derivatives[j - 1])[row]
        error = form_norm(computed - true, j, rng) if j else float(abs(computed - true).max())
        worst = max(worst, (error + REFERENCE_ERRORS[j]) / float(moments.errors[row, j]))
    return worst


def random_cases(rng, n, count, scale):
    a = rng.choice([0.0, 1.0, 30.0], size=(count, 1)) * rng.normal(size=(count, n))
    L = np.tril(rng.normal(size=(count, n, n)))
    i = np.arange(n)
    L[:, i, i] = abs(L[:, i, i]) * rng.choice([1.0, 1e-6], size=(count, n))  # nearly singular
    return a, scale * L


@variants(
    ("n", "count", "scale", "step"),
    [
        (2, 12, 1e-3, 0.3),
        (2, 12, 0.7, 0.15),
        (2, 12, 3.0, 0.03),
        (3, 4, 1e-3, 0.3),
        (3, 6, 0.7, 0.13),
    ],
    quick=4,
)
def test_moments_against_dense_cubature(n, count, scale, step):
    rng = np.random.default_rng(n)
    a, L = random_cases(rng, n, count, scale)
    moments = Softmax().moments(a, L, ORDER)
    for row in range(count):
        assert excess(a[row], L[row], moments, row, step, rng) <= 1.0
    total = moments.value.sum(axis=1)
    assert np.all(abs(total - 1.0) <= (n + 1) * moments.errors[:, 0])
    for j, tensor in enumerate(moments.derivatives, start=1):
        assert np.all(form_norm(tensor.sum(axis=1), j, rng) <= (n + 1) * moments.errors[:, j].max())


def test_the_check_bites(monkeypatch):
    """A coarse rule: its honest errors still cover, the errors of the fine rule do not."""
    rng = np.random.default_rng(5)
    a, L = np.array([[0.3, -0.2]]), np.array([[[3.0, 0.0], [-2.0, 1.0]]])
    fine = Softmax().moments(a, L, ORDER)
    step = rules.rule_step
    rules.normal_rule.cache_clear()
    monkeypatch.setattr(rules, "rule_step", lambda spread: 4.0 * step(spread))
    try:
        coarse = Softmax().moments(a, L, ORDER)
    finally:
        rules.normal_rule.cache_clear()
    assert excess(a[0], L[0], coarse, 0, 0.04, rng) <= 1.0
    assert coarse.errors[0, 0] > 1e-4
    broken = type(coarse)(coarse.value, coarse.derivatives, fine.errors)
    assert excess(a[0], L[0], broken, 0, 0.04, rng) > 1.0
    honest = excess(a[0], L[0], fine, 0, 0.04, rng)
    assert honest <= 1.0


@pytest.mark.parametrize("order", range(ORDER + 1))
def test_lower_orders_agree(order):
    rng = np.random.default_rng(1)
    for n in (1, 2, 3):
        a, L = random_cases(rng, n, 3, 0.5)
        full, part = Softmax().moments(a, L, ORDER), Softmax().moments(a, L, order)
        assert len(part.derivatives) == order
        assert part.errors.shape == (3, order + 1)
        np.testing.assert_allclose(part.value, full.value, atol=1e-15)
        np.testing.assert_allclose(part.errors, full.errors[:, : order + 1])
        for x, y in zip(part.derivatives, full.derivatives, strict=False):
            np.testing.assert_allclose(x, y, atol=1e-12)


@given(sizes, deviations)
@settings(max_examples=examples(50), deadline=None)
def test_two_classes_agree_with_logistic(a, s):
    moments = Softmax().moments(np.array([[a]]), np.array([[[s]]]), 1)
    lower, upper = Logistic().enclose(np.array([a]), np.array([s * s]))
    # s * s is rounded: F_v <= 1/16, v <= 1e4, so F moves by less than 1e-13
    assert moments.value[0, 1] + moments.errors[0, 0] + 1e-13 >= lower[0]
    assert moments.value[0, 1] - moments.errors[0, 0] - 1e-13 <= upper[0]
    assert moments.errors[0, 0] < 1e-12


def test_derivatives_are_those_of_the_value():
    """Central differences of the value itself, moved along the columns of L."""
    a, L = np.array([[0.4, -0.3, 0.8]]), np.tril(np.full((1, 3, 3), 0.9))
    moments = Softmax().moments(a, L, 3)
    h = 1e-3
    for u in (np.eye(3)[1], np.array([0.6, 0.0, 0.8]), np.array([1.0, -1.0, 1.0]) / math.sqrt(3)):
        at = [Softmax().moments(a + k * h * (L @ u), L, 0).value[0] for k in (-2, -1, 0, 1, 2)]
        first = (at[3] - at[1]) / (2 * h)
        second = (at[3] - 2 * at[2] + at[1]) / h**2
        np.testing.assert_allclose(first, moments.derivatives[0][0] @ u, atol=1e-6)
        np.testing.assert_allclose(second, moments.derivatives[1][0] @ u @ u, atol=1e-3)


@variants("n", [1, 2, 3], quick=2)
def test_huge_and_tiny_inputs_stay_finite_and_honest(n):
    rng = np.random.default_rng(2)
    for scale in (1e-300, 1e2, 1e6, 1e20, 1e200):
        a = np.concatenate([np.zeros((1, n)), scale * rng.normal(size=(2, n))])
        L = np.tril(scale * abs(rng.normal(size=(3, n, n))))
        moments = Softmax().moments(a, L, ORDER)
        for array in (moments.value, *moments.derivatives, moments.errors):
            assert np.all(np.isfinite(array))
        assert np.all((moments.value >= 0.0) & (moments.value <= 1.0))
        assert np.all(moments.errors[:, 0] <= 1.0)
        if n > 1 and scale > 1e5:
            assert np.all(moments.errors[:, 0] > 0.1)


def test_vacuous_errors_cover():
    # a step in d_1: P(d_1 > 0) = 1/2, and the first derivative is phi(0)
    L = np.array([[[1e7, 0.0], [0.0, 1e-9]]])
    moments = Softmax().moments(np.array([[0.0, -100.0]]), L, 1)
    assert abs(moments.value[0, 0] - 0.5) <= moments.errors[0, 0]
    slope = abs(moments.derivatives[0][0, 1, 0] - 1.0 / math.sqrt(2.0 * math.pi))
    assert slope <= moments.errors[0, 1]


def test_mixed_batches_keep_their_order():
    rng = np.random.default_rng(3)
    a, L = random_cases(rng, 2, 30, 1.0)
    L = L * 10.0 ** rng.uniform(-3, 1, size=(30, 1, 1))
    together = Softmax().moments(a, L, 2)
    for row in range(30):
        alone = Softmax().moments(a[row : row + 1], L[row : row + 1], 2)
        np.testing.assert_allclose(together.value[row], alone.value[0], atol=1e-14)
        np.testing.assert_allclose(
            together.derivatives[1][row], alone.derivatives[1][0], atol=1e-13
        )
        np.testing.assert_array_equal(together.errors[row], alone.errors[0])


def test_blocks_of_nodes_add_up(monkeypatch):
    a, L = random_cases(np.random.default_rng(4), 3, 5, 1.0)
    whole = Softmax().moments(a, L, ORDER)
    monkeypatch.setattr(module, "_BLOCK_NUMBERS", 4 * 18 * 50)
    pieces = Softmax().moments(a, L, ORDER)
    for x, y in zip(pieces.derivatives, whole.derivatives, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-11)
    np.testing.assert_array_equal(pieces.errors, whole.errors)


def test_torch_agrees():
    pytest.importorskip("torch")
    place = backend_from_name("torch")
    for n in (1, 2, 3):
        a, L = random_cases(np.random.default_rng(n), n, 6, 1.0)
        ours = Softmax().moments(a, L, ORDER)
        theirs = Softmax().moments(place.asarray(a), place.asarray(L), ORDER)
        np.testing.assert_allclose(to_numpy(theirs.value), ours.value, atol=1e-13)
        np.testing.assert_allclose(to_numpy(theirs.errors), ours.errors, rtol=1e-3)
        for x, y in zip(theirs.derivatives, ours.derivatives, strict=True):
            np.testing.assert_allclose(to_numpy(x), y, atol=1e-11)


def test_sums_keep_their_precision_where_the_law_has_less():
    a, L = (x.astype(np.float32) for x in random_cases(np.random.default_rng(5), 2, 6, 1.0))
    found = Softmax().moments(a, L, 2)
    exact = Softmax().moments(a.astype(float), L.astype(float), 2)
    np.testing.assert_array_equal(found.value, exact.value)
    np.testing.assert_array_equal(found.derivatives[1], exact.derivatives[1])
    np.testing.assert_array_equal(found.errors, exact.errors)


def test_errors_name_the_limit():
    with pytest.raises(InputError, match="at most 4 classes"):
        Softmax().moments(np.zeros((1, 4)), np.eye(4)[None], 1)
    with pytest.raises(InputError, match=r"order in 0\.\.4"):
        Softmax().moments(np.zeros((1, 1)), np.ones((1, 1, 1)), 5)
    with pytest.raises(InputError, match="NaN"):
        Softmax().moments(np.full((1, 1), np.nan), np.ones((1, 1, 1)), 1)
    with pytest.raises(InputError, match=r"expected a \(B, n\)"):
        Softmax().moments(np.zeros((1, 2)), np.ones((1, 1, 1)), 1)
    with pytest.raises(InputError, match=r"1\.\.6"):
        Softmax().link_bound(7)


def test_plain_probabilities_agree_with_the_certified():
    rng = np.random.default_rng(0)
    mean, root = rng.normal(size=(4, 3)), rng.normal(size=(4, 3, 3))
    covariance = root @ root.transpose(0, 2, 1)
    plain = Softmax().probabilities(mean, covariance)
    np.testing.assert_allclose(plain, expected_softmax(mean, covariance), atol=1e-6)
    np.testing.assert_allclose(plain.sum(axis=1), 1.0, rtol=1e-15)
    to_differences = np.array([[-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]])
    spread = to_differences @ covariance @ to_differences.T
    moments = Softmax().moments(mean @ to_differences.T, np.linalg.cholesky(spread), 0)
    np.testing.assert_allclose(plain, moments.value, atol=1e-8)


def test_independent_outputs_agree():
    """The integral over Gumbel noise and the grid enclose the same number."""
    rng = np.random.default_rng(6)
    mu, v = rng.normal(size=(5, 3)), rng.uniform(0.1, 4.0, size=(5, 3))
    weights = np.array([1.0, -1.0, 0.5])
    other = Softmax().independent_moments(mu, v, weights)
    to_differences = np.array([[-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]])
    factor = np.linalg.cholesky(to_differences @ (v[:, :, None] * to_differences.T))
    ours = Softmax().moments(mu @ to_differences.T, factor, 0)
    # 1e-13: the rounding of the differences and of Cholesky's factor
    allowed = 2.5 * ours.errors[:, 0] + other.errors[:, 0] + 1e-13
    assert np.all(abs((ours.value * weights).sum(axis=1) - other.value) <= allowed)


def test_record():
    assert Softmax() == Softmax()
    assert repr(Softmax()) == "Softmax()"
    assert Softmax().noise == 0.0
    assert Softmax().highest_order == ORDER
    assert Softmax().pair == Logistic()
    assert Softmax().config() == {}
