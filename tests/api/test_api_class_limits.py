"""Class probabilities where something is known exactly, and at their limits."""

import numpy as np
import pytest

import gpcert
from gpcert.certificates import Status
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Logistic, MultinomialProbit, Softmax
from gpcert.model.posterior import Posterior
from gpcert.regions import Ball, Box
from gpcert.search import Budget
from gpcert.testing.effort import THOROUGH, crossed, examples, variants
from tests.api.class_models import LIKELIHOODS, ROUNDING, check_ranges, probabilities, tiny


@crossed(
    {
        "likelihood": LIKELIHOODS,
        "coupled, m": [(True, 2), (True, 3), (False, 2), (False, 3), (False, 5)],
    },
    quick=4,
)
def test_posteriors_of_the_user(likelihood, coupled, m):
    posterior = tiny(likelihood, coupled, m)
    region = Box([0.1], [0.4])
    X = np.linspace(0.1, 0.4, 41)[:, None]
    check_ranges(posterior, region, gpcert.prediction_ranges(posterior, region, tol=0.02), 0.02, X)


def two_outputs(likelihood=None):
    """Coupled latent functions, and the binary posterior of their difference."""
    rng = np.random.default_rng(5)
    kernel, Z = SquaredExponential(0.8, 3.0), rng.normal(size=(3, 2))
    t, A = rng.normal(size=(2, 3)), 0.15 * rng.normal(size=(2, 3, 3))
    several = Posterior(kernel, Z, t, A, likelihood=likelihood or Softmax(), coupled=True)
    d = several.differences
    single = Posterior(
        d.kernel,
        d.points,
        d.weights,
        d.factor,
        offset=d.offset,
        noise=d.noise,
        likelihood=Logistic(),
    )
    return several, single


def test_two_classes_agree_with_the_logistic():
    several, single = two_outputs()
    tol = 0.005
    for center in ([0.0, 0.0], [0.5, -0.5]):
        region = Ball(center, 0.15)
        one = gpcert.prediction_range(single, region, tol=tol)
        first, second = gpcert.prediction_ranges(several, region, tol=tol)
        for mine, other in ((one.minimum, second.minimum), (one.maximum, second.maximum)):
            assert mine.lower <= other.upper
            assert other.lower <= mine.upper
        assert first.minimum.lower <= 1.0 - one.maximum.lower
        assert 1.0 - one.maximum.upper <= first.minimum.upper
        decision = gpcert.certify(several, center, 0.15)
        assert decision.status == gpcert.certify(single, center, 0.15).status


@crossed({"likelihood": LIKELIHOODS, "coupled": [True, False], "half": [0.3, 3.0]})
def test_equal_classes(likelihood, coupled, half):
    """Constant means: a third each by symmetry, and no class ever wins by a margin."""
    factor = np.zeros((3, 3, 1))
    factor[[0, 1, 2], [0, 1, 2], 0] = 0.5
    posterior = Posterior(
        SquaredExponential(1.0, 1.0),
        [[0.0]],
        np.zeros((3, 1)),
        factor,
        likelihood=likelihood,
        coupled=coupled,
    )
    tol = 0.01 if THOROUGH else 0.05
    for found in gpcert.prediction_ranges(posterior, Box([-half], [half]), tol=tol):
        assert found.converged
        assert found.minimum.lower <= 1 / 3 + 1e-12
        assert found.maximum.upper >= 1 / 3 - 1e-12
    certificate = gpcert.certify(posterior, [0.0], 0.1, budget=Budget(boxes=50))
    assert certificate.status is not Status.ROBUST


@variants("likelihood", LIKELIHOODS)
def test_one_class_dominates(likelihood):
    posterior = tiny(likelihood, True, offset=[0.0, 60.0, 0.0])
    region = Box([-0.5], [1.0])
    ranges = gpcert.prediction_ranges(posterior, region, tol=1e-3)
    assert ranges[1].minimum.lower > 0.999
    assert ranges[1].maximum.upper <= 1.0
    assert ranges[0].maximum.upper < 1e-3
    assert ranges[0].minimum.lower >= 0.0
    assert gpcert.certify(posterior, [0.2], 0.5).status is Status.ROBUST


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_classes_that_are_almost_perfectly_correlated(likelihood):
    """`f_1 - f_0` is known nearly exactly: the covariance of the differences is near-singular."""
    amplitude = 4.0
    factor = np.zeros((3, 1, 1))
    factor[0, 0, 0], factor[1, 0, 0] = (s * (1 - 1e-9) / np.sqrt(2 * amplitude) for s in (1, -1))
    posterior = Posterior(
        SquaredExponential(1.0, amplitude),
        [[0.0]],
        [[0.5], [0.2], [-0.1]],
        factor,
        likelihood=likelihood,
        coupled=True,
    )
    X = np.linspace(-0.05, 0.05, 21)[:, None]
    V = posterior.covariances(np.zeros((1, 1)))[0]
    assert V[0, 0] + V[1, 1] - 2 * V[0, 1] < 1e-7
    p = posterior.prediction(X)
    ranges = gpcert.prediction_ranges(posterior, Box([-0.05], [0.05]), budget=Budget(boxes=20))
    for c, found in enumerate(ranges):
        assert found.minimum.lower <= p[:, c].min() + ROUNDING
        assert found.maximum.upper >= p[:, c].max() - ROUNDING
        assert found.maximum.upper - found.minimum.lower < 0.3


