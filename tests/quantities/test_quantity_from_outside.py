"""A quantity of another package is one class: bounded, evaluated and attacked without more."""

from dataclasses import dataclass

import numpy as np
import pytest

import gpcert
from gpcert.attacks.functions import plain_function
from gpcert.enclosures.goals import QuantityGoal
from gpcert.kernels import SquaredExponential
from gpcert.model.multi_output import SeparateOutputs
from gpcert.numerics.rounding import TINY, down, gamma, up
from gpcert.paper.method import PaperMethod
from gpcert.quantities import Compound, Mean, OutputQuantity
from gpcert.search import Budget, Problem, solve
from gpcert.testing.arb_reference import regression_posterior


@dataclass(frozen=True)
class Penalised(OutputQuantity):
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


@dataclass(frozen=True)
class Gap(Compound):
    """`mu_0 - mu_1`, of whatever kernels."""

    parts: tuple[Mean, ...] = (Mean(0, 1), Mean(1, 1))

    def lowest(self, low, high):
        return down(low[0] - high[1], 1)

    def highest(self, low, high):
        return up(high[0] - low[1], 1)

    def value(self, y):
        return y[:, 0] - y[:, 1]

    def slopes(self, y):
        return np.tile([1.0, -1.0], (len(y), 1))


def model(seed=3, outputs=1):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(9, 2))
    kernel = SquaredExponential([0.8, 1.2 + 0.1 * seed])
    return regression_posterior(kernel, points, rng.normal(size=(outputs, 9)), 0.1)


@pytest.mark.parametrize("sign", [1, -1])
def test_it_is_searched_and_attacked(sign):
    posterior, region = model(), gpcert.Box([-0.4, -0.3], [0.3, 0.4])
    quantity = Penalised(0, sign, 1.5)
    plain = QuantityGoal(quantity)
    paper = QuantityGoal(quantity, PaperMethod("analytic"), taylor=False)
    function = plain_function(posterior, quantity)
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


@pytest.mark.parametrize("separate", [False, True])
def test_one_of_several_others_is_one_class_too(separate):
    posterior = SeparateOutputs((model(), model(4))) if separate else model(outputs=2)
    region = gpcert.Box([-0.2, -0.1], [0.1, 0.2])
    plain = QuantityGoal(Gap())
    X = region.sample(400, 0)
    values, gradients = plain.function(posterior)(X)
    mean = posterior.mean(X)
    np.testing.assert_allclose(values, mean[:, 0] - mean[:, 1], atol=1e-12)
    moved = plain.function(posterior)(X + np.array([0.0, 1e-6]))[0]
    np.testing.assert_allclose((moved - values) / 1e-6, gradients[:, 1], atol=1e-4)
    paper = QuantityGoal(Gap(), PaperMethod("analytic"), taylor=False)
    for goal, boxes in ((plain, 2000), (paper, 40)):
        problem = Problem(posterior, region, [goal], tol=1e-2, budget=Budget(boxes=boxes))
        (found,) = solve(problem).goals
        assert found.lower <= values.min()
        assert found.upper - found.lower <= (1e-2 if goal is plain else 1.0)
        assert found.upper <= values.min() + (found.upper - found.lower)
