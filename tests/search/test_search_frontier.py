"""The frontier never forgets a bound; incumbents are points of their questions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.regions import Ball
from gpcert.search import Budget, Problem, StopReason, solve
from gpcert.search.questions import DecidedLevel, ManyBoxes, OneRegion
from gpcert.search.state import CHOICE, HALVINGS, Boxes, Frontier, Incumbents
from gpcert.testing.effort import examples
from tests.search.search_problems import ConesGoal, bump, cones, cube


def boxes_of(lower, question=None):
    """Intervals next to each other, with bounds (n, G)."""
    lower = np.asarray(lower, dtype=float)
    edges = np.linspace(-1, 1, len(lower) + 1)[:, None]
    axes = np.zeros((*lower.shape, HALVINGS), dtype=np.int32)
    question = np.zeros(len(lower), dtype=int) if question is None else np.asarray(question)
    return Boxes(question, edges[:-1], edges[1:], lower, axes)


def filled(lower, question=None, record=False):
    lower = np.asarray(lower, dtype=float)
    Q = 1 if question is None else max(question) + 1
    whole = np.full((Q, 1), 1.0)
    start = Frontier.whole(-whole, whole, np.zeros(lower.shape[1]), record)
    return start.replacing(np.arange(Q), boxes_of(lower, question))


def test_an_empty_frontier_bounds_nothing_below_infinity():
    frontier = filled(np.empty((0, 3)))
    assert len(frontier.boxes) == 0
    assert frontier.bytes == 0
    np.testing.assert_array_equal(frontier.bounds(), [[np.inf] * 3])


def test_keep_remembers_what_it_closes():
    frontier = filled([[1.0, 5.0], [2.0, 0.5], [3.0, 4.0]])
    np.testing.assert_array_equal(frontier.bounds(), [[1.0, 0.5]])
    frontier = frontier.keeping(np.array([False, True, True]))
    np.testing.assert_array_equal(frontier.settled, [[1.0, 5.0]])
    np.testing.assert_array_equal(frontier.bounds(), [[1.0, 0.5]])
    frontier = frontier.keeping(np.array([False, True]))
    np.testing.assert_array_equal(frontier.settled, [[1.0, 0.5]])
    np.testing.assert_array_equal(frontier.bounds(), [[1.0, 0.5]])
    frontier = frontier.keeping(np.array([False]))
    assert len(frontier.boxes) == 0
    np.testing.assert_array_equal(frontier.bounds(), [[1.0, 0.5]])


def test_bounds_are_those_of_each_question():
    frontier = filled([[1.0], [2.0], [3.0], [0.5]], question=[0, 1, 1, 0])
    np.testing.assert_array_equal(frontier.bounds(), [[0.5], [2.0]])
    frontier = frontier.keeping(np.array([True, False, True, False]))
    np.testing.assert_array_equal(frontier.settled, [[0.5], [2.0]])
    np.testing.assert_array_equal(frontier.bounds(), [[0.5], [2.0]])


def test_replace_takes_all_children_in():
    frontier = filled([[1.0], [2.0], [3.0]])
    low, high = np.array([[-1.0], [-0.8]]), np.array([[-0.8], [-1 / 3]])
    axes = np.zeros((2, 1, HALVINGS), dtype=np.int32)
    children = Boxes(np.zeros(2, int), low, high, np.array([[1.5], [1.25]]), axes)
    frontier = frontier.replacing(np.array([0]), children)
    assert len(frontier.boxes) == 4
    np.testing.assert_array_equal(frontier.bounds(), [[1.25]])
    assert sorted(frontier.boxes.lower[:, 0]) == [1.25, 1.5, 2.0, 3.0]
    assert float((frontier.boxes.high - frontier.boxes.low).sum()) == pytest.approx(2.0)
    # and a copy, and what it takes to choose
    assert frontier.bytes == 2 * 4 * (8 + 8 + 8 + 8 + 4 * HALVINGS) + 4 * CHOICE


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.floats(-10, 10), st.floats(-10, 10)),
        min_size=1,
        max_size=6,
    ),
    st.lists(st.tuples(st.sampled_from(["keep", "split"]), st.integers(0, 63)), max_size=8),
)
def test_bounds_never_exceed_what_was_ever_known(rows, steps):
    """Any order of closing and splitting, with children better by 1: the minimum stays."""
    lowers, question = np.array([row[1:] for row in rows]), np.array([row[0] for row in rows])
    frontier = filled(lowers, question, record=True)
    floor = frontier.bounds()
    for kind, bits in steps:
        n = len(frontier.boxes)
        mask = np.array([bool(bits >> (i % 6) & 1) for i in range(n)], dtype=bool)
        before = frontier.bounds()
        if kind == "keep":
            frontier = frontier.keeping(mask)
            np.testing.assert_array_equal(frontier.bounds(), before)
        else:
            index = np.flatnonzero(mask)
            parts, origin = frontier.boxes.take(index).parts(
                frontier.boxes.axes[index, 0], np.ones(len(index), dtype=int)
            )
            lower = parts.lower + np.arange(len(origin))[::-1, None]
            children = Boxes(parts.question, parts.low, parts.high, lower, parts.axes)
            parents = frontier.boxes.take(index)
            frontier = frontier.replacing(index, children)
            assert len(frontier.boxes) == n + len(index)
            assert np.all(frontier.bounds() >= before)
            # the last child is as good as its parent: it must be the one that bounds
            if len(index):
                last = parents.question[-1]
                least = lower[parts.question == last].min(axis=0)
                assert np.all(frontier.bounds()[last] <= least)
        assert np.all(frontier.bounds() >= floor)
        leaves = frontier.leaves()
        lengths = np.bincount(leaves.question, (leaves.high - leaves.low)[:, 0], len(floor))
        wanted = np.bincount(question, np.full(len(rows), 2.0 / len(rows)), len(floor))
        np.testing.assert_allclose(lengths, wanted)
        least = np.full_like(floor, np.inf)
        np.minimum.at(least, leaves.question, leaves.lower)
        np.testing.assert_array_equal(least, frontier.bounds())


def test_incumbents_keep_the_smallest_value_of_each_question_and_goal():
    known = Incumbents.unknown(np.array([np.inf, 4.0]), 2, 1)
    assert np.isnan(known.points).all()
    question, points = np.array([0, 1, 0]), np.array([[0.1], [0.2], [0.3]])
    better = known.improved(1, question, np.array([3.0, 9.0, 2.0]), points)
    np.testing.assert_array_equal(better.values, [[np.inf, 2.0], [np.inf, 4.0]])
    np.testing.assert_array_equal(better.points[0], [[np.nan], [0.3]])
    assert np.isnan(better.points[1]).all()
    same = better.improved(1, question, np.array([3.0, 9.0, 2.5]), points)
    np.testing.assert_array_equal(same.values, better.values)
    np.testing.assert_array_equal(same.points, better.points)
    np.testing.assert_array_equal(known.values, [[np.inf, 4.0]] * 2)  # records do not change


@pytest.mark.parametrize("boxes", [1, 2, 5, 40])
def test_attained_values_are_those_of_points_of_the_region(boxes):
    """Centres of boxes outside a ball are none, nor are points at which bounds are attained."""
    goal, _ = cones(0, d=2)
    disk = Ball([0.3, 0.0], 0.2, norm=2)
    budget = Budget(seconds=None, boxes=boxes)
    found = solve(Problem(bump(2), disk, [goal], tol=0.0, budget=budget))
    assert found.reason is StopReason.BOXES
    (least,) = found.goals
    assert disk.contains(least.point)
    assert goal.value(least.point[None])[0] == pytest.approx(least.upper, abs=1e-9)


def test_smaller_values_outside_a_ball_are_not_taken():
    """The goal is least at a corner of the box around the ball, outside of it."""
    disk = Ball([0.3, 0.0], 0.2, norm=2)
    goal = ConesGoal(np.array([[0.5, 0.2]]), np.array([0.0]))
    budget = Budget(seconds=None, boxes=60)
    (least,) = solve(Problem(bump(2), disk, [goal], tol=0.0, budget=budget)).goals
    truth = 0.4 - 0.2 * np.sqrt(2.0)
    assert disk.contains(least.point)
    assert least.lower <= truth <= least.upper


def test_a_bound_equal_to_the_level_decides_nothing():
    rule = DecidedLevel(0.25)
    needed = rule.needed(np.zeros((2, 1)), np.array([[0.25], [0.2]]))
    assert needed[0, 0] > 0.25
    assert needed[1, 0] == -np.inf  # refuted


def test_what_is_offered_lies_in_the_question():
    rng = np.random.default_rng(0)
    disk = Ball([0.3, 0.0], 0.2, norm=2, domain=([0.0, -0.1], [0.45, 0.1]))
    points, question = rng.uniform(-1.0, 1.0, (60, 2)), np.arange(60) % 3
    one = OneRegion(disk)
    assert np.array_equal(one.contains(question, points), disk.contains(points))
    assert disk.contains(one.project(question, points)).all()
    centers = np.array([[0.3, 0.0], [-0.2, 0.1], [0.0, 0.0]])
    balls = disk.norm_constraint._replace(center=centers)
    many = ManyBoxes(centers - 0.1, centers + 0.1, centers - 0.05, centers + 0.05, balls)
    assert many.contains(question, many.project(question, points)).all()
    inside = np.flatnonzero(many.contains(question, points))
    away = points[inside] - centers[question[inside]]
    assert np.all(np.abs(away) <= 0.05 + 1e-15)
    assert not many.contains(question, centers[question] + [0.06, 0.0]).any()
    fixed = OneRegion(Ball([0.25, 0.0], 0.5, features=[1]))
    assert fixed.full(np.array([[0.4]])).tolist() == [[0.25, 0.4]]
    assert cube(2).contains(OneRegion(cube(2)).project(question, 9.0 * points)).all()
