"""Boxes that are halved several times in one step: their parts cover them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.search.state import HALVINGS, Boxes, Branch, Incumbents
from gpcert.testing.effort import examples


def boxes_of(count, d, rng, lower=None):
    """Boxes next to each other along the first axis, each of a question of its own."""
    edges = np.concatenate([[-1.0], np.sort(rng.uniform(-0.9, 0.9, count - 1)), [1.0]])
    low, high = -np.ones((count, d)), np.ones((count, d))
    low[:, 0], high[:, 0] = edges[:-1], edges[1:]
    axes = rng.integers(0, d, (count, 1, HALVINGS))
    lower = np.arange(float(count))[:, None] if lower is None else lower
    return Boxes(np.arange(count), low, high, lower, axes)


@settings(max_examples=examples(100), deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 3))
def test_parts_cover_their_boxes_and_inherit_their_bounds(seed, count, d):
    rng = np.random.default_rng(seed)
    boxes = boxes_of(count, d, rng)
    times = rng.integers(1, HALVINGS + 1, count)
    parts, origin = boxes.parts(boxes.axes[:, 0], times)
    assert np.all(np.bincount(origin, minlength=count) == 2**times)
    assert np.array_equal(parts.question, origin)
    assert np.array_equal(parts.lower, boxes.lower[origin])
    low, high = boxes.low[origin], boxes.high[origin]
    assert np.all((parts.low >= low) & (parts.high <= high))
    volumes = np.bincount(origin, np.prod(parts.high - parts.low, axis=1), count)
    np.testing.assert_allclose(volumes, np.prod(boxes.high - boxes.low, axis=1), rtol=1e-12)
    points = rng.uniform(-1.0, 1.0, (50, d))
    inside = (points[:, None] >= parts.low) & (points[:, None] <= parts.high)
    assert inside.all(axis=2).any(axis=1).all()


def test_boxes_are_cut_where_there_is_a_float_inside():
    low, high = np.array([[2.0**53, 0.0]]), np.array([[2.0**53 + 2.0, 1.0]])
    axes = np.zeros((1, 1, HALVINGS), dtype=int)
    boxes = Boxes(np.zeros(1, dtype=int), low, high, np.zeros((1, 1)), axes)
    assert boxes.splittable().tolist() == [True]
    halves = boxes.halves(np.zeros(1, dtype=int))
    assert halves.high[:, 1].tolist() == [0.5, 1.0]
    assert halves.low[:, 1].tolist() == [0.0, 0.5]


@pytest.mark.parametrize("shrink", [0.2, 0.7, 0.99])
def test_hopeless_halves_are_halved_at_once_and_others_are_not(shrink):
    # gaps of what is allowed, just above it, hopeless, and unknown
    lower = np.array([[0.9], [0.8], [-1e6], [-np.inf]])
    boxes = boxes_of(4, 2, np.random.default_rng(0), lower)
    branch = Branch(np.arange(4), boxes, np.zeros(4, dtype=int), np.ones((4, 1), dtype=bool))
    known = Incumbents(np.ones((4, 1)), np.zeros((4, 1, 2)))
    times = branch.times(known, np.full((4, 1), 0.9), shrink, 512)
    assert times.tolist() == [1, 1, HALVINGS, HALVINGS]


def test_the_farthest_from_their_answers_come_first():
    lower = np.array([[0.0, 1.0], [-3.0, 1.0], [0.5, -5.0], [-np.inf, 2.0]])
    boxes = boxes_of(4, 1, np.random.default_rng(0), lower)
    needed = np.array([[0.9, 0.9], [0.9, 0.9], [0.9, -4.0], [0.9, 0.9]])
    open_ = lower < needed
    branch = Branch.most_urgent(boxes, open_, needed, 3)
    assert branch.index.tolist() == [3, 1, 2]
    assert branch.goal.tolist() == [0, 0, 1]
    open_[1] = False
    assert Branch.most_urgent(boxes, open_, needed, 3).index.tolist() == [3, 2, 0]
