"""Radial kernels inside regions: many features, points that coincide with centres, refusals."""

import math

import numpy as np
import pytest

from gpcert.errors import InputError
from gpcert.kernels.matern import Matern
from gpcert.kernels.nodes.radial_bin_tables import FINENESS, MAX_BINS
from gpcert.kernels.radial import RationalQuadratic, SquaredExponential
from gpcert.numerics.arrays import Backend
from gpcert.paper.lines import affine_relaxation
from gpcert.regions import Box
from gpcert.regions.cells import Frame
from gpcert.regions.scaled import ScaledCells
from gpcert.testing.arb_reference import kernel_reference
from gpcert.testing.kernel_references import exact, flint
from gpcert.testing.node_case import NodeCase
from gpcert.testing.node_checks import CHECKS

KERNELS = [
    SquaredExponential(6.0, 2.0),
    RationalQuadratic(6.0, 0.7),
    Matern(6.0, 0.5),
    Matern(6.0, 1.5),
    Matern(6.0, 2.5),
]


def batch_at(kernel, points, center, half):
    region = Box(center - half, center + half)
    frame = Frame.of(region, kernel.typical_lengths(len(center)), Backend())
    return kernel.node(points, frame).at(ScaledCells.in_frame(region.root(), frame))


@pytest.mark.parametrize("check", sorted(CHECKS))
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: f"{k.name}")
def test_many_features(kernel, check):
    """More than 32 features: the square is expanded, second moments are formed box by box."""
    rng = np.random.default_rng(3)
    points = rng.normal(size=(2, 34))
    at = points[0] + rng.normal(size=34) * 0.3
    region = Box(at - 0.1, at + 0.1)
    frame = Frame.of(region, kernel.typical_lengths(34), Backend())
    case = NodeCase(kernel, points, frame, region.root(), rng)
    assert kernel.node(points, frame).expanded
    CHECKS[check](case)


def test_rough_kernel_at_a_point():
    """Matern 1/2 has no gradient at a point: infinite errors, finite numbers; elsewhere small."""
    points = np.asarray([[0.3, -0.2], [1.0, 0.5], [3.0, 3.0]])
    batch = batch_at(Matern(1.0, 0.5, 2.0), points, points[0], 0.1)
    assert np.all(np.isfinite(batch.gradients()))
    jet = batch.contract(np.ones((1, 3)))
    assert np.all(np.isfinite(jet.gradient))
    assert np.all(np.isfinite(jet.hessian))
    for n in (1, 2):
        assert batch.errors[n][0, 0] == math.inf
        assert np.all(batch.errors[n][0, 1:] < 1e-12)
    assert np.all(batch.errors[0] < 5e-14)
    S = batch.variations()
    assert math.isfinite(S[1][0, 0])
    assert S[2][0, 0] == math.inf
    assert S[3][0, 0] == math.inf
    assert all(np.all(np.isfinite(part[0, 1:])) for part in S)
    jet, errors = batch.diagonal_jet()
    assert errors[0] == 0.0
    assert errors[1] == errors[2] == math.inf
    assert np.all(np.isfinite(jet.hessian))


@pytest.mark.parametrize("distance", [0.0, 1e-300, 1e-160, 1e-17, 1e-15, 1e-12, 1e-8, 1e-4, 1.0])
def test_once_differentiable_kernel_near_a_point(distance):
    """Matern 3/2: F_2 is infinite at a point, the Hessian is not; its error stays small."""
    points = np.asarray([[distance, 0.0], [1.0, 0.5], [-2.0, 3.0]])
    batch = batch_at(Matern(1.0, 1.5), points, np.zeros(2), 0.5)
    assert np.all(np.isfinite(batch.errors[2]))
    assert np.all(batch.errors[2] < 2e-6)
    assert np.all(batch.errors[1] < 1e-13)
    assert np.all(np.isfinite(batch.contract(np.ones((1, 3))).hessian))


