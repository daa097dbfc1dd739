"""Cells cut by planes: least values and shares are on the safe side of rational numbers."""

from fractions import Fraction
from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.search.cut_cells import INSIDE, CellTree, CutCells, cell_shares, least_over, set_shares
from gpcert.testing.effort import examples


@given(seed=st.integers(0, 10**6), f=st.integers(1, 4))
@settings(max_examples=examples(200, quick=50), deadline=None)
def test_least_values_are_rounded_down(seed, f):
    rng = np.random.default_rng(seed)
    n = 6
    scale = 10.0 ** rng.integers(-150, 150, 2)
    planes = rng.normal(size=(n, 1, 2, f + 1)) * 10.0 ** rng.integers(-3, 3, (n, 1, 2, f + 1))
    low = rng.normal(size=(n, f))
    high = low + rng.random((n, f)) * 10.0 ** rng.integers(-12, 1, (n, f))
    planes[0, 0, 0, -1] = -planes[0, 0, 0, :-1] @ low[0]  # all of it cancels
    planes[..., :-1] *= scale[0] / scale[1]
    planes[..., -1] *= scale[0]
    low, high = low * scale[1], high * scale[1]
    found = least_over(planes, low, high)
    for r, side in product(range(n), range(2)):
        *slope, offset = map(Fraction, planes[r, 0, side].tolist())
        corners = np.stack([low[r], high[r]], axis=1).tolist()
        ends = [tuple(map(Fraction, pair)) for pair in corners]
        least = offset + sum(min(s * x for x in pair) for s, pair in zip(slope, ends, strict=True))
        assert Fraction(float(found[r, 0, side])) <= least


@given(seed=st.integers(0, 10**6), m=st.integers(1, 3))
@settings(max_examples=examples(60, quick=20), deadline=None)
def test_shares_of_two_sets_hold(seed, m):
    """Against the points of a fine grid in the cell, whose half-spaces are known."""
    rng = np.random.default_rng(seed)
    middle = rng.uniform(0, 1, (1, m, 2, 2))
    planes = np.zeros((1, m, 2, 3))
    planes[..., :2] = rng.normal(size=(1, m, 2, 2))
    planes[..., 2] = -np.sum(planes[..., :2] * middle, axis=-1)
    planes[:, :, 1] = -planes[:, :, 0] - [0.0, 0.0, 0.05]  # fails a little beyond where it holds
    cells = CutCells(np.zeros((1, 2)), np.ones((1, 2)), planes, np.full(1, INSIDE))
    edges = (np.arange(200) + 0.5) / 200
    grid = np.stack(np.meshgrid(edges, edges), axis=-1).reshape(-1, 1, 1, 2)
    inside = np.sum(planes[0, :, :, :2] * grid, axis=-1) + planes[0, :, :, 2] > 0
    out, both = cells.shares(False)[0]
    assert both <= np.all(inside[:, :, 0], axis=1).mean() + 0.02
    assert out <= np.any(inside[:, :, 1], axis=1).mean() + 0.02
    if m == 1:
        assert both >= inside[:, 0, 0].mean() - 0.02
    whole = np.array([[0.0, 0.0], [1.0, 1.0]])
    (low_out, high_out), (low_in, high_in) = set_shares(cells, whole, False)
    assert low_out <= out <= high_out
    assert low_in <= both <= high_in
    assert high_in >= np.all(inside[:, :, 0], axis=1).mean() - 0.02


def test_shares_of_volumes_hold_and_points_find_their_cells():
    rng = np.random.default_rng(0)
    whole = np.array([[-1.0, 0.1, 3.0], [2.0, 0.7, 3.5]])
    low, high = whole[:1].copy(), whole[1:].copy()
    for _ in range(200):
        k, j = rng.integers(len(low)), rng.integers(3)
        cut = 0.5 * low[k, j] + 0.5 * high[k, j]
        low, high = np.concatenate([low, low[k : k + 1]]), np.concatenate([high, high[k : k + 1]])
        high[k, j] = low[-1, j] = cut
    least, most = cell_shares(low, high, whole)
    width = [Fraction(b) - Fraction(a) for a, b in whole.T.tolist()]
    for k in range(len(low)):
        share = Fraction(1)
        for a, b, w in zip(low[k].tolist(), high[k].tolist(), width, strict=True):
            share *= (Fraction(b) - Fraction(a)) / w
        assert Fraction(float(least[k])) <= share <= Fraction(float(most[k]))
    X = rng.uniform(whole[0], whole[1], (500, 3))
    cells = CellTree.of(low, high, whole).find(X)
    assert np.all((low[cells] <= X) & (high[cells] >= X))
