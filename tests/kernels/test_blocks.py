"""A batch of many cells is expanded in blocks of them: every answer is that of the cells alone."""

import numpy as np
import pytest

from gpcert.kernels import Linear, Matern, SquaredExponential
from gpcert.kernels.expansions.base import Combination
from gpcert.kernels.expansions.taylor_terms import TaylorExpansion
from gpcert.numerics.arrays import Backend
from gpcert.paper.lines import lines_bound
from gpcert.regions import Ball, Box, Cells

N, B, D = 100, 2100, 2
"""Two or three blocks, of kernels with bins of distances and without."""

KERNELS = [Matern(0.4, 1.5), Matern(0.4, 2.5, 3.0), Matern(0.5, 2.5) + Linear(np.ones(D))]
KERNELS += [SquaredExponential(1.0) * Matern(1.0, 2.5)]


def situation(kernel, region):
    rng = np.random.default_rng(0)
    points = rng.uniform(size=(N, D))
    low = rng.uniform(0.1, 0.8, (B, D))
    cells = Cells(region, low, low + rng.choice([0.02, 0.1], (B, 1)))
    return kernel.localize(points, region, Backend()), cells, rng


def each_alone(local, cells, compute):
    """From every third cell at a time, so few that they are one block."""
    rows = [slice(first, None, 3) for first in range(3)]
    found = [compute(local.expand(cells.take(np.arange(B)[own])), own) for own in rows]
    whole = []
    for parts in zip(*found, strict=True):
        array = np.empty((B, *parts[0].shape[1:]))
        for own, part in zip(rows, parts, strict=True):
            array[own] = part
        whole.append(array)
    return whole


CASES = [(kernel, Box(np.zeros(D), np.ones(D))) for kernel in KERNELS]
CASES += [(KERNELS[1], Ball(np.full(D, 0.5), 0.5, norm=2))]


@pytest.mark.parametrize(
    ("kernel", "region"), CASES, ids=["rough", "plain", "sum", "product", "ball"]
)
def test_every_answer_is_that_of_the_cells(kernel, region):
    local, cells, rng = situation(kernel, region)
    own, shared = rng.normal(size=(B, N)) / N, rng.normal(size=(2, N))
    norms = rng.uniform(1.0, 2.0, B)

    def model(expansion, rows):
        slack = np.full(len(norms[rows]), 1e-12)
        found = local.model(expansion, Combination(own[rows], norms[rows], True, slack), True)
        parts = (found.value, found.gradient, found.hessian, found.errors, found.below)
        cubic = () if found.cubic is None else (found.cubic.tensor, found.cubic.rest)
        return (*parts, found.linear_error, *cubic)

    def others(expansion, rows):
        G = local.derivative_covariance(expansion)
        sizes = local.row_sizes(expansion, 0) + local.row_sizes(expansion, 1)
        values = (*local.center_values(expansion, shared), *local.center_variance(expansion))
        lines = lines_bound(local, expansion, shared[0])
        return (expansion.K, *values, *sizes, G.matrix, local.derivatives(expansion), lines)

    whole = local.expand(cells)
    assert isinstance(whole, TaylorExpansion)
    assert len(whole.blocks) > 1
    everything = slice(None)
    for compute in (model, others):
        alone = each_alone(local, cells, compute)
        for found, expected in zip(compute(whole, everything), alone, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    parts = list(local.derivative_parts(whole, 10))
    np.testing.assert_array_equal(np.concatenate(parts), local.derivatives(whole))


def test_few_cells_are_one_block():
    local, cells, _ = situation(*CASES[1])
    few = local.expand(cells.take(np.arange(10)))
    assert [own for _, own in few.blocks] == [few]
