"""Softmax probabilities by the Gumbel form, against tensor rules in high precision."""

import math

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.errors import InputError
from gpcert.integrals import gumbel, gumbel_rule
from gpcert.integrals.gumbel import gumbel_moments
from gpcert.likelihoods import Logistic
from gpcert.numerics.arrays import backend_from_name, to_numpy
from gpcert.testing import arb_reference as reference
from gpcert.testing.effort import examples, variants

BITS = 200


EXTENDED = np.longdouble


REFERENCE_ERROR = 4.0 * float(np.finfo(EXTENDED).eps)
"""Of the tensor rule, relative to the weights; its nodes leave less than 1e-19."""


def nodes(s):
    """Step and nodes of a rule in z that is exact to about 1e-20 for a softmax of width s."""
    a = min(2.8 / max(s, 1e-9), 9.0)
    step = 2 * math.pi * a / (48 + a * a / 2)
    return step, np.arange(-math.ceil(9.8 / step), math.ceil(9.8 / step) + 1)


def tensor_moments(mu, v, w):
    """Value, gradient and Hessian by a tensor rule over the random outputs, in extended precision.

    It averages softmax and its derivatives over f itself: nothing of the Gumbel form is used.
    """
    random = np.flatnonzero(v > 0)
    weight, outputs = np.ones(1, EXTENDED), [np.full(1, x, EXTENDED) for x in mu]
    for k in random:
        step, j = nodes(math.sqrt(v[k]))
        z = EXTENDED(step) * j.astype(EXTENDED)
        p = EXTENDED(step) * np.exp(-z * z / 2) / np.sqrt(2 * np.arctan(EXTENDED(1)) * 4)
        f = EXTENDED(mu[k]) + np.sqrt(EXTENDED(v[k])) * z
        outputs = [np.repeat(x, len(z)) for x in outputs]
        outputs[k] = np.tile(f, len(weight))
        weight = np.repeat(weight, len(z)) * np.tile(p, len(weight))
        keep = weight > 1e-24
        weight, outputs = weight[keep], [x[keep] for x in outputs]
    f = np.stack(outputs)
    e = np.exp(f - f.max(axis=0))
    p = e / e.sum(axis=0)
    w = w.astype(EXTENDED)
    g = w @ p
    slope = p * (w[:, None] - g)
    gradient = slope @ weight
    cross = (slope * weight) @ p.T
    return g @ weight, gradient, np.diag(gradient) - cross - cross.T


def check(mu, v, w, largest=None):
    """Errors cover the difference to the tensor rule, beyond what that rule itself may err.

    Returns the largest difference.
    """
    mu, v, w = (np.asarray(x, dtype=float) for x in (mu, v, w))
    found = gumbel_moments(mu[None], v[None], w)
    value, gradient, hessian = tensor_moments(mu, v, w)
    gaps = [
        abs(found.value[0] - value),
        np.abs(found.gradient[0] - gradient).max(),
        np.abs(found.hessian[0] - hessian).max(),
    ]
    assert np.all(np.isfinite(found.errors))
    for gap, error in zip(gaps, found.errors[0], strict=True):
        assert gap <= error + REFERENCE_ERROR * np.abs(w).max()
        if largest is not None:
            assert error <= largest
    return float(max(gaps))


sizes = st.sampled_from([0.0, 1e-12, 1e-3, 0.1, 0.13, 0.1407, 0.15, 0.7, 2.0])


means = st.floats(-6.0, 6.0)


weights = st.one_of(st.sampled_from([-1.0, 0.0, 1.0]), st.floats(-3.0, 3.0))


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(means, sizes, weights), min_size=1, max_size=3))
def test_errors_cover_the_truth_for_up_to_three_random_outputs(case):
    mu, v, w = zip(*case, strict=True)
    check(mu, v, w, largest=1e-10)


@settings(max_examples=examples(30), deadline=None)
@given(
    st.lists(st.tuples(means, weights), min_size=2, max_size=8),
    st.floats(0.0, 40.0),
    st.floats(0.0, 40.0),
)
def test_errors_cover_the_truth_among_sure_outputs(case, first, second):
    mu, w = zip(*case, strict=True)
    check(mu, [first, second] + [0.0] * (len(mu) - 2), w, largest=1e-10)


