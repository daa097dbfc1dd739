"""Class probabilities by the paper's discretised integral: ranges hold what is certified there."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert
from gpcert.arrays import backend_from_name, to_numpy
from gpcert.class_layout import class_layout
from gpcert.enclosures.goals import QuantityGoal
from gpcert.enclosures.paper import PaperEnclosures, class_bound, latent_grid
from gpcert.enclosures.paper.class_bound import grid_ranges, pieces_for, weighted_lower
from gpcert.enclosures.paper.latent_grid import (
    LatentRanges,
    conditional_mean,
    conditional_variance,
    latent_ranges,
    link_range,
)
from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import MultinomialProbit, Softmax
from gpcert.posterior import Posterior
from gpcert.quantities import ClassSums
from gpcert.quantities.classes import margins
from gpcert.testing.arb_reference import ArbPosterior, exact, flint
from gpcert.testing.effort import examples, variants
from gpcert.testing.strategies import Case, kernels, regions_near, seeds, units
from tests.enclosures.enclosure_checks import arb, below, evaluation_of, points_of

LIKELIHOODS = [Softmax(), MultinomialProbit(0.7)]


def class_posterior(rng, kernel, points, m, coupled, likelihood, size=1.0):
    """Means of the size `size`, and factors whose posterior covariance is semi-definite."""
    N = len(points)
    K = kernel.value(points, points)
    A = rng.normal(size=(m, int(rng.integers(1, N + 2)), N)) @ np.linalg.inv(K + 0.1 * np.eye(N))
    joint = sum(a @ K @ a.T for a in A)
    A = A * (rng.uniform(0.3, 0.99) / math.sqrt(np.linalg.eigvalsh(joint)[-1]))
    weights = size * rng.normal(size=(m, N)) / float(K[0, 0])
    noise = rng.choice([0.0, 0.3])
    return Posterior(
        kernel, points, weights, A, noise=noise, likelihood=likelihood, coupled=coupled
    )


@st.composite
def class_cases(draw):
    rng = np.random.default_rng(draw(seeds))
    d, N = draw(st.integers(1, 2)), draw(st.integers(1, 4))
    kernel = draw(kernels(d))
    points = units(kernel, d) * rng.normal(size=(N, d))
    likelihood = draw(st.sampled_from(LIKELIHOODS))
    posterior = class_posterior(
        rng, kernel, points, draw(st.sampled_from([2, 3, 3])), draw(st.booleans()), likelihood,
        draw(st.sampled_from([0.3, 3.0, 30.0])),
    )  # fmt: skip
    return posterior, draw(regions_near(posterior)), rng


def cholesky(V):
    """Lower factor of a ball matrix (n <= 2) that may be singular."""
    L = [[arb(0)] * len(V) for _ in V]
    zero = arb(0)
    L[0][0] = V[0][0].max(zero).sqrt()
    if len(V) == 2:
        L[1][0] = V[0][1] / L[0][0] if L[0][0] > 0 else zero
        L[1][1] = (V[1][1] - L[1][0] ** 2).max(zero).sqrt()
    return np.array([[float(x.mid()) for x in row] for row in L])


def certified(likelihood, a, V):
    """Balls of all class probabilities for means and covariance in balls.

    a and L are rounded to floats; every link moves by less than |change of d|, also the averaged
    step of the probit, whose noise is at least 0.7.
    """
    L = cholesky(V)
    mean = np.array([float(x.mid()) for x in a])
    found = likelihood.moments(mean[None], L[None], 0)
    radius = float(found.errors[0, 0]) + 2.0**-48 * (1.0 + np.abs(mean).sum() + np.abs(L).sum())
    return [arb(float(value), radius) for value in found.value[0]]


def latent_at(reference, layout, noise, x):
    """Balls of the differences' means and covariance at x, from the searched outputs."""
    a = []
    for k in range(1, layout.classes):
        a.append(sum((s * reference.mean(x, j) for j, s in layout.pair(0, k)), arb(0)))
    y = [reference.variance(x, j) for j in range(layout.outputs)]
    V = [
        [
            sum((float(part) * v for part, v in zip(row, y, strict=True)), arb(0))
            + arb(noise) * (1 + (k == other))
            for other, row in enumerate(rows)
        ]
        for k, rows in enumerate(np.moveaxis(layout.matrices, 0, -1))
    ]
    return a, V


