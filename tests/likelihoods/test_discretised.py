"""A user's own link: enclosures and the lemma on Gaussian integrals in 200 bits, and all verbs."""

import pickle

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit, ndtr

import gpcert
from gpcert.errors import InputError
from gpcert.integrals.special import gaussian_integral_range
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Probit
from gpcert.likelihoods.discretised import Discretised
from gpcert.numerics.arrays import backend_from_name, to_numpy
from gpcert.testing.arb_reference import logistic_normal, normal_cdf, regression_posterior
from gpcert.testing.effort import examples
from gpcert.testing.likelihood_contract import segments


def lopsided(f):
    """A link that is not symmetric: the complementary log-log function."""
    with np.errstate(over="ignore"):
        return -np.expm1(-np.exp(f))


def staircase(f):
    """A link with jumps and flat parts, from 0.1 to 0.8."""
    return 0.1 + 0.35 * (f > -1.0) + 0.35 * (f >= 0.5)


PROBIT = Discretised(ndtr, pieces=64)
LOGISTIC = Discretised(expit, inverse=logit, pieces=64)
STAIRS = Discretised(staircase, pieces=20)
HEAVISIDE = Discretised(lambda f: 1.0 * (f >= 0.0), pieces=2)
FEW = Discretised(ndtr, inverse=lambda p: np.linspace(-1.0, 3.0, len(p)), pieces=5)


def one(*values):
    return [np.array([value]) for value in values]


def probit_mean(mu, v):
    return normal_cdf(mu / (1 + v).sqrt())


def stairs_mean(mu, v):
    if v == 0:
        return arb(float(staircase(float(mu))))
    root = v.sqrt()
    return (
        arb(0.1)
        + arb(0.35) * normal_cdf((mu + 1) / root)
        + arb(0.35) * normal_cdf((mu - arb(0.5)) / root)
    )


@settings(max_examples=examples(150))
@given(mu=st.floats(-30, 30), v=st.one_of(st.just(0.0), st.floats(0, 50), st.floats(0, 1e-6)))
def test_enclosures_hold_the_expectation(mu, v):
    for likelihood, reference in ((PROBIT, probit_mean), (STAIRS, stairs_mean)):
        low, high = likelihood.enclose(*one(mu, v))
        true = reference(arb(mu), arb(v))
        assert not arb(float(low[0])) > true
        assert not arb(float(high[0])) < true
        plain = float(likelihood.value(*one(mu, v))[0])
        assert low[0] - 1e-9 <= plain <= high[0] + 1e-9


@settings(max_examples=examples(10), deadline=None)
@given(mu=st.floats(-5, 5), v=st.floats(0.01, 10))
def test_logistic(mu, v):
    low, high = LOGISTIC.enclose(*one(mu, v))
    true = logistic_normal(arb(mu), arb(v))
    assert not arb(float(low[0])) > true
    assert not arb(float(high[0])) < true
    assert high[0] - low[0] <= 2.0 / 64


@settings(max_examples=examples(200))
@given(segment=segments(), share=st.floats(0, 1))
def test_segments(segment, share):
    """Bounds over a line hold at its ends, inside, and where its score is least."""
    alpha, beta, v_low, v_high = segment
    low = float(PROBIT.line_minimum(*one(*segment))[0])
    high = float(PROBIT.line_maximum(*one(*segment))[0])
    places = [v_low, v_high, v_low + share * (v_high - v_low)]
    if beta != 0 and v_low < alpha / beta < v_high:
        places.append(alpha / beta)
    for v in np.clip(places, v_low, v_high).tolist():
        true = probit_mean(arb(alpha) + arb(beta) * arb(v), arb(v))
        assert not arb(low) > true
        assert not arb(high) < true


def jumps(f):
    """From 0 to 0.3 at -1, to 1 at 1/2: step functions below and above it are exact."""
    return 0.3 * (f >= -1.0) + 0.7 * (f >= 0.5)


JUMPS = Discretised(jumps, pieces=8)


@settings(max_examples=examples(300))
@given(mu=st.floats(-30, 30), v=st.one_of(st.floats(1e-3, 50), st.floats(1e-12, 1e-6)))
def test_jumps_are_exact_up_to_rounding(mu, v):
    """No discretisation error hides a missing rounding here."""
    low, high = JUMPS.enclose(*one(mu, v))
    root = arb(v).sqrt()
    first, second = normal_cdf((arb(mu) + 1) / root), normal_cdf((arb(mu) - arb(0.5)) / root)
    true = arb(jumps(-1.0)) * first + (1 - arb(jumps(-1.0))) * second
    assert not arb(float(low[0])) > true
    assert not arb(float(high[0])) < true
    assert high[0] - low[0] < 1e-5


