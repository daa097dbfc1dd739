"""Lines under and over the exponential: never on the wrong side, and the best ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpcert.numerics.arrays import backend_from_name, to_numpy
from gpcert.numerics.rounding import ASIN_LOG_ULPS, EXP_ULPS, POW_ULPS, SIN_COS_ULPS, U
from gpcert.paper.lines.kernels import exponential_lines
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import exact, flint

widths = st.sampled_from([0.0, 1e-12, 1e-6, 1e-3, 0.1, 0.5, 1.0, 3.0, 7.0, 30.0, 1e4])
factors = st.sampled_from([1e-150, 1e-3, 0.7, 1.0, 1.5e3, 1e150])


@settings(max_examples=examples(80), deadline=None)
@given(
    center=st.floats(-1.0, 1.0),
    scale=st.sampled_from([1.0, 20.0, 700.0]),
    width=widths,
    factor=factors,
)
def test_sound(center, scale, width, factor):
    """No tolerance, in ball arithmetic, at a grid of points and where the lines may touch."""
    arb = flint().arb
    low = center * scale
    high = min(low + width, 720.0)
    lines = exponential_lines(factor, np.asarray([low]), np.asarray([high]))
    numbers = [float(x[0]) for x in lines]
    assert not any(math.isnan(x) for x in numbers)
    touching = math.log(numbers[0] / factor) if numbers[0] > 0 else low
    for t in np.clip([*np.linspace(low, high, 21), touching, 0.5 * (low + high)], low, high):
        x = arb(float(t))
        value = arb(factor) * x.exp()
        assert not arb(numbers[0]) * x + arb(numbers[1]) > value, f"line under crosses at {t!r}"
        assert not arb(numbers[2]) * x + arb(numbers[3]) < value, f"line over crosses at {t!r}"


@settings(max_examples=examples(40), deadline=None)
@given(center=st.floats(-5.0, 5.0), width=st.sampled_from([1e-3, 0.1, 0.5, 1.0, 3.0, 7.0]))
def test_best(center, width):
    """At the midpoint: the exponential from below, the chord from above."""
    low, high = np.asarray([center]), np.asarray([center + width])
    m = 0.5 * (low + high)
    lines = exponential_lines(2.0, low, high)
    below, above = (float(lines[i][0] * m[0] + lines[i + 1][0]) for i in (0, 2))
    size = 2.0 * math.exp(center + width)
    assert below == pytest.approx(2.0 * math.exp(m[0]), abs=1e-12 * size)
    assert above == pytest.approx(math.exp(low[0]) + math.exp(high[0]), abs=1e-12 * size)


def test_unbounded_and_degenerate_intervals():
    inf = math.inf
    low, high = np.asarray([-inf, 0.0, 0.0, 2.0]), np.asarray([inf, inf, 1e4, 2.0])
    lines = exponential_lines(3.0, low, high)
    assert np.all(np.isfinite([lines.slope_under, lines.slope_over]))
    assert np.all(lines.intercept_under[:3] <= 0.0)
    assert np.all(lines.intercept_over[:3] == inf)
    assert np.all(lines.slope_over[:3] == 0.0)
    for side in (0, 2):
        at = lines[side][3] * 2.0 + lines[side + 1][3]
        assert at == pytest.approx(3.0 * math.exp(2.0))


@settings(max_examples=examples(40), deadline=None)
@given(end=st.floats(-600.0, -1.0), factor=st.floats(0.5, 2.0), length=st.floats(100.0, 300.0))
@example(end=-230.0, factor=0.7, length=220.0)
def test_slopes_that_underflow(end, factor, length):
    """A chord over a long interval, whose slope has lost digits, is still above at both ends."""
    arb = flint().arb
    low = -(10.0**length)
    lines = exponential_lines(factor, np.asarray([low]), np.asarray([end]))
    slope, intercept = float(lines.slope_over[0]), float(lines.intercept_over[0])
    for t in (low, end):
        assert not arb(slope) * t + arb(intercept) < arb(factor) * arb(t).exp()


def test_torch_agrees():
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    low = rng.normal(size=(5, 40)) * 4.0
    high = low + rng.exponential(size=low.shape) * 3.0
    place = backend_from_name("torch")
    there = exponential_lines(1.3, place.asarray(low), place.asarray(high))
    for mine, theirs in zip(exponential_lines(1.3, low, high), there, strict=True):
        np.testing.assert_allclose(mine, to_numpy(theirs), rtol=1e-6, atol=1e-6)


@settings(max_examples=examples(40), deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_assumed_accuracy_of_library_functions(seed):
    """Functions of NumPy and torch within the ulps that `rounding` and `norms` assume."""
    arb = flint().arb
    rng = np.random.default_rng(seed)
    t = rng.normal(size=30) * 10.0 ** rng.uniform(-8, 12, 30)
    near = np.round(rng.normal(size=10) * 1e3) * math.pi  # close to zeros of sin
    unit, positive = np.tanh(t), np.abs(t)
    cases = [
        ("sin", np.concatenate([t, near]), SIN_COS_ULPS),
        ("cos", np.concatenate([t, near + 0.5 * math.pi]), SIN_COS_ULPS),
        ("asin", unit, ASIN_LOG_ULPS),
        ("log", positive, ASIN_LOG_ULPS),
        ("exp", np.clip(t, -700.0, 700.0), EXP_ULPS),
        ("expm1", np.clip(t, -700.0, 700.0), EXP_ULPS),
        ("log1p", positive, EXP_ULPS),
    ]
    power = 1.0 + rng.exponential(size=30) * 2.0
    names = ["numpy"]
    try:
        import torch  # noqa: F401

        names.append("torch")
    except ImportError:
        pass
    for backend in (backend_from_name(name) for name in names):
        for name, at, ulps in cases:
            found = to_numpy(getattr(backend.xp, name)(backend.asarray(at)))
            for x, y in zip(exact(at), found, strict=True):
                value = getattr(x, name)()
                assert not abs(arb(float(y)) - value) > arb(ulps * U) * abs(value), (name, x)
        base, exponent = np.abs(unit) + 2.0**-20, np.concatenate([power[:15], 1.0 / power[15:]])
        found = to_numpy(backend.asarray(base) ** backend.asarray(exponent))
        for x, p, y in zip(exact(base), exact(exponent), found, strict=True):
            assert not abs(arb(float(y)) - x**p) > arb(POW_ULPS * U) * x**p, ("pow", x, p)
