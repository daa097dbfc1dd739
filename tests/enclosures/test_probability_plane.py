"""Planes under F, against ball arithmetic, where they are sharp."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.enclosures.probability_plane import LatentRange, ProbabilityPlane, certified_slopes
from gpcert.likelihoods import SklearnLogistic
from gpcert.testing.arb_reference import sklearn_probability
from gpcert.testing.effort import examples
from tests.enclosures.enclosure_checks import arb, below
from tests.strategies import seeds


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
