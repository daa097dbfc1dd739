"""Polytopes: their arguments, exact membership, emptiness with a proof, and degenerate ones."""

import numpy as np
import pytest

from gpcert.errors import InputError
from gpcert.regions import Box, Discrete, Polytope, Union, region_from_dict

UNIT = ([0.0, 0.0, 0.0], [1.0, 1.0, 1.0])
MIXTURE = ({0: 1, 1: 1, 2: 1}, "==", 1.0)


def test_vertices_on_the_boundary_are_members_and_their_neighbours_are_not():
    region = Polytope(([0, 0], [1, 1]), ([1, 1], "<=", 1.0), ([0.1, 0.3], "<=", 0.3))
    assert region.contains([[1.0, 0.0], [0.0, 1.0], [0.0, 0.5]]).all()
    assert not region.contains([1.0, 2.0**-60])
    assert not region.contains([np.nextafter(1.0, 2.0), 0.0])


def test_of_tenths_the_sum_of_the_floats_counts():
    """0.1 + 0.2 is a little above 0.3 in floats."""
    low, high = [0.1, 0.2], [0.1, 1.0]
    with pytest.raises(InputError, match="region is empty"):
        Polytope((low, high), ([1, 1], "<=", 0.3))
    assert Polytope((low, high), ([1, 1], "==", 0.3)).contains(low)  # within its slack
    with pytest.raises(InputError, match="region is empty"):
        Polytope((low, [0.1, 0.2]), ([1, 1], "==", 0.3), slack=0.0)


def test_equations_hold_within_their_slack():
    region = Polytope(UNIT, MIXTURE)
    slack = 4 * 7 * 2.0**-53 * 4.0
    assert region.low.tolist() == [1.0 - slack]
    assert region.high.tolist() == [1.0 + slack]
    assert region.contains([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]]).all()
    assert not region.contains([0.2, 0.3, 0.5001])
    wide = Polytope(UNIT, MIXTURE, slack=0.01)
    assert wide.contains([0.2, 0.3, 0.505])
    exact = Polytope(UNIT, MIXTURE, slack=0.0)
    assert exact.contains([0.25, 0.25, 0.5])
    assert not exact.contains([0.25, 0.25, np.nextafter(0.5, 1.0)])
    assert exact.contains(exact.sample(20, 0)).all()


def test_by_name_by_number_and_by_matrices_are_the_same():
    named = Polytope(
        {"a": (0, 1), "b": (0, 2)}, ({"b": 2, "a": 1}, "<=", 1.5), ({"a": 1}, ">=", 0.2)
    )
    numbered = Polytope(Box([0, 0], [1, 2]), ({1: 2, 0: 1}, "<=", 1.5), ({0: 1}, ">=", 0.2))
    matrices = Polytope(np.array([[0.0, 0], [1, 2]]), A=[[1, 2], [-1, 0]], b=[1.5, -0.2])
    X = np.random.default_rng(0).uniform(0, 2, (300, 2))
    for other in (numbered, matrices):
        assert np.array_equal(named.contains(X), other.contains(X))
    assert 0 < named.contains(X).sum() < 300
    assert named.names == ("a", "b")
    equation = Polytope(([0, 0], [1, 1]), A_eq=[[1, 1]], b_eq=[1.0])
    assert equation.contains([0.5, 0.5])
    swapped = named.renamed(["b", "a"])
    assert np.array_equal(swapped.contains(X[:, ::-1]), named.contains(X))


@pytest.mark.parametrize(
    ("rows", "proof"),
    [
        ([([1, 1, 1], ">=", 4.0)], "intervals"),
        ([([1, 1, 0], "<=", 0.5), ([1, 0, 1], "<=", 0.5), ([2, 1, 1], ">=", 1.1)], "multipliers"),
        ([([1, 1, 0], "==", 1.0), ([1, -1, 0], "==", 0.0), ([1, 0, 1], "==", 0.4)], "proved"),
    ],
)
def test_an_empty_region_is_an_error_with_a_proof(rows, proof):
    with pytest.raises(InputError, match=f"the region is empty: .*{proof}"):
        Polytope(UNIT, *rows)


def test_what_is_neither_found_nor_excluded_is_said():
    """Solutions there are, but hardly any in floats."""
    with pytest.raises(InputError, match=r"may be empty: .* larger slack="):
        Polytope(([0.1, 0.1], [0.9, 0.9]), ([0.1, 0.3], "==", 0.2), slack=0.0)


def test_a_single_point():
    region = Polytope(UNIT, ([1, 1, 1], "<=", 0.0))
    assert region.free.size == 0 or np.all(region.upper < 1e-100)
    assert region.contains(region.center)
    point = Polytope(([0.5, 0.25], [0.5, 0.25]), ([1, 1], "<=", 0.75))
    assert point.free.size == 0
    assert point.sample(3, 0).tolist() == [[0.5, 0.25]] * 3
    assert point.linear_minimizer([1.0, -1.0]).tolist() == [0.5, 0.25]


def test_without_constraints_it_is_its_box():
    region, box = Polytope(UNIT), Box(*UNIT)
    g = np.random.default_rng(0).normal(size=(1, 3))
    assert region.root().linear_minimum(g) == box.root().linear_minimum(g)


