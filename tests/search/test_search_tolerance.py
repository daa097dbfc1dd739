"""Tolerances: what they say of two ends is what they mean, in rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.errors import InputError
from gpcert.search.problem import Tolerance
from gpcert.testing.effort import examples

SIZES = st.one_of(
    st.floats(-3.0, 3.0, allow_subnormal=False), st.floats(-1e6, 1e6, allow_subnormal=False)
)
PARTS = st.floats(0.0, 0.9)


def width_and_magnitude(lower, upper, zeros):
    low, high = Fraction(lower), Fraction(upper)
    away = [max(low - Fraction(z), Fraction(z) - high, Fraction(0)) for z in zeros]
    return high - low, min(away)


@given(
    upper=SIZES,
    gap=st.one_of(st.floats(0.9, 1.1), st.floats(0.0, 2.0)),
    tol=st.sampled_from([0.0, 1e-9, 0.01, 3.0]),
    rtol=PARTS,
    zeros=st.sampled_from([[0.0], [1.0], [0.0, 1.0], [1.0, 0.0], [-1.0, 0.0], [0.0, -1.0]]),
)
@settings(max_examples=examples(1000, quick=300))
def test_ends_are_near_enough_where_it_says(upper, gap, tol, rtol, zeros):
    """Never where they are not; and always where they are by a little."""
    tolerance = Tolerance(tol, rtol, np.array([zeros]))
    away = min(abs(upper - z) for z in zeros)
    least = away / (1.0 + rtol)
    lower = upper - gap * max(tol, rtol * least)
    near = bool(lower >= tolerance.needed(np.array([upper]))[0])
    width, magnitude = width_and_magnitude(lower, upper, zeros)
    allowed = max(Fraction(tol), Fraction(rtol) * magnitude)
    if near:
        assert width <= allowed
    else:
        slack = Fraction(1, 10**13) * (abs(Fraction(upper)) + 1)
        assert width > allowed - slack


@given(upper=SIZES, rtol=PARTS, tol=st.sampled_from([0.0, 0.1]))
def test_equal_ends_are_always_near_enough(upper, rtol, tol):
    assert Tolerance(tol, rtol).needed(np.array([upper]))[0] <= upper


def test_each_goal_has_its_own():
    needed = Tolerance(np.array([0.1, 2.0])).needed(np.array([[1.0, 1.0], [5.0, 5.0]]))
    np.testing.assert_allclose(needed, [[0.9, -1.0], [4.9, 3.0]])


def test_nothing_is_known_at_first():
    """Infinite ends keep a goal open, and are no warning."""
    with np.errstate(all="raise"):
        for tolerance in (Tolerance(0.1), Tolerance(0.0, 0.1)):
            assert tolerance.needed(np.array([np.inf]))[0] == np.inf


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_bad_tolerances(bad):
    with pytest.raises(InputError, match="tol"):
        Tolerance(bad)
    with pytest.raises(InputError, match="rtol"):
        Tolerance(0.0, bad)
