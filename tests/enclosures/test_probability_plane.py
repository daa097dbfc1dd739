"""Planes under F, and plain quadratic models: against ball arithmetic, where they are sharp."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.enclosures.local_quadratic import LocalQuadratic
from gpcert.enclosures.plain_quadratic import PlainQuadratic, plain_geometry, region_units
from gpcert.enclosures.probability_plane import LatentRange, ProbabilityPlane, certified_slopes
from gpcert.kernels.expansions.geometry import Geometry
from gpcert.likelihoods import SklearnLogistic
from gpcert.regions import Box
from gpcert.testing.arb_reference import exact
from gpcert.testing.effort import examples
from gpcert.testing.likelihood_references import sklearn_probability
from gpcert.testing.strategies import seeds
from tests.enclosures.enclosure_checks import arb, below


@st.composite
def sharp_models(draw):
    """A cell and a weighted model of a function that is that model: nothing is left over."""
    rng = np.random.default_rng(draw(seeds))
    f = draw(st.integers(1, 3))
    half = 10.0 ** rng.uniform(-3.0, 0.3, f) * draw(st.sampled_from([1e-9, 1e-3, 1.0]))
    center = rng.normal(size=f)
    cells = Box(center - half, center + half).root()
    lengths = np.exp2(rng.integers(-3, 4, f))  # exact, as the frames of the kernels are
    geometry = Geometry.of(cells, 1.0 / lengths, np.ones(f), lengths)
    H = rng.normal(size=(f, f)) * draw(st.sampled_from([0.0, 1.0, 30.0]))
    model = LocalQuadratic(
        rng.normal(size=1) * draw(st.sampled_from([0.0, 1.0, 100.0])),
        rng.normal(size=(1, f)),
        (H + H.T)[None],
        rng.random(1) * draw(st.sampled_from([0.0, 1.0])),
        draw(st.sampled_from([0.0, 0.5, 1.0])),
    )
    drawn = rng.uniform(-1.0, 1.0, (6, f))
    ends = np.where(rng.random((4, f)) < 0.5, -1.0, 1.0)
    points = np.concatenate([np.zeros((1, f)), drawn, ends])
    return cells, geometry, model, lengths, points


def balls_at(cells, point):
    """A point of the first cell from one of [-1, 1]^f, and its displacement, as balls."""
    low, high = cells.lower[0], cells.upper[0]
    x = np.clip(0.5 * (low + high) + 0.5 * point * (high - low), low, high)
    return [a - c for a, c in zip(exact(x), exact(cells.center[0]), strict=True)]


def polynomial(model, d):
    g, H = exact(model.gradient[0]), [exact(row) for row in model.hessian[0]]
    value = arb(float(model.value[0])) - arb(float(model.error[0]))
    for j, a in enumerate(d):
        value += g[j] * a + sum((a * H[j][k] * d[k] for k in range(len(d))), arb(0)) / 2
    return value


@settings(max_examples=examples(200))
@given(sharp=sharp_models())
def test_weights_are_taken_away_from_sharp_models(sharp):
    cells, geometry, model, lengths, points = sharp
    plain = PlainQuadratic.of(model, geometry, np.full(1, np.inf))
    bound = float(plain.bound(plain_geometry(cells)).lower[0])
    for point in points:
        y = balls_at(cells, point)
        d = [a / arb(w) for a, w in zip(y, lengths.tolist(), strict=True)]
        y = [a / arb(w) for a, w in zip(y, region_units(cells).tolist(), strict=True)]
        weight = (arb(model.rate) * sum((a * a for a in d), arb(0))).exp()
        true = polynomial(model, d) / weight
        assert not polynomial(plain, y) > true
        below(bound, polynomial(plain, y), "minimum of a plain model")


@settings(max_examples=examples(100))
@given(sharp=sharp_models(), factor=st.floats(0.0, 100.0), constant=st.floats(-100.0, 100.0))
def test_plain_models_scale_shift_and_add(sharp, factor, constant):
    """Against exact arithmetic on the parts' own coefficients: only rounding may be lost."""
    cells, geometry, model, _, points = sharp
    infinite = np.full(1, np.inf)
    plain = PlainQuadratic.of(model, geometry, infinite)
    linear = PlainQuadratic.of(replace(model, error=infinite), geometry, np.array([0.25]))
    assert np.all(linear.hessian == 0.0)
    assert linear.error[0] >= 0.25
    other = PlainQuadratic.of(replace(model, value=model.value / 3 - 0.1), geometry, infinite)
    add = np.array([constant])
    shifted = plain.shifted(add, np.abs(add))
    scaled = plain.scaled(np.array([factor]))
    total = PlainQuadratic.total([plain, other, linear])
    choice = plain.where(np.array([True]), other)
    for point in points:
        y = balls_at(cells, point)
        y = [a / arb(w) for a, w in zip(y, region_units(cells).tolist(), strict=True)]
        own = polynomial(plain, y)
        assert not polynomial(shifted, y) > own + arb(constant)
        assert not polynomial(scaled, y) > arb(factor) * own
        assert not polynomial(total, y) > own + polynomial(other, y) + polynomial(linear, y)
        assert not polynomial(plain.lowered(np.array([0.5])), y) > own - arb(0.5)
        assert polynomial(choice, y).overlaps(own)