@crossed({"likelihood": LIKELIHOODS, "coupled": [True, False]})
def test_no_variance(likelihood, coupled):
    """At the only point the posterior is certain: the link of the means."""
    factor = np.zeros((3, 3, 1))
    factor[[0, 1, 2], [0, 1, 2], 0] = 1.0
    g = np.array([1.0, 0.4, -0.5])
    posterior = Posterior(
        SquaredExponential(1.0, 1.0),
        [[0.0]],
        g[:, None],
        factor,
        likelihood=likelihood,
        coupled=coupled,
    )
    ranges = gpcert.prediction_ranges(posterior, Box([0.0], [0.0]), tol=1e-3)
    if likelihood.noise == 0:
        true = np.exp(g) / np.exp(g).sum()
    else:
        found = likelihood.independent_moments(g[None], np.zeros((1, 3)), np.eye(3)[0])
        true = [float(found.value[0])]
    for found, p in zip(ranges, true, strict=False):
        assert found.minimum.lower <= p <= found.maximum.upper
        assert found.maximum.upper - found.minimum.lower < 0.01
    region = Box([-0.02], [0.02])
    check_ranges(posterior, region, gpcert.prediction_ranges(posterior, region, tol=0.02), 0.02)


@crossed({"likelihood": LIKELIHOODS, "coupled": [True, False]})
def test_a_huge_variance(likelihood, coupled):
    posterior = tiny(likelihood, coupled, amplitude=1e4)
    region = Box([0.3], [0.31])
    X = np.linspace(0.3, 0.31, 11)[:, None]
    check_ranges(posterior, region, gpcert.prediction_ranges(posterior, region, tol=0.03), 0.03, X)


@crossed({"likelihood": LIKELIHOODS, "coupled, m": [(True, 3), (False, 3), (False, 8)]}, quick=2)
def test_a_region_of_one_point(likelihood, coupled, m):
    posterior, x = tiny(likelihood, coupled, m), np.array([0.3])
    p = probabilities(posterior, x[None])[0]
    for c, found in enumerate(gpcert.prediction_ranges(posterior, Ball(x, 0.0), tol=1e-4)):
        assert found.minimum.lower <= p[c] + ROUNDING
        assert found.maximum.upper >= p[c] - ROUNDING
        assert found.maximum.upper - found.minimum.lower < 1e-3
    certificate = gpcert.certify(posterior, x, 0.0)
    assert certificate.status is Status.ROBUST
    assert certificate.decision == int(p.argmax())


@crossed({"likelihood": LIKELIHOODS, "coupled, m": [(True, 3), (False, 3), (False, 5)]}, quick=1)
def test_torch_agrees(likelihood, coupled, m):
    pytest.importorskip("torch")
    posterior, region = tiny(likelihood, coupled, m), Box([0.1], [0.3])
    tol = 0.02 if THOROUGH else 0.1
    both = [
        gpcert.prediction_ranges(posterior, region, tol=tol, backend=name)
        for name in ("numpy", "torch")
    ]
    for one, other in zip(*both, strict=True):
        for mine, theirs in ((one.minimum, other.minimum), (one.maximum, other.maximum)):
            assert mine.lower == pytest.approx(theirs.lower, abs=1e-9)
            assert mine.upper == pytest.approx(theirs.upper, abs=1e-6)


@crossed({"likelihood": LIKELIHOODS, "coupled, m": [(True, 3), (False, 5)]})
def test_a_million_samples_do_not_contradict(likelihood, coupled, m):
    """An independent way to the probabilities: sampled latent values, six standard errors."""
    posterior, x, count = tiny(likelihood, coupled, m), np.array([[0.3]]), 1_000_000
    rng = np.random.default_rng(0)
    covariance = posterior.covariances(x)[0] + likelihood.noise * np.eye(m)
    f = posterior.predict(x)[0] + rng.normal(size=(count, m)) @ np.linalg.cholesky(covariance).T
    if likelihood.noise > 0:
        links = (f == f.max(1, keepdims=True)).astype(float)
    else:
        links = np.exp(f - f.max(1, keepdims=True))
        links = links / links.sum(1, keepdims=True)
    error = 6.0 * links.std(0) / np.sqrt(count)
    for c, found in enumerate(gpcert.prediction_ranges(posterior, Ball(x[0], 0.0), tol=1e-5)):
        assert found.minimum.lower <= links[:, c].mean() + error[c]
        assert found.maximum.upper >= links[:, c].mean() - error[c]
        assert found.maximum.upper - found.minimum.lower < 1e-4


def test_coupled_probit_classes_without_an_integral_have_valid_wider_bounds():
    """More coupled classes than `largest_coupled`: every verb answers, local search included."""
    posterior = tiny(MultinomialProbit(), coupled=True, m=MultinomialProbit.largest_coupled + 1)
    box, few = Box([-0.05], [0.05]), Budget(boxes=examples(3, quick=1))
    p = posterior.prediction(np.linspace(-0.05, 0.05, examples(9, quick=3))[:, None])
    first = gpcert.prediction_range(posterior, box, output=posterior.labels[0], budget=few)
    every = gpcert.prediction_ranges(posterior, box, budget=few) if THOROUGH else [first]
    for c, found in enumerate(every):
        assert 0.0 <= found.minimum.lower <= p[:, c].min() + 1e-3
        assert 1.0 >= found.maximum.upper >= p[:, c].max() - 1e-3
    assert first.minimum.lower <= p[:, 0].min() + 1e-3
    radius = gpcert.certified_radius(posterior, [0.0], max_radius=0.5, budget=Budget(seconds=0.5))
    assert 0.0 <= radius.lower <= radius.upper
    certificate = gpcert.certify(posterior, [0.0], 0.01, budget=few)
    assert certificate.margin.lower <= certificate.margin.upper
