"""Rules for one random input: the error holds for every Gaussian, against ball arithmetic."""

import itertools

import numpy as np
import pytest
from flint import acb, arb, ctx

from gpcert.integrals.families import Normal, Reflected, Triangular, Weibull
from gpcert.integrals.input_law import Marginal, Truncated
from gpcert.integrals.variance_parts import input_rule, legendre, point_rule
from tests.integrals.test_input_laws import CASES, normal, phi

BITS = 90
REAL = dict(CASES)
REAL["triangular"] = (
    Triangular(0.25),
    None,
    lambda y: y * 8 if y.real < 0.25 else (1 - y) * arb(8) / 3,
)
REAL["reflected"] = (Reflected(Weibull(2.7)), None, lambda y: CASES["weibull"][2](-y))
REAL["truncated"] = (
    Truncated(Normal(), -1.0, 2.0),
    None,
    lambda y: phi(y) / (normal(arb(2)) - normal(arb(-1))),
)


def integral(density, low, high, f, cuts):
    """Of density times f, in pieces."""
    total, ends = arb(0), [low, *cuts, high]
    for a, b in itertools.pairwise(ends):
        total += acb.integral(lambda z, _: density(z) * f(z), acb(a), acb(b)).real
    return total


@pytest.mark.parametrize("name", REAL)
def test_gaussians_are_within_the_error(name):
    family, _, density = REAL[name]
    law = Marginal(family)
    low, high = max(law.low, -3.0), min(law.high, 4.0)
    if (
        "weibull" in name or "gamma" in name or "lognormal" in name or "beta" in name
    ):  # not analytic at 0: slow for balls
        low = 0.05
    high = -0.05 if name == "reflected" else 0.95 if "beta" in name else high
    for rate, accuracy in ((2.0, 1e-18), (40.0, 1e-9)):
        rule = input_rule(law, low, high, rate, accuracy)
        left = law.outside(low, high)
        assert rule.error <= 100 * accuracy + left * 1.01 + 1e-14
        assert rule.relative < 1e-11
        for center, part in ((0.3, 1.0), (-1.1, 0.4), (2.5, 0.0)):
            r = arb(rate * part)

            c = arb(center)

            def f(z, c=c, r=r):
                return (-r * (z - c) ** 2 / 2).exp()

            with ctx.workprec(BITS):
                cuts = [0.25] if name == "triangular" else []
                real = integral(density, low, high, f, cuts)
                nodes = zip(
                    *map(np.ndarray.tolist, (rule.places, rule.rests, rule.weights)), strict=True
                )
                near = sum(arb(w) * f(arb(x) + arb(rest)) for x, rest, w in nodes)
                # what lies outside is in the error
                gap = abs(real - near)
                assert not gap > arb(rule.error) + arb(rule.relative) * near
                if left == 0:
                    assert gap < 1e-11 + 100 * accuracy


def test_nodes_and_weights():
    with ctx.workprec(200):
        for k, (x, w) in enumerate(legendre(20)):
            node, weight = arb.legendre_p_root(20, 19 - k, True)
            assert abs(arb(str(x)) - node) < 1e-40
            assert abs(arb(str(w)) - weight) < 1e-40


def test_a_number_is_a_rule():
    rule = point_rule(0.7)
    assert (rule.places.tolist(), rule.weights.tolist(), rule.error) == ([0.7], [1.0], 0.0)


def test_a_coarse_rule_says_so():
    wide = input_rule(Marginal(Normal()), -9.0, 9.0, 1e14, 1e-12)
    assert wide.error > 1e-3
