import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.errors import InputError
from gpcert.numerics.rounding import norm
from gpcert.regions import Ball, Box, region_from_dict
from gpcert.testing.effort import examples
from tests.regions.region_strategies import balls, in_region_exactly, regions

seeds = st.integers(0, 2**32)


@given(regions(), seeds)
@settings(max_examples=examples(150), deadline=None)
def test_samples_lie_in_the_region(region, seed):
    x = region.sample(4, seed)
    assert x.shape == (4, region.dim)
    assert np.all(region.contains(x))
    assert all(in_region_exactly(region, row) for row in x)
    assert np.all((region.lower <= x) & (x <= region.upper))
    assert np.array_equal(x[:, region.fixed], np.tile(region.center[region.fixed], (4, 1)))


@given(regions(), seeds, st.sampled_from([0.1, 1.0, 3.0, 1e6]))
@settings(max_examples=examples(150), deadline=None)
def test_projections_lie_in_the_region_and_members_stay(region, seed, spread):
    rng = np.random.default_rng(seed)
    size = spread * np.maximum(region.upper - region.lower, 1e-3)
    x = region.project(region.center + size * rng.normal(size=(4, region.dim)))
    assert np.all(region.contains(x))
    assert all(in_region_exactly(region, row) for row in x)
    assert np.array_equal(region.project(x), x)
    assert np.array_equal(region.project(x[0]), x[0])


@given(balls(), seeds)
@settings(max_examples=examples(150), deadline=None)
def test_contains_is_proved_near_the_sphere(region, seed):
    rng = np.random.default_rng(seed)
    x = region.sample(6, rng)
    y = x - region.center
    x = np.clip(region.center + y * rng.uniform(0.9, 1.5, (6, 1)), region.lower, region.upper)
    for row, answer in zip(x, region.contains(x), strict=True):
        assert not answer or in_region_exactly(region, row)


@given(balls(norms=st.just(np.inf)), seeds)
@settings(max_examples=examples(100), deadline=None)
def test_contains_is_exact_for_the_maximum_norm(region, seed):
    pick = np.random.default_rng(seed).random((8, region.dim)) < 0.5
    near = np.nextafter(region.inner_upper, np.inf)
    points = np.concatenate(
        [
            np.where(pick, region.inner_lower, region.inner_upper),
            np.where(pick, region.lower, region.upper),
            np.where(pick, near, region.center),
        ]
    )
    for row, answer in zip(points, region.contains(points), strict=True):
        assert answer == in_region_exactly(region, row)


@given(regions())
@settings(max_examples=examples(100), deadline=None)
def test_bounds_and_center_are_consistent(region):
    assert np.all(region.lower <= region.center)
    assert np.all(region.center <= region.upper)
    assert region.contains(region.center)
    assert np.array_equal(np.sort(np.r_[region.free, region.fixed]), np.arange(region.dim))
    assert np.array_equal(region.lower[region.fixed], region.center[region.fixed])


@given(balls(), seeds)
@settings(max_examples=examples(100), deadline=None)
def test_outer_box_holds_every_member(region, seed):
    # the nearest floats outside the outer box are not members
    for j in region.free:
        for end, side in ((region.lower, -np.inf), (region.upper, np.inf)):
            x = np.array(region.center)
            x[j] = np.nextafter(end[j], side)
            assert not in_region_exactly(region, x)


@given(regions(), seeds)
@settings(max_examples=examples(100), deadline=None)
def test_linear_minimizer_beats_samples(region, seed):
    rng = np.random.default_rng(seed)
    g = rng.normal(size=(3, region.dim))
    best = region.linear_minimizer(g)
    assert np.all(region.contains(best))
    assert np.array_equal(region.linear_minimizer(g[0]), best[0])
    x = region.sample(50, rng)
    scale = np.abs(g) @ (region.upper - region.lower) + np.abs(g) @ np.abs(region.center) * 1e-7
    values = (x - region.center) @ g.T
    assert np.all(np.sum((best - region.center) * g, axis=1) <= values.min(axis=0) + 1e-6 * scale)


@given(regions())
@settings(max_examples=examples(60), deadline=None)
def test_records_round_trip(region):
    other = region_from_dict(json.loads(json.dumps(region.describe(), allow_nan=False)))
    assert type(other) is type(region)
    assert np.array_equal(other.lower, region.lower)
    assert np.array_equal(other.upper, region.upper)
    assert np.array_equal(other.inner_upper, region.inner_upper)
    assert other.describe() == region.describe()
    assert "domain" not in region.describe() or other.norm == region.norm


def test_high_dimensional_samples_are_spread():
    for p in (1.0, 2.0, 3.5, 1e6, np.inf):
        ball = Ball(np.zeros(784), 2.0, p)
        x = ball.sample(20, 0)
        assert np.all(ball.contains(x))
        assert norm(x, p).min() > 1.9  # volume sits at the surface


def test_one_moved_feature_may_use_the_whole_radius():
    ball = Ball([0.0, 0.0, 1.0], 0.3, norm=2)
    assert ball.contains([0.3, 0.0, 1.0])
    assert not ball.contains([0.3, 1e-9, 1.0])


@pytest.mark.parametrize("radius", [5e-324, 1e-305, 1e-301, 1e-300])
def test_radii_near_underflow_keep_members(radius):
    ball = Ball(np.zeros(3), radius, 2)
    x = ball.sample(5, 0)
    assert np.all(ball.contains(x))
    assert all(in_region_exactly(ball, row) for row in x)


