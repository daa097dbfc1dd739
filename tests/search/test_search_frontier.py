"""The frontier never forgets a bound; incumbents are points of the region."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.enclosures import Evaluation, LocalPosterior
from gpcert.numerics.arrays import Backend
from gpcert.regions import Ball
from gpcert.search.frontier import HALVINGS, Boxes, Frontier, Incumbents
from gpcert.search.problem import Problem
from gpcert.testing.effort import examples
from tests.search.search_problems import bump, cones, cube


def filled(lower):
    lower = np.asarray(lower, dtype=float)
    frontier = empty(cube(1), lower.shape[1])
    edges = np.linspace(-1, 1, len(lower) + 1)[:, None]
    axes = np.zeros((*lower.shape, HALVINGS), dtype=np.int64)
    frontier = frontier.replacing(np.empty(0, dtype=int), Boxes(edges[:-1], edges[1:], lower, axes))
    return frontier


def empty(region, goals):
    """No boxes and nothing settled."""
    whole = Frontier.whole(region, np.zeros(goals))
    return Frontier(region, Boxes(*(part[:0] for part in whole.boxes)), whole.settled)


def test_empty_frontier_bounds_nothing_below_infinity():
    frontier = empty(cube(2), 3)
    assert len(frontier) == 0
    assert frontier.bytes == 0
    np.testing.assert_array_equal(frontier.bounds(), [np.inf] * 3)


def test_keep_remembers_what_it_sets_aside():
    frontier = filled([[1.0, 5.0], [2.0, 0.5], [3.0, 4.0]])
    np.testing.assert_array_equal(frontier.bounds(), [1.0, 0.5])
    frontier = frontier.keeping(np.array([False, True, True]))
    np.testing.assert_array_equal(frontier.settled, [1.0, 5.0])
    np.testing.assert_array_equal(frontier.bounds(), [1.0, 0.5])
    frontier = frontier.keeping(np.array([False, True]))
    np.testing.assert_array_equal(frontier.settled, [1.0, 0.5])
    frontier = frontier.keeping(np.array([False]))
    assert len(frontier) == 0
    np.testing.assert_array_equal(frontier.bounds(), [1.0, 0.5])


def test_replace_takes_all_children_in():
    frontier = filled([[1.0], [2.0], [3.0]])
    low, high = np.array([[-1.0], [-0.8]]), np.array([[-0.8], [-1 / 3]])
    children = Boxes(low, high, np.array([[1.5], [1.25]]), np.zeros((2, 1, HALVINGS), int))
    frontier = frontier.replacing(np.array([0]), children)
    assert len(frontier) == 4
    np.testing.assert_array_equal(frontier.bounds(), [1.25])
    assert sorted(frontier.boxes.lower[:, 0]) == [1.25, 1.5, 2.0, 3.0]
    cells = frontier.cells(np.arange(4), Backend())
    assert float(cells.widths.sum()) == pytest.approx(2.0)
    assert frontier.bytes == 4 * (8 + 8 + 8 + 8 * HALVINGS)


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(st.lists(st.floats(-10, 10), min_size=2, max_size=2), min_size=1, max_size=6),
    st.lists(st.tuples(st.sampled_from(["keep", "split"]), st.integers(0, 63)), max_size=8),
)
def test_bounds_never_exceed_what_was_ever_known(lowers, steps):
    """Any order of setting aside and splitting, with children better by 1: the minimum stays."""
    frontier = filled(lowers)
    floor = np.min(np.asarray(lowers), axis=0)
    for kind, bits in steps:
        mask = np.array([bool(bits >> (i % 6) & 1) for i in range(len(frontier))], dtype=bool)
        if kind == "keep":
            known = frontier.bounds()
            frontier = frontier.keeping(mask)
            np.testing.assert_array_equal(frontier.bounds(), known)
        else:
            index = np.flatnonzero(mask)
            twice = np.concatenate([index, index])
            children = Boxes(
                frontier.boxes.low[twice],
                frontier.boxes.high[twice],
                frontier.boxes.lower[twice] + np.arange(2 * len(index))[::-1, None],
                frontier.boxes.axes[twice],
            )
            parents = frontier.boxes.lower[index].min(axis=0, initial=np.inf)
            before, count = frontier.bounds(), len(frontier)
            frontier = frontier.replacing(index, children)
            assert len(frontier) == count + len(index)
            assert np.all(frontier.bounds() >= before)
            # the last child is as good as its parent: it must be the one that bounds
            if len(index) and np.array_equal(before, parents):
                assert np.all(frontier.bounds() <= children[2].min(axis=0))
        assert np.all(frontier.bounds() >= floor)


def test_incumbents_only_take_points_of_the_region():
    goal, _ = cones(0, d=2)
    disk = Ball([0.0, 0.0], 0.5, norm=2)
    local = LocalPosterior.build(bump(2), disk, Backend(), variance=False)
    incumbents = Incumbents(Problem(bump(2), disk, [goal]))
    incumbents.bind(local, Backend())
    assert incumbents.values[0] == np.inf
    corner = np.array([[0.5, 0.5]])
    incumbents.offer_points(corner, [0])
    assert incumbents.values[0] == np.inf
    inside = np.array([[0.1, 0.1], [0.5, 0.5], [-0.3, 0.2]])
    incumbents.offer_points(inside, [0])
    values = goal.value(inside)[[0, 2]]
    assert incumbents.values[0] == pytest.approx(values.min(), abs=1e-9)
    best = incumbents.values[0]
    incumbents.offer_points(inside[[int(values.argmax()) * 2]], [0])
    assert incumbents.values[0] == best
    assert disk.contains(incumbents.points[0])


def test_centres_outside_a_ball_are_not_incumbents():
    goal, _ = cones(0, d=2)
    disk = Ball([0.0, 0.0], 0.5, norm=2)
    local = LocalPosterior.build(bump(2), disk, Backend(), variance=False)
    cells = disk.root()
    for _ in range(6):
        cells = cells.split(np.arange(len(cells)) % 2)
    outside = ~disk.contains(cells.points_full(cells.center))
    assert outside.any()
    incumbents = Incumbents(Problem(bump(2), disk, [goal]))
    incumbents.bind(local, Backend())
    incumbents.offer_cells(Evaluation(local, cells.take(np.flatnonzero(outside))), [0])
    assert incumbents.values[0] == np.inf
    incumbents.offer_cells(Evaluation(local, cells), [0])
    assert disk.contains(incumbents.points[0])
    inside = cells.points_full(cells.center)[~outside]
    assert incumbents.values[0] == pytest.approx(goal.value(inside).min(), abs=1e-9)
