"""The paper's partition of the latent space: conditional laws, masses of boxes, ranges of links."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.likelihoods import Softmax
from gpcert.model.class_layout import ClassLayout
from gpcert.paper import class_grid
from gpcert.paper.class_grid import (
    LatentRanges,
    conditional_mean,
    conditional_variance,
    grid_ranges,
    link_range,
    pieces_for,
)
from gpcert.quantities import ClassSums
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import exact, flint
from tests.enclosures.enclosure_checks import arb
from tests.paper.paper_class_cases import LIKELIHOODS, certified
from tests.strategies import seeds


@st.composite
def latent_cases(draw):
    """Ranges of means and of a covariance, and a member of them in balls."""
    rng = np.random.default_rng(draw(seeds))
    width = draw(st.sampled_from([0.0, 1e-9, 0.1, 1.0]))
    scale = 10.0 ** draw(st.sampled_from([-2.0, 0.0, 1.0]))
    correlation = draw(st.sampled_from([-0.999, -0.6, 0.0, 0.6, 0.999]))
    V11, V22 = scale**2 * rng.uniform(0.5, 2.0, 2)
    V12 = correlation * math.sqrt(V11 * V22)
    mu = 2.0 * scale * rng.normal(size=2)

    def around(value, reach):
        low, high = reach * rng.random(2)
        return np.array([value - low]), np.array([value + high])

    def inside(value):
        return around(value, 0.3 * width * abs(value))

    means = tuple(around(x, width * scale) for x in mu)
    ranges = LatentRanges(means, (inside(V11), inside(V22)), inside(V12), np.array([True]))
    return ranges, exact(mu), exact([V11, V22, V12]), rng


@settings(max_examples=examples(100), deadline=None)
@given(case=latent_cases())
def test_conditional_mean_and_variance(case):
    ranges, mu, (V11, V22, V12), rng = case
    ends = np.sort(float(mu[1].mid()) + 3.0 * rng.normal(size=2))
    mean = conditional_mean(ranges, (ends[None, :1], ends[None, 1:]))
    variance = conditional_variance(ranges)
    for f in exact(np.concatenate([ends, rng.uniform(*ends, 3)])):
        true = mu[0] + V12 / V22 * (f - mu[1])
        assert not arb(float(mean[0][0, 0])) > true
        assert not arb(float(mean[1][0, 0])) < true
    true = V11 - V12**2 / V22
    assert not arb(float(variance[0][0])) > true
    assert not arb(float(variance[1][0])) < true
    assert float(variance[1][0]) <= float(ranges.variances[0][1][0])


def box_probability(mu, V, first, second):
    """`P(d in I_1 x I_2)` in ball arithmetic: d_2 given d_1 here, the other way round."""
    module = flint()
    acb = module.acb
    V11, V22, V12 = V
    root = (2 * (V22 - V12**2 / V11)).sqrt()
    norm = 1 / (2 * arb.pi() * V11).sqrt()

    def density(t, _):
        mean = mu[1] + V12 / V11 * (t - mu[0])
        inner = (((second[1] - mean) / root).erf() - ((second[0] - mean) / root).erf()) / 2
        return norm * (-((t - mu[0]) ** 2) / (2 * V11)).exp() * inner

    with module.ctx.workprec(200):
        return acb.integral(density, acb(first[0]), acb(first[1]), abs_tol=arb(2) ** -80).real


@settings(max_examples=examples(30), deadline=None)
@given(case=latent_cases())
def test_masses_of_boxes(case):
    """Fails with the misprinted minus sign in the conditional mean, for V_12 of either sign."""
    ranges, mu, V, rng = case
    pieces = 7
    boxes, least, most = class_grid.interval_masses(ranges, pieces)
    for i, k in rng.integers(1, pieces - 1, size=(4, 2)):
        first = exact([float(end[0, i, 0]) for end in boxes[0]])
        second = exact([float(end[0, 0, k]) for end in boxes[1]])
        true = box_probability(mu, V, first, second)
        # the product of both factors is rounded once; `_sums` counts that
        assert not arb(float(least[0, i, k])) * (1 - arb(2) ** -52) > true
        assert not arb(float(most[0, i, k])) * (1 + arb(2) ** -52) < true


def test_boxes_cover_nearly_all():
    """With the exact masses the least and the greatest sums are near 1, on either side."""
    ranges = at((0.3, -1.0), [[1.0, 0.6], [0.6, 2.0]])
    _, least, most = class_grid.interval_masses(ranges, 255)
    assert 0.97 < least.sum() < 1.0 < most.sum() < 1.03


@settings(max_examples=examples(100))
@given(seed=seeds, scale=st.sampled_from([0.1, 3.0, 100.0, 2000.0]), n=st.integers(1, 2))
def test_link_range(seed, scale, n):
    rng = np.random.default_rng(seed)
    boxes = [tuple(np.sort(scale * rng.normal(size=(4, 2)), axis=1).T) for _ in range(n)]
    for likelihood in LIKELIHOODS:
        for c in range(n + 1):
            low, high = link_range(likelihood, c, boxes)
            for b in range(4):
                corners = [exact([box[0][b], box[1][b], rng.uniform(box[0][b], box[1][b])])
                           for box in boxes]  # fmt: skip
                for pick in np.ndindex(*(3,) * n):
                    d = [arb(0), *(row[i] for row, i in zip(corners, pick, strict=True))]
                    if isinstance(likelihood, Softmax):
                        true = 1 / sum(((x - d[c]).exp() for x in d), arb(0))
                    else:
                        true = arb(int(all(d[c] > x for k, x in enumerate(d) if k != c)))
                    assert not arb(float(low[b])) > true
                    assert not arb(float(high[b])) < true


def at(mu, V):
    """The ranges of a point."""
    both = lambda x: (np.array([float(x)]),) * 2  # noqa: E731
    return LatentRanges(
        tuple(map(both, mu)),
        tuple(both(V[k][k]) for k in range(len(mu))),
        both(V[0][-1]),
        np.array([True]),
    )


POINTS = [
    ((0.3, -0.5), [[1.0, 0.6], [0.6, 1.5]]),
    ((0.3, -0.5), [[1.0, -0.6], [-0.6, 1.5]]),
    ((4.0, -5.0), [[90.0, 40.0], [40.0, 120.0]]),
    ((0.4,), [[3.0]]),
]


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=["softmax", "probit"])
@pytest.mark.parametrize(("mu", "V"), POINTS)
def test_a_finer_grid_converges(likelihood, mu, V):
    """At a point the gap falls like 1/M, and the probability stays inside."""
    balls = certified(likelihood, exact(mu), [exact(row) for row in V])
    gaps = []
    for pieces in (15, 31, 63, 127):
        low, high = grid_ranges(at(mu, V), likelihood, np.array([pieces]))
        for c, ball in enumerate(balls):
            assert not arb(float(low[0, c])) > ball
            assert not arb(float(high[0, c])) < ball
        gaps.append(float(np.max(high - low)))
    assert 0.3 < gaps[-1] * 127 < 6.0
    assert all(0.35 < b / a < 0.65 for a, b in itertools.pairwise(gaps))


def test_wide_ranges_and_no_variance():
    """Nothing known: [0, 1]; no variance at all: the softmax of the mean; never NaN."""
    one = np.ones(4)
    mean = (np.array([-np.inf, 0.5, -1e300, 0.0]), np.array([np.inf, 0.5, 1e300, 0.0]))
    variance = (np.array([0.0, 0.0, 0.0, 0.0]), np.array([np.inf, 0.0, 1.0, 1e90]))
    ranges = class_grid.consistent_ranges(
        (mean, mean), [variance, variance], (-np.inf * one, np.inf * one)
    )
    assert ranges.known.tolist() == [False, True, False, True]
    assert np.all(pieces_for(ranges) >= 31)
    low, high = grid_ranges(ranges, Softmax(), np.array([31, 31, 31, 63]))
    assert np.all((low >= 0) & (low <= high) & (high <= 1))
    np.testing.assert_array_equal(low[[0, 2]], 0.0)
    np.testing.assert_array_equal(high[[0, 2]], 1.0)
    p = 1.0 / (2.0 + math.exp(-0.5))
    assert low[1, 1] <= p <= high[1, 1]
    single = LatentRanges(
        (ranges.means[0],), (ranges.variances[0],), ranges.covariance, ranges.known
    )
    low, high = grid_ranges(single, Softmax(), np.full(4, 31))
    share = 1.0 / (1.0 + math.exp(-0.5))
    assert low[1, 1] <= share <= high[1, 1] <= low[1, 1] + 0.01
    assert low.shape == (4, 2)


def test_weights_take_the_right_side():
    ranges = (np.array([[0.1, 0.2, 0.3]]), np.array([[0.3, 0.4, 0.5]]))

    def lowest(weights, low, high):
        return ClassSums(ClassLayout(3), Softmax(), weights).lowest(low, high)[0]

    assert 0.1 - 0.8 - 1e-12 < lowest(((1.0, -2.0, 0.0),), *ranges) <= 0.1 - 0.8
    assert lowest(((1.0, -2.0, 0.0), (0.0, 0.0, 1.0)), *ranges) <= 0.1 - 0.8
    assert lowest(((1.0, 1.0, 1.0),), 0 * ranges[0], ranges[1]) == 1.0
