"""Coupled outputs: exact differences, and covariances that rounding leaves indefinite."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpcert.likelihoods import MultinomialProbit, Softmax
from gpcert.numerics.rounding import on_grid
from gpcert.regions import Box
from gpcert.testing.effort import crossed
from tests.enclosures.classes.class_cases import (
    evaluation_of,
    observed_once,
    true_sums,
)


@given(seed=st.integers(0, 2**32 - 1), m=st.integers(2, 5))
def test_differences_are_exact(seed, m):
    rng = np.random.default_rng(seed)
    values = on_grid(rng.normal(size=m) * 10.0 ** rng.uniform(-18, 3, m))
    for a in values.tolist():
        for b in values.tolist():
            assert Fraction(a) - Fraction(b) == Fraction(a - b)
            assert Fraction(a) + Fraction(b) == Fraction(a + b)


@pytest.mark.parametrize("size", [0.3, 0.72, 1.0, 3.0])
def test_excess_of_coupled_outputs(size):
    """`sum_c A_c K A_c^T <= (1 + excess) I`, which its parts may obey one by one."""
    posterior = observed_once(Softmax(), size)
    assert posterior.excess >= 2.04 * size * size - 1.0
    assert posterior.differences.excess == posterior.excess


@crossed(
    {
        "likelihood": [Softmax(), MultinomialProbit()],
        "size": [0.72, 0.75, 1.0, 1.5],
        "amplitude": [1.0, 30.0],
    },
    quick=3,
)
def test_covariances_that_are_not_definite(likelihood, size, amplitude):
    """Their nearest semi-definite matrix is what is meant."""
    posterior = observed_once(likelihood, size, amplitude)
    own = evaluation_of(posterior, Box([-0.05], [0.05]))
    X = np.linspace(-0.05, 0.05, 11)[:, None]
    rows = [*np.eye(3), *-np.eye(3), [1.0, -1.0, 0.0], [0.0, -1.0, 1.0]]
    for weights in (tuple(map(float, row)) for row in rows):
        low, high = true_sums(posterior, X, weights)
        assert float(own.lower(weights, None).lower[0]) <= high.min()
        assert float(own.upper_at_center(weights)[0]) >= low[5]
