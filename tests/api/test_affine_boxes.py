"""Affine functions below and above means, stds and confidence bounds, against ball arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert
import gpcert.api.boxes as boxes_module
from gpcert.enclosures.affine import AffineBound, through_origin
from gpcert.errors import InputError
from gpcert.kernels import Matern, SquaredExponential
from gpcert.testing.arb_reference import ArbPosterior
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import exact, flint

arb = flint().arb
KERNELS = [SquaredExponential([0.5, 0.8], variance=1.3), Matern([0.6, 0.4], nu=2.5)]
QUANTITIES = ("mean", "std", "variance", "lcb", "ucb")


def _model(kernel, seed=0, n=6, **options):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    K = kernel.value(X, X) + 0.05 * np.eye(n)
    weights = np.linalg.solve(K, rng.normal(size=(n, 2))).T
    factor = np.linalg.inv(np.linalg.cholesky(K))
    return gpcert.Posterior(kernel, X, weights, factor, **options)


MODELS = [
    _model(KERNELS[0]),
    _model(KERNELS[1], 1, offset=[3.0, -1e6], scale=[1e-3, 40.0], noise=[0.0, 2.0]),
    _model(KERNELS[0], 2, slope=[[0.5, -2.0], [0.0, 1e3]]),
]


def _reference(model, x, output):
    """Mean, std, variance and confidence bounds in ball arithmetic."""
    reference = ArbPosterior(model)
    mean, variance = reference.mean(x, output), reference.variance(x, output)
    std = variance.sqrt()
    ends = {"lcb": mean - 2 * std, "ucb": mean + 2 * std}
    return {"mean": mean, "variance": variance, "std": std} | ends


def _along(line, x):
    """The affine function at x, exactly."""
    *slope, offset = (arb(float(v)) for v in line)
    return sum((a * b for a, b in zip(slope, x, strict=True)), offset)


def _assert_below_and_above(bounds, models, points):
    """At points (R, n, d) of the boxes, without tolerance."""
    first = 0
    for model in models:
        for r, X in enumerate(points):
            for x in map(exact, X):
                for output in range(model.outputs):
                    truth = _reference(model, x, output)
                    for name in bounds.affine:
                        below, above = bounds.affine[name][r, first + output]
                        assert not _along(below, x) > truth[name], (name, r)
                        assert not _along(above, x) < truth[name], (name, r)
        first += model.outputs


def _points(rng, low, high, n=4):
    u = rng.random((len(low), n, low.shape[1]))
    u[:, : n // 2] = np.round(u[:, : n // 2])
    return np.clip(low[:, None] + (high - low)[:, None] * u, low[:, None], high[:, None])


@settings(max_examples=examples(25), deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    model=st.sampled_from(MODELS),
    tol=st.sampled_from([None, None, 0.5]),
)
def test_lines_hold_on_boxes_of_any_size(seed, model, tol):
    """Degenerate, huge, far away, and on training points."""
    rng = np.random.default_rng(seed)
    R = 6
    middle = rng.uniform(-1.5, 1.5, (R, 2)) * 10.0 ** rng.integers(-3, 3, (R, 1))
    middle[:2] = model.points[rng.integers(0, len(model.points), 2)]
    half = 10.0 ** rng.uniform(-9, 1, (R, 2)) * rng.integers(0, 2, (R, 2))
    low, high = middle - half, middle + half
    words = {"quantity": QUANTITIES, "affine": True, "tol": tol, "budget": 2.0}
    bounds = gpcert.bound_boxes(model, low, high, **words)
    assert bounds.affine["std"].shape == (R, 2, 2, 3)
    _assert_below_and_above(bounds, [model], _points(rng, low, high))


@settings(max_examples=examples(60))
@given(st.integers(0, 2**32 - 1))
def test_offsets_at_the_origin_are_rounded_outwards(seed):
    rng = np.random.default_rng(seed)
    size = 10.0 ** rng.integers(-300, 8, (3, 5, 1))
    slope, center = rng.normal(size=(2, 5, 4)) * size[:2]
    value = (rng.normal(size=(5, 1)) * size[2])[:, 0]
    value[0] = float(slope[0] @ center[0])  # all of it cancels
    offset = through_origin(AffineBound(value, slope), center)
    for k in range(5):
        moved = sum((Fraction(a) * Fraction(c) for a, c in zip(slope[k], center[k], strict=True)))
        real = Fraction(value[k]) - moved
        assert Fraction(offset[k]) <= real
        terms = abs(value[k]) + float(np.abs(slope[k] * center[k]).sum())
        assert float(real - Fraction(offset[k])) <= 1e-13 * terms + 1e-290


def test_lines_of_models_side_by_side_are_of_second_order():
    rng = np.random.default_rng(0)
    models = [_model(KERNELS[0], 3, n=25), _model(KERNELS[1], 4, n=25)]
    low = rng.uniform(-1, 0.9, (8, 2))
    gaps = {}
    for width in (0.04, 0.02):
        bounds = gpcert.bound_boxes(models, low, low + width, quantity=("mean", "std"), affine=True)
        _assert_below_and_above(bounds, models, _points(rng, low, low + width, 2))
        center = low + 0.5 * width
        for name, lines in bounds.affine.items():
            at = np.einsum("rosd,rd->ros", lines[..., :-1], center) + lines[..., -1]
            gaps[name, width] = np.median(at[..., 1] - at[..., 0])
            ranges = bounds[name]
            assert gaps[name, width] < 0.25 * np.median(ranges[..., 1] - ranges[..., 0])
    for name in ("mean", "std"):
        assert gaps[name, 0.02] < 0.35 * gaps[name, 0.04]


def test_a_line_is_never_worse_in_the_middle_than_the_range():
    low, high = np.full((1, 2), -30.0), np.full((1, 2), 30.0)
    bounds = gpcert.bound_boxes(MODELS[0], low, high, quantity=QUANTITIES, affine=True)
    for name, lines in bounds.affine.items():
        assert np.all(lines[..., :-1] == 0)
        np.testing.assert_allclose(lines[..., -1], bounds[name], rtol=1e-12, atol=1e-290)


def test_fixed_features_have_no_slope():
    low = np.array([[0.1, 0.2], [0.4, 0.2]])
    bounds = gpcert.bound_boxes(MODELS[0], low, low + np.array([0.1, 0.0]), affine=True)
    assert np.all(bounds.affine["mean"][..., 1] == 0)
    assert np.all(bounds.affine["mean"][..., 0] != 0)


def test_blocks_files_and_archives_keep_them(monkeypatch, tmp_path):
    monkeypatch.setattr(boxes_module, "BLOCK", 10)
    rng = np.random.default_rng(1)
    low = rng.uniform(-1, 0.9, (35, 2))
    ask = {"model": MODELS[0], "lower": low, "upper": low + 0.1, "affine": True}
    whole = gpcert.bound_boxes(**ask)
    stored = gpcert.bound_boxes(**ask, out=tmp_path / "mean.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "mean.affine.npy"), whole.affine["mean"])
    again = gpcert.bound_boxes(**ask, out=tmp_path / "mean.npy")
    assert (again.boxes, again.complete) == (0, True)
    np.testing.assert_array_equal(again.affine["mean"], stored.affine["mean"])
    whole.save(tmp_path / "bounds.npz")
    loaded = gpcert.load(tmp_path / "bounds.npz")
    np.testing.assert_array_equal(loaded.affine["mean"], whole.affine["mean"])
    # the ranges are there, the lines are not: they are found, and then both are there
    (tmp_path / "mean.affine.npy").unlink()
    (tmp_path / "mean.affine.npy.progress.json").unlink()
    anew = gpcert.bound_boxes(**ask, out=tmp_path / "mean.npy")
    assert anew.boxes == 35
    np.testing.assert_array_equal(anew.affine["mean"], whole.affine["mean"])


def test_boxes_that_are_not_reached_have_lines_that_say_nothing():
    low = np.zeros((3, 2))
    bounds = gpcert.bound_boxes(MODELS[0], low, low + 0.1, affine=True, budget=1e-9)
    assert bounds.reached == 0
    assert np.all(bounds.affine["mean"] == [[0, 0, -np.inf], [0, 0, np.inf]])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"quantity": "ei"}, "affine: expected quantities"),
        ({"affine": "yes"}, "affine: expected True"),
    ],
)
def test_what_has_no_lines_is_said(words, message):
    ask = {"model": MODELS[0], "lower": [[0.0, 0.0]], "upper": [[1.0, 1.0]], "affine": True}
    with pytest.raises(InputError, match=message):
        gpcert.bound_boxes(**(ask | words))
