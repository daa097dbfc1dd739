"""Laws of one input: probabilities, densities and moments, against ball arithmetic."""

import numpy as np
import pytest
from flint import acb, arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from gpcert.integrals.families import (
    Exponential,
    Gumbel,
    Logistic,
    Lognormal,
    Normal,
    Reflected,
    Triangular,
    Uniform,
    Weibull,
)
from gpcert.integrals.incomplete import LGAMMA_ULPS, Beta, Gamma
from gpcert.integrals.input_law import InputLaw, Marginal, Truncated
from gpcert.testing.effort import examples

BITS = 150


def phi(y):
    return (-y * y / 2).exp() / (2 * arb.pi()).sqrt()


def normal(y):
    return (-y / arb(2).sqrt()).erfc() / 2


def beta(y, a, b):
    a, b = arb(a), arb(b)
    return y ** (a - 1) * (1 - y) ** (b - 1) * (a + b).gamma() / (a.gamma() * b.gamma())


def beta_share(y, a, b):
    return y.beta_lower(arb(a), arb(b), regularized=1)


CASES = {
    "normal": (Normal(), normal, phi),
    "uniform": (Uniform(), lambda y: y, lambda y: arb(1) + 0 * y),
    "exponential": (Exponential(), lambda y: -(-y).expm1(), lambda y: (-y).exp()),
    "logistic": (
        Logistic(),
        lambda y: 1 / (1 + (-y).exp()),
        lambda y: (-y).exp() / (1 + (-y).exp()) ** 2,
    ),
    "gumbel": (Gumbel(), lambda y: (-(-y).exp()).exp(), lambda y: (-y - (-y).exp()).exp()),
    "weibull": (
        Weibull(2.7),
        lambda y: -(-(y ** arb(2.7))).expm1(),
        lambda y: arb(2.7) * y ** (arb(2.7) - 1) * (-(y ** arb(2.7))).exp(),
    ),
    "steep weibull": (
        Weibull(0.7),
        lambda y: -(-(y ** arb(0.7))).expm1(),
        lambda y: arb(0.7) * y ** (arb(0.7) - 1) * (-(y ** arb(0.7))).exp(),
    ),
    "lognormal": (
        Lognormal(0.8),
        lambda y: normal(y.log() / arb(0.8)),
        lambda y: phi(y.log() / arb(0.8)) / (y * arb(0.8)),
    ),
    "gamma": (
        Gamma(3.7),
        lambda y: y.gamma_lower(arb(3.7), regularized=1),
        lambda y: y ** (arb(3.7) - 1) * (-y).exp() * arb(3.7).rgamma(),
    ),
    "steep gamma": (
        Gamma(0.3),
        lambda y: y.gamma_lower(arb(0.3), regularized=1),
        lambda y: y ** (arb(0.3) - 1) * (-y).exp() * arb(0.3).rgamma(),
    ),
    "beta": (Beta(2.3, 5.1), lambda y: beta_share(y, 2.3, 5.1), lambda y: beta(y, 2.3, 5.1)),
    "high beta": (Beta(4.0, 1.5), lambda y: beta_share(y, 4, 1.5), lambda y: beta(y, 4, 1.5)),
    "beta with two ends": (
        Beta(0.4, 0.7),
        lambda y: beta_share(y, 0.4, 0.7),
        lambda y: beta(y, 0.4, 0.7),
    ),
    "falling beta": (Beta(0.8, 3.0), lambda y: beta_share(y, 0.8, 3), lambda y: beta(y, 0.8, 3)),
    "rising": (Triangular(1.0), lambda y: y * y, lambda y: 2 * y),
    "falling": (Triangular(0.0), lambda y: 1 - (1 - y) ** 2, lambda y: 2 * (1 - y)),
}
"""Family, distribution function and density."""
POSITIVE = {"exponential", "weibull", "steep weibull", "lognormal", "gamma", "steep gamma"}


def places(name, rng, n):
    if name in {"uniform", "rising", "falling"} or "beta" in name:
        return rng.uniform(0.01, 0.99, n)
    if name in POSITIVE:
        return 10.0 ** rng.uniform(-2.0, 0.9, n)
    return rng.normal(size=n) * 10.0 ** rng.uniform(-1.0, 0.8, n)


def holds(ends, real):
    """No tolerance on either side."""
    low, high = (float(np.asarray(end).reshape(-1)[0]) for end in ends)
    assert real.is_finite()
    assert not arb(low) > real
    assert not arb(high) < real