@settings(max_examples=examples(200))
@given(
    alpha=st.floats(0.01, 3),
    beta=st.floats(0.01, 3),
    below=st.floats(0.01, 1.0),
    beyond=st.floats(1.0, 100.0),
)
def test_lines_touch_inside(alpha, beta, below, beyond):
    """`(alpha + beta v) / sqrt v` is least at v = alpha / beta: `2 sqrt(alpha beta)`."""
    at = alpha / beta
    line = one(alpha, beta, below * at, beyond * at)
    least = normal_cdf(2 * (arb(alpha) * arb(beta)).sqrt())
    low = float(HEAVISIDE.line_minimum(*line)[0])
    assert not arb(low) > least + arb(1e-13) * (below * at > alpha / beta)
    assert low >= float(least) - 1e-6
    mirrored = float(HEAVISIDE.line_maximum(-line[0], -line[1], *line[2:])[0])
    assert not arb(mirrored) < 1 - least - arb(1e-13) * (below * at > alpha / beta)


@settings(max_examples=examples(60))
@given(mu=st.floats(-4, 4), v=st.floats(0.0, 4.0))
def test_cuts_may_lie_anywhere(mu, v):
    """A poor inverse makes wide steps of different heights, never a wrong bound."""
    low, high = FEW.enclose(*one(mu, v))
    true = probit_mean(arb(mu), arb(v))
    assert not arb(float(low[0])) > true
    assert not arb(float(high[0])) < true


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_errors_of_the_link_are_counted(side):
    """A link that is 1e-9 off, and says so."""
    off = Discretised(lambda f: np.clip(jumps(f) + side * 1e-9, 0.0, 1.0), link_ulps=1e-9 * 2.0**53)
    for mu in np.linspace(-3.0, 3.0, 13):
        low, high = off.enclose(*one(mu, 0.5))
        root = arb(0.5).sqrt()
        first, second = normal_cdf((arb(mu) + 1) / root), normal_cdf((arb(mu) - arb(0.5)) / root)
        true = arb(jumps(-1.0)) * first + (1 - arb(jumps(-1.0))) * second
        assert not arb(float(low[0])) > true
        assert not arb(float(high[0])) < true


def test_lemma_on_neighbouring_floats():
    """The middle of [1, 1 + ulp] is no float: the greatest integral lies there all the same."""
    a, b, v = 1.0, np.nextafter(1.0, 2.0), 1e-32
    _, most = gaussian_integral_range(*one(a, b), tuple(one(0.5, 1.5)), tuple(one(v, v)))
    half = (arb(float(b)) - 1) / 2 / arb(v).sqrt()
    assert not arb(float(most[0])) < 2 * normal_cdf(half) - 1


def test_more_pieces_are_tighter():
    widths = []
    for pieces in (16, 64, 256):
        low, high = Discretised(expit, pieces=pieces).enclose(*one(0.3, 1.0))
        widths.append(float(high[0] - low[0]))
    assert widths[0] > 3 * widths[1] > 9 * widths[2]
    assert widths[2] < 1.2 / 256


def test_close_to_the_exact_line_minimum():
    """Within 1/M and the pieces of v of the probit's own minimum."""
    fine = Discretised(ndtr, pieces=1000)
    rng = np.random.default_rng(0)
    alpha, beta = rng.normal(size=(2, 50))
    v_low = rng.uniform(0, 2, 50)
    line = (alpha, 0.3 * beta, v_low, v_low + 0.2)
    gap = Probit().line_minimum(*line) - fine.line_minimum(*line)
    assert np.all(gap >= -1e-12)
    assert gap.max() < 0.02


