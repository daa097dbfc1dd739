"""`failure_probability`: closed forms, Monte Carlo, records, budgets, errors in words."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import norm, uniform

import gpcert
from gpcert.errors import InputError
from gpcert.kernels import Linear, SquaredExponential
from gpcert.testing.effort import examples

BUMP = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0]], weights=[1.0])
HILLS = gpcert.Posterior(
    SquaredExponential([1.0, 2.0]), points=[[0.0, 0.0], [1.0, 1.0]], weights=[1.0, -0.5]
)


@pytest.mark.parametrize("distance", [0.3, 2.0, 6.0])
def test_a_bump_of_a_normal_input(distance):
    """exp(-x^2 / 2) < t where |x| > distance: also an event of 2e-9."""
    level = float(np.exp(-0.5 * distance**2))
    exact = 2.0 * norm.sf(distance)
    for quantity, rtol in (("mean", 1e-5), ("ucb", 0.02)):
        found = gpcert.failure_probability(
            BUMP, norm(0, 1), level, quantity=quantity, beta=0.0 if quantity == "ucb" else None,
            rtol=rtol,
        )  # fmt: skip
        assert found.converged
        assert found.lower <= exact * (1 + 1e-9)
        assert exact * (1 - 1e-9) <= found.upper <= found.lower * (1 + rtol)
    above = gpcert.failure_probability(BUMP, [norm(0, 1)], level, side="above")
    assert above.lower <= (1.0 - exact) * (1 + 1e-9)
    assert (1.0 - exact) * (1 - 1e-9) <= above.upper


LAWS = [
    [norm(0.2, 0.8), uniform(-1.0, 3.0)],
    [stats.lognorm(0.5), stats.expon(-1.0, 0.7)],
    [stats.beta(2.0, 3.5, -1.0, 2.0), stats.gamma(1.7, -0.5, 0.4)],
    [stats.triang(0.3, -1, 2), stats.logistic(0, 0.4)],
    [stats.gumbel_r(0, 0.5), stats.gumbel_l(0.3, 0.5)],
    [stats.weibull_min(2, -1, 1.5), stats.weibull_max(1.5)],
    [stats.truncnorm(-1, 2, 0.1, 0.7), stats.halfnorm()],
]


@pytest.mark.parametrize("laws", LAWS)
def test_against_monte_carlo(laws):
    rng = np.random.default_rng(1)
    X = np.stack([law.rvs(size=200_000, random_state=rng) for law in laws], axis=1)
    share = float(np.mean(HILLS.mean(X)[:, 0] < 0.1))
    found = gpcert.failure_probability(HILLS, laws, 0.1)
    assert found.converged
    slack = 5.0 * np.sqrt(share * (1.0 - share) / len(X))
    assert found.lower - slack <= share <= found.upper + slack
    assert found.upper <= 1.01 * found.lower
    once = gpcert.failure_probability(HILLS, laws, 0.1, rtol=2e-3)
    assert found.lower <= once.upper
    assert once.lower <= found.upper


@given(seed=st.integers(0, 10**6))
@settings(max_examples=examples(20, quick=3), deadline=None)
def test_both_sides_add_up(seed):
    """P[g < t] + P[g > t] = 1, for random functions of three inputs."""
    rng = np.random.default_rng(seed)
    model = gpcert.Posterior(
        SquaredExponential(rng.uniform(0.8, 2.0, 3)), rng.normal(size=(5, 3)), rng.normal(size=5)
    )
    level = float(np.quantile(model.mean(rng.normal(size=(500, 3))), rng.uniform(0.1, 0.9)))
    laws = [norm(), uniform(-1, 2), norm(1, 0.5)]
    below, above = (
        gpcert.failure_probability(model, laws, level, side=side, tol=0.1)
        for side in ("below", "above")
    )
    assert below.lower + above.lower <= 1.0 <= below.upper + above.upper
    assert below.upper - below.lower <= 0.1


def test_a_fixed_feature_and_names():
    found = gpcert.failure_probability(HILLS, {0: norm(), 1: 0.0}, 0.5)
    X = np.stack([np.linspace(-9, 9, 10**6), np.zeros(10**6)], axis=1)
    share = np.sum(norm.pdf(X[:, 0])[HILLS.mean(X)[:, 0] < 0.5]) * (18 / 10**6)
    assert found.lower - 1e-5 <= share <= found.upper + 1e-5
    assert found.laws[1] == "0"


def test_record(tmp_path):
    found = gpcert.failure_probability(HILLS, [norm(), norm()], 0.0, paving=True, rtol=0.1)
    found.save(tmp_path / "p.json")
    again = gpcert.load(tmp_path / "p.json")
    assert repr(again) == repr(found)
    assert np.array_equal(again.cells, found.cells)
    assert "norm(loc=0, scale=1)" in str(found)
    inside, outside = found.status == 1, found.status == 2
    rng = np.random.default_rng(0)
    for rows, sign in ((inside, -1), (outside, 1)):
        low, high = found.cells[rows, 0], found.cells[rows, 1]
        values = HILLS.mean(rng.uniform(low, high))[:, 0]
        assert np.all(sign * values >= 0)
    assert found.mass[inside].sum() <= found.upper + 1e-9
    assert found.mass.sum() == pytest.approx(1.0)
    assert gpcert.failure_probability(HILLS, [norm(), norm()], 0.0).cells.size == 0


def test_budgets():
    short = gpcert.failure_probability(
        HILLS, [norm(), norm()], 0.0, rtol=1e-9, budget=gpcert.Budget(boxes=60)
    )
    assert not short.converged
    assert 0.0 <= short.lower < short.upper <= 1.0
    assert short.reason is gpcert.StopReason.BOXES


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ([norm()], "each of 2 features, got 1"),
        ([norm(), stats.poisson(3)], "discrete poisson"),
        ([norm(), stats.cauchy()], "got cauchy; use the nearest"),
        ([norm(), stats.norm], "frozen distribution"),
        ([norm(), "normal"], "a number, got 'normal'"),
        ([norm(), norm(0, -1)], "expected parameters of norm"),
        ([1.0, 2.0], "at least one feature"),
        ({0: norm()}, "got none for feature 1"),
        ("norm", "one distribution or number"),
    ],
)
def test_inputs_that_are_refused(inputs, words):
    with pytest.raises(InputError, match=words):
        gpcert.failure_probability(HILLS, inputs, 0.0)


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("threshold", {"threshold": float("nan")}),
        ("side", {"side": "under"}),
        ("band", {"quantity": "band"}),
        ("rtol", {"rtol": 1.5}),
        ("did you mean", {"rtoll": 0.1}),
    ],
)
def test_options_that_are_refused(words, options):
    with pytest.raises(InputError, match=words):
        gpcert.failure_probability(HILLS, [norm(), norm()], **{"threshold": 0.0} | options)


def test_correlated_normal_inputs():
    """X = m + L z: of a bump of one combination in closed form."""
    law = stats.multivariate_normal([0.5, -0.2], [[1.0, 0.6], [0.6, 0.8]])
    X = law.rvs(size=200_000, random_state=np.random.default_rng(3))
    share = float(np.mean(HILLS.mean(X)[:, 0] < 0.1))
    found = gpcert.failure_probability(HILLS, law, 0.1)
    slack = 5.0 * np.sqrt(share * (1.0 - share) / len(X))
    assert found.lower - slack <= share <= found.upper + slack
    assert found.upper <= 1.01 * found.lower
    singular = stats.multivariate_normal([0, 0], [[1, 1], [1, 1]], allow_singular=True)
    with pytest.raises(InputError, match="positive definite"):
        gpcert.failure_probability(HILLS, singular, 0.1)
    with pytest.raises(InputError, match="no boxes"):
        gpcert.failure_probability(HILLS, law, 0.1, paving=True)


def test_many_normal_inputs_are_turned():
    """A rare event of a sum of seven inputs, which cells along the inputs hardly see."""
    d, reach = 6, 4.0
    model = gpcert.Posterior(Linear(1.0), np.ones((1, d)) / np.sqrt(d), [1.0])
    found = gpcert.failure_probability(model, [norm()] * d, reach, side="above", rtol=0.01)
    assert found.converged
    assert found.lower <= norm.sf(reach) * (1 + 1e-9)
    assert norm.sf(reach) * (1 - 1e-9) <= found.upper <= 1.01 * found.lower
    assert found.outside < 1e-12


class FromOpenTURNS:
    """A distribution as OpenTURNS has it."""

    def __init__(self, name, *parameters):
        self.name, self.parameters = name, parameters

    def getImplementation(self):
        return self

    def getClassName(self):
        return self.name

    def getDimension(self):
        return 1

    def getParameter(self):
        return self.parameters

    def computeCDF(self, x):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (FromOpenTURNS("Normal", 0.5, 2.0), norm(0.5, 2.0)),
        (FromOpenTURNS("Uniform", -1.0, 2.0), uniform(-1.0, 3.0)),
        (FromOpenTURNS("LogNormal", 0.1, 0.5, -1.0), stats.lognorm(0.5, -1.0, np.exp(0.1))),
        (FromOpenTURNS("Exponential", 2.0, -1.0), stats.expon(-1.0, 0.5)),
        (FromOpenTURNS("Triangular", -1.0, 0.5, 2.0), stats.triang(0.5, -1.0, 3.0)),
        (FromOpenTURNS("Logistic", 0.5, 0.2), stats.logistic(0.5, 0.2)),
        (FromOpenTURNS("WeibullMin", 1.5, 2.0, -1.0), stats.weibull_min(2.0, -1.0, 1.5)),
        (FromOpenTURNS("Gumbel", 0.5, 0.1), stats.gumbel_r(0.1, 0.5)),
        (
            FromOpenTURNS("TruncatedNormal", 0.5, 2.0, -1.5, 1.0),
            stats.truncnorm(-1.0, 0.25, 0.5, 2.0),
        ),
    ],
)
def test_laws_of_openturns(theirs, ours):
    first, second = (gpcert.failure_probability(BUMP, [law], 0.5) for law in (theirs, ours))
    assert (first.lower, first.upper) == (second.lower, second.upper)


def test_laws_of_openturns_that_are_refused():
    with pytest.raises(InputError, match="got Student; use the nearest"):
        gpcert.failure_probability(BUMP, [FromOpenTURNS("Student", 3.0, 0.0, 1.0)], 0.5)


def test_a_threshold_of_the_first_class_that_no_float_is_left_of():
    # P[first class] is below 1e-20 everywhere, so that 1 - 1e-17, which rounds to 1, is exceeded
    model = gpcert.Posterior(
        SquaredExponential(50.0),
        points=[[0.0]],
        weights=[12.0],
        factor=[[0.999]],
        likelihood=gpcert.likelihoods.Probit(),
        classes=("no", "yes"),
    )
    asked = {"quantity": "probability", "output": "no", "budget": gpcert.Budget(boxes=64)}
    assert gpcert.failure_probability(model, [uniform(-1, 2)], 1e-17, **asked).upper == 1.0
