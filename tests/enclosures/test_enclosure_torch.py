"""The same evaluation on torch: the same bounds to 1e-9, enclosed in the same way."""

import numpy as np
import pytest
from hypothesis import given, settings

from gpcert.enclosures.goals import QuantityGoal
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Probit
from gpcert.numerics.arrays import to_numpy
from gpcert.quantities import Mean, Probability, Variance
from gpcert.regions import Box, Cells
from gpcert.testing.arb_reference import regression_posterior
from gpcert.testing.effort import examples
from tests.enclosures.enclosure_checks import check_mean, check_variance, evaluation_of
from tests.strategies import Case, cases, random_cells

torch = pytest.importorskip("torch")


def evaluations(case):
    cells = random_cells(case.region, case.rng)
    there = Cells(case.region, torch.tensor(cells.lower), torch.tensor(cells.upper))
    return evaluation_of(case, cells=cells), evaluation_of(case, cells=there, backend="torch")


def usual_case(seed):
    """A model without extremes: rounding differs between libraries, by condition number."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(9, 3))
    kernel = SquaredExponential([0.7, 1.0, 2.0], 1.5)
    posterior = regression_posterior(
        kernel, points, rng.normal(size=(1, 9)), 0.05, likelihood=Probit()
    )
    return Case(posterior, Box([-0.5, -0.3, 0.1], [0.5, 0.4, 0.1]), rng)


@pytest.mark.parametrize("seed", range(5))
def test_same_bounds(seed):
    host, there = evaluations(usual_case(seed))
    for sign in (1, -1):
        for goal in (
            QuantityGoal(Mean(0, sign)),
            QuantityGoal(Variance(0, sign)),
            QuantityGoal(Probability(Probit(), 0, sign)),
        ):
            for name in ("bound", "ceiling"):
                if name == "bound":
                    a, b = goal.bound(host, None).lower, goal.bound(there, None).lower
                else:
                    a, b = goal.ceiling(host), goal.ceiling(there)
                np.testing.assert_allclose(to_numpy(a), to_numpy(b), rtol=1e-9, atol=1e-9)


@settings(max_examples=examples(15))
@given(case=cases())
def test_enclosed_likewise(case):
    _, there = evaluations(case)
    check_mean(case, evaluation=there)
    check_variance(case, evaluation=there)
