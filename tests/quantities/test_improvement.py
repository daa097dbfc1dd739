"""Expected improvement and its probability: lines, cells, verbs; against 400 bits and samples."""

import math
from itertools import pairwise

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

import gpcert
from gpcert.errors import InputError
from gpcert.kernels import Matern, SquaredExponential
from gpcert.likelihoods import Probit
from gpcert.quantities import (
    ExpectedImprovement,
    LogExpectedImprovement,
    LogProbabilityOfImprovement,
    ProbabilityOfImprovement,
)
from gpcert.testing.arb_reference import regression_posterior
from gpcert.testing.effort import examples
from tests.integrals.normal_tail_references import log_cdf, log_excess

PRECISION = 400
KINDS = {"ei": ExpectedImprovement, "log_ei": LogExpectedImprovement,
         "pi": ProbabilityOfImprovement, "log_pi": LogProbabilityOfImprovement}  # fmt: skip
names = pytest.mark.parametrize("name", sorted(KINDS))


def reference(name, u, v):
    """F(u, v) as a ball, of arb arguments, v > 0."""
    value = log_excess(u, v) if "ei" in name else log_cdf(u / v.sqrt())
    return value if "log" in name else value.exp()


@st.composite
def lines(draw):
    """`(a, b, v_low, v_high)`: scales from 1e-12 to 1e6, scores down to -1e6, falling and rising
    means, points, and segments that begin at v = 0."""
    s = 10.0 ** draw(st.floats(-12.0, 6.0))
    v_high = s * s
    part = draw(st.sampled_from([0.0, 1e-12, 0.1, 0.9, 1.0])) * draw(st.floats(0.5, 1.0))
    v_low = min(v_high * part, v_high)
    z = draw(st.one_of(st.floats(-4.0, 4.0), st.floats(-60.0, 40.0), st.floats(-1e6, 40.0)))
    sign = draw(st.sampled_from([1.0, -1.0, -1.0, 0.0]))
    b = sign * 10.0 ** draw(st.floats(-4.0, 4.0)) / s
    at = v_low + draw(st.sampled_from([0.0, 0.5, 1.0])) * (v_high - v_low)
    return z * s - b * at, b, v_low, v_high


@names
@pytest.mark.parametrize("maximize", [True, False])
@settings(deadline=None, max_examples=examples(150, quick=40))
@given(line=lines(), where=st.lists(st.floats(0.0, 1.0), min_size=2, max_size=4),
       best=st.sampled_from([0.0, 0.0, 1.0]))  # fmt: skip
def test_lines_bound_every_point(name, maximize, line, where, best):
    """`lowest` of F and of -F: no tolerance, at the ends and inside, and above the line, too."""
    a, b, v_low, v_high = line
    shift = best if maximize else -best
    up, down = (KINDS[name](0, sign, best, maximize) for sign in (1, -1))
    up, down = (up, down) if maximize else (down, up)
    assert (up.side, down.side) == (1, -1)
    arrays = [np.array([x]) for x in (a, b, v_low, v_high)]
    lower = float(up.lowest(*arrays)[0])  # u = q - shift
    upper = -float(down.lowest(-arrays[0], -arrays[1], *arrays[2:])[0])  # u = -q - shift
    assert lower <= upper
    with ctx.workprec(PRECISION):
        for share in [0.0, *where, 1.0]:
            v = min(max(v_low + share * (v_high - v_low), v_low), v_high)
            if v <= 0.0:
                continue
            u = arb(a) + arb(b) * arb(v) - arb(shift)
            real = reference(name, u, arb(v))
            if not real.is_finite():  # below what a ball holds
                continue
            assert not arb(lower) > real
            assert not arb(upper) < real
            # means above the line only raise F
            assert not arb(lower) > reference(name, u + abs(u) / 8, arb(v))


@names
@settings(deadline=None, max_examples=examples(150, quick=40))
@given(line=lines())
def test_points_are_bounded_tightly(name, line):
    """A segment of one point: to 1e-9, relative for EI; PI's and the logarithms' own size."""
    a, b, _, v = line
    u = a + b * v
    kind = KINDS[name](0, 1, 0.0)
    point = [np.array([x]) for x in (u, 0.0, v, v)]
    lower = float(kind.lowest(*point)[0])
    upper = float(kind.highest(point[0], point[2], point[3])[0])
    with ctx.workprec(PRECISION):
        real = reference(name, arb(u), arb(v))
        assert not arb(lower) > real
        assert not arb(upper) < real
    relative = 1e-9 if abs(upper) > 1e-280 else 1.0
    assert upper - lower <= relative * max(abs(upper), 1.0 if "log" in name else 0.0) + 1e-300


