"""Which of many independent Gaussians is the largest: moments within their errors."""

import itertools

import numpy as np
from flint import acb, arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.integrals.independent_maximum import REACH, TAIL, aliasing_error, hessian_of, node_sums
from gpcert.likelihoods.multinomial_probit import MultinomialProbit
from gpcert.testing.effort import examples, variants
from tests.likelihoods.normal_references import DIFFERENCES, END, cdf, density, hermite, integral


def independent_reference(mu, s, c, orders):
    """The derivative of pi_c of the given orders in the means."""

    def integrand(t, _analytic):
        value = acb(1)
        for k, order in enumerate(orders):
            x = (t - mu[k]) / s[k]
            if k == c:
                value *= hermite(order, x) * density(x) / s[k] ** (order + 1)
            elif order == 0:
                value *= cdf(x)
            else:
                value *= -hermite(order - 1, x) * density(x) / s[k] ** order
        return value

    low, high = mu[c] - END * s[c], mu[c] + END * s[c]
    inner = [x for x in mu if low < x < high]
    ends = [low, *sorted(inner, key=float), high]
    return sum((integral(integrand, p, q) for p, q in itertools.pairwise(ends)), arb(0))


@st.composite
def independent_cases(draw):
    classes = draw(st.integers(2, 4))
    spread = draw(st.sampled_from([0.0, 0.1, 3.0, 100.0]))
    mu = [spread * draw(st.floats(-1.0, 1.0)) for _ in range(classes)]
    v = [10.0 ** draw(st.floats(-3.0, 2.0)) for _ in range(classes)]
    weights = [draw(st.sampled_from([0.0, 1.0, -1.0, 0.37])) for _ in range(classes)]
    return draw(st.sampled_from([0.25, 1.0])), mu, v, weights


@settings(deadline=None, max_examples=examples(12, quick=3))
@given(case=independent_cases())
def test_independent_moments_within_their_errors(case):
    noise, mu, v, weights = case
    found = MultinomialProbit(noise).independent_moments(*(np.array([x]) for x in (mu, v, weights)))
    classes = range(len(mu))
    entries = [(0, found.value[0], ())]
    entries += [(1, found.gradient[0, j], (j,)) for j in classes]
    entries += [(2, found.hessian[0, i, j], (i, j)) for i in classes for j in classes if i <= j]
    assert np.all(found.errors < 1e-10)
    assert np.array_equal(found.hessian, np.swapaxes(found.hessian, 1, 2))
    with ctx.workprec(128):
        means = [arb(x) for x in mu]
        scales = [(arb(x) + arb(noise)).sqrt() for x in v]
        for order, computed, which in entries:
            exact = arb(0)
            for c in classes:
                if weights[c] != 0.0:
                    orders = [which.count(k) for k in classes]
                    exact += arb(weights[c]) * independent_reference(means, scales, c, orders)
            gap = abs(arb(float(computed)) - exact)
            assert not gap > arb(float(found.errors[0, order]))
            assert float(gap.mid()) <= 0.1 * found.errors[0, order] + 1e-300


def test_independent_agrees_with_the_sectors():
    rng = np.random.default_rng(5)
    mu, v = 2.0 * rng.normal(size=(50, 3)), np.exp(rng.normal(size=(50, 3)))
    likelihood = MultinomialProbit(0.7)
    noisy = v[:, :, None] * np.eye(3) + 0.7 * np.eye(3)
    L = np.linalg.cholesky(DIFFERENCES @ noisy @ DIFFERENCES.T)
    moments = likelihood.moments(mu @ DIFFERENCES.T, L, 0)
    for c in range(3):
        found = likelihood.independent_moments(mu, v, np.eye(3)[c : c + 1])
        np.testing.assert_allclose(found.value, moments.value[:, c], rtol=0, atol=1e-12)


def test_independent_derivatives_are_invariant_to_a_shift_and_to_equal_weights():
    rng = np.random.default_rng(6)
    mu, v = rng.normal(size=(20, 8)), np.exp(rng.normal(size=(20, 8)))
    found = MultinomialProbit().independent_moments(mu, v, rng.normal(size=(20, 8)))
    assert np.all(np.abs(found.gradient.sum(axis=1)) <= 8.0 * found.errors[:, 1])
    assert np.all(np.abs(found.hessian.sum(axis=2)) <= 8.0 * found.errors[:, 2:])
    flat = MultinomialProbit().independent_moments(mu, v, np.ones((20, 8)))
    assert np.all(np.abs(flat.value - 1.0) <= flat.errors[:, 0])
    assert np.all(np.abs(flat.gradient) <= flat.errors[:, 1:2])


@variants("scales", [[1.0, 1.0, 1.0], [1.0, 1.5, 3.0], [1.0, 1.0]], quick=2)
def test_error_of_coarse_steps(scales):
    # with steps of s_min the error of the rule stands far above rounding; the bound covers it
    rng, classes, count = np.random.default_rng(4), len(scales), examples(300, quick=100)
    s = np.tile(np.array(scales), (count, 1))
    mu = rng.uniform(-3.0, 0.0, (count, classes))
    weights = np.eye(classes)[rng.integers(classes, size=count)]
    step = np.ones(count)
    coarse = node_sums((mu, s, weights), step, np.full(count, -60.0), 120)
    fine = node_sums((mu, s, weights), step / 16.0, np.full(count, -960.0), 1920)
    bound = 2.0 * aliasing_error(s, step, np.ones(count))
    gaps = [
        np.abs(coarse.value - fine.value),
        np.abs(coarse.gradient - fine.gradient).max(axis=1),
        np.abs(hessian_of(coarse, weights) - hessian_of(fine, weights)).max(axis=(1, 2)),
    ]
    for gap in gaps:
        assert np.all(gap <= bound)
        assert gap.max() > 1e-10
    assert np.all(aliasing_error(s, step / 8.0, np.ones(count)) < 1e-16)


def test_independent_extremes():
    likelihood = MultinomialProbit()
    # a huge gap, and scales too far apart for the nodes: bounds that always hold
    far = likelihood.independent_moments(
        *(np.array([x]) for x in ([0.0, -1e100], [1.0, 1.0], [1.0, 0.0]))
    )
    assert abs(far.value[0] - 1.0) <= far.errors[0, 0] < 1e-12
    assert np.all(np.abs(far.gradient) <= far.errors[0, 1])
    apart = likelihood.independent_moments(
        *(np.array([x]) for x in ([0.0, 0.0], [1e12, 0.0], [1.0, 0.0]))
    )
    assert abs(apart.value[0] - 0.5) <= apart.errors[0, 0] <= 0.6
    assert np.all(np.isfinite(apart.errors))
    # one such cell does not spoil the others of its batch
    mixed = likelihood.independent_moments(
        *(np.array(x) for x in ([[0.0, 0.0]] * 2, [[1e12, 0.0], [1.0, 0.0]], [[1.0, 0.0]] * 2))
    )
    assert abs(mixed.value[1] - 0.5) <= mixed.errors[1, 0] < 1e-12
    assert abs(mixed.value[0] - 0.5) <= mixed.errors[0, 0] <= 0.6
    assert 1.2 * REACH * float(density(acb(REACH - 0.125)).real) < TAIL
