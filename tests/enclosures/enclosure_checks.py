"""Checks of enclosures against ball arithmetic, without tolerance.

They raise AssertionError, so that the self-tests can ask whether a broken bound is noticed.
"""

import math
from contextlib import contextmanager
from functools import lru_cache

import numpy as np
from hypothesis import reject

from gpcert.enclosures import Evaluation, LocalPosterior
from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential
from gpcert.kernels.nodes.moments import sorted_index
from gpcert.numerics.arrays import backend_from_name, to_numpy
from gpcert.testing.arb_reference import ArbPosterior, assert_encloses
from gpcert.testing.kernel_references import dot, exact, flint
from gpcert.testing.node_case import cell_points
from tests.strategies import random_cells

arb = flint().arb


def below(lower, ball, what):
    """`lower <= ball`, where `lower` is a float (or a ball) and may be -inf."""
    assert not math.isnan(float(lower)), f"{what}: NaN"
    assert not arb(lower) > ball, f"{what}: {lower} is above {ball.str(20)}"


@contextmanager
def refused_growth():
    """Cases whose kernel leaves float64 on the region are refused in words, and left out."""
    try:
        yield
    except InputError as error:
        if "k(x, x) may reach" not in str(error):
            raise
        reject()


def evaluation_of(
    case, variance=True, optional=True, splits=6, keep=4, backend="numpy", cells=None
):
    """Evaluation of random cells of a case; `optional=False` leaves out the optional bounds."""
    local = LocalPosterior.build(case.posterior, case.region, backend_from_name(backend), variance)
    if cells is None:
        cells = random_cells(case.region, case.rng, splits, keep, backend)
    return Evaluation(local, cells, optional)


@lru_cache(maxsize=2)
def reference_of(posterior):
    """The posterior in ball arithmetic, converted once for all points of a check."""
    return ArbPosterior(posterior)


def remembered(function):
    """A function of a point (and the number of its cell), evaluated once at each."""
    known = {}

    def value(x, *cell):
        key = x.tobytes(), cell
        if key not in known:
            known[key] = function(x, *cell)
        return known[key]

    return value


def displacement(evaluation, index, x):
    """`d = (x - c) / l` in the free features (or in linear features of x), as balls."""
    cells = evaluation.expansion.geometry.cells
    seen = reference_of(evaluation.local.posterior).seen(x)
    center = exact(to_numpy(cells.center)[index])
    return [
        (seen[j] - c) / w
        for j, c, w in zip(cells.region.free, center, exact(units(evaluation)), strict=True)
    ]


def units(evaluation):
    """(f,) what one unit of d is in x: the length-scales, or the exact powers of two of a frame."""
    kernel = evaluation.local.posterior.kernel
    region = evaluation.expansion.geometry.cells.region
    if isinstance(kernel, SquaredExponential):
        return np.broadcast_to(kernel.length_scale, (region.dim,))[region.free]
    return 1.0 / to_numpy(evaluation.local.kernel.inverse_length)


def check_deviation(reference, weights, real, deviation):
    """`|sum_i (y_i - weights_i) k(., z_i)| <= deviation` in the kernel's space, for y = `real`."""
    step = [a - b for a, b in zip(exact(weights), real, strict=True)]
    square = dot(step, [dot(row, step) for row in reference.gram().tolist()])
    assert square.is_finite(), "the reference is not finite"
    assert not square > arb(float(deviation)) ** 2, f"{square.str(10)} above {deviation} squared"


def squared(d):
    return sum((a * a for a in d), arb(0))


def quadratic(gradient, hessian, d):
    """`g.d + d^T H d / 2` from the floats of g and H."""
    g = exact(to_numpy(gradient))
    H = [exact(row) for row in to_numpy(hessian)]
    total = arb(0)
    for j, a in enumerate(d):
        total += a * g[j]
        for k, b in enumerate(d):
            total += a * H[j][k] * b / 2
    return total


def cubic(tensor, d):
    """`T[d, d, d] / 6` from the floats of T."""
    total = arb(0)
    entries, orders = sorted_index(len(d), 3)
    for (j, k, m), order, t in zip(entries, orders, to_numpy(tensor), strict=True):
        total += arb(float(order)) * arb(float(t)) * d[j] * d[k] * d[m] / 6
    return total


