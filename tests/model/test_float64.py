"""How far means in float64 lie from the real ones: every order of summation, both ways to a squared
distance, near data and far away."""

import math

import numpy as np
import pytest

pytest.importorskip("flint")
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert
from gpcert.errors import InputError
from gpcert.kernels import (
    ActiveDimensions,
    Constant,
    Linear,
    Matern,
    RationalQuadratic,
    SquaredExponential,
)
from gpcert.model.float64 import evaluation_error
from gpcert.regions import LinearMap
from gpcert.testing.arb_reference import assert_encloses, kernel_reference
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import exact


def radial(kernel, X, Z, expanded, shift):
    """A radial kernel as libraries compute it: by differences or by squares and a product, after a
    point was subtracted."""
    X, Z = (X - shift) / kernel.length_scale, (Z - shift) / kernel.length_scale
    s = np.sum((X[:, None, :] - Z[None, :, :]) ** 2, axis=-1)
    if expanded:
        s = np.sum(X**2, axis=1)[:, None] + np.sum(Z**2, axis=1)[None, :] - 2.0 * X @ Z.T
        s = np.maximum(s, 0.0)
    if isinstance(kernel, SquaredExponential):
        return kernel.variance * np.exp(-0.5 * s)
    if isinstance(kernel, RationalQuadratic):
        return kernel.variance * (1.0 + s / (2.0 * kernel.alpha)) ** -kernel.alpha
    p = round(kernel.nu - 0.5)
    t = np.sqrt(2.0 * kernel.nu) * np.sqrt(s)
    parts = [
        math.factorial(p + i) / math.factorial(i) / math.factorial(p - i) * (2 * t) ** (p - i)
        for i in range(p + 1)
    ]
    series = math.factorial(p) / math.factorial(2 * p) * np.sum(parts, axis=0)
    return kernel.variance * series * np.exp(-t)


def kernels(rng, d):
    lengths = np.exp(rng.uniform(-2, 2, d))
    return [
        SquaredExponential(lengths, 1.7),
        RationalQuadratic(lengths, alpha=float(rng.choice([0.3, 2.0, 1e5])), variance=0.4),
        Matern(lengths, nu=float(rng.choice([1.5, 2.5, 4.5])), variance=2.0),
    ]


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=examples(40))
def test_every_evaluation_lies_within_the_error(seed):
    rng = np.random.default_rng(seed)
    d, N = int(rng.integers(1, 5)), int(rng.integers(1, 30))
    size = 10.0 ** rng.integers(-2, 5)  # far from 0 squares and products cancel
    place = size * rng.normal(size=d)
    Z = place + rng.normal(size=(N, d)) * 10.0 ** rng.integers(-3, 2)
    weights = rng.normal(size=N) * 10.0 ** rng.integers(-2, 6, size=N)
    first, second = rng.choice(3, 2)
    kernel = kernels(rng, d)
    parts, mixed = (kernel[first], kernel[second]), int(rng.integers(3))
    whole = [parts[0], parts[0] + parts[1], parts[0] * parts[1]][mixed]
    offset, scale = rng.normal(), 10.0 ** rng.integers(-2, 3)
    model = gpcert.Posterior(whole, Z, weights, offset=[offset], scale=[scale])
    reach = 10.0 ** rng.integers(-3, 1)
    low, high = place - reach, place + reach
    error = evaluation_error(model, 0, low, high)
    X = rng.uniform(low, high, (4, d))
    for expanded in (False, True):
        shift = [np.zeros(d), Z.mean(axis=0), X.mean(axis=0)][int(rng.integers(3))]
        K = radial(parts[0], X, Z, expanded, shift)
        if mixed:
            other = radial(parts[1], X, Z, expanded, shift)
            K = K + other if mixed == 1 else K * other
        order = rng.permutation(N)
        for mean in (
            K @ weights,
            np.array([np.cumsum((row * weights)[order])[-1] for row in K]),
            np.array([math.fsum(row * weights) for row in K]),
        ):
            predicted = offset + scale * mean
            for x, value in zip(X, predicted, strict=True):
                pairs = zip(Z, exact(weights), strict=True)
                rows = (t * kernel_reference(whole, exact(x), exact(z)) for z, t in pairs)
                truth = exact([offset])[0] + exact([scale])[0] * sum(rows, exact([0.0])[0])
                assert_encloses(value - error, value + error, truth)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=examples(20))