def test_redundant_constraints_change_no_member():
    some = Polytope(UNIT, MIXTURE)
    more = Polytope(UNIT, MIXTURE, MIXTURE, ([1, 1, 1], "<=", 2.0), ([1, 0, 0], "<=", 1.0))
    X = np.concatenate([some.sample(50, 0), np.random.default_rng(0).random((50, 3))])
    assert np.array_equal(some.contains(X), more.contains(X))


def test_bounds_are_tightened_by_constraints():
    region = Polytope(([0, 0], [10, 10]), ([1, 2], "<=", 3.0), ([1, 0], ">=", 1.0))
    np.testing.assert_allclose(region.upper, [3.0, 1.0])
    np.testing.assert_allclose(region.lower, [1.0, 0.0], atol=1e-200)


def test_samples_reach_all_of_a_mixture():
    X = Polytope(UNIT, MIXTURE).sample(4000, 0)
    np.testing.assert_allclose(X.mean(axis=0), 1 / 3, atol=0.02)
    np.testing.assert_allclose(X.std(axis=0), np.sqrt(1 / 18), atol=0.02)  # of the uniform one


def test_minimizers_are_vertices():
    region = Polytope(UNIT, MIXTURE, ([1, -1, 0], ">=", 0.2))
    np.testing.assert_allclose(region.linear_minimizer([1.0, 2.0, 3.0]), [1, 0, 0], atol=1e-9)
    np.testing.assert_allclose(region.linear_minimizer([3.0, 1.0, 2.5]), [0.6, 0.4, 0], atol=1e-9)


REGIONS = [
    Polytope({"a": (0, 1), "b": (0, 1)}, ({"a": 1, "b": 1}, "==", 1.0), ({"a": 1}, "<=", 0.7)),
    Polytope(UNIT, ([1, 1, 1], "in", (0.5, 1.0))),
    Discrete(Box([0, 0], [5, 5]), [0], {1: [1.0, 2.5]}),
    Discrete(Polytope(([0, 0], [5, 5]), ([1, 1], "<=", 6.0)), integers=[True, False]),
    Union(Box([0.0], [1.0]), Polytope(([2.0], [3.0]), ([1], "<=", 2.5))),
]


@pytest.mark.parametrize("region", REGIONS, ids=str)
def test_records_hold_the_same_region(region):
    again = region_from_dict(region.describe())
    assert again.describe() == region.describe()
    X = np.random.default_rng(0).uniform(-1, 6, (500, region.dim))
    X = np.concatenate([X, np.rint(X), region.sample(50, 1)])
    assert np.array_equal(region.contains(X), again.contains(X))
    assert np.array_equal(region.center, again.center)


def test_regions_in_words():
    assert [str(region) for region in REGIONS] == [
        "polytope in 2 of 2 features, 2 linear constraints",
        "polytope in 3 of 3 features, 1 linear constraint",
        "box in 2 of 2 features, 1 integer and 1 with ordered values",
        "polytope in 2 of 2 features, 1 linear constraint, 1 integer",
        "union of 2 regions: box in 1 of 1 features; polytope in 1 of 1 features, "
        "1 linear constraint",
    ]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Polytope(UNIT, ([1, 1], "<=", 1.0)), "coefficients: expected 3 numbers"),
        (lambda: Polytope(UNIT, ([1, 1, 1], "<", 1.0)), "relation"),
        (lambda: Polytope(UNIT, ({"a": 1}, "<=", 1.0)), "'a' is a name; pass names="),
        (lambda: Polytope({"a": (0, 1)}, ({"b": 1}, "<=", 1)), r"names out of \['a'\], got 'b'"),
        (lambda: Polytope(UNIT, ({3: 1}, "<=", 1.0)), "features 0 to 2"),
        (lambda: Polytope(UNIT, ([np.nan, 1, 1], "<=", 1.0)), "finite"),
        (lambda: Polytope(UNIT, A=[[1, 1, 1]]), "expected A and b together"),
        (lambda: Polytope(UNIT, A=[[1, 1]], b=[1]), r"expected shape \(1, 3\)"),
        (lambda: Polytope(UNIT, MIXTURE, slack=-1.0), "slack: expected a number >= 0"),
        (lambda: Polytope(3.0), "bounds: expected a Box"),
        (lambda: Polytope(UNIT, names=["a", "a", "b"]), "3 distinct names"),
        (lambda: Discrete(Box([0.2], [0.8]), [0]), "empty: feature 0 has no value between"),
        (lambda: Discrete(Box([0.2], [0.8])), "expected a feature in one of them"),
        (lambda: Discrete(Box([0.0], [3.0]), [0], {0: [1]}), "name it in one"),
        (lambda: Discrete(Box([0.0], [3.0]), values={0: []}), "at least one"),
        (lambda: Union(Box([0.0], [1.0]), Box([0, 0], [1, 1])), "one dimension"),
        (Union, "one or more regions"),
    ],
)
def test_errors_say_what_was_expected(make, message):
    with pytest.raises(InputError, match=message):
        make()
