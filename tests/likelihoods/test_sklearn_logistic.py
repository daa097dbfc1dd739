"""scikit-learn's mixture: its number, and the proof that its link is monotone and unimodal."""

from fractions import Fraction

import numpy as np
from flint import arb, arb_series, ctx
from sklearn.gaussian_process import GaussianProcessClassifier, _gpc
from sklearn.gaussian_process.kernels import RBF

from gpcert.likelihoods import SklearnLogistic
from gpcert.likelihoods.logistic import COEFS, LAMBDAS
from gpcert.testing import arb_reference as reference
from gpcert.testing.effort import variants
from gpcert.testing.kernel_references import BITS
from gpcert.testing.likelihood_contract import LikelihoodContract


class TestSklearnLogistic(LikelihoodContract):
    likelihood = SklearnLogistic()
    width = 2e-11  # the coefficients cancel: sum |C| = 7731

    def reference(self, mu: arb, v: arb) -> arb:
        return reference.sklearn_probability(mu, v)


def test_constants_are_those_of_sklearn():
    np.testing.assert_array_equal(np.ravel(_gpc.LAMBDAS), LAMBDAS)
    np.testing.assert_array_equal(np.ravel(_gpc.COEFS), COEFS)


def test_total_is_the_sum_of_the_coefficients():
    exact = sum(Fraction(c) for c in COEFS)
    likelihood = SklearnLogistic()
    assert abs(Fraction(likelihood.total) - exact) <= Fraction(likelihood.total_error)
    assert likelihood.total + likelihood.total_error < 1.0
    half = likelihood.enclose(np.array([0.0]), np.array([1.0]))
    assert half[0][0] <= float(exact / 2) <= half[1][0] < 0.5


def test_predicts_the_probability_of_sklearn():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 2))
    y = (x[:, 0] + 0.3 * rng.normal(size=40) > 0).astype(int)
    model = GaussianProcessClassifier(10.0 * RBF(1.0), optimizer=None).fit(x, y)
    queries = rng.normal(size=(200, 2)) * 2.0
    mean, variance = model.latent_mean_and_variance(queries)
    ours = SklearnLogistic().value(mean, variance)
    np.testing.assert_allclose(ours, model.predict_proba(queries)[:, 1], rtol=0, atol=1e-9)


def positive_on(function, start, end, depth=0):
    """Proof that `function` > 0 on [start, end] by bisection in interval arithmetic."""
    if function(start.union(end)) > 0:
        return True
    middle = (start + end) / 2
    return depth < 40 and all(
        positive_on(function, a, b, depth + 1) for a, b in ((start, middle), (middle, end))
    )


def scaled_slope(u):
    """`S(u) exp(0.37^2 u)`: positive iff link' falls at x = sqrt(u)."""
    slowest = arb(0.37) ** 2
    return sum(
        (
            arb(c) * arb(s) ** 3 * (-(arb(s) ** 2 - slowest) * u).exp()
            for s, c in zip(LAMBDAS, COEFS, strict=True)
        ),
        arb(0),
    )


def test_link_derivative_is_positive_and_unimodal():
    with ctx.workprec(BITS):
        assert positive_on(scaled_slope, arb(0), arb(500))
        # u >= 500: the two negative terms only shrink, the positive ones beside 0.37 are dropped
        slowest = arb(0.37) ** 2
        negative = sum(
            (
                abs(arb(c)) * arb(s) ** 3 * (-(arb(s) ** 2 - slowest) * 500).exp()
                for s, c in zip(LAMBDAS, COEFS, strict=True)
                if c < 0
            ),
            arb(0),
        )
        assert arb(COEFS[2]) * arb(0.37) ** 3 > negative
        assert min(LAMBDAS) == LAMBDAS[2] == 0.37


def link(x):
    """`sum C_i erf(L_i x) / 2`, the link less a constant, as a power series."""
    total = arb_series([0])
    for s, c in zip(LAMBDAS, COEFS, strict=True):
        total = total + arb(c) / 2 * (arb(s) * x).erf()
    return total


@variants("order", [4, 1, 2, 3], quick=2)
def test_bounds_of_the_link_derivatives(order):
    def derivative(x):
        series = link(x)
        for _ in range(order):
            series = series.derivative()
        return series

    bound = SklearnLogistic.link_bounds[order - 1]
    with ctx.workprec(BITS):
        largest = [
            reference.largest_on(derivative, arb(k) / 64, arb(k + 1) / 64) for k in range(640)
        ]
        assert all(value < bound for value in largest)
        assert max(float(value) for value in largest) > 0.99 * bound
        # x >= 10, y = L x >= 3.7: sqrt(pi) link^(n) = sum C L^n H_(n-1)(y) exp(-y^2) up to sign,
        # |H_k(y)| <= (2 y)^k, and y^k exp(-y^2) falls
        tail = arb(0)
        for s, c in zip(LAMBDAS, COEFS, strict=True):
            y = arb(s) * 10
            tail += abs(arb(c)) * arb(s) ** order * (2 * y) ** (order - 1) * (-(y**2)).exp()
        assert tail / arb.pi().sqrt() < bound
