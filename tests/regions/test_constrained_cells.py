"""Cells of polytopes, discrete regions and unions: what they shrink to, and minima over them."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.numerics.arrays import to_numpy
from gpcert.regions import Ball, Box, Cells, Discrete, Polytope, Union
from gpcert.regions.linear_constraints import LinearConstraints
from gpcert.testing.effort import examples
from tests.regions.constrained_strategies import constrained, exactly_in, random_polytope
from tests.regions.region_strategies import dot, weighted_square

seeds = st.integers(0, 2**32)


def random_cells(region, rng, splits=6):
    """The cells of some rounds of contracting and splitting, some of them cut at random."""
    cells = region.root()
    for _ in range(splits if len(region.free) else 0):
        cells, _ = cells.feasible()
        cells = cells.take(rng.permutation(len(cells))[:20])
        axis = rng.integers(0, len(region.free), len(cells))
        cells = Cells.concatenate([cells, cells.split(axis)])
    return cells


def holders(cells, x):
    """The numbers of the cells that hold the free coordinates of a point."""
    free = x[cells.region.free]
    return np.flatnonzero(np.all((cells.lower <= free) & (free <= cells.upper), axis=1))


@given(constrained(), seeds)
@settings(max_examples=examples(150), deadline=None)
def test_points_are_members_in_exact_arithmetic(region, seed):
    rng = np.random.default_rng(seed)
    X = [
        region.center[None],
        region.sample(3, rng),
        region.project(rng.normal(size=(3, region.dim))),
    ]
    X.append(region.linear_minimizer(rng.normal(size=(2, region.dim))))
    for x in np.concatenate(X):
        assert bool(region.contains(x))
        assert exactly_in(region, x)
        assert np.all(region.lower <= x)
        assert np.all(x <= region.upper)


@given(constrained(), seeds)
@settings(max_examples=examples(150), deadline=None)
def test_contracting_loses_no_point(region, seed):
    rng = np.random.default_rng(seed)
    cells = random_cells(region, rng)
    smaller, empty = cells.contract()
    points = np.concatenate([region.center[None], region.sample(4, rng)])
    points = np.concatenate([points, region.linear_minimizer(rng.normal(size=(2, region.dim)))])
    for x in points:
        free = x[region.free]
        for k in holders(cells, x):
            assert not empty[k]
            assert np.all(smaller.lower[k] <= free)
            assert np.all(free <= smaller.upper[k])
    assert np.all(smaller.lower <= smaller.upper)
    assert np.all(smaller.lower[~empty] >= cells.lower[~empty] - 1e-12 * abs(cells.lower[~empty]))


@given(constrained(), seeds)
@settings(max_examples=examples(150), deadline=None)
def test_bounds_hold_at_every_member_in_exact_arithmetic(region, seed):
    rng = np.random.default_rng(seed)
    cells = random_cells(region, rng)
    f = len(region.free)
    g = rng.normal(size=(len(cells), 2, f)) * 10.0 ** rng.integers(-8, 8, size=(len(cells), 2, f))
    weights = rng.uniform(0.0, 2.0, f)
    low, square = cells.linear_minimum(g), cells.squared_norm_maximum(weights)
    points = np.concatenate(
        [region.sample(3, rng), region.linear_minimizer(rng.normal(size=(2, region.dim)))]
    )
    for x in points:
        free = x[region.free]
        for k in holders(cells, x)[:8]:
            for m in range(2):
                assert Fraction(float(low[k, m])) <= dot(g[k, m], free, cells.center[k])
            assert weighted_square(weights, free, cells.center[k]) <= Fraction(float(square[k]))


@given(seeds)
@settings(max_examples=examples(100), deadline=None)
def test_any_multipliers_give_a_bound(seed):
    """Also those of infinite ends, of the wrong sign or far too large."""
    rng = np.random.default_rng(seed)
    region = random_polytope(rng, int(rng.integers(1, 5)))
    constraints = LinearConstraints(region.A, region.low, region.high)
    cells = Cells(Box(region.lower, region.upper), region.lower[None], region.upper[None])
    g = rng.normal(size=(1, region.dim))
    y = rng.normal(size=(1, len(region.A))) * 10.0 ** rng.integers(-300, 300)
    with np.errstate(all="ignore"):
        bound = float(constraints.dual_bound(g, y, *constraints.relative(cells))[0])
    for x in region.sample(3, rng):
        assert bound == -np.inf or Fraction(bound) <= dot(g[0], x, cells.center[0])


@pytest.mark.parametrize("seed", range(30))
def test_one_constraint_is_minimised_exactly(seed):
    """As by a linear program: the dual has no gap."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 6))
    a, low, high = rng.normal(size=d), -rng.random(d), rng.random(d)
    region = Polytope((low, high), (a, "<=", float(a @ (0.5 * low + 0.5 * high))))
    cells = Cells(region, region.lower[None], region.upper[None])
    g = rng.normal(size=(1, d))
    least = scipy.optimize.linprog(
        g[0], region.A, region.high, bounds=list(zip(low, high, strict=True))
    ).fun
    found = cells.linear_minimum(g)[0] + g[0] @ cells.center[0]
    np.testing.assert_allclose(found, least, rtol=1e-9, atol=1e-9)


