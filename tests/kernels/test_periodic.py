"""Periodic kernels, and why the Euclidean one of several features is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.errors import InputError
from gpcert.kernels.composite import Sum
from gpcert.kernels.periodic import Periodic
from gpcert.kernels.spectral import Cosine
from gpcert.numerics.arrays import Backend
from gpcert.paper.lines import affine_relaxation
from gpcert.regions import Box, Cells
from gpcert.regions.cells import Frame
from gpcert.regions.scaled import ScaledCells
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import flint, reference_of, series_length
from gpcert.testing.node_contract import NodeContract


class TestOneFeature(NodeContract):
    kernel = Periodic(period=2.5, length_scale=0.8, variance=1.7)
    dim = 1
    typical = 0.4


class TestTwoFeatures(NodeContract):
    kernel = Periodic(period=[3.0, 0.7], length_scale=[0.6, 1.9])
    dim = 2
    typical = (0.5, 0.2)


class TestShortLengthScale(NodeContract):
    kernel = Periodic(period=[2.0, 5.0, 1.0], length_scale=0.05, variance=0.3)
    dim = 3
    typical = (0.02, 0.05, 0.01)


def test_equals_scikit_learn_in_one_dimension():
    kernels = pytest.importorskip("sklearn.gaussian_process.kernels")
    X = np.random.default_rng(0).normal(size=(7, 1)) * 3.0
    theirs = kernels.ExpSineSquared(length_scale=0.8, periodicity=2.5)(X)
    np.testing.assert_allclose(Periodic(2.5, 0.8).value(X, X), theirs, rtol=1e-12)


def test_periodic_in_the_euclidean_distance_is_no_covariance():
    """`exp(-2 sin^2(pi |x - y| / p) / l^2)` in two dimensions has a negative eigenvalue.

    Proved: for a float vector a, the ball of `a^T K a` lies below zero.
    """
    module = flint()
    grid = np.arange(6) * 0.4
    X = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)

    def k(x, y):
        r = sum((module.arb(a) - module.arb(b)) ** 2 for a, b in zip(x, y, strict=True)).sqrt()
        return (-2 * (module.arb.pi() * r / 2).sin() ** 2).exp()

    K = [[k(x, y) for y in X] for x in X]
    values, vectors = np.linalg.eigh(np.asarray([[float(e) for e in row] for row in K]))
    assert values[0] < -0.01
    a = [module.arb(float(e)) for e in vectors[:, 0]]
    form = sum((a[i] * a[j] * K[i][j] for i in range(len(a)) for j in range(len(a))), module.arb(0))
    assert form < 0
    assert np.linalg.eigvalsh(Periodic(2.0, 1.0).value(X, X))[0] > -1e-12


@pytest.mark.parametrize(
    "arguments", [{"period": 0.0}, {"length_scale": -1.0}, {"variance": 0.0}, {"period": [[1.0]]}]
)
def test_bad_arguments(arguments):
    with pytest.raises(InputError):
        Periodic(**{"period": 1.0, "length_scale": 1.0, **arguments})


def test_more_points_than_one_lower_the_sinusoid_jointly():
    """The carrier's minimum of a sum beats the sum of the points' minima (the paper's U)."""
    kernel = Periodic(2.0, 1.0)
    points = np.asarray([[0.1], [1.1]])
    region = Box([0.0], [2.0])
    frame = Frame.of(region, kernel.typical_lengths(1), Backend())
    batch = kernel.node(points, frame).at(ScaledCells.in_frame(region.root(), frame))
    carrier = affine_relaxation(batch).under.slopes[0][0]
    apart = sum(float(carrier.minimum(np.eye(2)[[i]])[0]) for i in range(2))
    together = float(carrier.minimum(np.ones((1, 2)))[0])
    assert together > apart + 1.0  # the two cosines are in opposition: their sum is constant


@settings(max_examples=examples(50), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), half=st.sampled_from([0.0, 1e-6, 0.05, 0.3, 0.9, 5.0]))
def test_carrier_minimum_is_exact(seed, half):
    """`min sum_i a_i phi(x, z_i)`: below every sample, no tolerance, and attained on a grid."""
    arb = flint().arb
    rng = np.random.default_rng(seed)
    kernel = Periodic([2.0, 0.7], [0.6, 1.9])
    points, at, a = rng.normal(size=(5, 2)), rng.normal(size=2), rng.normal(size=(1, 5))
    region = Box(at - half, at + half * np.asarray([1.0, 0.5]))
    frame = Frame.of(region, kernel.typical_lengths(2), Backend())
    batch = kernel.node(points, frame).at(ScaledCells.in_frame(region.root(), frame))
    bound = float(affine_relaxation(batch).under.slopes[0][0].minimum(a)[0])
    axes = [np.linspace(lo, hi, 201) for lo, hi in zip(region.lower, region.upper, strict=True)]
    total = np.zeros((201, 201))
    for weight, z in zip(a[0], points, strict=True):
        parts = [
            np.square(np.sin(np.pi * (x - c) / p) / length)
            for x, c, p, length in zip(axes, z, kernel.period, kernel.length_scale, strict=True)
        ]
        total -= 2.0 * weight * (parts[0][:, None] + parts[1][None, :])
    assert bound >= total.min() - 0.02 * np.abs(a).sum() * half - 1e-12
    i, j = np.unravel_index(np.argmin(total), total.shape)
    x = [arb(float(axes[0][i])), arb(float(axes[1][j]))]
    real = arb(0)
    for weight, z in zip(a[0], points, strict=True):
        for at_j, c, p, length in zip(x, z, kernel.period, kernel.length_scale, strict=True):
            sine = (arb.pi() * (at_j - arb(float(c))) / arb(float(p))).sin() / arb(float(length))
            real = real - 2 * arb(float(weight)) * sine**2
    assert not arb(bound) > real


