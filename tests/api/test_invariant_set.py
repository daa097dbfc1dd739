"""Invariant sets: whatever the map does within its band, the next state is in the set again."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert
from gpcert.errors import InputError
from gpcert.kernels import Linear, SquaredExponential
from gpcert.search.invariant import GridCells, kept_inside
from gpcert.testing.arb_reference import ArbPosterior
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import exact, flint

arb = flint().arb
HALVES = gpcert.Posterior(Linear([1.0]), points=[[1.0]], weights=[0.5])  # x -> x / 2


def learned(seed, features, n=25, noise=1e-4):
    """A model with an output for each of two states, of a contraction with an input."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.2, 1.2, (n, features))
    turn = np.array([[0.6, 0.3], [-0.3, 0.6]])
    Y = X[:, :2] @ turn.T + 0.2 * np.sin(3 * X[:, :2])
    if features > 2:
        Y = Y + 0.4 * X[:, 2:]
    kernel = SquaredExponential([1.0] * features, variance=2.0)
    K = kernel.value(X, X) + noise * np.eye(n)
    return gpcert.Posterior(
        kernel, X, np.linalg.solve(K, Y).T, np.linalg.inv(np.linalg.cholesky(K))
    )


@given(seed=st.integers(0, 10**6), features=st.sampled_from([2, 3]), delta=st.booleans())
@settings(max_examples=examples(20, quick=4), deadline=None)
def test_next_states_are_in_the_set(seed, features, delta):
    model, rng = learned(seed, features), np.random.default_rng(seed)
    inputs = None if features == 2 else [[-0.3], [0.0], [0.3]]
    if delta:  # the same map as what is added to the state: weights of x -> -x besides
        model = model.__class__(
            model.kernel, model.points, model.weights, model.factor, slope=-np.eye(2, features)
        )
    found = gpcert.invariant_set(
        model, [(-1, 1)] * 2, "delta" if delta else "next", inputs=inputs, disturbance=[0.02, 0.0],
        beta=1.5, cells=150, refine=1,
    )  # fmt: skip
    assert found.complete
    rows = rng.permutation(len(found))[:15]
    u = np.round(rng.random((len(rows), 2)) * 2) / 2
    X = found.lower[rows] + u * (found.upper[rows] - found.lower[rows])
    reference = ArbPosterior(model)
    for row, x in zip(rows, X, strict=True):
        z = exact(np.concatenate([x, found.inputs[found.choice[row]]]))
        ends = []
        for j, w in enumerate((0.02, 0.0)):
            mean, std = reference.mean(z, j), reference.variance(z, j).sqrt()
            mean += z[j] if delta else 0
            ends.append([float(mean - arb(1.5) * std) - w, float(mean + arb(1.5) * std) + w])
        corners = np.array(list(product(*ends)))
        assert found.contains(0.999999999 * corners + 1e-9 * corners.mean(axis=0)).all()


def test_a_contraction_keeps_all_and_a_large_disturbance_nothing():
    kept = gpcert.invariant_set(HALVES, [(-1, 1)], disturbance=0.499, beta=0, cells=64)
    assert kept.share > 0.999
    assert len(kept) == 64
    none = gpcert.invariant_set(HALVES, [(-1, 1)], disturbance=0.6, beta=0, cells=64)
    assert (len(none), none.share) == (0, 0.0)
    for offset in (-0.35, 0.35):  # the disturbance moves it out on one side: to 1.1 at last
        drift = gpcert.Posterior(Linear([1.0]), [[1.0]], [0.5], offset=offset)
        out = gpcert.invariant_set(drift, [(-1, 1)], disturbance=0.2, beta=0, cells=64)
        assert len(out) == 0
    assert none.contains([0.0]) is False
    assert none.input_at([0.0]) is None


