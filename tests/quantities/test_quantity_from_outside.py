"""A quantity of another package is one class: bounded, evaluated and attacked without more."""

from dataclasses import dataclass

import numpy as np
import pytest

import gpcert
from gpcert.attacks.functions import scalar_function
from gpcert.enclosures.goals import ScalarGoal
from gpcert.enclosures.goals.paper import PaperGoal
from gpcert.enclosures.paper import PaperEnclosures
from gpcert.kernels import SquaredExponential
from gpcert.quantities import Quantity
from gpcert.rounding import TINY, down, gamma, up
from gpcert.search import Budget, Problem, solve
from gpcert.testing.strategies import regression_posterior


@dataclass(frozen=True)
class Penalised(Quantity):
    """`sign mu - price V`."""

    output: int
    sign: int
    price: float

    def lowest(self, alpha, beta, v_low, v_high):
        """Linear in V: the worse end, its rounding by the size of the terms."""
        size = np.abs(alpha) + (np.abs(beta) + self.price) * v_high
        ends = np.minimum((beta - self.price) * v_low, (beta - self.price) * v_high)
        lower = down(alpha + ends - (gamma(8) * size + TINY), 2)
        return np.where(np.isnan(lower), -np.inf, lower)

    def highest(self, q, v_low, v_high):
        return up(q - down(self.price * v_low, 1), 1)

    def value(self, q, v):
        return q - self.price * v

    def slopes(self, q, v):
        return 1.0 + 0.0 * q, -self.price + 0.0 * v


def model():
    rng = np.random.default_rng(3)
    points = rng.normal(size=(9, 2))
    return regression_posterior(
        SquaredExponential([0.8, 1.2]), points, rng.normal(size=(1, 9)), 0.1
    )


@pytest.mark.parametrize("sign", [1, -1])
def test_it_is_searched_and_attacked(sign):
    posterior, region = model(), gpcert.Box([-0.4, -0.3], [0.3, 0.4])
    quantity = Penalised(0, sign, 1.5)
    plain = ScalarGoal(quantity)
    paper = PaperGoal(plain, PaperEnclosures("analytic"))
    function = scalar_function(posterior, quantity)
    X = region.sample(400, 0)
    values, gradients = function(X)
    mean, variance = posterior.predict(X)
    np.testing.assert_allclose(values, sign * mean[:, 0] - 1.5 * variance[:, 0], atol=1e-12)
    moved = function(X + np.array([1e-6, 0.0]))[0]
    np.testing.assert_allclose((moved - values) / 1e-6, gradients[:, 0], atol=1e-4)
    result = solve(Problem(posterior, region, [plain], tol=1e-4, budget=Budget(boxes=2000)))
    (found,) = result.goals
    assert found.upper - found.lower <= 1e-4
    assert found.lower <= values.min()
    assert found.upper <= values.min() + 1e-4
    other = solve(Problem(posterior, region, [paper], tol=1e-4, budget=Budget(boxes=4)))
    assert other.goals[0].lower <= found.upper
