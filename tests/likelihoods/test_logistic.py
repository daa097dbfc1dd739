"""The logistic likelihood, and the proof of its mixture's uniform error."""

import pytest
from flint import arb, arb_series, ctx

from gpcert.likelihoods import Logistic
from gpcert.testing import arb_reference as reference
from gpcert.testing.kernel_references import BITS
from gpcert.testing.likelihood_contract import LikelihoodContract


class TestLogistic(LikelihoodContract):
    likelihood = Logistic()
    width = 2e-13

    def reference(self, mu: arb, v: arb) -> arb:
        return reference.logistic_normal(mu, v)


def difference(x: arb_series) -> arb_series:
    """sigma - mixture link, as a power series."""
    mixture = arb_series([1])
    for d, c in Logistic.terms:
        mixture = mixture + arb(c) * (x / arb(d).sqrt()).erf()
    return 1 / (1 + (-x).exp()) - mixture / 2


def test_uniform_error_of_the_mixture():
    # both sides are 1/2 plus an odd function: x >= 0 suffices
    with ctx.workprec(BITS):
        for k in range(512):
            largest = reference.largest_on(difference, arb(k) / 8, arb(k + 1) / 8)
            assert largest < Logistic.link_error
        # beyond 64 both increase, sigma from sigma(64) to 1, the mixture to (1 + sum c) / 2
        assert all(c > 0 for _, c in Logistic.terms)
        end = (1 + sum((arb(c) for _, c in Logistic.terms), arb(0))) / 2
        start = (
            1 + sum((arb(c) * (64 / arb(d).sqrt()).erf() for d, c in Logistic.terms), arb(0))
        ) / 2
        assert abs(end - reference.sigmoid(arb(64))) < Logistic.link_error
        assert abs(start - 1) < Logistic.link_error
        assert abs(end - 1) < Logistic.link_error


def test_derivative_bounds_in_closed_form():
    # extrema of the polynomials in u = tanh(x / 2) of the docstring: roots of their derivatives
    with ctx.workprec(BITS):
        u2 = 1 / arb(3).sqrt()
        roots4 = [((15 + sign * arb(105).sqrt()) / 30).sqrt() for sign in (-1, 1)]
        exact = [
            arb(1) / 4,
            u2 * (1 - u2**2) / 4,
            arb(1) / 8,
            max((abs(u * (1 - u**2) * (2 - 3 * u**2) / 4) for u in roots4), key=float),
        ]
        assert exact[1].overlaps(1 / (6 * arb(3).sqrt()))
        for bound, value in zip(Logistic.link_bounds, exact, strict=True):
            assert not arb(bound) < value
            assert float(value) == pytest.approx(bound, rel=2e-5)