@pytest.mark.parametrize("name", CASES)
@settings(deadline=None, max_examples=examples(60, quick=15))
@given(seed=st.integers(0, 10**6))
def test_families(name, seed):
    family, below, density = CASES[name]
    rng = np.random.default_rng(seed)
    y = np.sort(places(name, rng, 2))
    with ctx.workprec(BITS):
        for end in y:
            at = np.array([end])
            holds(family.below(at), below(arb(end)))
            holds(family.above(at), 1 - below(arb(end)))
            holds(family.density(at), density(arb(end)))
        inner = arb(float(rng.uniform(*y)))
        low, high = y[:1], y[1:]
        holds(family.density_range(low, high), density(inner))
        step = arb(2) ** -40  # a difference quotient is a slope in between
        if float(inner + step) < y[1]:
            holds(family.slope_range(low, high), (density(inner + step) - density(inner)) / step)
    tight = family.below(y)
    assert np.all(tight[1] - tight[0] <= 1e-12 * tight[1] + 1e-15)


LAWS = [
    (Marginal(Normal(), 3.0, 0.5), lambda x: phi((x - 3) * 2) * 2, lambda x: normal((x - 3) * 2)),
    (
        Marginal(Exponential(), -1.0, 2.0),
        lambda x: (-(x + 1) / 2).exp() / 2,
        lambda x: -(-(x + 1) / 2).expm1(),
    ),
    (
        Marginal(Reflected(Gumbel()), 0.25, 0.5),
        lambda x: 2 * ((x - arb(0.25)) * 2 - ((x - arb(0.25)) * 2).exp()).exp(),
        lambda x: 1 - (-((x - arb(0.25)) * 2).exp()).exp(),
    ),
    (
        Marginal(Truncated(Normal(), -1.0, 2.0), 1.0, 1.0),
        lambda x: phi(x - 1) / (normal(arb(2)) - normal(arb(-1))),
        lambda x: (normal(x - 1) - normal(arb(-1))) / (normal(arb(2)) - normal(arb(-1))),
    ),
]


@pytest.mark.parametrize(("marginal", "density", "below"), LAWS)
@settings(deadline=None, max_examples=examples(40, quick=10))
@given(seed=st.integers(0, 10**6))
def test_moments_over_intervals(marginal, density, below, seed):
    """Given the interval, against integrals in ball arithmetic; wide and narrow ones."""
    rng = np.random.default_rng(seed)
    low = min(max(marginal.low, rng.normal(0.5)), marginal.high - 0.5)
    high = min(low + 10.0 ** rng.uniform(-6.0, 0.5), marginal.high)
    law = InputLaw((marginal,))
    moments = law.moments(np.array([[low]]), np.array([[high]]))
    with ctx.workprec(BITS):
        mass = below(arb(high)) - below(arb(low))
        holds(law.masses(np.array([[low]]), np.array([[high]])), mass)
        center = arb(float(moments.center[0, 0]))
        for power, value, error in (
            (1, moments.first, moments.first_error),
            (2, moments.second, moments.second_error),
        ):
            real = acb.integral(
                lambda x, _, k=power: (x - center) ** k * density(x), low, high
            ).real
            assert not abs(arb(value.item()) - real / mass) > arb(error.item())
            assert error.item() <= 0.02 * ((high - low) / 2) ** power


def test_what_lies_outside():
    law = InputLaw((Marginal(Normal()), Marginal(Uniform(), -0.1, 0.3)))
    assert law.outside(np.array([-9.0, -0.1]), np.array([9.0, -0.1 + 0.3])) < 1e-17
    assert law.outside(np.array([-1.0, -0.1]), np.array([9.0, 0.1])) >= 0.158 + 1 / 3
    whole = law.masses(np.array([[-40.0, -0.1]]), np.array([[40.0, -0.1 + 0.3]]))
    assert whole[0][0] <= 1.0 == whole[1][0]
    assert whole[0][0] >= 1.0 - 1e-14


def test_the_accuracy_of_lgamma():
    for x in np.random.default_rng(0).uniform(1e-3, 200.0, 2000).tolist():
        with ctx.workprec(BITS):
            real = arb(x).lgamma()
            assert (
                abs(real - arb(float(special.gammaln(x))))
                < (1 + abs(real)) * LGAMMA_ULPS * 2.0**-54
            )
