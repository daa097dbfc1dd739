"""The parts of a plain Taylor model, for every kernel, in ball arithmetic."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.kernels import ExponentialTilt
from gpcert.kernels.expansions.taylor import LocalTaylor
from gpcert.kernels.expansions.taylor_terms import CenterTerm
from gpcert.numerics.arrays import Backend, to_numpy
from gpcert.regions import Box
from gpcert.regions.cells import Frame
from gpcert.testing.arb_reference import kernel_reference
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import exact, flint
from tests.strategies import any_kernels, seeds, units

arb = flint().arb
trees = st.integers(1, 3).flatmap(lambda d: st.tuples(st.just(d), any_kernels(d)))


def plain_taylor(kernel, points, region):
    """The plain Taylor model of any kernel, also of those that have a better one."""
    frame = Frame.of(region, kernel.typical_lengths(points.shape[1]), Backend())
    return LocalTaylor.build(kernel.node(points, frame), frame, region, len(points))


def situation(d, kernel, seed, size):
    """A kernel around one box, the box's centre and points of it."""
    rng = np.random.default_rng(seed)
    lengths = units(kernel, d)
    center = lengths * rng.normal(size=d)
    half = size * lengths * rng.random(d) * (rng.random(d) < 0.8)
    region = Box(center - half, center + half)
    local = plain_taylor(kernel, center[None], region)
    expansion = local.expand(region.root())
    middle = region.root().points_full(region.root().center)[0]
    corners = np.where(rng.random((3, d)) < 0.5, region.lower, region.upper)
    return region, local, expansion, middle, np.concatenate([corners, region.sample(3, rng)])


def moved(region, local, x, center):
    """d, exactly."""
    free = region.free
    unit = exact(1.0 / to_numpy(local.inverse_length))
    gaps = zip(exact(x[free]), exact(center[free]), unit, strict=True)
    return [(a - c) / u for a, c, u in gaps]


def polynomial(d, gradient, hessian):
    """`g.d + d^T H d / 2`."""
    total = arb(0)
    for i, a in enumerate(d):
        total += a * arb(float(gradient[i]))
        for j, b in enumerate(d):
            total += a * b * arb(float(hessian[i, j])) / 2
    return total


@settings(max_examples=examples(150), deadline=None)
@given(tree=trees, seed=seeds, size=st.sampled_from([0.0, 1e-6, 0.1, 1.0, 5.0]))
def test_squared_step(tree, seed, size):
    """`||phi(x) - phi(c)||^2 = k(x, x) - 2 k(x, c) + k(c, c) <= d^T M d + error`."""
    kernel = tree[1]
    region, local, expansion, center, points = situation(*tree, seed, size)
    form = local.squared_step(expansion)
    assert np.isfinite(form.error[0])
    c = exact(center)
    for x in points:
        at = exact(x)
        step = kernel_reference(kernel, at, at) - 2 * kernel_reference(kernel, at, c)
        step += kernel_reference(kernel, c, c)
        d = moved(region, local, x, center)
        none = np.zeros(len(d))
        bound = polynomial(d, none, 2.0 * form.matrix[0]) + arb(float(form.error[0]))
        assert not step > bound


@settings(max_examples=examples(150), deadline=None)
@given(tree=trees, seed=seeds, size=st.sampled_from([0.0, 1e-6, 0.1, 1.0, 5.0]))
def test_own_term(tree, seed, size):
    """k(x, c) against its jet at c, with and without the derivatives."""
    kernel = tree[1]
    region, local, expansion, center, points = situation(*tree, seed, size)
    own = CenterTerm.of(expansion.batch, expansion.sizes)
    value, slope, bend = (np.asarray(e)[0] for e in own.errors)
    c = exact(center)
    for x in points:
        real = kernel_reference(kernel, exact(x), c)
        alone = arb(float(own.jet.value[0]))
        lost = arb(float(own.value_only[0])) + arb(float(value))
        assert not abs(real - alone) > lost
        if not np.isfinite(own.with_jet[0]):
            continue
        d = moved(region, local, x, center)
        length = sum((a * a for a in d), arb(0)).sqrt()
        rounding = arb(float(slope)) * length + arb(float(bend)) * length**2 / 2
        model = alone + polynomial(d, own.jet.gradient[0], own.jet.hessian[0])
        assert not abs(real - model) > arb(float(own.with_jet[0])) + arb(float(value)) + rounding


def test_step_of_a_kernel_that_grows():
    """For e^{x + y} the step is (e^{c+1} - e^c)^2 exactly, and both of Young's terms count."""
    kernel, region = ExponentialTilt([1.0]), Box([-1.0], [1.0])
    local = plain_taylor(kernel, np.zeros((1, 1)), region)
    form = local.squared_step(local.expand(region.root()))
    unit = 1.0 / float(to_numpy(local.inverse_length)[0])
    bound = form.matrix[0, 0, 0] / unit**2 + form.error[0]
    assert np.expm1(1.0) ** 2 <= bound <= 4.0 * np.expm1(1.0) ** 2
    cells = region.root().split(np.array([0]))  # small cells: the quadratic form, not a constant
    for _ in range(3):
        cells = cells.split(np.zeros(len(cells), dtype=int))
    expansion = local.expand(cells)
    form = local.squared_step(expansion)
    for b, (c, h) in enumerate(zip(cells.center[:, 0], cells.half[:, 0], strict=True)):
        assert form.matrix[b, 0, 0] > 0.0
        step = (np.exp(c + h) - np.exp(c)) ** 2
        assert step <= form.matrix[b, 0, 0] * (h / unit) ** 2 + form.error[b]
