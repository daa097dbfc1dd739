from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.numerics.arrays import backend_from_name, namespace, to_numpy
from gpcert.regions import Ball, Box, Cells
from gpcert.testing.effort import examples
from tests.regions.region_strategies import cell_around, regions

seeds = st.integers(0, 2**32)


@given(regions(), seeds, st.integers(0, 60))
@settings(max_examples=examples(100), deadline=None)
def test_center_and_half_enclose_the_cell(region, seed, splits):
    rng = np.random.default_rng(seed)
    cell = cell_around(region, region.sample(1, rng)[0], splits, rng)
    rows = zip(cell.lower[0], cell.upper[0], cell.center[0], cell.half[0], strict=True)
    for low, high, c, h in rows:
        assert low <= c <= high
        assert Fraction(float(c)) - Fraction(float(h)) <= Fraction(float(low))
        assert Fraction(float(c)) + Fraction(float(h)) >= Fraction(float(high))
        assert (h == 0) == (low == high)


@given(regions(), seeds)
@settings(max_examples=examples(60), deadline=None)
def test_children_cover_their_parents_exactly(region, seed):
    rng = np.random.default_rng(seed)
    f = region.free.size
    cells = region.root()
    for _ in range(3 if f else 0):
        axis = rng.integers(f, size=len(cells))
        parent, cells = cells, cells.split(axis)
        n, rows = len(parent), np.arange(len(parent))
        assert len(cells) == 2 * n
        cut = cells.upper[rows, axis]
        assert np.array_equal(cut, cells.lower[n + rows, axis])
        assert np.all((parent.lower[rows, axis] <= cut) & (cut <= parent.upper[rows, axis]))
        strict = (parent.lower[rows, axis] < cut) & (cut < parent.upper[rows, axis])
        assert np.array_equal(parent.can_split(axis), strict)
        assert np.array_equal(np.minimum(cells.lower[:n], cells.lower[n:]), parent.lower)
        assert np.array_equal(np.maximum(cells.upper[:n], cells.upper[n:]), parent.upper)
        others = np.arange(f)[None, :] != axis[:, None]
        assert np.array_equal(cells.upper[:n][others], parent.upper[others])
        assert np.array_equal(cells.lower[n:][others], parent.lower[others])


def test_can_split_ends_at_neighbouring_floats():
    box = Box([1.0, 0.0], [1.0 + 2.0**-51, 2.0**-60])
    root = box.root()
    assert root.can_split().tolist() == [True]
    children = root.split(np.array([0]))
    assert children.can_split().tolist() == [False, False]
    assert children.can_split(np.array([1, 1])).tolist() == [True, True]
    assert Box([1.0], [1.0]).root().can_split().tolist() == [False]


def test_take_concatenate_and_full_points():
    region = Ball([0.0, 5.0, 0.0], 1.0, features=[0, 2])
    cells = region.root().split(np.array([0])).split(np.array([1, 0]))
    both = Cells.concatenate([cells.take(np.array([0, 3])), cells.take(np.arange(4) == 1)])
    assert np.array_equal(both.lower, cells.lower[[0, 3, 1]])
    full = cells.points_full(cells.center)
    assert full.shape == (4, 3)
    assert np.all(full[:, 1] == 5.0)
    assert np.array_equal(full[:, [0, 2]], cells.center)
    assert np.array_equal(cells.widths, cells.upper - cells.lower)


@given(regions(), seeds, st.integers(0, 30))
@settings(max_examples=examples(150), deadline=None)
def test_a_cell_with_a_member_is_never_called_empty(region, seed, splits):
    rng = np.random.default_rng(seed)
    x = region.linear_minimizer(rng.normal(size=region.dim))
    assert not cell_around(region, x, splits, rng).empty()[0]


def test_far_corners_of_a_ball_are_empty():
    for p, expected in ((1.0, 2), (2.0, 10), (np.inf, 16)):
        cells = Ball(np.zeros(2), 1.0, p, domain=(0.0, 1.0)).root()
        for axis in (0, 1, 0, 1):
            cells = cells.split(np.full(len(cells), axis))
        near = np.linalg.norm(cells.lower, p, axis=1)
        assert np.array_equal(cells.empty(), near > 1.0 + 1e-12)
        assert np.sum(near < 1.0) >= expected


def test_a_point_region_has_zero_minimum():
    root = Ball([1.0, 2.0], 0.0, 2).root()
    assert root.lower.shape == (1, 0)
    assert root.linear_minimum(np.zeros((1, 0))).tolist() == [0.0]
    assert root.linear_minimum(np.zeros((1, 3, 0))).tolist() == [[0.0, 0.0, 0.0]]
    assert root.squared_norm_maximum(np.zeros(0)).tolist() == [0.0]
    assert root.empty().tolist() == [False]


@pytest.mark.parametrize("backend", ["numpy", "torch"])
@pytest.mark.parametrize("norm", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("radius", [0.7, [0.3, 0.9]], ids=["one", "each"])
def test_cells_of_many_balls_are_those_of_each(norm, radius, backend):
    """Taken, split and put together, cells keep their balls: all bounds are those of a batch of the
    ball's own cells."""
    if backend == "torch":
        pytest.importorskip("torch")
    place = backend_from_name(backend)
    rng = np.random.default_rng(int(norm))
    balls = [Ball(x, radius, norm=norm, domain=(-1.0, 1.0)) for x in rng.uniform(-1, 1, (5, 2))]
    low, high = (np.stack([getattr(b, end) for b in balls]) for end in ("lower", "upper"))
    constraint = balls[0].norm_constraint
    own = constraint._replace(center=place.asarray(np.stack([b.center for b in balls])))
    whole = Box(low.min(axis=0), high.max(axis=0))
    cells = Cells(whole, place.asarray(low), place.asarray(high), balls=own)
    order = np.array([4, 0, 3, 1, 2])
    shared = Cells.concatenate(
        [cells.take(namespace(own.center).asarray(part)) for part in (order[:2], order[2:])]
    )
    shared = shared.split(np.zeros(5, dtype=int))
    g = rng.normal(size=(10, 2))
    w = np.array([1.0, 0.4])
    found = [shared.linear_minimum(place.asarray(g)), shared.squared_norm_maximum(place.asarray(w))]
    found += [shared.empty(), shared.center]
    for k, ball in enumerate(balls[i] for i in order):
        alone = ball.root().split(np.array([0]))
        rows = [k, k + 5]
        wanted = [alone.linear_minimum(g[rows]), alone.squared_norm_maximum(w)]
        for one, other in zip(found, [*wanted, alone.empty(), alone.center], strict=True):
            np.testing.assert_allclose(to_numpy(one)[rows], other, rtol=1e-13)