@settings(max_examples=examples(200))
@given(
    a=st.floats(-5, 5),
    width=st.floats(1e-9, 5),
    mu=st.tuples(st.floats(-8, 8), st.floats(0, 3)),
    v=st.tuples(st.one_of(st.floats(1e-6, 4), st.floats(1e-12, 1e-6)), st.floats(0, 4)),
    shares=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_lemma_gaussian(a, width, mu, v, shares):
    """Least and greatest integral over ranges of mean and variance, at critical points too."""
    b = a + width
    mu_range, v_range = (mu[0], mu[0] + mu[1]), (v[0], v[0] + v[1])
    ranges = [tuple(one(*pair)) for pair in (mu_range, v_range)]
    least, most = gaussian_integral_range(*one(a, b), *ranges)
    means = [
        *mu_range,
        mu_range[0] + shares[0] * mu[1],
        min(max(0.5 * (a + b), mu[0]), mu_range[1]),
    ]
    for m in np.clip(means, *mu_range).tolist():
        variances = [*v_range, v_range[0] + shares[1] * v[1]]
        far, near = max(abs(m - a), abs(m - b)), min(abs(m - a), abs(m - b))
        if near > 0 and not a <= m <= b:
            variances.append((far**2 - near**2) / (2 * np.log(far / near)))
        for w in np.clip(variances, *v_range).tolist():
            root = arb(w).sqrt()
            true = normal_cdf((arb(b) - arb(m)) / root) - normal_cdf((arb(a) - arb(m)) / root)
            assert not arb(float(least[0])) > true
            assert not arb(float(most[0])) < true


@settings(max_examples=examples(60))
@given(
    mu=st.tuples(st.floats(-3, 3), st.floats(0, 1)), v=st.tuples(st.floats(0.1, 2), st.floats(0, 1))
)
def test_never_looser_than_the_paper(mu, v):
    """The summands by tails dominate the paper's sum over intervals; both are bounds."""
    ranges = [tuple(one(low, low + width)) for low, width in (mu, v)]
    paper_low, paper_high = PROBIT.interval_sum(*ranges)
    zero = np.zeros(1)
    low = PROBIT.line_minimum(ranges[0][0], zero, *ranges[1])
    high = PROBIT.line_maximum(ranges[0][1], zero, *ranges[1])
    assert paper_low[0] <= low[0] + 1e-12
    assert high[0] <= paper_high[0] + 1e-12
    for m in ranges[0]:
        for w in ranges[1]:
            true = probit_mean(arb(float(m[0])), arb(float(w[0])))
            assert not arb(float(paper_low[0])) > true
            assert not arb(float(paper_high[0])) < true


def test_backends_agree():
    pytest.importorskip("torch")
    backend = backend_from_name("torch")
    rng = np.random.default_rng(0)
    line = (*rng.normal(size=(2, 40)), np.zeros(40), rng.uniform(0, 3, 40))
    here = PROBIT.line_minimum(*map(backend.asarray, line))
    np.testing.assert_allclose(to_numpy(here), PROBIT.line_minimum(*line), atol=1e-12)


def test_slopes_point_the_right_way():
    mu, v = np.array([-1.0, 0.5]), np.array([0.5, 2.0])
    step = 1e-3
    fine = Discretised(expit, pieces=2000)
    by_mu, by_v = fine.slopes(mu, v)
    rise = (fine.value(mu + step, v) - fine.value(mu - step, v)) / (2 * step)
    bend = (fine.value(mu, v + step) - fine.value(mu, v - step)) / (2 * step)
    np.testing.assert_allclose(by_mu, rise, rtol=0.02)
    np.testing.assert_allclose(by_v, bend, rtol=0.1, atol=1e-3)


@pytest.mark.parametrize(
    "link",
    [lambda f: 2.0 * expit(f), lambda f: expit(-f), lambda f: np.full(f.shape, np.nan), 3.0],
    ids=["above 1", "falling", "nan", "number"],
)
def test_bad_links_are_refused(link):
    with pytest.raises(InputError, match="link"):
        Discretised(link, inverse=lambda p: np.linspace(-4, 4, len(p)))


def test_cannot_be_saved():
    with pytest.raises(InputError, match="cannot be saved"):
        PROBIT.config()
    assert pickle.loads(pickle.dumps(PROBIT)).pieces == 64


@pytest.mark.parametrize("how", [{}, {"method": "paper", "variance_bound": "analytic"}], ids=str)
def test_ranges_and_decisions_by_an_asymmetric_link(how):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.5, 1.5, (10, 2))
    model = regression_posterior(
        SquaredExponential([0.9, 1.1]),
        X,
        (2.0 * np.sin(2 * X[:, 0]))[None],
        0.1,
        likelihood=Discretised(lopsided),
        classes=("no", "yes"),
    )
    box = gpcert.Box([-0.1, 0.1], [0.1, 0.3])
    found = gpcert.prediction_range(model, box, tol=0.02, **how)
    axes = np.linspace(box.lower, box.upper, 30).T
    values = model.prediction(np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2))
    assert found.quantity == "probability"
    assert found.converged
    assert found.minimum.lower <= values.min() + 2e-3
    assert values.max() - 2e-3 <= found.maximum.upper
    # at mu = 0 this link is 0.63, so the decision must not be read off the sign of the mean
    x = X[np.argmin(np.abs(model.predict(X)[0][:, 0] + 0.2))]
    certificate = gpcert.certify(model, x, 0.01, **how)
    assert (certificate.decision == "yes") == (model.prediction(x[None])[0, 0] > 0.5)
    assert "probability" in certificate.rule
