"""The multinomial probit of two and three classes: sectors of the plane, within their errors."""

import itertools
import math

import numpy as np
import pytest
from flint import acb, arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.errors import InputError
from gpcert.integrals.sectors import DENSITY_ULPS, DERIVATIVE_BOUNDS, normal_derivatives
from gpcert.likelihoods.multinomial_probit import MultinomialProbit
from gpcert.numerics.arrays import to_numpy
from gpcert.numerics.rounding import U
from gpcert.testing.arb_reference import normal_cdf
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import BITS
from tests.likelihoods.normal_references import DIFFERENCES, END, cdf, density, hermite, integral


def three_class_reference(a, L, i, j):
    """Derivative `d^i/dz_1^i d^j/dz_2^j` of the three probabilities, by conditioning on z_1."""
    a1, a2 = arb(float(a[0])), arb(float(a[1]))
    l00, l10, l11 = (arb(float(x)) for x in (L[0, 0], L[1, 0], L[1, 1]))
    edge = max(min(-a1 / l00, END), -END)

    def shifted(score):
        # (-1)^j Phi^(j)
        return lambda u, _: (
            hermite(i, u)
            * density(u)
            * (cdf(score(u)) if j == 0 else -hermite(j - 1, score(u)) * density(score(u)))
        )

    zeroth = integral(shifted(lambda u: -(a2 + l10 * u) / l11), -END, edge)
    first = integral(shifted(lambda u: (a1 - a2 + (l00 - l10) * u) / l11), edge, END)
    total = arb(1) if i + j == 0 else arb(0)
    return zeroth, first, total - zeroth - first


@st.composite
def three_classes(draw):
    """`(a, L)`: ordinary, thin, nearly equal and dominated classes."""
    kind = draw(st.sampled_from(["ordinary", "near +1", "near -1", "classes alike"]))
    scale = 10.0 ** draw(st.floats(-1.0, 2.0))
    turn = draw(st.floats(-2.0, 2.0))
    thin = {"ordinary": 1.0, "classes alike": 10.0 ** draw(st.floats(-6.0, 0.0))}.get(kind)
    if kind == "near +1":
        turn, thin = 1.0 + 0.1 * turn, 10.0 ** draw(st.floats(-6.0, 0.0))
    if kind == "near -1":
        turn, thin = -3.0, 10.0 ** draw(st.floats(-2.0, 0.0))
    L = scale * np.array([[1.0, 0.0], [1.0 if kind == "classes alike" else turn, thin]])
    size = draw(st.sampled_from([0.0, 1e-12, 0.3, 1.0, 6.0, 300.0]))
    a = scale * size * np.array([draw(st.floats(-1.0, 1.0)), draw(st.floats(-1.0, 1.0))])
    return a, L


@settings(deadline=None, max_examples=examples(80, quick=6))
@given(case=three_classes())
def test_three_classes_within_their_errors(case):
    a, L = case
    moments = MultinomialProbit().moments(a[None], L[None], 4)
    tensors = (moments.value, *moments.derivatives)
    assert np.all(np.isfinite(moments.errors))
    assert abs(moments.value.sum() - 1.0) <= 3.0 * moments.errors[0, 0]
    with ctx.workprec(BITS):
        for k, tensor in enumerate(tensors):
            assert tensor.shape == (1, 3, *([2] * k))
            assert moments.errors[0, k] < 3e-7
            for ones in range(k + 1):
                exact = three_class_reference(a, L, k - ones, ones)
                for c in range(3):
                    computed = arb(float(tensor[(0, c, *([0] * (k - ones)), *([1] * ones))]))
                    gap = abs(computed - exact[c])
                    # basis vectors have length one: the form's error bounds the entry's
                    assert not gap > arb(float(moments.errors[0, k]))
                    assert float(gap.mid()) <= 0.1 * moments.errors[0, k]


@settings(deadline=None, max_examples=examples(30, quick=3))
@given(case=three_classes(), angles=st.lists(st.floats(0.0, 7.0), min_size=4, max_size=4))
def test_forms_on_unit_vectors(case, angles):
    a, L = case
    moments = MultinomialProbit().moments(a[None], L[None], 4)
    for k, tensor in enumerate(moments.derivatives, start=1):
        # the same form from reference entries, on vectors that differ
        exact = np.zeros((3, *([2] * k)))
        with ctx.workprec(BITS):
            found = [three_class_reference(a, L, k - ones, ones) for ones in range(k + 1)]
        for index in itertools.product((0, 1), repeat=k):
            exact[(slice(None), *index)] = [float(x.mid()) for x in found[sum(index)]]
        difference = tensor[0] - exact
        for angle in angles[:k]:
            difference = difference @ np.array([math.cos(angle), math.sin(angle)])
        assert np.all(np.abs(difference) <= moments.errors[0, k] + 16.0 * U)


