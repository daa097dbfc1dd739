"""Sums over many points of a radial kernel by bins of their distances, in ball arithmetic."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.kernels import Matern, RationalQuadratic
from gpcert.kernels.expansions.base import Combination
from gpcert.kernels.expansions.taylor import LocalTaylor
from gpcert.kernels.nodes import radial_bins
from gpcert.kernels.nodes.moments import sorted_index
from gpcert.kernels.nodes.radial_batch import RadialBatch
from gpcert.kernels.nodes.radial_bins import BinnedSums, serves
from gpcert.numerics.arrays import Backend
from gpcert.regions import Box
from gpcert.regions.cells import Frame
from gpcert.testing.arb_reference import kernel_reference
from gpcert.testing.effort import examples, variants
from gpcert.testing.kernel_references import exact, flint

arb = flint().arb
KERNELS = [Matern(1.0, nu=nu) for nu in (2.5, 3.5, 10.5)]
KERNELS += [RationalQuadratic(0.7, alpha=0.5), RationalQuadratic(1.3, alpha=1e4)]
kernels = st.sampled_from(KERNELS)
ROUGH = [Matern(1.0, nu=0.5), Matern(0.8, nu=1.5)]
"""Bins serve them where every cell has weights of its own."""


@pytest.fixture(autouse=True)
def few_points(monkeypatch):
    """Bins for few points too."""
    monkeypatch.setattr(radial_bins, "MIN_POINTS", 1)


def taylor(kernel, points, region):
    frame = Frame.of(region, kernel.typical_lengths(points.shape[1]), Backend())
    return LocalTaylor.build(kernel.node(points, frame), frame, region, len(points))


def radial_batch(expansion):
    batch = expansion.batch
    assert isinstance(batch, RadialBatch)
    return batch


def situation(rng, d):
    """Points, some of them at the centre of a cell, at its corner and far away; weights; a box."""
    center = rng.uniform(-1.0, 1.0, d)
    half = rng.choice([1e-3, 0.02, 0.2, 0.6, 3.0]) * rng.uniform(0.2, 1.0, d)
    near = center + half * rng.uniform(-1.5, 1.5, (6, d))
    points = np.concatenate([[center, center + half], near, rng.uniform(-2.0, 2.0, (8, d))])
    points = np.concatenate([points, rng.uniform(-15.0, 15.0, (2, d))])
    weights = rng.normal(size=len(points)) * rng.choice([0.0, 1.0, 100.0], len(points))
    return points, weights, Box(center - half, center + half)


def polynomial(d, value, gradient, hessian, cubic=None):
    """In ball arithmetic."""
    total = arb(float(value))
    for i, a in enumerate(d):
        total += a * arb(float(gradient[i]))
        for j, b in enumerate(d):
            total += a * b * arb(float(hessian[i, j])) / 2
    if cubic is not None:
        entries, orders = sorted_index(len(d), 3)
        for (i, j, k), count, entry in zip(entries, orders, cubic, strict=True):
            total += d[i] * d[j] * d[k] * arb(float(count)) * arb(float(entry)) / 6
    return total


def checked(kernel, points, weights, box, rng, squared_norm=1e300):
    """The model of `sum_i a_i k(., z_i)` with bins against the sum itself; by default of a norm
    with which only the points count."""
    local = taylor(kernel, points, box)
    expansion = local.expand(box.root())
    assert serves(radial_batch(expansion), kernel in ROUGH)
    own = weights[None] if kernel in ROUGH else weights
    assert expansion.batch.binned(own, True) is not None
    model = local.model(expansion, Combination(own, squared_norm), True)
    assert model.gained or squared_norm < 1e300
    unit = exact(1.0 / local.inverse_length)
    center = exact(box.root().center[0])
    corners = np.where(rng.random((3, len(unit))) < 0.5, box.lower, box.upper)
    for x in np.concatenate([box.root().center, corners, box.sample(3, rng)]):
        at = exact(x)
        d = [(a - c) / u for a, c, u in zip(at, center, unit, strict=True)]
        length = arb(sum((a * a for a in d), arb(0))).sqrt()
        real = sum(
            (
                arb(float(a)) * kernel_reference(kernel, at, exact(z))
                for a, z in zip(weights, points, strict=True)
            ),
            arb(0),
        )
        lost = arb(float(model.errors[0, 0])) + arb(float(model.errors[0, 1])) * length
        lost += arb(float(model.errors[0, 2])) * length**2 / 2
        parts = model.value[0], model.gradient[0], model.hessian[0]
        if not any(d):
            assert not abs(real - arb(float(model.value[0]))) > arb(float(model.errors[0, 0]))
        assert not abs(real - polynomial(d, *parts)) > arb(float(model.below[0])) + lost
        if model.cubic is not None and np.isfinite(model.cubic.rest[0]):
            other = polynomial(d, *parts, model.cubic.tensor[0])
            assert not abs(real - other) > arb(float(model.cubic.rest[0])) + lost
    return model


@settings(max_examples=examples(120), deadline=None)
@given(kernels, st.integers(1, 4), st.integers(0, 2**31))
def test_the_model_holds(kernel, d, seed):
    rng = np.random.default_rng(seed)
    points, weights, box = situation(rng, d)
    if isinstance(kernel, RationalQuadratic):  # its last bin is not bounded
        points = np.clip(points, -4.0, 4.0)
    weights[0] = 1.0
    checked(kernel, points, weights, box, rng)


@settings(max_examples=examples(80), deadline=None)
@given(st.sampled_from(ROUGH), st.integers(1, 3), st.booleans(), st.integers(0, 2**31))
def test_the_model_of_a_rough_kernel_holds(kernel, d, all_norms, seed):
    """At its points, too, where derivatives do not exist; with the norm of the function also where
    its features' remainder is the smaller one and all points keep their derivatives."""
    rng = np.random.default_rng(seed)
    points, weights, box = situation(rng, d)
    weights[0] = 1.0
    norm = 1.01 * weights @ kernel.value(points, points) @ weights
    checked(kernel, points, weights, box, rng, 1e300 if all_norms else norm)


