"""Split trees of the boxes of a search: they hold the boxes, and take few bytes."""

import zlib

import numpy as np
import pytest

from gpcert.certificates.proof import split_tree
from gpcert_check.container import Numbers
from gpcert_check.region import read_region
from gpcert_check.tree import leaves


def halved(rng, d, count, middle=True):
    """Boxes of the unit cube, halved along random axes."""
    low, high = np.zeros((1, d)), np.ones((1, d))
    while len(low) < count:
        axis, rows = rng.integers(0, d, len(low)), np.arange(len(low))
        part = 0.5 if middle else rng.uniform(0.1, 0.9, len(low))
        cut = (1 - part) * low[rows, axis] + part * high[rows, axis]
        first, second = high.copy(), low.copy()
        first[rows, axis] = second[rows, axis] = cut
        low, high = np.concatenate([low, second]), np.concatenate([first, high])
    return low, high


def numbers(array):
    return Numbers(array.shape, array.ravel().tolist())


@pytest.mark.parametrize("middle", [True, False])
@pytest.mark.parametrize("d", [1, 3])
def test_the_leaves_come_back(d, middle):
    rng = np.random.default_rng(d)
    low, high = halved(rng, d, 200, middle)
    root = np.stack([np.zeros(d), np.ones(d)])
    axes, cuts, _ = split_tree((low, high), root)
    assert (len(cuts) == 0) == middle
    region = read_region({"kind": "box", "lower": [0.0] * d, "upper": [1.0] * d})
    arrays = {"axes": numbers(axes), "cuts": numbers(cuts), "root": numbers(root)}
    found = {(*a, *b) for a, b in leaves(arrays, region)}
    assert found == {tuple(row) for row in np.hstack([low, high]).tolist()}


def test_a_box_that_is_proved_needs_no_children():
    low, high = halved(np.random.default_rng(0), 2, 32)
    root = np.stack([np.zeros(2), np.ones(2)])
    assert split_tree((low, high), root, lambda low, high, sign: True)[0].tolist() == [-1]
    small = split_tree((low, high), root, lambda low, high, sign: bool(np.all(high - low < 0.6)))[0]
    assert 3 <= len(small) < 63


def test_leaves_of_different_signs_are_not_joined():
    low, high = halved(np.random.default_rng(0), 2, 32)
    root, left = np.stack([np.zeros(2), np.ones(2)]), np.where(low[:, 0] < 0.5, 1, 0)
    axes, cuts, signs = split_tree((low, high), root, lambda low, high, sign: True, left)
    volume = {0: 0.0, 1: 0.0}
    region = read_region({"kind": "box", "lower": [0.0] * 2, "upper": [1.0] * 2})
    arrays = {"axes": numbers(axes), "cuts": numbers(cuts), "root": numbers(root)}
    for (a, b), sign in zip(leaves(arrays, region), signs.tolist(), strict=True):
        volume[sign] += np.prod(np.subtract(b, a))
    assert len(signs) < 32
    assert volume[1] == np.sum(np.prod(high - low, axis=1)[left == 1])
    nothing = split_tree((low, high), root, None, np.full(32, -1))
    assert nothing[0].tolist() == nothing[2].tolist() == [-1]


def test_many_leaves_take_few_bytes():
    low, high = halved(np.random.default_rng(0), 6, 2**15)
    axes, cuts, _ = split_tree((low, high), np.stack([np.zeros(6), np.ones(6)]))
    assert len(zlib.compress(axes.tobytes() + cuts.tobytes())) < 50 * 2**15
