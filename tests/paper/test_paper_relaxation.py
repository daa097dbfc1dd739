"""The relaxation holds every (w(x), k(x, Z)), and its dual every linear function, in 200 bits."""

import numpy as np
from hypothesis import given, settings

from gpcert.enclosures import Evaluation, LocalPosterior
from gpcert.numerics.arrays import Backend, to_numpy
from gpcert.numerics.rounding import TINY
from gpcert.paper.lines import affine_relaxation
from gpcert.paper.lines.algebra import affine_lower_bound
from gpcert.paper.method import PaperMethod
from gpcert.paper.relaxation import (
    Multipliers,
    dual_bound,
    interval_bound,
    sign_multipliers,
)
from gpcert.regions.scaled import ScaledCells
from gpcert.testing.arb_reference import ArbPosterior
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import exact
from gpcert.testing.node_case import cell_points
from tests.enclosures.enclosure_checks import arb, refused_growth
from tests.strategies import any_kernels, cases, random_cells


def intervals_of(case, cells=None, variance=False, how="analytic"):
    with refused_growth():
        local = LocalPosterior.build(case.posterior, case.region, Backend(), variance)
    cells = random_cells(case.region, case.rng, 4, 3) if cells is None else cells
    return PaperMethod(how).of(Evaluation(local, cells)), cells


def dot(floats, balls):
    total = arb(0)
    for a, b in zip(floats, balls, strict=True):
        total += arb(float(a)) * b
    return total


@settings(max_examples=examples(40))
@given(case=cases())
def test_planes_hold_the_kernel(case):
    """`under + U.w <= k(x, z_i) <= over + O.w` with w = (e, e^2) in ball arithmetic."""
    intervals, cells = intervals_of(case)
    (relaxation,) = [own.relaxation for own in intervals.programs]
    reference = ArbPosterior(case.posterior.unit)
    unit = exact(to_numpy(relaxation.lifted.unit))
    free = case.region.free
    for b in range(len(cells)):
        center = exact(to_numpy(cells.center)[b])
        for x in cell_points(cells, b, case.rng):
            e = [(a - c) / u for a, c, u in zip(exact(x[free]), center, unit, strict=True)]
            w = [*e, *(a * a for a in e)]
            for i, k in enumerate(reference.row(x)):
                assert not arb(float(relaxation.low[b, i])) > k
                assert not arb(float(relaxation.high[b, i])) < k
                under, over = relaxation.under, relaxation.over
                assert not arb(float(under.intercept[b, i])) + dot(under.slopes[b, i], w) > k
                assert not arb(float(over.intercept[b, i])) + dot(over.slopes[b, i], w) < k


def check_duals(case, rng, multipliers):
    """Bounds of random and of the model's own linear functions, at points of every cell."""
    intervals, cells = intervals_of(case)
    (relaxation,) = [own.relaxation for own in intervals.programs]
    N = len(case.posterior.points)
    c = np.concatenate([case.posterior.weights, rng.normal(size=(3, N)), np.eye(N)[:1]])
    bounds = [
        dual_bound(relaxation, c, sign_multipliers(c)).lower,
        interval_bound(relaxation, c),
        *(dual_bound(relaxation, c, m).lower for m in multipliers(relaxation, c)),
    ]
    reference = ArbPosterior(case.posterior.unit)
    for b in range(len(cells)):
        for x in cell_points(cells, b, case.rng)[:6]:
            row = reference.row(x)
            for m, each in enumerate(c):
                value = dot(each, row)
                for bound in bounds:
                    assert not np.isnan(bound[b, m])
                    assert not arb(float(bound[b, m])) > value


def wild(relaxation, c):
    """Perturbed, random, huge, infinite, negative and undefined multipliers."""
    rng = np.random.default_rng(7)
    signs = sign_multipliers(c)
    shape = (len(relaxation), *c.shape)
    noise = rng.normal(size=(2, *shape))
    yield Multipliers(signs.under + 1e-9 * noise[0], signs.over + 1e-9 * noise[1])
    yield Multipliers(signs.under * (1.0 + 0.3 * noise[0]), signs.over * (1.0 + 0.3 * noise[1]))
    yield Multipliers(*(np.abs(c) * noise))
    yield Multipliers(*(1e12 * noise))
    yield Multipliers(*(1e200 * noise))
    broken = noise.copy()
    broken[:, :, ::2] = np.nan
    broken[:, :, :, ::3] = np.inf
    yield Multipliers(*broken)


@settings(max_examples=examples(40))
@given(case=cases())
def test_any_multipliers_bound_squared_exponentials(case):
    check_duals(case, case.rng, wild)


@settings(max_examples=examples(60))
@given(case=cases(max_points=5, make_kernels=any_kernels))
def test_any_multipliers_bound_any_kernel(case):
    check_duals(case, case.rng, wild)


@settings(max_examples=examples(40))
@given(case=cases(make_kernels=any_kernels))
def test_signs_are_never_looser_than_the_mean_bound(case):
    """The same bound as `affine_lower_bound`, the parts of a sum tied by the common x."""
    intervals, cells = intervals_of(case)
    (relaxation,) = [own.relaxation for own in intervals.programs]
    node, frame = intervals.tree
    reach = ScaledCells.in_frame(cells, frame)
    lines = affine_relaxation(node.at(reach))
    for t in case.posterior.weights:
        mine = np.maximum(
            dual_bound(relaxation, t[None], sign_multipliers(t[None])).lower[:, 0],
            interval_bound(relaxation, t[None])[:, 0],
        )
        theirs = affine_lower_bound(lines, t)
        known = np.isfinite(theirs)
        size = np.abs(t) @ np.maximum(np.abs(lines.low), np.abs(lines.high)).T
        slopes = [np.abs(s) * c.magnitude() for c, s in lines.under.slopes]
        slopes += [np.abs(s) * c.magnitude() for c, s in lines.over.slopes]
        size = size + sum((part @ np.abs(t) for part in slopes), np.zeros(len(size)))
        assert np.all(mine[known] >= theirs[known] - 1e-9 * size[known] - 8.0 * TINY)
