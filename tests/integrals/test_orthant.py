import itertools
import math

import numpy as np
import pytest
from flint import acb, arb, ctx
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import owens_t

from gpcert.integrals.sectors import (
    GAUSS_LEGENDRE,
    bivariate_orthant,
    owen_t,
    slepian_bounds,
)
from gpcert.numerics.arrays import to_numpy
from gpcert.numerics.rounding import U
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import BITS

END = 16.0
"""The references leave out what lies beyond: less than 1e-50."""


def cdf(z):
    return (-z / acb(2).sqrt()).erfc() / 2


def density(z):
    return (-z * z / 2).exp() / (2 * acb.pi()).sqrt()


def orthant_reference(h, k, rho):
    """`Phi_2` by conditioning on the first variable; cut where the condition turns."""
    sine = (1 - arb(rho) ** 2).sqrt()
    if h <= -END:
        return arb(0, 1e-50)
    turn = k / rho if rho != 0.0 else math.inf
    last = float(min(h, END))
    ends = [-END, turn, last] if -END < turn < last else [-END, last]

    def integrand(x, _analytic):
        return density(x) * cdf((arb(k) - arb(rho) * x) / sine)

    total = arb(0, 1e-50)
    for a, b in itertools.pairwise(ends):
        total += acb.integral(integrand, a, b, rel_tol=1e-25, abs_tol=1e-25).real
    assert total.rad() < 1e-20
    return total


def exact_orthant(h, k, rho):
    """The certified pair for scalars that are exact floats."""
    sine = np.sqrt((1.0 - rho) * (1.0 + rho))
    value, error = bivariate_orthant(*(np.array([x]) for x in (h, k, rho, sine)))
    return float(value[0]), float(error[0])


scores = st.one_of(
    st.floats(-8.0, 8.0), st.floats(-1e-3, 1e-3), st.sampled_from([0.0, -0.0, 1e-300, 40.0, -40.0])
)
correlations = st.one_of(
    st.floats(-0.9999, 0.9999),
    st.floats(-15.9, -1.0).map(lambda e: 1.0 - 10.0**e),
    st.floats(-15.9, -1.0).map(lambda e: 10.0**e - 1.0),
)


def test_the_rule_is_rounded_correctly():
    with ctx.workprec(BITS):
        for i, (node, weight) in enumerate(GAUSS_LEGENDRE):
            x, w = arb.legendre_p_root(16, 15 - i, weight=True)
            assert float(((1 + x) / 2).mid()) == node
            assert float((w / 2).mid()) == weight


@pytest.mark.parametrize("a", [0.0, 1e-300, 1e-3, 0.3, -0.9, 1.0, -1.0])
@pytest.mark.parametrize("h", [0.0, 1e-9, 0.5, -1.7, 3.0, 8.0, 30.0, 1e6])
def test_owen_t_within_16_roundings(h, a):
    value = float(owen_t(np.array([h]), np.array([a]))[0])

    def integrand(x, _analytic):
        return (-(arb(h) ** 2) * (1 + x * x) / 2).exp() / (1 + x * x) / (2 * acb.pi())

    with ctx.workprec(BITS):
        exact = acb.integral(integrand, 0, arb(a), abs_tol=1e-30, rel_tol=1e-30).real
        assert abs(arb(value) - exact) <= arb(16 * U)
    assert value == pytest.approx(owens_t(h, a), abs=1e-15)


@settings(deadline=None, max_examples=examples(300, quick=30))
@given(h=scores, k=scores, rho=correlations)
@example(h=1.0, k=1.0, rho=1.0 - 1e-9)
@example(h=0.1, k=0.1, rho=1.0 - 1e-14)
@example(h=-0.2, k=0.2, rho=1e-14 - 1.0)
@example(h=1.0, k=-1.0, rho=1e-9 - 1.0)
@example(h=0.0, k=0.0, rho=0.5)
@example(h=-1e-300, k=1e-3, rho=-0.999)
@example(h=2.0, k=2.0 * 0.9999, rho=0.9999)
def test_error_covers_the_orthant(h, k, rho):
    value, error = exact_orthant(h, k, rho)
    with ctx.workprec(BITS):
        assert not abs(arb(value) - orthant_reference(h, k, rho)) > arb(error)
    if abs(rho) <= 0.9999:
        assert error < 1e-11
    assert error < 2e-7


@settings(deadline=None, max_examples=examples(100, quick=10))
@given(h=st.floats(-4.0, 4.0), gap=st.floats(-20.0, -1.0), rho=correlations)
def test_the_error_is_of_the_size_of_rounding(h, gap, rho):
    # a wrong branch or sign shows far above it, also where the scores nearly agree or cancel
    for k in (h + 10.0**gap, rho * h + 10.0**gap, -h - 10.0**gap):
        value, _ = exact_orthant(h, k, rho)
        sine = math.sqrt((1.0 - rho) * (1.0 + rho))
        with ctx.workprec(BITS):
            far = abs(arb(value) - orthant_reference(h, k, rho))
            assert float(far.mid()) <= max(64.0 * U / max(sine, 2.0**-21), 0.26 * sine)


