"""Derivatives of the softmax along a line: the proofs of `Softmax.link_bounds`."""

import itertools
import math

import numpy as np
import pytest
from flint import arb, arb_series, ctx, fmpz_poly
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.likelihoods.softmax import Softmax
from gpcert.testing.effort import examples

BITS = 200


def sech_polynomials(order):
    """p_j with `sech^(j) = sech p_j(tanh)`, j = 0..order."""
    polynomials = [fmpz_poly([1])]
    for _ in range(order):
        p = polynomials[-1]
        polynomials.append(p.derivative() * fmpz_poly([1, 0, -1]) - fmpz_poly([0, 1]) * p)
    return polynomials


def total_variation(order):
    """`int |k^(order)|` for `k = sech / pi`: the variation of `k^(order - 1)`, by its extrema."""
    polynomials = sech_polynomials(order)
    roots = []
    for root, multiplicity in polynomials[order].complex_roots():
        assert multiplicity == 1
        # a real polynomial with all its roots simple: a ball that meets the real line once is real
        assert root.imag.contains(0)
        roots.append(root.real)
    roots = sorted((r for r in roots if abs(r) < 1), key=float)
    assert len(roots) == order
    heights = [(1 - r * r).sqrt() * polynomials[order - 1](r) / arb.pi() for r in roots]
    ends = [arb(0), *heights, arb(0)]
    return sum((abs(y - x) for x, y in itertools.pairwise(ends)), arb(0))


@pytest.mark.parametrize("order", range(4, 7))
def test_link_bounds_from_the_strip(order):
    angle = {4: 2.5704, 5: 2.6537, 6: 2.7165}[order]
    with ctx.workprec(BITS):
        # k_a(x) = c k(c x) with c = pi / (2 a): its j-th derivative has integral c^j int |k^(j)|
        scale = (arb.pi() / (2 * arb(angle))) ** order
        bound = total_variation(order) * scale / (2 * arb(angle).sin())
        assert bound <= Softmax().link_bound(order)
        assert float(bound) == pytest.approx(Softmax().link_bound(order), rel=4e-5)


def test_link_bounds_in_closed_form():
    with ctx.workprec(BITS):
        assert Softmax().link_bound(1) == 0.25
        assert 1 / (6 * arb(3).sqrt()) <= Softmax().link_bound(2)
        assert arb(3) / 32 <= Softmax().link_bound(2)


def times(x, y):
    """Product of intervals (lower, upper) of arrays."""
    products = np.stack([x[i] * y[j] for i in (0, 1) for j in (0, 1)])
    return products.min(axis=0), products.max(axis=0)


def plus(x, y):
    return x[0] + y[0], x[1] + y[1]


def affine(shift, slope, x):
    ends = shift + slope * x[0], shift + slope * x[1]
    return ends if slope >= 0 else ends[::-1]


def magnitude(x):
    inner = np.where(x[0] * x[1] <= 0, 0.0, np.minimum(abs(x[0]), abs(x[1])))
    return inner, np.maximum(abs(x[0]), abs(x[1]))


def power(x, n):
    """Of an interval of nonnegative numbers."""
    return x[0] ** n, x[1] ** n


def third_derivative_below(w, e, share):
    """Upper ends of `4 s3`, s3 the third derivative, for D = e - 1 <= 0 and the worst B.

    With w = p - q and A = share * e, A <= 1 + D, B <= 1 - A:
    `4 s3 = (1 - w^2) (D^3 (3 w^2 - 1) / 2 + A B (3 w D + B - A))` is convex in B, so the worst is
    B = 0, where it is at most 1/2, or B = 1 - A, here. Only upper ends: X -> -X turns the sign.
    """
    d, square, a = affine(1.0, -1.0, e), power(magnitude(w), 2), times(share, e)
    core = times(power(d, 3), affine(0.5, -1.5, square))
    slope = plus(affine(1.0, -2.0, a), affine(0.0, -3.0, times(w, d)))
    gain = times(times(a, affine(1.0, -1.0, a)), slope)
    return times(affine(1.0, -1.0, square), plus(core, gain))[1]


def third_derivative_above(w, e, _share):
    """The same for D = 1 - e >= 0: B <= e, and `A (3 w D + B - A) <= (B + 3 |w| D)^2 / 4`."""
    d, size = affine(1.0, -1.0, e), magnitude(w)
    core = times(power(d, 3), affine(-0.5, 1.5, power(size, 2)))
    gain = affine(0.0, 0.25, times(e, power(plus(e, affine(0.0, 3.0, times(size, d))), 2)))
    return times(affine(1.0, -1.0, power(size, 2)), plus(core, gain))[1]


@pytest.mark.parametrize("upper_ends", [third_derivative_below, third_derivative_above])
def test_third_link_bound_by_branch_and_bound(upper_ends):
    """Boxes of (w, e, share), halved until all lie below four times the bound."""
    low, high = np.array([[-1.0, 0.0, 0.0]]), np.array([[1.0, 1.0, 1.0]])
    for _ in range(60):
        ends = upper_ends(*[(low[:, i], high[:, i]) for i in range(3)])
        # 1e-12: far above the rounding of a few dozen operations on numbers below 20
        left_over = ~(ends + 1e-12 <= 4.0 * Softmax().link_bound(3))
        low, high = low[left_over], high[left_over]
        if not len(low):
            return
        ones = np.ones(len(low))
        widths = (high - low) * np.stack([ones, 1.5 * ones, 1.5 * high[:, 1]], axis=1)
        rows, axis = np.arange(len(low)), widths.argmax(axis=1)
        left, right = high.copy(), low.copy()
        left[rows, axis] = right[rows, axis] = (low[rows, axis] + high[rows, axis]) / 2
        low, high = np.concatenate([low, right]), np.concatenate([left, high])
    pytest.fail(f"{len(low)} boxes are still open")


@given(
    st.lists(st.tuples(st.floats(-6.0, 6.0), st.floats(0.0, 1.0)), min_size=2, max_size=6),
    st.booleans(),
)
@settings(max_examples=examples(200), deadline=None)
def test_link_bounds_hold(classes, extreme):
    """Derivatives of softmax along u, from power series in balls; u at the ends half the time."""
    with ctx.workprec(BITS):
        before = ctx.cap
        ctx.cap = 8
        try:
            u = [float(round(x)) if extreme else x for _, x in classes]
            own_f, own_u = classes[0][0], u[0]
            total = arb_series([0])
            for (f, _), slope in zip(classes, u, strict=True):
                difference = arb_series([arb(f) - arb(own_f), arb(slope) - arb(own_u)])
                total = total + difference.exp()
            series = (1 / total).coeffs()
        finally:
            ctx.cap = before
        for order in range(1, 7):
            coefficient = series[order] if order < len(series) else arb(0)
            # not above: the first bound is attained
            assert not abs(coefficient) * math.factorial(order) > Softmax().link_bound(order)


def test_link_bounds_are_attained_or_nearly():
    u = np.linspace(-1.0, 1.0, 20001)  # tanh(x / 2); d/dx = (1 - u^2) / 2 d/du
    values = np.polynomial.Polynomial([0.5, 0.5])
    ratios = []
    for order in range(1, 7):
        values = values.deriv() * np.polynomial.Polynomial([0.5, 0.0, -0.5])
        ratios.append(Softmax().link_bound(order) / abs(values(u)).max())
    assert min(ratios) >= 1.0
    assert max(ratios[:3]) < 1.0001
    assert max(ratios) < 2.4
