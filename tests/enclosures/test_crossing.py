"""Probabilities of {f < 0} on cells that the level set crosses: bounds hold, and close fast."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.enclosures.crossing import Polynomial, negative_shares
from gpcert.integrals.families import (
    Exponential,
    Gumbel,
    Lognormal,
    Normal,
    Reflected,
    Triangular,
    Uniform,
)
from gpcert.integrals.input_law import InputLaw, Marginal
from gpcert.testing.effort import examples

NORMAL = Marginal(Normal(), 0.3, 1.7)
LAWS = [
    (NORMAL, Marginal(Exponential(), -2.0, 1.0)),
    (Marginal(Triangular(0.3), -1.0, 2.5), NORMAL),
    (Marginal(Lognormal(0.5), -2.0), Marginal(Reflected(Gumbel()), 0.1, 0.8)),
]
FINE = 20_000


def shares(law, low, high, value, gradient, hessian, below=0.0, above=0.0):
    low, high = np.array([low]), np.array([high])
    moments = law.moments(low, high)
    parts = [np.array([part], dtype=float) for part in (value, gradient, hessian, below, above)]
    p = Polynomial(*parts, moments.half)
    lower, upper, gains = negative_shares(p, law, low, high, moments, moments.half**2)
    assert gains.shape == low.shape
    return float(lower[0]), float(upper[0])


def clipped_area(points, value, gradient):
    """Exact part of a polygon where `value + gradient.d < 0`."""
    inside = []
    for p, q in zip(points, [*points[1:], points[0]], strict=True):
        a, b = (value + sum(g * x for g, x in zip(gradient, end, strict=True)) for end in (p, q))
        if a < 0:
            inside.append(p)
        if (a < 0) != (b < 0):
            t = a / (a - b)
            inside.append(tuple(x + t * (y - x) for x, y in zip(p, q, strict=True)))
    pairs = zip(inside, [*inside[1:], *inside[:1]], strict=True)
    return abs(sum(p[0] * q[1] - p[1] * q[0] for p, q in pairs)) / 2


@given(seed=st.integers(0, 10**6))
@settings(max_examples=examples(300, quick=60), deadline=None)
def test_half_planes_of_uniform_inputs_exactly(seed):
    """No tolerance: areas in rational arithmetic."""
    rng = np.random.default_rng(seed)
    corner, half = rng.integers(-8, 8, 2) / 4.0, 2.0 ** rng.integers(-6, 3, 2)
    low, high = corner - half, corner + half
    law = InputLaw(tuple(Marginal(Uniform(), a, b - a) for a, b in zip(low, high, strict=True)))
    gradient = rng.normal(size=2) * 10.0 ** rng.integers(-3, 3, 2)
    value = float(rng.normal()) * float(abs(gradient) @ half)
    lower, upper = shares(law, low, high, value, gradient, np.zeros((2, 2)))
    w, numbers = list(map(Fraction, half)), list(map(Fraction, gradient))
    corners = [(-w[0], -w[1]), (w[0], -w[1]), (w[0], w[1]), (-w[0], w[1])]
    exact = clipped_area(corners, Fraction(value), numbers) / (4 * w[0] * w[1])
    assert Fraction(lower) <= exact <= Fraction(upper)


def numerical(law, low, high, value, gradient, hessian):
    """P[quadratic < 0] given a cell of two inputs, by a fine rule in the second."""
    center, edges = 0.5 * (low + high), np.linspace(low[1], high[1], FINE + 1)
    weight = np.asarray(law.marginals[1].mass(edges[:-1], edges[1:])[0])
    d = 0.5 * (edges[1:] + edges[:-1]) - center[1]
    A = 0.5 * hessian[0, 0]
    B = gradient[0] + hessian[0, 1] * d
    C = value + gradient[1] * d + 0.5 * hessian[1, 1] * d**2
    with np.errstate(all="ignore"):
        root = np.sqrt(np.maximum(B * B - 4 * A * C, 0.0))
        q = -0.5 * (B + np.where(B < 0, -root, root))
        first, last = np.sort(np.where(A == 0, [-C / B] * 2, [q / A, C / q]), axis=0)
    first, last = (np.clip(np.nan_to_num(r) + center[0], low[0], high[0]) for r in (first, last))

    def mass(a, b):
        return np.asarray(law.marginals[0].mass(a, b)[1])

    ends = np.full(FINE, low[0]), np.full(FINE, high[0])
    whole = mass(*ends)
    inside = mass(first, last)
    if A == 0:
        share = np.where(B > 0, mass(ends[0], first), mass(first, ends[1]))
    else:
        none = B * B - 4 * A * C <= 0
        share = np.where(none, 0.0, inside) if A > 0 else np.where(none, whole, whole - inside)
    return float(np.sum(share * weight) / np.sum(whole * weight))


@pytest.mark.parametrize("law", [InputLaw(law) for law in LAWS])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=examples(60, quick=10), deadline=None)
def test_quadratics_under_several_laws(law, seed):
    """Against a fine rule, whose own error is below 1e-7."""
    rng = np.random.default_rng(seed)
    low = rng.uniform(-0.9, 0.5, 2)
    high = low + rng.uniform(0.02, 1.0, 2) * 10.0 ** rng.uniform(-1.0, 0.0)
    gradient = rng.normal(size=2)
    half = 0.5 * (high - low)
    value = float(rng.uniform(-1.2, 1.2) * (abs(gradient) @ half))
    hessian = rng.normal(size=(2, 2)) * 10.0 ** rng.uniform(-2.0, 0.5)
    hessian = hessian + hessian.T
    real = numerical(law, low, high, value, gradient, hessian)
    lower, upper = shares(law, low, high, value, gradient, hessian)
    assert lower - 1e-7 <= real <= upper + 1e-7
    # a function between errors of the quadratic
    error = 0.05 * float(abs(gradient) @ half)
    moved = [numerical(law, low, high, value + e, gradient, hessian) for e in (error, -error)]
    lower, upper = shares(law, low, high, value, gradient, hessian, error, error)
    assert lower - 1e-7 <= min(moved)
    assert max(moved) <= upper + 1e-7


def test_gaps_are_of_third_order():
    """Where the surface leaves no cell through the faces of its steepest input."""
    law, hessian = InputLaw(LAWS[0]), np.array([[0.4, 0.3], [0.3, -0.5]])
    gaps = []
    for h in (0.2, 0.1, 0.05):
        low, high = np.array([0.1, 0.1]), np.array([0.1, 0.1]) + h
        lower, upper = shares(law, low, high, 0.01 * h, np.array([1.0, 0.3]), hessian)
        gaps.append((upper - lower) * h)  # a share of a cell is one of its width
    assert gaps[1] < gaps[0] / 6.0
    assert gaps[2] < gaps[1] / 6.0


def test_what_is_not_known_is_said():
    law = InputLaw(LAWS[0])
    low, high = np.array([0.0, 0.0]), np.array([0.5, 0.5])
    flat = shares(law, low, high, 0.1, np.zeros(2), np.eye(2))
    assert flat == (0.0, 1.0)
    assert shares(law, low, high, 0.1, np.ones(2), np.eye(2), np.inf, 0.0) == (0.0, 1.0)
