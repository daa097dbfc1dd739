"""Boxes that are halved several times in one step: their parts cover them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.search.branch_and_bound import _Search
from gpcert.search.frontier import HALVINGS, Boxes
from gpcert.search.problem import Problem
from gpcert.testing.effort import examples
from tests.search.search_problems import bump, cones, cube


def search_of(count, d, rng):
    """A search with boxes next to each other along the first axis."""
    goal, _ = cones(0, d)
    search = _Search(Problem(bump(d), cube(d), [goal], tol=0.1))
    edges = np.concatenate([[-1.0], np.sort(rng.uniform(-0.9, 0.9, count - 1)), [1.0]])
    low, high = -np.ones((count, d)), np.ones((count, d))
    low[:, 0], high[:, 0] = edges[:-1], edges[1:]
    axes = rng.integers(0, d, (count, 1, HALVINGS))
    search.frontier = search.frontier.replacing(
        np.zeros(1, dtype=int), Boxes(low, high, np.zeros((count, 1)), axes)
    )
    return search


@settings(max_examples=examples(100), deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 3))
def test_parts_cover_their_boxes(seed, count, d):
    rng = np.random.default_rng(seed)
    search = search_of(count, d, rng)
    frontier = search.frontier
    index = rng.permutation(count)
    levels = rng.integers(1, HALVINGS + 1, count)
    cells, parents = search._parts(index, frontier.boxes.axes[index, 0], levels)
    assert np.all(np.bincount(parents, minlength=count) == 2**levels)
    low, high = frontier.boxes.low[index], frontier.boxes.high[index]
    assert np.all((cells.lower >= low[parents]) & (cells.upper <= high[parents]))
    volumes = np.bincount(parents, np.prod(cells.upper - cells.lower, axis=1), count)
    np.testing.assert_allclose(volumes, np.prod(high - low, axis=1), rtol=1e-12)
    points = rng.uniform(-1.0, 1.0, (50, d))
    inside = (points[:, None] >= cells.lower) & (points[:, None] <= cells.upper)
    assert inside.all(axis=2).any(axis=1).all()


@pytest.mark.parametrize("shrink", [0.2, 0.7, 0.99])
def test_hopeless_halves_are_halved_at_once_and_others_are_not(shrink):
    search = search_of(4, 2, np.random.default_rng(0))
    search.shrink = shrink
    search.incumbents._best = [(1.0, np.zeros(2))]
    boxes = search.frontier.boxes
    # gaps of what is allowed, just above it, hopeless, and unknown
    lower = np.array([[0.9], [0.8], [-1e6], [-np.inf]])
    search.frontier = search.frontier.replacing(
        np.arange(4), Boxes(boxes.low, boxes.high, lower, boxes.axes)
    )
    index = np.arange(4)
    levels = search._levels(index, np.zeros(4, dtype=int))
    assert levels.tolist() == [1, 1, HALVINGS, HALVINGS]
