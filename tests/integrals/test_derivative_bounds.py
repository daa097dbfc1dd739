"""Derivatives of averages of unimodal links: every constant is proved in ball arithmetic.

`E He_j(z) 1_(a, b) - slope P(a, b) = g(a) - g(b)`, `g = He_(j-1) phi + slope Phi`, and likewise for
the negative. `g' = (slope - He_j) phi`, so g has its extrema at the ends and at the real roots of a
polynomial: the greatest `g(a) - g(b)`, a <= b, is a maximum over finitely many points.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st

from gpcert.integrals.moments import UNIMODAL_BOUNDS
from gpcert.testing.kernel_references import flint

arb, fmpz_poly = flint().arb, flint().fmpz_poly

ORDERS = range(1, 7)


def hermite(j):
    """He_j with integer coefficients."""
    x, before, last = fmpz_poly([0, 1]), fmpz_poly([0]), fmpz_poly([1])
    for k in range(j):
        before, last = last, x * last - k * before
    return last


def real_roots(polynomial):
    """Balls around all real roots, in increasing order."""
    found = []
    for root, _ in polynomial.complex_roots():
        real = root.imag == 0
        assert real or not root.imag.contains(0), "neither real nor proved not to be"
        if real:
            found.append(root.real)
    return sorted(found, key=float)


def value(polynomial, slope, z):
    """`He phi + slope Phi`."""
    density = (-z * z / 2).exp() / (2 * arb.pi()).sqrt()
    return polynomial(z) * density + slope * (1 + (z / arb(2).sqrt()).erf()) / 2


def greatest_fall(j, slope, sign):
    """`max_{a <= b} g(a) - g(b)` for `g = sign He_(j-1) phi + slope Phi`."""
    exact = Fraction(slope)
    # g' = (slope - sign He_j) phi
    stationary = exact.numerator - exact.denominator * sign * hermite(j)
    polynomial = sign * hermite(j - 1)
    inside = [value(polynomial, arb(slope), z) for z in real_roots(stationary)]
    values = [arb(0), *inside, arb(slope)]
    best, highest = arb(0), values[0]
    for g in values:
        highest = highest.max(g)
        best = best.max(highest - g)
    assert float(best.rad()) < 1e-20
    return best


def worst(j, slope):
    return greatest_fall(j, slope, 1).max(greatest_fall(j, slope, -1))


@pytest.mark.parametrize("j", ORDERS)
def test_uniform_bounds_are_proved_and_sharp(j):
    true = worst(j, 0.0)
    bound = arb(UNIMODAL_BOUNDS[j - 1])
    assert bound >= true
    assert bound * arb(1 - 1e-4) < true


@pytest.mark.parametrize(("j", "slope"), [(1, -2.33), (3, 0.71), (5, 9.92), (6, 49.0)])
def test_the_reference_is_what_a_dense_search_finds(j, slope):
    """The roots give all extrema: nothing on a grid falls further, and nearly as much falls."""
    z = np.linspace(-12.0, 12.0, 20001)
    density, cdf = np.exp(-z * z / 2) / math.sqrt(2 * math.pi), scipy.special.ndtr(z)
    found = 0.0
    for sign in (1, -1):
        g = sign * np.polynomial.hermite_e.hermeval(z, np.eye(j)[j - 1]) * density + slope * cdf
        g = np.concatenate([[0.0], g, [slope]])
        found = max(found, float((np.maximum.accumulate(g) - g).max()))
    assert float(worst(j, slope)) == pytest.approx(found, abs=1e-4)
    assert found <= float(worst(j, slope)) + 1e-12


def interval_moment(j, a, b):
    """`E He_j 1_(a, b)` in ball arithmetic."""
    parts = [value(hermite(j - 1), arb(0), arb(z)) for z in (a, b)]
    return parts[0] - parts[1]


ends = st.floats(-9.0, 9.0)


@given(a=ends, b=ends, j=st.sampled_from(ORDERS), share=st.floats(0.0, 1.0))
def test_no_link_of_an_interval_changes_faster(a, b, j, share):
    """`share` times the indicator of an interval, and of its complement's halves, is a link."""
    a, b = min(a, b), max(a, b)
    moment = abs(interval_moment(j, a, b)) * arb(share)
    assert not arb(UNIMODAL_BOUNDS[j - 1]) < moment
