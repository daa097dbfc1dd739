"""Sizes and errors of products: Leibniz' rule with errors that are large, missing or infinite."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert
from gpcert.kernels.composite import Sum
from gpcert.kernels.linear import Linear
from gpcert.kernels.nodes.composite import bilinear_errors
from gpcert.kernels.sizes import euclidean, frobenius, leibniz, times, total
from gpcert.kernels.spectral import Cosine
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import Backend
from gpcert.regions import Ball, Box
from gpcert.regions.cells import Frame
from gpcert.regions.scaled import ScaledCells
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import exact, flint

sizes = st.one_of(st.just(0.0), st.floats(1e-200, 1e200), st.sampled_from([1e-320, math.inf]))
numbers = st.one_of(st.just(0.0), st.floats(-1e3, 1e3), st.floats(-1e-160, 1e-160))
signs = st.lists(st.sampled_from([-1.0, 0.3, 1.0]), min_size=3, max_size=3)
triples = st.lists(numbers, min_size=3, max_size=3)


def derivatives(p, q):
    """Value, slope and curvature of a product of functions of one variable, exactly."""
    return [
        p[0] * q[0],
        p[1] * q[0] + p[0] * q[1],
        p[2] * q[0] + 2 * p[1] * q[1] + p[0] * q[2],
    ]


@settings(max_examples=examples(150), deadline=None)
@given(p=triples, q=triples, e=triples, h=triples, s=signs, t=signs)
def test_errors_of_a_product_cover_the_worst_case(p, q, e, h, s, t):
    """Whatever the factors' errors are, up to their bounds; the product's floats lie within."""
    arb = flint().arb
    errors = [np.abs(np.asarray(a)) for a in (e, h)]
    found = [
        [a + arb(sign) * arb(float(x)) for a, sign, x in zip(exact(v), w, size, strict=True)]
        for v, w, size in ((p, s, errors[0]), (q, t, errors[1]))
    ]
    real = derivatives(exact(p), exact(q))
    off = derivatives(*found)
    bounds = bilinear_errors(
        ([np.abs(np.array([x])) for x in p], [np.abs(np.array([x])) for x in q]),
        ([np.array([x]) for x in errors[0]], [np.array([x]) for x in errors[1]]),
        1,
    )
    for n in range(3):
        assert not abs(off[n] - real[n]) > arb(float(bounds[n][0])), f"order {n}"


@settings(max_examples=examples(100), deadline=None)
@given(a=sizes, b=sizes)
def test_times_rounds_up_and_knows_absence(a, b):
    found = float(times(np.array([a]), np.array([b]))[0])
    if a == 0 or b == 0:
        assert found == 0.0
    elif math.isinf(a) or math.isinf(b):
        assert found == math.inf
    else:
        assert not flint().arb(found) < flint().arb(a) * flint().arb(b)


@settings(max_examples=examples(60), deadline=None)
@given(
    first=st.lists(sizes, min_size=4, max_size=4), second=st.lists(sizes, min_size=4, max_size=4)
)
def test_leibniz_is_an_upper_bound_without_nan(first, second):
    arb = flint().arb
    arrays = [[np.array([x]) for x in row] for row in (first, second)]
    for n in range(4):
        found = float(leibniz(*arrays, n)[0])
        assert not math.isnan(found)
        pairs = [(first[j], second[n - j], math.comb(n, j)) for j in range(n + 1)]
        pairs = [(a, b, c) for a, b, c in pairs if a > 0 and b > 0]
        if any(math.isinf(a) or math.isinf(b) for a, b, _ in pairs):
            assert found == math.inf
        else:
            real = arb(0)
            for a, b, c in pairs:
                real = real + c * arb(a) * arb(b)
            assert not arb(found) < real
            assert pairs or found == 0.0
    assert not np.isnan(total(arrays[0])).any()


@settings(max_examples=examples(60), deadline=None)
@given(rows=st.lists(st.one_of(numbers, st.floats(-1e180, 1e180)), min_size=4, max_size=4))
def test_norms_are_upper_bounds(rows):
    arb = flint().arb
    real = arb(0)
    for x in exact(rows):
        real = real + x * x
    row = np.asarray(rows)
    found = [euclidean(row[None])[0], frobenius(row.reshape(1, 2, 2))[0]]
    for bound in found:
        assert not arb(float(bound)) < real.sqrt()
        assert np.any(row) or bound == 0.0
    assert euclidean(np.zeros((2, 0))).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("ball", [False, True])
@pytest.mark.parametrize(
    ("fast", "seen", "step"),
    [
        (Cosine([0.0, 1e200]), Linear([1e4, 0.0]), 50.0),  # half-widths whose squares overflow
        (Cosine([0.0, 1e307]), Cosine([5.0, 0.0]), 1.89),  # or that do themselves
    ],
    ids=["squares", "widths"],
)
def test_features_without_weight_may_be_beyond_float64(fast, seen, step, ball):
    """Zero times infinity is not a number, and what is not known must not count as zero."""
    kernel = Sum((fast, seen))
    at, half = np.asarray([0.5, 0.0]), np.asarray([0.5, 1e10])
    region = Ball(at, 0.5) if ball else Box(at - half, at + half)
    frame = Frame.of(region, kernel.typical_lengths(2), Backend())
    with np.errstate(over="ignore"):
        geometry = ScaledCells.in_frame(region.root(), frame)
    assert seen.node(at[None], frame).derivative_bounds(geometry).remainder(0)[0] >= step


def test_range_of_a_mean_whose_parts_differ_by_200_orders_of_magnitude():
    """A linear function over a feature that it does not see, in units of a fast cosine."""
    kernel = Sum((Cosine([0.0, 1e200]), Linear([1e4, 0.0])))
    points, weights = np.asarray([[0.3, 0.0], [0.5, 0.0]]), np.asarray([[1.0, 0.5]])
    posterior = Posterior(kernel, points, weights, np.zeros((1, 2)))
    budget = gpcert.Budget(boxes=1)
    found = gpcert.prediction_range(
        posterior, region=Box([0.0, 0.0], [1.0, 1.0]), quantity="mean", budget=budget
    )
    corner = float(kernel.value(np.asarray([[1.0, 0.0]]), points)[0] @ weights[0])
    assert found.maximum.upper >= corner  # 5501.5