@settings(max_examples=examples(40), deadline=None)
@given(st.floats(-40.0, 40.0), st.floats(-4.0, 4.0), st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_one_random_output_of_any_variance(gap, log_v, m, seed):
    rng = np.random.default_rng(seed)
    mu, w = rng.normal(size=m) * 3.0, rng.normal(size=m)
    mu[0] += gap
    v = np.zeros(m)
    v[0] = 10.0**log_v
    check(mu, v, w, largest=1e-9)


@pytest.mark.slow  # half a second for one more output than above
def test_four_random_outputs():
    check([0.3, -1.0, 0.8, 0.1], [0.3, 0.2, 0.05, 0.4], [1.0, -1.0, 0.5, 0.0], largest=1e-10)


@pytest.mark.parametrize("v", [(0.0, 0.0), (1e-9, 0.3), (0.5, 1.5), (30.0, 30.0), (1e4, 1e3)])
@pytest.mark.parametrize("gap", [-30.0, -2.0, 0.0, 0.1, 5.0, 700.0])
def test_two_classes_are_the_logistic_integral(gap, v):
    mu = np.array([[0.25, 0.25 + gap]])
    found = gumbel_moments(mu, np.array([v]), np.array([0.0, 1.0]))
    low, high = Logistic().enclose(np.array([gap]), np.array([v[0] + v[1]]))
    assert found.value[0] - found.errors[0, 0] <= high[0]
    assert low[0] <= found.value[0] + found.errors[0, 0]
    assert found.errors[0, 0] < 1e-10


def test_two_classes_against_ball_arithmetic():
    rng = np.random.default_rng(3)
    mu, v = rng.normal(size=(12, 2)) * 2.0, rng.uniform(0.0, 3.0, size=(12, 2))
    found = gumbel_moments(mu, v, np.array([0.0, 1.0]))
    with ctx.workprec(BITS):
        for b in range(examples(12, quick=6)):
            gap = arb(mu[b, 1]) - arb(mu[b, 0])
            truth = reference.logistic_normal(gap, arb(v[b, 0]) + arb(v[b, 1]))
            assert abs(arb(found.value[b]) - truth) < arb(found.errors[b, 0])


def arb_moments(mu, v, w):
    """`sum_c w_c E softmax_c` of three random outputs by a tensor rule at 200 bits."""
    a = [arb(x) - arb(mu[0]) for x in mu]
    v0, v1, v2 = (arb(x) for x in v)
    l11 = (v0 + v1).sqrt()
    l21 = v0 / l11
    l22 = (v0 + v2 - l21 * l21).sqrt()
    width = float(l11) + float(l22)
    reach, a_strip = 10.5, min(2.8 / width, 9.0)
    step = arb(2 * math.pi * a_strip / (56 + a_strip**2 / 2))
    count = math.ceil(reach / float(step))
    z = [step * j for j in range(-count, count + 1)]
    p = [step * (-x * x / 2).exp() / (2 * arb.pi()).sqrt() for x in z]
    one = [(a[1] + l11 * x).exp() for x in z]
    two_a, two_b = [(a[2] + l21 * x).exp() for x in z], [(l22 * x).exp() for x in z]
    total = arb(0)
    for i, p_i in enumerate(p):
        for j, p_j in enumerate(p):
            e1, e2 = one[i], two_a[i] * two_b[j]
            total += p_i * p_j * (w[0] + w[1] * e1 + w[2] * e2) / (1 + e1 + e2)
    return total


def test_three_classes_and_derivatives_by_differences_in_high_precision():
    mu, v, w = np.array([0.4, -0.3, 0.9]), np.array([0.5, 0.2, 0.3]), np.array([1.0, -0.5, 0.25])
    found = gumbel_moments(mu[None], v[None], w)
    with ctx.workprec(BITS):
        centre = [arb(x) for x in mu]
        step = arb(2) ** -24
        constants = [arb(x) for x in w]

        def at(change):
            return arb_moments([x + c for x, c in zip(centre, change, strict=True)], v, constants)

        middle, right, left = at([0, 0, 0]), at([step, 0, 0]), at([-step, 0, 0])
        # central differences err by step^2 times a third or fourth derivative, below 1e-14
        slope = float((right - left) / (2 * step))
        bend = float((right - 2 * middle + left) / (step * step))
        assert abs(arb(found.value[0]) - middle) < arb(found.errors[0, 0])
    assert abs(found.gradient[0, 0] - slope) <= found.errors[0, 1] + 1e-14
    assert abs(found.hessian[0, 0, 0] - bend) <= found.errors[0, 2] + 1e-14


def test_the_tensor_rule_agrees_with_ball_arithmetic():
    mu, v, w = np.array([0.4, -0.3, 0.9]), np.array([0.5, 0.2, 0.3]), np.array([1.0, -0.5, 0.25])
    with ctx.workprec(BITS):
        truth = arb_moments(mu, v, [arb(x) for x in w])
        assert abs(arb(float(tensor_moments(mu, v, w)[0])) - truth) < 1e-15


def random_case(m, B=20, seed=0, spread=3.0, largest=30.0):
    rng = np.random.default_rng(seed)
    v = rng.uniform(0.0, 1.0, size=(B, m)) ** 3 * largest
    return rng.normal(size=(B, m)) * spread, v, rng.normal(size=m)


@variants("m", [2, 3, 10, 25], quick=3)
def test_invariances(m):
    mu, v, w = random_case(m)
    found = gumbel_moments(mu, v, w)
    e1, e2, e3 = found.errors.T
    assert np.max(found.errors) < 1e-9
    # a common shift changes nothing: rows sum to zero, and so does the change of the value
    assert np.all(np.abs(found.gradient.sum(axis=1)) <= m * e2)
    assert np.all(np.abs(found.hessian.sum(axis=2)) <= m * e3[:, None])
    assert np.array_equal(found.hessian, np.swapaxes(found.hessian, 1, 2))
    moved = gumbel_moments(mu + 8.0, v, w)  # 8 and the rounding of the sum, below 1e-14
    assert np.all(np.abs(found.value - moved.value) <= e1 + moved.errors[:, 0] + 1e-13)
    # constants in the weights add, classes sum to one, order does not matter
    lifted = gumbel_moments(mu, v, w + 4.0)
    assert np.all(np.abs(lifted.value - found.value - 4.0) <= 2 * lifted.errors[:, 0])
    single = [gumbel_moments(mu, v, np.eye(m)[c]) for c in range(m)]
    total = sum(part.value for part in single)
    assert np.all(np.abs(total - 1.0) <= sum(part.errors[:, 0] for part in single))
    turned = gumbel_moments(mu[:, ::-1].copy(), v[:, ::-1].copy(), w[::-1].copy())
    assert np.all(np.abs(turned.value - found.value) <= 2 * e1)
    assert np.all(np.abs(turned.hessian[:, ::-1, ::-1] - found.hessian) <= 2 * e3[:, None, None])


def test_a_box_does_not_depend_on_its_batch():
    mu, v, w = random_case(4, B=9)
    v[3], v[5] = 1e7, 0.0
    together = gumbel_moments(mu, v, w)
    for b in range(9):
        alone = gumbel_moments(mu[b : b + 1], v[b : b + 1], w)
        assert abs(together.value[b] - alone.value[0]) <= 1e-14
        assert np.allclose(together.errors[b], alone.errors[0], rtol=1e-6, atol=0.0)


def test_monte_carlo_of_ten_classes():
    mu, v, w = random_case(10, B=1, seed=5)
    found = gumbel_moments(mu, v, w)
    f = mu + np.sqrt(v) * np.random.default_rng(1).normal(size=(1_000_000, 10))
    e = np.exp(f - f.max(axis=1, keepdims=True))
    g = (e @ w) / e.sum(axis=1)
    assert abs(g.mean() - found.value[0]) < 5.0 * g.std() / 1000.0
    slope = e[:, 3] / e.sum(axis=1) * (w[3] - g)
    assert abs(slope.mean() - found.gradient[0, 3]) < 5.0 * slope.std() / 1000.0


@pytest.mark.parametrize("v", [0.0, 1e-8, 0.2, 5.0, 1e4])
@pytest.mark.parametrize("m", [2, 7])
def test_equal_classes(m, v):
    found = gumbel_moments(np.full((1, m), 17.0), np.full((1, m), v), np.eye(m)[0])
    assert abs(found.value[0] - 1.0 / m) <= found.errors[0, 0] < 1e-9


def test_one_class_dominates():
    mu = np.array([[1000.0, 0.0, -1e3, -1e12], [0.0, -1e3, 600.0, 1e12]])
    v = np.array([[2.0, 0.0, 3.0, 30.0]] * 2)
    found = gumbel_moments(mu, v, np.array([1.0, 2.0, 3.0, 4.0]))
    assert np.all(np.abs(found.value - np.array([1.0, 4.0])) <= found.errors[:, 0])
    assert np.all(found.errors < 1e-9)
    assert np.all(np.abs(found.gradient) <= found.errors[:, 1:2])


def test_huge_and_improper_inputs():
    mu = np.array([[0, 1], [1e300, -1e300], [0, 1e150], [0, math.nan], [0, 1], [math.inf, 0]])
    v = np.array([[1e9, 1e9], [1e305, 1], [1, 1], [1, 1], [-1, 1], [1, math.inf]])
    found = gumbel_moments(mu, v, np.array([0.0, 1.0]))
    for name in ("value", "gradient", "hessian", "errors"):
        assert not np.any(np.isnan(getattr(found, name)))
    assert np.all(found.errors[:3] < 1.01)
    assert np.all(np.isinf(found.errors[3:]))
    assert np.all((found.value >= 0.0) & (found.value <= 1.0))
    with pytest.raises(InputError, match="weights"):
        gumbel_moments(mu, v, np.array([0.0, math.nan]))


def test_whole_numbers_are_not_cut():
    mu, v, w = np.array([[1, 0, 3]]), np.array([[1, 2, 0]]), np.array([1.0, 0.0, 0.5])
    whole, exact = gumbel_moments(mu, v, w), gumbel_moments(mu * 1.0, v * 1.0, w)
    for name in ("value", "gradient", "hessian", "errors"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(exact, name))


def test_degenerate_shapes_and_weights():
    empty = gumbel_moments(np.zeros((0, 3)), np.zeros((0, 3)), np.ones(3))
    assert empty.hessian.shape == (0, 3, 3)
    single = gumbel_moments(np.array([[3.0]]), np.array([[2.0]]), np.array([0.7]))
    assert single.value[0] == 0.7
    assert single.gradient[0, 0] == single.hessian[0, 0, 0] == 0.0
    equal = gumbel_moments(np.array([[3.0, 1.0]]), np.array([[2.0, 1.0]]), np.array([0.7, 0.7]))
    assert equal.errors[0, 0] < 1e-15
    check([0.3, 0.1], [1.0, 2.0], [1e-290, -1e-290])
    check([0.3, 0.1], [1.0, 2.0], [1e290, -1e290])


@pytest.fixture
def fresh_tables():
    yield
    gumbel_rule._table.cache_clear()


def spoil(monkeypatch, name, value):
    for module in (gumbel, gumbel_rule):
        if hasattr(module, name):
            monkeypatch.setattr(module, name, value)


@pytest.mark.usefixtures("fresh_tables")
@pytest.mark.parametrize(
    ("name", "value"),
    [("FINEST", 1.5), ("CUT", 4.0), ("COARSE", 0.5), ("BELOW", 6.0), ("SPACING", 2.0)],
)
def test_each_part_of_the_error_is_needed(monkeypatch, name, value):
    """Make one part of the rule coarse: the bound must still hold, and the gap be felt."""
    cases = [
        ([0.1, -0.2, 0.9], [0.05, 0.0, 0.09], [1.0, 0.0, -1.0]),
        ([0.1, -0.2, 0.5], [0.03, 2.0, 0.04], [1.0, 0.0, -1.0]),
        ([0.0, -3.0, 0.5, 0.4], [0.1, 0.1, 0.03, 0.0], [1.0, 0.0, -1.0, 0.3]),
        ([0.0, 0.5], [1.7, 2.2], [1.0, 0.0]),
    ]
    exact = max(check(*case) for case in cases)
    spoil(monkeypatch, name, value)
    if name == "SPACING":
        spoil(monkeypatch, "NODES", 2.0 * np.arange(-5, 6))
    gumbel_rule._table.cache_clear()
    gaps = [check(*case) for case in cases]  # asserts that the errors still cover
    assert exact < 1e-12
    assert max(gaps) > 1e-9  # a bound of zero, or the bound of the fine rule, would have failed


@pytest.mark.usefixtures("fresh_tables")
def test_a_bound_of_zero_is_caught(monkeypatch):
    spoil(monkeypatch, "FINEST", 1.5)
    monkeypatch.setattr(gumbel, "aliasing", lambda step: (0.0, 0.0, 0.0, 0.0))
    with pytest.raises(AssertionError):
        check([0.1, -0.2, 0.5], [0.0, 0.0, 0.0], [1.0, 0.0, -1.0])


def test_torch_is_the_same():
    pytest.importorskip("torch")
    backend = backend_from_name("torch")
    mu, v, w = random_case(6, B=12)
    mu[2, 1], v[3], v[4] = math.nan, 0.0, 1e12
    ours = gumbel_moments(mu, v, w)
    theirs = gumbel_moments(backend.asarray(mu), backend.asarray(v), backend.asarray(w))
    for name in ("value", "gradient", "hessian"):
        assert np.allclose(getattr(ours, name), to_numpy(getattr(theirs, name)), rtol=0, atol=1e-13)
    assert np.allclose(ours.errors, to_numpy(theirs.errors), rtol=1e-3, atol=0.0)