def test_limits_of_the_correlation(backend):
    h, k = backend.asarray([0.3, -1.0, 2.0]), backend.asarray([0.5, 1.5, -40.0])
    zero, one = backend.asarray([0.0] * 3), backend.asarray([1.0] * 3)
    value, error = map(to_numpy, bivariate_orthant(h, k, one, zero))
    left, right = (np.array([float(cdf(acb(float(x))).real) for x in y]) for y in (h, k))
    np.testing.assert_allclose(value, np.minimum(left, right), rtol=0, atol=1e-15)
    assert np.all(error < 1e-13)
    value, error = map(to_numpy, bivariate_orthant(h, k, -one, zero))
    np.testing.assert_allclose(value, np.maximum(left + right - 1.0, 0.0), rtol=0, atol=1e-15)


def test_infinite_scores(backend):
    h = backend.asarray([math.inf, -math.inf, math.inf])
    k = backend.asarray([0.7, 0.7, math.inf])
    half, sine = backend.asarray([0.5] * 3), backend.asarray([math.sqrt(0.75)] * 3)
    value, error = map(to_numpy, bivariate_orthant(h, k, half, sine))
    expected = [float(cdf(acb(0.7)).real), 0.0, 1.0]
    assert np.all(np.abs(value - expected) <= error)


def test_nan_stays_nan():
    one = np.array([0.5])
    assert np.isnan(bivariate_orthant(np.array([np.nan]), one, one, one)[0][0])
    assert np.isnan(slepian_bounds(np.array([[0.0, np.nan]]), np.zeros((1, 2)), one, one)[0][0])
    assert np.isnan(slepian_bounds(np.zeros((1, 2)), np.zeros((1, 2)), one, np.array([np.nan]))[1])


@settings(deadline=None, max_examples=examples(120))
@given(
    h=st.tuples(scores, scores),
    widths=st.tuples(st.floats(0.0, 2.0), st.floats(0.0, 2.0)),
    r=st.tuples(correlations, correlations),
    where=st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0)),
)
def test_slepian_bounds_hold(h, widths, r, where):
    low, high = np.array([h]), np.array([h]) + np.array([widths])
    r_low, r_high = np.array([min(r)]), np.array([max(r)])
    lower, upper = slepian_bounds(low, high, r_low, r_high)
    inner = [
        np.clip(a + t * (b - a), a, b) for a, b, t in zip(low[0], high[0], where, strict=False)
    ]
    rho = float(np.clip(r_low + where[2] * (r_high - r_low), r_low, r_high)[0])
    assert 0.0 <= lower[0] <= upper[0] <= 1.0
    with ctx.workprec(BITS):
        exact = orthant_reference(float(inner[0]), float(inner[1]), rho)
        assert not arb(float(lower[0])) > exact
        assert not arb(float(upper[0])) < exact


@settings(deadline=None, max_examples=examples(100))
@given(h=st.tuples(scores, scores), rho=correlations)
def test_slepian_bounds_of_a_point_are_tight(h, rho):
    lower, upper = slepian_bounds(np.array([h]), np.array([h]), np.array([rho]), np.array([rho]))
    assert upper[0] - lower[0] < (1e-11 if abs(rho) < 0.9999 else 3e-7)


def test_slepian_grows_with_every_argument():
    rng = np.random.default_rng(0)
    h, step = rng.normal(size=(2000, 2)) * 2.0, np.abs(rng.normal(size=(2000, 2)))
    r = np.sort(rng.uniform(-1.0, 1.0, (2000, 2)), axis=1)
    first = slepian_bounds(h, h, r[:, 0], r[:, 0])
    for other in (
        slepian_bounds(h + step, h + step, r[:, 0], r[:, 0]),
        slepian_bounds(h, h, *2 * [r[:, 1]]),
    ):
        assert np.all(other[1] >= first[0])
        assert np.mean(other[0] > first[1]) > 0.9


def test_slepian_at_the_whole_range_is_frechet(backend):
    h, one = backend.asarray([[0.4, -0.3]]), backend.asarray([1.0])
    lower, upper = slepian_bounds(h, h, -one, one)
    left, right = (float(cdf(acb(x)).real) for x in (0.4, -0.3))
    assert float(lower[0]) == pytest.approx(max(left + right - 1.0, 0.0), abs=1e-13)
    assert float(upper[0]) == pytest.approx(min(left, right), abs=1e-13)


def test_backends_agree(backend):
    rng = np.random.default_rng(3)
    h = rng.normal(size=(500, 2)) * 3.0
    r = np.sort(rng.uniform(-1.0, 1.0, (500, 2)), axis=1)
    host = (h, h + 0.1, r[:, 0], r[:, 1])
    for here, there in zip(
        slepian_bounds(*map(backend.asarray, host)), slepian_bounds(*host), strict=True
    ):
        np.testing.assert_allclose(to_numpy(here), there, rtol=0, atol=1e-13)
