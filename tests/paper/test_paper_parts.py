"""The pieces of the dual bound where they are sharp: rounding must be counted in each of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.kernels import Periodic, SquaredExponential
from gpcert.numerics.arrays import Backend
from gpcert.paper.lifted import LiftedBox, lift
from gpcert.paper.lines import affine_relaxation
from gpcert.paper.variance import SquareForm, variance_interval
from gpcert.regions import Ball, Box
from gpcert.regions.cells import Frame
from gpcert.regions.scaled import ScaledCells
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import exact
from tests.enclosures.enclosure_checks import arb

seeds = st.integers(0, 2**32 - 1)


def box_of(rng, angles=0, factors=0):
    f = 3
    half = 10.0 ** rng.uniform(-3, 1, (1, f))
    region = Box(-half[0], half[0])
    spreads = rng.uniform(0.0, 4.0, (1, angles))
    least = rng.uniform(0.1, 1.0, (1, factors))
    return LiftedBox(half, spreads, least, 2.0 * least, region.root(), np.ones(f))


@settings(max_examples=examples(200))
@given(seed=seeds)
def test_parabolas_are_bounded_at_their_exact_minimum(seed):
    rng = np.random.default_rng(seed)
    box = box_of(rng)
    half = box.half[0]
    c = rng.normal(size=3)
    g = 2.0 * np.abs(c) * half * rng.choice([1e-3, 0.5, 0.999999, 1.0, 1.5], 3)
    g = g * rng.choice([-1.0, 1.0], 3)
    coefficients = np.concatenate([g, c])[None, None]
    lower = float(box.minimum(coefficients, 0.0 * coefficients)[0, 0])
    least = arb(0)
    for slope, bend, h in zip(exact(g), exact(c), exact(half), strict=True):
        if bend > 0 and abs(slope) < 2 * bend * h:
            least -= slope * slope / (4 * bend)
        else:
            least += bend * h * h - abs(slope) * h
    assert not arb(lower) > least
    assert float(least - arb(lower)) <= 1e-13 * float(
        np.sum(np.abs(c) * half**2 + np.abs(g) * half)
    )


@settings(max_examples=examples(100))
@given(seed=seeds)
def test_arcs_and_factors_are_bounded(seed):
    rng = np.random.default_rng(seed)
    box = box_of(rng, 2, 2)
    coefficients = rng.normal(size=(1, 1, box.columns))
    lower = float(box.minimum(coefficients, 0.0 * coefficients)[0, 0])
    for _ in range(30):
        e = box.half[0] * rng.choice([-1.0, 1.0, rng.uniform(-1, 1)], 3)
        a = box.spreads[0] * rng.choice([-1.0, 1.0, rng.uniform(-1, 1)], 2)
        s = rng.choice([1.0, 2.0], 2) * box.least[0]
        displacement = exact(e)
        w = [*displacement, *(x * x for x in displacement)]
        w += [*(x.cos() for x in exact(a)), *(x.sin() for x in exact(a)), *exact(s)]
        value = sum((c * x for c, x in zip(exact(coefficients[0, 0]), w, strict=True)), arb(0))
        assert not arb(lower) > value


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_a_ball_is_smaller_than_its_box(norm):
    root = Ball([0.0, 0.0], 1.0, norm=norm).root()
    none = np.zeros((1, 0))
    box = LiftedBox(root.half, none, none, none, root, np.ones(2))
    flat = np.array([[[3.0, 4.0, 0.0, 0.0]]])
    expected = -5.0 if norm == 2.0 else -4.0
    assert float(box.minimum(flat, 0.0 * flat)[0, 0]) == pytest.approx(expected, abs=1e-9)


@settings(max_examples=examples(60))
@given(seed=seeds)
def test_errors_of_coefficients_are_counted(seed):
    rng = np.random.default_rng(seed)
    box = box_of(rng, 1, 1)
    true = rng.normal(size=(1, 1, box.columns))
    errors = 0.1 * rng.random(true.shape)
    seen = true + errors * rng.choice([-1.0, 1.0], true.shape)
    assert box.minimum(seen, errors)[0, 0] <= box.minimum(true, 0.0 * true)[0, 0] + 1e-9


def square(form, r):
    total = arb(0)
    for row in form.factor:
        product = sum((a * x for a, x in zip(exact(row), exact(r), strict=True)), arb(0))
        total += product * product
    return total


def linear(form, r):
    return sum((a * x for a, x in zip(exact(form.c[0]), exact(r), strict=True)), arb(0)) + arb(
        float(form.constant[0])
    )


@settings(max_examples=examples(150))
@given(seed=seeds)
def test_tangent_where_it_touches(seed):
    rng = np.random.default_rng(seed)
    rows, N = rng.integers(1, 5), 4
    A = rng.normal(size=(rows, N)) * 10.0 ** rng.uniform(-3, 3)
    form, r = SquareForm.build(A, 1.0, Backend()), rng.normal(size=N)
    tangent = form.tangent((A @ r)[None], np.abs(r)[None])
    value = square(form, r)
    assert not linear(tangent, r) > value
    assert float(value - linear(tangent, r)) <= 1e-13 * float(np.sum(np.abs(A) @ np.abs(r)) ** 2)


@settings(max_examples=examples(150))
@given(seed=seeds)
def test_chords_at_their_ends(seed):
    rng = np.random.default_rng(seed)
    rows, N = rng.integers(1, 5), 4
    A = rng.normal(size=(rows, N))
    form, r = SquareForm.build(A, 1.0, Backend()), rng.normal(size=N)
    ends = []
    for u in form.vectors:
        product = sum((a * x for a, x in zip(exact(u), exact(r), strict=True)), arb(0))
        middle = float(product.mid())
        ends.append((np.nextafter(middle, -np.inf), np.nextafter(middle, np.inf)))
    low, high = np.array(ends).T
    for shift in (0.0, 1.0, -1.0):  # u.r at both ends, or at one
        chords = form.chords(
            (low + min(shift, 0.0))[None], (high + max(shift, 0.0))[None], np.abs(r)[None]
        )
        assert not linear(chords, r) < square(form, r)
    assert not arb(float(form.largest(low[None], high[None], np.abs(r)[None])[0])) < square(form, r)


def test_nothing_known_is_no_bound():
    """NaN and minus infinity leave 0 and the prior's variance."""
    for unknown in (np.nan, -np.inf):
        prior, least = np.array([2.0]), np.array([unknown])
        low, high = variance_interval((prior, prior), least, least, 1.0)
        assert (low[0], high[0]) == (0.0, 2.0)
        _, high = variance_interval((prior, prior), least, least, 1.5)
        assert 3.0 <= high[0] < 3.0 + 1e-12


