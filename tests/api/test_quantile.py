"""`quantile`: closed forms and samples."""

import numpy as np
import pytest
from scipy.stats import norm, uniform

import gpcert
from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential

BUMP = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0]], weights=[1.0])
HILLS = gpcert.Posterior(
    SquaredExponential([1.0, 2.0]), points=[[0.0, 0.0], [1.0, 1.0]], weights=[1.0, -0.5]
)


@pytest.mark.parametrize(("level", "tol"), [(1e-6, 1e-8), (0.05, 1e-3), (0.5, 1e-3), (0.99, 1e-3)])
def test_of_a_bump(level, tol):
    found = gpcert.quantile(BUMP, [norm(0, 1)], level, tol=tol)
    exact = float(np.exp(-0.5 * norm.isf(0.5 * level) ** 2))
    assert found.converged
    assert found.lower - 1e-12 <= exact <= found.upper + 1e-12
    assert found.upper - found.lower <= tol


def test_against_samples():
    rng = np.random.default_rng(0)
    X = np.stack([rng.normal(size=200_000), rng.uniform(-1, 1, 200_000)], axis=1)
    values = np.sort(HILLS.mean(X)[:, 0])
    found = gpcert.quantile(HILLS, [norm(), uniform(-1, 2)], 0.9, tol=0.02)
    assert values[int(0.895 * len(X))] <= found.upper
    assert found.lower <= values[int(0.905 * len(X))]


def test_budget_and_errors():
    short = gpcert.quantile(HILLS, [norm(), norm()], 0.5, tol=1e-9, budget=gpcert.Budget(boxes=50))
    assert not short.converged
    assert short.lower <= short.upper
    for level in (0.0, 1.0, float("nan"), -1.0):
        with pytest.raises(InputError, match="level"):
            gpcert.quantile(HILLS, [norm(), norm()], level)