@names
def test_second_order_along_falling_lines(name):
    """With lines that fall as the level curve does, the slack shrinks with the segment's square."""
    kind, slack = KINDS[name](0, 1, 0.0), []
    for side in (1, -1):
        quantity = KINDS[name](0, side, 0.0)
        for z in (-6.0, -1.0, 0.0, 1.5):
            slack = []
            for half in (0.2, 0.05):
                v = np.linspace(1.0 - half, 1.0 + half, 201)
                b = float(kind.level_slope(np.array([z]), np.array([1.0]))[0])
                a = z - b
                values = quantity.side * kind.value(a + b * v, v)
                ends = (np.array([side * a]), np.array([side * b]), v[:1], v[-1:])
                slack.append(values.min() - float(quantity.lowest(*ends)[0]))
            size = max(1.0, abs(values).max()) if "log" in name else abs(values).max()
            assert -1e-9 * size <= slack[1]
            assert slack[1] <= max(slack[0] / 10.0, 1e-9 * size)


@names
@pytest.mark.parametrize("side", [1, -1])
def test_what_is_known_of_nothing(name, side):
    kind = KINDS[name](0, side, 0.0)
    alpha = np.array([-math.inf, math.nan, 0.0, 1e300])
    zero, v = np.zeros(4), np.array([1.0, 1.0, math.inf, 1.0])
    found = kind.lowest(alpha, zero, zero, v)
    assert not np.any(np.isnan(found))
    assert found[1] == found[2] == kind.known[0]
    assert np.all(found >= kind.known[0])


@names
@pytest.mark.parametrize("maximize", [True, False])
@pytest.mark.parametrize("sign", [1, -1])
def test_plain_values_and_slopes(name, maximize, sign):
    kind = KINDS[name](0, sign, 0.3, maximize)
    q, v = np.array([-30.0, -3.0, -0.2, 0.3, 0.9, 4.0]), np.array([2.0, 0.1, 1.0, 0.5, 3.0, 0.2])
    u = kind.side * q - (0.3 if maximize else -0.3)
    s = np.sqrt(v)
    plain = u * norm.cdf(u / s) + s * norm.pdf(u / s) if "ei" in name else norm.cdf(u / s)
    value = kind.side * kind.value(q, v)
    np.testing.assert_allclose(np.exp(value) if "log" in name else value, plain, rtol=1e-6,
                               atol=1e-12)  # fmt: skip
    by_q, by_v = kind.slopes(q, v)
    for slope, (dq, dv) in ((by_q, (1e-6, 0.0)), (by_v, (0.0, 1e-6))):
        rise = kind.value(q + dq, v + dv) - kind.value(q - dq, v - dv)
        np.testing.assert_allclose(slope, rise / 2e-6, rtol=1e-4, atol=1e-6)
    usable = by_q > 1e-8
    level = kind.level_slope(q, v)
    np.testing.assert_allclose(level[usable], (-by_v / by_q)[usable], rtol=1e-6)


def surrogate(kernel=None, noise=0.0, outputs=1, **more):
    rng = np.random.default_rng(2)
    points = rng.uniform(-2.0, 2.0, (14, 2))
    targets = np.stack([np.sin(2 * points[:, 0]) + points[:, 1] / 3] * outputs)
    kernel = SquaredExponential([0.9, 1.2]) if kernel is None else kernel
    return regression_posterior(kernel, points, targets, 1e-4 + noise, **more)


BOX = gpcert.Box([-2.0, -2.0], [2.0, 2.0])


@names
@pytest.mark.parametrize("maximize", [True, False])
@pytest.mark.parametrize("kernel", [None, Matern([0.9, 1.2], nu=2.5)])
def test_ranges_over_a_domain(name, maximize, kernel):
    posterior = surrogate(kernel)
    rng = gpcert.prediction_range(posterior, BOX, quantity=name, maximize=maximize,
                                  sides="maximum", tol=0.01, rtol=0.01)  # fmt: skip
    assert rng.converged
    mean, variance = (part[:, 0] for part in posterior.predict(BOX.sample(20000, 0)))
    best = posterior.mean(posterior.places)
    best = float(best.max() if maximize else best.min())
    u = mean - best if maximize else best - mean
    values = norm.cdf(u / np.sqrt(variance))
    if "ei" in name:
        values = u * values + np.sqrt(variance) * norm.pdf(u / np.sqrt(variance))
    most = float(np.log(values.max()) if "log" in name else values.max())
    assert rng.maximum.upper >= most - 1e-9
    assert rng.maximum.lower >= most - 0.1 * max(1.0, abs(most))
    assert f"best_f = {best:.6g}, the {'greatest' if maximize else 'least'} mean" in rng.meaning


