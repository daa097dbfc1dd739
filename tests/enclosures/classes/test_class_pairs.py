"""Comparisons of two classes, correlations of latent differences, and what follows for a class."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.enclosures.classes.pairs import PairBounds
from gpcert.enclosures.mean import Units
from gpcert.integrals.sectors import score_bounds
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import MultinomialProbit, Softmax
from gpcert.model.class_layout import ClassLayout
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import to_numpy
from gpcert.regions import Box
from gpcert.testing.effort import THOROUGH, examples
from gpcert.testing.kernel_references import flint
from tests.enclosures.classes.class_cases import (
    LATENT_ERROR,
    class_cases,
    difference_map,
    evaluation_of,
    points_of_cells,
    random_evaluation,
    true_sums,
)

arb = flint().arb


def latent(posterior, X):
    """Means and covariances of the outputs with the likelihood's noise."""
    noise = posterior.likelihood.noise * np.eye(posterior.outputs)
    return posterior.predict(X)[0], posterior.covariances(X) + noise


def check_pairs(case):
    own = random_evaluation(case, keep=3)
    posterior, pairs, m = case.posterior, own.pairs, case.posterior.outputs
    points = points_of_cells(own.evaluation, case.rng)
    ranges = [tuple(map(to_numpy, pairs.range(c))) for c in range(m)]
    assert not np.isnan(ranges).any()
    c, k = (int(i) for i in case.rng.choice(m, 2, replace=False))
    win = to_numpy(pairs.win(c, k))
    low, high = map(to_numpy, pairs.variance(c, k))
    for b, X in enumerate(points):
        if len(X) == 0:
            continue
        mean, covariance = latent(posterior, X)
        D = covariance[:, c, c] + covariance[:, k, k] - 2 * covariance[:, c, k]
        room = 1e-9 * (1.0 + np.abs(covariance).max())
        assert low[b] <= D.min() + room
        assert high[b] >= D.max() - room
        true = posterior.likelihood.pair.value(mean[:, c] - mean[:, k], np.maximum(D, 0.0))
        assert win[b] <= true.min() + LATENT_ERROR
        for i in range(m):
            least, most = true_sums(posterior, X, np.eye(m)[i])
            assert ranges[i][0][b] <= most.min()
            assert ranges[i][1][b] >= least.max()
    lows, highs = (sum(row[end] for row in ranges) for end in (0, 1))
    assert np.all(lows <= 1.0)
    assert np.all(highs >= 1.0)


@settings(max_examples=examples(50, quick=6))
@given(case=class_cases(coupled=True))
def test_coupled_pairs(case):
    check_pairs(case)


@settings(max_examples=examples(15))
@given(case=class_cases(coupled=False))
def test_independent_pairs(case):
    check_pairs(case)


@settings(max_examples=examples(50))
@given(case=class_cases())
def test_correlations(case):
    own = random_evaluation(case, keep=3)
    m = case.posterior.outputs
    if m < 3:
        return
    c, k, other = (int(i) for i in case.rng.choice(m, 3, replace=False))
    low, high = map(to_numpy, own.pairs.correlation(c, k, other))
    associated = to_numpy(own.pairs.associated(c))
    assert np.all((low >= -1.0) & (low <= high) & (high <= 1.0))
    for b, X in enumerate(points_of_cells(own.evaluation, case.rng)):
        if len(X) == 0:
            continue
        covariance = latent(case.posterior, X)[1]
        u, w = np.eye(m)[k] - np.eye(m)[c], np.eye(m)[other] - np.eye(m)[c]
        shared, first, second = (
            np.einsum("i,bij,j->b", *ends[:1], covariance, *ends[1:])
            for ends in ((u, w), (u, u), (w, w))
        )
        room = 1e-9 * (1.0 + np.abs(covariance).max())
        if associated[b]:
            assert np.all(shared >= -room)
        usable = np.minimum(first, second) > 1e6 * room
        rho = shared[usable] / np.sqrt(first[usable] * second[usable])
        assert np.all(rho >= low[b] - 1e-5)
        assert np.all(rho <= high[b] + 1e-5)


def test_a_correlation_known_exactly():
    """Independent outputs of the same variance: one half; and with the noise of the likelihood."""
    for likelihood in (Softmax(), MultinomialProbit()):
        posterior = Posterior(
            SquaredExponential(1.0, 2.0), [[0.0]], np.zeros((3, 1)), likelihood=likelihood
        )
        own = evaluation_of(posterior, Box([-0.1], [0.1]))
        low, high = (float(end[0]) for end in own.pairs.correlation(0, 1, 2))
        assert low <= 0.5 <= high
        assert high - low < 1e-2


