"""Parts of the variance of sums of Gaussians, against closed forms in ball arithmetic."""

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.integrals.families import Normal
from gpcert.integrals.input_law import Marginal
from gpcert.integrals.variance_parts import GaussianTerms, input_rule, variance_parts
from gpcert.testing.effort import examples

BITS = 200


def one(rate, c, m, s):
    """E exp(-rate (X - c)^2 / 2), X normal."""
    wide = 1 + rate * s * s
    return (-rate * (c - m) ** 2 / (2 * wide)).exp() / wide.sqrt()


def two(r1, c1, r2, c2, m, s):
    """E of the product of two."""
    r = r1 + r2
    return (-r1 * r2 / r * (c1 - c2) ** 2 / 2).exp() * one(r, (r1 * c1 + r2 * c2) / r, m, s)


def reference(v, rates, centers, laws):
    """Mean, variance, first and total parts."""
    n, f = centers.shape
    R, C = ([[arb(x) for x in row] for row in a.tolist()] for a in (rates, centers))
    v = [arb(x) for x in v.tolist()]
    laws = [(arb(m), arb(s)) for m, s in laws]
    a = [[one(R[b][k], C[b][k], *laws[k]) for k in range(f)] for b in range(n)]
    mean = sum(v[b] * np.prod(a[b]) for b in range(n))
    sums = {name: arb(0) for name in ["all", *range(f), *(("not", k) for k in range(f))]}
    for b in range(n):
        for c in range(n):
            pair = [two(R[b][k], C[b][k], R[c][k], C[c][k], *laws[k]) for k in range(f)]
            apart = [a[b][k] * a[c][k] for k in range(f)]
            w = v[b] * v[c]
            sums["all"] += w * np.prod(pair)
            for k in range(f):
                sums[k] += w * np.prod([pair[j] if j == k else apart[j] for j in range(f)])
                sums["not", k] += w * np.prod([apart[j] if j == k else pair[j] for j in range(f)])
    first = [sums[k] - mean * mean for k in range(f)]
    total = [sums["all"] - sums["not", k] for k in range(f)]
    return mean, sums["all"] - mean * mean, first, total


def holds(ends, real):
    assert not arb(ends[0]) > real
    assert not arb(ends[1]) < real


@settings(deadline=None, max_examples=examples(40, quick=6))
@given(seed=st.integers(0, 10**6))
def test_every_part_is_between_its_bounds(seed):
    rng = np.random.default_rng(seed)
    n, f = int(rng.integers(1, 9)), int(rng.integers(1, 4))
    rates = 10.0 ** rng.uniform(-2, 1.5, (n, f))
    centers = rng.normal(size=(n, f)) * 2.0
    v = rng.normal(size=n) * 10.0 ** rng.uniform(-3, 4, n)
    laws = list(
        zip(rng.normal(size=f).tolist(), (10.0 ** rng.uniform(-1, 0.5, f)).tolist(), strict=True)
    )
    rules = [
        input_rule(Marginal(Normal(), m, s), m - 9.5 * s, m + 9.5 * s, 2.0 * top, 1e-18)
        for (m, s), top in zip(laws, rates.max(axis=0).tolist(), strict=True)
    ]
    parts = variance_parts(GaussianTerms(v, rates, centers, 0), rules)
    with ctx.workprec(BITS):
        mean, whole, first, total = reference(v, rates, centers, laws)
        holds(parts.mean, mean)
        holds(parts.whole, whole)
        for k in range(f):
            holds(parts.first[k], first[k])
            holds(parts.total[k], total[k])
    size = np.abs(v).sum() ** 2
    assert parts.whole[1] - parts.whole[0] <= 1e-11 * size


@pytest.mark.parametrize("n", [1, 31, 33, 200])
def test_blocks_add_up(n):
    """Weights that cancel: a constant has no variance."""
    rng = np.random.default_rng(n)
    rates, centers = np.full((2 * n, 2), 0.5), np.tile(rng.normal(size=(n, 2)), (2, 1))
    v = np.concatenate([np.ones(n), -np.ones(n)])
    rules = [input_rule(Marginal(Normal()), -9.5, 9.5, 1.0, 1e-18)] * 2
    parts = variance_parts(GaussianTerms(v, rates, centers, 0), rules)
    assert parts.whole[0] == 0.0
    assert parts.whole[1] <= 1e-11 * n * n
    assert abs(parts.mean[0]) + abs(parts.mean[1]) <= 1e-11 * n


def test_rules_that_are_too_coarse_say_nothing():
    rule = input_rule(Marginal(Normal()), -9.0, 9.0, 1e16, 1e-12)
    terms = GaussianTerms(np.ones(1), np.full((1, 1), 1e16), np.zeros((1, 1)), 0)
    assert variance_parts(terms, [rule]) is None
