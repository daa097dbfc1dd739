"""Slopes of sums of exponentials and of forms of them over a cell."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.kernels import SquaredExponential
from gpcert.kernels.expansions import squared_exponential_forms as monotone
from gpcert.kernels.expansions.base import FormFunction
from gpcert.kernels.expansions.squared_exponential_forms import monotone_signs
from gpcert.numerics.arrays import Backend
from gpcert.regions import Ball
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import flint

arb = flint().arb


def case_of(seed, N, f, width, scale):
    """A cell, a function with random weights and a form, and points of the cell, corners first."""
    rng = np.random.default_rng(seed)
    points = scale * rng.normal(size=(N, f)) + rng.normal(size=f)
    region = Ball(rng.normal(size=f), width)
    kernel = SquaredExponential(1.0, 2.0).localize(points, region, Backend())
    cells = region.root()
    W, t = rng.normal(size=(N, N)), rng.normal(size=N)
    corners = np.stack(np.meshgrid(*[[-1.0, 1.0]] * f), axis=-1).reshape(-1, f)
    moves = np.concatenate([corners, rng.uniform(-1.0, 1.0, size=(6, f))])
    x = np.clip(cells.center[0] + width * moves, cells.lower[0], cells.upper[0])
    return SimpleNamespace(
        kernel=kernel, expansion=kernel.expand(cells), t=t, W=W + W.T, points=points, x=x
    )


def true_slopes(case, x):
    """In ball arithmetic: the displacement d of a point, the slopes of omega times the sum and of
    omega times the form there, and omega itself."""
    c = [arb(float(v)) for v in case.expansion.geometry.cells.center[0]]
    d = [arb(float(v)) - m for v, m in zip(x, c, strict=True)]
    u = [[arb(float(v)) - m for v, m in zip(z, c, strict=True)] for z in case.points]
    f, N = range(len(d)), range(len(u))
    weight = (dot(d, d) / 2).exp()
    # k(c, z_i) e^(u_i.d)
    k = [2 * (dot(u[i], d) - dot(u[i], u[i]) / 2).exp() for i in N]
    t = [arb(float(v)) for v in case.t]
    rows = [dot([arb(float(w)) for w in case.W[i]], k) * k[i] for i in N]
    by_sum = [sum((t[i] * k[i] * u[i][j] for i in N), arb(0)) for j in f]
    whole = sum(rows, arb(0))
    by_form = [(2 * sum((rows[i] * u[i][j] for i in N), arb(0)) - d[j] * whole) / weight for j in f]
    return d, by_sum, by_form, weight


def dot(a, b) -> Any:
    return sum((x * y for x, y in zip(a, b, strict=True)), arb(0))


CASES = {
    "seed": st.integers(0, 2**31),
    "N": st.integers(1, 4),
    "f": st.integers(1, 3),
    "width": st.floats(0.05, 1.5),
    "scale": st.floats(0.1, 2.0),
}


@settings(max_examples=examples(300, quick=60))
@given(**CASES)
def test_slopes_are_enclosed(seed, N, f, width, scale):
    """At corners and inside, whatever the size of the cell."""
    case = case_of(seed, N, f, width, scale)
    a = case.t * case.expansion.K[0]
    cell = monotone.form_cell(case.kernel, case.expansion, np.arange(f), np.abs(a))
    sums = monotone.sum_slopes(cell, a, np.abs(case.t))
    forms = monotone.form_slopes(cell, case.W)
    tilt = [arb(float(v)) for v in cell.tilt]
    for x in case.x:
        d, by_sum, by_form, weight = true_slopes(case, x)
        tilted = (-dot(tilt, d)).exp()
        for j in range(f):
            for (low, high), slope in ((sums, by_sum[j]), (forms, weight * by_form[j])):
                assert not tilted * slope < arb(float(low[j]))
                assert not tilted * slope > arb(float(high[j]))


@settings(max_examples=examples(300, quick=60))
@given(share=st.sampled_from([0.0, 0.5]), constant=st.floats(-1.0, 1.0), **CASES)
def test_signs_hold_on_the_cell(seed, N, f, width, scale, share, constant):
    """The slopes of the weighted function have the signs that are said, at every point."""
    case = case_of(seed, N, f, width, scale)
    function = FormFunction(case.t, np.abs(case.t), share * case.W, abs(constant))
    signs = monotone_signs(case.kernel, case.expansion, function)
    for x in case.x:
        d, by_sum, by_form, weight = true_slopes(case, x)
        for j in np.flatnonzero(signs):
            slope = by_sum[j] - arb(share) * by_form[j] + arb(constant) * d[j] * weight
            assert not int(signs[j]) * slope < 0


@pytest.mark.parametrize("degree", [2, 3, 4, 5, 6, 7, 8, 9, 12])
def test_no_degree_is_left_out(degree):
    """Points on a line whose sum has next to nothing below a degree: alternating binomials."""
    z = np.linspace(-0.5, 0.5, degree + 1)[:, None]
    t = np.array(
        [np.prod([1.0 / (z[i, 0] - s) for s in np.delete(z[:, 0], i)]) for i in range(len(z))]
    )
    region = Ball(np.zeros(1), 1.0)
    kernel = SquaredExponential(1.0, 1.0).localize(z, region, Backend())
    expansion = kernel.expand(region.root())
    weights = t / expansion.K[0]
    a = weights * expansion.K[0]
    cell = monotone.form_cell(kernel, expansion, np.arange(1), np.abs(a))
    low, high = monotone.sum_slopes(cell, a, np.abs(weights))
    W = np.diag(weights / expansion.K[0])
    least, most = monotone.form_slopes(cell, W)
    for d in np.linspace(-1.0, 1.0, 41):
        e = np.exp((z[:, 0] - cell.tilt[0]) * d)
        assert low[0] <= (a * z[:, 0]) @ e <= high[0]
        square = np.exp((2.0 * z[:, 0] - cell.tilt[0]) * d)
        assert least[0] <= (a * (2.0 * z[:, 0] - d)) @ square <= most[0]


def test_signs_are_found_where_the_cell_is_small_beside_the_points():
    """One positive point far to the right: the function rises there and nowhere else."""
    region = Ball(np.zeros(2), 0.1)
    kernel = SquaredExponential(1.0, 1.0).localize(np.array([[2.0, 0.0]]), region, Backend())
    function = FormFunction(np.ones(1), np.ones(1))
    signs = monotone_signs(kernel, kernel.expand(region.root()), function)
    assert signs.tolist() == [1.0, 0.0]
    falling = FormFunction(-np.ones(1), np.ones(1))
    assert monotone_signs(kernel, kernel.expand(region.root()), falling).tolist() == [-1.0, 0.0]
