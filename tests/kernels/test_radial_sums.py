"""Sums over all points in one pass against those array by array."""

import numpy as np
import pytest

from gpcert.kernels import Matern, RationalQuadratic, SquaredExponential
from gpcert.kernels.nodes.radial_bins import (
    BinnedSums,
    BinSelection,
    bin_numbers,
    sum_over_points,
    totals_by_bin,
)
from gpcert.kernels.nodes.radial_remainder import TENSOR_DEGREES
from gpcert.numerics.arrays import Backend
from gpcert.regions import Box, Cells
from gpcert.regions.cells import Frame
from gpcert.regions.scaled import ScaledCells

KERNELS = [Matern([0.5, 1.0, 2.0], 2.5, 3.0), RationalQuadratic(1.0, 1.5), SquaredExponential(0.7)]


def batch_of(kernel, cells=70, N=900, seed=0, half=0.1):
    """Several blocks of cells, and points, one of them at a centre."""
    rng = np.random.default_rng(seed)
    d, points = 3, rng.uniform(-1.0, 1.0, (N, 3))
    region = Box(-np.ones(d), np.ones(d))
    frame = Frame.of(region, kernel.typical_lengths(d), Backend())
    centers = rng.uniform(-0.9, 0.9, (cells, d))
    centers[0] = points[0]
    boxes = Cells.around(region, centers, np.full((cells, d), half))
    geometry = ScaledCells.in_frame(boxes, frame)
    return kernel.node(points, frame).at(geometry), rng


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("each", [False, True])
def test_jet_is_that_of_the_contraction(kernel, each):
    batch, rng = batch_of(kernel)
    shape = batch.r.shape if each else batch.r.shape[1:]
    weights = rng.normal(size=shape)
    found = sum_over_points(batch.node, batch.r, weights, BinSelection(), False)
    jet = BinnedSums(batch, weights, False).jet(None)
    expected = batch.contract(np.broadcast_to(weights, batch.r.shape))
    for own, other in zip(vars(jet).values(), vars(expected).values(), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-11, atol=1e-10)
    assert found.tensors is None
    bins = batch.node.bins
    sizes = totals_by_bin(bin_numbers(batch.r, bins), np.abs(weights), bins)
    np.testing.assert_array_equal(found.totals, sizes)


@pytest.mark.parametrize("kernel", [Matern(0.4, 0.5), Matern(0.4, 1.5), KERNELS[0]], ids=repr)
def test_points_are_left_out_where_the_remainder_counts_them(kernel):
    """And nowhere else: the derivatives of all points belong to a remainder of the features."""
    batch, rng = batch_of(kernel, half=0.5)
    weights = rng.normal(size=batch.r.shape)
    sums = BinnedSums(batch, weights, True)
    _, left_out = sums.remainder()
    assert left_out is not None
    counts = np.arange(len(weights)) % 2 == 0
    jet = sums.jet(left_out & counts[:, None])
    bins = batch.node.bins
    gone = left_out.reshape(-1)[bin_numbers(batch.r, bins)]
    assert np.all(gone.any(axis=1))
    jets = [batch.contract(a) for a in (np.where(gone, 0.0, weights), weights)]
    known = batch.r.min(axis=1) > 0  # at a point nothing is
    for own, less, all_points in zip(*(vars(each).values() for each in (jet, *jets)), strict=True):
        if own.ndim == 1:  # values are kept
            np.testing.assert_allclose(own, all_points, rtol=1e-10, atol=1e-10)
            continue
        for rows, other in ((counts, less), (~counts, all_points)):
            at = rows & known
            np.testing.assert_allclose(own[at], other[at], rtol=1e-8, atol=1e-6)


def test_tensors_are_those_of_points_that_go_on():
    batch, rng = batch_of(KERNELS[0])
    weights = rng.normal(size=batch.r.shape[1])
    goes_on = np.ones((len(batch.r), batch.node.bins), dtype=bool)
    goes_on[::2, :120] = False
    found = sum_over_points(batch.node, batch.r, weights, BinSelection(tensors=goes_on), True)
    assert found.tensors is not None
    mask = goes_on.reshape(-1)[bin_numbers(batch.r, batch.node.bins)]
    assert mask.mean() < 0.95
    with np.errstate(all="ignore"):
        terms = batch.node.profile.terms(batch.r, (2, 0), (3, 0), (4, 0))
    moments = batch.node.table
    keep = slice(2, None)  # at the first centre, which is a point, F_4 is infinite
    for own, term, degree in zip(found.tensors, terms, TENSOR_DEGREES, strict=True):
        a = np.where(mask, batch.node.variance * weights * term, 0.0)[keep]
        for part, expected in zip(own, moments.raw(a, degree), strict=True):
            np.testing.assert_allclose(part[:, keep], expected, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("kernel", [*KERNELS, KERNELS[0] + KERNELS[2]], ids=lambda k: k.name)
def test_values_come_with_the_gradients_of_sums(kernel):
    rng = np.random.default_rng(1)
    X, Y, C = rng.normal(size=(4, 3)), rng.normal(size=(7, 3)), rng.normal(size=(4, 7))
    Y[0] = X[0]
    values, product = kernel.with_gradient(X, Y)
    np.testing.assert_allclose(values, kernel.value(X, Y), rtol=1e-14)
    np.testing.assert_allclose(product(C), kernel.gradient_product(X, Y, C), rtol=1e-12, atol=1e-14)
    whole = np.einsum("ij,ijk->ik", C, kernel.gradient(X, Y))
    np.testing.assert_allclose(product(C), whole, rtol=1e-10, atol=1e-12)
