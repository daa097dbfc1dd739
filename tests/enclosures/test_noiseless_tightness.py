"""Variances of nearly noiseless models are as good as the model's own: rounding allowances at a
point, the remainder over a box, and the boxes of a fitted surrogate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

import gpcert
from gpcert.regions import Box
from gpcert.testing.effort import THOROUGH, crossed, variants
from tests.enclosures.noiseless_cases import KERNELS, NoiselessCase, Regression, points

LENGTHS = np.array([0.3, 0.5])

SMOOTH = ("squared exponential", "Matern 5/2", "rational quadratic")
"""Second derivatives of their features along a line are at most 5 / l^2 long, so that the tail
beyond degree 1 is at most 2.5 rho^2, rho the displacement over the length-scales."""


def regression(name: str, ratio: float, N: int = 100, gap: float | None = None) -> Regression:
    """N points in the unit square, of the periodic kernel on a line, and the kernel's variance 10;
    where there is a gap, points in pairs that are so far apart."""
    d, rng = (1 if name == "periodic" else 2), np.random.default_rng(N)
    kernel = sk.ConstantKernel(10.0) * KERNELS[name](LENGTHS[:d])
    X, box = points(rng, N, d, gap), Box(np.zeros(d), np.ones(d))
    case = NoiselessCase(name, kernel, X, np.sin(5.0 * X[:, 0]), ratio, box, False, False, rng)
    return case.gpcert() if name != "sum" else case.sklearn()


def places(model: Regression) -> np.ndarray:
    """Anywhere, at a training point, and beside one."""
    X = model.posterior.points
    rng = np.random.default_rng(1)
    near = X[1] + 1e-3 * rng.normal(size=X.shape[1])
    return np.concatenate([rng.uniform(size=(4, X.shape[1])), X[:1], near[None]])


def widths(model: Regression) -> np.ndarray:
    """Of the proved intervals of v at points, over v."""
    X = places(model)
    truth = np.array([float(row["variance"][0].mid()) for row in model.truths(X)])
    found = gpcert.bound_boxes(model.model, X, X, quantity="variance")["variance"][:, 0]
    return (found[:, 1] - found[:, 0]) / truth


@pytest.mark.parametrize("name", ["squared exponential", "sum"])
def test_the_noise_is_part_of_the_certified_model(name: str) -> None:
    """Of `GPRegressor` and of scikit-learn: what the library was told."""
    model = regression(name, 1e-6)
    assert np.all(model.posterior.training_noise == model.noise)


@crossed({"name": sorted(KERNELS), "gap": [None, 0.0, 1e-9]})
def test_the_allowance_at_a_point_is_at_most_a_hundredth(name: str, gap: float | None) -> None:
    """Down to a noise of 1e-10 of the kernel's variance; at two equal points v is half of it. Of
    rank 3, a linear kernel has a v of 3 % of its noise, so that 1e-8 is as hard."""
    for ratio in (1e-2, 1e-6, 1e-8 if name == "linear" else 1e-10):
        found = widths(regression(name, ratio, gap=gap)).max()
        assert found <= (0.01 if gap is None else 0.02), ratio


@variants("name", ["squared exponential", "Matern 5/2"], quick=1)
def test_the_allowance_stays_small_with_many_points(name: str) -> None:
    assert widths(regression(name, 1e-10, N=400 if THOROUGH else 250)).max() <= 0.01


@pytest.mark.parametrize(
    ("name", "ratio", "most"),
    [
        ("squared exponential", 1e-13, 1e-3),
        ("Matern 3/2", 1e-12, 1e-2),
        ("Matern 5/2", 1e-12, 1e-2),
        ("rational quadratic", 1e-12, 1e-2),
        ("sum", 1e-12, 1e-2),
        ("product", 1e-12, 1e-2),
        ("linear", 1e-10, 0.01),
    ],
)
def test_kernel_values_of_twenty_digits_keep_allowances_small(
    name: str, ratio: float, most: float
) -> None:
    """Kernel values of sixteen digits alone left 0.1 at 1e-12: their errors meet `|w|_1^2`."""
    assert widths(regression(name, ratio)).max() <= most


@pytest.mark.parametrize("name", SMOOTH)
def test_the_remainder_over_a_box_falls_like_its_square(name: str) -> None:
    for ratio in (1e-5, 1e-10):
        model = regression(name, ratio)
        size = float(np.sqrt(model.posterior.kernel.diagonal(model.posterior.points)[0]))
        rng = np.random.default_rng(2)
        centers = rng.uniform(0.1, 0.9, (3, 2))
        for h in (3e-2, 5e-3, 1e-3, 1e-4):
            half = h * LENGTHS.min()
            corners = half * np.array([[-1, -1], [-1, 1], [1, -1], [1, 1], [0, 0]])
            X = (centers[:, None] + corners).reshape(-1, 2)
            std = [float(row["std"][0].mid()) for row in model.truths(X)]
            most = np.array(std).reshape(3, -1).max(axis=1)
            ends = gpcert.bound_boxes(model.model, centers - half, centers + half, quantity="std")
            remainder = 2.5 * size * 2.0 * h**2
            assert np.all(ends["std"][:, 0, 1] <= 1.1 * most + 2.0 * remainder), (ratio, h)


@crossed({"N": [40, 100], "name, most": [("squared exponential", 500), ("Matern 5/2", 3000)]})
def test_a_fitted_surrogate_takes_few_boxes(N: int, name: str, most: int) -> None:
    """Branin, noise 1e-6: mean +- 2 std over the whole square to a hundredth."""
    X = np.random.default_rng(5).uniform(size=(N, 2))
    a, b = 15.0 * X[:, 0] - 5.0, 15.0 * X[:, 1]
    y = (b - 5.1 / (4.0 * np.pi**2) * a**2 + 5.0 / np.pi * a - 6.0) ** 2
    y += 10.0 * (1.0 - 1.0 / (8.0 * np.pi)) * np.cos(a)
    lengths: Any = ([0.3, 0.3], (0.05, 10.0))
    shape = sk.RBF(*lengths) if name == "squared exponential" else sk.Matern(*lengths, nu=2.5)
    shape = sk.ConstantKernel(1.0, (1e-3, 1e5)) * shape
    model = GaussianProcessRegressor(shape, alpha=1e-6, random_state=0)
    model.fit(X, (y - y.mean()) / y.std())
    found = gpcert.prediction_range(
        model,
        Box([0.0] * 2, [1.0] * 2),
        tol=0.01,
        quantity="band",
        budget=gpcert.Budget(boxes=most),
    )
    assert found.converged