@names
def test_a_given_best_and_noise(name):
    posterior = surrogate(noise=0.01, **{"offset": [5.0]})
    given = gpcert.prediction_range(posterior, gpcert.Ball([0.1, 0.2], 0.1), quantity=name,
                                    best_f=5.5)  # fmt: skip
    assert "best_f = 5.5" in given.meaning
    assert "the greatest" not in given.meaning
    kind = KINDS[name](0, 1, 5.5)
    same = gpcert.prediction_range(posterior, gpcert.Ball([0.1, 0.2], 0.1), quantity=kind)
    assert same.minimum.lower == pytest.approx(given.minimum.lower, abs=0.1)
    cert = gpcert.certify(posterior, [0.1, 0.2], 0.05, quantity=name, best_f=5.5,
                          threshold=given.maximum.upper + 0.1)  # fmt: skip
    assert cert.robust
    assert cert.rule.startswith(f"{name} above 5.5")


def test_at_training_points_of_a_noiseless_model_nothing_improves():
    points, values = np.array([[0.0], [1.0], [2.0]]), np.array([[0.0, 1.0, 0.5]])
    posterior = regression_posterior(SquaredExponential(1.0), points, values, 0.0)
    at_best = gpcert.Box([1.0], [1.0])
    ei = gpcert.prediction_range(posterior, at_best, quantity="ei")
    assert 0.0 <= ei.minimum.lower <= ei.maximum.upper < 1e-6
    whole = gpcert.Box([-1.0], [3.0])
    log = gpcert.prediction_range(posterior, whole, quantity="log_ei", sides="maximum")
    assert log.converged
    assert math.isfinite(log.maximum.lower)


def test_words_that_do_not_fit():
    posterior = surrogate()
    for words, message in [
        ({"quantity": "mean", "best_f": 1.0}, "best_f: belongs to"),
        ({"quantity": "ucb", "maximize": False}, "maximize: belongs to"),
        ({"quantity": "ei", "maximize": "yes"}, "maximize: expected True or False"),
        ({"quantity": "ei", "best_f": math.nan}, "best_f"),
        ({"quantity": "ei", "beta": 2.0}, "beta: belongs to"),
    ]:
        with pytest.raises(InputError, match=message):
            gpcert.prediction_range(posterior, BOX, **words)
    classifier = surrogate(likelihood=Probit(), classes=("a", "b"))
    with pytest.raises(InputError, match="of a regression"):
        gpcert.prediction_range(classifier, BOX, quantity="ei")
    with pytest.raises(InputError, match="best_f: expected a finite number"):
        ExpectedImprovement(0, 1, math.inf)


@pytest.mark.parametrize("name", ["ei", "log_ei"])
@pytest.mark.parametrize(("a", "b"), [(1.0, -0.05), (0.2, -0.1), (0.02, -0.3), (3.0, -2.0)])
def test_falling_means_with_extremes_inside(name, a, b):
    """Positive improvements that fall while the deviation grows: EI has a least value or a greatest
    one inside, at neither end, and bounds of pieces come near it."""
    v = np.linspace(0.0, 4.0, 4001)
    with ctx.workprec(PRECISION):
        values = [float(reference(name, arb(a) + arb(b) * arb(w), arb(w))) for w in v[1:]]
    values = np.array([math.log(a) if "log" in name else a, *values])
    up, down = (KINDS[name](0, sign, 0.0) for sign in (1, -1))
    for pieces in (1, 8, 64):
        edges = np.linspace(0.0, 4.0, pieces + 1)
        flat = np.ones(pieces)
        low = up.lowest(a * flat, b * flat, edges[:-1], edges[1:])
        high = -down.lowest(-a * flat, -b * flat, edges[:-1], edges[1:])
        for k, (start, end) in enumerate(pairwise(edges)):
            inside = values[(v >= start) & (v <= end)]
            assert low[k] <= inside.min()
            assert inside.max() <= high[k]
    assert low.min() >= values.min() - 0.03
    assert high.max() <= values.max() + 2e-3
