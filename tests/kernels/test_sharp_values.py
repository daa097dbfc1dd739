"""Kernel values with errors of their own for every entry: against ball arithmetic, and beside the
errors that serve whole blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.kernels import (
    ActiveDimensions,
    Constant,
    Kernel,
    Matern,
    RationalQuadratic,
    SquaredExponential,
    kernel_from_config,
)
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import exact, flint, partner_configs, reference_of
from tests.strategies import any_kernels, seeds, units


def check(kernel: Kernel, points: np.ndarray) -> None:
    """Every entry is as near the truth as is said, of all points and of some beside others."""
    found = []
    for X in (points, points[:1]):
        sharp, (pair, errors) = kernel.sharp_values(X, points), kernel.pair_values(X, points)
        assert np.all(np.abs(pair.low) <= 2.0**-52 * np.abs(pair.high))
        found += [(sharp[0], 0.0 * sharp[0], sharp[1]), (pair.high, pair.low, errors)]
    reference, arb = reference_of(kernel.name, kernel.config()), flint().arb
    balls = [exact(z) for z in points]
    for value, low, error in found:
        assert np.all(error >= 0)
        for i, j in np.ndindex(value.shape):
            true = reference(balls[i], balls[j])
            gap = abs(true - arb(float(value[i, j])) - arb(float(low[i, j])))
            assert not gap > arb(float(error[i, j])), (i, j)
    plain = kernel.gram_with_error(points)
    np.testing.assert_allclose(found[0][0], plain[0], rtol=1e-9, atol=10.0 * plain[1].max())


def near_and_far(rng: np.random.Generator, N: int, lengths: np.ndarray) -> np.ndarray:
    """Points of which some are equal, nearly so, or far away."""
    points = rng.normal(size=(N, len(lengths)))
    points[N // 2 :] = points[: N - N // 2] * rng.choice([1.0, 1.0 + 1e-12, 1.001, 10.0])
    return lengths * points * rng.choice([1e-3, 1.0, 3.0])


@pytest.mark.parametrize("name", sorted(partner_configs(1)))
@pytest.mark.parametrize("d", [1, 3])
def test_every_kernel(name: str, d: int) -> None:
    kernel = kernel_from_config(name, partner_configs(d)[name])
    rng = np.random.default_rng(d)
    for N in (1, 2, 7):
        check(kernel, near_and_far(rng, N, units(kernel, d)))


@settings(max_examples=examples(100, quick=25), deadline=None)
@given(data=st.data(), d=st.integers(1, 3), N=st.integers(1, 6), seed=seeds)
def test_trees_of_kernels(data: Any, d: int, N: int, seed: int) -> None:
    kernel = data.draw(any_kernels(d))
    check(kernel, near_and_far(np.random.default_rng(seed), N, units(kernel, d)))


@pytest.mark.parametrize("size", [1e-150, 1.0, 1e150])
@pytest.mark.parametrize("length", [1e-150, 1.0, 1e150])
def test_kernels_of_every_size(size: float, length: float) -> None:
    rng, lengths = np.random.default_rng(0), length * np.array([0.7, 1.3])
    for kernel in (
        SquaredExponential(lengths, size),
        Matern(lengths, 0.5, size) + RationalQuadratic(lengths, 0.8, size),
        Matern(lengths, 2.5, size) * SquaredExponential(lengths),
    ):
        check(kernel, near_and_far(rng, 6, lengths))


@pytest.mark.parametrize("gap", [1e-170, 1e-300])
@pytest.mark.parametrize("nu", [0.5, 1.5])
def test_points_whose_distance_underflows(gap: float, nu: float) -> None:
    with flint().ctx.workprec(2500):
        check(Matern(1.0, nu), np.array([[0.0], [gap]]))


def test_near_points_err_by_the_exponential_alone() -> None:
    """Nothing but the assumption on exp, two roundings and those of a small exponent."""
    points = np.array([[0.0, 0.0], [0.01, 0.02], [1.0, 1.0]])
    value, error = SquaredExponential([0.5, 1.0], 3.0).sharp_values(points, points)
    assert np.all(error[:2, :2] <= 11.0 * 2.0**-53 * value[:2, :2])
    assert np.all(error <= 40.0 * 2.0**-53 * value)


LARGER = {"generalised_spectral", "polynomial"}
"""Sums and products of many parts, whose sharp errors are larger by up to 1.7 for a few points."""


@pytest.mark.parametrize("name", sorted(partner_configs(1).keys() - LARGER))
def test_sharp_errors_are_no_larger(name: str) -> None:
    for d, N in ((1, 2), (3, 7)):
        kernel = kernel_from_config(name, partner_configs(d)[name])
        points = near_and_far(np.random.default_rng(d), N, units(kernel, d))
        sharp, plain = kernel.sharp_values(points, points)[1], kernel.gram_with_error(points)[1]
        assert sharp.max() <= plain.max() * (1.0 + 1e-9)


@pytest.mark.parametrize(
    "kernel", [SquaredExponential([0.5, 0.7], 3.0), RationalQuadratic([0.5, 0.7], 0.8)]
)
def test_near_points_do_not_pay_for_far_ones(kernel: Kernel) -> None:
    """The largest error is about that of the diagonal; that of a whole block is of its corners."""
    points = 4.0 * np.random.default_rng(0).uniform(size=(40, 2))
    near, far = kernel.sharp_values(points, points)[1], kernel.gram_with_error(points)[1]
    assert near.max() <= 0.5 * far.max()


@pytest.mark.parametrize("kernel", [SquaredExponential(0.7, 3.0), Matern(0.7, 2.5, 3.0)])
def test_a_radial_kernel_at_its_own_point_is_exact(kernel: Kernel) -> None:
    value, error = kernel.sharp_values(np.array([[0.3]]), np.array([[0.3], [0.4]]))
    assert value[0, 0] == 3.0
    assert error[0, 0] < 1e-100 < error[0, 1]


@pytest.mark.parametrize(
    "kernel",
    [
        SquaredExponential([0.5, 0.7], 3.0),
        *(Matern([0.5, 0.7], nu, 3.0) for nu in (0.5, 1.5, 2.5, 10.5)),
        RationalQuadratic([0.5, 0.7], 0.8),
        2.0 * Matern([0.5, 0.7], 2.5) * SquaredExponential(1.0) + RationalQuadratic(0.7, 3.0),
        ActiveDimensions(SquaredExponential(0.5), (1,)) + Constant(2.0),
    ],
)
def test_pairs_have_twenty_digits(kernel: Kernel) -> None:
    points = np.random.default_rng(0).uniform(size=(12, 2))
    points[6] = points[0]
    check(kernel, points)
    pair, error = kernel.pair_values(points, points)
    assert np.all(error <= 2.0**-60 * pair.high)


def test_pairs_are_no_worse_where_points_are_far_or_nearly_equal() -> None:
    points = np.array([[0.0], [1e-13], [1.0], [1.0 + 1e-9], [30.0], [1e9], [1e200]])
    for nu in (0.5, 1.5, 2.5):
        for scale in (1.0, 1e-150):
            kernel = Matern(0.7 * scale, nu, 2.0)
            check(kernel, scale * points[:5])
            sharp = kernel.sharp_values(scale * points, scale * points)[1]
            assert np.all(kernel.pair_values(scale * points, scale * points)[1] <= sharp)


@pytest.mark.parametrize("kernel", [SquaredExponential([0.5, 0.7], 3.0), Matern(0.7, 2.5)])
def test_pairs_of_points_far_from_the_origin(kernel: Kernel) -> None:
    """Scaled coordinates err there by more than exp does."""
    check(kernel, 1e5 + np.random.default_rng(0).uniform(size=(8, 2)))
