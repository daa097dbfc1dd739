"""The squared exponential fulfils the contract of a kernel, at several sizes."""

from fractions import Fraction

import numpy as np
import pytest

from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential, kernel_from_config
from gpcert.numerics.arrays import Backend
from gpcert.regions import Box
from gpcert.testing.kernel_contract import KernelContract
from tests.kernels.weighted_contract import WeightedContract


class TestPlain(WeightedContract, KernelContract):
    kernel = SquaredExponential(1.0)
    dim = 2
    weight = 0.5


class TestLengths(WeightedContract, KernelContract):
    """Length-scales over six decades, a large variance."""

    kernel = SquaredExponential([1e-3, 0.7, 1e3], 1e4)
    dim = 3
    typical = (1e-3, 0.7, 1e3)
    weight = 0.5


class TestOneFeature(WeightedContract, KernelContract):
    kernel = SquaredExponential([0.3], 0.01)
    dim = 1
    typical = 0.3
    weight = 0.5


def test_squares_of_values_underflow_under_large_extents():
    """`squared_sizes` are bounds with the extents, which errors of coordinates meet."""
    extent = 5e11
    region = Box([0.0], [2.0 * extent])
    points = np.asarray([[extent], [extent + 1.0]])
    local = SquaredExponential(1.0).localize(points, region, Backend())
    K = np.full((1, 2), 1.4e-162)  # its square vanishes
    bounds = local.squared_sizes(K)[0]
    for n in range(3):
        total = sum(Fraction(k) ** 2 * Fraction(extent) ** (2 * n) for k in K[0].tolist())
        assert Fraction(float(bounds[0, n])) >= total


@pytest.mark.parametrize("size", [1e-9, 0.1, 0.9, 1.1, 3.0, 30.0])
def test_remainders_are_the_formulas(size):
    """R0, R1, b2, b3 against their closed forms in 50 digits: above, and by little."""
    mpmath = pytest.importorskip("mpmath")
    kernel = SquaredExponential(2.0, 3.0)
    with mpmath.workdps(80):
        rho2 = (mpmath.mpf(size) / 2) ** 2
        e, s = mpmath.exp(-rho2 / 2), mpmath.sqrt(3)
        formulas = {
            "R0": s * mpmath.sqrt(2 * (1 - e)),
            "R1": s * mpmath.sqrt(2 - 2 * e - 2 * rho2 * e + rho2),
            "b2": s * mpmath.sqrt(3) * rho2,
            "b3": s * mpmath.sqrt(15) * rho2**1.5,
        }
        for name, real in formulas.items():
            bound = getattr(kernel, name)([[size]])[0]
            assert mpmath.mpf(float(bound)) >= real
            assert float(bound) <= float(real) * (1 + 1e-6)


def test_remainders_take_batches():
    kernel = SquaredExponential([1.0, 2.0])
    delta = np.random.default_rng(0).normal(size=(4, 2))
    for name in ("R0", "R1", "b2", "b3"):
        batch = getattr(kernel, name)(delta)
        assert batch.shape == (4,)
        assert batch[1] == getattr(kernel, name)(delta[1])[0]


@pytest.mark.parametrize(
    ("length_scale", "variance"),
    [
        (0.0, 1.0),
        (-1.0, 1.0),
        ([1.0, 0.0], 1.0),
        (np.nan, 1.0),
        (np.inf, 1.0),
        ([[1.0]], 1.0),
        ("wide", 1.0),
        (1.0, 0.0),
        (1.0, -2.0),
        (1.0, np.nan),
        (1.0, [1.0]),
    ],
)
def test_rejects_bad_parameters(length_scale, variance):
    with pytest.raises(InputError):
        SquaredExponential(length_scale, variance)


def test_unknown_kernel():
    with pytest.raises(InputError, match="squared_exponential"):
        kernel_from_config("no-such-kernel", {})