def test_a_negative_correlation():
    """`f_1 - f_0` and `f_2 - f_0` for f_1 = -f_2 nearly, f_0 known."""
    amplitude = 4.0
    factor = np.zeros((3, 2, 1))
    factor[0, 0, 0] = 0.999 / np.sqrt(amplitude)
    factor[1, 1, 0] = factor[2, 1, 0] = 0.999 / np.sqrt(2 * amplitude)
    posterior = Posterior(
        SquaredExponential(1.0, amplitude),
        [[0.0]],
        np.zeros((3, 1)),
        factor,
        likelihood=Softmax(),
        coupled=True,
    )
    X = np.zeros((1, 1))
    V = difference_map(3) @ posterior.covariances(X)[0] @ difference_map(3).T
    own = evaluation_of(posterior, Box([0.0], [0.0]))
    low, high = (float(end[0]) for end in own.pairs.correlation(0, 1, 2))
    true = V[0, 1] / np.sqrt(V[0, 0] * V[1, 1])
    assert low - 1e-12 <= true <= high + 1e-12
    assert true < -0.9
    assert high - low < 1e-6
    assert not own.pairs.associated(0)[0]
    low, high = (float(end[0]) for end in own.pairs.range(0))
    least, most = true_sums(posterior, X, (1.0, 0.0, 0.0))
    assert low <= most[0]
    assert least[0] <= high


probabilities = st.one_of(
    st.floats(0.0, 1.0),
    st.floats(-300.0, 0.0).map(lambda e: 10.0**e),
    st.floats(-16.0, 0.0).map(lambda e: 1.0 - 10.0**e),
    st.sampled_from([0.0, 1.0, 5e-324, 0.5, 1.0 - 2.0**-53]),
)


@settings(max_examples=examples(200))
@given(p=probabilities)
def test_scores_enclose_the_quantile(p):
    """`Phi(low) <= p <= Phi(high)` in ball arithmetic."""
    low, high = (float(end[0]) for end in score_bounds(np.array([p])))
    assert low <= high
    for score, sign in ((low, 1), (high, -1)):
        if np.isfinite(score):
            Phi = (-arb(score) / arb(2).sqrt()).erfc() / 2
            assert not sign * (Phi - arb(p)) > 0
    if 1e-290 < p < 1 - 1e-6:
        assert high - low < 1e-6 * (1.0 + abs(low))
    if p == 0.0:
        assert low == -np.inf
    if p == 1.0:
        assert high == np.inf


@settings(max_examples=examples(80))
@given(seed=st.integers(0, 2**32 - 1))
def test_joint_ranges_hold(seed):
    """Two events with known probabilities and correlation, each within a range."""
    rng = np.random.default_rng(seed)
    h, rho = rng.normal(size=2) * 1.5, float(np.clip(np.tanh(2 * rng.normal()), -0.9999, 0.9999))
    p = scipy.stats.norm.cdf(h)
    room = rng.random((2, 2)) * float(rng.choice([0.0, 0.01, 0.3]))
    wins = (np.maximum(p - room[0], 0.0)[None], np.minimum(p + room[1], 1.0)[None])
    width = rng.random(2) * float(rng.choice([0.0, 0.1, 1.0]))
    correlation = (np.maximum([rho - width[0]], -1.0), np.minimum([rho + width[1]], 1.0))
    found = MultinomialProbit().joint_range(wins, correlation)
    assert found is not None
    low, high = (float(end[0]) for end in found)
    true = scipy.stats.multivariate_normal([0, 0], [[1, rho], [rho, 1]]).cdf(h)
    assert low <= true + 1e-7
    assert high >= true - 1e-7
    assert low >= wins[0].sum() - 1.0 - 1e-7
    assert high <= wins[1].min() + 1e-7


def test_the_softmax_has_no_joint_range():
    wins, ends = np.full((1, 2), 0.5), (np.zeros(1), np.zeros(1))
    assert Softmax().joint_range((wins, wins), ends) is None


def test_joint_ranges_at_the_ends():
    """Certain and impossible events."""
    ends = (np.array([-1.0]), np.array([1.0]))
    for p, q in ((0.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.3, 1.0)):
        wins = np.array([[p, q]])
        low, high = (float(end[0]) for end in MultinomialProbit().joint_range((wins, wins), ends))
        assert low <= min(p, q) <= high