@pytest.mark.parametrize("kernel", [k for k in KERNELS if getattr(k, "nu", 9) > 2], ids=str)
def test_both_accuracies_agree(kernel):
    """The shortcut for regular profiles gives errors within a small factor of the general ones."""
    rng = np.random.default_rng(0)
    points = 6.0 * rng.normal(size=(50, 3))
    batch = batch_at(kernel, points, np.zeros(3), 1.0)
    node = batch.node
    factors = tuple(node.profile.terms(batch.r, (0, 0), (1, 0), (2, 0)))
    sizes, errors = node.regular_accuracy(batch.r, node.extents, factors)
    ends = (batch.r, batch.r)
    whole, _ = node.accuracy(ends, batch.distance_error, node.extents, factors)
    whole_sizes, whole_errors = whole
    for n in range(3):
        ratio = errors[n] / whole_errors[n]
        assert np.all((ratio > 0.3) & (ratio < 3.0))
        ratio = sizes[n] / whole_sizes[n]
        assert np.all((ratio > 0.5) & (ratio < 3.0))


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("fixed", [False, True])
def test_distances_are_differences_first(kernel, fixed):
    """Near points far from the origin: distances to their last digits, and values within the errors
    that are theirs alone."""
    rng = np.random.default_rng(1)
    apart = 10.0 ** rng.uniform(-9, 0, (40, 1)) * rng.normal(size=(40, 3))
    points = np.concatenate([apart, np.zeros((1, 3))]) + 300.0
    low, high = np.full(3, 299.99), np.full(3, 300.01)
    if fixed:
        low[2] = high[2] = 300.5
    region = Box(low, high)
    frame = Frame.of(region, kernel.typical_lengths(3), Backend())
    batch = kernel.node(points, frame).at(ScaledCells.in_frame(region.root(), frame))
    center, scale = exact(region.center), exact(1.0 / np.broadcast_to(kernel.length_scale, 3))
    sizes, errors = batch.value_accuracy()
    for i, z in enumerate(points):
        parts = zip(exact(z), center, scale, strict=True)
        real = flint().arb(sum((((a - b) * s) ** 2 for a, b, s in parts), flint().arb(0))).sqrt()
        assert not abs(real - float(batch.r[0, i])) > flint().arb(float(batch.distance_error[0, i]))
        value = kernel_reference(kernel, center, exact(z))
        assert not abs(value - float(batch.value[0, i])) > flint().arb(float(errors[0, i]))
        assert not value > flint().arb(float(sizes[0, i]))
    assert np.all(errors < 2e-12)


@pytest.mark.parametrize("fixed", [False, True])
def test_bins_are_enough_for_the_region(fixed):
    """Every distance of a cell's centre lies before the last of them, unless there are too many."""
    rng = np.random.default_rng(2)
    for half in (1e-3, 0.3, 4.0, 100.0):
        points = rng.normal(size=(30, 3))
        low, high = points[0] - half, points[0] + half
        if fixed:
            low[1] = high[1] = points[0, 1] + 2.0
        region = Box(low, high)
        frame = Frame.of(region, np.ones(3), Backend())
        node = Matern(1.0, 2.5).node(points, frame)
        corners = np.where(rng.random((20, 3)) < 0.5, low, high)
        r = np.linalg.norm(corners[:, None] - points, axis=2)
        assert r.max() <= node.farthest
        numbers = np.sqrt(r) * FINENESS
        assert node.bins == MAX_BINS or numbers.max() < node.bins - 1


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_refuses_coordinates_beyond_all_scales(kernel):
    points = np.asarray([[0.0], [1e80]])
    frame = Frame.of(Box([0.0], [1.0]), kernel.typical_lengths(1), Backend())
    with pytest.raises(InputError, match="length-scales"):
        kernel.node(points, frame)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
@pytest.mark.parametrize("half", [1e8, 1e30, 1e58])
def test_huge_cells(kernel, half):
    """Trivial bounds, never NaN."""
    points = np.asarray([[0.0, 0.0], [1.0, 2.0]])
    batch = batch_at(kernel, points, np.zeros(2), half)
    for part in (*batch.variations(), *batch.sizes, *batch.errors):
        assert not np.any(np.isnan(part))
    lines = affine_relaxation(batch)
    for line in (lines.under, lines.over):
        assert np.all(np.isfinite(line.intercept))
        for carrier, slope in line.slopes:
            assert np.all(np.isfinite(slope))
            assert not np.any(np.isnan(carrier.minimum(slope)))
    assert np.all(lines.low >= 0.0)
    assert np.all(lines.high <= kernel.variance * (1 + 1e-12))


@pytest.mark.parametrize("half", [1e-50, 1e-60, 1e-90, 1e-160])
@pytest.mark.parametrize("p", [0, 1, 2])
def test_derivatives_that_do_not_exist_on_tiny_cells(p, half):
    """Powers of rho underflow: what does not exist stays infinite, and no remainder is zero."""
    sizes = Matern(1.0, p + 0.5).derivative_bounds([[half]])
    assert [math.isinf(length[0]) for length in sizes.lengths] == [n > p for n in range(4)]
    assert [math.isinf(sizes.remainder(n)[0]) for n in range(3)] == [n > p for n in range(3)]
    assert all(sizes.remainder(n)[0] > 0 for n in range(3))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_no_cells(kernel):
    """An empty batch goes through everything."""
    points = np.asarray([[0.0, 0.0], [1.0, 2.0]])
    region = Box([0.0, 0.0], [1.0, 1.0])
    frame = Frame.of(region, kernel.typical_lengths(2), Backend())
    none = region.root().take(np.zeros(0, dtype=int))
    batch = kernel.node(points, frame).at(ScaledCells.in_frame(none, frame))
    assert batch.contract(np.zeros((0, 2))).hessian.shape == (0, 2, 2)
    assert all(part.shape == (0, 2) for part in batch.variations())
    assert affine_relaxation(batch).low.shape == (0, 2)
    assert batch.diagonal_jet()[0].gradient.shape == (0, 2)