def test_mask_and_text_norm():
    ball = Ball([0.0, 1.0], 1.0, norm="inf", features=[False, True])
    assert ball.free.tolist() == [1]
    assert ball.norm_constraint is None
    assert Ball([0.0, 1.0], 1.0, norm=2, features=[1]).norm_constraint is None
    assert Ball([1.0, 1.0], 0.0, norm=2).free.size == 0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Box([0, 1, 5], [1, 2, 4]), r"lower\[2\] = .*5.0.* > upper\[2\]"),
        (lambda: Box([0, 1], [1]), "same length"),
        (lambda: Box([np.nan], [1]), "lower: expected finite"),
        (lambda: Box([], []), "length >= 1"),
        (lambda: Box([[0.0]], [[1.0]]), "dimension"),
        (lambda: Ball([0.0], -1.0), "radius: expected numbers >= 0"),
        (lambda: Ball([0.0], np.nan), "radius: expected finite"),
        (lambda: Ball([0.0], [1.0, 2.0]), "radius: expected a number or 1 numbers, one per"),
        (lambda: Ball([0.0, 1.0], [[1.0, 2.0]]), r"radius: .* got shape \(1, 2\)"),
        (lambda: Ball([0.0, 1.0], [1.0, -2.0]), "radius: expected numbers >= 0"),
        (lambda: Ball([0.0, 1.0], [1.0, np.inf]), "radius: expected finite"),
        (lambda: Ball([0.0, 1.0], "a"), "radius: expected numbers, got text"),
        (lambda: Ball([0.0, 1.0], True), "radius: expected numbers, got True or False"),
        (lambda: Ball([0.0, 1.0], 1.0, features="ab"), "features: .* names are"),
        (lambda: Ball([], 1.0), "center"),
        (lambda: Ball([0.0], 1.0, norm=0.5), "norm: expected p >= 1"),
        (lambda: Ball([0.0], 1.0, norm=np.nan), "norm: expected p >= 1"),
        (lambda: Ball([0.0], 1.0, norm="two"), "norm: expected a number"),
        (lambda: Ball([0.0, 1.5], 1.0, domain=(0, 1)), r"center\[1\] = .*1.5.*, above it by .*0.5"),
        (lambda: Ball([-2.0], 1.0, domain=(0, 1)), "below it by"),
        (lambda: Ball([0.0], 1.0, domain=(0, np.nan)), "NaN"),
        (lambda: Ball([0.0], 1.0, domain=3.0), r"domain: expected \(low, high\)"),
        (lambda: Ball([0.0], 1.0, domain=([0, 0], 1)), r"domain: expected \(low, high\)"),
        (lambda: Ball([0.0], 1.0, features=[1]), r"indices in 0\.\.0, got 1"),
        (lambda: Ball([0.0], 1.0, features=[0, 0]), "distinct"),
        (lambda: Ball([0.0], 1.0, features=[0.5]), "integers"),
        (lambda: Ball([0.0], 1.0, features=[True, False]), "mask"),
        (lambda: Ball([1e308], 1e308), "overflows"),
        (lambda: Ball([0.0], 1.0).contains([0.0, 1.0]), r"expected shape \(1,\) or \(n, 1\)"),
        (lambda: Ball([0.0], 1.0).contains([np.inf]), "finite"),
        (lambda: region_from_dict({"kind": "blob"}), "kind"),
        (lambda: region_from_dict({"kind": "box", "low": 1}), "record"),
    ],
)
def test_wrong_arguments_are_named(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_bounds_of_a_box_are_rows():
    bounds = np.array([[0.0, 2.0, -1.0], [1.0, 2.0, 3.0]])
    box = Box(bounds)
    assert box.describe() == Box(*bounds).describe()
    assert Box([[0.0, 2.0, -1.0], [1.0, 2.0, 3.0]]).describe() == box.describe()
    square = Box(np.array([[0.0, 5.0], [1.0, 10.0]]))
    assert square.upper.tolist() == [1.0, 10.0]
    assert Box(np.array([[0.0], [1.0]])).dim == 1
    torch = pytest.importorskip("torch")
    tensor = torch.tensor(bounds.tolist(), requires_grad=True)
    assert Box(tensor).describe() == box.describe()


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (np.zeros((3, 2)), r"shape \(2, d\), rows lower and upper, got shape \(3, 2\).*its \.T"),
        (np.zeros((1, 2)), r"got shape \(1, 2\).*its \.T"),
        (np.zeros((3, 3)), r"got shape \(3, 3\)"),
        ([0.0, 1.0], r"got shape \(2,\) and no upper"),
        (np.zeros((2, 2, 2)), r"got shape \(2, 2, 2\)"),
        (np.zeros((2, 0)), "length >= 1"),
        ([(0.0, 1.0), (5.0, 10.0)], "two corners or the ends of two features"),
        (np.array([[1.0, 0.0], [0.0, 1.0]]), "the box is empty"),
        (5.0, r"got shape \(\)"),
        (None, "bounds: expected"),
    ],
)
def test_bounds_of_other_shapes_are_refused(bounds, message):
    with pytest.raises(InputError, match=message):
        Box(bounds)


def test_a_record_of_a_box_has_both_ends():
    with pytest.raises(InputError, match="no upper"):
        region_from_dict({"kind": "box", "lower": [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]})
