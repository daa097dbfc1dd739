"""The paper's mean bound on trees of kernels: exact for linear ones, second order for products."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.kernels.active_dimensions import ActiveDimensions
from gpcert.kernels.composite import Product, Scale, Sum
from gpcert.kernels.constant import Constant, White
from gpcert.kernels.linear import Linear, Polynomial
from gpcert.numerics.arrays import Backend, backend_from_name, to_numpy
from gpcert.paper.lines import affine_relaxation
from gpcert.paper.lines.algebra import (
    affine_lower_bound,
    combined,
    negated,
    product_enclosed,
)
from gpcert.paper.lines.carriers import Affine, AffineRelaxation, Carrier
from gpcert.regions import Ball, Box
from gpcert.regions.cells import Frame
from gpcert.regions.scaled import ScaledCells
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import exact, flint

LINEAR = (
    Linear([1.0, 0.5, 2.0], center=0.2),
    Sum((Linear(1.0), Constant(2.0), White(1.0))),
    Scale(ActiveDimensions(Linear([1.0, 3.0], [0.1, 0.2]), (2, 0)), 0.7),
    Polynomial(1, 2.0, 0.5),
)


def lower_bound(kernel, points, region, weights, backend=None):
    frame = Frame.of(region, kernel.typical_lengths(points.shape[1]), backend or Backend())
    batch = kernel.node(points, frame).at(
        ScaledCells.in_frame(region.root(backend or Backend()), frame)
    )
    return to_numpy(affine_lower_bound(affine_relaxation(batch), frame.backend.asarray(weights)))


@pytest.mark.parametrize("kernel", LINEAR)
@pytest.mark.parametrize("norm", [1.0, 2.0, np.inf])
def test_linear_functions_have_their_exact_minimum(kernel, norm):
    """Over boxes and balls; below it, by rounding only."""
    rng = np.random.default_rng(0)
    points, weights, at = rng.normal(size=(6, 3)), rng.normal(size=6), rng.normal(size=3)
    region = Ball(at, 0.7, norm)
    bound = lower_bound(kernel, points, region, weights)[0]
    slope = weights @ kernel.gradient(at[None], points)[0]
    dual = {1.0: np.inf, 2.0: 2, np.inf: 1}[norm]
    least = weights @ kernel.value(at[None], points)[0] - 0.7 * np.linalg.norm(slope, dual)
    size = np.abs(weights) @ np.abs(kernel.value(at[None], points)[0]) + 1.0
    assert bound <= least + 1e-13 * size
    assert bound >= least - 1e-11 * size


@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_the_gap_of_a_product_is_of_second_order(name):
    """Half the width, a quarter of the gap: McCormick's lines touch at the ends."""
    if name == "torch":
        pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    kernel = Sum((Product((Linear(1.0), Linear([1.0, 2.0], 0.3))), Polynomial(3, 0.2, 1.0)))
    points, weights, at = rng.normal(size=(5, 2)), rng.normal(size=5), rng.normal(size=2)
    gaps = []
    for width in (1e-2, 1e-3):
        region = Box(at - width, at + width)
        bound = lower_bound(kernel, points, region, weights, backend_from_name(name))[0]
        corners = at + width * np.array([[s, t] for s in (-1, 1) for t in (-1, 1)])
        sampled = np.concatenate([corners, region.sample(2000, rng)])
        gaps.append((kernel.value(sampled, points) @ weights).min() - bound)
    assert 0 <= gaps[1] <= 0.02 * gaps[0]


class Coordinate(Carrier):
    """phi(x, z_i) = x on cells [-r, r] of the line: an honest carrier, in rational numbers."""

    def __init__(self, radius, count):
        self.radius, self.count = np.asarray(radius), count

    def minimum(self, coefficients):
        return -np.abs(coefficients.sum(axis=1)) * self.radius * (1 + 1e-12) - 1e-300

    def magnitude(self):
        return np.repeat(self.radius[:, None], self.count, axis=1)


def enclosed_line(offset, slope, slack, carrier, shape):
    """`k = offset + slope x`, enclosed with some slack on both sides."""
    full = np.full(shape, 1.0)
    wide = abs(slope) * carrier.radius[:, None] * (1 + 1e-12) + slack
    under = Affine((offset - slack) * full, ((carrier, slope * full),))
    over = Affine((offset + slack) * full, ((carrier, slope * full),))
    return AffineRelaxation((offset - wide) * full, (offset + wide) * full, under, over)


numbers = st.floats(-8.0, 8.0).map(lambda x: x if abs(x) > 1e-6 else 0.0)


