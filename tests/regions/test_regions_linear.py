"""The certified minimum of a linear function over box, ball, and their intersection."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.numerics.rounding import norm
from gpcert.regions import Ball
from gpcert.regions.intersection import BoxAndBall, split_bound
from gpcert.testing.effort import examples
from tests.regions.region_strategies import NORMS, balls, boxes, cell_around, dot, regions

seeds = st.integers(0, 2**32)
finite_norms = st.sampled_from([1.0, 1.001, 1.5, 2.0, 2.5, 3.5, 17.0])


def slopes(rng, shape):
    """Slopes of very different sizes, some zero."""
    g = rng.normal(size=shape) * 10.0 ** rng.integers(-12, 12, size=shape)
    return np.where(rng.random(shape) < 0.2, 0.0, g)


@given(regions(), seeds, st.integers(0, 40))
@settings(max_examples=examples(200), deadline=None)
def test_below_every_member_in_exact_arithmetic(region, seed, splits):
    rng = np.random.default_rng(seed)
    g = slopes(rng, region.dim)
    members = [region.linear_minimizer(g), region.sample(1, rng)[0]]
    for x in members:
        cell = cell_around(region, x, splits, rng)
        free = region.free
        low = cell.linear_minimum(g[None, free])[0]
        high = cell.linear_maximum(g[None, free])[0]
        value = dot(g[free], x[free], cell.center[0])
        assert Fraction(float(low)) <= value <= Fraction(float(high))


@given(boxes(), seeds)
@settings(max_examples=examples(60), deadline=None)
def test_box_is_tight_and_batched_slopes_agree(region, seed):
    rng = np.random.default_rng(seed)
    cells = region.root()
    g = rng.normal(size=(1, 3, region.free.size))
    low = cells.linear_minimum(g)
    exact = -np.sum(np.abs(g) * cells.half[:, None, :], axis=-1)
    assert low.shape == (1, 3)
    np.testing.assert_allclose(low, exact, rtol=1e-12, atol=1e-290)
    np.testing.assert_array_equal(cells.linear_minimum(g[:, 1]), low[:, 1])


@given(seeds, finite_norms, st.integers(2, 30), st.sampled_from([1e-6, 1.0, 1e8]))
@settings(max_examples=examples(60), deadline=None)
def test_whole_ball_is_the_dual_norm(seed, p, f, radius):
    rng = np.random.default_rng(seed)
    g = rng.normal(size=(1, f))
    q = np.inf if p == 1.0 else p / (p - 1.0)
    low = Ball(np.zeros(f), radius, p).root().linear_minimum(g)
    np.testing.assert_allclose(low, -radius * norm(g[0], q), rtol=1e-9)


@given(seeds, finite_norms, st.integers(2, 12))
@settings(max_examples=examples(100), deadline=None)
def test_ball_in_a_domain_closes_the_duality_gap(seed, p, f):
    rng = np.random.default_rng(seed)
    center = rng.normal(size=f)
    room = rng.uniform(0.0, 1.2, size=(2, f))
    region = Ball(center, 1.0, p, domain=(center - room[0], center + room[1]))
    g = rng.normal(size=f)
    cell = region.root()
    low = cell.linear_minimum(g[None, :])[0]
    attained = g @ (region.linear_minimizer(g) - cell.center[0])
    assert low <= attained
    tolerance = 1e-9 if p != 1.001 else 1e-6
    assert attained - low <= tolerance * np.abs(g).sum()


@pytest.mark.parametrize("p", [1.0, 2.0, 3.5])
@pytest.mark.parametrize("seed", range(8))
def test_cell_matches_scipy(p, seed):
    rng = np.random.default_rng(seed)
    f = int(rng.integers(2, 5))
    region = Ball(rng.normal(size=f), 1.0, p)
    x = region.sample(1, rng)[0]
    cell = cell_around(region, x, 3, rng)
    g = rng.normal(size=f)
    low = float(cell.linear_minimum(g[None, :])[0])
    expected = _reference(g, cell, region, x)
    assert low <= expected + 1e-9
    assert abs(low - expected) <= 1e-6 * (np.abs(g).sum())


def _reference(g, cell, region, start):
    """Minimum by linear programming for p = 1, by SLSQP from a feasible point otherwise."""
    lower, upper, c = cell.lower[0], cell.upper[0], cell.center[0]
    f, x0 = len(g), region.center
    if region.norm == 1.0:
        eye, one = np.eye(f), np.ones((1, f))
        rows = np.block([[eye, -eye], [-eye, -eye], [0 * one, one]])
        right = np.r_[x0, -x0, 1.0]
        bounds = [*zip(lower, upper, strict=True), *[(0, None)] * f]
        found = scipy.optimize.linprog(np.r_[g, 0 * g], rows, right, bounds=bounds)
        return found.fun - g @ c
    constraint = {"type": "ineq", "fun": lambda x: 1.0 - np.sum(np.abs(x - x0) ** region.norm)}
    options = {"ftol": 1e-14, "maxiter": 500}
    box = scipy.optimize.Bounds(lower, upper)
    found = scipy.optimize.minimize(
        lambda x: g @ x,
        start,
        jac=lambda _: g,
        method="SLSQP",
        bounds=box,
        constraints=constraint,
        options=options,
    )
    return found.fun - g @ c


@given(seeds, NORMS.filter(np.isfinite), st.integers(2, 6), st.sampled_from([1e-3, 1.0, 1e8]))
@settings(max_examples=examples(100), deadline=None)
def test_every_dual_vector_gives_a_bound(seed, p, f, radius):
    # the statement of gpcert.regions.intersection, for arbitrary v
    rng = np.random.default_rng(seed)
    region = Ball(rng.normal(size=f), radius, p)
    x = region.sample(1, rng)[0]
    cell = cell_around(region, x, int(rng.integers(0, 10)), rng)
    g, v = slopes(rng, f), slopes(rng, f)
    offset = region.center - cell.center
    low = split_bound(g[None], v[None], BoxAndBall(-cell.half, cell.half, offset, radius, p))[0]
    assert Fraction(float(low)) <= dot(g, x, cell.center[0])


@given(seeds, NORMS.filter(np.isfinite), st.integers(2, 6), st.sampled_from([0.5, 8.0, 150.0]))
@settings(max_examples=examples(100), deadline=None)
def test_every_dual_vector_gives_a_bound_with_a_radius_per_feature(seed, p, f, spread):
    rng = np.random.default_rng(seed)
    radii = 10.0 ** rng.uniform(-spread, spread, size=f)
    region = Ball(rng.normal(size=f), radii, p)
    g, v = slopes(rng, f), slopes(rng, f)
    for x in (region.sample(1, rng)[0], region.linear_minimizer(v)):
        cell = cell_around(region, x, int(rng.integers(0, 10)), rng)
        both = BoxAndBall(-cell.half, cell.half, region.center - cell.center, 1.0, p, radii)
        low = split_bound(g[None], v[None], both)[0]
        assert Fraction(float(low)) <= dot(g, x, cell.center[0])


@given(seeds, finite_norms, st.integers(2, 12))
@settings(max_examples=examples(60), deadline=None)
def test_radii_per_feature_are_a_change_of_units(seed, p, f):
    # powers of two change the units exactly: the same bounds, the same members
    rng = np.random.default_rng(seed)
    units = 2.0 ** rng.integers(-20, 20, size=f)
    center, g = rng.normal(size=f), rng.normal(size=f)
    room = rng.uniform(0.0, 1.2, size=(2, f))
    low, high = center - room[0], center + room[1]
    plain = Ball(center, 1.0, p, domain=(low, high))
    scaled = Ball(center * units, units, p, domain=(low * units, high * units))
    np.testing.assert_array_equal(scaled.upper, plain.upper * units)
    bounds = [
        region.root().linear_minimum(slope[None])[0]
        for region, slope in ((plain, g), (scaled, g / units))
    ]
    assert bounds[1] == pytest.approx(bounds[0], rel=1e-12)
    w = rng.uniform(0.1, 2.0, size=f)
    squares = [
        plain.root().squared_norm_maximum(w)[0],
        scaled.root().squared_norm_maximum(w / units**2)[0],
    ]
    assert squares[1] == pytest.approx(squares[0], rel=1e-12)
    tolerance = 1e-9 if p != 1.001 else 1e-6
    minimiser = scaled.linear_minimizer(g / units)
    attained = (g / units) @ (minimiser - scaled.root().center[0])
    assert bounds[1] <= attained <= bounds[1] + tolerance * np.abs(g).sum()


def test_equal_radii_are_one_radius():
    rng = np.random.default_rng(1)
    one, many = (Ball(np.zeros(4), r, 3.0, features=[0, 2, 3]) for r in (0.3, [0.3, 9, 0.3, 0.3]))
    assert many.norm_constraint.unit is None
    assert many.norm_constraint.radius == one.norm_constraint.radius
    g = rng.normal(size=(1, 3))
    assert one.root().linear_minimum(g) == many.root().linear_minimum(g)


@given(balls(radii=st.floats(0.1, 10.0)).filter(lambda ball: np.ptp(ball.radius) < 1e9), seeds)
@settings(max_examples=examples(60), deadline=None)
def test_children_are_never_looser(region, seed):
    rng = np.random.default_rng(seed)
    f = region.free.size
    if f == 0:
        return
    parent = cell_around(region, region.sample(1, rng)[0], int(rng.integers(0, 4)), rng)
    children = parent.split(rng.integers(f, size=1))
    g = rng.normal(size=f)
    whole = parent.linear_minimum(g[None])[0] + g @ parent.center[0]
    parts = children.linear_minimum(np.tile(g, (2, 1))) + children.center @ g
    parts = parts[~children.empty()]
    # the search for the multiplier stops at a relative 1e-13; all else is rounding
    reach = np.broadcast_to(region.radius, region.center.shape)[region.free]
    scale = np.abs(g) @ (np.abs(region.center[region.free]) + reach)
    assert np.all(parts >= whole - 1e-11 * scale)


def test_batched_slopes_over_cells_of_a_ball():
    rng = np.random.default_rng(0)
    cells = Ball(np.zeros(4), 1.0, 2).root()
    for axis in (0, 1, 2):
        cells = cells.split(np.full(len(cells), axis))
    g = rng.normal(size=(8, 3, 4))
    low = cells.linear_minimum(g)
    for m in range(3):
        np.testing.assert_allclose(low[:, m], cells.linear_minimum(g[:, m]), rtol=1e-13)
    np.testing.assert_array_equal(cells.linear_maximum(g), -cells.linear_minimum(-g))


def test_extreme_slopes_do_not_overflow():
    region = Ball(np.zeros(3), 1.0, 3.5, domain=(-0.5, 1.0))
    for scale in (1e-300, 1e300):
        low = region.root().linear_minimum(scale * np.array([[1.0, 2.0, -1.0]]))
        unit = region.root().linear_minimum(np.array([[1.0, 2.0, -1.0]]))
        np.testing.assert_allclose(low / scale, unit, rtol=0.2 if scale < 1 else 1e-9)
    assert region.root().linear_minimum(np.zeros((1, 3)))[0] <= 0.0


@pytest.mark.parametrize("lengths", [[1.0, 1.0], [1e300, 1e300], [1e300, 1e-3], [1e300, 1e-200]])
@pytest.mark.parametrize("norm", [2.0, np.inf])
def test_slopes_over_lengths_that_are_no_floats(lengths, norm):
    """`slope / lengths` underflows, and what that loses meets displacements as large."""
    slope = np.array([[1e-24, 1e-24], [1e-24, 0.0], [0.0, 0.0]])
    cells = Ball(np.zeros(2), 0.5 * min(lengths), norm).root().take(np.zeros(3, dtype=int))
    units = np.array([Fraction(length) for length in lengths])
    found = cells.scaled_minimum(slope, 1.0 / np.asarray(lengths))
    share = Fraction(7, 10) if norm == 2.0 else Fraction(1)
    for g, low in zip(slope, found, strict=True):
        x = [-share * Fraction(0.5 * min(lengths)) * (entry > 0) for entry in g]
        value = sum(
            Fraction(entry) * part / unit for entry, part, unit in zip(g, x, units, strict=True)
        )
        assert Fraction(float(low)) <= value * (1 - Fraction(1, 10**14))
        if lengths[0] == lengths[1] and np.all(g > 0):
            assert low >= 1.02 * float(value)
    batched = cells.scaled_minimum(slope[:, None, :], 1.0 / np.asarray(lengths))
    np.testing.assert_array_equal(batched[:, 0], found)