def test_tensors_are_symmetric_and_add_up():
    rng = np.random.default_rng(0)
    a, L = rng.normal(size=(200, 2)), np.tril(rng.normal(size=(200, 2, 2)))
    L[:, [0, 1], [0, 1]] = np.exp(rng.normal(size=(200, 2)))
    moments = MultinomialProbit().moments(a, L, 4)
    for k, tensor in enumerate(moments.derivatives, start=1):
        for axes in itertools.permutations(range(k)):
            moved = np.transpose(tensor, (0, 1, *(2 + i for i in axes)))
            assert np.array_equal(moved, tensor)
        slack = 3.0 * moments.errors[:, k].reshape(-1, *([1] * k))
        assert np.all(np.abs(tensor.sum(axis=1)) <= slack)
        assert np.all(np.abs(tensor) <= DERIVATIVE_BOUNDS[k] + 1e-12)


def test_equal_and_dominating_classes():
    L = np.linalg.cholesky(DIFFERENCES @ DIFFERENCES.T)[None]
    equal = MultinomialProbit().moments(np.zeros((1, 2)), L, 0)
    np.testing.assert_allclose(equal.value, 1.0 / 3.0, rtol=0, atol=1e-14)
    for c, a in enumerate([[-1e6, -1e6], [1e6, 0.0], [0.0, 1e100]]):
        one = MultinomialProbit().moments(np.array([a]), L, 4)
        np.testing.assert_allclose(one.value[0], np.eye(3)[c], rtol=0, atol=1e-14)
        assert all(np.all(np.abs(t) < 1e-300) for t in one.derivatives)
        assert np.all(np.isfinite(one.errors))


def test_a_vanishing_class_falls_back_to_bounds_that_always_hold():
    L = np.array([[[1.0, 0.0], [1.0, 1e-9]]])
    moments = MultinomialProbit().moments(np.array([[0.3, 0.1]]), L, 4)
    # d = (0.3 + z, 0.1 + z): the second class is the largest where z > -0.3, else the first
    expected = [float(normal_cdf(arb(x))) for x in (-0.3, 0.3)]
    assert np.all(np.abs(moments.value[0] - [*expected, 0.0]) <= moments.errors[0, 0])
    assert moments.errors[0, 0] < 1e-8
    assert np.all(moments.errors[0] <= np.array(DERIVATIVE_BOUNDS))
    assert all(np.all(np.isfinite(t)) for t in moments.derivatives)


@settings(deadline=None, max_examples=examples(60))
@given(a=st.floats(-50.0, 50.0), scale=st.floats(1e-3, 1e3))
def test_two_classes_within_their_errors(a, scale):
    moments = MultinomialProbit().moments(np.array([[a]]), np.array([[[scale]]]), 4)
    with ctx.workprec(BITS):
        h = arb(a) / arb(scale)
        exact = [normal_cdf(h)]
        exact += [(-1) ** i * hermite(i, h) * density(acb(h)).real for i in range(4)]
        for k, tensor in enumerate((moments.value, *moments.derivatives)):
            assert tensor.shape == (1, 2, *([1] * k))
            flipped = 1 - exact[0] if k == 0 else -exact[k]
            error = arb(float(moments.errors[0, k]))
            assert abs(arb(float(tensor.reshape(2)[1])) - exact[k]) <= error
            assert abs(arb(float(tensor.reshape(2)[0])) - flipped) <= error
    assert np.all(moments.errors < 1e-14)


def test_derivatives_of_the_density_err_less_than_assumed():
    x = np.concatenate([np.linspace(-9.0, 9.0, 1001), [64.0, -64.0, 1e8]])
    computed = normal_derivatives(x, 4)
    with ctx.workprec(BITS):
        for i, point in enumerate(x):
            for side in (1 - arb(8 * U), 1 + arb(8 * U)):
                z = arb(float(point)) * side
                for j in range(4):
                    exact = (-1) ** j * hermite(j, z) * density(acb(z)).real
                    assert abs(arb(float(computed[j][i])) - exact) < arb(DENSITY_ULPS * U)


def test_derivative_bounds():
    z = np.linspace(-15.0, 15.0, 300001)
    weight = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) * (z[1] - z[0])
    for k in range(1, 5):
        half = 0.5 * float(np.sum(np.abs(hermite(k, z)) * weight))
        assert half <= DERIVATIVE_BOUNDS[k] <= half + 1e-4


def monte_carlo(mean, covariance, noise):
    rng = np.random.default_rng(0)
    root = np.linalg.cholesky(covariance + noise * np.eye(len(mean)))
    drawn = mean + rng.normal(size=(400000, len(mean))) @ root.T
    return np.bincount(drawn.argmax(axis=1), minlength=len(mean)) / 400000


