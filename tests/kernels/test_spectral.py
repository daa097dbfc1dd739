"""Spectral kernels: mixtures, the generalised one, and its two factors."""

from __future__ import annotations

import numpy as np
import pytest

from gpcert.errors import InputError
from gpcert.kernels.exponential_tilt import ExponentialTilt
from gpcert.kernels.spectral import Cosine, CosinePair, GeneralisedSpectral, SpectralMixture
from gpcert.numerics.arrays import Backend
from gpcert.paper.lines import affine_relaxation
from gpcert.paper.lines.algebra import affine_lower_bound
from gpcert.regions import Box
from gpcert.regions.cells import Frame
from gpcert.regions.scaled import ScaledCells
from gpcert.testing.node_contract import NodeContract


class TestScaledTilt(NodeContract):
    """A constant factor, as a shift of the inputs makes one."""

    kernel = ExponentialTilt([0.4, -1.5], 0.7)
    dim = 2
    typical = (2.0, 0.7)
    stationary = False
    huge = 40.0
    compose = False


class TestExponentialTilt(NodeContract):
    kernel = ExponentialTilt([0.4, -1.5])
    dim = 2
    typical = (2.0, 0.7)
    stationary = False
    huge = 40.0


class TestTiltOfOneFeature(NodeContract):
    kernel = ExponentialTilt([-0.3])
    dim = 1
    typical = 3.0
    stationary = False
    huge = 1e3


class TestCosinePair(NodeContract):
    kernel = CosinePair([1.0, -0.4], [2.0, 0.3], [0.2, -0.5])
    dim = 2
    typical = 0.6
    stationary = False


class TestCosinePairOfOneFeature(NodeContract):
    kernel = CosinePair([3.0], [-1.0])
    dim = 1
    typical = 0.4
    stationary = False


class TestSpectralMixture(NodeContract):
    kernel = SpectralMixture([0.5, 1.2], [[3.0, 0.2], [0.0, -1.0]], [[1.0, 2.0], [0.7, 0.4]])
    dim = 2
    typical = 0.4


class TestGeneralisedSpectral(NodeContract):
    kernel = GeneralisedSpectral(
        [0.5, 0.8],
        [[0.2, -0.1], [0.0, 0.3]],
        [[1.0, 0.5], [2.0, -0.5]],
        [[-0.3, 1.5], [0.4, 0.4]],
        [[0.1, 0.7], [0.0, 0.0]],
    )
    dim = 2
    typical = 0.6
    stationary = False
    huge = 40.0


def paper_generalised(kernel: GeneralisedSpectral, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """As the paper prints it: `k(x) k(y) Psi(x).Psi(y)` with sums of sines and cosines."""
    total = np.zeros((len(X), len(Y)))
    rows = zip(kernel.variances, kernel.thetas, kernel.first, kernel.second, strict=True)
    for v, theta, w1, w2 in rows:
        left, right = (
            np.stack([np.cos(Z @ w1) + np.cos(Z @ w2), np.sin(Z @ w1) + np.sin(Z @ w2)])
            for Z in (X, Y)
        )
        total += v * np.exp(X @ theta)[:, None] * np.exp(Y @ theta)[None, :] * (left.T @ right)
    return total


def test_generalised_spectral_is_the_papers():
    rng = np.random.default_rng(0)
    kernel = GeneralisedSpectral(*(rng.normal(size=(2, 3)) ** 2).T[:1], *rng.normal(size=(3, 2, 2)))
    X, Y = rng.normal(size=(4, 2)), rng.normal(size=(5, 2))
    np.testing.assert_allclose(kernel.value(X, Y), paper_generalised(kernel, X, Y), rtol=1e-11)


@pytest.mark.parametrize(
    "kernel",
    [TestExponentialTilt.kernel, TestCosinePair.kernel, TestGeneralisedSpectral.kernel],
    ids=lambda k: k.name,
)
def test_shift_of_the_inputs(kernel):
    """`k'(x, y) = k((x - shift) / scale, (y - shift) / scale)` for kernels that see the shift."""
    rng = np.random.default_rng(1)
    X, Y, shift = rng.normal(size=(3, 2)), rng.normal(size=(4, 2)), rng.normal(size=2)
    scale = rng.uniform(0.5, 2.0, 2)
    np.testing.assert_allclose(
        kernel.rescaled(scale, shift).value(X * scale + shift, Y * scale + shift),
        kernel.value(X, Y),
        rtol=1e-9,
        atol=1e-12,
    )


@pytest.mark.parametrize(
    ("build", "arguments"),
    [
        (SpectralMixture, ([1.0], [[1.0]], [[0.0]])),
        (SpectralMixture, ([1.0], [[1.0], [2.0]], [[1.0]])),
        (SpectralMixture, ([-1.0], [[1.0]], [[1.0]])),
        (GeneralisedSpectral, ([1.0], [[0.0]], [[1.0]], [[1.0, 2.0]])),
        (GeneralisedSpectral, ([], np.zeros((0, 1)), np.zeros((0, 1)), np.zeros((0, 1)))),
        (CosinePair, ([1.0], [1.0, 2.0])),
        (CosinePair, ([1.0], [1.0], [0.0])),
        (ExponentialTilt, (1.0,)),
    ],
)
def test_bad_arguments(build, arguments):
    with pytest.raises(InputError):
        build(*arguments)


def test_check_dimension():
    with pytest.raises(InputError):
        TestSpectralMixture.kernel.check_dimension(3)
    with pytest.raises(InputError):
        TestGeneralisedSpectral.kernel.check_dimension(1)
    with pytest.raises(InputError):
        TestCosinePair.kernel.check_dimension(1)
    with pytest.raises(InputError):
        TestExponentialTilt.kernel.check_dimension(1)


@pytest.mark.parametrize(
    "kernel", [Cosine([2.0], 1.5), ExponentialTilt([-0.8]), CosinePair([2.0], [2.0], [0.0, 1.0])]
)
def test_bound_of_a_mean_is_its_minimum(kernel):
    """Kernels that are their own carriers: exact over an interval, with one phase."""
    rng = np.random.default_rng(2)
    points, weights = rng.normal(size=(30, 1)), rng.normal(size=30)
    region = Box([-0.3], [0.9])
    frame = Frame.of(region, kernel.typical_lengths(1), Backend())
    batch = kernel.node(points, frame).at(ScaledCells.in_frame(region.root(), frame))
    bound = float(affine_lower_bound(affine_relaxation(batch), weights[None, :])[0])
    x = np.linspace(-0.3, 0.9, 20001)[:, None]
    least = float((kernel.value(x, points) @ weights).min())
    if kernel.name == "cosine_pair":  # two carriers of the same phase are bounded apart
        assert least - 2.0 * abs(least) <= bound <= least
    else:
        assert bound <= least
        assert bound == pytest.approx(least, rel=1e-7)