def test_features_and_trends_are_in_the_error(seed):
    rng = np.random.default_rng(seed)
    d, q, N = 5, 3, 8
    matrix, shift = rng.normal(size=(q, d)), rng.normal(size=q) * 10.0 ** rng.integers(0, 4)
    Z, weights = rng.normal(size=(N, q)) + shift, rng.normal(size=N)
    kernel = SquaredExponential(rng.uniform(0.5, 2.0, q))
    slope = rng.normal(size=(1, q)) * 10.0 ** rng.integers(-3, 4)
    model = gpcert.Posterior(
        kernel, Z, weights, features=LinearMap(matrix, shift), slope=slope, scale=[3.0]
    )
    x = rng.normal(size=d) * 10.0 ** rng.integers(-1, 3)
    error = evaluation_error(model, 0, x, x)
    y = sum(matrix[:, j] * x[j] for j in rng.permutation(d)) + shift  # any order
    value = 3.0 * float(radial(kernel, y[None], Z, True, 0.0)[0] @ weights + slope[0] @ y)
    X, W, b = exact(x), [exact(row) for row in matrix], exact(shift)
    real = [
        c + sum(w * v for w, v in zip(row, X, strict=True)) for row, c in zip(W, b, strict=True)
    ]
    pairs = zip(Z, exact(weights), strict=True)
    truth = sum(t * kernel_reference(kernel, real, exact(z)) for z, t in pairs)
    truth = 3 * (truth + sum(s * v for s, v in zip(exact(slope[0]), real, strict=True)))
    assert_encloses(value - error, value + error, truth)


def sequential(terms):
    """Their sum in order."""
    return float(np.cumsum(terms)[-1])


def test_long_sums_lose_what_the_error_allows():
    terms = np.array([1.0] + [2.0**-53] * 999)  # every one but the first is lost
    weights = gpcert.Posterior(Constant(1.0), np.zeros((1000, 1)), terms)
    error = evaluation_error(weights, 0, np.zeros(1), np.ones(1))
    assert 999 * 2.0**-53 <= error < 4 * 999 * 2.0**-53
    assert sequential(terms) == 1.0
    trend = gpcert.Posterior(Constant(1.0), np.zeros((1, 1000)), [0.0], slope=np.ones((1, 1000)))
    error = evaluation_error(trend, 0, terms, terms)
    assert 999 * 2.0**-53 <= error < 8 * 999 * 2.0**-53


def test_features_that_cancel():
    matrix, point = np.array([[1e8, -1e8]]), np.array([0.1, 0.1 + 1e-9])
    model = gpcert.Posterior(
        SquaredExponential(1.0), [[0.0]], [1.0], features=LinearMap(matrix, np.zeros(1))
    )
    error = evaluation_error(model, 0, point, point)
    y = matrix[0, 0] * point[0] + matrix[0, 1] * point[1]
    real = [sum(w * v for w, v in zip(exact(matrix[0]), exact(point), strict=True))]
    truth = kernel_reference(model.kernel, real, exact([0.0]))
    assert_encloses(np.exp(-0.5 * y**2) - error, np.exp(-0.5 * y**2) + error, truth)
    assert error > 1e-9


@pytest.mark.parametrize("factor", [1.0, 1e6])
@pytest.mark.parametrize("alpha", [1.0, 1e6])
def test_rounded_bases_and_large_factors(alpha, factor):
    kernel, rng = RationalQuadratic(1.0, alpha=alpha), np.random.default_rng(0)
    whole = SquaredExponential(1e9, factor) * kernel if factor > 1 else kernel
    model = gpcert.Posterior(whole, [[0.0]], [1.0])
    error = evaluation_error(model, 0, -np.ones(1), np.ones(1))
    largest = 0.0
    for x in rng.uniform(-1.0, 1.0, 50):
        value = factor * (1.0 + x**2 / (2.0 * alpha)) ** -alpha
        truth = kernel_reference(whole, exact([x]), exact([0.0]))
        assert_encloses(value - error, value + error, truth)
        largest = max(largest, abs(float((exact([value])[0] - truth).mid())))
    assert largest > 0.01 * error if alpha > 1 else error < 1e-12 * factor


def test_the_error_is_small():
    rng = np.random.default_rng(0)
    Z, weights = rng.normal(size=(100, 3)), rng.normal(size=100)
    model = gpcert.Posterior(SquaredExponential(1.0), Z, weights)
    ones = np.ones(3)
    assert 0 < evaluation_error(model, 0, -ones, ones) < 1e-9 * np.abs(weights).sum()
    chosen = gpcert.Posterior(ActiveDimensions(SquaredExponential(1.0), [0]), Z, weights)
    assert evaluation_error(chosen, 0, -ones, ones) < evaluation_error(model, 0, -ones, ones)


@pytest.mark.parametrize("kernel", [Matern(1.0, 0.5), Constant(1.0) + Linear(1.0)])
def test_kernels_that_are_not_covered(kernel):
    model = gpcert.Posterior(kernel, [[0.0]], [1.0])
    with pytest.raises(InputError, match="proof='B': claims about float64 cover the kernels"):
        evaluation_error(model, 0, np.zeros(1), np.ones(1))