@settings(max_examples=examples(200))
@given(
    start=st.floats(-30.0, 30.0),
    width=st.sampled_from([0.0, 1e-9, 0.1, 2.0, 30.0]),
    low=st.floats(0.0, 20.0),
    height=st.sampled_from([0.0, 1e-9, 0.3, 5.0, 100.0]),
    seed=seeds,
)
def test_planes_lie_below(start, width, low, height, seed):
    """Over a whole rectangle of (mu, v): corners, edges and inner points."""
    rng = np.random.default_rng(seed)
    link, one = SklearnLogistic(), np.ones(1)
    end, top = start + width, low + height
    latent = LatentRange(
        start * one,
        end * one,
        low * one,
        top * one,
        0.5 * (start + end) * one,
        0.5 * (low + top) * one,
        one > 0,
    )
    slopes = link.slopes(latent.mean, latent.variance)
    for by_mu, by_v in (slopes, (rng.uniform(0, 0.3, 1), rng.uniform(-0.2, 0.2, 1))):
        for sign in (1, -1):
            plane = ProbabilityPlane.under(link, latent, np.maximum(by_mu, 0.0), by_v, sign)
            for a in (0.0, 1.0, 0.5, *rng.random(4)):
                for b in (0.0, 1.0, *rng.random(2)):
                    mu, v = min(start + a * width, end), min(low + b * height, top)
                    ball = arb(plane.by_mu[0]) * (arb(mu) - arb(plane.mean[0]))
                    ball += arb(plane.by_v[0]) * (arb(v) - arb(plane.variance[0]))
                    below(
                        arb(plane.value[0]) + sign * ball,
                        sign * sklearn_probability(arb(mu), arb(v)),
                        "plane",
                    )
            if width <= 0.1 and height <= 0.3 and by_mu is slopes[0]:
                assert sign * link.value(plane.mean, plane.variance)[0] - plane.value[0] < 0.01


@given(
    mu=st.floats(-40.0, 40.0) | st.floats(-1e9, 1e9),
    v=st.floats(0.0, 4.0) | st.floats(0.0, 1e8),
)
def test_certified_slopes(mu, v):
    value, by_mu, by_v, errors = certified_slopes(SklearnLogistic(), np.array([mu]), np.array([v]))
    constants = ((0.41, 0.4, 0.37, 0.44, 0.39),)
    coefficients = (-1854.8214151, 3516.89893646, 221.29346712, 128.12323805, -2010.49422654)
    first = second = arb(0)
    for scale, weight in zip(*constants, coefficients, strict=True):
        s2 = 1 / (2 * arb(scale) ** 2) + arb(v)
        density = arb(weight) * (-(arb(mu) ** 2) / (2 * s2)).exp() / (2 * arb.pi() * s2).sqrt()
        first += density
        second -= density * arb(mu) / (2 * s2)
    true = (sklearn_probability(arb(mu), arb(v)), first, second)
    for found, error, reference in zip((value, by_mu, by_v), errors, true, strict=True):
        assert not abs(arb(float(found[0])) - reference) > arb(float(error[0]))
    if abs(mu) < 40:
        assert errors[1][0] < 2e-6
        assert errors[2][0] < 2e-6
