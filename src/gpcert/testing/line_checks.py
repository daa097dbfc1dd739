"""Checks of the paper's lines, `NodeBatch.enclosed`, against a reference in ball arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpcert.kernels.lines.affine_algebra import affine_lower_bound
from gpcert.regions import Cells
from gpcert.regions.frame import Reach
from gpcert.testing.balls import dot, exact, flint
from gpcert.testing.node_case import NodeCase


def check_lines(case: NodeCase) -> None:
    """`low <= k <= high`, and sums of lines stay below sums of `t_i k(x, z_i)`."""
    arb = flint().arb
    B, N = case.shape
    enclosed = case.batch.enclosed()
    low, high = case.host(enclosed.low), case.host(enclosed.high)
    signs = case.rng.choice([-2.0, -1.0, 0.0, 0.5, 1.0], (2, B, N))
    alone = (np.arange(N) == case.rng.integers(N, size=(2, B, 1))) * np.asarray([[[1.0]], [[-1.0]]])
    sums = [(t, lines_minimum(case, t)) for t in (*signs, *alone)]
    any_weights = case.rng.normal(size=(B, N))
    for t in (any_weights, alone[0]):
        found = case.host(affine_lower_bound(enclosed, case.place(t)), (B,))
        sums.append((t, [arb(bound) for bound in found]))
    for b in range(B):
        for x in case.inside(b):
            real = [case.reference(exact(x), z) for z in case.targets]
            for i, k in enumerate(real):
                assert not arb(low[b, i]) > k, "low is above k"
                assert not arb(high[b, i]) < k, "high is below k"
            for t, bound in sums:
                assert not bound[b] > dot(exact(t[b]), real), "the lines' minimum is above the sum"


def lines_minimum(case: NodeCase, t: np.ndarray) -> list[Any]:
    """Lower bounds, as balls, of `sum_i t_i k(x, z_i)` by lines: under for t_i > 0, else over.

    For t that are powers of two or zero: `t_i slope_i` is exact.
    """
    arb = flint().arb
    enclosed = case.batch.enclosed()
    total = [arb(0)] * len(case.cells)
    found: dict[int, tuple[Any, np.ndarray]] = {}
    for weights, line in (
        (np.maximum(t, 0.0), enclosed.under),
        (np.minimum(t, 0.0), enclosed.over),
    ):
        intercept = case.host(line.intercept)
        for b, i in np.argwhere(weights != 0.0):
            total[b] = total[b] + arb(weights[b, i]) * arb(intercept[b, i])
        assert len({id(carrier) for carrier, _ in line.slopes}) == len(line.slopes)
        for carrier, slope in line.slopes:
            part = np.where(weights == 0.0, 0.0, weights * case.host(slope))
            _, before = found.get(id(carrier), (carrier, np.zeros_like(part)))
            found[id(carrier)] = (carrier, before + part)  # no point is in both: exact
    for carrier, slope in found.values():
        least = case.host(carrier.minimum(case.place(slope)), (len(case.cells),))
        total = [a + arb(m) for a, m in zip(total, least, strict=True)]
    return [arb.neg_inf() if a.is_nan() else a for a in total]


def check_lines_at_points(case: NodeCase) -> None:
    """Each line itself lies on its side of k at points x of the cell.

    A carrier's minimum over the cell {x} is `slope phi(x, z_i)`, rounded down: so a line found for
    the whole cell is evaluated by the carriers of the node at {x}. For carriers phi that do not
    depend on the cell.
    """
    arb = flint().arb
    enclosed = case.batch.enclosed()
    N = len(case.points)
    for b in range(len(case.cells)):
        for x in case.inside(b, 2):
            free = case.place(x[None, case.frame.free])
            there = case.node.at(Reach.of(Cells(case.cells.region, free, free), case.frame))
            points = there.enclosed()
            for sign, line, local in (
                (1.0, enclosed.under, points.under),
                (-1.0, enclosed.over, points.over),
            ):
                assert len(line.slopes) == len(local.slopes)
                intercept = case.host(line.intercept)
                for i in range(N):
                    value = arb(sign * intercept[b, i])
                    for (_, slope), (carrier, _) in zip(line.slopes, local.slopes, strict=True):
                        one = (np.arange(N) == i) * sign * case.host(slope)[b]
                        least = case.host(carrier.minimum(case.place(one[None, :])), (1,))
                        value = value + arb(least[0])
                    real = sign * case.reference(exact(x), case.targets[i])
                    assert value.is_nan() or not value > real, "a line crosses k"
