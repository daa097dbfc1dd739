"""Phi and the mean excess in the tail, against hypergeometric functions at 400 bits."""

import math

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.integrals.normal_tails import (
    FAR,
    excess_bounds,
    log_bounds,
    log_excess_bounds,
    log_normal_cdf,
    log_normal_cdf_bounds,
    mills_ratios,
    unit_excess_bounds,
)
from gpcert.numerics.arrays import to_numpy
from gpcert.testing.effort import backend_or_skip, examples
from tests.integrals.normal_tail_references import log_cdf, log_excess, log_psi

PRECISION = 400

scores = st.one_of(
    st.floats(-1e6, 40.0),
    st.floats(-40.0, 40.0),
    st.floats(-12.0, 2.0),
    st.sampled_from([0.0, -FAR, math.nextafter(-FAR, -math.inf), -1e6, 38.0, 5e-324, -1e-300]),
)
scales = st.floats(-12.0, 6.0).map(lambda power: 10.0**power)
backends = pytest.mark.parametrize("backend_name", ["numpy", "torch"])


def ends(function, backend_name, *values):
    backend = backend_or_skip(backend_name)
    found = function(*(backend.asarray([value]) for value in values))
    return [float(to_numpy(end)[0]) for end in found]


def check(lower, upper, real):
    """No tolerance on either side."""
    assert real.is_finite()
    assert lower <= upper
    assert not arb(lower) > real
    assert not arb(upper) < real


@backends
@settings(deadline=None, max_examples=examples(200, quick=60))
@given(z=scores)
def test_log_cdf(backend_name, z):
    lower, upper = ends(log_normal_cdf_bounds, backend_name, z)
    with ctx.workprec(PRECISION):
        check(lower, upper, log_cdf(arb(z)))
    assert upper - lower <= 1e-12 * max(1.0, abs(lower))


@backends
@settings(deadline=None, max_examples=examples(200, quick=60))
@given(z=scores.map(abs))
def test_unit_excess(backend_name, z):
    lower, upper = ends(unit_excess_bounds, backend_name, z)
    with ctx.workprec(PRECISION):
        check(lower, upper, log_psi(-arb(z)).exp())
    if z < 35.0:
        assert upper - lower <= 2e-11 * lower


@backends
@settings(deadline=None, max_examples=examples(300, quick=80))
@given(z=scores, s=scales, u=st.one_of(st.none(), st.floats(-1e6, 1e6)))
def test_excess_and_its_logarithm(backend_name, z, s, u):
    v, u = s * s, s * z if u is None else u
    lower, upper = ends(excess_bounds, backend_name, u, v)
    log_lower, log_upper = ends(log_excess_bounds, backend_name, u, v)
    with ctx.workprec(PRECISION):
        real = log_excess(arb(u), arb(v))
        check(lower, upper, real.exp())
        check(log_lower, log_upper, real)
    assert log_upper - log_lower <= 1e-11 * max(1.0, abs(log_lower))
    if real > -600:  # above 1e-260
        assert upper - lower <= 2e-11 * upper
    if real > -690:  # 1e-300
        assert lower > 0.0


@backends
@pytest.mark.parametrize("u", [-3.0, 0.0, 2.5])
def test_without_variance(backend_name, u):
    assert ends(excess_bounds, backend_name, u, 0.0) == [max(u, 0.0)] * 2
    lower, upper = ends(log_excess_bounds, backend_name, u, 0.0)
    if u > 0:
        assert lower <= math.log(u) <= upper
        assert upper - lower < 1e-14
    else:
        assert lower == upper == -math.inf


def test_infinite_scores_and_logarithms():
    lower, upper = log_normal_cdf_bounds(np.array([-math.inf, math.inf, -1e200]))
    assert lower[0] == -math.inf
    assert upper[0] < -1e300
    assert -1e-300 < lower[1] <= upper[1] <= 0.0
    assert lower[2] == -math.inf
    assert upper[2] < -1e299
    low, high = log_bounds(np.array([0.0, -1.0, 1.0]), np.array([1.0, math.inf, 1.0]))
    assert low.tolist()[:2] == [-math.inf, -math.inf]
    assert high[1] == math.inf
    assert low[2] <= 0.0 <= high[2]


@backends
def test_plain_ratios(backend_name):
    backend = backend_or_skip(backend_name)
    z = np.array([-1e6, -2e3, -900.0, -40.0, -10.5, -9.0, -1.5, -0.5, 0.0, 3.0, 20.0])
    first, second = map(to_numpy, mills_ratios(backend.asarray(z)))
    logs = to_numpy(log_normal_cdf(backend.asarray(z)))
    with ctx.workprec(PRECISION):
        for k, score in enumerate(z):
            mass, excess = log_cdf(arb(score)), log_psi(arb(score))
            density = -(arb(score) ** 2) / 2 - (2 * arb.pi()).log() / 2
            assert first[k] == pytest.approx(float((density - mass).exp()), rel=1e-9, abs=1e-300)
            assert second[k] == pytest.approx(float((mass - excess).exp()), rel=1e-9)
            assert logs[k] == pytest.approx(float(mass), rel=1e-9, abs=1e-300)


def test_the_series_is_as_near_as_it_says():
    # Statement 8.11: the first omitted term at FAR, and 1.4e-15
    with ctx.workprec(PRECISION):
        omitted = arb(1)
        for factor in range(1, 42, 2):
            omitted *= factor
        assert omitted / arb(FAR) ** 40 < arb(1.4e-15)
