"""No goal is proved on a cell above its value at a point of the cell, which a reference of its own
computes."""

import numpy as np
import pytest

pytest.importorskip("flint")
from flint import arb, ctx

import gpcert
from gpcert.kernels import SquaredExponential
from gpcert.testing.arb_reference import ArbPosterior
from gpcert.testing.effort import examples
from gpcert_check.cell import Cell
from gpcert_check.container import Numbers
from gpcert_check.goals import Bounds, Goal
from gpcert_check.posterior import Posterior
from gpcert_check.region import read_region
from tests.check.check_cases import random_model

MARGIN = 1e-9
"""Above the value, relative to it: what is proved there is false."""


@pytest.fixture(autouse=True)
def precision():
    before, ctx.prec = ctx.prec, 128
    yield
    ctx.prec = before


def value_of(goal, reference, x):
    """G(x), as a float."""
    with ctx.workprec(200):
        if goal.kind == "probability":
            return goal.sign * float(reference.probability(x))
        mean, variance = reference.mean(x), reference.variance(x)
        if goal.kind == "mean":
            return float(goal.sign * mean)
        if goal.kind == "band":
            return float(goal.sign * mean - goal.beta * variance.sqrt())
        return goal.sign * float(variance if goal.kind == "variance" else variance.sqrt())


def goals(probit):
    """Every kind, both signs."""
    betas = {"band": (2.0, -0.7)}
    kinds = ("mean", "variance", "std", "band", *(("probability",) if probit else ()))
    return [
        Goal(kind, 0, sign, arb(beta))
        for kind in kinds
        for beta in betas.get(kind, (0.0,))
        for sign in (1, -1)
    ]


def cell_and_model(model, radius):
    """The cell around 0 with this radius, for a model."""
    ball = gpcert.Ball(np.zeros(model.dim), radius)
    arrays = {n: Numbers(a.shape, a.ravel().tolist()) for n, a in model.arrays().items()}
    found = Posterior(model.header(), arrays, read_region(ball.describe()))
    return found, Cell(found.frame, ball.lower.tolist(), ball.upper.tolist())


MEAN = Goal("mean", 0, 1, arb(0))


@pytest.mark.parametrize("radius", [0.1, 1.0, 2.0])
def test_a_trend_alone_is_bounded_by_its_least_value(radius):
    """A squared exponential without weights: no remainder hides what is lost elsewhere."""
    kernel, slope = SquaredExponential(1.0), [0.5, -0.3]
    model = gpcert.Posterior(kernel, [[0.0, 0.0]], [0.0], offset=1.0, slope=slope)
    found, cell = cell_and_model(model, radius)
    least = 1.0 - 0.8 * radius
    for degree in (0, 1, 2):
        assert not Bounds(found, cell, degree).proved(MEAN, arb(least + 1e-6))
        assert Bounds(found, cell, degree).proved(MEAN, arb(least - 30 * radius**2))


@pytest.mark.parametrize("radius", [0.1, 1.0, 2.0])
def test_one_bump_is_bounded_by_its_value_at_a_corner(radius):
    """One point at the centre: `exp(y) g` is a number, which has no remainder."""
    model = gpcert.Posterior(SquaredExponential(1.0), [[0.0, 0.0]], [1.0])
    found, cell = cell_and_model(model, radius)
    least = float(np.exp(-(radius**2)))
    for degree in (0, 1, 2):
        assert not Bounds(found, cell, degree).proved(MEAN, arb(least + 1e-6))
    assert Bounds(found, cell, 2).proved(MEAN, arb(least - 1e-6))


def test_nothing_above_a_value_is_proved():
    rng, proved = np.random.default_rng(11), 0
    for number in range(examples(150, 25)):
        probit = number % 2 == 0
        model = random_model(rng, probit)
        d, radius = model.dim, float(10 ** rng.uniform(-3, 0))
        ball = gpcert.Ball(rng.normal(size=d), radius, norm=[1, 2, "inf"][number % 3])
        arrays = {n: Numbers(a.shape, a.ravel().tolist()) for n, a in model.arrays().items()}
        found = Posterior(model.header(), arrays, read_region(ball.describe()))
        cell = Cell(found.frame, ball.lower.tolist(), ball.upper.tolist())
        points = np.concatenate([ball.center[None], ball.sample(4, number)])
        points = np.concatenate([points, ball.linear_minimizer(rng.normal(size=(4, d)))])
        reference = ArbPosterior(model)
        for goal in goals(probit):
            values = [value_of(goal, reference, x) for x in points]
            least = min(values)
            false = arb(least + MARGIN * max(1.0, abs(least)))
            true = arb(least - 10 * (max(values) - least) - 0.05)
            for degree in (0, 1, 2):
                assert not Bounds(found, cell, degree).proved(goal, false), (number, goal)
                proved += Bounds(found, cell, degree).proved(goal, true)
    assert proved > 100