def test_a_mixture_is_nearly_exact_with_several_constraints():
    rng = np.random.default_rng(3)
    total = ([1, 1, 1, 1], "==", 1.0)
    region = Polytope(
        ([0] * 4, [1] * 4), total, ([1, -1, 0, 0], ">=", 0.0), ([0, 0, 2, 1], "<=", 1)
    )
    g = rng.normal(size=(200, 4))
    cells = Cells(region, np.tile(region.lower, (200, 1)), np.tile(region.upper, (200, 1)))
    found = cells.linear_minimum(g) + np.sum(g * cells.center, axis=1)
    rows, ends = np.array([[-1, 1, 0, 0], [0, 0, 2, 1]]), [0, 1]
    least = [
        scipy.optimize.linprog(row, rows, ends, [[1] * 4], [1], bounds=[(0, 1)] * 4).fun
        for row in g
    ]
    assert np.all(found <= np.array(least) + 1e-9)
    assert np.median(np.array(least) - found) < 0.05


def test_cells_of_integers_hold_integers_and_are_cut_between_them():
    region = Discrete(Box([-0.5, 0.0], [3.2, 1.0]), integers=[0])
    cells = region.root()
    assert cells.lower.tolist() == [[0.0, 0.0]]
    assert cells.upper.tolist() == [[3.0, 1.0]]
    halves, keep = cells.split(np.array([0])).feasible()
    assert keep.tolist() == [0, 1]
    assert sorted(zip(halves.lower[:, 0], halves.upper[:, 0], strict=True)) == [(0, 1), (2, 3)]


def test_cells_of_values_are_cut_between_them():
    region = Discrete(Box([0.0], [10.0]), values={0: [1, 2, 9]})
    halves, _ = region.root().split(np.array([0])).feasible()
    assert sorted(zip(halves.lower[:, 0], halves.upper[:, 0], strict=True)) == [(1, 2), (9, 9)]


def test_a_cell_between_the_parts_of_a_union_is_empty():
    region = Union(Box([0.0], [1.0]), Box([3.0], [4.0]))
    cells = Cells(region, np.array([[1.5], [0.5], [0.5]]), np.array([[2.5], [2.0], [3.5]]))
    smaller, empty = cells.contract()
    assert empty.tolist() == [True, False, False]
    assert smaller.lower[1:].tolist() == [[0.5], [0.5]]
    assert smaller.upper[1:].tolist() == [[1.0], [3.5]]


REGIONS = [
    Polytope(([0.0, 0, 0], [1, 1, 1]), ([1, 1, 1], "==", 1.0), ([1, -1, 0], ">=", 0.1)),
    Discrete(Box([0.0, 0, 0], [4, 4, 1]), integers=[0], values={1: [0.5, 1.5, 3.0]}),
    Discrete(Ball([0.0, 0, 0], 2.5, 2), integers=[0, 1]),
    Union(Box([0.0, 0, 0], [1, 1, 1]), Ball([3.0, 0, 0], 1.0, 2)),
]


@pytest.mark.parametrize("region", REGIONS, ids=lambda region: region.kind)
def test_torch_agrees_with_numpy(region):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    here, there = region.root(), region.root("torch:cpu")
    for axis in (0, 1):
        here = here.split(np.full(len(here), axis))
        there = there.split(torch.full((len(there),), axis))
    pairs = list(zip(here.contract(), there.contract(), strict=True))
    g = rng.normal(size=(len(here), 2, 3))
    for a, b in [
        (pairs[0][0].lower, pairs[0][1].lower),
        (pairs[0][0].upper, pairs[0][1].upper),
        pairs[1],
        (here.linear_minimum(g), there.linear_minimum(torch.from_numpy(g))),
        (here.squared_norm_maximum(np.ones(3)), there.squared_norm_maximum(torch.ones(3))),
    ]:
        np.testing.assert_allclose(to_numpy(b), a, rtol=1e-12, atol=1e-14)
