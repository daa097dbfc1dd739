"""What a Gaussian density has beyond degree 2 over another one."""

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.integrals.hermite_tail import hermite_tail
from gpcert.testing.effort import examples


def exact_tail(mean, spread):
    """`sqrt((1 - w^2)^(-1/2) exp(A^2 / (1 - w)) - 1 - A^2 - (w + A^2)^2 / 2)` in 400 bits."""
    before, ctx.prec = ctx.prec, 400
    try:
        A, w = arb(float(mean)), arb(float(spread))
        total = (A * A / (1 - w)).exp() / (1 - w * w).sqrt()
        return (total - 1 - A * A - (w + A * A) ** 2 / 2).sqrt()
    finally:
        ctx.prec = before


@settings(max_examples=examples(300, quick=60))
@given(
    mean=st.one_of(st.floats(1e-20, 3.0), st.floats(-18, 0).map(lambda e: 10.0**e)),
    spread=st.one_of(st.floats(1e-20, 0.95), st.floats(-18, -0.1).map(lambda e: 10.0**e)),
)
def test_it_is_an_upper_bound_and_hardly_more(mean, spread):
    found = float(hermite_tail(np.array([mean]), np.array([spread]))[0])
    if np.isinf(found):
        assert mean / np.sqrt(24) + spread > 0.98
        return
    truth = exact_tail(mean, spread)
    assert arb(found) >= truth
    if mean <= 1.0 and spread <= 0.5:
        assert found <= 1.001 * float(truth) + 1e-140


@settings(max_examples=examples(60, quick=20))
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 6))
def test_several_dimensions_reduce_to_one(seed, n):
    """The exact length for (b, W) is below that of the sizes |b| and |W|_F."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(n, n))
    W = W + W.T
    W *= rng.uniform(0.0, 0.8) / np.linalg.norm(W)
    b = rng.normal(size=n) * rng.uniform(0.0, 0.7)
    w, turn = np.linalg.eigh(W)
    t = turn.T @ b
    whole = np.prod((1 - w**2) ** -0.5) * np.exp(np.sum(t**2 / (1 - w)))
    rest = whole - 1 - b @ b - 0.5 * np.sum((W + np.outer(b, b)) ** 2)
    bound = hermite_tail(np.array([np.linalg.norm(b)]), np.array([np.linalg.norm(W)]))[0]
    assert np.sqrt(max(rest, 0.0)) <= bound + 1e-7


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_sizes_that_are_no_numbers(bad):
    for sizes in ((bad, 0.1), (0.1, bad)):
        assert np.isinf(hermite_tail(*(np.array([x]) for x in sizes))[0])


def test_no_change_leaves_nothing():
    assert hermite_tail(np.zeros(1), np.zeros(1))[0] < 1e-140
