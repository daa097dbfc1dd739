"""Outward steps and the one rule about NaN."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpcert.numerics.rounding import down, nonnegative, norm_upper, up


@given(st.floats(allow_nan=False, allow_infinity=False, width=64).map(lambda x: x / 4))
def test_steps_are_outward(x):
    assert down(np.float64(x)) < x < up(np.float64(x))


def test_nonnegative_keeps_nan():
    """What an overflow left must not become the number 0, and with it a bound."""
    found = nonnegative(np.array([-1.0, 0.0, 2.0, np.inf, -np.inf, np.nan]))
    np.testing.assert_array_equal(found, [0.0, 0.0, 2.0, np.inf, 0.0, np.nan])


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, np.inf])
def test_a_norm_is_not_bounded_where_an_entry_is_not_finite(p):
    rows = np.array([[np.nan, 0.0], [np.nan, 1.0], [np.inf, 0.0], [-np.inf, np.nan], [0.0, 0.0]])
    with np.errstate(invalid="ignore"):
        assert norm_upper(rows, p).tolist() == [np.inf] * 4 + [0.0]