@variants("kernel", [KERNELS[k] for k in (0, 3, 2, 1, 4)] + ROUGH, quick=3, ids=repr)
def test_one_point_on_a_line_is_bounded_to_the_last_percent(kernel):
    """All orders of one sign at one end of the cell: nothing in the bound may be missing."""
    rng = np.random.default_rng(0)
    for half in (0.05, 1.0):
        for at in np.linspace(0.2, 4.0, 39):
            box = Box([-half], [half])
            checked(kernel, np.array([[at]]), np.ones(1), box, rng)


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from(KERNELS + ROUGH), st.integers(1, 5), st.integers(0, 2**31))
def test_bins_bound_the_sums_point_by_point(kernel, d, seed):
    """Sizes, errors and norms are at least those of the points one by one, and not much more."""
    rng = np.random.default_rng(seed)
    points, weights, box = situation(rng, d)
    points = np.clip(points, -4.0, 4.0)
    local = taylor(kernel, points, box)
    batch = radial_batch(local.expand(box.root()))
    binned = BinnedSums(batch, weights, False)
    assert np.all(binned.counts.sum(axis=1) == len(points))
    found = np.concatenate(binned.accuracy(), axis=1)[0]
    real = [np.broadcast_to(part, batch.r.shape)[0] for part in (*batch.sizes, *batch.errors)]
    for bound, each in zip(found, real, strict=True):
        assert each[weights != 0] @ np.abs(weights[weights != 0]) <= bound
    for bound, each in zip(binned.size_norms()[0], real, strict=False):
        assert np.sqrt((each**2).sum()) <= bound
    assert found[0] <= 1.1 * (np.abs(weights) * real[0]).sum() + 1e-12
    near = np.ones((1, batch.node.bins), dtype=bool)
    others = np.concatenate(binned.accuracy(near), axis=1)[0]
    np.testing.assert_array_equal(others[[0, 3]], found[[0, 3]])  # values are always kept
    assert np.all(others <= found)
    assert np.all(others[[1, 2, 4, 5]] < 1e-290) == (kernel in ROUGH)


@pytest.mark.parametrize("kernel", [KERNELS[0], *ROUGH], ids=repr)
def test_weights_that_are_not_exact_cost_their_share(kernel):
    rng = np.random.default_rng(3)
    points, weights, _ = situation(rng, 2)
    for half in (0.02, 0.5, 2.0):
        box = Box(np.full(2, -half), np.full(2, half))
        plain = checked(kernel, points, weights, box, rng)
        local = taylor(kernel, points, box)
        inexact = Combination(weights[None], 1e300, slack=np.full(1, 0.25))
        model = local.model(local.expand(box.root()), inexact, True)
        assert model.below[0] > plain.below[0]
        for x in box.sample(40, rng):
            away = kernel.value(x[None], points)[0]
            real = away @ (weights + 0.25 * away / np.linalg.norm(away))  # the worst that may be
            d = (x - box.center) * local.inverse_length
            length = np.linalg.norm(d)
            value = model.value[0] + d @ model.gradient[0] + 0.5 * d @ model.hessian[0] @ d
            lost = model.below[0] + model.errors[0] @ np.array([1.0, length, 0.5 * length**2])
            assert abs(real - value) <= lost + 1e-12


def test_far_points_of_heavy_tails_are_not_binned():
    kernel = RationalQuadratic(1.0, alpha=0.5)
    points = np.array([[0.0], [300.0]])
    box = Box([-0.1], [0.1])
    assert not serves(radial_batch(taylor(kernel, points, box).expand(box.root())))
