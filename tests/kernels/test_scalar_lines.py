"""Lines under and over scalar functions: never on the wrong side, and the best ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.arrays import backend_from_name, to_numpy
from gpcert.kernels.lines.scalar_functions import (
    CosineFunction,
    ExponentialFunction,
    PiecewiseConvex,
    ScalarFunction,
)
from gpcert.kernels.lines.scalar_lines import Lines, best_lines, paper_lines, scaled_lines
from gpcert.regions.norms import POW_ULPS
from gpcert.rounding import ASIN_LOG_ULPS, EXP_ULPS, SIN_COS_ULPS, U
from gpcert.testing.balls import exact, flint
from gpcert.testing.effort import examples

FLEXES = tuple((n + 0.5) * math.pi for n in range(-10, 10))
WAVE = PiecewiseConvex(
    np.cos, lambda t: -np.sin(t), FLEXES, False, 1e-13, 1e-13, infimum=-1.0, supremum=1.0
)
"""The cosine once more, as a user would give it; it starts concave, before -9.5 pi."""

CUBIC = PiecewiseConvex(
    lambda t: t**5 - 5.0 * t**3, lambda t: 5.0 * t**4 - 15.0 * t**2,
    (-math.sqrt(1.5), 0.0, math.sqrt(1.5)), False, 1e-11, 1e-10,
)  # fmt: skip
"""Three flex points; errors for |t| <= 4."""

FUNCTIONS: dict[str, ScalarFunction] = {
    "cosine": CosineFunction(),
    "minus cosine": CosineFunction(-1.0),
    "exponential": ExponentialFunction(),
    "minus exponential": ExponentialFunction(-1.0),
    "wave": WAVE,
    "quintic": CUBIC,
}
LARGEST = {"exponential": 30.0, "minus exponential": 30.0, "wave": 29.0, "quintic": 4.0}

centers = st.floats(-1.0, 1.0)
widths = st.sampled_from([0.0, 1e-12, 1e-6, 1e-3, 0.1, 0.5, 1.0, 3.0, 7.0, 30.0, 1e4])
scales = st.sampled_from([1.0, 3.0, 20.0, 1e6])


def interval(name: str, center: float, scale: float, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Ends inside the range in which the function is meant to be used."""
    largest = LARGEST.get(name, math.inf)
    low = np.clip(center * scale, -largest, largest)
    return np.asarray([low]), np.asarray([np.clip(low + width, low, largest)])


def real(name: str, t):
    """The function in ball arithmetic."""
    if name == "quintic":
        return t**5 - 5 * t**3
    if "cosine" in name or name == "wave":
        return -t.cos() if name.startswith("minus") else t.cos()
    return -t.exp() if name.startswith("minus") else t.exp()


def samples(low: float, high: float, touching: list[float]) -> np.ndarray:
    """Points of the interval: a grid, and where a line of interest may touch."""
    inside = [t for t in touching if low <= t <= high]
    return np.clip(np.concatenate([np.linspace(low, high, 21), inside]), low, high)


def assert_sound(name: str, lines: Lines, low: float, high: float) -> None:
    """No tolerance, in ball arithmetic."""
    arb = flint().arb
    function = FUNCTIONS[name]
    touching = []
    for side, psi in ((0, function), (2, function.negated())):
        slope = lines[side] if side == 0 else -lines[side]
        touching.append(float(psi.least(slope, np.asarray([low]), np.asarray([high]))[1][0]))
    numbers = [float(x[0]) for x in lines]
    assert not any(math.isnan(x) for x in numbers)
    for t in samples(low, high, touching):
        x = arb(float(t))
        value = real(name, x)
        below, above = (arb(numbers[i]) * x + arb(numbers[i + 1]) for i in (0, 2))
        assert not below > value, f"line under crosses at {t!r}"
        assert not above < value, f"line over crosses at {t!r}"


@pytest.mark.parametrize("build", [best_lines, paper_lines])
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
@settings(max_examples=examples(40), deadline=None)
@given(center=centers, scale=scales, width=widths)
def test_sound(build, name, center, scale, width):
    low, high = interval(name, center, scale, width)
    assert_sound(name, build(FUNCTIONS[name], low, high), float(low[0]), float(high[0]))


