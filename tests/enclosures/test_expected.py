"""Means of enclosed functions over cells, and of Phi of a mean in its standard deviations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial.legendre import leggauss
from scipy.special import ndtr

from gpcert.enclosures.crossing import Polynomial
from gpcert.enclosures.expected import Cell, mean_over_cells, predicted_shares
from gpcert.integrals.families import Exponential, Normal
from gpcert.integrals.input_law import InputLaw, Marginal
from gpcert.testing.effort import examples

LAW = InputLaw((Marginal(Normal(), 0.3, 1.7), Marginal(Exponential(), -2.0, 1.0)))
NODES, WEIGHTS = leggauss(40)


def case(seed, scale):
    rng = np.random.default_rng(seed)
    low = rng.uniform(-0.9, 0.5, 2)
    high = low + rng.uniform(0.02, 1.0, 2) * scale
    hessian = rng.normal(size=(2, 2))
    return rng, low, high, rng.normal(), rng.normal(size=2), hessian + hessian.T


def average(low, high, function):
    """A mean by a product rule, accurate to 1e-12 for smooth functions."""
    grids, weights = [], []
    for a, b, density in zip(low, high, (normal, lambda x: np.exp(-(x + 2.0))), strict=True):
        grids.append(0.5 * (a + b) + 0.5 * (b - a) * NODES)
        weights.append(WEIGHTS * density(grids[-1]))
    x, y = np.meshgrid(*grids, indexing="ij")
    weight = np.outer(*weights)
    middle = 0.5 * (low + high)
    return float(np.sum(weight * function(x - middle[0], y - middle[1])) / np.sum(weight))


def normal(x):
    return np.exp(-0.5 * ((x - 0.3) / 1.7) ** 2)


def quadratic(value, gradient, hessian):
    def function(x, y):
        bend = hessian[0, 0] * x * x + 2 * hessian[0, 1] * x * y + hessian[1, 1] * y * y
        return value + gradient[0] * x + gradient[1] * y + 0.5 * bend

    return function


def polynomial(value, gradient, hessian, below, above, half):
    parts = [np.array([part], dtype=float) for part in (value, gradient, hessian, below, above)]
    return Polynomial(*parts, half)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=examples(100, quick=30), deadline=None)
def test_means_of_quadratics(seed):
    _, low, high, *parts = case(seed, 1.0)
    moments = LAW.moments(low[None], high[None])
    real = average(low, high, quadratic(*parts))
    for error in (0.0, 0.1):
        p = polynomial(*parts, error, 2 * error, moments.half)
        lower, upper = (float(end[0]) for end in mean_over_cells(p, moments))
        assert lower + error <= real + 1e-11
        assert real - 1e-11 <= upper - 2 * error
        assert upper - lower - 3 * error <= 1e-3


@given(seed=st.integers(0, 10**6), noise=st.sampled_from([1e-6, 1e-2, 1.0]))
@settings(max_examples=examples(150, quick=40), deadline=None)
def test_predicted_shares(seed, noise):
    rng, low, high, value, gradient, hessian = case(seed, 0.5)
    moments = LAW.moments(low[None], high[None])
    half = moments.half
    v_parts = noise, noise * 0.1 * rng.normal(size=2), noise * 0.05 * hessian
    value *= 0.3
    f, v = quadratic(value, gradient, hessian), quadratic(*v_parts)
    corners = np.meshgrid(*(np.linspace(-h, h, 41) for h in half[0]), indexing="ij")
    spread = 0.2 * noise  # f and v stay within these of their values on the grid
    ends = [f(*corners).min() - 0.1, f(*corners).max() + 0.1]
    ends += [max(v(*corners).min() - spread, noise / 9), v(*corners).max() + spread]
    found = predicted_shares(
        polynomial(value, gradient, hessian, 0.0, 0.0, half),
        polynomial(*v_parts, 0.0, 0.0, half),
        tuple(np.array([end]) for end in ends),
        Cell(LAW, low[None], high[None], moments, half**2),
    )
    lower, upper = float(found[0][0]), float(found[1][0])
    if noise >= 1e-2:  # smooth enough for the rule
        real, slack = average(low, high, lambda x, y: ndtr(-f(x, y) / np.sqrt(v(x, y)))), 1e-6
    else:  # nearly a step: a fine grid
        real, slack = fine(low, high, lambda x, y: ndtr(-f(x, y) / np.sqrt(v(x, y)))), 2e-3
    assert lower - slack <= real <= upper + slack


def fine(low, high, function):
    n = 600
    grids = [a + (b - a) * (np.arange(n) + 0.5) / n for a, b in zip(low, high, strict=True)]
    x, y = np.meshgrid(*grids, indexing="ij")
    weight = normal(x) * np.exp(-y)
    middle = 0.5 * (low + high)
    return float(np.sum(weight * function(x - middle[0], y - middle[1])) / np.sum(weight))


@pytest.mark.parametrize("noise", [0.01, 1.0])
def test_predicted_gaps_fall_with_the_cell(noise):
    gaps = []
    for h in (0.1, 0.05, 0.025):
        low, high = np.array([[0.1, 0.1]]), np.array([[0.1, 0.1]]) + h
        moments = LAW.moments(low, high)
        f = polynomial(0.01, np.array([1.0, 0.3]), np.eye(2) * 0.4, 0.0, 0.0, moments.half)
        v = polynomial(noise, noise * np.array([0.2, 0.1]), np.zeros((2, 2)), 0, 0, moments.half)
        ends = tuple(np.array([end]) for end in (-1.0, 1.0, 0.9 * noise, 1.1 * noise))
        cell = Cell(LAW, low, high, moments, moments.half**2)
        lower, upper, _ = predicted_shares(f, v, ends, cell)
        gaps.append(float(upper[0] - lower[0]))
    assert gaps[1] < gaps[0] / 4.0
    assert gaps[2] < gaps[1] / 4.0
