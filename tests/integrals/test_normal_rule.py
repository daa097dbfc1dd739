"""The trapezoidal rule for standard normals: its proved errors against 200-bit arithmetic."""

import math

import numpy as np
import pytest
from flint import acb, arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.integrals import normal_rule as module
from gpcert.integrals.normal_rule import (
    MAX_NODES,
    REACH,
    SPREADS,
    graded_indices,
    normal_rule,
    trapezoid_error,
)
from gpcert.testing.effort import crossed, examples, variants

BITS = 200
DEGREES = range(7)
ERRORS = (2e-10, 5e-10, 2e-9, 6e-9, 3e-8, 2e-7, 1e-6)
"""What the rules of one dimension meet, by degree."""


def hermite(degree, x):
    """Probabilists' Hermite polynomial by its recurrence."""
    before, value = 0, 1
    for k in range(degree):
        before, value = value, x * value - k * before
    return value


def link(spread, shift, x):
    """A member of the class of `spread`: sigma."""
    return 1 / (1 + (-(spread * x + shift)).exp())


def density(x):
    return (-x * x / 2).exp() / (2 * type(x).pi()).sqrt()


def true_mean(spread, shift, degree):
    """`E[sigma(spread z + shift) He_degree(z)]` in balls, over [-14, 14]; beyond: 2e-37."""

    def integrand(t, _analytic):
        return density(t) * hermite(degree, t) * link(arb(spread), arb(shift), t)

    value = acb.integral(integrand, -14, 14, rel_tol=1e-25, abs_tol=1e-25).real
    return value + arb(0, 1e-36)


def exact_sum(rule, column, values):
    terms = (arb(float(w)) * v for w, v in zip(rule.weights[:, column], values, strict=True))
    return sum(terms, arb(0))


spreads = st.one_of(st.floats(1e-3, 0.5), st.floats(0.5, 20.0))


@given(spreads, st.floats(-30.0, 30.0), st.sampled_from([-1.0, 1.0]))
@settings(max_examples=examples(25), deadline=None)
def test_one_dimension(spread, shift, sign):
    rule = normal_rule((next(s for s in SPREADS if s >= spread),))
    with ctx.workprec(BITS):
        values = [link(arb(sign * spread), arb(shift), arb(float(x))) for (x,) in rule.nodes]
        for column, (degree,) in enumerate(rule.indices):
            error = abs(exact_sum(rule, column, values) - true_mean(sign * spread, shift, degree))
            assert error < float(rule.errors[column])
            # at the edge of the class the bound is not much too large: most of it is what is left
            # out beyond REACH, and what meets the targets
            assert rule.errors[column] < ERRORS[degree]


@given(st.tuples(st.floats(0.1, 3.0), st.floats(0.1, 3.0)), st.floats(-4.0, 4.0))
@settings(max_examples=examples(5, quick=3), deadline=None)
def test_two_dimensions(pair, shift):
    rule = normal_rule(tuple(next(s for s in SPREADS if s >= spread) for spread in pair))
    with ctx.workprec(BITS):
        factors = [
            {float(x): link(arb(spread), arb(shift), arb(float(x))) for x in set(rule.nodes[:, j])}
            for j, spread in enumerate(pair)
        ]
        values = [factors[0][float(x)] * factors[1][float(y)] for x, y in rule.nodes]
        means = [[true_mean(spread, shift, degree) for degree in DEGREES] for spread in pair]
        for column, (i, j) in enumerate(rule.indices):
            error = abs(exact_sum(rule, column, values) - means[0][i] * means[1][j])
            assert error < float(rule.errors[column])


@crossed({"degree": [0, 6, 3, 1, 2, 4, 5], "spread": [0.3, 1.0, 4.0, 12.0]}, quick=4)
def test_trapezoid_error_of_coarse_steps(spread, degree):
    """Steps so coarse that the error is large: the bound covers it, and by no more than 3e4."""
    seen = []
    with ctx.workprec(BITS):
        for factor in (2, 3, 5):
            step = factor * module.rule_step(spread)
            last = math.ceil(14 / step)
            for shift in (-0.7, 0.0, 1.9):
                total = arb(0)
                for j in range(-last, last + 1):
                    x = arb(j) * arb(step)
                    g = density(x) * hermite(degree, x) * link(arb(spread), arb(shift), x)
                    total += arb(step) * g
                error = abs(total - true_mean(spread, shift, degree)) + arb(0, 1e-35)
                assert error < trapezoid_error(degree, step, spread)
                seen.append(float(error) / trapezoid_error(degree, step, spread))
    assert max(seen) > 3e-5