@settings(max_examples=examples(60), deadline=None)
@given(drawn=class_cases())
def test_latent_ranges(drawn):
    """Means, variances and the covariance of the differences at points of every cell."""
    posterior, region, rng = drawn
    layout, searched = class_layout(posterior)
    noise = posterior.likelihood.noise
    evaluation = evaluation_of(Case(searched, region, rng), splits=3, keep=2)
    intervals = PaperEnclosures("analytic").of(evaluation)
    ranges = latent_ranges(intervals, evaluation, layout, noise)
    reference = ArbPosterior(searched)
    for b, rows in enumerate(points_of(evaluation, rng)):
        for x in rows:
            a, V = latent_at(reference, layout, noise, x)
            values = [*a, *(V[k][k] for k in range(layout.n)), V[0][-1]]
            pairs = (*ranges.means, *ranges.variances, ranges.covariance)
            for (low, high), value in zip(pairs, values, strict=True):
                assert not ranges.known[b] or not arb(float(low[b])) > value
                assert not ranges.known[b] or not arb(float(high[b])) < value


def check_lower(case, goal, function, evaluation):
    """`lower <= goal` on every cell, also at the bound's own point."""
    bound = goal.bound(evaluation, None)
    for b, rows in enumerate(points_of(evaluation, case.rng, bound.point)):
        for x in rows:
            below(float(to_numpy(bound.lower)[b]), function(x), type(goal).__name__)
    return bound


