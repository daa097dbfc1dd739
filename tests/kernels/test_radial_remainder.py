"""Degrees 3 and 4 of radial sums as tensors, and what they leave, against plain evaluation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert
from gpcert import Box, Posterior
from gpcert.kernels import Matern, RationalQuadratic
from gpcert.kernels.nodes.moments import MomentTable, form_size, sorted_index
from gpcert.kernels.nodes.radial_variations import RangeMaximum, fifth
from gpcert.numerics.arrays import Backend
from gpcert.regions.cells import Frame
from gpcert.regions.scaled import ScaledCells
from gpcert.testing.arb_reference import ArbPosterior
from gpcert.testing.effort import examples, variants

KERNELS = [Matern(1.0, nu=nu) for nu in (0.5, 1.5, 2.5, 3.5, 5.5)]
KERNELS += [RationalQuadratic(0.7, alpha=0.5), RationalQuadratic(1.3, alpha=1e4)]


def batch_of(kernel, points, center, half):
    box = Box(center - half, center + half)
    frame = Frame.of(box, kernel.typical_lengths(points.shape[1]), Backend())
    node = kernel.node(points, frame)
    return node.at(ScaledCells.in_frame(box.root(Backend()), frame)), frame


def left_of_degree_two(batch, frame, kernel, points, weights, center, X):
    """`sum_i a_i k(x, z_i)` less its polynomial, in floating point."""
    jet = batch.contract(weights[None])
    d = (X - center) / frame.unit
    bend = np.einsum("ni,ij,nj->n", d, jet.hessian[0], d)
    polynomial = jet.value[0] + d @ jet.gradient[0] + 0.5 * bend
    return kernel.value(X, points) @ weights - polynomial


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from(KERNELS), st.integers(1, 4), st.integers(0, 2**31))
def test_the_remainder_of_a_sum_is_bounded(kernel, d, seed):
    rng = np.random.default_rng(seed)
    points = rng.uniform(-2.0, 2.0, (30, d))
    center, half = rng.uniform(-1.0, 1.0, d), rng.choice([0.02, 0.2, 0.6]) * np.ones(d)
    batch, frame = batch_of(kernel, points, center, half)
    third = batch.variations()[3]
    weights = np.where(np.isfinite(third[0]), rng.normal(size=30) * rng.choice([1, 100]), 0.0)
    bound = float(batch.second_order_remainder(weights[None], third).size[0])
    corners = center + half * rng.choice([-1.0, 1.0], (60, d))
    X = np.concatenate([corners, rng.uniform(center - half, center + half, (60, d))])
    found = left_of_degree_two(batch, frame, kernel, points, weights, center, X)
    assert np.abs(found).max() <= bound + 1e-11 * np.abs(weights).sum()
    some = weights != 0
    assert bound <= (np.abs(weights[some]) * third[0][some]).sum() / 6.0 * (1 + 1e-9)


@pytest.mark.parametrize("kernel", KERNELS[1:], ids=repr)
def test_the_own_function_is_bounded_and_nearly_so(kernel):
    center = np.zeros(2)
    for half in (0.01, 0.1, 0.5, 2.0):
        batch, frame = batch_of(kernel, np.ones((1, 2)), center, np.full(2, half))
        bound = float(batch.diagonal_second_order_remainder()[0])
        jet = batch.diagonal_jet()[0]
        x = np.array([[half, half]])
        d = (x / frame.unit)[0]
        value = 1.0 + 0.5 * d @ jet.hessian[0] @ d
        left = abs(float(kernel.value(x, center[None])[0, 0]) - value)
        assert left <= bound + 1e-15
        if half == 0.01:
            assert bound <= 1.6 * left + 1e-14  # the leading term is exact; Matern 3/2: order 3


def test_moments_about_a_centre_are_those_of_the_differences():
    rng = np.random.default_rng(0)
    points, centers, a = rng.normal(size=(7, 3)), rng.normal(size=(2, 3)), rng.normal(size=(2, 7))
    moments = MomentTable(points)
    for degree in (1, 2, 3, 4):
        found = moments.centred(moments.raw(a, 4), centers, degree)
        entries = sorted_index(3, degree).entries
        for b in range(2):
            u = points - centers[b]
            real = [(a[b] * np.prod(u[:, row], axis=1)).sum() for row in entries]
            assert np.allclose(found[b], real, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("degree", [3, 4])
def test_forms_stay_below_their_size(degree):
    rng = np.random.default_rng(1)
    entries, orders = sorted_index(3, degree)
    tensor, half = rng.normal(size=(1, len(orders))), rng.uniform(0.1, 1.0, (1, 3))
    rho = np.sqrt((half**2).sum(1))
    size = form_size(tensor, half, rho, degree)[0]
    d = rng.uniform(-1.0, 1.0, (2000, 3)) * half
    forms = np.prod(d[:, entries], axis=2) @ (orders * tensor[0])
    assert np.abs(forms).max() <= size


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_fifth_derivatives_by_angle_and_distance(kernel):
    profile, rng = kernel.profile, np.random.default_rng(2)
    tau = np.linspace(-1.0, 1.0, 401)[:, None]
    bounds = RangeMaximum.of(lambda low, high: fifth(profile, low, high))
    for _ in range(20):
        low = rng.uniform(0.0, 5.0) * rng.choice([1.0, 1e-3])
        high = low + rng.uniform(0.0, 2.0) * rng.choice([1.0, 1e-3])
        A, B, C = profile.terms(np.linspace(low, high, 200), (5, 5), (4, 3), (3, 1))
        real = np.abs(A * tau**5 - 10.0 * B * tau**3 + 15.0 * C * tau).max()
        found = float(bounds.over(np.asarray([low]), np.asarray([high]))[0])
        assert real <= found * (1 + 1e-12)
        if low > 0.05:
            assert found <= 1.25 * real


@variants("kernel", [KERNELS[k] for k in (1, 5, 3, 2, 4, 6)], quick=3, ids=repr)
def test_one_point_on_a_line_is_bounded_to_the_last_percent(kernel):
    """All orders of one sign at one end of the cell: nothing in the bound may be missing."""
    half = 0.05
    for at in np.linspace(0.2, 4.0, 77):
        batch, frame = batch_of(kernel, np.array([[at]]), np.zeros(1), np.full(1, half))
        third = batch.variations()[3]
        one = np.ones(1)
        beyond = batch.second_order_remainder(one[None], third)
        bound, rest = float(beyond.size[0]), float(beyond.cubic.rest[0])
        ends = np.array([[-half], [half]])
        left = left_of_degree_two(batch, frame, kernel, np.array([[at]]), one, np.zeros(1), ends)
        assert np.abs(left).max() <= bound + 5e-16
        cubic = beyond.cubic.tensor[0, 0] * (ends[:, 0] / frame.unit[0]) ** 3 / 6.0
        assert np.abs(left - cubic).max() <= rest + 5e-16


@pytest.mark.parametrize("size", [1e-150, 1e-163, 1e-170, 1e-250])
def test_tensors_whose_squares_vanish_are_counted(size):
    """The Frobenius norm of entries below 1e-162 is not 0, though all their squares are."""
    tensor, half, rho = np.full((1, 1), size), np.full((1, 1), 0.25), np.full(1, 0.25)
    for degree in (3, 4):
        assert form_size(tensor, half, rho, degree)[0] >= size * 0.25**degree


@pytest.mark.parametrize("small", [3.8e-163, 1e-163, 1e-164])
def test_small_weights_beside_a_large_one_far_away(small):
    """In units in which the largest weight is one the others' tensors are below 1e-160: bounds
    were off by 6e-4 of a mean of -13."""
    Z = np.array([1.49, -1.46, 1.17, 0.7, -0.31, -1.9, 3000.0])[:, None]
    weights = np.append(small * np.array([5.61, -21.36, 2.32, 0.28, -13.7, 21.76]), 1.0)
    model = Posterior(Matern(1.0, nu=2.5), Z, weights, scale=1.0 / small)
    reference = ArbPosterior(model)
    for half in (0.1, 0.2):
        box = Box([-1.22 - half], [-1.22 + half])
        found = gpcert.prediction_range(model, box, tol=1e-9, budget=gpcert.Budget(boxes=1))
        for x in np.linspace(box.lower, box.upper, 17):
            value = reference.mean(x)
            assert not value < found.minimum.lower
            assert not value > found.maximum.upper