@pytest.mark.parametrize("length", [1e-15, 1e-30, 1e-75])
def test_carrier_minimum_of_coefficients_that_underflow(length):
    """What is lost of products with numbers near 5e-324 meets amplitudes 1 / l^2."""
    arb = flint().arb
    kernel = Periodic(2.0, length)
    points, x = np.asarray([[0.3], [0.6]]), np.zeros(1)
    region = Box(x, x + 1e-9)
    frame = Frame.of(region, kernel.typical_lengths(1), Backend())
    geometry = ScaledCells.in_frame(Cells(region, x[None], x[None]), frame)
    carrier = affine_relaxation(kernel.node(points, frame).at(geometry)).under.slopes[0][0]
    angles = [arb.pi() * (arb(0) - arb(float(z))) / 2 for z in points[:, 0]]
    for a in np.arange(-8, 9)[:, None, None] * np.asarray([[5e-324, -5e-324]]):
        both = zip(a[0].tolist(), angles, strict=True)
        real = sum((arb(w) * -2 * (t.sin() / length) ** 2 for w, t in both), arb(0))
        assert not arb(float(carrier.minimum(a)[0])) > real


def test_refuses_frequencies_that_underflow():
    """In units of a part so much faster the period would be infinite, and the kernel constant."""
    kernel = Sum((Cosine([1e230]), Periodic(1e100, 1e-100)))
    region = Box([0.0], [0.5])
    frame = Frame.of(region, kernel.typical_lengths(1), Backend())
    with pytest.raises(InputError, match="lengths within about 1e300"):
        kernel.node(np.zeros((1, 1)), frame)


def test_spectral_moments_are_exact():
    """At a box's corner: b_n^2 = D^2n k(0) by numerical power series, and R0^2 = 2 v - 2 k."""
    kernel = Periodic([2.0, 5.0], [0.6, 1.9], variance=1.3)
    h = np.asarray([0.05, 0.2])
    module = flint()
    with series_length(9):
        tau = module.arb_series([0, 1])
        line = [module.arb(float(x)) * tau for x in h]
        k = reference_of("periodic", kernel.config())(line, [module.arb(0)] * 2).coeffs()
    for n, name in ((2, "b2"), (3, "b3")):
        exact = abs(float(k[2 * n])) * math.factorial(2 * n)
        assert float(getattr(kernel, name)(h)[0]) ** 2 == pytest.approx(exact, rel=1e-10)
    corner = float(kernel.value(h[None, :], np.zeros((1, 2)))[0, 0])
    assert float(kernel.R0(h)[0]) ** 2 == pytest.approx(2.6 - 2.0 * corner, rel=1e-10)
