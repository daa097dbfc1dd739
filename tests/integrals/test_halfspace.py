"""The share of a cube on one side of a plane: never above the exact one, and near it."""

from fractions import Fraction
from itertools import product
from math import factorial, prod

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.integrals.halfspace import share_above
from gpcert.testing.effort import examples


def exact_share(least, rise):
    """Share of the unit cube where least + rise.u > 0, in rational arithmetic."""
    b = [Fraction(each) for each in rise if each > 0]
    t = -Fraction(least)
    if t < 0 or (t == 0 and b):
        return Fraction(1)
    if not b:
        return Fraction(0)
    total = Fraction(0)
    for corner in product((0, 1), repeat=len(b)):
        rest = t - sum(c * each for c, each in zip(corner, b, strict=True))
        if rest > 0:
            total += (-1) ** sum(corner) * rest ** len(b)
    return 1 - total / (factorial(len(b)) * prod(b))


@given(seed=st.integers(0, 10**6), f=st.integers(1, 6))
@settings(max_examples=examples(300, quick=60), deadline=None)
def test_it_is_below_the_exact_share(seed, f):
    rng = np.random.default_rng(seed)
    n = 8
    rise = rng.uniform(0.0, 1.0, (n, f)) * 10.0 ** -rng.integers(0, 9, (n, f))
    rise[rng.random((n, f)) < 0.1] = 0.0
    scale = 10.0 ** float(rng.integers(-200, 200))
    least = -rise.sum(axis=1) * rng.choice([0.0, 1e-12, 0.01, 0.5, 0.99, 1.0, 1.2], n)
    least *= 1.0 + 1e-3 * rng.random(n)
    found = share_above(least * scale, rise * scale)
    for k in range(n):
        assert Fraction(float(found[k])) <= exact_share(least[k] * scale, rise[k] * scale)


def test_it_is_near_the_exact_share():
    rng = np.random.default_rng(0)
    for f in range(1, 6):
        rise = rng.uniform(0.1, 1.0, (50, f))
        least = -rise.sum(axis=1) * rng.uniform(0.05, 0.95, 50)
        found = share_above(least, rise)
        exact = [float(exact_share(*each)) for each in zip(least, rise, strict=True)]
        assert np.all(np.abs(found - exact) < 1e-8)


def test_extreme_planes():
    values = np.array([0.5, 0.0, -0.0, -1.0, -2.5, -np.inf, np.inf, -1e-320])
    found = share_above(values, np.ones((8, 2)))
    assert found[0] == found[6] == 1.0
    assert 0.999 < found[1] <= 1.0
    assert found[3] <= 0.5 < found[3] + 1e-9
    assert found[4] == found[5] == 0.0
    assert share_above(np.zeros(1), np.zeros((1, 3)))[0] == 0.0
    assert share_above(np.array([-1.0]), np.array([[np.inf, 1.0]]))[0] == 0.0
