"""Sums of two floats: their operations and functions, against ball arithmetic of 300 bits."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.numerics.pairs import (
    EXP_ERROR,
    LARGEST_EXPONENT,
    PAIR_ERROR,
    STEPS,
    Pair,
    exp_minus,
    log1p,
    root,
)
from gpcert.numerics.rounding import two_product
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import flint

floats = st.floats(1e-60, 1e60)
parts = st.floats(-(2.0**-53), 2.0**-53)


def pair(high: float, part: float) -> Pair:
    """Two arrays of one number."""
    return Pair(np.array([high]), np.array([part * high]))


def ball(of: Pair) -> Any:
    return sum((flint().arb(float(part[0])) for part in (of.high, of.low)), flint().arb(0))


def near(found: Pair, true: Any, error: Any) -> None:
    assert not abs(ball(found) - true) > flint().arb(error)
    assert abs(found.low[0]) <= 2.0**-52 * abs(found.high[0])


@settings(max_examples=examples(300, quick=100))
@given(a=floats, b=floats, p=parts, q=parts, sign=st.sampled_from([1.0, -1.0]))
def test_operations(a: float, b: float, p: float, q: float, sign: float) -> None:
    with flint().ctx.workprec(300):
        first, second = pair(a, p), pair(sign * b, q)
        x, y = ball(first), ball(second)
        near(first * second, x * y, PAIR_ERROR * abs(x * y))
        near(root(first), x.sqrt(), PAIR_ERROR * x.sqrt())
        gap = abs(ball(first + second) - (x + y))
        assert not gap > PAIR_ERROR * (abs(x) + abs(y))
        product, rest = two_product(first.high, second.high)
        exact = Fraction(a) * Fraction(sign * b)
        assert Fraction(float(product[0])) + Fraction(float(rest[0])) == exact


@pytest.mark.parametrize("number", [0, 1, Fraction(1, 3), Fraction(-22, 7), 0.1])
def test_numbers(number: float | Fraction) -> None:
    found = Pair.of(number)
    gap = abs(Fraction(float(found.high)) + Fraction(float(found.low)) - Fraction(number))
    assert gap <= Fraction(PAIR_ERROR) * abs(Fraction(number))


CHECKED: dict[str, tuple[Callable[[Pair], Pair], Callable[[Any], Any], Callable[[Any], Any]]] = {
    "exp": (exp_minus, lambda t: (-t).exp(), lambda value: EXP_ERROR * value),
    "log1p": (log1p, lambda q: (1 + q).log(), lambda value: flint().arb(2.0 * EXP_ERROR)),
}


@pytest.mark.parametrize("name", CHECKED)
@settings(max_examples=examples(500, quick=150))
@given(t=st.floats(0.0, LARGEST_EXPONENT * (1.0 - 1e-15)), p=parts)
def test_functions(name: str, t: float, p: float) -> None:
    function, true, error = CHECKED[name]
    with flint().ctx.workprec(300):
        value = true(ball(pair(t, p)))
        near(function(pair(t, p)), value, error(value))


@pytest.mark.parametrize("name", CHECKED)
def test_functions_where_their_errors_are_largest(name: str) -> None:
    """At and beside the middle between two entries of the table, all over it."""
    function, true, error = CHECKED[name]
    with flint().ctx.workprec(300):
        for n in [*range(40), *np.geomspace(40, STEPS * LARGEST_EXPONENT - 1, 60).astype(int)]:
            for t in ((n + 0.5) / STEPS, np.nextafter((n + 0.5) / STEPS, 0.0), n / STEPS, 1e-9 * n):
                for p in (0.0, 2.0**-53, -(2.0**-53)):
                    value = true(ball(pair(float(t), p)))
                    near(function(pair(float(t), p)), value, error(value))


def test_what_is_too_small_is_not_a_number() -> None:
    beyond = np.array([LARGEST_EXPONENT * (1.0 + 1e-15), 1e300, np.inf])
    assert np.all(np.isnan(exp_minus(Pair(beyond, 0.0 * np.ones(3))).high))
