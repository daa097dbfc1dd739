"""Counter-examples that local search cannot see: the verdict is never ROBUST."""

import mpmath
import numpy as np
import pytest

import gpcert
from gpcert.attacks import attack
from gpcert.attacks.functions import plain_function
from gpcert.kernels import SquaredExponential
from gpcert.quantities import Mean
from gpcert.search.local_search import Descent
from gpcert.testing.effort import examples

PLATEAU = float(np.sqrt(2 * np.pi))
"""Height, in units of the weights, of Gaussians spaced by their own length (ripple 1e-8)."""

LEFT_OUT = 1e-20


def plateau_with_a_hole(rng, d):
    """Mean about 1 on [0, 1]^d, but negative in a ball of a tiny part of its volume.

    The hole is six lengths away from the centre and from every corner, where descents begin.
    """
    length = rng.uniform(0.022, 0.033) if d == 1 else rng.uniform(0.07, 0.08)
    axis = np.arange(-5.0 * length, 1.0 + 5.0 * length, length)
    grid = np.stack(np.meshgrid(*[axis] * d), axis=-1).reshape(-1, d)
    # not where a bisection of the interval looks first
    hole = rng.choice([0.25, 0.75]) + rng.choice([-1, 1]) * rng.uniform(0.015, 0.05, 1)
    if d == 2:
        hole = np.array([rng.uniform(0.45, 0.55), rng.choice([0.02, 0.98])])
        hole = hole[rng.permutation(2)]
    # mean near the hole: 1 - depth (1 - r^2 / 2 l^2), negative for r^2 < 2 l^2 (1 - 1 / depth)
    fraction = rng.uniform(2e-4, 9e-4)
    r2 = (fraction / 2) ** 2 if d == 1 else fraction / np.pi
    depth = 1.0 / (1.0 - r2 / (2 * length**2))
    points = np.concatenate([grid, hole[None]])
    weights = np.concatenate([np.full(len(grid), PLATEAU**-d), [-depth]])
    return gpcert.Posterior(SquaredExponential(length), points, weights), hole


def exact_mean(posterior, x):
    """The mean at a float point in 50 digits."""
    with mpmath.workdps(50):
        length = mpmath.mpf(float(posterior.kernel.length_scale))
        total = mpmath.mpf(0)
        for z, t in zip(posterior.points, posterior.weights[0], strict=True):
            pairs = zip(x.tolist(), z.tolist(), strict=True)
            r2 = sum(((mpmath.mpf(a) - mpmath.mpf(b)) / length) ** 2 for a, b in pairs)
            if r2 < 120:  # beyond, all terms together are below LEFT_OUT
                total += mpmath.mpf(float(t)) * mpmath.exp(-r2 / 2)
        return total


@pytest.mark.parametrize(
    ("d", "count"),
    [
        (1, 16),
        (2, 8),
        *(pytest.param(d, n, marks=pytest.mark.slow) for d, n in ((1, 280), (2, 92))),
    ],
)
def test_hidden_counter_examples_are_found(d, count, monkeypatch):
    # without the descents from random points the bounds alone must lead to the hole
    monkeypatch.setattr(Descent, "improved", lambda _, g, question, points: points)
    rng = np.random.default_rng(d)
    region = gpcert.Box(np.zeros(d), np.ones(d))
    options = {"region": region, "threshold": 0.0}
    blind, boxes = 0, []
    for case in range(count):
        posterior, hole = plateau_with_a_hole(rng, d)
        # a small budget may not decide, but must not say ROBUST
        few = gpcert.Budget(seconds=None, boxes=1 + case % 40)
        start = gpcert.certify(posterior, region.center, budget=few, **options)
        assert start.status is not gpcert.Status.ROBUST
        certificate = gpcert.certify(posterior, region.center, **options)
        assert certificate.status is gpcert.Status.NOT_ROBUST
        point = certificate.counterexample
        assert region.contains(point)
        assert np.abs(point - hole).max() < 0.05
        assert exact_mean(posterior, point) < -LEFT_OUT
        assert certificate.margin.lower <= posterior.predict(hole[None])[0][0, 0] + 1e-12
        boxes.append(certificate.boxes)
        if case % 4 == 0:
            attacked = attack(plain_function(posterior, Mean(0, 1)), region, starts=1)
            blind += posterior.predict(attacked[None])[0][0, 0] > 0
    assert blind > 0.9 * count / 4
    assert np.median(boxes) > 3


def test_hidden_counter_examples_with_local_search():
    rng = np.random.default_rng(9)
    for d in (1, 1, 1, 1, 2, 2):
        posterior, _ = plateau_with_a_hole(rng, d)
        region = gpcert.Box(np.zeros(d), np.ones(d))
        certificate = gpcert.certify(posterior, region.center, region=region, threshold=0.0)
        assert certificate.status is gpcert.Status.NOT_ROBUST
        assert exact_mean(posterior, certificate.counterexample) < -LEFT_OUT


def test_a_hole_that_does_not_reach_zero_is_robust():
    """The same shapes with the hole filled up: proved, so NOT_ROBUST above is no reflex."""
    rng = np.random.default_rng(10)
    for d in (1, 1, 1, 2)[-examples(4, quick=2) :]:
        posterior, _ = plateau_with_a_hole(rng, d)
        filled = gpcert.Posterior(
            posterior.kernel, posterior.points, posterior.weights[0], offset=0.05
        )
        region = gpcert.Box(np.zeros(d), np.ones(d))
        certificate = gpcert.certify(filled, region.center, region=region, threshold=0.0)
        assert certificate.status is gpcert.Status.ROBUST
        assert filled.predict(region.sample(10_000, 0))[0].min() > 0
