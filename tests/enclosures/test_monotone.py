"""Slopes of sums of exponentials and of forms of them over a cell."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.arrays import Backend
from gpcert.enclosures import monotone
from gpcert.enclosures.monotone import FormFunction, monotone_signs
from gpcert.kernels import SquaredExponential
from gpcert.regions import Ball
from gpcert.testing.effort import examples


def case_of(seed, N, f, width, scale):
    """A cell, a function with random weights and a form, and points of the cell, corners first."""
    rng = np.random.default_rng(seed)
    points = scale * rng.normal(size=(N, f)) + rng.normal(size=f)
    center = rng.normal(size=f)
    region = Ball(center, width)
    kernel = SquaredExponential(1.0, 2.0).localize(points, region, Backend())
    expansion = kernel.expand(region.root())
    W = rng.normal(size=(N, N))
    corners = np.stack(np.meshgrid(*[[-1.0, 1.0]] * f), axis=-1).reshape(-1, f)
    d = width * np.concatenate([corners, rng.uniform(-1.0, 1.0, size=(64, f))])
    t = rng.normal(size=N)
    return SimpleNamespace(
        kernel=kernel, expansion=expansion, t=t, W=W + W.T, u=points - center, d=d
    )


def parts_of(case):
    """(n, f) slopes of omega times the sum, and of omega times the form, at the points d."""
    e = np.exp(case.d @ case.u.T)
    a, d = case.t * case.expansion.K[0], case.d
    B = case.W * np.outer(case.expansion.K[0], case.expansion.K[0])
    inner = (e @ B) * e
    by_sum = (e * a) @ case.u
    weight = np.exp(-0.5 * np.sum(d**2, axis=1))[:, None]
    return by_sum, weight * (2.0 * inner @ case.u - d * np.sum(inner, axis=1)[:, None])


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
    cell = monotone._cell(case.kernel, case.expansion, np.arange(f), np.abs(a))
    tilted = np.exp(-case.d @ cell.tilt)[:, None]
    by_sum, by_form = parts_of(case)
    low, high = monotone._sum_slopes(cell, a, np.abs(case.t))
    assert np.all(low <= tilted * by_sum)
    assert np.all(tilted * by_sum <= high)
    low, high = monotone._form_slopes(cell, case.W)
    grown = tilted * np.exp(0.5 * np.sum(case.d**2, axis=1))[:, None]
    assert np.all(low <= grown * by_form + 1e-12 * np.abs(low))
    assert np.all(grown * by_form <= high + 1e-12 * np.abs(high))


@settings(max_examples=examples(300, quick=60))
@given(share=st.floats(0.0, 0.5), constant=st.floats(-1.0, 1.0), **CASES)
def test_signs_hold_on_the_cell(seed, N, f, width, scale, share, constant):
    """The slopes of the weighted function have the signs that are said, at every point."""
    case = case_of(seed, N, f, width, scale)
    function = FormFunction(case.t, np.abs(case.t), case.W, share, abs(constant))
    signs = monotone_signs(case.kernel, case.expansion, function)
    by_sum, by_form = parts_of(case)
    growth = np.exp(0.5 * np.sum(case.d**2, axis=1))[:, None]
    slopes = by_sum - share * by_form + constant * case.d * growth
    assert np.all((signs == 0) | (np.sign(slopes) == signs))


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
    cell = monotone._cell(kernel, expansion, np.arange(1), np.abs(a))
    low, high = monotone._sum_slopes(cell, a, np.abs(weights))
    W = np.diag(weights / expansion.K[0])
    least, most = monotone._form_slopes(cell, W)
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
