"""Certified moments of the softmax, orders 0..4, where one line moves: 200-bit integrals."""

import itertools
import math

import numpy as np
from flint import acb, arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.likelihoods.softmax import Softmax
from gpcert.testing.effort import examples, variants

BITS = 200
ORDER = 4
NOTHING = 1e-200
"""A deviation that moves nothing: 7e-200 against the reference's 1e-30."""


def hermite(degree, x):
    before, value = 0, 1
    for k in range(degree):
        before, value = value, x * value - k * before
    return value


def softmax_ball(d, c):
    """softmax_c(0, d) of complex balls; the sum is formed relative to the class."""
    latent = [acb(0), *d]
    return 1 / sum(((other - latent[c]).exp() for other in latent), acb(0))


def line_means(a, slopes, degree):
    """`E[softmax_c(0, a + slopes z) He_degree(z)]`, c = 0..n, in balls of radius below 1e-17."""
    means = []
    for c in range(1, len(a) + 1):

        def integrand(z, _analytic, c=c):
            density = (-z * z / 2).exp() / (2 * acb.pi()).sqrt()
            d = [acb(shift) + slope * z for shift, slope in zip(a, slopes, strict=True)]
            return density * hermite(degree, z) * softmax_ball(d, c)

        # two halves, so that the crossing of equal classes at 0 is an end
        halves = (
            acb.integral(integrand, start, start + 14, rel_tol=1e-22, abs_tol=1e-22).real
            for start in (-14, 0)
        )
        value = sum(halves, arb(0))
        assert float(value.rad()) < 1e-17
        means.append(value + arb(0, 1e-30))
    # the classes share E He_degree, which is 1 or 0
    return [(1 if degree == 0 else 0) - sum(means, arb(0)), *means]


def line_case(a, slopes, column):
    """(a, L) whose only deviation that moves anything is `column`."""
    n = len(a)
    L = np.eye(n) * NOTHING
    L[column:, column] = slopes[column:]
    return np.array([a]), L[None]


def check_line(a, slopes, column, degrees=tuple(range(ORDER + 1))):
    mean, factor = line_case(a, slopes, column)
    moments = Softmax().moments(mean, factor, ORDER)
    used = [float(x) for x in factor[0, :, column]]
    with ctx.workprec(BITS):
        for degree in degrees:
            true = line_means(a, used, degree)
            computed = moments.value if degree == 0 else moments.derivatives[degree - 1]
            error = float(moments.errors[0, degree])
            for c, ball in enumerate(true):
                entry = computed[(0, c, *([column] * degree))]
                assert abs(ball - arb(float(entry))) <= error
            if degree:
                rest = np.array(computed[0])
                rest[(slice(None), *([column] * degree))] = 0.0
                assert np.all(abs(rest) <= error)
    return moments


sizes = st.one_of(st.floats(-30.0, 30.0), st.floats(-3.0, 3.0), st.just(0.0))
deviations = st.one_of(
    st.floats(1e-3, 0.1), st.floats(0.1, 6.0), st.floats(6.0, 40.0), st.just(100.0)
)


@st.composite
def lines(draw):
    n = draw(st.integers(1, 3))
    column = draw(st.integers(0, n - 1))
    scale = draw(deviations)
    a = [draw(sizes) for _ in range(n)]
    slopes = [scale * draw(st.floats(-1.0, 1.0)) for _ in range(n)]
    slopes[column] = scale
    if n == 3 and column == 1 and scale > 20.0:  # keep the grid of two outer coordinates small
        column = 2
    return a, slopes, column


@given(lines(), st.integers(0, ORDER))
@settings(max_examples=examples(30, quick=4), deadline=None)
def test_moments_along_a_line(case, degree):
    check_line(*case, degrees=[degree])


@variants(
    ("a", "slopes", "column"),
    [
        ([0.0, 0.0], [1.0, 1.0], 0),
        ([0.0, 0.0], [1.0, -1.0], 0),
        ([30.0, -30.0], [0.001, 0.001], 0),
        ([-30.0, 30.0, 0.0], [1.0, 2.0, 3.0], 2),
        ([1.0], [0.1], 0),
        ([-3.0], [0.01], 0),
        ([700.0], [1.0], 0),
        ([0.0], [100.0], 0),
        ([0.0, 0.0], [100.0, 50.0], 0),
        ([0.0, 0.0, 0.0], [5.0, -3.0, 4.0], 0),
        ([1.0, 2.0, -1.0], [5.0, 4.0, -6.0], 1),
    ],
    quick=7,
)
def test_moments_along_chosen_lines(a, slopes, column):
    # integrals of steep lines take seconds
    degrees = tuple(range(ORDER + 1)) if max(slopes) < 50.0 else (0, 1, ORDER)
    moments = check_line(a, slopes, column, degrees)
    assert moments.errors[0, 0] < 1e-9


def check_mixed(a, row):
    """Only d_n moves, by `row . z`: entry alpha is `line_means` times the direction's power alpha.

    So the entries of all coordinates, of the grid and in closed form, have 200-bit references.
    """
    n = len(a)
    L = np.eye(n) * NOTHING
    L[-1] = row
    moments = Softmax().moments(np.array([a]), L[None], ORDER)
    with ctx.workprec(BITS):
        length = sum((arb(x) ** 2 for x in row), arb(0)).sqrt()
        direction = [arb(x) / length for x in row]
        for degree in range(1, ORDER + 1):
            true = line_means(a, [*[arb(0)] * (n - 1), length], degree)
            error = float(moments.errors[0, degree])
            for entry in itertools.combinations_with_replacement(range(n), degree):
                power = math.prod((direction[k] for k in entry), start=arb(1))
                for c, ball in enumerate(true):
                    computed = arb(float(moments.derivatives[degree - 1][(0, c, *entry)]))
                    assert abs(ball * power - computed) <= error
    return moments


@variants(
    ("a", "row", "exact"),
    [
        ([0.3, -0.2], [3.0, 4.0], 1e-6),
        ([0.0, 0.0, 0.0], [0.4, 0.3, 0.001], 3e-6),
        ([1.0, 0.4], [-0.5, 0.6], 1e-6),
        ([0.5, -2.0], [0.01, 0.2], 1e-6),
        ([0.3, -0.2, 1.0], [1.0, -2.0, 2.0], 3e-6),
        ([-20.0, 7.0], [5.0, 30.0], 1e-6),
    ],
    quick=2,
)
def test_mixed_derivatives(a, row, exact):
    moments = check_mixed(a, row)
    assert moments.errors[0, ORDER] < exact


@given(st.tuples(sizes, sizes), st.tuples(st.floats(-6.0, 6.0), st.floats(1e-3, 6.0)))
@settings(max_examples=examples(5, quick=2), deadline=None)
def test_mixed_derivatives_anywhere(a, row):
    check_mixed(list(a), list(row))


@variants("far", [1e12, 1e5, 1e9])
def test_rounding_of_large_latent_values_is_counted(far):
    """Differences of large numbers: the rule is exact to 1e-9, what they lose is not."""
    for shift in (0.3, -1.7):
        moments = check_line([far, far + shift], [0.1234567, 0.6789], 0)
        assert moments.errors[0, 0] < 1e-9 + 1e-14 * far
