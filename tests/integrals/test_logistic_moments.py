"""Moments of the logistic function under a normal law, in closed form, against 200 bits."""

import math

import numpy as np
import pytest
from flint import acb, arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.integrals.softmax_moments import LOGISTIC_MOMENT_ERROR, logistic_moments
from gpcert.likelihoods.logistic import Logistic
from gpcert.likelihoods.softmax import Softmax
from gpcert.numerics.rounding import gamma
from gpcert.testing.effort import examples

BITS = 200
ORDER = 4


def hermite(degree, x):
    before, value = 0, 1
    for k in range(degree):
        before, value = value, x * value - k * before
    return value


@given(
    st.one_of(st.floats(-10.0, 10.0), st.floats(-1e4, 1e4)),
    st.one_of(st.floats(0.0, 5.0), st.floats(0.0, 1e4), st.just(1e-200)),
)
@settings(max_examples=examples(60), deadline=None)
def test_logistic_moments(t, s):
    """Against the mixture in balls: what is left of the error once `link_error` is taken off."""
    computed = logistic_moments(np.array([[t]]), np.array([s]), ORDER)
    with ctx.workprec(BITS):
        for degree in range(ORDER + 1):
            total = arb(1) / 2 if degree == 0 else arb(0)
            for d, c in Logistic.terms:
                root = (2 / (arb(d) + 2 * arb(s) ** 2)).sqrt()
                x, rho = arb(t) * root, arb(s) * root
                if degree == 0:
                    total += arb(c) * (x / arb(2).sqrt()).erf() / 2
                else:
                    density = (-x * x / 2).exp() / (2 * arb.pi()).sqrt()
                    sign = (-1) ** (degree - 1)
                    total += sign * arb(c) * rho**degree * hermite(degree - 1, x) * density
            error = abs(total - arb(float(computed[degree][0, 0])))
            assert error <= gamma(64) * math.sqrt(math.factorial(degree))
    assert Logistic.link_error + gamma(64) < LOGISTIC_MOMENT_ERROR


@pytest.mark.parametrize("degree", range(1, ORDER + 1))
def test_sizes_that_the_rounding_is_counted_by(degree):
    """`T = phi h <= 0.4 sqrt(r!)`, `x^2 T <= 1.3 sqrt(r!)`: piece by piece up to 16.

    Beyond, `x^k phi` falls for every power k <= 7 (k < x^2), and so do both.
    """
    with ctx.workprec(BITS):
        scale = (2 * arb.pi() * math.factorial(degree)).sqrt()
        for k in range(16 * 256):
            left, right = arb(k) / 256, arb(k + 1) / 256
            # h at the imaginary axis has all its terms of one sign, and increases
            size = abs(hermite(degree - 1, acb(0, right))) * (-left * left / 2).exp() / scale
            assert size < 0.4
            assert right * right * size < 1.3


def test_error_of_the_mixture_is_counted():
    """Without deviation the value is sigma itself: the mixture's error shows at some of these."""
    a = np.linspace(-12.0, 12.0, 481)[:, None]
    moments = Softmax().moments(a, np.full((481, 1, 1), 1e-12), 0)
    errors = []
    with ctx.workprec(BITS):
        for x, value, bound in zip(a[:, 0], moments.value[:, 1], moments.errors[:, 0], strict=True):
            error = abs(arb(float(value)) - 1 / (1 + (-arb(float(x))).exp()))
            assert error + 1e-24 <= float(bound)
            errors.append(float(error))
    assert max(errors) > 3e-14
