import math

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpcert.integrals.special import ERF_ULPS, erf, normal_cdf, normal_cdf_bounds, normal_pdf
from gpcert.numerics.arrays import backend_from_name, to_numpy
from gpcert.numerics.rounding import NORMAL_CDF_ULPS, TINY, U
from gpcert.testing import arb_reference as reference
from gpcert.testing.kernel_references import BITS


@pytest.fixture(params=["numpy", "torch"])
def backend(request):
    if request.param == "torch":
        pytest.importorskip("torch")
    return backend_from_name(request.param)


def grid():
    rng = np.random.default_rng(0)
    dense = np.concatenate([rng.uniform(-39.0, 9.0, 1500), rng.normal(size=1000)])
    small = 10.0 ** rng.uniform(-300.0, 0.0, 200)
    return np.concatenate([dense, small, -small, [0.0, -37.5, -37.7, -38.5, -1e308, 1e308]])


def test_normal_cdf_within_the_stated_error(backend):
    z = grid()
    values = to_numpy(normal_cdf(backend.asarray(z)))
    lower, upper = map(to_numpy, normal_cdf_bounds(backend.asarray(z)))
    assert np.all((lower >= 0.0) & (upper <= 1.0))
    with ctx.workprec(BITS):
        for i, point in enumerate(z):
            exact = reference.normal_cdf(arb(float(point)))
            allowed = (NORMAL_CDF_ULPS + 4.0 * min(point, 0.0) ** 2) * U if point > -1e3 else 0.0
            assert abs(arb(float(values[i])) - exact) <= arb(allowed) * exact + arb(TINY)
            assert not arb(float(lower[i])) > exact
            assert not arb(float(upper[i])) < exact


def test_erf_within_the_stated_error(backend):
    y = grid()[np.abs(grid()) < 10.0]
    values = to_numpy(erf(backend.asarray(y)))
    with ctx.workprec(BITS):
        worst = max(
            float(
                abs(arb(float(values[i])) - arb(float(point)).erf()) / abs(arb(float(point)).erf())
            )
            for i, point in enumerate(y)
            if point != 0.0
        )
    assert worst <= ERF_ULPS * U


@settings(deadline=None)
@given(z=st.floats(-50.0, 50.0))
@example(z=-38.6)
@example(z=-0.0)
def test_normal_cdf_bounds_contain_phi(z):
    lower, upper = normal_cdf_bounds(np.array([z]))
    with ctx.workprec(BITS):
        exact = reference.normal_cdf(arb(z))
        assert not arb(float(lower[0])) > exact
        assert not arb(float(upper[0])) < exact
    assert upper[0] - lower[0] < 1e-13


def test_far_left_lower_bound_is_zero(backend):
    lower, upper = normal_cdf_bounds(backend.asarray([-38.0, -39.0, -1e300]))
    assert np.all(to_numpy(lower) == 0.0)
    assert np.all(to_numpy(upper) < 1e-290)


def test_normal_pdf(backend):
    z = backend.asarray([0.0, 1.0, -60.0])
    expected = [1.0 / math.sqrt(2.0 * math.pi), math.exp(-0.5) / math.sqrt(2.0 * math.pi), 0.0]
    np.testing.assert_allclose(to_numpy(normal_pdf(z)), expected, rtol=1e-15)
