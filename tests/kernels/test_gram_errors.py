"""Gram matrices of radial kernels: one error for a whole matrix holds for its farthest entries."""

from __future__ import annotations

import numpy as np
import pytest

from gpcert.kernels import Matern, RationalQuadratic, SquaredExponential
from gpcert.testing.kernel_references import exact, flint, reference_of


@pytest.mark.parametrize(
    "kernel",
    [
        SquaredExponential([0.7, 1.3], 3.0),
        SquaredExponential(1e-120),
        Matern([0.7, 1.3], nu=2.5, variance=3.0),
        Matern(0.7, nu=0.5, variance=3.0),
        RationalQuadratic([0.7, 1.3], variance=3.0, alpha=0.8),
    ],
)
@pytest.mark.parametrize("largest", [30.0, 1e5, 1e150])
def test_errors_hold_near_and_far(kernel, largest):
    """Distances from 0 to beyond float64's squares; entries that vanish are known to be small."""
    rng = np.random.default_rng(0)
    base = rng.uniform(-1, 1, (6, 2))
    steps = np.concatenate([base, base[:2] + 1e-9, base * 10, base * largest])
    points = steps * float(np.min(kernel.length_scale))
    value, error = kernel.gram_with_error(points, slice(0, 14), slice(3, 20))
    reference, arb = reference_of(kernel.name, kernel.config()), flint().arb
    for i, j in np.ndindex(value.shape):
        true = reference(exact(points[i]), exact(points[3 + j]))
        assert not abs(true - arb(value[i, j])) > arb(error[i, j])
        assert error[i, j] <= 1e-8 * kernel.variance + 2.0 * abs(value[i, j]) or largest > 1e100


def test_errors_of_ordinary_points_are_near_the_rounding():
    X = np.random.default_rng(1).uniform(0, 1, (30, 5))
    for kernel in (SquaredExponential([0.5] * 5), Matern([0.5] * 5, nu=2.5)):
        value, error = kernel.gram_with_error(X)
        assert np.all(error <= 1e-13 * value)


@pytest.mark.parametrize(
    "kernel",
    [
        SquaredExponential(1.0),
        Matern(1.0, nu=2.5),
        Matern(1.0, nu=6.5),
        RationalQuadratic(1.0, alpha=0.01),
        RationalQuadratic(1.0, alpha=50.0),
    ],
)
def test_uniform_errors_do_not_fall_with_the_distance(kernel):
    """What the error of the farthest entry rests on."""
    r = np.concatenate([[0.0], np.geomspace(1e-12, 1e6, 2000)])
    errors = kernel.profile.uniform_error(r, 1e-15, np.zeros_like(r))
    assert np.all(np.diff(errors) >= 0.0)