@pytest.mark.parametrize("classes", [2, 3, 4, 6])
def test_probabilities(classes):
    rng = np.random.default_rng(classes)
    mean = rng.normal(size=(3, classes))
    root = rng.normal(size=(3, classes, classes))
    covariance = root @ np.swapaxes(root, 1, 2)
    found = MultinomialProbit(0.5).probabilities(mean, covariance)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    for i in range(3):
        np.testing.assert_allclose(
            found[i], monte_carlo(mean[i], covariance[i], 0.5), rtol=0, atol=4e-3
        )


def test_probabilities_of_three_classes_are_the_moments():
    rng = np.random.default_rng(9)
    mean, root = rng.normal(size=(100, 3)), rng.normal(size=(100, 3, 3))
    mean[:3] = [[0.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]
    covariance = root @ np.swapaxes(root, 1, 2)
    likelihood = MultinomialProbit(0.3)
    L = np.linalg.cholesky(DIFFERENCES @ (covariance + 0.3 * np.eye(3)) @ DIFFERENCES.T)
    moments = likelihood.moments(mean @ DIFFERENCES.T, L, 0)
    found = likelihood.probabilities(mean, covariance)
    np.testing.assert_allclose(found, moments.value, rtol=0, atol=1e-12)


def test_backends_agree(backend):
    rng = np.random.default_rng(2)
    a, L = rng.normal(size=(60, 2)), np.tril(rng.normal(size=(60, 2, 2)))
    L[:, [0, 1], [0, 1]] = np.exp(rng.normal(size=(60, 2)))
    likelihood = MultinomialProbit()
    host = likelihood.moments(a, L, 4)
    here = likelihood.moments(backend.asarray(a), backend.asarray(L), 4)
    single = likelihood.moments(backend.asarray(a[:, :1]), backend.asarray(L[:, :1, :1]), 4)
    np.testing.assert_allclose(to_numpy(single.value).sum(axis=1), 1.0, rtol=0, atol=1e-15)
    for x, y in zip((host.value, *host.derivatives), (here.value, *here.derivatives), strict=True):
        np.testing.assert_allclose(to_numpy(y), x, rtol=0, atol=1e-13)
    np.testing.assert_allclose(to_numpy(here.errors), host.errors, rtol=1e-6, atol=1e-15)
    mu, v, w = rng.normal(size=(7, 5)), np.exp(rng.normal(size=(7, 5))), rng.normal(size=(7, 5))
    host = likelihood.independent_moments(mu, v, w)
    here = likelihood.independent_moments(*map(backend.asarray, (mu, v, w)))
    for name in ("value", "gradient", "hessian", "errors"):
        np.testing.assert_allclose(
            to_numpy(getattr(here, name)), getattr(host, name), rtol=1e-6, atol=1e-12
        )


@pytest.mark.parametrize("classes", [2, 3])
def test_single_precision_is_read_as_float64(backend, classes):
    xp, rng, n = backend.xp, np.random.default_rng(7), classes - 1
    factor = np.tril(rng.normal(size=(5, n, n))) + 3.0 * np.eye(n)
    law = (rng.normal(size=(5, n)), factor, *np.exp(rng.normal(size=(2, 5, classes))))
    narrow = [xp.astype(backend.asarray(x), xp.float32) for x in law]
    wide = [xp.astype(x, xp.float64) for x in narrow]
    weights = backend.asarray(np.eye(classes)[1] * np.ones((5, 1)))
    for exact, found in [
        [MultinomialProbit().moments(a, L, 2) for a, L, *_ in (wide, narrow)],
        [MultinomialProbit().independent_moments(m, v, weights) for *_, m, v in (wide, narrow)],
    ]:
        for name in ("value", "errors"):
            x, y = (to_numpy(getattr(moments, name)) for moments in (exact, found))
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("noise", [0.0, -1.0, math.nan, math.inf])
def test_noise_must_be_positive(noise):
    with pytest.raises(InputError, match="noise"):
        MultinomialProbit(noise)


def test_wrong_arguments_raise():
    likelihood, one = MultinomialProbit(), np.ones((1, 2))
    eye = np.eye(2)[None]
    with pytest.raises(InputError, match="2 to 3 classes"):
        likelihood.moments(np.zeros((1, 3)), np.eye(3)[None], 2)
    for a, L, order in [
        (np.zeros((1, 2)), np.eye(3)[None], 2),
        (one * np.nan, eye, 2),
        (one, eye * np.nan, 2),
        (one, eye * 0.0, 2),
        (one, eye, 5),
    ]:
        with pytest.raises(InputError):
            likelihood.moments(a, L, order)
    for mu, v, w in [(one * np.inf, one, one), (one, -one, one), (one, one, one * np.nan)]:
        with pytest.raises(InputError):
            likelihood.independent_moments(mu, v, w)
    with pytest.raises(InputError):
        likelihood.independent_moments(one[:, :1], one[:, :1], one[:, :1])