@pytest.mark.parametrize("likelihood", [Softmax(), MultinomialProbit()])
def test_many_coupled_classes_hold_the_truth(likelihood):
    rng = np.random.default_rng(0)
    m, N = 6, 3
    Z = rng.normal(size=(N, 2))
    kernel = SquaredExponential(1.0, 1.0)
    factor = 0.2 * rng.normal(size=(m, 2, N))
    posterior = Posterior(
        kernel, Z, rng.normal(size=(m, N)), factor, likelihood=likelihood, coupled=True
    )
    own = evaluation_of(posterior, Box(Z[0] - 0.05, Z[0] + 0.05))
    X = Z[0] + rng.uniform(-0.05, 0.05, (20, 2))
    mean, covariance = latent(posterior, X)
    # Monte Carlo: the true probabilities within six standard errors
    count = 40_000
    classes = range(m) if THOROUGH else (0, 3)
    low, high = (
        {
            c: s * float(own.lower(tuple(s * w for w in np.eye(m)[c]), None).lower[0])
            for c in classes
        }
        for s in (1.0, -1.0)
    )
    for b in range(0, len(X), 5):
        f = rng.multivariate_normal(mean[b], covariance[b], count)
        links = np.exp(f - f.max(1, keepdims=True))
        links = links / links.sum(1, keepdims=True)
        if likelihood.noise > 0:
            links = (f == f.max(1, keepdims=True)).astype(float)
        error = 6.0 * links.std(0) / np.sqrt(count) + 6.0 / count
        for c in classes:
            assert low[c] <= links[:, c].mean() + error[c]
            assert high[c] >= links[:, c].mean() - error[c]


def test_the_ends_of_a_correlation_are_told_apart():
    """Variances that vary over the cell: the quotient's ends need different standard deviations."""
    amplitude = 4.0
    factor = np.zeros((3, 3, 1))
    factor[0, 0, 0], factor[1, 1, 0], factor[2, 2, 0] = (
        s / np.sqrt(amplitude) for s in (0.2, 0.75, 0.75)
    )
    factor[1, 2, 0] = -0.3 / np.sqrt(amplitude)
    for flip in (1.0, -1.0):
        posterior = Posterior(
            SquaredExponential(1.0, amplitude),
            [[0.0]],
            np.zeros((3, 1)),
            factor * [[[1.0], [1.0], [flip]]],
            likelihood=Softmax(),
            coupled=True,
        )
        own = evaluation_of(posterior, Box([-1.5], [1.5]))
        X = np.linspace(-1.5, 1.5, 61)[:, None]
        covariance = latent(posterior, X)[1]
        V = difference_map(3) @ covariance @ difference_map(3).T
        for (c, k, other), T in {
            (0, 1, 2): np.eye(2),
            (1, 0, 2): np.array([[-1.0, 0.0], [-1.0, 1.0]]),
            (2, 0, 1): np.array([[0.0, -1.0], [1.0, -1.0]]),
        }.items():
            W = T @ V @ T.T
            rho = W[:, 0, 1] / np.sqrt(W[:, 0, 0] * W[:, 1, 1])
            low, high = (float(end[0]) for end in own.pairs.correlation(c, k, other))
            assert low <= rho.min() + 1e-9
            assert high >= rho.max() - 1e-9


class Known(PairBounds):
    """Ranges of the variances of differences as they are given."""

    def __init__(self, ranges):
        outputs = [SimpleNamespace(units=Units(), range=ends) for ends in ranges.values()]
        latent = SimpleNamespace(
            cells=SimpleNamespace(lower=np.zeros((1, 1))),
            geometry=SimpleNamespace(rho2=np.zeros(1)),
            once=lambda key, compute: compute(),
            variance=lambda j: outputs[j],
            dip=lambda j: 0.0,
        )
        super().__init__(latent, ClassLayout(3), Softmax())


@settings(max_examples=examples(100))
@given(seed=st.integers(0, 2**32 - 1))
def test_correlations_follow_from_variances(seed):
    """Random covariances within the ranges; a single one fixes the correlation."""
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=3)[:, None] * [1.0, 0.5, 2.0] + rng.normal(size=(3, 3))
    width = float(rng.choice([0.0, 0.1, 1.0]))
    all_roots = roots + width * rng.normal(size=(20, 3, 3))
    covariance = all_roots @ np.swapaxes(all_roots, 1, 2)
    pairs = ((0, 1), (0, 2), (1, 2))
    D = {
        (k, c): covariance[:, k, k] + covariance[:, c, c] - 2 * covariance[:, k, c]
        for k, c in pairs
    }
    known = Known({pair: (np.array([d.min()]), np.array([d.max()])) for pair, d in D.items()})
    for c, k, other in ((0, 1, 2), (1, 0, 2), (2, 0, 1)):
        first, second, between = (
            D[min(i, j), max(i, j)] for i, j in ((c, k), (c, other), (k, other))
        )
        rho = 0.5 * (first + second - between) / np.sqrt(first * second)
        low, high = (float(end[0]) for end in known.correlation(c, k, other))
        assert low <= rho.min() + 1e-12
        assert high >= rho.max() - 1e-12
        if width == 0.0:
            assert high - low < 1e-9
    # a covariance that is known, and standard deviations that are not
    one, four, two = np.array([1.0]), np.array([4.0]), np.array([2.0])
    ranges = {(0, 1): (one, four), (0, 2): (one, one), (1, 2): (two - 1.0, two + 2.0)}
    low, high = (float(end[0]) for end in Known(ranges).correlation(0, 1, 2))
    assert low <= -1.0
    assert high >= 1.0 - 1e-12