@pytest.mark.parametrize("degree", DEGREES)
def test_strip_factor(degree):
    """`int |phi(x + iy) He_r(x + iy)| dx` is below it, and not by more than a factor of 5."""
    x = np.arange(-16.0, 16.0, 1e-3)
    for y in (0.05, 0.5, 1.0, 3.0, 6.0):
        z = x + 1j * y
        size = np.sum(abs(np.exp(-0.5 * z * z) * hermite(degree, z))) * 1e-3
        size /= math.sqrt(2.0 * math.pi)
        factor = module.strip_factor(degree, y)
        assert size <= factor * (1 + 1e-9)  # an equality for degree 0; 1e-9: that of the sum
        assert factor <= 5.0 * size


def test_what_lies_beyond_the_long_grid():
    # int_11^inf x^6 phi by parts; He_r is x^(r mod 2) times factors x^2 - z^2 with z < 11, so that
    # 0 < He_r <= x^r for x >= 11
    with ctx.workprec(BITS):
        a = arb(11)
        tail = (a**5 + 5 * a**3 + 15 * a) * density(a) + 15 * (a / arb(2).sqrt()).erfc() / 2
        assert 2 * tail < module.BEYOND
        for degree in DEGREES:
            assert 0 < hermite(degree, a) <= a**6


@variants("kinds", [(), (0,), (7,), (40,), (0, 0), (6, 3), (40, 0), (40, 40)], quick=6)
def test_shape_of_a_rule(kinds):
    rule = normal_rule(tuple(SPREADS[i] for i in kinds))
    count = len(rule.nodes)
    assert count <= MAX_NODES[len(kinds)]
    assert rule.weights.shape == (count, len(rule.indices))
    assert np.all((rule.nodes**2).sum(axis=1) <= REACH**2)
    assert np.all(rule.sizes >= [math.fsum(abs(w)) for w in rule.weights.T])
    assert np.all(np.isfinite(rule.errors))
    assert np.all(rule.errors > 0)


def test_stored_weights():
    """The weights against 200 bits: their errors are within what `WEIGHT_ROUNDINGS` allows."""
    rule = normal_rule((2.0, 1.0))
    steps = module.rule_steps((2.0, 1.0))
    with ctx.workprec(BITS):
        for x, row in list(zip(rule.nodes, rule.weights, strict=True))[::7]:
            balls = [arb(float(c)) for c in x]
            common = density(balls[0]) * density(balls[1]) * arb(steps[0]) * arb(steps[1])
            for alpha, weight in zip(rule.indices, row, strict=True):
                true = common * hermite(alpha[0], balls[0]) * hermite(alpha[1], balls[1])
                # the imaginary axis makes all terms of He_r of one sign
                sizes = [abs(hermite(r, acb(0, b))) for r, b in zip(alpha, balls, strict=True)]
                allowed = common * sizes[0] * sizes[1] * arb(module.WEIGHT_ROUNDINGS) / 2**53
                assert abs(true - arb(float(weight))) <= allowed + arb(2) ** -1000


def test_graded_indices():
    assert graded_indices(0, 4) == ((),)
    assert len(graded_indices(3, 4)) == 35
    assert len(graded_indices(3, 6)) == 84
    assert [sum(i) for i in graded_indices(2, 3)] == [0, 1, 1, 2, 2, 2, 3, 3, 3, 3]


def test_two_coordinates_may_share_a_rule():
    spread = SPREADS[0]
    one, other = module.axis_of(0.25, spread), module.axis_of(0.25, spread)
    for alpha in graded_indices(2, 4):
        apart = module.rule_error([one, other], alpha, 0.0)
        assert module.rule_error([one, one], alpha, 0.0) == apart
