"""What a Gaussian density has beyond some degree over another one."""

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.enclosures.classes.remainder import hermite_tail
from gpcert.testing.effort import examples


def exact_tail(mean, spread, operator, degree=2):
    """The root of `(1 - s^2)^(-w^2 / 2 s^2) exp(A^2 / (1 - s))` less its terms up to the degree."""
    before, ctx.prec = ctx.prec, 800
    try:
        A, w, s = (arb(float(x)) for x in (mean, spread, operator))
        c = [s ** (k - 1) * A * A for k in range(1, 9)]
        c = [x + s ** (k - 2) * w * w / k if k % 2 == 0 else x for k, x in enumerate(c, 1)]
        e = [arb(1)]
        for k in range(1, degree + 1):
            e.append(sum((j * c[j - 1] * e[k - j] for j in range(1, k + 1)), arb(0)) / k)
        total = (A * A / (1 - s) - (1 - s * s).log() * w * w / (2 * s * s)).exp()
        return (total - sum(e, arb(0))).sqrt()
    finally:
        ctx.prec = before


def tail(mean, spread, operator, degree=2):
    return float(hermite_tail(*(np.array([x]) for x in (mean, spread, operator)), degree)[0])


@settings(max_examples=examples(300, quick=60))
@given(
    mean=st.one_of(st.floats(1e-20, 3.0), st.floats(-18, 0).map(lambda e: 10.0**e)),
    spread=st.one_of(st.floats(1e-20, 1.5), st.floats(-18, -0.1).map(lambda e: 10.0**e)),
    part=st.one_of(st.just(1.0), st.floats(0.1, 1.0)),
    degree=st.sampled_from([2, 2, 4, 6]),
)
def test_it_is_an_upper_bound_and_hardly_more(mean, spread, part, degree):
    operator = part * spread
    found = tail(mean, spread, operator, degree)
    if np.isinf(found):
        assert operator > 0.98
        return
    truth = exact_tail(mean, spread, operator, degree)
    assert arb(found) >= truth
    if mean <= 1.0 and operator <= 0.5:
        assert found <= 1.001 * float(truth) + 1e-140
    elif operator <= 0.9:
        assert found <= 2.0 * float(truth)


@settings(max_examples=examples(60, quick=20))
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 6))
def test_several_dimensions_reduce_to_one(seed, n):
    """The exact length for (b, W) is below that of the sizes |b|, |W|_F and |W|_2."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(n, n))
    W = W + W.T + rng.choice([0.0, 3.0, -3.0]) * np.eye(n)
    W *= rng.uniform(0.0, 0.8) / np.linalg.norm(W, 2)
    b = rng.normal(size=n) * rng.uniform(0.0, 0.7)
    w, turn = np.linalg.eigh(W)
    t = turn.T @ b
    whole = np.prod((1 - w**2) ** -0.5) * np.exp(np.sum(t**2 / (1 - w)))
    rest = whole - 1 - b @ b - 0.5 * np.sum((W + np.outer(b, b)) ** 2)
    bound = tail(np.linalg.norm(b), np.linalg.norm(W), np.linalg.norm(W, 2))
    assert np.sqrt(max(rest, 0.0)) <= bound * (1.0 + 1e-9) + 1e-7
    if n == 1:
        rest = whole - 1 - b @ b - 0.5 * (abs(W[0, 0]) + b @ b) ** 2
        assert W[0, 0] < 0 or bound <= np.sqrt(max(rest, 0.0)) * 1.6 + 1e-7


def test_a_multiple_of_the_identity_is_less_than_one_direction():
    """The same length of W, but every direction changes a little: a third of the products is left
    of degree 3, where W and b share a direction in one part of n only."""
    n = 9
    even, one = tail(0.3, 0.3, 0.3 / np.sqrt(n)), tail(0.3, 0.3, 0.3)
    assert even < 0.75 * one


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_sizes_that_are_no_numbers(bad):
    for sizes in ((bad, 0.1, 0.1), (0.1, bad, bad), (0.1, 0.1, np.nan), (0.1, bad, 0.1)):
        assert np.isinf(tail(*sizes))


def test_no_change_leaves_nothing():
    assert tail(0.0, 0.0, 0.0) < 1e-140
