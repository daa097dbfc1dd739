"""The longest image of a box under a linear map, against all its corners."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.enclosures.classes.joint_change import longest_image
from gpcert.numerics.arrays import to_numpy
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import exact, flint

arb = flint().arb


def corner_length(S, half, signs):
    """`|S d|` at a corner, in high precision."""
    d = [s * w for s, w in zip(signs, exact(half), strict=True)]
    rows = [sum((a * x for a, x in zip(exact(row), d, strict=True)), arb(0)) for row in S]
    return sum((r * r for r in rows), arb(0)).sqrt()


@settings(max_examples=examples(60))
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 5),
    f=st.integers(1, 6),
    rank=st.sampled_from([1, 2, 5]),
    size=st.sampled_from([1.0, 1e-150, 1e60]),
)
def test_no_corner_is_longer(seed, n, f, rank, size):
    rng = np.random.default_rng(seed)
    S = rng.normal(size=(3, n, min(rank, f))) @ rng.normal(size=(3, min(rank, f), f)) * size
    half = rng.random((3, f)) * 10.0 ** rng.uniform(-3.0, 1.0, (3, f))
    half[rng.random((3, f)) < 0.2] = 0.0
    S[2, :, rng.random(f) < 0.3] = 0.0
    found = to_numpy(longest_image(S, half))
    for b in range(3):
        lengths = [
            corner_length(S[b], half[b], signs)
            for signs in itertools.product((-1, 1), repeat=f - 1)
            for signs in [(1, *signs)]
        ]
        bound = arb(float(found[b]))
        assert all(length <= bound for length in lengths)


def test_it_is_nearly_the_longest_corner():
    """Within sqrt(pi / 2) and a little; sums of entries and of products are farther away."""
    rng = np.random.default_rng(0)
    S, half = rng.normal(size=(20, 9, 14)), rng.random((20, 14))
    found = to_numpy(longest_image(S, half))
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=14)))
    entries = np.linalg.norm(np.abs(S) @ half[:, :, None], axis=(1, 2))
    for b in range(20):
        true = np.linalg.norm((corners * half[b]) @ S[b].T, axis=1).max()
        assert true <= found[b] <= 1.02 * math.sqrt(math.pi / 2.0) * true
        assert found[b] < 0.9 * entries[b]


@pytest.mark.parametrize("half", [0.0, 1.0])
def test_maps_of_nothing(half):
    assert to_numpy(longest_image(np.zeros((2, 4, 3)), np.full((2, 3), half))).max() < 1e-100
    assert to_numpy(longest_image(np.zeros((2, 4, 0)), np.zeros((2, 0)))).max() < 1e-100
