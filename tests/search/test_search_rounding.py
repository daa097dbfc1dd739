"""What is added for rounding, looked at on its own: regions, references, attained values."""

from fractions import Fraction

import numpy as np
import pytest

import gpcert
from gpcert.enclosures import Evaluation, LocalPosterior
from gpcert.enclosures.goals import QuantityGoal
from gpcert.numerics.arrays import Backend
from gpcert.quantities import Deviation
from tests.search.search_problems import random_posterior


def test_a_balls_box_holds_its_real_ends():
    """In rational arithmetic: the box that is searched holds `x0 +- r`, the inner box nothing more.

    The centres are far from the radius in size, so that nearly every sum is rounded.
    """
    rng = np.random.default_rng(0)
    for _ in range(300):
        x0 = rng.normal() * 10.0 ** rng.integers(-3, 6)
        r = abs(rng.normal()) * 10.0 ** rng.integers(-6, 2)
        ball = gpcert.Ball([x0, 0.0], r, norm=2)
        low, high = Fraction(x0) - Fraction(r), Fraction(x0) + Fraction(r)
        assert Fraction(float(ball.lower[0])) <= low
        assert Fraction(float(ball.upper[0])) >= high
        assert Fraction(float(ball.inner_lower[0])) >= low
        assert Fraction(float(ball.inner_upper[0])) <= high


@pytest.mark.parametrize("norm", [1.0, 2.0, np.inf])
@pytest.mark.parametrize("seed", range(6))
def test_deviation_from_every_reference_within_the_errors(seed, norm):
    """The reference is known up to `errors`, made large here: bounds hold for all it may be."""
    rng = np.random.default_rng(seed)
    posterior = random_posterior(seed, 2, outputs=2)
    region = gpcert.Ball(rng.uniform(-0.5, 0.5, 2), 0.05)
    center = posterior.predict(region.center[None])[0][0]
    # far from the reference on one side, so that one end of the error decides
    reference, errors = center + rng.choice([-1.0, 1.0], 2), np.array([0.3, 0.2])
    goal = QuantityGoal(Deviation(tuple(reference), tuple(errors), norm))
    local = LocalPosterior.build(posterior, region, Backend(), variance=False)
    evaluation = Evaluation(local, region.root())
    lower = float(goal.bound(evaluation, None).lower[0])
    ceiling = float(goal.ceiling(evaluation)[0])
    means = posterior.predict(region.sample(300, 0))[0]
    for first in (-1.0, 0.0, 1.0):
        for second in (-1.0, 0.0, 1.0):
            real = reference + errors * [first, second]
            values = -np.linalg.norm(means - real, ord=norm, axis=1)
            assert lower <= values.min() + 1e-12
            assert ceiling >= -np.linalg.norm(center - real, ord=norm) - 1e-12