def check_model(evaluation, model, function, points, what):
    """`exp(rate |d|^2) q >= value + g.d + d^T H d / 2 - error` at the points of every cell, and the
    same with degree 3, where it is known, and a smaller error; q is a function of a point and the
    number of its cell."""
    for b, rows in enumerate(points):
        error = float(to_numpy(model.error)[b])
        assert not math.isnan(error), f"{what}: the error is NaN"
        if math.isinf(error):
            continue
        tensor = None if model.cubic is None else model.cubic.tensor(np.array([b]))[0]
        for x in rows:
            d = displacement(evaluation, b, x)
            left = (arb(model.rate) * squared(d)).exp() * function(x, b)
            right = arb(float(to_numpy(model.value)[b])) - arb(error)
            right += quadratic(model.gradient[b], model.hessian[b], d)
            assert not left < right, f"{what}: {left.str(20)} < {right.str(20)} at {x}"
            if tensor is not None:
                right += cubic(tensor, d) + arb(float(model.cubic.saved[b]))
                assert not left < right, f"{what} with degree 3: {left.str(20)} at {x}"


def points_of(evaluation, rng, suggested=None):
    """Points of every cell, one list a cell; `suggested` (B, f) are displacements."""
    cells = evaluation.cells
    rows = []
    for b in range(len(cells)):
        extra = None
        if suggested is not None:
            extra = to_numpy(cells.center)[b][None] + to_numpy(suggested)[b][None]
        rows.append(cell_points(cells, b, rng, extra))
    return rows


def unit_mean(evaluation, output=0):
    """What is enclosed in unit form, of a point and the number of its cell: `(mu - shift) / scale`.

    The shift is the offset, or with a trend that of the cell.
    """
    local = evaluation.local
    reference, offset = ArbPosterior(local.unit), local.posterior.offset[output]
    shifts = to_numpy(evaluation.mean(output).units.shift) + np.zeros(len(evaluation.cells))
    scale = arb(local.unit.mean_scale[output])

    def function(x, b):
        moved = arb(float(offset)) - arb(float(shifts[b]))
        return reference.canonical_mean(x, output) + moved / scale

    return function


def check_mean(case, pointwise=True, evaluation=None):
    """Both models of the mean of every output, and its value at the centres."""
    evaluation = evaluation or evaluation_of(case, variance=False, optional=pointwise)
    points = points_of(evaluation, case.rng)
    centers = evaluation.cells.points_full(evaluation.cells.center)
    for c in range(case.posterior.outputs):
        enclosure, g = evaluation.mean(c), remembered(unit_mean(evaluation, c))
        check_model(evaluation, enclosure.below, g, points, "g")
        check_model(evaluation, enclosure.above, lambda x, b, g=g: -g(x, b), points, "-g")
        for b, x in enumerate(centers):
            value, error = to_numpy(enclosure.center)[b], to_numpy(enclosure.center_error)[b]
            gap = abs(g(x, b) - arb(float(value)))
            assert not gap > arb(float(error)), f"centre: off by {gap.str(10)}, said {error}"


def check_variance(case, derivatives=True, evaluation=None):
    """Both models of the variance, its range, and its value at the centres."""
    evaluation = evaluation or evaluation_of(case, optional=derivatives)
    reference = ArbPosterior(case.posterior.unit)  # enclosures are in unit form
    points = points_of(evaluation, case.rng)
    centers = evaluation.cells.points_full(evaluation.cells.center)
    for c in range(case.posterior.outputs):
        enclosure = evaluation.variance(c)
        v = remembered(lambda x, c=c: reference.canonical_variance(x, c))
        check_model(evaluation, enclosure.below, lambda x, _, v=v: v(x), points, "v")
        check_model(evaluation, enclosure.above, lambda x, _, v=v: -v(x), points, "-v")
        low, high = map(to_numpy, enclosure.range)
        for b, rows in enumerate(points):
            for x in rows:
                assert_encloses(low[b], high[b], v(x).max(arb(0)))
        low, high = map(to_numpy, enclosure.at_center)
        for b, x in enumerate(centers):
            assert_encloses(low[b], high[b], v(x).max(arb(0)))
            # the centre's value is that of the precision that bounds are formed with
            error = arb(float(to_numpy(enclosure.center_error)[b]))
            error += arb(float(to_numpy(enclosure.lost)[b]))
            assert not abs(v(x) - arb(float(to_numpy(enclosure.center)[b]))) > error


def check_goal(case, goal, function, evaluation, target=None):
    """`bound().lower <= goal` on every cell, also at its own `point`; `ceiling >= goal` there."""
    function = remembered(function)
    bound = goal.bound(evaluation, target)
    lower = to_numpy(bound.lower)
    for b, rows in enumerate(points_of(evaluation, case.rng, bound.point)):
        for x in rows:
            below(float(lower[b]), function(x), type(goal).__name__)
    ceiling = to_numpy(goal.ceiling(evaluation))
    for b, x in enumerate(evaluation.cells.points_full(evaluation.cells.center)):
        assert not arb(float(ceiling[b])) < function(x), f"ceiling {ceiling[b]} at {x}"
    return bound