def test_cells_at_the_edge_are_halved():
    doubles = gpcert.Posterior(Linear([1.0, 1.0]), [[1.0, 0.0], [0.0, 1.0]], [2.0, 1.0])
    words = {"inputs": [[-0.5], [0.0], [0.5]], "beta": 0, "cells": 20}
    coarse, fine = (
        gpcert.invariant_set(doubles, [(-1, 1)], refine=refine, **words) for refine in (0, 4)
    )
    # x -> 2 x + u can be held where |x| <= 0.5
    assert 0.39 <= coarse.share < fine.share <= 0.5
    assert fine.share > 0.49
    x = np.array([0.3])
    for _ in range(30):
        x = 2.0 * x + fine.input_at(x)
        assert fine.contains(x)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=examples(60, quick=15), deadline=None)
def test_it_is_the_largest_union(seed):
    """Against taking cells out one by one, boxes as they come."""
    rng = np.random.default_rng(seed)
    grid = GridCells.of(np.zeros(2), np.ones(2), [4, 5], 1)
    grid = grid.take(np.arange(10)).joined(grid.take(np.arange(10, 20)).halves())
    low = rng.uniform(-0.05, 0.9, (len(grid), 2, 2))
    images = np.stack([low, low + rng.uniform(0, 0.6, low.shape)], axis=-1)
    images = np.where(rng.random(images.shape) < 0.3, np.round(images * 8) / 8, images)
    images.sort(axis=-1)
    images[..., 1] += (images[..., 0] == images[..., 1]) * 1e-3
    kept, choice = kept_inside(grid, images)
    middles = [(e[1:] + e[:-1]) / 2 for e in grid.edges]
    alive = np.ones(len(grid), dtype=bool)

    def inside(box):
        if np.any(box[:, 0] < 0) or np.any(box[:, 1] > 1):
            return False
        left = grid.take(alive)
        for at in product(*middles):
            ends = [(m - w, m + w) for m, w in zip(at, (0.0625, 0.05), strict=True)]
            meets = all(
                b[0] < e[1] and b[1] > e[0] for b, e in zip(box, ends, strict=True)
            )  # interiors: a box that ends on an edge need not go on
            if meets and not np.any(np.all((left.low < at) & (left.high > at), axis=1)):
                return False
        return True

    for _ in range(len(grid)):
        out = [r for r in np.flatnonzero(alive) if not any(map(inside, images[r]))]
        if not out:
            break
        alive[out] = False
    assert np.array_equal(kept, alive)
    assert all(inside(images[r, choice[r]]) for r in np.flatnonzero(kept))


def test_saved_shown_and_loaded(tmp_path):
    found = gpcert.invariant_set(
        learned(0, 3), [(-1, 1)] * 2, inputs=[-0.3, 0.3], beta=1, cells=100
    )
    found.save(tmp_path / "set.npz")
    again = gpcert.load(tmp_path / "set.npz")
    assert repr(again) == repr(found)
    assert np.array_equal(again.choice, found.choice)
    assert "2 to choose from" in str(found)
    assert len(found.to_frame()) == len(found) if len(found) else True


def test_budgets_leave_a_smaller_set():
    found = gpcert.invariant_set(learned(0, 2), [(-1, 1)] * 2, cells=20_000, budget=1e-6)
    assert not found.complete
    assert len(found) == 0
    assert "not all images" in repr(found)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"models": []}, "models: expected a model"),
        ({"region": [(-1, 1)] * 2}, "region: expected a box of 1 states"),
        ({"region": [(0, 0)]}, "0 move"),
        ({"region": [0, 1, 2]}, "region"),
        ({"step": "later"}, "step: expected one of 'next', 'delta'"),
        ({"inputs": [[1.0]]}, r"inputs: expected candidates of shape \(m, 0\)"),
        ({"models": gpcert.Posterior(Linear([1.0, 1.0]), [[1.0, 1.0]], [1.0])}, "got none"),
        ({"disturbance": -1.0}, "disturbance: expected a number >= 0"),
        ({"disturbance": float("nan")}, "disturbance"),
        ({"beta": -2.0}, "beta: expected"),
        ({"cells": 0}, "cells: expected a whole number >= 1"),
        ({"refine": 40}, "a finest grid of at most"),
    ],
)
def test_bad_input_is_an_error_in_words(words, message):
    given = {"models": HALVES, "region": [(-1, 1)], "beta": 0} | words
    with pytest.raises(InputError, match=message):
        gpcert.invariant_set(given.pop("models"), given.pop("region"), **given)
