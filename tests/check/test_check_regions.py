"""The checker's regions: membership, and boxes that lose no point of them."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("flint")
import gpcert
from gpcert_check.region import read_region
from gpcert_check.verdicts import BadFile, NotCovered
from tests.regions.constrained_strategies import discretes, polytopes
from tests.regions.region_strategies import in_region_exactly


@st.composite
def regions(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    first = draw(st.one_of(polytopes(3), discretes(3)))
    if draw(st.booleans()):
        return first
    ball = gpcert.Ball(first.center + rng.normal(size=first.dim), 1.0, norm=rng.integers(1, 3))
    return gpcert.regions.Union(first, ball)


def in_some(region, x):
    parts = getattr(region, "parts", [region])
    return any(in_exactly(part, x) for part in parts)


def in_exactly(region, x):
    if isinstance(region, gpcert.Ball):
        return in_region_exactly(region, x)
    whole = getattr(region, "region", region)
    if whole is not region:
        numbers = all(float(x[j]).is_integer() for j in region.integers)
        values = all(x[j] in each for j, each in region.values.items())
        return numbers and values and in_exactly(whole, x)
    if not isinstance(region, gpcert.Polytope):
        return in_region_exactly(region, x)
    point = list(map(Fraction, x))
    low, high = region.bounds
    inside = all(a <= v <= b for a, v, b in zip(low, x, high, strict=True))
    sums = [sum((Fraction(a) * v for a, v in zip(row, point, strict=True)), Fraction(0))
            for row in region.A.tolist()]  # fmt: skip
    return inside and all(
        a <= v <= b for a, v, b in zip(region.low, sums, region.high, strict=True)
    )


@given(regions(), st.integers(0, 2**32))
def test_points_lie_inside_exactly_and_boxes_lose_none(region, seed):
    rng = np.random.default_rng(seed)
    try:
        known = read_region(region.describe())
    except NotCovered:  # a feature fixed at a number that is no float
        return
    samples = region.sample(4, seed)
    near = np.nextafter(samples, rng.choice([-np.inf, np.inf], samples.shape))
    for x in (*samples, *near, *rng.normal(size=(2, region.dim))):
        assert known.contains(x.tolist()) == in_some(region, x)
    free = known.free
    if free != region.free.tolist():
        return
    u = np.sort(rng.random((2, len(free))), axis=0)
    low, high = ((1 - v) * region.lower[free] + v * region.upper[free] for v in u)
    smaller = known.cell(low.tolist(), high.tolist())
    for x in samples[:, free]:
        if np.all((low <= x) & (x <= high)) and known.contains(samples[0].tolist()):
            assert smaller is not None
            assert np.all((np.array(smaller[0]) <= x) & (x <= np.array(smaller[1])))


@pytest.mark.parametrize(
    "record",
    [
        {"kind": "polytope", "lower": [0.0], "upper": [1.0], "A": [[1.0]], "low": [2.0],
         "high": ["inf"]},
        {"kind": "polytope", "lower": [0.0], "upper": [1.0], "A": [[1.0]], "low": ["inf"],
         "high": ["inf"]},
        {"kind": "polytope", "lower": [0.0], "upper": [1.0], "A": [[1.0, 2.0]], "low": [0.0],
         "high": [1.0]},
        {"kind": "discrete", "region": {"kind": "box", "lower": [0.1], "upper": [0.9]},
         "integers": [0], "values": []},
        {"kind": "discrete", "region": {"kind": "box", "lower": [0.1], "upper": [0.9]},
         "integers": [1], "values": []},
        {"kind": "union", "parts": []},
        {"kind": "union"},
        {"kind": "box", "lower": [1.0], "upper": ["nan"]},
    ],
)  # fmt: skip
def test_what_is_no_region_is_a_bad_file(record):
    with pytest.raises(BadFile):
        read_region(record)
