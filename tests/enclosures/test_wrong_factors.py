"""A factor that does not belong to the training noise costs tightness alone: it only suggests
weights."""

from __future__ import annotations

import numpy as np
import pytest

import gpcert
from gpcert.kernels import Kernel, Matern, SquaredExponential
from gpcert.testing.arb_reference import ArbPosterior


def test_the_distance_of_a_factor_counts_once() -> None:
    """On either side of the variance at a point; twice it would be 4 eta."""
    rng = np.random.default_rng(0)
    points, places = rng.uniform(size=(8, 2)), rng.uniform(size=(4, 2))
    right = gpcert.Posterior(SquaredExponential(0.5), points, np.ones(8), training_noise=1.0)
    model = gpcert.Posterior(
        SquaredExponential(0.5),
        points,
        np.ones(8),
        factor=(1.0 + 1e-5) * right.factor[0],
        training_noise=1.0,
    )
    (eta,) = model.unit.distances
    assert 1e-5 < eta < 1e-3
    ends = gpcert.bound_boxes(model, places, places, quantity="variance")["variance"][:, 0]
    widths = ends[:, 1] - ends[:, 0]
    assert np.all(widths >= 1.9 * eta)
    assert np.all(widths <= 2.01 * eta)


@pytest.mark.parametrize("kernel", [SquaredExponential(0.5, 3.0), Matern(0.5, nu=2.5)])
@pytest.mark.parametrize("share", [0.0, 0.7, 0.999, 1.2])
def test_bounds_hold_for_any_factor(kernel: Kernel, share: float) -> None:
    rng = np.random.default_rng(0)
    points, weights = rng.uniform(size=(8, 2)), rng.normal(size=8)
    right = gpcert.Posterior(kernel, points, weights, training_noise=1e-6)
    wrong = gpcert.Posterior(
        kernel, points, weights, factor=share * right.factor[0], training_noise=1e-6
    )
    reference = ArbPosterior(wrong)
    places = np.concatenate([points[:2], rng.uniform(size=(4, 2))])
    truth = np.array([float(reference.variance(x).mid()) for x in places])
    for half in (0.0, 1e-9, 1e-4):
        found = gpcert.bound_boxes(wrong, places - half, places + half, quantity="variance")
        low, high = found["variance"][:, 0].T
        assert np.all(low <= truth * (1.0 + 1e-12))
        assert np.all(truth * (1.0 - 1e-12) <= high)
