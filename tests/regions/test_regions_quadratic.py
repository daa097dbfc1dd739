"""The certified maximum of a weighted squared distance, and the norms below it."""

import itertools
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.numerics.rounding import TINY, dual_exponent, norm_lower, norm_upper
from gpcert.regions import Ball, Box
from gpcert.regions.intersection import (
    BoxAndBall,
    hoelder_exponent,
    split_maximum,
    triangle_maximum,
)
from gpcert.testing.effort import examples
from tests.regions.region_strategies import NORMS, cell_around, regions, weighted_square

seeds = st.integers(0, 2**32)


def weights_of(rng, f):
    w = 10.0 ** rng.uniform(-6, 6, size=f)
    return np.where(rng.random(f) < 0.2, 0.0, w)


@given(regions(), seeds, st.integers(0, 30))
@settings(max_examples=examples(200), deadline=None)
def test_above_every_member_in_exact_arithmetic(region, seed, splits):
    rng = np.random.default_rng(seed)
    free = region.free
    w = weights_of(rng, free.size)
    towards = np.zeros(region.dim)
    towards[free] = np.sqrt(w) * rng.choice([-1.0, 1.0], free.size)
    for x in (region.sample(1, rng)[0], region.linear_minimizer(towards)):
        cell = cell_around(region, x, splits, rng)
        high = cell.squared_norm_maximum(w)[0]
        assert weighted_square(w, x[free], cell.center[0]) <= Fraction(float(high))


@given(seeds, st.integers(1, 4))
@settings(max_examples=examples(40), deadline=None)
def test_box_vertices_attain_it(seed, f):
    rng = np.random.default_rng(seed)
    ends = rng.normal(size=(2, f))
    cell = Box(ends.min(axis=0), ends.max(axis=0)).root()
    w = weights_of(rng, f)
    high = Fraction(float(cell.squared_norm_maximum(w)[0]))
    corners = itertools.product(*zip(cell.lower[0], cell.upper[0], strict=True))
    values = [weighted_square(w, corner, cell.center[0]) for corner in corners]
    assert max(values) <= high <= max(values) * Fraction(1.0 + 1e-12) + Fraction(1e-290)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 2.5, 4.0])
def test_whole_ball_is_exact(p):
    rng = np.random.default_rng(3)
    w = rng.uniform(0.1, 2.0, size=7)
    high = Ball(np.zeros(7), 3.0, p).root().squared_norm_maximum(w)[0]
    factor = w.max() if p <= 2 else np.sum(w ** (p / (p - 2))) ** ((p - 2) / p)
    assert high == pytest.approx(9.0 * factor, rel=1e-10)


def test_half_a_ball_is_exact_for_the_euclidean_norm():
    # seen from (1/2, 0), the farthest points of the right half disc are (0, +-1)
    half = np.array([[0.5, 1.0, 1.0, 1.0, 1.0]])
    both = BoxAndBall(-half, half, np.array([[-0.5, 0.0, 0.0, 0.0, 0.0]]), 1.0, 2.0)
    ones = np.ones(5)
    assert split_maximum(ones, ones[None], both)[0] == pytest.approx(1.25, rel=1e-10)
    # cells larger than the ball are seen from its centre, whose distance is 1 at most
    cells = Ball(np.zeros(5), 1.0, 2).root().split(np.array([0]))
    assert cells.squared_norm_maximum(ones) == pytest.approx(1.0, rel=1e-10)


@pytest.mark.parametrize("radius", [1e-200, 1e200])
def test_extreme_radii_do_not_overflow(radius):
    root = Ball(np.zeros(3), radius, 2).root()
    high = root.squared_norm_maximum(np.array([1.0, 2.0, 1.0]) / radius)
    assert 2.0 * radius <= high[0] <= 2.0 * radius * (1.0 + 1e-10)


@given(seeds, NORMS.filter(np.isfinite), st.integers(2, 6))
@settings(max_examples=examples(100), deadline=None)
def test_every_theta_gives_a_bound(seed, p, f):
    # the statement of gpcert.regions.intersection, for arbitrary theta in [0, w]
    rng = np.random.default_rng(seed)
    region = Ball(rng.normal(size=f), 1.0, p)
    x = region.sample(1, rng)[0]
    cell = cell_around(region, x, int(rng.integers(0, 10)), rng)
    w = weights_of(rng, f)
    theta = w * rng.choice([0.0, 0.3, 1.0], size=f)
    both = BoxAndBall(-cell.half, cell.half, region.center - cell.center, 1.0, p)
    high = split_maximum(w, theta[None], both)[0]
    assert weighted_square(w, x, cell.center[0]) <= Fraction(float(high))


@given(seeds, NORMS.filter(np.isfinite), st.integers(2, 6), st.sampled_from([0.5, 8.0, 150.0]))
@settings(max_examples=examples(100), deadline=None)
def test_every_theta_gives_a_bound_with_a_radius_per_feature(seed, p, f, spread):
    rng = np.random.default_rng(seed)
    radii = 10.0 ** rng.uniform(-spread, spread, size=f)
    region = Ball(rng.normal(size=f), radii, p)
    w = weights_of(rng, f) / np.maximum(radii, 1e-150) ** rng.choice([0.0, 1.0, 2.0])
    theta = w * rng.choice([0.0, 0.3, 1.0], size=f)
    towards = np.sqrt(w) * rng.choice([-1.0, 1.0], f)
    for x in (region.sample(1, rng)[0], region.linear_minimizer(towards)):
        cell = cell_around(region, x, int(rng.integers(0, 10)), rng)
        both = BoxAndBall(-cell.half, cell.half, region.center - cell.center, 1.0, p, radii)
        value = weighted_square(w, x, cell.center[0])
        with np.errstate(over="ignore"):
            found = split_maximum(w, theta[None], both)[0], triangle_maximum(w, both)[0]
        assert all(high == np.inf or value <= Fraction(float(high)) for high in found)


@given(seeds, NORMS, st.integers(1, 40), st.sampled_from([1e-290, 1.0, 1e290]))
@settings(max_examples=examples(150), deadline=None)
def test_norms_are_enclosed(seed, p, f, scale):
    rng = np.random.default_rng(seed)
    x = scale * rng.normal(size=f) * 10.0 ** rng.uniform(-8, 0, size=f)
    with mpmath.workdps(60):
        terms = [abs(mpmath.mpf(float(v))) for v in x]
        exact = max(terms)
        if np.isfinite(p):
            exact *= mpmath.fsum((t / exact) ** mpmath.mpf(p) for t in terms) ** (1 / mpmath.mpf(p))
        low, high = norm_lower(x, p), norm_upper(x, p)
        assert mpmath.mpf(float(low)) <= exact <= mpmath.mpf(float(high))
        assert high - low <= 1e-12 * float(exact) + 4 * TINY
    assert norm_upper(0.0 * x, p) == norm_lower(0.0 * x, p) == 0.0


@given(st.one_of(st.floats(1.0, 10.0), st.floats(10.0, 1e20)))
def test_exponents_are_rounded_down(p):
    exact = Fraction(p)
    q, s = dual_exponent(p), hoelder_exponent(p)
    if p > 1:
        assert Fraction(q) <= exact / (exact - 1)
        assert q == pytest.approx(p / (p - 1), rel=1e-12)
    if p > 2:
        assert Fraction(s) <= exact / (exact - 2)