@settings(max_examples=examples(40, quick=4), deadline=None)
@given(drawn=class_cases())
def test_goals(drawn):
    """Every class and every margin, on cells of every size; also by both methods at once."""
    posterior, region, rng = drawn
    layout, searched = class_layout(posterior)
    case = Case(searched, region, rng)
    likelihood = posterior.likelihood
    evaluation = evaluation_of(case, splits=3, keep=2)
    reference = ArbPosterior(searched)
    m = layout.classes
    rows = [
        ((0.0,) * c + (sign,) + (0.0,) * (m - c - 1),) for c in range(m) for sign in (1.0, -1.0)
    ]
    rows.append(margins(m, 1, (1.0, 1.5, 0.8)[:m]))
    known = {}

    def function(x, weights):
        if x.tobytes() not in known:
            known[x.tobytes()] = certified(
                likelihood, *latent_at(reference, layout, likelihood.noise, x)
            )
        values = known[x.tobytes()]
        sums = [sum((w * p for w, p in zip(row, values, strict=True)), arb(0)) for row in weights]
        return sums[0] if len(sums) == 1 else sums[0].min(sums[1])

    enclosures = PaperEnclosures("analytic")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(class_bound, "PIECES", (5, 15))
        for weights in rows:
            sums = ClassSums(layout, likelihood, weights)
            paper = QuantityGoal(sums, enclosures, taylor=False)
            bound = check_lower(case, paper, lambda x, w=weights: function(x, w), evaluation)
            assert np.all(to_numpy(bound.lower) >= min(min(row) for row in weights))
        both = QuantityGoal(sums, enclosures)
        check_lower(case, both, lambda x, w=weights: function(x, w), evaluation)


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
    boxes, least, most = class_bound._masses(ranges, pieces)
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
    _, least, most = class_bound._masses(ranges, 255)
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
    ranges = latent_grid._consistent(
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
    assert 0.1 - 0.8 - 1e-12 < weighted_lower(ranges, (1.0, -2.0, 0.0))[0] <= 0.1 - 0.8
    assert weighted_lower((0 * ranges[0], ranges[1]), (1.0, 1.0, 1.0))[0] == 1.0


def test_torch_equals_numpy():
    pytest.importorskip("torch")
    backend = backend_from_name("torch")
    rng = np.random.default_rng(0)
    kernel = SquaredExponential(1.0, 2.0)
    posterior = class_posterior(rng, kernel, rng.normal(size=(4, 1)), 3, True, Softmax())
    layout, searched = class_layout(posterior)
    case = Case(searched, gpcert.Box([0.0], [0.4]), rng)
    found = []
    for name in ("numpy", backend):
        evaluation = evaluation_of(case, splits=0, backend=name)
        intervals = PaperEnclosures("analytic").of(evaluation)
        ranges = latent_ranges(intervals, evaluation, layout, 0.0)
        for likelihood in LIKELIHOODS:
            found.append([to_numpy(x) for x in grid_ranges(ranges, likelihood, np.array([15, 15]))])
    for first, second in zip(found[:2], found[2:], strict=True):
        np.testing.assert_allclose(first, second, atol=1e-9)


@pytest.fixture(scope="module")
def tiny():
    """Three classes of one feature, with coupled outputs."""
    rng = np.random.default_rng(3)
    return class_posterior(
        rng, SquaredExponential(1.0, 2.0), np.array([[-1.0], [0.0], [1.0]]), 3, True, Softmax(), 2.0
    )


@variants("method", ["paper", "both"])
def test_prediction_range_agrees_with_taylor(tiny, method):
    region = gpcert.Box([0.1], [0.3])
    for c in range(3):
        taylor = gpcert.prediction_range(tiny, region, output=c, tol=1e-3)
        other = gpcert.prediction_range(
            tiny, region, output=c, tol=0.05, method=method, variance_bound="analytic",
            budget=gpcert.Budget(seconds=20.0),
        )  # fmt: skip
        assert other.converged
        for first, second in ((taylor.minimum, other.minimum), (taylor.maximum, other.maximum)):
            assert max(first.lower, second.lower) <= min(first.upper, second.upper)


def test_solver_and_decision(tiny):
    """The paper's own programs, once; a decision by the paper's condition."""
    region = gpcert.Box([0.2], [0.25])
    found = gpcert.prediction_range(
        tiny, region, output=0, tol=0.1, method="paper", sides="minimum"
    )
    assert found.converged
    assert found.argmin is not None
    decided = gpcert.certify(tiny, [0.2], 0.01, method="paper")
    assert decided.status == gpcert.certify(tiny, [0.2], 0.01).status == gpcert.Status.ROBUST


def test_more_classes_are_refused():
    rng = np.random.default_rng(0)
    posterior = class_posterior(
        rng, SquaredExponential(1.0), np.array([[0.0], [1.0]]), 4, False, Softmax()
    )
    with pytest.raises(InputError, match=r"1/eps\^3.*taylor"):
        gpcert.prediction_range(posterior, gpcert.Box([0.0], [0.1]), output=0, method="paper")


def test_other_links_are_refused():
    with pytest.raises(InputError, match="taylor"):
        link_range(object(), 0, [(np.zeros(1), np.zeros(1))])


@pytest.mark.parametrize("coupled", [True, False])
def test_ranges_of_differences(coupled):
    """Means and covariance of the differences at a point, against the posterior's own."""
    rng = np.random.default_rng(1)
    points = rng.normal(size=(5, 2))
    posterior = class_posterior(rng, SquaredExponential(0.8, 3.0), points, 3, coupled, Softmax())
    layout, searched = class_layout(posterior)
    x = np.array([0.1, -0.2])
    case = Case(searched, gpcert.Box(x, x), rng)
    evaluation = evaluation_of(case, splits=0)
    found = latent_ranges(PaperEnclosures("analytic").of(evaluation), evaluation, layout, 0.7)
    D = np.array([[-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]])
    mean = D @ posterior.predict(x[None])[0][0]
    V = D @ (posterior.covariances(x[None])[0] + 0.7 * np.eye(3)) @ D.T
    for pair, value in zip(
        (*found.means, *found.variances, found.covariance),
        (*mean, V[0, 0], V[1, 1], V[0, 1]),
        strict=True,
    ):
        np.testing.assert_allclose([float(end[0]) for end in pair], value, rtol=1e-6, atol=1e-6)
