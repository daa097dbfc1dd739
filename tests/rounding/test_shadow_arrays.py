"""Shadow arrays carry bounds of their errors: against exact and 200-bit arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.numerics.rounding import U
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import flint
from gpcert.testing.rounding.arrays import Allowance, shadow
from gpcert.testing.rounding.rules import plain

SIZES = st.floats(1e-3, 1e3) | st.floats(-1e3, -1e-3)
FORMULAS = {
    "sums": lambda a, b, c: (a + b) - c,
    "products": lambda a, b, c: a * b / c - a,
    "same sign": lambda a, b, c: abs(a) + abs(b) * abs(c) + 1,
    "squares": lambda a, b, c: (a - b) * (a - b) + c * c,
    "maxima": lambda a, b, c: max(a * b, b * c) if isinstance(a, Fraction) else _most(a * b, b * c),
}


def _most(a, b):
    return np.maximum(a, b)


@pytest.mark.parametrize("name", FORMULAS)
@settings(max_examples=examples(40))
@given(numbers=st.tuples(SIZES, SIZES, SIZES))
def test_bounds_hold_for_rational_formulas(name, numbers):
    computed = FORMULAS[name](*(shadow([x]) for x in numbers))
    exact = FORMULAS[name](*map(Fraction, numbers))
    error = abs(Fraction(float(plain(computed)[0])) - exact)
    for bound in computed.bounds:
        assert error <= Fraction(float(bound[0]) * U) * (1 + Fraction(1, 10**9))


@settings(max_examples=examples(40))
@given(seed=st.integers(0, 2**32 - 1))
def test_bounds_hold_for_products_of_matrices(seed):
    rng = np.random.default_rng(seed)
    A, B = rng.normal(size=(3, 5)), rng.normal(size=(5, 2))
    for computed in (shadow(A) @ B, np.einsum("ij,jk->ik", A, shadow(B)), np.dot(shadow(A), B)):
        for i, k in np.ndindex(3, 2):
            exact = sum(Fraction(A[i, j]) * Fraction(B[j, k]) for j in range(5))
            error = abs(Fraction(float(plain(computed)[i, k])) - exact)
            assert error <= Fraction(float(computed.bounds[0][i, k]) * U)


@pytest.mark.parametrize("name", ["exp", "expm1", "log1p", "sin", "cos", "sqrt"])
@settings(max_examples=examples(40))
@given(a=st.floats(0.05, 30.0), b=st.floats(0.05, 30.0))
def test_bounds_hold_for_functions(name, a, b):
    # the quotient is at most 600, where exp is finite
    arb = flint().arb
    computed = getattr(np, name)(shadow([a]) / b)
    exact = getattr(arb(a) / arb(b), name)()
    assert abs(arb(float(plain(computed)[0])) - exact) <= float(computed.bounds[0][0]) * U * 1.0001


def test_counts_do_not_depend_on_sizes():
    small, large = shadow([1e-9]) / 3.0, shadow([1.0])
    for _ in range(6):
        small = small * 1.1
    both = small + large
    assert both.roundings(counted=True)[0] == 8.0
    assert both.roundings(counted=False)[0] < 1.001


def test_an_allowance_covers_the_error_of_a_sum():
    x = shadow([1.0]) / 3.0 + shadow([2.0]) / 7.0
    assert x.roundings()[0] > 1.0
    assert (x - Allowance.of(8 * U) * abs(x)).roundings(False)[0] == 0.0
    assert (x - Allowance.of(U / 2) * abs(x)).roundings(False)[0] > 1.0


def test_an_error_is_no_allowance_for_another_one():
    lost = shadow([1e-16]) / 3.0
    assert (lost + Allowance.of(8 * U) * shadow([1.0])).roundings()[0] > 0.0


@pytest.mark.parametrize(
    "move",
    [
        lambda x: x[1:],
        lambda x: np.stack([x, x])[1],
        lambda x: np.where(np.array([True, False, True]), x, 0.0),
        lambda x: x.reshape(3, 1).T[0],
        lambda x: np.concatenate([x, x])[3:],
        lambda x: np.broadcast_to(x, (2, 3))[0],
    ],
)
def test_what_only_moves_numbers_keeps_their_bounds(move):
    x = shadow([1.0, 2.0, 5.0]) / 3.0
    assert move(x).roundings()[-1] == 1.0