def test_zero_rows_and_infinite_ranges():
    form = SquareForm.build(np.zeros((2, 3)), 1.0, Backend())
    ends, sizes = np.full((1, 2), np.inf), np.full((1, 3), np.inf)
    with np.errstate(invalid="ignore"):
        assert not form.largest(-ends, ends, sizes)[0] < np.inf


@settings(max_examples=examples(60))
@given(seed=seeds)
def test_quadratic_carrier_is_linear_in_lifted_coordinates(seed):
    """`|phi - (constant + G.w)| <= error` with the true distances, in 200 bits."""
    rng = np.random.default_rng(seed)
    d, N = 2, 5
    lengths = 10.0 ** rng.uniform(-1, 1, d)
    points = rng.normal(size=(N, d)) + 100.0 * rng.normal(size=d)
    center = points[0] + 0.3 * rng.normal(size=d)
    half = 10.0 ** rng.uniform(-9, 0) * np.ones(d)
    region = Box(center - half, center + half)
    frame = Frame.of(region, lengths, Backend())
    cells = region.root()
    reach = ScaledCells.in_frame(cells, frame)
    batch = SquaredExponential(lengths).node(points, frame).at(reach)
    ((carrier, _),) = affine_relaxation(batch).under.slopes
    lifted = lift(carrier)
    assert lifted.columns is not None
    x = np.where(rng.random(d) < 0.5, cells.lower[0], cells.upper[0])
    e = [
        (a - c) / u
        for a, c, u in zip(exact(x), exact(cells.center[0]), exact(frame.unit), strict=True)
    ]
    w = [*e, *(a * a for a in e)]
    for i in range(N):
        phi = arb(0)
        for a, z, length in zip(exact(x), exact(points[i]), exact(lengths), strict=True):
            phi += ((a - z) / length) ** 2
        G = [*exact(lifted.slopes[0][0, i]), *exact(lifted.slopes[1][0, i])]
        model = arb(float(lifted.constant[0, i])) + sum(
            (a * b for a, b in zip(G, w, strict=True)), arb(0)
        )
        assert not abs(phi - model) > arb(float(lifted.error[0, i]))
        assert float(lifted.error[0, i]) <= 1e-9 * max(1.0, float(phi))


def test_periodic_carrier_is_linear_in_lifted_coordinates():
    rng = np.random.default_rng(0)
    kernel = Periodic([2.0, 3.0], [1.0, 0.7])
    points = rng.normal(size=(6, 2))
    region = Box([0.1, -0.2], [0.5, 0.4])
    frame = Frame.of(region, kernel.typical_lengths(2), Backend())
    cells = region.root()
    batch = kernel.node(points, frame).at(ScaledCells.in_frame(cells, frame))
    ((carrier, _),) = affine_relaxation(batch).under.slopes
    lifted = lift(carrier)
    (cosines, sines), (spreads,) = lifted.slopes, lifted.ranges
    for x in rng.uniform([0.1, -0.2], [0.5, 0.4], (20, 2)):
        angle = 2.0 * np.pi * (x - cells.center[0]) / [2.0, 3.0]
        assert np.all(np.abs(angle) <= spreads[0] + 1e-12)
        phi = lifted.constant[0] + cosines[0] @ np.cos(angle) + sines[0] @ np.sin(angle)
        np.testing.assert_allclose(np.exp(phi), kernel.value(x[None], points)[0], rtol=1e-12)