@settings(max_examples=examples(200), deadline=None)
@given(
    lines=st.lists(st.tuples(numbers, numbers, st.floats(0.0, 1.0)), min_size=2, max_size=2),
    radius=st.sampled_from([0.0, 1e-9, 0.5, 3.0, 1e6]),
    weights=st.tuples(numbers, numbers),
    wiggle=st.tuples(st.floats(-1.0, 1.0), st.floats(-1.0, 1.0)),
)
def test_mccormick_with_all_signs(lines, radius, weights, wiggle):
    """Any functions within the enclosures: their product is within its own, also carriers shared.

    Evaluated in ball arithmetic at points of the cell; no tolerance.
    """
    arb = flint().arb
    carrier = Coordinate([radius], 1)
    parts = [enclosed_line(*line, carrier, (1, 1)) for line in lines]
    values = tuple(np.full((1, 1), offset) for offset, _, _ in lines)
    product = product_enclosed(parts[0], parts[1], values)
    mixed = combined([(np.full((1, 1), t), part) for t, part in zip(weights, parts, strict=True)])
    negative = negated(product)
    for share in (-1.0, -0.3, 0.0, 0.7, 1.0):
        x = arb(radius) * arb(share)
        k = [
            arb(offset) + arb(slope) * x + arb(slack) * arb(w)
            for (offset, slope, slack), w in zip(lines, wiggle, strict=True)
        ]
        both = k[0] * k[1]
        sum_ = arb(weights[0]) * k[0] + arb(weights[1]) * k[1]
        for found, real in ((product, both), (mixed, sum_), (negative, -both)):
            assert not arb(found.low[0, 0]) > real
            assert not arb(found.high[0, 0]) < real
            for line, sign in ((found.under, 1), (found.over, -1)):
                assert len(line.slopes) == 1, "a shared carrier occurs once"
                at = exact(line.intercept)[0] + exact(line.slopes[0][1])[0] * x
                assert not sign * at > sign * real
    for t in (-2.0, 0.3):
        for found, real in ((product, both), (mixed, sum_)):
            assert not arb(affine_lower_bound(found, np.array([t]))[0]) > arb(t) * real


def test_nothing_known_is_no_nan():
    """Infinite intervals and lines: the answer is what remains, or -inf, never NaN."""
    carrier = Coordinate([1.0, 1.0], 1)
    column = np.array([[0.0], [2.0]])
    unknown = AffineRelaxation(
        np.full((2, 1), -math.inf),
        np.full((2, 1), math.inf),
        Affine(np.full((2, 1), -math.inf), ((carrier, np.zeros((2, 1))),)),
        Affine(np.full((2, 1), math.inf), ((carrier, np.zeros((2, 1))),)),
    )
    known = AffineRelaxation(column, column, Affine(column, ()), Affine(column, ()))
    zero = np.zeros((2, 1))
    for a, b in ((unknown, known), (known, unknown), (unknown, unknown), (negated(unknown), known)):
        product = product_enclosed(a, b, (zero, zero))
        for array in (product.low, product.high, product.under.intercept, product.over.intercept):
            assert not np.isnan(array).any()
        for t in (-1.0, 0.0, 1.0):
            bound = affine_lower_bound(product, np.array([t]))
            assert not np.isnan(bound).any()
            assert t != 0.0 or np.all(bound <= 0.0)
    product = product_enclosed(unknown, known, (zero, zero))
    assert product.low[0, 0] <= 0.0 <= product.high[0, 0], "0 times the unknown is 0"
    assert product.high[0, 0] < 1e-290
    assert product.low[1, 0] == -math.inf
    assert affine_lower_bound(product, np.array([1.0]))[1] == -math.inf


@pytest.mark.parametrize("width", [1e6, 1e60, 1e150])
def test_huge_cells_overflow_without_nan(width):
    """Degree six over cells of size 1e150: sizes overflow to infinity."""
    rng = np.random.default_rng(2)
    kernel = Product(
        (Polynomial(6, 1.0, 1.0), Sum((Linear(1.0), Scale(Polynomial(6, 1.0, 1.0), 2.0))))
    )
    points = rng.normal(size=(4, 2))
    region = Box([-width, -1.0], [width, 1.0])
    frame = Frame.of(region, kernel.typical_lengths(2), Backend())
    node, reach = kernel.node(points, frame), ScaledCells.in_frame(region.root(), frame)
    sizes, batch = node.derivative_bounds(reach), node.at(reach)
    lines = affine_relaxation(batch)
    bound = affine_lower_bound(lines, rng.normal(size=4))
    arrays = [sizes.remainder(n) for n in range(3)] + list(sizes.lengths) + list(batch.variations())
    arrays += [*batch.sizes, *batch.errors, lines.low, lines.high, bound]
    for line in (lines.under, lines.over):
        arrays += [line.intercept, *[slope for _, slope in line.slopes]]
    for array in arrays:
        assert not np.isnan(np.asarray(array)).any()
