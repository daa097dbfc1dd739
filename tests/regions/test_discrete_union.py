"""Discrete regions against enumeration, and unions."""

import itertools

import numpy as np
import pytest

from gpcert.errors import InputError
from gpcert.regions import Ball, Box, Discrete, Polytope, Union


def all_points(region):
    """Every point of a region whose features all have values."""
    grids = [
        region.values[j] if j in region.values else np.arange(np.ceil(low), high + 1)
        for j, (low, high) in enumerate(zip(region.lower, region.upper, strict=True))
    ]
    X = np.array(list(itertools.product(*grids)))
    return X[region.contains(X)]


def random_region(seed):
    """Whole numbers and values in a box, a ball or a polytope."""
    rng = np.random.default_rng(seed)
    center = 3.0 * rng.normal(size=3)
    base = [
        Box(center - 2.5, center + 2.5),
        Ball(center, 2.5, float(rng.choice([1.0, 2.0]))),
        Polytope((center - 3.5, center + 3.5), (rng.integers(-2, 3, 3), "<=", 1.0)),
    ][seed % 3]
    return Discrete(base, [0, 1], {2: np.unique(np.rint(2 * center[2] + rng.normal(size=5)) / 2)})


@pytest.mark.parametrize("seed", range(30))
def test_what_is_left_of_cells_are_the_points(seed):
    """Halved until each holds one point, cells hold every point once, and nothing else."""
    region = random_region(seed)
    points, cells = all_points(region), region.root()
    for _ in range(12):
        cells, _ = cells.feasible()
        if not len(region.free):
            break
        one = np.all(cells.lower == cells.upper, axis=1)
        axis = np.argmax(cells.widths, axis=1)
        cells = type(cells).concatenate([cells.take(one), cells.take(~one).split(axis[~one])])
    cells, _ = cells.feasible()
    left = np.unique(cells.points_full(cells.center), axis=0)
    left = left[region.contains(left)]
    assert np.array_equal(left, np.unique(points, axis=0))
    assert bool(region.contains(region.center))


def test_an_empty_set_of_integers_is_proved_box_by_box():
    """No whole numbers satisfy 2a + 2b = 5, though every real relaxation has points."""
    even = Polytope(([0, 0], [9, 9]), ([2, 2], "==", 5.0))
    with pytest.raises(InputError, match=r"the region is empty: .*box by box"):
        Discrete(even, [0, 1])
    assert Discrete(Polytope(([0, 0], [9, 9]), ([2, 1], "==", 5.0)), [0, 1]).center is not None


def test_integers_of_a_mixture_are_found():
    """Rounding breaks the sum: a neighbouring value mends it."""
    total = Polytope(([0] * 4, [10] * 4), ([1] * 4, "==", 10.0))
    region = Discrete(total, [0, 1, 2])
    X = region.project(np.random.default_rng(0).uniform(0, 10, (50, 4)))
    assert region.contains(X).all()
    assert len(np.unique(X, axis=0)) > 30


def test_projections_go_to_the_nearest_value():
    region = Discrete(Box([0.0, 0.0], [9.0, 1.0]), [0])
    assert region.project([[3.4, 2.0], [11.0, 0.5]]).tolist() == [[3.0, 1.0], [9.0, 0.5]]


def test_a_union_is_where_any_of_its_parts_is():
    parts = [Ball([0.0, 0.0], 1.0, 2), Box([2.0, 2.0], [3.0, 2.0]), Box([-1.0, 0.5], [0.0, 2.0])]
    region = Union(*parts)
    X = np.random.default_rng(0).uniform(-2, 4, (500, 2))
    X = np.concatenate([X, region.sample(100, 0)])
    inside = np.any([part.contains(X) for part in parts], axis=0)
    assert np.array_equal(region.contains(X), inside)
    assert region.contains(region.project(X)).all()
    assert region.lower.tolist() == [-1.0, -1.0]
    assert region.linear_minimizer([-1.0, 0.0]).tolist() == [3.0, 2.0]
    assert np.array_equal(Union(parts).contains(X), inside)


def test_a_union_of_one_bounds_as_that_one():
    part = Ball([0.0, 1.0], 1.0, 2)
    g = np.random.default_rng(0).normal(size=(1, 4, 2))
    assert np.array_equal(Union(part).root().linear_minimum(g), part.root().linear_minimum(g))