def hull_at(t: np.ndarray, values: np.ndarray, m: float) -> float:
    """The lower convex hull of points of a graph, at m."""
    hull: list[int] = []
    for i in range(len(t)):
        while len(hull) >= 2:
            a, b = hull[-2], hull[-1]
            if (values[b] - values[a]) * (t[i] - t[a]) < (values[i] - values[a]) * (t[b] - t[a]):
                break
            hull.pop()
        hull.append(i)
    return float(np.interp(m, t[hull], values[hull]))


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
@settings(max_examples=examples(25), deadline=None)
@given(center=centers, width=st.sampled_from([1e-3, 0.1, 0.5, 1.0, 3.0, 7.0]))
def test_best(name, center, width):
    """At the midpoint: at least the paper's line, and the hull of a dense sample to 1e-6."""
    function = FUNCTIONS[name]
    low, high = interval(name, center, 5.0, width)
    m = 0.5 * (low + high)
    best, paper = best_lines(function, low, high), paper_lines(function, low, high)
    t = np.linspace(low[0], high[0], 8001)
    for side, psi, sign in ((0, function, 1.0), (2, function.negated(), -1.0)):
        found, theirs = (
            sign * float(lines[side][0] * m[0] + lines[side + 1][0]) for lines in (best, paper)
        )
        values = psi.value(t)
        size = np.abs(values).max()
        assert found >= theirs - 1e-11 * size - 1e-15
        envelope = hull_at(t, values, float(m[0]))
        assert found == pytest.approx(envelope, abs=1e-6 * size + 1e-10)


@pytest.mark.parametrize("build", [best_lines, paper_lines])
def test_unbounded_and_degenerate_intervals(build):
    inf = math.inf
    low, high = np.asarray([-inf, 0.0, 2.0, 0.0]), np.asarray([inf, inf, 2.0, 1e15])
    lines = build(CosineFunction(), low, high)
    assert np.all(np.isfinite([lines.slope_under, lines.slope_over]))
    np.testing.assert_allclose(lines.intercept_under[:2], -1.0)
    np.testing.assert_allclose(lines.intercept_over[:2], 1.0)
    assert lines.slope_under[2] * 2.0 + lines.intercept_under[2] == pytest.approx(math.cos(2.0))
    np.testing.assert_allclose([lines.slope_under[3], lines.slope_over[3]], 0.0, atol=1e-12)
    lines = build(ExponentialFunction(), low[:2], np.asarray([inf, 1e4]))
    assert np.all(lines.intercept_under <= 0.0)
    assert np.all(lines.intercept_over == inf)
    assert np.all(lines.slope_over == 0.0)


def test_many_periods_give_the_constants():
    lines = best_lines(CosineFunction(), np.asarray([-7.3]), np.asarray([1e5]))
    np.testing.assert_allclose(np.ravel(lines), [0.0, -1.0, 0.0, 1.0], atol=1e-9)


def test_paper_cases():
    """Case 1: the chord; Case 2: the tangent at the midpoint; Case 3: one flex point."""
    one = np.asarray([1.0])
    lines = paper_lines(CosineFunction(), 0.0 * one, one)  # concave
    assert lines.slope_under[0] == pytest.approx(math.cos(1.0) - 1.0)
    assert lines.intercept_under[0] == pytest.approx(1.0)
    assert lines.slope_over[0] == pytest.approx(-math.sin(0.5))
    # flex at pi/2: chord on [1, pi/2], tangent at the middle of [pi/2, 2]
    lines = paper_lines(CosineFunction(), one, 2.0 * one)
    middle = 0.5 * (0.5 * math.pi + 2.0)
    tangent = lambda t: math.cos(middle) - math.sin(middle) * (t - middle)  # noqa: E731
    at_low = min(math.cos(1.0), tangent(1.0))
    slope = tangent(2.0) - at_low
    assert lines.slope_under[0] == pytest.approx(slope)
    assert lines.intercept_under[0] == pytest.approx(at_low - slope)


@settings(max_examples=examples(40), deadline=None)
@given(center=centers, scale=scales, width=widths, factor=st.floats(-1e3, 1e3))
def test_scaled(center, scale, width, factor):
    """Lines of `factor psi`, of either sign, no tolerance."""
    arb = flint().arb
    low, high = interval("cosine", center, scale, width)
    lines = scaled_lines(best_lines(CosineFunction(), low, high), np.asarray([factor]), low, high)
    numbers = [float(x[0]) for x in lines]
    for t in samples(float(low[0]), float(high[0]), []):
        x = arb(float(t))
        value = arb(factor) * x.cos()
        assert not arb(numbers[0]) * x + arb(numbers[1]) > value
        assert not arb(numbers[2]) * x + arb(numbers[3]) < value


def test_torch_agrees():
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    low = rng.normal(size=(5, 40)) * 4.0
    high = low + rng.exponential(size=low.shape) * 3.0
    place = backend_from_name("torch")
    for build in (best_lines, paper_lines):
        for function in (CosineFunction(), ExponentialFunction()):
            there = build(function, place.asarray(low), place.asarray(high))
            for mine, theirs in zip(build(function, low, high), there, strict=True):
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
